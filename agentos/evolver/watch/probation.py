"""Probation: what a promotion does in live use, and its end.

Two watches, for two kinds of harm. Work that passed before and fails now is a suspicion, and is *measured*:
the task is replayed on the snapshot before, on the promoted one and on the present one; only one that
passes there and fails here rolls the promotion back. Where outcomes vary, one failure says little: there
live runs are *counted* beside those before, and a fall that is no accident rolls it back (``watching``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from agentos.domain import (
    Candidate,
    Evolution,
    EvolutionState,
    Mode,
    Result,
    Run,
    Share,
    Snapshot,
)
from agentos.errors import Conflict, NotFound
from agentos.evolver.find.fingerprints import FAILING
from agentos.evolver.history.attestation import attest_live
from agentos.evolver.history.recordings import asks, recording_of, whole
from agentos.evolver.parts import Parts
from agentos.evolver.promote.promotion import roll_back, verdict_on
from agentos.evolver.select.curate import asks_models_live
from agentos.evolver.watch.live_regression import Sides, Standing, named, standing
from agentos.ports import Plan


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A live run that an evolution on probation may have broken."""

    evolution_id: str
    run_id: str


def watch_rates(parts: Parts) -> list[Evolution]:
    """Roll back every promotion whose live runs pass less often than those before it, newest first.

    A roll-back has the watch of all others begin anew. Cheap; call it after mining.
    """
    ended = []
    for evolution in reversed(_on_probation(parts)):
        sides = Sides(parts, evolution)
        found = standing(parts, evolution, sides)
        if not _fell(parts, found) or parts.cursor.read(f"fell:{evolution.id}"):
            continue
        why = f"{found.says()}, which chance alone gives at most once in {min(found.e_value, 1e6):,.0f}"
        ended.append(_undo(parts, evolution, sides, why, found.worse))
        parts.cursor.advance(f"fell:{evolution.id}", 1, [])
    return ended


def suspicions(parts: Parts) -> list[Suspicion]:
    """Live failures to measure, for every evolution on probation. Cheap; call it after mining."""
    return [
        Suspicion(evolution.id, run.id)
        for evolution in _on_probation(parts)
        for run in _suspected(parts, evolution, Sides(parts, evolution))
    ]


def _suspected(parts: Parts, evolution: Evolution, sides: Sides) -> list[Run]:
    """Of each task the newest live run, if it failed, had passed before, and does not vary."""
    return [
        run
        for run in _newest_of_each(sides.live())
        if run.outcome is not None
        and run.outcome.result in FAILING
        and not parts.cursor.read(_measured(Suspicion(evolution.id, run.id)))
        and _passed_before(parts, run)
        and not asks_models_live(parts, parts.journal.task(run.task_id))
    ]


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
    which = named(run)
    why = f"{which} passes on the snapshot before it and fails since"
    if run.share is Share.OPEN:
        why += f" ({run.id})"
    return _undo(parts, evolution, Sides(parts, evolution), why, (which,))


def _undo(
    parts: Parts, evolution: Evolution, sides: Sides, why: str, regressions: Sequence[str]
) -> Evolution:
    """Roll back and attest. Where later versions build on it, it stays on probation, which says why."""
    _attest(parts, evolution, sides, regressions)
    try:
        return roll_back(parts, evolution, f"rolled back by probation: {why}")
    except (Conflict, NotFound) as error:  # NotFound: a registry restored from a backup
        return parts.move(evolution, evolution.state, f"{why}; it cannot be rolled back by itself: {error}")


def _to_blame(parts: Parts, evolution: Evolution, run: Run) -> bool:
    """Does the run's task pass before the promotion, fail with it, and fail still?"""
    stable = parts.snapshots.stable()
    plan = _plan(parts, evolution, run)
    before = _results(parts, run, evolution.base, "before", plan)
    if before != {Result.PASSED} or not _breaks(_results(parts, run, stable, "after", plan)):
        return False
    promoted = evolution.promoted
    if promoted is None or promoted.tree == stable.tree:
        return True
    # else something that came later is to blame
    return _breaks(_results(parts, run, promoted, "promoted", plan))


def _breaks(results: set[Result]) -> bool:
    """Work that cannot be replayed says nothing of what was promoted."""
    return results != {Result.PASSED} and results <= {*FAILING, Result.PASSED}


def _results(parts: Parts, run: Run, snapshot: Snapshot, side: str, plan: Plan) -> set[Result]:
    """How the run's task ends on the snapshot."""
    task = parts.journal.task(run.task_id)
    return {
        parts.executor.execute(task, snapshot, f"{run.id}-{side}-{repeat}", plan=plan).outcome.result
        for repeat in range(parts.policy.replay.repeats)
    }


def _plan(parts: Parts, evolution: Evolution, run: Run) -> Plan:
    """Like a trial: nothing acts on the outside, which answers from the record of the run."""
    steps = parts.journal.steps(run.id)
    recording = None
    if asks(steps):
        answers = parts.journal.answers(run.task_id)
        recording = recording_of(run.snapshot, [(run.id, whole(parts.blobs, steps))], answers)
    return Plan(mode=Mode.REPLAY_THEN_LIVE, recording=recording, evolution_id=evolution.id)


def settle(parts: Parts) -> list[Evolution]:
    """End every probation that has seen enough runs or time; attest what was predicted."""
    settled = []
    for evolution in _on_probation(parts):
        sides = Sides(parts, evolution)
        found = standing(parts, evolution, sides)
        live = sides.live()
        waited = evolution.ended_at is not None and parts.now() - evolution.ended_at >= timedelta(
            days=parts.policy.probation.days
        )
        if not (waited or _seen_enough(parts, live, found)):
            continue
        if _fell(parts, found) or _suspected(parts, evolution, sides):
            continue
        _attest(parts, evolution, sides, ())
        stood = f"{len(live)} live run{'s' if len(live) != 1 else ''} stood the test"
        settled.append(parts.move(evolution, EvolutionState.PROMOTED, stood))
    return settled


def _seen_enough(parts: Parts, live: Sequence[Run], found: Standing) -> bool:
    """Few runs, of different work, where outcomes do not vary; many where they do, or one got worse."""
    rules = parts.policy.probation
    varies = any(run.outcome is not None and run.outcome.cost.calls for run in live)
    if varies or found.worse:  # one failure may be an accident; it takes more runs to tell
        return len(live) >= rules.varying_runs
    return len(_newest_of_each(live)) >= rules.runs


def _fell(parts: Parts, found: Standing) -> bool:
    return found.e_value >= 1 / parts.policy.probation.alpha


def _on_probation(parts: Parts) -> Sequence[Evolution]:
    return parts.records.find(Evolution, state=EvolutionState.PROBATION)


def _newest_of_each(runs: Sequence[Run]) -> list[Run]:
    newest: dict[str, Run] = {}
    for run in runs:
        newest.setdefault(run.task_key, run)
    return list(newest.values())


def _attest(parts: Parts, evolution: Evolution, sides: Sides, regressions: Sequence[str]) -> None:
    candidate = parts.records.get(Candidate, str(evolution.candidate_id))
    fixed = verdict_on(parts, candidate.id).fixed
    attest_live(parts, evolution, candidate, fixed, sides.live(), regressions)


def _passed_before(parts: Parts, run: Run) -> bool:
    newest_first = iter(parts.journal.runs_of(run.task_key, parts.policy.look_back.successes))
    return any(item.id == run.id for item in newest_first) and any(
        item.outcome is not None and item.outcome.result is Result.PASSED for item in newest_first
    )
