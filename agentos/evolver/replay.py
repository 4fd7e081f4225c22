"""Replay: the same tasks on the base and on the candidate snapshot, each trial in fresh boxes.

Staged, so that a clear loser costs little: evidence first, then guards, then the hold-out. A trial
has an id made of what it is (evolution, candidate, task, arm, repeat), so a replay that a crash cut
short goes on where it stood. A trial that the machinery lost is run again and never counted.

A trial of work that asked models, or acted on the outside, is served from the record of a live run:
the failing one of evidence, a passing one of guards and hold-out (docs/replay.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentos.domain import (
    IMPORT,
    TIER_OF,
    Arm,
    Candidate,
    Evolution,
    Kind,
    Mode,
    Result,
    Run,
    Snapshot,
    Task,
    Tier,
    Trial,
    TrialSet,
    digest,
)
from agentos.errors import NotFound, Unavailable
from agentos.evolver.curate import Sets
from agentos.evolver.judge import counted
from agentos.evolver.parts import Parts
from agentos.evolver.recordings import asks, packed, recording_of, whole
from agentos.ports import Attempt, Plan, Recording

# Results that say nothing of the code under test.
VOID = frozenset({Result.INFRA, Result.CANCELLED})
_UNFINISHED = VOID | {Result.WAITING, Result.NOT_REPLAYABLE}
LOOK_BACK = 20  # runs of equal work among which the one to be served from is chosen


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
    both = _tasks(counted(base)) & _tasks(counted(own))  # others cannot be replayed and say nothing
    good = both - _tasks(trial for trial in counted(own) if not _passed(trial))
    was_good = both - _tasks(trial for trial in counted(base) if not _passed(trial))
    if was_good - good:
        return True
    failing = both - was_good
    return is_evidence and len(good & failing) < parts.policy.judge.min_fixed_share * len(failing)


def _tasks(trials: Iterable[Trial]) -> set[str]:
    return {trial.task_id for trial in trials}


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
    plan = _plan(parts, job)
    done = _attempt(parts, job, plan)
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
        run_id=job.id,
        recording=plan.recording.run_ids[0] if plan.recording and plan.recording.run_ids else "",
        drift=done.drift,
        steps_sha256=parts.blobs.put(packed(done.steps)),
    )
    parts.records.put(trial)
    return trial


def _attempt(parts: Parts, job: _Job, plan: Plan) -> Attempt:
    """Until an attempt counts. All have the trial's own id, so that no model call is paid twice."""
    retries = parts.policy.replay.infra_retries
    for attempt in range(1, retries + 1):
        try:
            done = parts.executor.execute(job.task, job.snapshot, job.id, plan=plan)
        except Unavailable:
            if attempt == retries:
                raise
            continue
        if done.outcome.result not in VOID:
            return done
    raise Unavailable(f"the sandbox lost the trial of {job.task.name} {retries} times in a row")


def _plan(parts: Parts, job: _Job) -> Plan:
    """Where what the trial asks for comes from. Outside effects never come from anywhere but a record."""
    policy = Mode(parts.policy.replay.models)
    recording = _recording(parts, job)
    mode = policy
    if policy is Mode.LIVE:  # kept, all the same: the evolution can be verified offline
        mode = Mode.RECORD
        recording = replace(recording, run_ids=()) if recording else None
    return Plan(mode=mode, recording=recording, evolution_id=job.evolution_id, prefer=job.prefer)


def _recording(parts: Parts, job: _Job) -> Recording | None:
    """Of the newest run that shows what the task is in its set for; None when nothing was asked for."""
    runs = [run for run in parts.journal.runs_of(job.task.key, LOOK_BACK) if _says_something(run)]
    passing = job.set is not TrialSet.EVIDENCE
    fitting = [run for run in runs if run.outcome and (run.outcome.result is Result.PASSED) == passing]
    for run in (fitting or runs)[:1]:
        steps = parts.journal.steps(run.id)
        if asks(steps):
            answers = parts.journal.answers(run.task_id)
            return recording_of(run.snapshot, [(run.id, whole(parts.blobs, steps))], answers)
    return None


def _says_something(run: Run) -> bool:
    """It was made here, and ended by itself."""
    return run.sandbox != IMPORT and run.outcome is not None and run.outcome.result not in _UNFINISHED
