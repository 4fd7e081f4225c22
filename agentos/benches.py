"""Where a search tries many sources of one tool, fast: what it asks of the sandboxes for that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentos.domain import Json, Snapshot, dataclass
from agentos.ports import Case

_UNREADABLE = re.compile(r"invalid literal for int\(\)|could not convert string to float")
_DIGITS = re.compile(r"\d+")
GONE = (
    "died",
    "protocol",
)  # kinds of error: its process or its box ended, so nobody knows what it would have answered
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
