"""Inputs next to those of the tasks: one argument or one input file changed in one place.

Drawn by the home's key, so that no edit can know them. What a tool's ``Input`` does not take is told by the tool
itself, where they are run.
"""

from __future__ import annotations

import ast
import hmac
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentos.domain import Call, Json, canonical
from agentos.evolver.proposers.repair.inputs import vary, vary_file
from agentos.ports import Case
from agentos.syntax import parse

_BYTES_MAX = 4 << 20
_DRAWS = 6  # for each that is wanted: many are inputs that were shown, or were drawn before


@dataclass(frozen=True, slots=True)
class Neighbour:
    """``along`` is the argument or the file that was changed of the case with the number ``of``."""

    case: Case
    of: int
    along: str


def neighbours(cases: Sequence[Case], source: str, key: bytes, most: int) -> list[Neighbour]:
    """At most so many, each case and each of its arguments and files in turn.

    None has, where it was changed, what one of the cases has there. Numbers are at times those of the tool's
    own ``source``, or next to them: that is where its behaviour changes.
    """
    chance = random.Random(hmac.digest(key, b"neighbours", "sha256"))  # noqa: S311 - unknown, and the same again
    numbers = sorted(_numbers(source))
    places = [
        (number, along)
        for number, case in enumerate(cases)
        for along in (*sorted(case.call.args), *sorted(case.inputs))
    ]
    known = {_identity(case, along) for case in cases for along in (*case.call.args, *case.inputs)}
    drawn: set[tuple[int, bytes]] = set()
    found: list[Neighbour] = []
    room = _BYTES_MAX
    for draw in range(most * _DRAWS if places else 0):
        if len(found) == most or room < 0:
            break
        number, along = places[draw % len(places)]
        case = _changed(cases[number], along, numbers, chance)
        if case is None or (mark := _identity(case, along)) in known or (number, mark) in drawn:
            continue
        drawn.add((number, mark))
        found.append(Neighbour(case, number, along))
        room -= sum(map(len, case.inputs.values()))
    return found


def _identity(case: Case, along: str) -> bytes:
    value: Json = case.inputs[along].hex() if along in case.inputs else case.call.args[along]
    return along.encode() + b"=" + canonical(value)


def _changed(case: Case, along: str, numbers: Sequence[float], chance: random.Random) -> Case | None:
    if along in case.inputs:
        return replace(case, inputs={**case.inputs, along: vary_file(case.inputs[along], chance)}, checks=())
    value = case.call.args[along]
    if isinstance(value, str) and value in case.inputs:
        return None  # another name would only be a missing file
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and numbers and chance.random() < 0.4:
        new: Json = type(value)(chance.choice(numbers) + chance.choice([-1, 0, 1]))
    else:
        new = vary(value, chance)
    return replace(case, call=Call(case.call.tool, {**case.call.args, along: new}), checks=())


def _numbers(source: str) -> Iterator[float]:
    try:
        nodes = list(ast.walk(parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in nodes:
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
            yield value
