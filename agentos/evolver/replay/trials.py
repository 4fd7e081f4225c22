"""Replay: the same tasks on the base and on the candidate snapshot, each trial in fresh boxes.

Staged, so that a clear loser costs little: evidence first, then guards, then the hold-out. A trial
has an id made of what it is (evolution, candidate, task, arm, repeat), so a replay that a crash cut
short goes on where it stood. A trial that the machinery lost is run again and never counted.

A trial of work that asked models, or acted on the outside, is served from the record of a live run:
the failing one of evidence, a passing one of guards and hold-out (docs/replay.md). Tasks that vary ask
their models afresh on both sides, in rounds, until ``judge.ruling`` has seen enough (docs/judging.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentos.domain import (
    IMPORT,
    SHARED,
    TIER_OF,
    Arm,
    Candidate,
    Decision,
    Evolution,
    KernelFault,
    Kind,
    Mode,
    Outcome,
    Result,
    Run,
    Snapshot,
    Task,
    Tier,
    Trial,
    TrialSet,
    digest,
    kind_of,
)
from agentos.errors import NotFound, Unavailable
from agentos.evolver.history.recordings import asks, packed, recording_of, whole
from agentos.evolver.parts import Parts
from agentos.evolver.replay.renaming import Renamed, in_other_names
from agentos.evolver.select.alike import failing_alike
from agentos.evolver.select.curate import Sets
from agentos.evolver.verdict.flakiness import TRIALS, Fitness, fitness
from agentos.evolver.verdict.judge import beside_base, counted, ruling
from agentos.evolver.verdict.overfitting import REPEATS, over_fitted
from agentos.evolver.verdict.pairing import FIRST
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
    fresh: bool = False  # models are asked, whatever is on record
    number: int = 0  # as ``Trial.number``
    alike: bool = False  # as ``Trial.alike``
    renamed: Renamed | None = None  # the task, where it is asked under other names

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
        if self.renamed:
            parts.append("renamed")
        return f"trial-{digest(parts)[:20]}"


@dataclass(frozen=True, slots=True)
class Stage:
    """Trials of both sides; ``lost`` when the verdict is clear already: no further one is worth its price."""

    trials: Sequence[Trial]
    lost: bool


def replay_base(parts: Parts, evolution: Evolution, task_ids: Sequence[str], sets: Sets) -> list[Trial]:
    """Run tasks on the evolution's base; shared by all of its candidates.

    All but the first trial of a task are made under other names (``renaming``). Of one that does not end
    alike there, each kind is made once more: what goes by its names keeps them, the rest is flaky.
    """
    jobs = _jobs(parts, task_ids, sets, Arm.BASE, evolution, None)
    trials = _replay(parts, jobs)
    unlike = {task_id for task_id, ends in _ends(trials).items() if len(ends[False] | ends[True]) > 1}
    again = [job for job in jobs if job.task.id in unlike]
    if not any(job.renamed for job in again):
        return trials
    # In this order: what passes every other time does not look as if it went by names.
    trials += _replay(parts, [_other_way(parts, job) for job in again])
    bound = {
        task_id
        for task_id, ends in _ends(trials).items()
        if task_id in unlike and len(ends[False]) == len(ends[True]) == 1
    }
    return [trial for trial in trials if not (trial.renamed and trial.task_id in bound)]


def _other_way(parts: Parts, job: _Job) -> _Job:
    """The same trial under other names, or under its own if it was made under others."""
    return replace(job, renamed=None if job.renamed else in_other_names(parts, job.task))


def _ends(trials: Iterable[Trial]) -> dict[str, dict[bool, set[object]]]:
    """By task, how its trials under its own names (False) and under others (True) ended."""
    found: dict[str, dict[bool, set[object]]] = {}
    for trial in trials:
        fault = trial.outcome.fault
        end = (trial.outcome.result, trial.answer_sha256, fault and (fault.type, fault.where))
        found.setdefault(trial.task_id, {False: set(), True: set()})[trial.renamed].add(end)
    return found


def replay_candidate(parts: Parts, evolution: Evolution, candidate: Candidate, sets: Sets) -> list[Trial]:
    """All trials of one candidate with their base counterparts, stage by stage, stopping at a loss."""
    trials: list[Trial] = []
    rounds = Rounds(parts, evolution, candidate, sets) if sets.varying else None
    for stage in TrialSet:
        done = replay_steady(parts, evolution, candidate, sets, stage)
        trials += done.trials
        if done.lost:
            break
        if rounds and not rounds.goes_on(stage, trials):
            break
    else:
        trials += rounds.alike() if rounds else []
    return trials


def replay_steady(
    parts: Parts, evolution: Evolution, candidate: Candidate, sets: Sets, stage: TrialSet
) -> Stage:
    """The trials of one set's tasks that do not vary, on both sides."""
    steady = sets.ids(stage, varying=False)
    base = replay_base(parts, evolution, steady, sets)
    alike = failing_alike(parts, evolution, base) | {*sets.held_back}
    others = {trial.task_id for trial in base if trial.renamed}
    jobs = _jobs(parts, steady, sets, Arm.CANDIDATE, evolution, candidate)
    jobs = [job if job.task.id in others else replace(job, renamed=None) for job in jobs]
    own = _replay(parts, [replace(job, alike=job.task.id in alike) for job in jobs])
    lost = _lost(parts, base, own, stage is TrialSet.EVIDENCE)
    if stage is TrialSet.EVIDENCE and not sets.varying and parts.policy.judge.hidden_share:
        lost = lost or bool(over_fitted(own, parts.policy.judge))
    return Stage([*base, *own], lost=lost)


def replay_control(
    parts: Parts, evolution: Evolution, candidate: Candidate, trials: Sequence[Trial]
) -> list[Trial]:
    """The candidate's trials once more with nothing remembered, where its ``trials`` need that (``control``).

    Of the evidence each of them; of guards and hold-out, which may only not be worse, the first of each
    task. None where the base remembers nothing, so that it is the control.
    """
    snapshot = candidate.control
    if snapshot is None or snapshot.tree == candidate.base.tree:
        return []
    if beside_base(candidate, trials, parts.policy)[0] is not Decision.PROMOTE:
        return []
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE and not trial.alike]
    first: dict[str, int] = {}
    for trial in own:
        first[trial.task_id] = min(trial.repeat, first.get(trial.task_id, trial.repeat))
    chosen = [
        trial for trial in own if trial.set is TrialSet.EVIDENCE or trial.repeat == first[trial.task_id]
    ]
    tasks = {task.id: task for task in parts.tasks(tuple(first))}
    prefer = _prefer(parts, evolution)
    jobs = [
        _Job(
            tasks[trial.task_id],
            trial.set,
            Arm.CONTROL,
            trial.repeat,
            snapshot,
            evolution.id,
            candidate.id,
            prefer,
            fresh=bool(trial.number),
        )
        for trial in chosen
    ]
    return _replay(parts, jobs)


def sieve(
    parts: Parts, evolution: Evolution, task_ids: Sequence[str], sets: Sets
) -> tuple[list[Trial], dict[str, Fitness]]:
    """Fresh trials of varying tasks on the base, and by task whether it can serve in its set.

    They choose the tasks, so they are in no pair. A task that cannot be replayed serves nowhere.
    """
    jobs = _fresh(parts, evolution, task_ids, sets, range(TRIALS))
    trials = _replay(parts, jobs)
    fit: dict[str, Fitness] = {}
    for task_id in task_ids:
        own = [trial for trial in trials if trial.task_id == task_id]
        lost = next((trial for trial in own if trial.outcome.result is Result.NOT_REPLAYABLE), None)
        if lost:
            fit[task_id] = Fitness(serves=False, says=f"not replayable: {lost.outcome.reason}")
        else:
            fit[task_id] = fitness([_passed(trial) for trial in own], sets.of(task_id))
    return trials, fit


class Rounds:
    """The fresh pairs of one candidate's varying tasks, made until enough is known."""

    def __init__(self, parts: Parts, evolution: Evolution, candidate: Candidate, sets: Sets) -> None:
        self._parts, self._evolution, self._candidate, self._sets = parts, evolution, candidate, sets
        self._tasks = {which: sets.ids(which, varying=True) for which in TrialSet}
        self._made = dict.fromkeys(TrialSet, 0)  # rounds of each set
        self._sieved: set[TrialSet] = set()
        self._numbers: dict[TrialSet, int] = {}
        self._alike: frozenset[str] = frozenset()  # hidden tasks too bad to be in a pair

    def goes_on(self, stage: TrialSet, trials: list[Trial]) -> bool:
        """Make pairs, adding them to ``trials``, until the sets up to ``stage`` are decided.

        False when no further trial is worth its price: the judge sees the same and says why.
        """
        while (goes_on := self.step(stage, trials)) is None:
            pass
        return goes_on

    def step(self, stage: TrialSet, trials: list[Trial]) -> bool | None:
        """As ``goes_on``, but one round at most; None while the sets up to ``stage`` are undecided."""
        if not self._choose(stage, trials):
            return False
        found = ruling(trials, self._parts.policy, self._tasks)
        which = found.undecided
        if found.decision is Decision.REJECT or (which and found.exhausted):
            return False
        # Whether there are tasks enough is known when those that do not vary were tried as well.
        order = list(TrialSet)
        if which is None or order.index(which) > order.index(stage):
            return True
        trials += self._round(which)
        return None

    @property
    def made(self) -> int:
        """Rounds of the evidence."""
        return self._made[TrialSet.EVIDENCE]

    def _choose(self, stage: TrialSet, trials: list[Trial]) -> bool:
        """The tasks that are steady enough; False when too few are left. Guards and hold-out together."""
        chosen = [stage] if stage is TrialSet.EVIDENCE else [TrialSet.GUARD, TrialSet.HOLD_OUT]
        for which in [item for item in chosen if item not in self._sieved]:
            self._sieved.add(which)
            made, fit = sieve(self._parts, self._evolution, self._tasks[which], self._sets)
            self._tasks[which] = tuple(task_id for task_id, found in fit.items() if found.serves)
            self._alike |= failing_alike(self._parts, self._evolution, made) - {*self._tasks[which]}
            trials += [trial for trial in made if trial.task_id in self._tasks[which]]
        if stage is TrialSet.EVIDENCE:
            return True
        steady = sum(len(self._sets.ids(which, varying=False)) for which in TrialSet)
        fitting = len(self._tasks[TrialSet.GUARD]) + len(self._tasks[TrialSet.HOLD_OUT])
        return steady + fitting >= self._parts.policy.judge.min_tasks

    def alike(self) -> list[Trial]:
        """The candidate's trials of hidden tasks that fail on the base as the evidence does."""
        task_ids = sorted(self._alike)
        base = _fresh(self._parts, self._evolution, task_ids, self._sets, range(REPEATS))
        return _replay(
            self._parts,
            [
                replace(
                    job,
                    arm=Arm.CANDIDATE,
                    snapshot=self._candidate.snapshot,
                    candidate_id=self._candidate.id,
                    alike=True,
                )
                for job in base
            ],
        )

    def _round(self, which: TrialSet) -> list[Trial]:
        """One pair of each task of the set."""
        repeats = range(FIRST + self._made[which], FIRST + self._made[which] + 1)
        self._made[which] += 1
        base = _fresh(self._parts, self._evolution, self._tasks[which], self._sets, repeats)
        if which not in self._numbers:
            self._numbers[which] = _number(self._parts, self._evolution, self._candidate, which)
        own = [
            replace(
                job,
                arm=Arm.CANDIDATE,
                snapshot=self._candidate.snapshot,
                candidate_id=self._candidate.id,
                number=self._numbers[which],
                alike=job.task.id in self._sets.held_back,
            )
            for job in base
        ]
        return _replay(self._parts, base + own)


def _number(parts: Parts, evolution: Evolution, candidate: Candidate, which: TrialSet) -> int:
    """Which candidate of this evidence it is that gets pairs of this set, those of other evolutions included.

    It stays what it was when the first pair was made, whoever got pairs since.
    """
    numbers = {
        trial.candidate_id: trial.number
        for other in parts.records.find(Evolution, evidence_id=evolution.evidence_id)
        for trial in parts.records.find(Trial, evolution_id=other.id)
        if trial.number and trial.set is which
    }
    return numbers.get(candidate.id, len(numbers) + 1)


def _fresh(
    parts: Parts, evolution: Evolution, task_ids: Sequence[str], sets: Sets, repeats: range
) -> list[_Job]:
    """On the base, whose trials all candidates share."""
    prefer = _prefer(parts, evolution)
    return [
        _Job(task, sets.of(task.id), Arm.BASE, repeat, evolution.base, evolution.id, "", prefer, fresh=True)
        for repeat in repeats
        for task in parts.tasks(tuple(task_ids))
    ]


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
    prefer = _prefer(parts, evolution)
    candidate_id = candidate.id if candidate else ""
    tasks = parts.tasks(tuple(task_ids))
    first = [
        _Job(task, sets.of(task.id), arm, 0, snapshot, evolution.id, candidate_id, prefer) for task in tasks
    ]
    # What is served from a record is known there by its arguments: it keeps its names.
    others = [None if _recording(parts, job) else in_other_names(parts, job.task) for job in first]
    return [
        replace(job, repeat=repeat, renamed=other if repeat else None)
        for repeat in range(parts.policy.replay.repeats)
        for job, other in zip(first, others, strict=True)
    ]


def _prefer(parts: Parts, evolution: Evolution) -> str:
    tier = TIER_OF[Kind(evolution.diagnosis.layer)] if evolution.diagnosis else Tier.MEDIUM
    return parts.policy.sandbox.preferred(tier)


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
        answer_sha256=digest(job.renamed.as_before(done.answer)) if job.renamed else done.answer_sha256,
        sandbox=done.sandbox,
        level=done.level,
        image=done.image,
        bundle=done.bundle,
        run_id=job.id,
        recording=plan.recording.run_ids[0] if plan.recording and plan.recording.run_ids else "",
        drift=done.drift,
        steps_sha256=parts.blobs.put(packed(done.steps)),
        number=job.number,
        alike=job.alike,
        renamed=job.renamed is not None,
    )
    parts.records.put(trial)
    return trial


def _attempt(parts: Parts, job: _Job, plan: Plan) -> Attempt:
    """Until an attempt counts. All have the trial's own id, so that no model call is paid twice."""
    retries = parts.policy.replay.infra_retries
    for attempt in range(1, retries + 1):
        try:
            asked = job.renamed.task if job.renamed else job.task
            done = parts.executor.execute(asked, job.snapshot, job.id, plan=plan)
        except Unavailable:
            if attempt == retries:
                raise
            continue
        if away := no_model(done.outcome):
            raise Unavailable(f"the trial of {job.task.name} says nothing of the code: {away}")
        if done.outcome.result not in VOID:
            return done
    raise Unavailable(f"the sandbox lost the trial of {job.task.name} {retries} times in a row")


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


def _plan(parts: Parts, job: _Job) -> Plan:
    """Where what the trial asks for comes from. Outside effects never come from anywhere but a record."""
    mode = Mode(parts.policy.replay.models)
    recording = _recording(parts, job)
    if job.fresh:  # kept, all the same: the evolution can be verified offline
        mode = Mode.RECORD
        recording = replace(recording, run_ids=()) if recording else None
    elif mode is Mode.LIVE:  # no run of the task asked for a model
        mode = Mode.REPLAY_THEN_LIVE
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
