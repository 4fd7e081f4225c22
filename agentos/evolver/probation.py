"""Probation and attestation: what a promotion does in live use.

A live run that fails although the same work passed before the promotion is a suspicion, not a
proof. It is measured: the task is replayed on the snapshot before, on the promoted one and on the
present one. Only a task that passes there and fails here rolls the promotion back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from agentos.domain import IMPORT, Attestation, Candidate, Evolution, EvolutionState, Result, Run, Snapshot
from agentos.errors import Conflict
from agentos.evolver.fingerprints import FAILING
from agentos.evolver.parts import Parts
from agentos.evolver.promotion import roll_back, verdict_on

LOOK_BACK = 50


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A live run that an evolution on probation may have broken."""

    evolution_id: str
    run_id: str


def live_runs(parts: Parts, evolution: Evolution) -> list[Run]:
    """Finished runs since the promotion that used what it changed, newest first, one a task."""
    if evolution.diagnosis is None or evolution.ended_at is None:
        return []
    runs = parts.journal.runs_using(evolution.diagnosis.resource, LOOK_BACK)
    return [run for run in runs if run.started_at >= evolution.ended_at and run.sandbox != IMPORT]


def suspicions(parts: Parts) -> list[Suspicion]:
    """Live failures to measure, for every evolution on probation. Cheap; call it after mining."""
    found = []
    for evolution in parts.records.find(Evolution, state=EvolutionState.PROBATION):
        for run in live_runs(parts, evolution):
            suspicion = Suspicion(evolution.id, run.id)
            failed = run.outcome is not None and run.outcome.result in FAILING
            if failed and not parts.cursor.read(_measured(suspicion)) and _passed_before(parts, run):
                found.append(suspicion)
    return found


def _measured(suspicion: Suspicion) -> str:
    """Name of the mark that a suspicion was replayed and found to be none."""
    return f"measured:{suspicion.evolution_id}:{suspicion.run_id}"


def watch(parts: Parts, suspicion: Suspicion, run: Run) -> Evolution:
    """Replay the suspected work before and after the promotion; roll back when it is to blame."""
    evolution = parts.evolution(suspicion.evolution_id)
    if evolution.state is not EvolutionState.PROBATION:
        return evolution
    if not _to_blame(parts, evolution, run):
        parts.cursor.advance(_measured(suspicion), 1, [])
        return evolution
    reason = (
        f"rolled back by probation: {run.task_id} passes on the snapshot before it and fails since ({run.id})"
    )
    attest(parts, evolution, (run.task_id,))
    try:
        return roll_back(parts, evolution, reason)
    except Conflict as error:  # later versions build on it; it stays on probation, which says why
        why = (
            f"{run.task_id} passes before it and fails since, but it cannot be rolled back by itself: {error}"
        )
        return parts.move(evolution, evolution.state, why)


def _to_blame(parts: Parts, evolution: Evolution, run: Run) -> bool:
    """Does the run's task pass before the promotion, fail with it, and fail still?"""
    stable = parts.snapshots.stable()
    if not _passes(parts, run, evolution.base, "before") or _passes(parts, run, stable, "after"):
        return False
    promoted = evolution.promoted
    if promoted is None or promoted.tree == stable.tree:
        return True
    return not _passes(parts, run, promoted, "promoted")  # else something that came later is to blame


def settle(parts: Parts) -> list[Evolution]:
    """End every probation that has seen enough runs or time; attest what was predicted."""
    settled = []
    rules = parts.policy.probation
    suspected = {item.evolution_id for item in suspicions(parts)}
    for evolution in parts.records.find(Evolution, state=EvolutionState.PROBATION):
        seen = live_runs(parts, evolution)
        waited = evolution.ended_at is not None and parts.now() - evolution.ended_at >= timedelta(
            days=rules.days
        )
        if evolution.id in suspected or (len(seen) < rules.runs and not waited):
            continue
        attest(parts, evolution, ())
        settled.append(
            parts.move(evolution, EvolutionState.PROMOTED, f"{len(seen)} live runs stood the test")
        )
    return settled


def attest(parts: Parts, evolution: Evolution, regressions: Sequence[str]) -> Attestation:
    """Compare what the manifest predicted with what was observed."""
    if evolution.candidate_id is None:
        raise ValueError(f"{evolution.id} has no candidate")
    candidate = parts.records.get(Candidate, evolution.candidate_id)
    verdict = verdict_on(parts, candidate.id)
    failing = {
        run.task_key for run in live_runs(parts, evolution) if run.outcome and run.outcome.result in FAILING
    }
    fixed = tuple(task.id for task in parts.tasks(verdict.fixed) if task.key not in failing)
    predicted = candidate.manifest.predicted_fixes
    attestation = Attestation(
        id=f"att-{evolution.id.removeprefix('evo-')}",
        evolution_id=evolution.id,
        predicted_fixes=predicted,
        observed_fixes=fixed,
        predicted_risks=candidate.manifest.tasks_at_risk,
        observed_regressions=tuple(regressions),
        verdict=_label(set(predicted), set(fixed), regressions),
    )
    parts.records.put(attestation)
    return attestation


def _label(predicted: set[str], observed: set[str], regressions: Sequence[str]) -> str:
    """AHE's five labels: predicted fixes that came true, beside regressions."""
    true = predicted & observed
    if regressions:
        return "mixed" if true else "harmful"
    if not true:
        return "ineffective"
    return "effective" if true == predicted else "partly"


def _passed_before(parts: Parts, run: Run) -> bool:
    earlier = parts.journal.runs_of(run.task_key, LOOK_BACK)
    return any(
        item.outcome is not None and item.outcome.result is Result.PASSED and item.started_at < run.started_at
        for item in earlier
    )


def _passes(parts: Parts, run: Run, snapshot: Snapshot, side: str) -> bool:
    task = parts.journal.task(run.task_id)
    results = {
        parts.executor.execute(task, snapshot, f"{run.id}-{side}-{repeat}").outcome.result is Result.PASSED
        for repeat in range(parts.policy.replay.repeats)
    }
    return results == {True}
