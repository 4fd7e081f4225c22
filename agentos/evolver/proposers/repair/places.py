"""Where the fault probably is: lines by how much oftener failing calls run them than passing ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from math import sqrt

from agentos.evolver.proposers.repair.hints import boost, ends_a_loop
from agentos.evolver.proposers.repair.operators import (
    arithmetic,
    calls,
    comparisons,
    conditions,
    literals,
    names,
    statements,
)
from agentos.evolver.proposers.repair.site import Facts, sites
from agentos.evolver.proposers.repair.source import Edit, Program

OPERATORS = (
    literals.constants,
    comparisons.comparisons,
    comparisons.booleans,
    arithmetic.arithmetic,
    arithmetic.one_more,
    arithmetic.signs,
    names.names,
    names.attributes,
    names.order,
    names.targets,
    names.swaps,
    calls.wraps,
    calls.slices,
    calls.arguments,
    calls.drops,
    calls.ingredients,
    conditions.more_conditions,
    conditions.filters,
    conditions.defaults,
    statements.deletions,
    statements.moves,
    statements.guards,
    statements.insertions,
    statements.returns,
)


def edits_of(facts: Facts, *, endless: bool = False) -> Iterator[tuple[Edit, float]]:
    """Every edit that any operator can make anywhere in the file, and how much other signs speak for it.

    ``endless`` says that failing calls do not come to an end.
    """
    loop = ends_a_loop(facts.program) if endless else None
    data, words = facts.program.data, facts.words
    for site in sites(facts):
        for operator in OPERATORS:
            for edit in operator(site):
                first = edit.splices[0]
                factor = boost(data[first.start : first.end].decode(), first.text, words)
                yield edit, factor * loop(edit) if loop else factor


def suspicion(
    program: Program, failing: Sequence[Sequence[int]], passing: Sequence[Sequence[int]]
) -> dict[int, float]:
    """Ochiai's coefficient by line: failing runs of the line / sqrt(failing runs · runs of the line).

    Abreu et al., "On the Accuracy of Spectrum-based Fault Localization", 2007. Lines of a statement
    that goes over several lines share its first line's value; lines that run on import (module
    level) count as run by all.
    """
    on_import = {
        line
        for node in program.tree.body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    failed, passed = [set(lines) | on_import for lines in failing], [set(x) | on_import for x in passing]
    found: dict[int, float] = {}
    for line in set().union(*failed) if failed else set():
        bad = sum(line in lines for lines in failed)
        good = sum(line in lines for lines in passed)
        found[line] = bad / sqrt(len(failed) * (bad + good))
    for line in on_import & set(found):
        found[line] *= 0.3
    for node in ast.walk(program.tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno in found:
            for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, found[node.lineno])
    return found
