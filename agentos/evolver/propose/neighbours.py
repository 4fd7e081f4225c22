"""Inputs next to those of the tasks: one argument or one input file changed in one place.

Drawn by the home's key, so that no edit can know them. What a tool's ``Input`` does not take is told by the tool
itself, where they are run.
"""

from __future__ import annotations

import hmac
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from types import NoneType

from agentos.domain import Json, canonical
from agentos.evolver.propose.input_variation import Variation
from agentos.ports import Case

_BYTES_MAX = 4 << 20
# A number that stands for itself: no part of a date, a time, a version or a name.
_NUMBER = re.compile(r"(?<![\w.:/+-])[+-]?\d+(?:\.\d+)?(?![\w:/]|[.+-]\w)")
_WORD = re.compile(r"[^\s\"'{}\[\]]+")
_DRAWS = 6  # for each that is wanted: many are inputs that were shown, or were drawn before


@dataclass(frozen=True, slots=True)
class Neighbour:
    """``along`` is the argument or the file that was changed of the case with the number ``of``."""

    case: Case
    of: int
    along: str


def neighbours(
    cases: Sequence[Case], source: str, key: bytes, most: int, *, unsaid: bool = False
) -> list[Neighbour]:
    """At most so many, each case and each of its arguments and files in turn.

    None has, where it was changed, what one of the cases has there. ``unsaid``: arguments that the cases leave to
    their default are changed as well.
    """
    chance = random.Random(hmac.digest(key, b"neighbours", "sha256"))  # noqa: S311 - unknown, and the same again
    variation = Variation.of(cases, source)
    places = [
        (number, along)
        for number, case in enumerate(cases)
        for along in (*variation.arguments(case, unsaid=unsaid), *sorted(case.inputs))
    ]
    known = {_identity(case, along) for case in cases for along in (*case.call.args, *case.inputs)}
    drawn: set[tuple[int, bytes]] = set()
    found: list[Neighbour] = []
    room = _BYTES_MAX
    for draw in range(most * _DRAWS if places else 0):
        if len(found) == most or room < 0:
            break
        number, along = places[draw % len(places)]
        case = variation.varied(cases[number], along, chance)
        if case is None or (mark := _identity(case, along)) in known or (number, mark) in drawn:
            continue
        drawn.add((number, mark))
        found.append(Neighbour(case, number, along))
        room -= sum(map(len, case.inputs.values()))
    return found


def limits(cases: Sequence[Case]) -> list[Neighbour]:
    """Each file empty, and with its first line alone; each list and table of the arguments empty. One input for each."""
    made: dict[tuple[str, bytes], Neighbour] = {}
    for number, case in enumerate(cases):
        for name, data in case.inputs.items():
            for least in (b"", b"".join(data.splitlines(keepends=True)[:1])):
                other = replace(case, inputs={**case.inputs, name: least}, checks=())
                made.setdefault((name.rpartition(".")[2], least), Neighbour(other, number, name))
        for name, value in case.call.args.items():
            if isinstance(value, list | tuple | dict):
                call = replace(case.call, args={**case.call.args, name: type(value)()})
                made.setdefault((name, b""), Neighbour(replace(case, call=call, checks=()), number, name))
    return list(made.values())


def stepped(cases: Sequence[Case], key: bytes, most: int) -> list[Neighbour]:
    """At most so many, one number of a case a little higher or lower: both sides of a bound that lies near it.

    Numbers of arguments, and of files as long as these are texts; the step is one, two, or one of its last digit.
    """
    chance = random.Random(hmac.digest(key, b"stepped", "sha256"))  # noqa: S311 - unknown, and the same again
    places = [
        (number, along, found)
        for number, case in enumerate(cases)
        for along, text in _numbered(case)
        for found in _NUMBER.finditer(text)
    ]
    chance.shuffle(places)
    made = []
    for number, along, found in places[:most]:
        case, value = cases[number], Decimal(found.group())
        unit = Decimal((0, (1,), int(value.as_tuple().exponent)))
        step = chance.choice([Decimal(1), Decimal(2), unit])
        exact = Context(prec=len(found.group()) + 2)
        text = f"{exact.add(value, chance.choice([step, -step])):f}"
        if found.group()[0] == "0" and unit == 1:
            text = text.zfill(len(found.group()))
        if along in case.inputs:
            whole = found.string[: found.start()] + text + found.string[found.end() :]
            made.append(
                Neighbour(
                    replace(case, inputs={**case.inputs, along: whole.encode()}, checks=()), number, along
                )
            )
        else:
            args = {**case.call.args, along: type(case.call.args[along])(text)}
            made.append(
                Neighbour(replace(case, call=replace(case.call, args=args), checks=()), number, along)
            )
    return made


def spelled(cases: Sequence[Case], texts: Sequence[str], key: bytes, most: int) -> list[Neighbour]:
    """At most so many, a word of a case with one of these texts, or a sign of one, at its ends, in it or beside the text there.

    Both sides of what goes by a text: who cuts ``.csv`` off may cut off a c before it as well.
    """
    chance = random.Random(hmac.digest(key, b"spelled", "sha256"))  # noqa: S311 - unknown, and the same again
    pieces = [*dict.fromkeys([text for text in texts if text] + [sign for text in texts for sign in text])]
    places = [
        (number, along, text, found.span())
        for number, case in enumerate(cases)
        for along, text in _worded(case)
        for found in _WORD.finditer(text)
    ]
    made: list[Neighbour] = []
    for _ in range(most if places and pieces else 0):
        number, along, text, (start, end) = chance.choice(places)
        piece, inside = chance.choice(pieces), [text.find(each, start, end) for each in texts if each]
        at = chance.choice([start, (start + end) // 2, end, *(found for found in inside if found >= 0)])
        case = cases[number]
        if along not in case.inputs:  # a quote or the end of a line, within JSON
            piece = json.dumps(piece, ensure_ascii=False)[1:-1]
        other = text[:at] + piece + text[at:]
        if along in case.inputs:
            changed = replace(case, inputs={**case.inputs, along: other.encode()}, checks=())
        else:
            try:
                args = {**case.call.args, along: json.loads(other)}
            except ValueError:
                continue
            changed = replace(case, call=replace(case.call, args=args), checks=())
        made.append(Neighbour(changed, number, along))
    return made


def _worded(case: Case) -> Iterator[tuple[str, str]]:
    """Arguments that are or hold texts, as JSON, and files that are texts, by name."""
    for name, value in case.call.args.items():
        if not isinstance(value, bool | int | float | NoneType) and not (
            isinstance(value, str) and value in case.inputs
        ):
            yield name, json.dumps(value, ensure_ascii=False)
    for name, data in case.inputs.items():
        try:
            yield name, data.decode()
        except UnicodeDecodeError:
            continue


def _numbered(case: Case) -> Iterator[tuple[str, str]]:
    """Arguments that are a number, and files that are texts, by name."""
    for name, value in case.call.args.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, str(value)
    for name, data in case.inputs.items():
        try:
            yield name, data.decode()
        except UnicodeDecodeError:
            continue


def _identity(case: Case, along: str) -> bytes:
    value: Json = case.inputs[along].hex() if along in case.inputs else case.call.args.get(along)
    return along.encode() + b"=" + canonical(value)
