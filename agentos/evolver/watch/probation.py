"""Probation: what a promotion does in live use, and its end.

Two watches, for two kinds of harm. Checked work that fails is a suspicion, and is *measured*, whether it was
seen before or not: the task is replayed on the snapshot before, on the promoted one and on the present one;
only one that passes there and fails here rolls the promotion back. Where outcomes vary, one failure says little:
there live runs are *counted* beside those before, and a fall that is no accident rolls it back
(``live_regression``). Only new, checked work on the promoted content lets it settle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from agentos.domain import (
    FAILING,
    Candidate,
    Evolution,
    EvolutionEnding,
    EvolutionState,
    Mode,
    Result,
    Run,
    Share,
    Snapshot,
    digest,
)
from agentos.errors import Conflict, NotFound
from agentos.evolver.guards.assurance.contract import RetryingExecutor
from agentos.evolver.history import AFTER_PROBATION
from agentos.evolver.history.recordings import recording_for_run
from agentos.evolver.promote.promotion import attest, roll_back, verdict_on
from agentos.evolver.select.curate import asks_models_live
from agentos.evolver.watch import ProbationContext
from agentos.evolver.watch.live_regression import LiveArms, LiveEvidence, named, standing
from agentos.plaintext import counted
from agentos.ports import Plan

_LATE = timedelta(days=2)  # beyond the end of a watch


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A live run that an evolution on probation may have broken."""

    evolution_id: str
    run_id: str
    against: str = ""  # the content that stands now: with another one it is measured anew


def watch_rates(parts: ProbationContext) -> list[Evolution]:
    """Roll back every promotion whose live runs pass less often than those before it, newest first.

    A roll-back has the watch of all others begin anew. Cheap; call it after mining.
    """
    ended = []
    for evolution in reversed(_on_probation(parts)):
        sides = LiveArms(parts, evolution)
        found = standing(parts, evolution, sides)
        if not _fell(parts, found) or parts.cursor.read(f"fell:{evolution.id}"):
            continue
        why = f"{found.says()}, which chance alone gives at most once in {min(found.e_value, 1e6):,.0f}"
        ended.append(_undo(parts, evolution, sides, (EvolutionEnding.FELL, why), found.worse))
        parts.cursor.advance(f"fell:{evolution.id}", 1, [])
    return ended


def suspicions(parts: ProbationContext) -> list[Suspicion]:
    """Live failures to measure, for every evolution on probation. Cheap; call it after mining."""
    found = []
    for evolution in _on_probation(parts):
        sides = LiveArms(parts, evolution)
        now = sides.content(parts.snapshots.stable())[:12]
        found += [Suspicion(evolution.id, run.id, now) for run in _suspected(parts, sides)]
    return found


def _suspected(parts: ProbationContext, sides: LiveArms) -> list[Run]:
    """Of each new, checked task the newest live run, if it failed, was not measured yet, and does not vary."""
    return [
        run
        for run in _newest_of_each(sides.telling())
        if run.outcome is not None
        and run.outcome.result in FAILING
        and not parts.cursor.read(_measured(parts, sides, run))
        and not asks_models_live(parts, parts.journal.task(run.task_id))
    ]


def _measured(parts: ProbationContext, sides: LiveArms, run: Run) -> str:
    """Name of the mark that this work was replayed, with what stands now, and accuses nobody."""
    now = sides.content(parts.snapshots.stable())
    return f"measured:{sides.evolution.id}:{digest([run.task_key, now])[:16]}"


def watch(parts: ProbationContext, suspicion: Suspicion, run: Run) -> Evolution:
    """Replay the suspected work before and after the promotion; roll back when it is to blame."""
    evolution = parts.evolution(suspicion.evolution_id)
    if evolution.state is not EvolutionState.PROBATION:
        return evolution
    sides = LiveArms(parts, evolution)
    if not _to_blame(parts, evolution, run):
        parts.cursor.advance(_measured(parts, sides, run), 1, [])
        return evolution
    which = named(run)
    why = f"{which} passes on the snapshot before it and fails since"
    if run.share is Share.OPEN:
        why += f" ({run.id})"
    return _undo(parts, evolution, sides, (EvolutionEnding.REGRESSED, why), (which,))


def _undo(
    parts: ProbationContext,
    evolution: Evolution,
    sides: LiveArms,
    end: tuple[EvolutionEnding, str],
    regressions: Sequence[str],
) -> Evolution:
    """Roll back and attest. Where later versions build on it, it stays on probation, which says why."""
    ending, why = end
    _attest(parts, evolution, sides, regressions)
    try:
        return roll_back(parts, evolution, f"rolled back by probation: {why}", ending=ending)
    except (Conflict, NotFound) as error:  # NotFound: a registry restored from a backup
        return parts.move(evolution, evolution.state, f"{why}; it cannot be rolled back by itself: {error}")


def _to_blame(parts: ProbationContext, evolution: Evolution, run: Run) -> bool:
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
    """It fails each time: what passes at times is counted, and what cannot be replayed says nothing."""
    return bool(results) and results <= FAILING


def _results(parts: ProbationContext, run: Run, snapshot: Snapshot, side: str, plan: Plan) -> set[Result]:
    """How the run's task ends on the snapshot; Unavailable where the machinery loses it: that accuses nobody."""
    task = parts.journal.task(run.task_id)
    executor = RetryingExecutor(parts.executor, parts.policy.replay.infra_retries)
    return {
        executor.execute(task, snapshot, f"{run.id}-{side}-{repeat}", plan=plan).outcome.result
        for repeat in range(parts.policy.replay.repeats)
    }


def _plan(parts: ProbationContext, evolution: Evolution, run: Run) -> Plan:
    """Like a trial: nothing acts on the outside, which answers from the record of the run."""
    recording = recording_for_run(parts.journal, parts.blobs, run)
    return Plan(mode=Mode.REPLAY_THEN_LIVE, recording=recording, evolution_id=evolution.id)


def settle(parts: ProbationContext) -> list[Evolution]:
    """End every probation that has seen enough runs or time; attest what was predicted."""
    settled = []
    for evolution in _on_probation(parts):
        sides = LiveArms(parts, evolution)
        found = standing(parts, evolution, sides)
        live = sides.counted()
        if not (_has_waited(parts, evolution) or _seen_enough(parts, live, found)):
            continue
        if _fell(parts, found) or _suspected(parts, sides):
            continue
        ending, why = _end_of_watch(parts, sides, live)
        if ending is EvolutionEnding.STOOD:
            _attest(parts, evolution, sides, ())
        settled.append(parts.move(evolution, EvolutionState.PROMOTED, why, ending=ending))
    return settled


def _has_waited(parts: ProbationContext, evolution: Evolution) -> bool:
    """Whether its days are over. Where they are for long, nobody was here or the clock is ahead: a day more is waited."""
    over = timedelta(-1)
    if evolution.ended_at is not None:
        over = parts.now() - evolution.ended_at - timedelta(days=parts.policy.probation.days)
    if over < _LATE:
        return over >= timedelta(0)
    name, now_s = f"late:{evolution.id}", int(parts.now().timestamp())
    if not (seen_s := parts.cursor.read(name)):
        parts.cursor.advance(name, now_s, [])
    return 0 < seen_s <= now_s - 86_400


def _end_of_watch(
    parts: ProbationContext, sides: LiveArms, live: Sequence[Run]
) -> tuple[EvolutionEnding, str]:
    """What can be said when nothing speaks against it: also that nothing speaks for it."""
    if live:
        return EvolutionEnding.STOOD, f"{counted(len(live), 'live run')} stood the test"
    days = f"{parts.policy.probation.days:g} days"
    if used := len(sides.used()):
        runs = counted(used, "live run")
        return (
            EvolutionEnding.UNPROVEN,
            f"{runs} in {days}, and none of new, checked work: live use shows nothing of it",
        )
    return EvolutionEnding.UNUSED, f"not used since: no run in {days}"


def _seen_enough(parts: ProbationContext, live: Sequence[Run], found: LiveEvidence) -> bool:
    """Few runs, of different work, where outcomes do not vary; many where they do, or one got worse."""
    rules = parts.policy.probation
    varies = any(run.outcome is not None and run.outcome.cost.calls for run in live)
    if varies or found.worse:  # one failure may be an accident; it takes more runs to tell
        return len(live) >= rules.varying_runs
    return len(_newest_of_each(live)) >= rules.runs


def _fell(parts: ProbationContext, found: LiveEvidence) -> bool:
    return found.e_value >= 1 / parts.policy.probation.alpha


def _on_probation(parts: ProbationContext) -> Sequence[Evolution]:
    return parts.records.find(Evolution, state=EvolutionState.PROBATION)


def _newest_of_each(runs: Sequence[Run]) -> list[Run]:
    newest: dict[str, Run] = {}
    for run in runs:
        newest.setdefault(run.task_key, run)
    return list(newest.values())


def _attest(
    parts: ProbationContext, evolution: Evolution, sides: LiveArms, regressions: Sequence[str]
) -> None:
    """Compare the manifest with live use: of what the replay fixed, what passes; and what got worse."""
    candidate = parts.records.get(Candidate, str(evolution.candidate_id))
    passes: dict[str, list[bool]] = {}
    for run in sides.live():
        if run.outcome is not None and run.outcome.result in {*FAILING, Result.PASSED}:
            passes.setdefault(run.task_key, []).append(run.passed)
    # Work that was not asked for again stands as the replay left it.
    fixed = parts.tasks(verdict_on(parts, candidate.id).fixed)
    holds = [task.id for task in fixed if _mostly(passes.get(task.key, [True]))]
    attest(parts, candidate, AFTER_PROBATION, holds, regressions)


def _mostly(passed: Sequence[bool]) -> bool:
    return 2 * sum(passed) >= len(passed)
