"""Inputs next to those of the tasks: one argument or one input file changed in one place.

Drawn by the home's key, so that no edit can know them. What a tool's ``Input`` does not take is told by the tool
itself, where they are run.
"""

from __future__ import annotations

import hmac
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Context, Decimal
from types import NoneType
from typing import Any

from agentos.benches import error_of
from agentos.domain import Json, canonical
from agentos.evolver.propose.case_variants import with_leftovers
from agentos.evolver.propose.input_variation import Variation, same
from agentos.ports import Case

_BYTES_MAX = 4 << 20
# A number that stands for itself: no part of a date, a time, a version or a name.
_NUMBER = re.compile(r"(?<![\w.:/+-])[+-]?\d+(?:\.\d+)?(?![\w:/]|[.+-]\w)")
_MINUS = re.compile(rb"(?<![\w.)])-[\d.]")
_CLAUSE = re.compile(
    r"(?:^|(?<=[;\n\"]))[ \t]*[\w.-]+[=:]?([ \t]*[^\s;\"\\][^\n;\"\\]*)"
)  # within JSON as well
_WORD = re.compile(r"[^\s\"'{}\[\]]+")
_PART = re.compile(r"\w+")
_META = re.compile(r"\\\w|[\\()\[\]{}*+?|^$.]")  # of a pattern, what stands for no sign by itself
_BETWEEN = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')  # a text of JSON, or blanks between
_LETTERS = re.compile(r"\b[^\W\d_]{2,}\b")
_DAY = re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d\b")
_DECIMAL = re.compile(r"(?<![\w.,:/+-])\d+\.\d+(?![\d:/-]|[.,]\d)")
_YEARS = 76  # by which days move: most leap years stay ones, and 2100 comes near, which is none
_DRAWS = 6  # for each that is wanted: many are inputs that were shown, or were drawn before


@dataclass(frozen=True, slots=True)
class Neighbour:
    """``along`` is the argument or the file that was changed of the case with the number ``of``."""

    case: Case
    of: int
    along: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A case put otherwise, and whether to ``expect`` of it, beside an answer to the case (the first), an output (the second).

    ``faulty``: of the base's wrong answers too, where what works may keep to it by accident.
    """

    case: Case
    of: int
    says: str
    expect: Callable[[Json, Json], bool]
    faulty: bool = False


def rewritten(cases: Sequence[Case], source: str, texts: Sequence[str] = ()) -> list[Rewritten]:
    """Each case that can be: columns of tables and lines in another order, JSON without blanks, words in other letters,
    other years, decimals with a zero behind them, a byte that is no text, files of an earlier run beside its own. ``texts``: those that the edit writes.

    Of words capitalised ones that its right answer repeats, and the source does not have: names, which stand for
    themselves. A case of which not all days can be moved is left out.
    """
    left = with_leftovers(cases, texts)
    made = [Rewritten(case, number, "with files left beside its own", same) for number, case in left]
    own = {*_LETTERS.findall(source.casefold())}
    for number, case in enumerate(cases):
        said = {*_LETTERS.findall(canonical([dict(check.spec) for check in case.checks]).decode())}
        words = {word for _, text in _worded(case) for word in _LETTERS.findall(text)}
        spellings = Counter(word.casefold() for word in words)  # Bo and bo may be one to the tool
        names = {word for word in words & said if word.istitle() and spellings[word.casefold()] == 1}
        lettered = _Lettered(frozenset(word for word in names if word.casefold() not in own))
        for says, change, expect in (
            ("with its columns in another order", _turned, same),
            ("with its JSON without blanks", _packed, same),
            ("with its lines in another order", _reordered, same),
            ("with a zero behind its decimals", _longer, same),
            ("with é at the end of its names", lettered, lettered.same),
            (f"{_YEARS} years later", _later, _is_answered),
            ("with a byte that is none of a text", _garbled, _is_refused),
        ):
            with suppress(ValueError):
                other = _changed(case, change)
                if other != case:
                    made.append(
                        Rewritten(
                            replace(other, checks=()), number, says, expect, change in (_reordered, _longer)
                        )
                    )
    return made


def _changed(case: Case, change: Callable[[str], str]) -> Case:
    """With this done to each text of it but the names of its files. Raises ValueError."""
    texts = {name: data.decode() for name, data in case.inputs.items()}
    inputs = {name: change(text).encode("utf-8", "surrogateescape") for name, text in texts.items()}
    if change is _garbled:  # no argument can be
        return replace(case, inputs=inputs)
    args = {name: _each(value, change, texts) for name, value in case.call.args.items()}
    return replace(case, call=replace(case.call, args=args), inputs=inputs)


def _each(value: Any, change: Callable[[str], str], spare: Container[str] = ()) -> Any:
    """The value with this done to each text in it, names of fields too."""
    if isinstance(value, str):
        return value if value in spare else change(value)
    if isinstance(value, list | tuple):
        return [_each(item, change, spare) for item in value]
    if isinstance(value, dict):
        return {_each(name, change, spare): _each(item, change, spare) for name, item in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class _Lettered:
    """Puts a letter beyond ASCII at the end of each of these words."""

    words: frozenset[str]

    def __call__(self, text: str) -> str:
        return _LETTERS.sub(lambda found: found[0] + "é" * (found[0] in self.words), text)

    def same(self, answer: Json, output: Json) -> bool:
        return same(_each(answer, self), output)


def _is_refused(_: Json, output: Json) -> bool:
    return bool(error_of(output))


def _is_answered(answer: Json, output: Json) -> bool:
    return not _is_refused(answer, output)


def _garbled(text: str) -> str:
    """After its last word a byte that UTF-8 never has."""
    end = len(text.rstrip())
    return text[:end] + "\udcff" * bool(end) + text[end:]


def _turned(text: str) -> str:
    """A table with its first column at the end; any other text as it is."""
    mark = text[: text.startswith("\ufeff")]
    lines = text[len(mark) :].splitlines()
    for sign in ",;\t":
        cells = [line.split(sign) for line in lines if line]
        if cells and {len(row) for row in cells} == {len(cells[0])} != {1} and '"' not in text:
            turned = [sign.join([*row[1:], row[0]]) for row in cells]
            return mark + "\n".join([*turned, ""])
    return text


def _reordered(text: str) -> str:
    """Each second of its lines first, so that no two that were neighbours are, below a head without digits; a document of
    JSON as it is.
    """
    lines = text.splitlines()
    if len(lines) < 2 or _packed(text) != text:
        return text
    numbered = [any(map(str.isdigit, line)) for line in lines]
    head = 1 if not numbered[0] and all(numbered[1:]) else 0
    return "\n".join([*lines[:head], *lines[head + 1 :: 2], *lines[head::2], ""])


def _packed(text: str) -> str:
    """A document of JSON without blanks between its values; any other text as it is."""
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            json.loads(text)
            return _BETWEEN.sub(lambda found: found[1] or "", text)
    return text


def _longer(text: str) -> str:
    return _DECIMAL.sub(r"\g<0>0", text)


def _later(text: str) -> str:
    return _DAY.sub(lambda day: _moved(date.fromisoformat(day[0])).isoformat(), text)


def _moved(day: date) -> date:
    return day.replace(year=day.year + _YEARS)


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
    made: list[Neighbour] = []
    for number, along, found in places[:most]:
        case, value = cases[number], Decimal(found.group())
        unit = Decimal((0, (1,), int(value.as_tuple().exponent)))
        step = chance.choice([Decimal(1), Decimal(2), unit])
        exact = Context(prec=len(found.group()) + 2)
        text = f"{exact.add(value, chance.choice([step, -step])):f}"
        if found.group()[0] == "0" and unit == 1:
            text = text.zfill(len(found.group()))
        if along in case.inputs:
            text = found.string[: found.start()] + text + found.string[found.end() :]
        made += _put(case, number, along, text.encode())
    return made


def levelled(cases: Sequence[Case], source: str, key: bytes, most: int) -> list[Neighbour]:
    """At most so many, one number of a case as another of it is, or as a default of ``Input``: where a bound is met.

    Of numbers as in ``stepped``, of arguments that the case leaves to their default too.
    """
    chance = random.Random(hmac.digest(key, b"levelled", "sha256"))  # noqa: S311 - unknown, and the same again
    defaults = Variation.of(cases, source).fields
    places = []
    for number, case in enumerate(cases):
        unsaid = {name: values for name, values in defaults.items() if name not in case.call.args}
        levels = {str(each) for values in unsaid.values() for each in values if type(each) in (int, float)}
        levels |= {text for along, text in _numbered(case) if along not in case.inputs}
        within = [
            (along, found)
            for along, text in _numbered(case)
            if along in case.inputs
            for found in _NUMBER.finditer(text)
        ]
        places += [
            (number, along, found, level)
            for along, found in within
            for level in sorted(levels - {found.group()})
        ]
    chance.shuffle(places)
    made: list[Neighbour] = []
    for number, along, found, level in places[:most]:
        whole = found.string[: found.start()] + level + found.string[found.end() :]
        made += _put(cases[number], number, along, whole.encode())
    return made


def filled(cases: Sequence[Case], key: bytes, most: int) -> list[Neighbour]:
    """At most so many, one object of a list with a field, and its value, that another one has and it lacks.

    Of arguments, of documents of JSON and of files with one on each line.
    """
    chance = random.Random(hmac.digest(key, b"filled", "sha256"))  # noqa: S311 - unknown, and the same again
    lists: list[tuple[int, str, Any, list[dict[str, Any]]]] = []
    for number, case in enumerate(cases):
        for along, value in (
            *case.call.args.items(),
            *((name, _documents(case.inputs[name])) for name in case.inputs),
        ):
            whole = json.loads(canonical(value))
            lists += [(number, along, whole, rows) for rows in _rows(whole)]
    offered: dict[str, list[tuple[str, Json]]] = defaultdict(list)
    for _, along, _, rows in lists:
        offered[along] += [(field, value) for row in rows for field, value in row.items()]
    places = [
        (number, along, whole, row, field, value)
        for number, along, whole, rows in lists
        for row in rows
        for field, value in offered[along]
        if field not in row
    ]
    chance.shuffle(places)
    made: list[Neighbour] = []
    for number, along, whole, row, field, value in places[:most]:
        row[field] = json.loads(canonical(value))  # a copy: the value may hold the row
        like = cases[number].inputs.get(along)
        text = _written(whole, like) if like is not None else canonical(whole)
        made += _put(cases[number], number, along, text)
        del row[field]
    return made


def _documents(data: bytes) -> Json:
    """The document that a file is, or the list of those on its lines; None where it is neither."""
    with suppress(ValueError, RecursionError):
        return json.loads(data)
    with suppress(ValueError, RecursionError):
        return [json.loads(line) for line in data.splitlines() if line.strip()]
    return None


def _written(value: Any, like: bytes) -> bytes:
    with suppress(ValueError, RecursionError):
        json.loads(like)
        return json.dumps(value, ensure_ascii=False).encode()
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in value)


def _rows(value: Any) -> Iterator[list[dict[str, Any]]]:
    """Lists of objects within it."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _rows(each)


def spelled(cases: Sequence[Case], texts: Sequence[str], key: bytes, most: int) -> list[Neighbour]:
    """At most so many, a word of a case with one of these texts, or a sign of one, at its ends, in it or beside the text there.

    Both sides of what goes by a text: who cuts ``.csv`` off may cut off a c before it as well. With the empty text
    among them a part of a word is left out as well, and of one that stands in a text its first or last sign.
    """
    chance = random.Random(hmac.digest(key, b"spelled", "sha256"))  # noqa: S311 - unknown, and the same again
    signs = (sign for text in texts for sign in (_META.sub("", text) if "\\" in text else text))
    pieces = [*dict.fromkeys([*filter(None, texts), *signs])]
    pieces += [""] * (len(pieces) // 2 + 1 if "" in texts else 0)
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
        if not piece and (parts := [*_PART.finditer(text, start, end)]):
            part = chance.choice(parts)
            at, end = part.span()
            if any(part[0] in each for each in texts):
                at, end = chance.choice([(at, at + 1), (end - 1, end)])
            text = text[:at] + text[end:]
        case = cases[number]
        if along not in case.inputs:  # a quote or the end of a line, within JSON
            piece = json.dumps(piece, ensure_ascii=False)[1:-1]
        # Half a character stands in no file.
        made += _put(case, number, along, (text[:at] + piece + text[at:]).encode("utf-8", "replace"))
    return made


def bared(cases: Sequence[Case], key: bytes, most: int) -> list[Neighbour]:
    """At most so many, one clause of a text (a line, or what stands between semicolons) with its first word alone.

    Both sides of what goes by whether something is there: a key without values is not one that is missing.
    """
    chance = random.Random(hmac.digest(key, b"bared", "sha256"))  # noqa: S311 - unknown, and the same again
    places = [
        (number, along, (text[: found.start(1)] + text[found.end(1) :]).encode())
        for number, case in enumerate(cases)
        for along, text in _worded(case)
        for found in _CLAUSE.finditer(text)
    ]
    chance.shuffle(places)
    return [
        item for number, along, text in places[:most] for item in _put(cases[number], number, along, text)
    ]


def _put(case: Case, number: int, along: str, text: bytes) -> list[Neighbour]:
    """The case with this text for that file, or as JSON for that argument; none where it is no JSON."""
    if along in case.inputs:
        return [Neighbour(replace(case, inputs={**case.inputs, along: text}, checks=()), number, along)]
    try:
        args = {**case.call.args, along: json.loads(text)}
    except ValueError:
        return []
    return [Neighbour(replace(case, call=replace(case.call, args=args), checks=()), number, along)]


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


def usual(drawn: Sequence[Neighbour], tasks: Sequence[Case]) -> list[Neighbour]:
    """Without negative numbers where no task has any: of a pack of -3 pieces nobody can say what is right."""
    if any(map(_negative, tasks)):
        return [*drawn]
    return [item for item in drawn if not _negative(item.case)]


def _negative(case: Case) -> bool:
    args = canonical(dict(case.call.args))
    return any(_MINUS.search(data) for data in (args, *case.inputs.values()))


def crossed(tasks: Sequence[Case], working: Set[int], most: int) -> list[Neighbour]:
    """Evidence with one argument as another task has it: what somebody will ask for next. At most so many."""
    made: dict[tuple[int, str, bytes], Neighbour] = {}
    for number, case in enumerate(tasks):
        for other in tasks if number not in working else ():
            for name, value in other.call.args.items():
                if name not in case.call.args or (isinstance(value, str) and value in other.inputs):
                    continue
                call = replace(case.call, args={**case.call.args, name: value})
                if value != case.call.args[name]:
                    item = Neighbour(replace(case, call=call, checks=()), number, name)
                    made.setdefault((number, name, canonical(value)), item)
    return list(made.values())[:most]
