"""Replay: the same tasks on the base and on the candidate snapshot, each trial in fresh boxes.

Staged, so that a clear loser costs little: evidence first, then guards, then the hold-out. A trial
has an id made of what it is (evolution, candidate, task, arm, repeat), so a replay that a crash cut
short goes on where it stood. A trial that the machinery lost is run again and never counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentos.domain import (
    TIER_OF,
    Arm,
    Candidate,
    Evolution,
    Kind,
    Result,
    Snapshot,
    Task,
    Tier,
    Trial,
    TrialSet,
    digest,
)
from agentos.errors import NotFound, Unavailable
from agentos.evolver.curate import Sets
from agentos.evolver.parts import Parts
from agentos.ports import Plan

# Results that say nothing of the code under test.
VOID = frozenset({Result.INFRA, Result.CANCELLED})


@dataclass(frozen=True, slots=True)
class _Job:
    task: Task
    set: TrialSet
    arm: Arm
    repeat: int
    snapshot: Snapshot
    evolution_id: str
    candidate_id: str
    prefer: str  # sandbox, by the policy for the tier

    @property
    def id(self) -> str:
        parts = [
            self.evolution_id,
            self.candidate_id,
            self.task.id,
            self.arm.value,
            self.repeat,
            self.snapshot.tree,
        ]
        return f"trial-{digest(parts)[:20]}"


def replay_base(parts: Parts, evolution: Evolution, task_ids: Sequence[str], sets: Sets) -> list[Trial]:
    """Run tasks on the evolution's base; shared by all of its candidates."""
    return _replay(parts, _jobs(parts, task_ids, sets, Arm.BASE, evolution, None))


def replay_candidate(parts: Parts, evolution: Evolution, candidate: Candidate, sets: Sets) -> list[Trial]:
    """All trials of one candidate with their base counterparts, stage by stage, stopping at a loss."""
    trials: list[Trial] = []
    for stage in (sets.evidence, sets.guards, sets.hold_out):
        base = replay_base(parts, evolution, stage, sets)
        own = _replay(
            parts,
            _jobs(parts, stage, sets, Arm.CANDIDATE, evolution, candidate),
        )
        trials += base + own
        if _lost(parts, base, own, stage is sets.evidence):
            break
    return trials


def _lost(parts: Parts, base: Sequence[Trial], own: Sequence[Trial], is_evidence: bool) -> bool:
    """Is the verdict clear already? The judge decides; this only saves trials."""
    good = {item.task_id for item in own} - {item.task_id for item in own if not _passed(item)}
    was_good = {item.task_id for item in base} - {item.task_id for item in base if not _passed(item)}
    if was_good - good:
        return True
    failing = {item.task_id for item in base} - was_good
    return is_evidence and len(good & failing) < parts.policy.judge.min_fixed_share * len(failing)


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED


def _jobs(
    parts: Parts,
    task_ids: Sequence[str],
    sets: Sets,
    arm: Arm,
    evolution: Evolution,
    candidate: Candidate | None,
) -> list[_Job]:
    snapshot = candidate.snapshot if candidate else evolution.base
    tier = TIER_OF[Kind(evolution.diagnosis.layer)] if evolution.diagnosis else Tier.MEDIUM
    prefer = parts.policy.sandbox.preferred(tier)
    candidate_id = candidate.id if candidate else ""
    return [
        _Job(task, sets.of(task.id), arm, repeat, snapshot, evolution.id, candidate_id, prefer)
        for repeat in range(parts.policy.replay.repeats)
        for task in parts.tasks(tuple(task_ids))
    ]


def _replay(parts: Parts, jobs: Sequence[_Job]) -> list[Trial]:
    return list(parts.replayer.map(lambda job: _trial(parts, job), jobs))


def _trial(parts: Parts, job: _Job) -> Trial:
    try:
        return parts.records.get(Trial, job.id)
    except NotFound:
        pass
    for attempt in range(1, parts.policy.replay.infra_retries + 1):
        try:
            run_id = f"{job.id}-{attempt}"
            plan = Plan(prefer=job.prefer, evolution_id=job.evolution_id)
            done = parts.executor.execute(job.task, job.snapshot, run_id, plan=plan)
        except Unavailable:
            if attempt == parts.policy.replay.infra_retries:
                raise
            continue
        if done.outcome.result not in VOID:
            break
    else:
        raise Unavailable(f"the sandbox lost the trial of {job.task.name} {attempt} times in a row")
    trial = Trial(
        id=job.id,
        evolution_id=job.evolution_id,
        candidate_id=job.candidate_id,
        task_id=job.task.id,
        set=job.set,
        arm=job.arm,
        repeat=job.repeat,
        snapshot=job.snapshot,
        outcome=done.outcome,
        answer_sha256=done.answer_sha256,
        sandbox=done.sandbox,
        level=done.level,
    )
    parts.records.put(trial)
    return trial
