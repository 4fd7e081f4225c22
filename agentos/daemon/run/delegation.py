"""Hands a sub-task from one agent to another: a run of its own, within what the run above has left.

Which agents an agent may ask stands in its document at the run's snapshot. A handed-over task
takes no slot of the daemon: the run above has one already and waits. The tasks that one run hands
over are done one after another, so that what is left of its budget is always known and a tree of
agents holds at most one box a level.

The n-th of equal hand-overs of a task is one task for good, whichever attempt or trial comes to it:
what it came to is served from the ledger, and where it was cut it goes on from its record.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from agentos.daemon.breaker import MACHINE, cause
from agentos.daemon.requests.model_requests import budget_of
from agentos.daemon.requests.people import readable
from agentos.daemon.requests.run_requests import Denied, RequestHandler, RunContext, RunEnds
from agentos.domain import (
    RESOURCE_NAME,
    Cost,
    InputFile,
    Json,
    KernelFault,
    Limits,
    Outcome,
    Recording,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Step,
    Task,
    TaskState,
    digest,
    kernel_fault,
    new_id,
)
from agentos.errors import NotFound, Unavailable
from agentos.evolver.history.recordings import recording_of, whole
from agentos.ledger.store import Ledger
from agentos.ports import Attempt, Plan
from agentos.sources import collisions, fits_workspace

if TYPE_CHECKING:
    from agentos.daemon.run.execution import BoxExecutor

DEPTH_MAX = 3
HANDED_MAX = 64  # by one run
_GOAL_MAX = 64_000  # characters
_NAME_MAX = 80
_FILES_MAX = 1_000  # handed over with one task, as in a task's file
_LEAST_S = 0.5  # with less time left nothing is begun
_POLL_S = 0.05
_TAKEN_UP = (TaskState.WAITING, TaskState.CANCELLED)  # when the run above comes to it again

# Results that stand: another attempt would only do the same work again.
_STANDS = frozenset({Result.PASSED, Result.FAILED, Result.FLAKY, Result.TIMEOUT, Result.BUDGET})
# Results that the run above shares.
_SHARED = frozenset({Result.WAITING, Result.NOT_REPLAYABLE, Result.CANCELLED})


@dataclass(frozen=True, slots=True)
class HandOver:
    """One hand-over: what is asked of whom, and what makes it the same one in another attempt."""

    agent: str
    goal: str
    inputs: Mapping[str, bytes]
    number: int  # among equal ones of the run

    def name_below(self, above: str) -> str:
        """What it is called below the task (or trial) ``above``."""
        return digest([above, self.key, self.number])[:13]

    @property
    def key(self) -> str:
        """Equal hand-overs have equal keys."""
        return key_of(self.agent, self.goal, self.inputs)

    def task_id(self, above: str) -> str:
        """The id of its task, handed over by the task ``above``."""
        return f"task-{self.name_below(above)}"

    def trial_id(self, above: str) -> str:
        """The id of its run in a trial, handed over by the run ``above``."""
        return f"{above}-d{self.name_below('')}"


def key_of(agent: str, goal: str, inputs: Mapping[str, bytes]) -> str:
    """What makes two hand-overs of a run equal."""
    return digest([agent, goal, {name: digest(content) for name, content in inputs.items()}])


class DelegationHandlers:
    """Makes the answerer of each run's hand-overs (``RunServices.answerers["delegate"]``).

    ``executor`` gives the executor, which is made after this; ``hold`` returns only while the
    daemon may record.
    """

    def __init__(
        self,
        ledger: Ledger,
        executor: Callable[[], BoxExecutor],
        hold: Callable[[], None] = lambda: None,
    ) -> None:
        self.ledger = ledger
        self.executor = executor
        self.hold = hold

    def answerer(self, asking: RunContext) -> RequestHandler:
        """For one run."""
        return _HandOvers(self, asking)


class _HandOvers(RequestHandler):
    """One run's hand-overs."""

    def __init__(self, parts: DelegationHandlers, asking: RunContext) -> None:
        self._parts = parts
        self._asking = asking
        self._count: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # held by the one that is under way
        self._stopped = False
        self._idle = threading.Event()
        self._idle.set()
        self._below = ""  # the run that is under way

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"run", "ok", "answer", "reason"}. Raises Denied, or RunEnds with what the run below ended with."""
        handing = self._handing(body)
        began = time.monotonic()
        with self._turn, self._under_way():
            outcome, answer = self._outcome(handing)
        # the same in each attempt and trial: a run's id would tell them apart
        handle = handing.task_id(self._asking.task.id)
        told = {"ok": outcome.result is Result.PASSED, "answer": answer, "reason": outcome.reason}
        action = {"agent": handing.agent, "goal": handing.goal, "inputs": sorted(handing.inputs)}
        self._asking.step("delegate", action, {"task": handle, **told}, (time.monotonic() - began) * 1000)
        if outcome.result in _SHARED:
            raise RunEnds(
                outcome.result,
                outcome.fault or kernel_fault(KernelFault.OTHER, outcome.reason, type=outcome.result.value),
            )
        return {"run": handle, **told}

    def stop(self) -> None:
        """End what is under way below; returns when it has ended."""
        with self._lock:
            self._stopped = True
        while not self._idle.wait(_POLL_S):
            self._parts.executor().cancel(self._below)

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self._lock:
            if self._stopped:
                raise Denied("over", "the run is over")
            self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()

    def _handing(self, body: Mapping[str, Any]) -> HandOver:
        """What is asked for, held against what may be. Raises Denied."""
        asking = self._asking
        agent, goal, inputs = body.get("agent"), body.get("goal"), body.get("inputs") or {}
        allowed = asking.bundle.agent.get("agents", [])
        if not isinstance(agent, str) or not _allows(allowed, agent):
            some = ", ".join(allowed) or "none"
            raise Denied("not_allowed", f"this agent may hand work to {some}, not to {agent!r:.80}")
        if asking.plan.depth >= DEPTH_MAX:
            raise Denied("limit", f"work is handed down at most {DEPTH_MAX} times")
        if not isinstance(goal, str) or not goal.strip() or len(goal) > _GOAL_MAX:
            raise Denied("request", f"a goal is a text of 1 to {_GOAL_MAX:,} characters")
        files = _files(inputs, asking.bundle.limits.workspace_mb << 20)
        key = key_of(agent, goal, files)
        with self._lock:
            if self._count.total() >= HANDED_MAX:
                raise Denied("limit", f"a run may hand over {HANDED_MAX} tasks, no more")
            number = self._count[key]
            self._count[key] += 1
        return HandOver(agent, goal, files, number)

    def _outcome(self, handing: HandOver) -> tuple[Outcome, Json]:
        """How the handed-over task ended, now or in an attempt before, and its answer."""
        kept = None if self._asking.plan.replays else self._kept(handing)
        if kept is not None and kept.outcome is not None:
            self._asking.spent.merge(Cost(calls=kept.outcome.cost.calls))
            self._asking.spent.resources.update(kept.resources)
            return kept.outcome, self._parts.ledger.blobs.expand(kept.answer)
        task = self._task(handing)
        done = self._tried(task, handing) if self._asking.plan.replays else self._run(task)
        self._asking.spent.merge(done.outcome.cost)
        self._asking.spent.resources.update(done.resources)
        return done.outcome, done.answer

    def _kept(self, handing: HandOver) -> Run | None:
        """The run of an earlier attempt in which it came to its end."""
        runs = self._parts.ledger.runs(handing.task_id(self._asking.task.id), limit=1)
        ended = runs and runs[0].outcome is not None and runs[0].outcome.result in _STANDS
        return runs[0] if ended else None

    def _task(self, handing: HandOver) -> Task:
        above = self._asking.task
        blobs = self._parts.ledger.blobs
        return replace(
            above,
            id=handing.task_id(above.id),
            name=f"{handing.agent}: {' '.join(readable(handing.goal).split())}"[:_NAME_MAX],
            goal=handing.goal,
            call=None,
            inputs=tuple(
                InputFile(name, blobs.put(content), len(content)) for name, content in handing.inputs.items()
            ),
            agent=handing.agent,
            limits=self._limits(),
            checks=(),
            schedule=None,
            created_at=datetime.now(UTC),
            parent=above.id,
        )

    def _limits(self) -> Limits:
        """What is left of the limits of the run above. Raises Denied where that is nothing."""
        limits, spent = self._asking.bundle.limits, self._asking.spent
        wall_s = self._asking.deadline - time.monotonic()
        if wall_s < _LEAST_S:
            raise Denied("budget", "no time is left to hand anything over")
        budget = budget_of(limits)
        if limit := spent.reached(budget):
            raise Denied("budget", f"nothing is left of what this run may use of models ({limit})")
        return replace(
            limits,
            wall_s=wall_s,
            # never 0, which is no limit: a call that ends at this moment may take the last of it
            calls=budget.calls and max(1, budget.calls - spent.calls),
            tokens=budget.tokens and max(1, budget.tokens - spent.tokens),
            cost_usd=budget.usd and max(1e-6, budget.usd - (spent.usd or 0.0)),
        )

    # --- a trial: nothing of it is in the ledger ----------------------------------------------

    def _tried(self, task: Task, handing: HandOver) -> Attempt:
        asking = self._asking
        plan = self._plan(self._recorded(handing), resume=asking.plan.resume)
        return self._execute(task, handing.trial_id(asking.run_id), None, plan)

    def _recorded(self, handing: HandOver) -> Recording | None:
        """The record of the same hand-over in the runs that the trial is served from."""
        recording, ledger = self._asking.plan.recording, self._parts.ledger
        if recording is None:
            return None
        trajectories: dict[str, list[Step]] = {}
        answers = dict(ledger.answers(handing.task_id(self._asking.task.id)))
        for run_id in recording.run_ids:
            try:
                task_id = handing.task_id(ledger.run(run_id).task_id)
            except NotFound:  # a trial's, whose calls alone are on record
                trajectories[handing.trial_id(run_id)] = []
                continue
            # also those under earlier attempts of the run above, which it went on from
            for run in ledger.runs(task_id)[::-1]:
                trajectories[run.id] = whole(ledger.blobs, ledger.steps(run.id))
            answers |= ledger.answers(task_id)
        return recording_of(recording.snapshot, list(trajectories.items()), answers)

    # --- a live run: a task and runs of its own -----------------------------------------------

    def _run(self, task: Task) -> Attempt:
        ledger, asking = self._parts.ledger, self._asking
        place = self._parts.executor().place(task, asking.snapshot)
        share = ledger.task_view(asking.task.id).share  # what is hidden from proposers stays hidden below
        earlier = ledger.runs(task.id)[::-1]
        if earlier:
            _lost(ledger, task.id, "the run above ended before it")
            ledger.set_task_state(task.id, _TAKEN_UP, TaskState.RUNNING)
        else:
            self._add(task, share)
        run = Run(
            id=new_id("run"),
            task_id=task.id,
            task_key=task.key,
            share=share,
            attempt=len(earlier) + 1,
            snapshot=asking.snapshot,
            sandbox=place.name,
            level=place.level,
            started_at=datetime.now(UTC),
            parent=asking.run_id,
            resumes=earlier[-1].id if earlier else "",
        )
        ledger.begin_run(run)
        record = self._record(earlier, asking.snapshot)
        plan = self._plan(record, resume=record is not None)
        try:
            done = self._execute(task, run.id, ledger.append_step, plan)
        except (Unavailable, *MACHINE) as error:
            self._parts.hold()
            _lost(ledger, task.id, cause(error))
            raise
        self._parts.hold()
        left = tuple(InputFile(path, ledger.blobs.put(data), len(data)) for path, data in done.files.items())
        ledger.finish_run(run.id, done.outcome, RunEnd(done.answer, left, done.resources))
        return done

    def _add(self, task: Task, share: Share) -> None:
        try:
            known = self._parts.ledger.task(task.id)  # added, and then the daemon was killed
            self._parts.ledger.set_task_state(known.id, _TAKEN_UP, TaskState.RUNNING)
        except NotFound:
            self._parts.ledger.add_task(task, share, TaskState.RUNNING)

    def _record(self, earlier: Sequence[Run], snapshot: Snapshot) -> Recording | None:
        """What attempts before left, to go on from; None where there was none.

        One without any step may have been killed while it waited for a paid answer.
        """
        if not earlier:
            return None
        ledger = self._parts.ledger
        trajectories = [(run.id, whole(ledger.blobs, ledger.steps(run.id))) for run in earlier]
        return recording_of(snapshot, trajectories, ledger.answers(earlier[0].task_id))

    def _execute(
        self, task: Task, run_id: str, on_step: Callable[[Step], None] | None, plan: Plan
    ) -> Attempt:
        self._below = run_id
        return self._parts.executor().execute(task, self._asking.snapshot, run_id, on_step, plan)

    def _plan(self, recording: Recording | None, *, resume: bool) -> Plan:
        plan = self._asking.plan
        return replace(
            plan, recording=recording, resume=resume, parent=self._asking.run_id, depth=plan.depth + 1
        )


def let_go(ledger: Ledger) -> None:
    """Close what a dead daemon left of handed-over tasks; before any run goes on. A run above that
    goes on takes them up again."""
    for view in ledger.tasks(TaskState.RUNNING):
        if view.task.parent:
            _lost(ledger, view.task.id, "the daemon was killed during this run")


def _lost(ledger: Ledger, task_id: str, why: str) -> None:
    """End what nobody will end any more, in a state from which it can be taken up again."""
    for run in ledger.runs(task_id):
        if run.outcome is None:
            ledger.finish_run(run.id, Outcome(Result.INFRA, 0.0, why))
    ledger.set_task_state(task_id, (TaskState.RUNNING,), TaskState.CANCELLED)


def _allows(patterns: Sequence[str], agent: str) -> bool:
    """Whether the document's list names the agent, outright or by a pattern."""
    known = RESOURCE_NAME.fullmatch(agent) is not None
    return known and any(fnmatchcase(agent, pattern) for pattern in patterns)


def _files(inputs: Any, most: int) -> dict[str, bytes]:
    """The files to hand over, by their place in the workspace. Raises Denied."""
    if not isinstance(inputs, dict):
        raise Denied("request", "inputs are files: their paths, each with its text")
    if len(inputs) > _FILES_MAX:
        raise Denied("request", f"a task gets at most {_FILES_MAX:,} files")
    files: dict[str, bytes] = {}
    for name, text in inputs.items():
        place = str(PurePosixPath(name))
        if not fits_workspace(name) or place in files:
            raise Denied("request", f"the input {name!r:.80} cannot stand in a workspace, or is there twice")
        if not isinstance(text, str):
            raise Denied("request", f"the input {name!r:.80} is no text")
        files[place] = text.encode("utf-8", "surrogatepass")
    if found := collisions(files):
        raise Denied("request", found[0][:300])
    if sum(map(len, files.values())) > most:
        raise Denied("request", f"the inputs have more than {most:,} bytes, which the workspace has room for")
    return dict(sorted(files.items()))
