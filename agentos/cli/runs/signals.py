"""What ``agentos run show`` says of a run's signals, and of how it differs from the other runs of its task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentos.cli.output import print_text
from agentos.daemon.views.json_views import run_signals
from agentos.domain import Run, Step
from agentos.ledger.reading import Reader

if TYPE_CHECKING:
    from agentos.evolver.find.signals import Deviation

_SHOWN = 6  # signals


def tell_signals(reader: Reader, run: Run, steps: Sequence[Step]) -> None:
    """At most two lines: the signals, and the deviation."""
    signs, found = run_signals(reader, run, steps)
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


def _runs(found: Deviation) -> str:
    return "the other run" if found.others == 1 else f"{found.others} other runs"
