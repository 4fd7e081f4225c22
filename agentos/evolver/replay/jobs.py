"""Trials as jobs: what is run, on which snapshot, from which record; a trial that is stored is not run again."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from agentos.domain import (
    IMPORT,
    SHARED,
    Arm,
    Candidate,
    Evolution,
    KernelFault,
    Mode,
    Outcome,
    Recording,
    Result,
    Run,
    Snapshot,
    Task,
    Trial,
    TrialSet,
    dataclass,
    digest,
    kind_of,
    record_with,
    trial_id,
    work_of,
)
from agentos.errors import BudgetUsedUp, ModelAway, ModelMissing, NotFound, Unavailable
from agentos.evolver.history.recordings import asks, packed, recording_for_run, together
from agentos.evolver.replay import ReplayContext
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.select.renaming import RenamedTask, in_other_names
from agentos.plugins import registry
from agentos.ports import Attempt, Blobs, Plan, Records

# Results that say nothing of the code under test.
VOID = frozenset({Result.INFRA, Result.CANCELLED})
_UNFINISHED = VOID | {Result.WAITING, Result.NOT_REPLAYABLE}


@dataclass(frozen=True, slots=True)
class TrialJob:
    """One trial that is to be made."""

    task: Task
    set: TrialSet
    arm: Arm
    repeat: int
    snapshot: Snapshot
    evolution_id: str
    candidate_id: str
    fresh: bool = False  # models are asked, whatever is on record
    number: int = 0  # as ``Trial.number``
    alike: bool = False  # as ``Trial.alike``
    look: int = 0  # as ``Trial.look``
    renamed: RenamedTask | None = None  # the task, where it is asked under other names
    recording: Recording | None = None  # what is served of what its task asked for

    @property
    def id(self) -> str:
        owner = (self.evolution_id, self.candidate_id, self.task.id)
        return trial_id(owner, self.arm, self.repeat, self.snapshot.tree, renamed=self.renamed is not None)


def fresh_jobs(
    parts: ReplayContext, evolution: Evolution, task_ids: Sequence[str], sets: TaskSets, repeats: range
) -> list[TrialJob]:
    """On the base, whose trials all candidates share."""
    first = _first_jobs(parts, task_ids, sets, evolution)
    return [replace(job, repeat=repeat, fresh=True) for repeat in repeats for job in first]


BaseJobs = Sequence[tuple[TrialJob, RenamedTask | None]]  # the first of each task, and it under other names


def jobs_on_base(
    parts: ReplayContext, task_ids: Sequence[str], sets: TaskSets, evolution: Evolution
) -> BaseJobs:
    """On the base, whose trials all candidates share."""
    first = _first_jobs(parts, task_ids, sets, evolution)
    # What is served from a record is known there by its arguments: it keeps its names.
    return [(job, None if job.recording else in_other_names(parts, job.task)) for job in first]


def repeated(jobs: BaseJobs, repeats: range) -> list[TrialJob]:
    """These jobs so often, all but the first of each task under other names."""
    return [
        record_with(job, repeat=repeat, renamed=other) if repeat else job
        for repeat in repeats
        for job, other in jobs
    ]


def _first_jobs(
    parts: ReplayContext, task_ids: Sequence[str], sets: TaskSets, evolution: Evolution
) -> list[TrialJob]:
    found = []
    for task in parts.tasks(tuple(task_ids)):
        own = sets.of(task.id)
        recording = recording_for(parts, task, own)
        base = evolution.base
        found.append(TrialJob(task, own, Arm.BASE, 0, base, evolution.id, "", recording=recording))
    return found


def run_all(parts: ReplayContext, jobs: Sequence[TrialJob]) -> list[Trial]:
    """The trials of these jobs, in their order."""
    if not jobs:
        return []
    stored = {trial.id: trial for trial in parts.records.find(Trial, evolution_id=jobs[0].evolution_id)}
    if stored and all(
        job.id in stored for job in jobs
    ):  # a stage before made them, or this one before a kill
        return [stored[job.id] for job in jobs]
    before = _Before(parts, jobs[0].evolution_id)
    with TrialBatch(parts.records, parts.blobs) as made:
        trials = list(
            parts.replayer.map(lambda job: stored.get(job.id) or _trial(parts, job, before, made), jobs)
        )
    return [made.stored.get(trial.id, trial) for trial in trials]


class TrialBatch:
    """Stores a batch's trials together, with what they did: a flush of the disk for each costs more than all else of its
    record.

    A trial that is not stored when the process is killed is made again, under its own id, and nothing is lost but a
    second of work: one that asked for a model or for anything outside is stored at once, and so is one that began more
    than a second ago, each with those before it. What was made is stored also when another of the batch raises.
    """

    _PATIENCE_S = 1.0
    _LONG = 65_536  # bytes of a trajectory that gets a blob of its own: whoever reads one of several reads them all

    def __init__(self, records: Records, blobs: Blobs) -> None:
        self._records, self._blobs = records, blobs
        self._lock = threading.Lock()
        self._held: list[Trial] = []
        self._trajectories: dict[str, bytes] = {}  # of these, by their digests
        self._since = 0.0
        self.stored: dict[str, Trial] = {}  # as they were, by their ids

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store()

    def add(self, trial: Trial, began: float, *, asked: bool, did: bytes = b"") -> None:
        """``began``: when the trial did, of ``time.monotonic``; ``asked``: for what may have been paid.

        ``did``: its trajectory, where it is not on disk.
        """
        if len(did) > self._LONG:
            self._blobs.put(did)
        with self._lock:
            self._since = min(self._since, began) if self._held else began
            self._held.append(trial)
            if 0 < len(did) <= self._LONG:
                self._trajectories[trial.steps_sha256] = did
            waits = time.monotonic() - self._since < self._PATIENCE_S
        if asked or not waits:
            self._store()

    def _store(self) -> None:
        with self._lock:
            if self._held:
                self._keep_trajectories()
                self._records.put(*self._held)
                self.stored |= {trial.id: trial for trial in self._held}
            self._held = []

    def _keep_trajectories(self) -> None:
        """Before the trials that name them: a blob that nothing names is collected, one that is missing is a loss."""
        found = self._trajectories
        if len(found) == 1:
            self._blobs.put(*found.values())
        elif found:
            name = self._blobs.put(together(found))
            self._held = [
                replace(trial, steps_in=name) if trial.steps_sha256 in found else trial
                for trial in self._held
            ]
        self._trajectories = {}  # a trial that was stored, though nobody heard of it, names the same blob the next time


class _Before:
    """The trials of the evolution gone stale that this one takes up: what got the same then is not run again."""

    def __init__(self, parts: ReplayContext, evolution_id: str) -> None:
        self._parts = parts
        self._candidate: Candidate | None = None
        self._trials: dict[str, Trial] = {}
        try:
            if name := parts.evolution(evolution_id).takes_up:
                self._candidate = parts.records.get(Candidate, name)
                found = parts.records.find(Trial, evolution_id=self._candidate.evolution_id)
                self._trials = {trial.id: trial for trial in found}
        except NotFound:
            pass

    def of(self, job: TrialJob, plan: Plan) -> Trial | None:
        """The job's trial then, as one of now; None where its run would get anything else."""
        before, parts = self._candidate, self._parts
        if before is None or job.arm is Arm.CONTROL:
            return None
        if (
            job.candidate_id
            and parts.records.get(Candidate, job.candidate_id).edit.files != before.edit.files
        ):
            return None
        is_own = job.arm is Arm.CANDIDATE
        side, owner = (before.snapshot, before.id) if is_own else (before.base, "")
        then = replace(job, evolution_id=before.evolution_id, candidate_id=owner, snapshot=side)
        old = self._trials.get(then.id)
        if old is None or not old.bundle or old.recording != _served_from(plan):
            return None
        if (old.set, bool(old.number), old.alike) != (job.set, bool(job.number), job.alike):
            return None
        if old.image and old.image != parts.image_of(old.sandbox):
            return None
        if old.host and parts.distrusted(old.host):
            return None
        if not all(map(registry.is_current, old.plugins)):
            return None
        if parts.executor.given(job.task, job.snapshot) != old.bundle:
            return None
        now = replace(old, id=job.id, evolution_id=job.evolution_id, candidate_id=job.candidate_id)
        work = work_of(job.task)
        return replace(
            now, snapshot=job.snapshot, number=job.number, look=job.look, taken_from=old.id, work=work
        )


def _served_from(plan: Plan) -> str:
    return plan.recording.run_ids[0] if plan.recording and plan.recording.run_ids else ""


def _trial(parts: ReplayContext, job: TrialJob, before: _Before, made: TrialBatch) -> Trial:
    began, name = time.monotonic(), job.id
    plan = _plan(parts, job)
    if known := before.of(job, plan):
        made.add(known, began, asked=False)
        return known
    done = _attempt(parts, job, name, plan)
    did = packed(done.steps)
    trial = Trial(
        id=name,
        evolution_id=job.evolution_id,
        candidate_id=job.candidate_id,
        task_id=job.task.id,
        set=job.set,
        arm=job.arm,
        repeat=job.repeat,
        snapshot=job.snapshot,
        outcome=done.outcome,
        answer_sha256=digest(job.renamed.as_before(done.answer)) if job.renamed else done.answer_sha256,
        sandbox=done.sandbox,
        level=done.level,
        image=done.image,
        bundle=done.bundle,
        run_id=name,
        recording=_served_from(plan),
        drift=done.drift,
        steps_sha256=digest(did),
        number=job.number,
        alike=job.alike,
        look=job.look,
        renamed=job.renamed is not None,
        reached=done.reached,
        plugins=done.plugins,
        host=done.host,
        work=work_of(job.task),
    )
    made.add(trial, began, asked=asks(done.steps), did=did)
    return trial


def _attempt(parts: ReplayContext, job: TrialJob, name: str, plan: Plan) -> Attempt:
    """Until an attempt counts. All have the trial's own id, so that no model call is paid twice."""
    retries = parts.policy.replay.infra_retries
    for attempt in range(1, retries + 1):
        try:
            asked = job.renamed.task if job.renamed else job.task
            done = parts.executor.execute(asked, job.snapshot, name, plan=plan)
        except Unavailable as error:
            if attempt == retries or isinstance(error, ModelAway):  # to ask again at once gains nothing
                raise
            continue
        if away := without_model(done.outcome, f"the trial of {job.task.name} says nothing of the code"):
            raise away
        if done.outcome.result not in VOID:
            return done
    raise Unavailable(f"the sandbox lost the trial of {job.task.name} {retries} times in a row")


def _plan(parts: ReplayContext, job: TrialJob) -> Plan:
    """Where what the trial asks for comes from. Outside effects never come from anywhere but a record.

    No sandbox is named: a trial gets the one that a live run of its task gets, so that nothing inside tells
    them apart, and so that what was tried is what will be.
    """
    mode = Mode(parts.policy.replay.models)
    recording = job.recording
    if job.fresh:  # kept, all the same: the evolution can be verified offline
        mode = Mode.RECORD
        recording = replace(recording, run_ids=()) if recording else None
    elif mode is Mode.LIVE:  # no run of the task asked for a model
        mode = Mode.REPLAY_THEN_LIVE
    pair = f"{job.evolution_id} {job.task.id} {job.repeat}"  # on one host, whatever else that does
    return Plan(mode=mode, recording=recording, evolution_id=job.evolution_id, pair=pair)


def recording_for(parts: ReplayContext, task: Task, in_set: TrialSet) -> Recording | None:
    """Of the newest run that shows what the task is in its set for; None when nothing was asked for."""
    runs = [
        run
        for run in parts.journal.runs_of(task.key, parts.policy.look_back.recordings)
        if _says_something(run)
    ]
    passing = in_set is not TrialSet.EVIDENCE
    fitting = [run for run in runs if run.passed == passing]
    newest = next(iter(fitting or runs), None)
    return recording_for_run(parts.journal, parts.blobs, newest) if newest else None


def _says_something(run: Run) -> bool:
    """It was made here, and ended by itself."""
    return run.sandbox != IMPORT and run.outcome is not None and run.outcome.result not in _UNFINISHED


def no_model(outcome: Outcome) -> str:
    """Why no model answered that should have, "" if that did not end the run.

    No model is configured, or what all trials or all runs of a day may use is used up: the next trial
    would fail alike, whatever it tries. What the run alone may use is the run's own affair.
    """
    kind = kind_of(outcome.fault)
    if outcome.fault is None or kind not in SHARED:
        return ""
    said = outcome.fault.message
    return f"no model is configured ({said})" if kind is KernelFault.NO_MODEL else said


def without_model(outcome: Outcome, what: str) -> ModelAway | None:
    """What to raise where no model answered: ``what`` says what came to nothing. None where one did.

    A budget of the day is there again tomorrow; a model that is not set up, and the evolution's budget, are not.
    """
    if not (why := no_model(outcome)):
        return None
    returns = kind_of(outcome.fault) is KernelFault.DAY_BUDGET
    return (BudgetUsedUp if returns else ModelMissing)(f"{what}: {why}")
