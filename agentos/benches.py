"""Where a search tries many sources of one tool, fast: what it asks of the sandboxes for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from agentos.domain import Json, Snapshot, dataclass
from agentos.ports import Case


@dataclass(frozen=True, slots=True)
class BenchResult:
    """What one source did on the cases. ``lines`` are those executed, if asked for."""

    passed: tuple[bool, ...]  # by case
    scores: tuple[float, ...]
    outputs: tuple[Json, ...]  # the tool's output, or {"error": type, "message": …}
    lines: tuple[tuple[int, ...], ...] = ()
    raised: tuple[int, ...] = ()  # with them: at which line the case's error left the source, or 0
    cpu_s: float = 0.0  # what it took; 0 where nobody measures


def error_of(output: Json) -> str:
    """The kind of error by which a case ended, "" where the tool answered: an answer may have a field of that name."""
    ended = isinstance(output, Mapping) and output.keys() == {"error", "message"}
    return str(output["error"]) if ended else ""


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
