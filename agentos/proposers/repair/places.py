"""Where the fault probably is: lines by how much more often failing calls run them than passing ones."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain
from math import sqrt

from agentos.domain import Json
from agentos.ports import Brief, Case
from agentos.programs import MANIFEST
from agentos.proposers.repair.operators import (
    arithmetic,
    calls,
    conditions,
    defects,
    names,
    rewrites,
    statements,
)
from agentos.proposers.repair.operators.idioms import flow, several, texts, values
from agentos.proposers.repair.operators.settings import Ingredients, read_data, settings, shell
from agentos.proposers.repair.prior import EditStock, weighed
from agentos.proposers.repair.reading.clues import Clues, TextFactors, boost, ends_a_loop
from agentos.proposers.repair.scope import FUNCTIONS_MAX, given_names, is_target
from agentos.proposers.repair.site import EditSite, FileFacts, sites
from agentos.proposers.repair.source import CodeEdit, Program, TextFile, blocks_of, first_line
from agentos.syntax import Definition

OPERATORS = (
    defects.defects, names.constants, conditions.comparisons, conditions.booleans, arithmetic.arithmetic,
    arithmetic.one_more, arithmetic.signs, arithmetic.with_other_field, names.names, names.attributes, names.order,
    names.treated_alike, names.targets, names.swaps, rewrites.rewritten,
    values.tests_of_none, values.nothing_to_walk, values.walked, values.of_their_own, values.limited,
    values.begun_at_nought, values.units, values.regrouped, values.to_variables,
    arithmetic.across, arithmetic.again, arithmetic.around, texts.sort_keys, texts.in_order,
    texts.patterns, texts.times, texts.templates, texts.cleaned, texts.compared_alike, texts.distinct, texts.fields, texts.prefixes,
    texts.one_of, flow.jumps, flow.cases, flow.farther, flow.twins, several.begun_alike, flow.from_elsewhere, flow.flushed,
    flow.ordered_otherwise, flow.begun_inside, flow.caught, flow.caught_wider, flow.other_defaults,
    flow.not_in_place, calls.awaits, calls.wraps, calls.all_alike, calls.in_parts, calls.slices, calls.arguments, calls.drops,
    calls.ingredients, conditions.more_conditions, conditions.from_zero, conditions.conditional, conditions.filters,
    conditions.defaults, conditions.other_parameters, statements.deletions, statements.moves, statements.insertions,
    statements.returns, *several.SEVERAL,
)  # fmt: skip


TWINS = (ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp)
TWINS_MAX = 4
STRETCH = 30  # nodes whose edits are made together


def edits_of(facts: FileFacts) -> Iterator[tuple[CodeEdit, float]]:
    """Every edit that any operator can make anywhere in the file, and how much other signs speak for it."""
    everywhere, nothing_said = list(sites(facts)), TextFactors(Clues(facts.program), frozenset())
    yield from _plain(facts, everywhere, endless=False)
    for site in everywhere:
        for family in statements.guards(site, nothing_said):
            yield from ((edit, 1.0) for edit in family.edits)


def _plain(
    facts: FileFacts, places: Iterable[EditSite], *, endless: bool
) -> Iterator[tuple[CodeEdit, float]]:
    loop = ends_a_loop(facts.program) if endless else None
    data, words = facts.program.data, facts.words
    for site in places:
        twins = _twins(site)
        for operator in OPERATORS:
            for edit in operator(site):
                first = edit.splices[0]
                factor = boost(data[first.start : first.end].decode(), first.text, words)
                yield edit, factor * loop(edit) if loop else factor
                yield from (
                    (alike, factor) for alike in (_everywhere(site, edit, same) for same in twins) if alike
                )


def _everywhere(site: EditSite, edit: CodeEdit, same: Sequence[ast.expr]) -> CodeEdit | None:
    """The same change at every place where the same stands: a slip made more than once."""
    splice = edit.splices[0]
    if len(edit.splices) > 1 or (splice.start, splice.end) != site.program.span(site.node):  # type: ignore[arg-type]
        return None
    splices = tuple(site.program.replace(node, splice.text) for node in same)
    return CodeEdit(splices, edit.operator, 0.2 * edit.weight)


def _twins(site: EditSite) -> Sequence[Sequence[ast.expr]]:
    """The node and those written alike, of its function and of the file; none where it is not its function's first."""
    node, functions = site.node, site.program.functions
    if not isinstance(node, TWINS):
        return ()
    text = site.program.text(node)
    own = _alike(site.facts, site.function).get(text, ())
    if own[:1] != [node]:
        return ()
    found = [own]
    if isinstance(node, ast.Call | ast.Compare | ast.BinOp) and len(functions) <= FUNCTIONS_MAX:
        among = (_alike(site.facts, function).get(text, ()) for function in (None, *functions))
        found.append(list(chain.from_iterable(among)))
    return [same for same in found[: 1 + (found[-1] != own)] if 1 < len(same) <= TWINS_MAX]


@lru_cache(maxsize=2 * FUNCTIONS_MAX)
def _alike(facts: FileFacts, function: Definition | None) -> Mapping[str, Sequence[ast.expr]]:
    """The nodes of the function by how they are written."""
    by_text: dict[str, list[ast.expr]] = {}
    for node in facts.nodes_in(function):
        if isinstance(node, TWINS) and not is_target(node):
            by_text.setdefault(facts.program.text(node), []).append(node)
    return by_text


def stocks(
    facts: FileFacts, places: Mapping[int, float], clues: Clues, *, endless: bool = False
) -> Iterator[EditStock]:
    """The edits of all lines that failing calls run, in stretches, the most suspicious lines first.

    A stretch is made when it is asked for: what that takes does not depend on the file's length.
    """
    program, factors = facts.program, TextFactors(clues, facts.words)
    everywhere = sites(facts, [line for line, suspicious in places.items() if suspicious > 0])
    found = [(_suspicion_at(site, places) * clues.at(_line(site)), site) for site in everywhere]
    found = sorted((pair for pair in found if pair[0] > 0), key=lambda pair: -pair[0])
    everything = sum(weight for weight, _ in found) or 1.0
    for first in range(0, len(found), STRETCH):
        stretch = found[first : first + STRETCH]
        edits = _plain(facts, [site for _, site in stretch], endless=endless)
        allowed = ((edit, factor) for edit, factor in edits if clues.allows(edit))
        families = []
        for _, site in stretch:
            for family in statements.guards(site, factors):
                edits_of_it = filter(clues.allows, family.edits)
                families.append((replace(family, edits=edits_of_it), _suspicion_at(site, places)))
        part = sum(weight for weight, _ in stretch) / everything
        below = found[first + STRETCH][0] if first + STRETCH < len(found) else 0.0
        plain = weighed(program, allowed, places, clues.factor)
        yield EditStock(plain, families, part, below / stretch[0][0])


def _line(site: EditSite) -> int:
    return int(getattr(site.node, "lineno", 0))


def _suspicion_at(site: EditSite, places: Mapping[int, float]) -> float:
    """By the node's own line, or by that on which its statement begins."""
    line = _line(site)
    if line in places:
        return places[line]
    above = site.parent
    while above is not None and not isinstance(above, ast.stmt):
        above = site.program.parent.get(above)
    return places.get(above.lineno, 0.0) if isinstance(above, ast.stmt) else 0.0


def suspicion(
    program: Program, failing: Sequence[Sequence[int]], passing: Sequence[Sequence[int]]
) -> dict[int, float]:
    """Ochiai's coefficient by line: failing runs of the line / sqrt(failing runs · runs of the line).

    Abreu et al., "On the Accuracy of Spectrum-based Fault Localization", 2007. Lines of a statement
    that goes over several lines share its first line's value; lines that run on import (of the module and
    of classes) count as run by all.
    """
    on_import = set(_imported(program.tree.body))
    failed, passed = [set(lines) | on_import for lines in failing], [set(x) | on_import for x in passing]
    found: dict[int, float] = {}
    for line in set().union(*failed) if failed else set():
        bad = sum(line in lines for lines in failed)
        good = sum(line in lines for lines in passed)
        found[line] = bad / sqrt(len(failed) * (bad + good))
    for line in on_import & set(found):
        found[line] *= 0.3
    for node in _statements_on(program, sorted(found)):
        first = first_line(node)  # of a function it is by its first decorator that a call is known
        if isinstance(node, Definition):
            # a box tells only of statements: the head ran where the first of them did
            begun = node.body[1:2] if ast.get_docstring(node, clean=False) is not None else []
            at = first_line((begun or node.body)[0])
            found |= {first: found[at]} if at in found and first not in found else {}
        if first in found:
            for line in range(first + 1, _head_end(node) + 1):
                found.setdefault(line, found[first])
    return found


def _imported(body: Sequence[ast.stmt]) -> Iterator[int]:
    """The lines of the statements that run on import, those within classes, too."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _imported(node.body)
        elif not isinstance(node, Definition):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _head_end(node: ast.stmt) -> int:
    """The last line of what stands before the statements inside it."""
    if isinstance(node, ast.Match):
        return max(node.lineno, node.cases[0].pattern.lineno - 1)
    inner = blocks_of(node)
    return max(node.lineno, first_line(inner[0]) - 1) if inner else node.end_lineno or node.lineno


def _statements_on(program: Program, lines: Sequence[int]) -> Iterator[ast.stmt]:
    """Statements in those of the module that are on some of the lines, outer ones first."""
    waiting = deque(
        node
        for node in program.tree.body
        if (at := bisect_left(lines, node.lineno)) < len(lines) and lines[at] <= (node.end_lineno or 0)
    )
    while waiting:
        yield (node := waiting.popleft())
        waiting.extend(blocks_of(node))


# --- texts beside the code: no trace tells what runs of them ------------------------------------------

LOCKS = ("resource.toml", "wheels.lock")  # documents of the registry, not of the tool
SHELLS = (".sh", ".bash")
WORDS_MAX, LEAST = 24, 2
AT_ONCE = 300  # edits that are made together


def texts_of(brief: Brief) -> Mapping[str, str]:
    """The texts of the brief's resource that only a search may edit, the one at fault first."""
    own = f"{brief.resource}/"

    def searched(path: str) -> bool:
        fits = any(fnmatchcase(path, p) and path.count("/") == p.count("/") for p in brief.searched)
        return fits and path.startswith(own) and path.rpartition("/")[2] not in LOCKS

    found = {path: text for path, text in brief.files.items() if searched(path)}
    return dict(sorted(found.items(), key=lambda pair: pair[0] != brief.path))


def helpers_of(brief: Brief) -> Mapping[str, str]:
    """The modules beside the brief's file that it, or one of them, may import."""
    folder = brief.path.rpartition("/")[0]

    def fits(path: str) -> bool:
        allowed = any(fnmatchcase(path, p) and path.count("/") == p.count("/") for p in brief.surface)
        above, _, name = path.rpartition("/")
        return allowed and above == folder and name.startswith("_") and name.endswith(".py")

    return {path: text for path, text in brief.files.items() if fits(path)}


def ingredients(file: TextFile, cases: Sequence[Case], evidence: Sequence[int]) -> Ingredients:
    """What the edits may put in: names that the code looks up, and words of what failing calls were given."""
    failing = [cases[number] for number in evidence]
    given = given_names(failing)
    known = {token.value for token in read_data(file.source)[0]}
    constants = (node.value for node in ast.walk(file.tree) if isinstance(node, ast.Constant))
    read = [text for text in constants if isinstance(text, str) and text.isidentifier() and text not in known]
    words: dict[str, None] = {}
    for case in failing:
        names = {
            value for value in case.call.args.values() if isinstance(value, str) and value in case.inputs
        }
        texts = [value for value in case.call.args.values() if isinstance(value, str) and value not in names]
        texts += [data[:4096].decode("utf-8", "ignore") for data in case.inputs.values()]
        words |= dict.fromkeys(word for text in texts for word in re.findall(r"[^\W\d_]{2,}", text))
    return Ingredients(tuple(dict.fromkeys(read)), tuple(words)[:WORDS_MAX], given.fields, given.signs)


def text_stocks(
    file: TextFile, cases: Sequence[Case], evidence: Sequence[int], outputs: Sequence[Json]
) -> Iterator[EditStock]:
    """The edits of the text, in stretches from its top, made when they are asked for."""
    given = ingredients(file, cases, evidence)
    said = " ".join(str(outputs[number]) for number in evidence)
    if file.path.endswith(SHELLS):
        made = shell(file.source, given)
    else:
        made = settings(file.source, given, document=file.path.rpartition("/")[2] == MANIFEST)
    everywhere = dict.fromkeys(range(1, len(file.data.splitlines()) + 1), 1.0)
    stretch = []
    for _, edit in made:
        stretch.append((edit, 5.0 if _is_named(edit, said) else 1.0))
        if len(stretch) == AT_ONCE:
            yield EditStock(weighed(file, stretch, everywhere), following=1.0)
            stretch = []
    yield EditStock(weighed(file, stretch, everywhere))


def _is_named(edit: CodeEdit, said: str) -> bool:
    """Whether what it puts in is a name that the failure says."""
    new = edit.splices[0].text.strip("\"'")
    return len(new) > LEAST and new.isidentifier() and f"'{new}'" in said
