"""All failing calls read together: a clue counts once, however many calls give it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from agentos.domain import Json
from agentos.ports import BenchResult, Case
from agentos.proposers.repair.reading.clues import Clue, Clues
from agentos.proposers.repair.reading.differences import clues_of_difference
from agentos.proposers.repair.reading.exceptions import clues_of_error
from agentos.proposers.repair.reading.given import given_names
from agentos.proposers.repair.reading.idle import idle_names
from agentos.proposers.repair.source import Program

IDLE = 5.0  # for an edit that uses what the file makes and does not use


def read_failures(
    cases: Sequence[Case], evidence: Sequence[int], tried: BenchResult, program: Program
) -> Clues:
    """What the failing ones among the cases say, by what the original did on each."""
    found: dict[Clue, None] = {}
    lines = set()
    for number in evidence:
        output = tried.outputs[number]
        line = tried.raised[number] if number < len(tried.raised) else 0
        if isinstance(output, dict) and "error" in output and "message" in output:
            clues = clues_of_error(str(output["error"]), str(output["message"]), line)
            lines.add(line)
        else:
            clues = _of_answer(cases[number], output)
        found.update(dict.fromkeys(clues))
    if idle := idle_names(program):
        found[Clue(IDLE, tokens=idle)] = None
    raised = tuple(node for node in program.nodes(ast.Raise) if node.lineno in lines)
    identifying = given_names(cases).identifying
    known = frozenset(f"{holder}.{name}" for name in identifying for holder in ("input", "args", "data"))
    return Clues(program, tuple(found), frozenset(lines - {0}), known | identifying, raised)


def _of_answer(case: Case, output: Json) -> Iterator[Clue]:
    for check in case.checks:
        if check.kind == "equals" and "value" in check.spec:
            got = _at(output, str(check.spec.get("path", "")))
            if got != check.spec["value"]:
                yield from clues_of_difference(check.spec["value"], got)


def _at(output: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        if isinstance(output, dict):
            output = output.get(part)
        elif isinstance(output, list) and part.isdigit() and int(part) < len(output):
            output = output[int(part)]
        else:
            return None
    return output
