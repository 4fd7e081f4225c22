"""What is wrong with an answer, where no check says so: what all right answers have and the failing ones had not.

Properties of the tool's answers (never negative, in order, no entry twice, parts that add up) are *likely invariants*
(Ernst et al., "Dynamically discovering likely program invariants", 2001): nobody promised them. One that holds in each
right answer and was broken in a failing one is how the failure shows; where it is still broken with an edit,
on an input beside the tasks, the edit mended what was shown and not the failure.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, Any

from agentos.benches import error_of
from agentos.domain import Ambiguity, Json, canonical

if TYPE_CHECKING:
    from agentos.evolver.policy import ReplayPolicy
    from agentos.evolver.propose.neighbours import Neighbour
    from agentos.ports import Case

_SHOWN = 80  # characters of a value
_NEAR = 1e-6
_DEEP = 3  # levels of an answer that are looked at
_SUMS_MAX = 10_000  # pairs of places of which one may add up to the other
_Series = Mapping[str, list[Any]]  # each value, list and table of an answer by its place, as a list


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to tell edits apart: checked tasks, those that work by number, and where they came from."""

    tasks: Sequence[Case]
    working: Set[int]  # of the tasks, those that are not evidence
    key: bytes
    rules: ReplayPolicy
    weights: Mapping[str, float] = field(default_factory=dict)  # of rivals; one without counts in any case
    least: float = 0.0  # what rivals that answer alike have to weigh together
    hidden: Set[int] = frozenset()  # of the tasks, those whose answers no person is told of
    weight: float = 0.0  # of the edit itself; 0 where its proposer does not weigh its edits
    later: Set[int] = frozenset()  # of the tasks, those that came after the edit, and that it passes


@dataclass(frozen=True, slots=True)
class EditFindings:
    """``unguarded``: no working call runs what is edited; None where that cannot be told.

    ``unmended``: a call that still ends by the exception of the evidence, or whose answer is still wrong in the way in
    which those of the evidence were, "" where none does. ``breaks``: a call at the limit, with an empty file or list,
    that the base answers and the edit ends by an exception. ``idle``: what it writes that changes no answer.
    ``loosened``: what it takes away, where the known work does not show what that was for.
    ``accepted``: a call that the base refused otherwise than the evidence, and the edit answers. ``noise``: a call that the
    edit alone answers with a float whose last digits are those of its rounding. ``depends``: a known call that is put
    otherwise, and with what the edit does then, where the base does with each working call what is to be expected.
    ``share``: of its proposer's belief in all edits that pass the known tasks; 0 where it has none. ``rivals``: the names of
    all that answer otherwise. ``untried``: why nothing is known of all this, where no call of the base, or of the edit, came to
    an end. ``lost``: the names of rivals, "" for the edit itself and its base, of which some call says nothing: what was asked
    about these before is still to be asked.
    """

    ambiguity: Ambiguity | None = None
    unguarded: bool | None = None
    unmended: str = ""
    breaks: str = ""
    idle: str = ""
    needless: str = ""
    loosened: str = ""
    share: float = 0.0
    rivals: Sequence[str] = ()
    accepted: str = ""
    noise: str = ""
    depends: str = ""
    untried: str = ""
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Symptom:
    """``says`` how an answer with it looks; ``test`` gives None where an answer cannot tell."""

    says: str
    test: Callable[[_Series], bool | None]

    def holds(self, answer: Json) -> bool | None:
        """Whether the answer is as right ones are; None where it cannot tell."""
        return self.test(_by_place(answer))


def symptoms(right: Sequence[Json], wrong: Sequence[Json], least: int) -> list[Symptom]:
    """What at least so many right answers have and none lacks, and a wrong one lacks."""
    good, bad = ([*map(_by_place, answers)] for answers in (right, wrong))
    found = []
    for item in _properties(good, least):
        held = [item.test(seen) for seen in good]
        if False in held or held.count(True) < least:
            continue
        if any(item.test(seen) is False for seen in bad):
            found.append(item)
    return found


def _properties(right: Sequence[_Series], least: int) -> Iterator[Symptom]:
    """Those of which so many can tell: a table by words, of each answer other ones, has many places and few of them in common."""
    known = Counter(place for seen in right for place in seen)
    places = [place for place, many in known.items() if many >= least]
    for place in places:
        for words, test in _TESTS:
            if not place.endswith("{}") or test not in _OF_LISTS:
                yield Symptom(f"{place} {words}", _at(place, test))
    parts = [place for place in places if sum(len(seen.get(place, ())) > 1 for seen in right) >= least]
    totals = [place for place in places if sum(len(seen.get(place, ())) == 1 for seen in right) >= least]
    for place, total in islice(product(parts, totals), _SUMS_MAX):
        if place != total:
            yield Symptom(f"{place} does not add up to {total}", _sum_of(place, total))


def _by_place(answer: Json) -> _Series:
    found: dict[str, list[Any]] = {}
    for place, values in _series(answer):
        found.setdefault(place, values)
    return found


def _series(answer: Json, place: str = "", depth: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Each value, list and table of an answer by its place, as a list."""
    if isinstance(answer, Mapping):
        if place and answer and not any(isinstance(each, list | dict) for each in answer.values()):
            yield f"{place}{{}}", [*answer.values()]
        for key, each in answer.items() if depth < _DEEP else ():
            yield from _series(each, f"{place}.{key}" if place else str(key), depth + 1)
    elif isinstance(answer, list):
        yield f"{place}[]", answer
    elif answer is not None and not isinstance(answer, bool):
        yield place, [answer]


def _at(place: str, test: Callable[[list[Any]], bool | None]) -> Callable[[_Series], bool | None]:
    return lambda seen: test(seen[place]) if place in seen else None


def _sum_of(place: str, total: str) -> Callable[[_Series], bool | None]:
    def holds(seen: _Series) -> bool | None:
        parts, whole = seen.get(place), seen.get(total)
        if not parts or not whole or len(parts) < 2 or len(whole) > 1 or not _numbers([*parts, *whole]):
            return None
        try:
            return bool(abs(sum(parts) - whole[0]) < _NEAR)
        except OverflowError:  # a whole number beyond all floats, beside one
            return None

    return holds


def _numbers(values: Sequence[Any]) -> bool:
    return bool(values) and all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in values
    )


def _not_negative(values: list[Any]) -> bool | None:
    return all(each >= 0 for each in values) if _numbers(values) else None


def _ascending(values: list[Any]) -> bool | None:
    return all(one <= other for one, other in pairwise(values)) if _ordered(values) else None


def _descending(values: list[Any]) -> bool | None:
    return all(one >= other for one, other in pairwise(values)) if _ordered(values) else None


def _ordered(values: list[Any]) -> bool:
    several = len(values) > 1
    return several and (_numbers(values) or all(isinstance(each, str) for each in values))


def _no_twice(values: list[Any]) -> bool | None:
    return len(set(map(canonical, values))) == len(values) if len(values) > 1 else None


def _no_blanks(values: list[Any]) -> bool | None:
    texts = [each for each in values if isinstance(each, str)]
    return all(each == each.strip() for each in texts) if texts else None


_OF_LISTS = (_ascending, _descending, _no_twice)  # a table has no order, and may well say the same twice
_TESTS: tuple[tuple[str, Callable[[list[Any]], bool | None]], ...] = (
    ("is negative", _not_negative),
    ("is not in ascending order", _ascending),
    ("is not in descending order", _descending),
    ("has an entry twice", _no_twice),
    ("has blanks at its ends", _no_blanks),
)


def noise(answer: Json) -> list[float]:
    """Its floats of at least 16 digits: what 0.1 + 0.2 has, and no amount of money."""
    if isinstance(answer, Mapping | list):
        inner = answer.values() if isinstance(answer, Mapping) else answer
        return [found for each in inner for found in noise(each)]
    digits = repr(answer).partition("e")[0].strip("-0.").replace(".", "")
    return [answer] if isinstance(answer, float) and len(digits) > 15 else []


# --- telling ------------------------------------------------------------------------------------


def call_told(item: Neighbour, tasks: Sequence[Case]) -> str:
    """The call in short: what was changed first, as it is; of a file the lines in which it differs."""
    case, base = item.case, tasks[item.of]
    if item.along in case.inputs:
        old = base.inputs[item.along].decode("utf-8", "replace").splitlines()
        new = case.inputs[item.along].decode("utf-8", "replace").splitlines()
        changed = [line for line in difflib.ndiff(old, new) if line[:1] in "+-"]
        text = " ".join(" ".join(changed).split())
        return f"{short(dict(case.call.args))} with another {item.along} ({_cut(text)})"
    return f"{item.along}={short(case.call.args.get(item.along))} in {short(dict(case.call.args))}"


def parted(mine: Json, other: Json) -> tuple[Json, Json]:
    """Of two answers with the same fields those that differ: what is cut off must not be what matters."""
    if isinstance(mine, Mapping) and isinstance(other, Mapping) and mine.keys() == other.keys():
        names = [name for name in mine if canonical(mine[name]) != canonical(other[name])]
        if not error_of(mine):
            return {name: mine[name] for name in names}, {name: other[name] for name in names}
    return mine, other


def short(value: Json) -> str:
    """An answer in one line, cut off where it is long."""
    if error := error_of(value):
        return _cut(f"{error}: {value['message']}")
    return _cut(canonical(value).decode("utf-8", "replace"))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
