"""Fresh work: live runs that brought work which nobody knew when a waiting edit was found, tried on both sides.

Of such work no search, no guard and no hidden task could know. It is told from other work by the order in which
tasks came into the ledger, never by a clock, and by what it asks for, whatever it is called
(``renaming.work_of``). What the trials say is ``verdict.doubts``'s matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentos.domain import Arm, Candidate, Evolution, Result, Run, Snapshot, Task, Trial, TrialSet, work_of
from agentos.evolver.find.mining import BATCH, CURSOR
from agentos.evolver.history.content_digest import content_of
from agentos.evolver.replay import FreshContext
from agentos.evolver.replay.jobs import TrialJob, recording_for, run_all
from agentos.evolver.replay.trials import failing_alike
from agentos.evolver.select.curate import asks_models_live
from agentos.evolver.verdict.pairing import counted


@dataclass(frozen=True, slots=True)
class FreshRuns:
    """Live runs with fresh work, oldest first; they stand after the place ``after`` and up to ``to``."""

    runs: tuple[Run, ...]
    after: int
    to: int


def place_of(evolution_id: str) -> str:
    """Name of the cursor: up to which finished run fresh work of an evolution was looked for."""
    return f"fresh:{evolution_id}"


def begin(parts: FreshContext, evolution: Evolution) -> None:
    """From here on what finishes may be fresh to the evolution's edits. Doing so again changes nothing."""
    if not parts.cursor.read(place_of(evolution.id)):
        parts.cursor.advance(place_of(evolution.id), parts.cursor.read(CURSOR), [])


def fresh_runs(parts: FreshContext, evolution: Evolution, candidate: Candidate) -> FreshRuns:
    """The next of them, at most as many as are wanted; none once enough were tried."""
    rules = parts.policy.judge
    after = parts.cursor.read(place_of(evolution.id))
    tried = {
        trial.task_id
        for trial in parts.records.find(Trial, evolution_id=evolution.id)
        if trial.set is TrialSet.FRESH
    }
    most = min(rules.fresh_tasks, max(0, rules.fresh_most - len(tried)))
    novelty = _Novelty(parts, evolution, candidate)
    found, to = list[Run](), after
    finished = _finished(parts, after)
    while len(found) < most and (item := next(finished, None)):
        to, run = item
        if novelty.brings(run):
            found.append(run)
    return FreshRuns(tuple(found), after, to)


def try_fresh_runs(
    parts: FreshContext, evolution: Evolution, candidate: Candidate, runs: Sequence[Run]
) -> list[Trial]:
    """Their work on both sides: once, and as often as other tasks where it passes on the base and not with the edit.

    Where the base does not end as the live run did nobody knows what it should do, and the edit is not tried.
    """
    live = {run.task_id: run.passed for run in runs}
    jobs = [_job_on_base(parts, evolution, candidate, task) for task in parts.tasks(tuple(live))]
    base = run_all(parts, jobs)
    alike = failing_alike(parts, evolution, base)
    # Of a run that could not be made again nobody knows how it ends.
    as_live = {trial.task_id for trial in counted(base) if trial.passed == live[trial.task_id]}
    jobs = [job for job in jobs if job.task.id in as_live]
    tried = [replace(job, arm=Arm.CANDIDATE, snapshot=candidate.snapshot) for job in jobs]
    own = run_all(parts, [replace(job, alike=job.task.id in alike) for job in tried])
    failing = {trial.task_id for trial in own if live[trial.task_id] and not trial.passed}
    again = [
        replace(job, repeat=repeat)
        for pair in zip(jobs, tried, strict=True)
        for repeat in range(1, parts.policy.replay.repeats)
        for job in pair
        if job.task.id in failing
    ]
    return [*base, *own, *run_all(parts, again)]


def _job_on_base(parts: FreshContext, evolution: Evolution, candidate: Candidate, task: Task) -> TrialJob:
    """The base's too are the candidate's own: another edit waits for other work."""
    recording = recording_for(parts, task, TrialSet.FRESH)
    own = (evolution.id, candidate.id)
    return TrialJob(task, TrialSet.FRESH, Arm.BASE, 0, candidate.base, *own, recording=recording)


def _finished(parts: FreshContext, after: int) -> Iterator[tuple[int, Run]]:
    while batch := parts.journal.runs_after(after, BATCH):
        yield from batch
        after = batch[-1][0]


class _Novelty:
    """Tells runs with work that is new to an edit from all others."""

    def __init__(self, parts: FreshContext, evolution: Evolution, candidate: Candidate) -> None:
        self._parts, self._evolution, self._candidate = parts, evolution, candidate
        self._touched = candidate.edit.resources
        self._works: dict[str, str] | None = None
        self._contents: dict[str, str] = {}  # by tree

    def brings(self, run: Run) -> bool:
        """Whether it does: an own run of the base's content that came to an end, of checked work that a person or a schedule asked for."""
        known = self._candidate.known_tasks
        if known is None or not run.is_live or run.outcome is None or not {*self._touched} & {*run.resources}:
            return False
        if run.outcome.result not in (Result.PASSED, Result.FAILED) or run.outcome.cost.calls:
            return False
        task = self._parts.journal.task(run.task_id)
        # What a run hands over is made up by what evolves.
        if task.parent or not (task.checks or run.outcome.checks) or not self._is_newer(run, known):
            return False
        if not self._stands_alike(task, run) or asks_models_live(self._parts, task):
            return False
        # Of its own trials a kill may have left some.
        return self._known(known).setdefault(work_of(task), task.id) == task.id

    def _is_newer(self, run: Run, known: int) -> bool:
        """Whether the very work came in after the edit was proposed, as far as runs of it are on record."""
        runs = self._parts.journal.runs_of(run.task_key, self._parts.policy.look_back.sets)
        return all(self._parts.journal.arrived(item.task_id) > known for item in (run, *runs))

    def _stands_alike(self, task: Task, run: Run) -> bool:
        """Whether it ran on the base's content, and would get the same files where the edit was put since."""
        base, rebase = self._candidate.base, self._candidate.rebase
        if self._content(run.snapshot) != self._content(base):
            return False
        given = self._parts.executor.given
        return rebase is None or (
            given(task, base) == given(task, rebase.base)
            and given(task, self._candidate.snapshot) == given(task, rebase.snapshot)
        )

    def _content(self, snapshot: Snapshot) -> str:
        if snapshot.tree not in self._contents:
            self._contents[snapshot.tree] = content_of(self._parts.snapshots, snapshot, self._touched)
        return self._contents[snapshot.tree]

    def _known(self, known: int) -> dict[str, str]:
        """Work that was there before the edit, or was tried with it, and a task that asked for it."""
        if self._works is None:
            parts = self._parts
            tried = {trial.task_id for trial in parts.records.find(Trial, evolution_id=self._evolution.id)}
            before = {
                run.task_id
                for name in self._touched
                for run in parts.journal.runs_using(name, parts.policy.look_back.sets)
                if parts.journal.arrived(run.task_id) <= known
            }
            self._works = {work_of(task): task.id for task in parts.tasks((*tried, *before))}
        return self._works
