"""Where a search tries many sources of one tool, fast: what it asks of the sandboxes for that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

from agentos.domain import Json, Snapshot, canonical, dataclass
from agentos.ports import Case

_UNREADABLE = re.compile(r"invalid literal for int\(\)|could not convert string to float")
_DIGITS = re.compile(r"\d+")
# Kinds of error: its process or its box ended, so nobody knows what it would have answered.
GONE = ("died", "protocol")
LOST = (*GONE, "timeout")
_AGAIN = 24  # calls without an end that are made again at first


@dataclass(frozen=True, slots=True)
class BenchResult:
    """What one source did on the cases. ``lines`` are those executed, if asked for."""

    passed: tuple[bool, ...]  # by case
    scores: tuple[float, ...]
    # the tool's output, or {"error": type, "message": …}; an answer of just these fields is {"answer": it}
    outputs: tuple[Json, ...]
    lines: tuple[tuple[int, ...], ...] = ()
    raised: tuple[int, ...] = ()  # with them: at which line the case's error left the source, or 0
    cpu_s: float = 0.0  # what it took; 0 where nobody measures


def error_of(output: Json) -> str:
    """The kind of error by which a case ended, "" where the tool answered: an answer may have a field of that name.

    ``died`` (its process or its box ended under it), ``timeout`` and ``memory`` say that it came to no end.
    """
    ended = isinstance(output, Mapping) and output.keys() == {"error", "message"}
    return str(output["error"]) if ended else ""


def is_cut(output: Json) -> bool:
    """Whether it is the digest of an answer too large to be shown: two can be told apart, and no more."""
    return isinstance(output, Mapping) and output.keys() == {"sha256", "size"}


def error_told(output: Json) -> str:
    """The error by which a case ended, in words."""
    return f"{error_of(output)}: {output['message']}".removesuffix(": ")


def one_fault(one: Json, other: Json) -> bool:
    """Whether both ended by the same error, or could not read numbers with the same other signs in them (`'120²'`, `'25²'`)."""
    if one == other or error_of(one) != error_of(other):
        return bool(one == other)
    said = [str(each["message"]) for each in (one, other) if isinstance(each, Mapping)]
    # What a number cannot be read from says nothing of a key that is missing: `KeyError: '7'` is about that one.
    return all(map(_UNREADABLE.match, said)) and len({frozenset(_DIGITS.sub("", text)) for text in said}) == 1


class Bench(Protocol):
    """Tries many sources of one tool, fast: a filter, what passes still has to pass the replay in fresh boxes."""

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        """Try one; a source that hangs or dies counts as failed on that case."""

    def close(self) -> None:
        """End the sandbox."""


class Benches(Protocol):
    """Opens benches."""

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        """A bench for the tool source at ``path``, beside the other files of its resource."""


def settled(bench: Bench, source: str, cases: Sequence[int], *, trace: bool = False) -> BenchResult:
    """What a source does on the cases. Those that came to no end are tried once more: a busy machine, or a box that another
    call brought down, says nothing of them.
    """
    done = bench.try_source(source, trace=trace, cases=cases)
    lost = [place for place, output in enumerate(done.outputs) if error_of(output) in LOST]
    for places in (lost[:_AGAIN], lost[_AGAIN:]):
        again = (
            bench.try_source(source, trace=trace, cases=[cases[place] for place in places])
            if places
            else done
        )
        ended = [n for n in range(len(places)) if error_of(again.outputs[n]) not in LOST]
        if not ended:
            break
        done = _with(done, again, {places[n]: n for n in ended})
    return done


def _with(done: BenchResult, again: BenchResult, instead: Mapping[int, int]) -> BenchResult:
    """With what ``again`` has in these places."""

    def one(first: Sequence[Any], then: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(then[instead[n]] if n in instead else item for n, item in enumerate(first))

    return BenchResult(
        one(done.passed, again.passed),
        one(done.scores, again.scores),
        one(done.outputs, again.outputs),
        one(done.lines, again.lines),
        one(done.raised, again.raised),
        done.cpu_s + again.cpu_s,
    )


def nothing_ended(before: Sequence[Json], own: Sequence[Json], kinds: Set[str]) -> str:
    """Why little is known of an edit: of the calls of its base, or of its own, most or all came to no end; "" where they did.

    ``kinds``: by which errors its base ends where it fails. Of one that then ends nowhere the edit tells.
    """
    if own and all(failed(output, *LOST) for output in own):
        return error_told(own[0])
    lost = [output for output in before if failed(output, *(GONE if kinds & {*LOST} else LOST))]
    return error_told(lost[0]) if 2 * len(lost) > len(before) else ""


def passes(bench: Bench, source: str, needed: Sequence[int]) -> bool | None:
    """Whether it passes these tasks; None where its box is gone each time. The first alone, because many a mutant never ends."""
    for cases in (needed[:1], needed[1:]):
        done = bench.try_source(source, cases=cases) if cases else None
        if done is None or all(done.passed):
            continue
        missed = [n for n, good in enumerate(done.passed) if not good]
        lost = [cases[n] for n in missed if failed(done.outputs[n], *(GONE if len(cases) == 1 else LOST))]
        if len(lost) < len(missed):
            return False
        again = bench.try_source(source, cases=lost)
        left = [output for good, output in zip(again.passed, again.outputs, strict=True) if not good]
        if left:
            return None if all(failed(output, *GONE) for output in left) else False
    return True


def answers_alike(bench: Bench, source: str, tried: Sequence[int], mine: Sequence[Json]) -> bool:
    """Whether it answers all of these so; a few first, because most do not."""
    for start, end in ((0, _AGAIN), (_AGAIN, len(tried))):
        theirs = settled(bench, source, tried[start:end]).outputs if tried[start:end] else ()
        if not all(map(alike, mine[start:end], theirs)):
            return False
    return True


def unsteady(
    bench: Bench, sources: tuple[str, str], asked: Sequence[int], seen: tuple[Sequence[Json], Sequence[Json]]
) -> tuple[int, Json] | None:
    """A case that the second source answers otherwise when all of these are asked again, and what; None where none is.

    ``seen`` is what the first one, which does each such case alike, answered to every case, and the second to those asked.
    Of a case that the first one fails nothing is said where it answers others otherwise each time: then the tool does.
    """
    (old, own), (before, first) = sources, seen
    then = bench.try_source(own, cases=asked).outputs
    unlike = [
        (number, other)
        for number, one, other in zip(asked, first, then, strict=True)
        if not alike(one, other) and not failed(one, *LOST, "memory") and not failed(other, *LOST, "memory")
    ][:_AGAIN]
    again = dict(zip(asked, bench.try_source(old, cases=asked).outputs, strict=True)) if unlike else {}
    answered = [number for number, output in again.items() if not (failed(output) or failed(before[number]))]
    varying = any(not alike(again[number], before[number]) for number in answered)
    for number, other in unlike:
        if alike(again[number], before[number]) and not (varying and failed(before[number])):
            return number, other
    return None


def failed(output: Json, *kinds: str) -> bool:
    """Whether a case ended by an error, of one of the kinds where some are named."""
    kind = error_of(output)
    return kind in kinds if kinds else bool(kind)


def alike(one: Json, other: Json) -> bool:
    """Whether two cases ended in the same answer, or both by some error."""
    return (failed(one) and failed(other)) or canonical(one) == canonical(other)
