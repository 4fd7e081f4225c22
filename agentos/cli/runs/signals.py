"""What ``agentos run show`` says of a run's signals, and of how it differs from the other runs of its task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentos.cli.output import print_text
from agentos.domain import Run, Step
from agentos.ledger.reading import Reader

if TYPE_CHECKING:
    from agentos.evolver.find.signals import Deviation, SignalHit

_SHOWN = 6  # signals


def tell_signals(reader: Reader, run: Run, steps: Sequence[Step]) -> None:
    """At most two lines: the signals, and the deviation."""
    signs, found = _read(reader, run, steps)
    if signs:
        more = f" and {len(signs) - _SHOWN} more" if len(signs) > _SHOWN else ""
        told = ", ".join(f"{sign.signal.value} at step {sign.step}" for sign in signs[:_SHOWN])
        print_text(f"signals    {told}{more}")
    if found is not None:
        how = (
            f"{found.share:.0%} of what it changed is not what they changed"
            if found.share
            else "the same changes"
        )
        print_text(f"compared   {how}  ({_runs(found)} of its task)")


def signal_facts(reader: Reader, run: Run, steps: Sequence[Step]) -> dict[str, Any]:
    """The same for ``--json``."""
    signs, found = _read(reader, run, steps)
    return {"signals": signs, "deviation": found}


def _runs(found: Deviation) -> str:
    return "the other run" if found.others == 1 else f"{found.others} other runs"


def _read(reader: Reader, run: Run, steps: Sequence[Step]) -> tuple[tuple[SignalHit, ...], Deviation | None]:
    from agentos.evolver.find.signals import OTHERS_MAX, deviation, read_signals

    if run.outcome is None:
        return (), None
    others = [other for other in reader.runs_of(run.task_key, OTHERS_MAX + 1) if other.id != run.id]
    beside = (found for other in others[:OTHERS_MAX] if (found := reader.steps(other.id)))
    return read_signals(steps), deviation(steps, beside)
