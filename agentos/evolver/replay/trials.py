"""Replay: the same tasks on the base and on the candidate snapshot, each trial in fresh boxes.

Staged, so that a clear loser costs little: evidence first, then guards, then the hold-out. A trial
has an id made of what it is (evolution, candidate, task, arm, repeat), so a replay that a crash cut
short goes on where it stood. A trial that the machinery lost is run again and never counted.

A trial of work that asked models, or acted on the outside, is served from the record of a live run:
the failing one of evidence, a passing one of guards and hold-out (docs/understand/replay.md). Tasks that vary are
run afresh on both sides, in rounds, until ``judge.ruling`` has seen enough (docs/understand/judging.md); a set of which a task
seemed not to vary and does goes over to these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agentos.domain import (
    COMPARED_SETS,
    Arm,
    Candidate,
    Decision,
    Evidence,
    Evolution,
    Run,
    Share,
    Tier,
    Trial,
    TrialSet,
    record_with,
    tier_of,
)
from agentos.evolver.find.mining import as_it_says
from agentos.evolver.history.proposers import pairs_in
from agentos.evolver.history.recordings import trajectory
from agentos.evolver.replay import ReplayContext
from agentos.evolver.replay.jobs import (
    BaseJobs,
    TrialJob,
    fresh_jobs,
    jobs_on_base,
    recording_for,
    repeated,
    run_all,
)
from agentos.evolver.select.curate import LookCounter, TaskSets
from agentos.evolver.select.renaming import bound_to_names, in_other_names, unlike
from agentos.evolver.verdict.gates import names_undecided, over_fitted
from agentos.evolver.verdict.judge import beside_base, further_repeats, ruling
from agentos.evolver.verdict.paired_tests import PairTally
from agentos.evolver.verdict.pairing import (
    CHOOSING,
    FIRST,
    Screening,
    apart,
    counted,
    fitness,
    judged_trials,
    unsteady,
)

_HIDDEN = (TrialSet.HOLD_OUT, TrialSet.FRESH)


@dataclass(frozen=True, slots=True)
class StageTrials:
    """Trials of both sides; ``lost`` when the verdict is clear already: no further one is worth its price."""

    trials: Sequence[Trial]
    lost: bool


def replay_base(
    parts: ReplayContext, evolution: Evolution, task_ids: Sequence[str], sets: TaskSets
) -> list[Trial]:
    """Run tasks on the evolution's base; shared by all of its candidates.

    All but the first trial of a task are made under other names (``renaming``). Of one that does not end
    alike there, each kind is made once more: what goes by its names keeps them, the rest is flaky.
    """
    return _on_base(parts, jobs_on_base(parts, task_ids, sets, evolution))


def _on_base(parts: ReplayContext, asked: BaseJobs) -> list[Trial]:
    jobs = repeated(asked, range(parts.policy.replay.repeats))
    trials = run_all(parts, jobs)
    again = [job for job in jobs if job.task.id in unlike(trials)]
    if not any(job.renamed for job in again):
        return trials
    # In this order: what passes every other time does not look as if it went by names.
    others = {job.task.id: other for job, other in asked}
    trials += run_all(
        parts, [replace(job, renamed=None if job.renamed else others[job.task.id]) for job in again]
    )
    bound = bound_to_names(trials)
    return [trial for trial in trials if not (trial.renamed and trial.task_id in bound)]


def replay_candidate(
    parts: ReplayContext, evolution: Evolution, candidate: Candidate, sets: TaskSets
) -> list[Trial]:
    """All trials of one candidate with their base counterparts, stage by stage, stopping at a loss."""
    trials: list[Trial] = []
    replay = CandidateReplay(parts, evolution, candidate, sets)
    for stage in COMPARED_SETS:
        done = replay.steady(stage)
        trials += done.trials
        if done.lost or not replay.goes_on(stage, trials):
            break
    else:
        trials += replay.alike()
    return trials


def replay_control(
    parts: ReplayContext, evolution: Evolution, candidate: Candidate, trials: Sequence[Trial]
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
    aside = apart(trials)
    own = [
        trial
        for trial in trials
        if trial.arm is Arm.CANDIDATE and not trial.alike and (trial.number or trial.task_id not in aside)
    ]
    first: dict[str, int] = {}
    for trial in own:
        first[trial.task_id] = min(trial.repeat, first.get(trial.task_id, trial.repeat))
    chosen = [
        trial for trial in own if trial.set is TrialSet.EVIDENCE or trial.repeat == first[trial.task_id]
    ]
    tasks = {task.id: task for task in parts.tasks(tuple(first))}
    jobs = [
        TrialJob(
            tasks[trial.task_id],
            trial.set,
            Arm.CONTROL,
            trial.repeat,
            snapshot,
            evolution.id,
            candidate.id,
            fresh=bool(trial.number),
            recording=recording_for(parts, tasks[trial.task_id], trial.set),
        )
        for trial in chosen
    ]
    return run_all(parts, jobs)


def sieve(
    parts: ReplayContext, evolution: Evolution, task_ids: Sequence[str], sets: TaskSets
) -> tuple[list[Trial], dict[str, Screening]]:
    """Fresh trials of varying tasks on the base, and by task whether it can serve in its set.

    They choose the tasks, so they are in no pair. A task that cannot be replayed serves nowhere.
    """
    repeats = range(CHOOSING, CHOOSING + parts.policy.judge.sieve_trials)
    jobs = fresh_jobs(parts, evolution, task_ids, sets, repeats)
    trials = run_all(parts, jobs)
    fit: dict[str, Screening] = {}
    for task_id in task_ids:
        own = [trial for trial in trials if trial.task_id == task_id]
        lost = next((trial for trial in own if trial.is_lost), None)
        if lost:
            fit[task_id] = Screening(serves=False, says=f"not replayable: {lost.outcome.reason}")
        else:
            fit[task_id] = fitness([trial.passed for trial in own], sets.of(task_id), parts.policy.judge)
    return trials, fit


class CandidateReplay:
    """The trials of one candidate: of a set first those of tasks that do not vary, then fresh pairs until enough is known."""

    def __init__(
        self, parts: ReplayContext, evolution: Evolution, candidate: Candidate, sets: TaskSets
    ) -> None:
        self._parts, self._evolution, self._candidate, self._sets = parts, evolution, candidate, sets
        self._tasks = {which: sets.ids(which, varying=True) for which in COMPARED_SETS}
        self._made = dict.fromkeys(COMPARED_SETS, 0)  # rounds of each set
        self._sieved: set[str] = set()
        self._looks = LookCounter(parts, candidate)
        self._renamed: frozenset[str] = frozenset()  # tasks of which every other pair has other names
        self._alike: frozenset[str] = frozenset()  # hidden tasks too bad to be in a pair

    def steady(self, stage: TrialSet) -> StageTrials:
        """The trials of the set's tasks that do not vary, on both sides: of evidence that is fixed, as many as exclude luck.

        Where one of them varies all the same these trials tell nothing of an edit, and all of them are to have pairs.
        """
        parts, steady = self._parts, self._sets.ids(stage, varying=False)
        if not steady:
            return StageTrials([], lost=False)
        on_base = jobs_on_base(parts, steady, self._sets, self._evolution)
        base, own = _on_base(parts, on_base), list[Trial]()
        alike = failing_alike(parts, self._evolution, base) | {*self._sets.held_back}
        others = {trial.task_id for trial in base if trial.renamed}
        repeats, task_ids = range(parts.policy.replay.repeats), steady
        while repeats:
            jobs = [job for job in repeated(on_base, repeats) if job.task.id in task_ids]
            jobs = [job if job.task.id in others else replace(job, renamed=None) for job in jobs]
            base += run_all(parts, jobs if repeats.start else [])
            own += run_all(parts, [self._tried(job, alike=job.task.id in alike) for job in jobs])
            if stage in unsteady([*base, *own]):
                self._tasks[stage] = tuple(dict.fromkeys((*self._tasks[stage], *steady)))
                self._renamed |= others.intersection(steady)
                break
            if self._is_lost(stage, base, own):
                return StageTrials([*base, *own], lost=True)
            further, task_ids = self._further(stage)
            repeats = range(repeats.stop, repeats.stop + further)
        return StageTrials([*base, *own], lost=False)

    def _is_lost(self, stage: TrialSet, base: Sequence[Trial], own: Sequence[Trial]) -> bool:
        """Is the verdict clear already? The judge decides; this only saves trials."""
        rules = self._parts.policy.judge
        both = _tasks(counted(base)) & _tasks(counted(own))  # others cannot be replayed and say nothing
        good = both - _tasks(trial for trial in counted(own) if not trial.passed)
        was_good = both - _tasks(trial for trial in counted(base) if not trial.passed)
        failing = both - was_good
        if was_good - good:
            return True
        if stage is not TrialSet.EVIDENCE:
            return False
        if len(good & failing) < rules.min_fixed_share * len(failing):
            return True
        return bool(not self._sets.varying and rules.hidden_share and over_fitted(own, rules))

    def _further(self, stage: TrialSet) -> tuple[int, tuple[str, ...]]:
        """How many more trials on each side exclude luck, and of which tasks."""
        if stage is not TrialSet.EVIDENCE:
            return 0, ()
        known = self._parts.records.find(Trial, evolution_id=self._evolution.id)
        further, task_ids = further_repeats(judged_trials(self._candidate, known), self._parts.policy)
        return max(0, further), task_ids

    def _tried(self, job: TrialJob, *, number: int = 0, alike: bool = False) -> TrialJob:
        """The candidate's counterpart of a job on the base."""
        return record_with(
            job,
            arm=Arm.CANDIDATE,
            snapshot=self._candidate.snapshot,
            candidate_id=self._candidate.id,
            number=number,
            alike=alike,
            look=self._looks.at(job.task, job.set),
        )

    def has(self, which: TrialSet) -> bool:
        """Whether tasks of the set have pairs, or are to have some."""
        return bool(self._tasks[which])

    def goes_on(self, stage: TrialSet, trials: list[Trial]) -> bool:
        """Make pairs, adding them to ``trials``, until the sets up to ``stage`` are decided.

        False when no further trial is worth its price: the judge sees the same and says why. True where no task
        varies.
        """
        if not any(self._tasks.values()) and not apart(trials):
            return True
        while (goes_on := self.step(stage, trials)) is None:
            pass
        return goes_on

    def step(self, stage: TrialSet, trials: list[Trial]) -> bool | None:
        """As ``goes_on``, but one round at most; None while the sets up to ``stage`` are undecided."""
        self._choose(stage, trials)
        found = ruling(trials, self._parts.policy, self._tasks)
        which = found.undecided
        if found.decision is Decision.REJECT or (which and found.exhausted):
            return False
        order = COMPARED_SETS
        if which is None or order.index(which) > order.index(stage):
            if stage is not TrialSet.EVIDENCE or not names_undecided(trials, self._parts.policy):
                return True
            which = stage
        trials += self._round(which)
        return None

    @property
    def made(self) -> int:
        """Rounds of the evidence."""
        return self._made[TrialSet.EVIDENCE]

    def _choose(self, stage: TrialSet, trials: list[Trial]) -> None:
        """Leave out the tasks that are not steady enough, of guards and hold-out together."""
        chosen = [stage] if stage is TrialSet.EVIDENCE else [TrialSet.GUARD, TrialSet.HOLD_OUT]
        for which in chosen:
            fresh = [task_id for task_id in self._tasks[which] if task_id not in self._sieved]
            self._sieved.update(fresh)
            made, fit = sieve(self._parts, self._evolution, fresh, self._sets)
            unfit = {task_id for task_id, found in fit.items() if not found.serves}
            self._tasks[which] = tuple(task_id for task_id in self._tasks[which] if task_id not in unfit)
            self._alike |= failing_alike(self._parts, self._evolution, made) & unfit
            trials += made

    def alike(self) -> list[Trial]:
        """The candidate's trials of hidden tasks that fail on the base as the evidence does."""
        task_ids = sorted(self._alike)
        repeats = range(self._parts.policy.judge.alike_trials)
        base = fresh_jobs(self._parts, self._evolution, task_ids, self._sets, repeats)
        return run_all(self._parts, [self._tried(job, alike=True) for job in base])

    def _round(self, which: TrialSet) -> list[Trial]:
        """One pair of each task of the set."""
        repeats = range(FIRST + self._made[which], FIRST + self._made[which] + 1)
        self._made[which] += 1
        base = fresh_jobs(self._parts, self._evolution, self._tasks[which], self._sets, repeats)
        number = self._looks.number(which)
        if self._made[which] % 2 == 0:
            other = {
                job.task.id: in_other_names(self._parts, job.task)
                for job in base
                if job.task.id in self._renamed
            }
            base = [replace(job, renamed=other.get(job.task.id)) for job in base]
        held = self._sets.held_back
        own = [self._tried(job, number=number, alike=job.task.id in held) for job in base]
        return run_all(self._parts, base + own)


def _tasks(trials: Iterable[Trial]) -> set[str]:
    return {trial.task_id for trial in trials}


def failing_alike(parts: ReplayContext, evolution: Evolution, base: Sequence[Trial]) -> frozenset[str]:
    """The hidden and fresh tasks among these trials of the base that fail in all of them as the evidence does."""
    wanted = parts.records.get(Evidence, evolution.evidence_id).fingerprint.id
    found: dict[str, bool] = {}
    for trial in base:
        # Under other names it made another call than its task says, which would look like its harness' fault.
        if trial.set in _HIDDEN and trial.arm is Arm.BASE and not trial.renamed:
            found[trial.task_id] = (
                found.get(trial.task_id, True) and _failure_signature(parts, trial) == wanted
            )
    return frozenset(task_id for task_id, alike in found.items() if alike)


def _failure_signature(parts: ReplayContext, trial: Trial) -> str:
    """Of the failure that a trial shows; "" where it passed."""
    if trial.passed or not trial.steps_sha256:
        return ""
    task = parts.journal.task(trial.task_id)
    steps = trajectory(parts.blobs, trial)
    used = parts.journal.runs_of(task.key, 1)
    run = Run(
        id=trial.id,
        task_id=task.id,
        task_key=task.key,
        share=Share.HOLD_OUT,
        attempt=1,
        snapshot=trial.snapshot,
        sandbox=trial.sandbox,
        level=trial.level,
        started_at=datetime.now(UTC),
        outcome=trial.outcome,
        resources=used[0].resources if used else (),
    )
    failure = as_it_says(parts, run, steps)
    return failure.fingerprint.id if failure else ""


# -------------------------------------------------------------------------------------------------
# Race: which of several candidates of one evidence goes on to guards and hold-out, by what the
# evidence says of each.
# One that mends all of the evidence goes on at once, and the others cost nothing. Otherwise all show first what
# they do for the evidence, and the best goes on. Where tasks vary each gets two rounds of fresh pairs, then every
# further round goes to the one with the best mean so far, until the judge's own rule says of one that it is better:
# those behind are left where they stand. Which rounds are made follows from what was seen, and the error rates stand
# nevertheless: the chance that a bet is *ever* won by luck is bounded for each candidate, so it makes no
# difference how far it was carried (docs/decisions/racing.md).
#
# Nothing is decided here. Every trial is stored under its own id; trying a candidate finds those that were made.


class _Runner:
    """One candidate, its trials on the evidence with their counterparts, and what they say so far."""

    def __init__(self, candidate: Candidate, trials: Sequence[Trial], replay: CandidateReplay) -> None:
        self.candidate, self.replay = candidate, replay
        self._trials = [*trials]
        self._seen = pairs_in(trials)

    @property
    def varies(self) -> bool:
        """Whether its evidence is judged by pairs, at least in part."""
        return self.replay.has(TrialSet.EVIDENCE)

    @property
    def gain(self) -> float:
        """Mean advantage over the base."""
        return (self._seen.wins - self._seen.losses) / max(1, self._seen.pairs)

    def is_decided(self) -> bool:
        """Whether the judge needs no further round of the evidence; makes one where it does."""
        before = len(self._trials)
        goes_on = self.replay.step(TrialSet.EVIDENCE, self._trials)
        seen, more = self._seen, pairs_in(self._trials[before:])
        self._seen = PairTally(seen.wins + more.wins, seen.ties + more.ties, seen.losses + more.losses)
        return goes_on is not None


def leader(
    parts: ReplayContext, evolution: Evolution, candidates: Sequence[Candidate], sets: TaskSets
) -> Candidate:
    """The candidate to try next; of equal ones the first. Safe to run again: trials that were made are found.

    One that is lost is named at once, because its verdict costs nothing more.
    What is of the highest tier is tried in rank order: before its first trial come the suites of its contract.
    """
    if len(candidates) == 1 or any(tier_of(item.manifest.files) is Tier.HIGH for item in candidates):
        return candidates[0]
    runners = []
    for candidate in candidates:
        replay = CandidateReplay(parts, evolution, candidate, sets)
        done = replay.steady(TrialSet.EVIDENCE)
        if done.lost:
            return candidate
        runners.append(_Runner(candidate, done.trials, replay))
        if not runners[-1].varies and runners[-1].gain == 1:
            return candidate
    if varying := [runner for runner in runners if runner.varies]:
        return _led(varying, parts.policy.judge.min_rounds)
    return max(runners, key=lambda runner: runner.gain).candidate


def _led(runners: Sequence[_Runner], rounds: int) -> Candidate:
    """The first of which the evidence is decided, either way."""
    while True:
        fresh = [runner for runner in runners if runner.replay.made < rounds]
        ahead = fresh[0] if fresh else max(runners, key=lambda runner: runner.gain)
        if ahead.is_decided():
            return ahead.candidate
