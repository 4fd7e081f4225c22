"""Which successes were seen without a version that is on probation: only these may be guards.

A success that only such a version ever gave is its own witness. As a guard it would protect that version
from the edit that mends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agentos.domain import Candidate, Evolution, EvolutionState, Result, Run
from agentos.evolver.history import HistoryContext
from agentos.evolver.history.content import content_of


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """A promotion on probation: what it touched, what that was before, and since when it stands."""

    touched: tuple[str, ...]
    before: str
    since: datetime | None


def proven(parts: HistoryContext, runs: Sequence[Run]) -> list[Run]:
    """Of these passing runs those whose work has also passed without any version that is on probation now."""
    unsettled = [found for evolution in _on_probation(parts) if (found := _unsettled(parts, evolution))]
    if not unsettled:
        return list(runs)
    return [run for run in runs if _seen_without(parts, run, unsettled)]


def _on_probation(parts: HistoryContext) -> Sequence[Evolution]:
    return parts.records.find(Evolution, state=EvolutionState.PROBATION)


def _unsettled(parts: HistoryContext, evolution: Evolution) -> _Unsettled | None:
    if evolution.candidate_id is None:
        return None
    files = parts.records.get(Candidate, evolution.candidate_id).manifest.files
    touched = tuple(sorted({"/".join(path.split("/")[:2]) for path in files}))
    before = content_of(parts.snapshots, evolution.base, touched)
    return _Unsettled(touched, before, evolution.ended_at)


def _seen_without(parts: HistoryContext, run: Run, unsettled: Sequence[_Unsettled]) -> bool:
    if _is_without(parts, run, unsettled):
        return True
    return any(
        other.outcome is not None
        and other.outcome.result is Result.PASSED
        and _is_without(parts, other, unsettled)
        for other in parts.journal.runs_of(run.task_key, parts.policy.look_back.successes)
    )


def _is_without(parts: HistoryContext, run: Run, unsettled: Sequence[_Unsettled]) -> bool:
    return all(
        not {*item.touched} & {*run.resources}
        or (item.since is not None and run.finished_at is not None and run.finished_at < item.since)
        or content_of(parts.snapshots, run.snapshot, item.touched) == item.before
        for item in unsettled
    )
