"""Runs a task once: bundle, box, steps, grade. Implements ``ports.Executor``.

Every way in which a run can end is mapped here to an ``Outcome``, except those that say nothing of
the task: then ``Unavailable`` is raised and the run is void.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256

from agentos.checks import DETAIL_MAX, compared
from agentos.daemon.job.bundle import Bundle, Mismatch, Tools, asked_host, bundle_of, with_default
from agentos.daemon.job.selection import Finder
from agentos.daemon.requests.enforcement import SupervisorPlan
from agentos.daemon.requests.run_requests import Answerers, RunSpending
from agentos.daemon.run.conversation import BoxResult, Conversation, PreparedRun
from agentos.daemon.run.trial_execution import drift
from agentos.domain import (
    Budget,
    Check,
    CheckResult,
    Cost,
    Fault,
    Json,
    KernelFault,
    Kind,
    Limits,
    ModelSpec,
    Outcome,
    Result,
    Snapshot,
    Step,
    Task,
    digest,
    kernel_fault,
)
from agentos.errors import BoxDied, NotFound, Unavailable
from agentos.messages import WHEELS, FaultFrame, GradeDone, GradeJob, ToolCard
from agentos.plugins.checks import sent
from agentos.ports import Attempt, Blobs, Box, Place, Placement, Places, Plan, Sandbox
from agentos.sandboxes.box import Exchange, stood_still
from agentos.sandboxes.choice import PlacesHere
from agentos.sandboxes.plainfiles import write_tar
from agentos.wire import shorten

GONE_MAX = 3  # times in a row that a worker may vanish before that is the task's own fault

_DEATH = {
    "wall": (Result.TIMEOUT, KernelFault.TIMEOUT, "the run did not end within {job.wall_s:g} s"),
    "memory": (
        Result.BUDGET,
        KernelFault.MEMORY,
        "the run used more than {job.limits.memory_mb} MB of memory",
    ),
    "output": (Result.BUDGET, KernelFault.LIMIT, "the run sent more than it may: {detail}"),
    "protocol": (Result.FAILED, KernelFault.PROTOCOL, "the worker broke the protocol: {detail}"),
    "killed": (Result.CANCELLED, KernelFault.KILLED, "the run was cancelled"),
    "gone": (
        Result.FAILED,
        KernelFault.EXIT,
        "the worker's process ended before its job, several times in a row",
    ),
}


_NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class RunServices:
    """What a run is served with beside its bundle. The defaults serve a run that asks for nothing."""

    models: Callable[[Bundle, Snapshot], tuple[ModelSpec, ...]] = lambda bundle, snapshot: ()
    cards: Callable[[Bundle], tuple[ToolCard, ...]] = lambda bundle: ()
    finder: Finder | None = None  # chooses what a task without a call gets; None: all that is allowed
    budget: Budget = _NO_BUDGET  # of model calls, for runs whose task, agent and environment set none
    redact: Callable[[Json], Json] = lambda value: value  # keeps secrets out of steps and answers
    answerers: Answerers = field(default_factory=dict)
    supervised: Callable[[Task, Snapshot], SupervisorPlan | None] = lambda task, snapshot: None


@dataclass(frozen=True, slots=True)
class _AskedRun:
    """What ``execute`` was asked for."""

    task: Task
    snapshot: Snapshot
    run_id: str
    on_step: Callable[[Step], None] | None
    plan: Plan


class BoxExecutor:
    """Implements ``ports.Executor``. Thread-safe: any number of runs at a time."""

    def __init__(
        self,
        registry: Tools,
        blobs: Blobs,
        sandbox: Sandbox,
        places: Places | None = None,
        serving: RunServices | None = None,
    ) -> None:
        self._registry = registry
        self._blobs = blobs
        self._places = places or PlacesHere(sandbox)
        self._serving = serving or RunServices()
        self._lock = threading.Lock()
        self._open: dict[str, Box] = {}
        self._cancelled: set[str] = set()
        self._gone: Counter[tuple[str, str]] = Counter()

    def place(self, task: Task, snapshot: Snapshot) -> Sandbox:
        """The sandbox that a run of the task would get, started. Raises Unavailable."""
        with self._places.place(self._placement(task, snapshot, Plan())) as place:
            return place.sandbox

    def _placement(self, task: Task, snapshot: Snapshot, plan: Plan) -> Placement:
        asked, labels = asked_host(self._registry, task, snapshot)
        memory_mb = task.limits.memory_mb + task.limits.workspace_mb
        return Placement(asked, plan.prefer, memory_mb, labels, plan.pair, plan.avoid)

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        """Run once and grade; see ``ports.Executor``."""
        asked = _AskedRun(task, snapshot, run_id, on_step, plan or Plan())
        with self._places.place(self._placement(task, snapshot, asked.plan)) as place:
            return self._execute(place, asked)

    def _execute(self, place: Place, asked: _AskedRun) -> Attempt:
        task, snapshot, sandbox = asked.task, asked.snapshot, place.sandbox
        steps: list[Step] = []
        started = time.monotonic()
        workspace_mb = task.limits.workspace_mb
        spent = RunSpending()
        drifted: tuple[str, ...] = ()
        given = ""
        try:
            bundle = self._bundle(task, snapshot)
            given = self._digest(task, snapshot, bundle)
            workspace_mb = bundle.limits.workspace_mb
            job = PreparedRun(
                task,
                snapshot,
                asked.run_id,
                bundle,
                self._inputs(task),
                asked.on_step or steps.append,
                asked.plan,
                self._serving.redact,
            )
            if task.call is None:
                job = replace(
                    job,
                    models=self._serving.models(bundle, snapshot),
                    cards=self._serving.cards(bundle),
                    supervised=self._serving.supervised(task, snapshot),
                )
            ran = self._in_a_box(sandbox, job, spent)
            if asked.plan.recording is not None and not asked.plan.resume:
                drifted = drift(self._registry, bundle, asked.plan.recording, steps)
        except Mismatch as error:
            ran = BoxResult(Result.FAILED, error.fault)
        graded = Grade(())
        if ran.result is Result.PASSED:
            graded = grade(sandbox, (*task.checks, *bundle.checks), ran.answer, ran.files, workspace_mb)
        cost = spent.onto(Cost(wall_s=time.monotonic() - started, cpu_s=ran.cpu_s))
        return Attempt(
            outcome=_outcome(ran, graded, cost),
            answer=ran.answer,
            answer_sha256=digest(ran.answer),
            steps=tuple(steps),
            resources=tuple(sorted({*ran.resources, *spent.resources})),
            sandbox=sandbox.name,
            level=sandbox.level,
            files=ran.files,
            drift=drifted,
            memory_mb=ran.memory_mb,
            image=sandbox.image,
            bundle=given,
            reached=ran.reached,
            plugins=self._plugins(task, place, graded),
            host=place.host,
        )

    def _plugins(self, task: Task, place: Place, graded: Grade) -> tuple[str, ...]:
        """Labels of what judged it, made its box, and ranked for it."""
        found = {f"checks/{check.plugin}" for check in graded.checks if check.plugin}
        found.add(place.plugin)
        if task.call is None and self._serving.finder is not None:
            found.add(self._serving.finder.plugin)
        return tuple(sorted(found - {""}))

    def given(self, task: Task, snapshot: Snapshot) -> str:
        """See ``ports.Executor``; "" of a task that does not fit the snapshot."""
        try:
            return self._digest(task, snapshot, self._bundle(task, snapshot))
        except Mismatch:
            return ""

    def _bundle(self, task: Task, snapshot: Snapshot) -> Bundle:
        bundle = bundle_of(self._registry, task, snapshot, self._serving.finder)
        return replace(bundle, limits=with_default(bundle.limits, self._serving.budget))

    def _digest(self, task: Task, snapshot: Snapshot, bundle: Bundle) -> str:
        """The files of the bundle, and what a run is told or can ask for beside them."""
        files = {
            path: sha256(content).hexdigest()
            for path, content in bundle.files.items()
            if f"/{WHEELS}/" not in path  # they follow from the locks, which are among the files
        }
        more: dict[str, Json] = {}
        if task.call is None:
            more["models"] = [asdict(spec) for spec in self._serving.models(bundle, snapshot)]
            memories = self._registry.files(snapshot, Kind.MEMORY.value)  # it may search all of them
            more["memories"] = {path: sha256(content).hexdigest() for path, content in memories.items()}
            if bundle.agent.get("agents"):  # whom it hands work to gets bundles of its own
                more["tree"] = snapshot.tree
            if bundle.more_skills:  # it may search all of them
                digests = self._registry.digests(snapshot)
                more["skills"] = {str(item): own for item, own in digests.items() if item.kind is Kind.SKILL}
        if bundle.rules:
            more["rules"] = {rule.name: rule.digest for rule in bundle.rules}
        return digest([files, bundle.harness, bundle.limits, dict(bundle.agent), bundle.command, more])

    def cancel(self, run_id: str) -> None:
        """Kill the run's box: its ``execute`` returns a cancelled attempt. Unknown ids are ignored."""
        with self._lock:
            box = self._open.get(run_id)
            if box is None:
                return
            self._cancelled.add(run_id)
        box.close()

    def _inputs(self, task: Task) -> dict[str, bytes]:
        try:
            return {file.path: self._blobs.get(file.sha256) for file in task.inputs}
        except NotFound as error:
            raise Unavailable(f"an input of {task.id} is gone: {error}") from None

    def _in_a_box(self, sandbox: Sandbox, job: PreparedRun, spent: RunSpending) -> BoxResult:
        with sandbox.open(job.limits, run=job.run_id) as box:
            with self._lock:
                self._open[job.run_id] = box
            began = time.monotonic()
            try:
                ran = Conversation(box, job, self._serving.answerers, spent).run()
                self._gone.pop((job.task.id, job.snapshot.tree), None)
            except BoxDied as error:
                ran = self._died(job, error)
            finally:
                with self._lock:
                    self._open.pop(job.run_id, None)
                    self._cancelled.discard(job.run_id)
            used = box.close()
            # Its limits are of time in which it could run.
            if ran.fault and ran.fault.type == KernelFault.TIMEOUT and (still := stood_still(began)):
                raise Unavailable(f"the daemon stood still for {still:.0f} s during this run")
            return replace(ran, cpu_s=used.cpu_s, memory_mb=used.memory_peak_mb)

    def _died(self, job: PreparedRun, error: BoxDied) -> BoxResult:
        """A dead box as what it says of the task; raises it when it says nothing of the task."""
        key = (job.task.id, job.snapshot.tree)
        cause = "killed" if job.run_id in self._cancelled else error.cause
        if cause == "gone":
            self._gone[key] += 1
            if self._gone[key] < GONE_MAX:
                raise error
        self._gone.pop(key, None)
        result, kind, text = _DEATH[cause]
        fault = kernel_fault(kind, text.format(job=job, detail=error.detail))
        return BoxResult(result, fault, resources=_given(job))


def _given(job: PreparedRun) -> tuple[str, ...]:
    """What a worker that cannot say so any more may have used: all that it was given for a call."""
    if job.task.call is None:
        return ()
    return tuple(sorted(job.bundle.resources))


def _outcome(ran: BoxResult, graded: Grade, cost: Cost) -> Outcome:
    """What the run and its grade mean together: an answer counts only if every check passes."""
    if ran.result is not Result.PASSED:
        reason = _reason(ran.fault) if ran.fault else "the harness gave no answer"
        return Outcome(ran.result, 0.0, reason, ran.fault, cost=cost)
    wrong = [check for check in graded.checks if not check.passed]
    if not wrong:
        return Outcome(Result.PASSED, 1.0, "", checks=graded.checks, cost=cost)
    details = "; ".join(f"{check.kind}: {check.detail}" for check in wrong)
    reason = f"{len(wrong)} of {len(graded.checks)} checks failed: {details}"
    fault = graded.fault or kernel_fault(KernelFault.CHECK, details)
    return Outcome(Result.FAILED, graded.score, reason, fault, graded.checks, cost)


def _reason(fault: Fault) -> str:
    """Its message, which of some exceptions says nothing without their class: ``'month'``, or nothing at all."""
    message = fault.message.rstrip()
    if message.endswith(":") or not message:
        return f"{message} {fault.type}".lstrip()
    return f"{fault.type}: {message}" if fault.type == "KeyError" else message


# --- Success is decided here: outside of the run's box, by checks that it never saw --------------


GRADING_LIMITS = Limits(steps=1, wall_s=30.0, memory_mb=512, processes=32)


@dataclass(frozen=True, slots=True)
class Grade:
    """One result for each check; ``fault`` when a check itself could not be applied."""

    checks: tuple[CheckResult, ...]
    fault: Fault | None = None

    @property
    def score(self) -> float:
        """The share of checks passed; without checks, an answer is enough."""
        passed = sum(check.passed for check in self.checks)
        return passed / len(self.checks) if self.checks else 1.0


def graded_by(
    sandbox: Sandbox,
) -> Callable[[Task, Json, Mapping[str, bytes]], Sequence[CheckResult]]:
    """Holds an answer against the checks of its task, in a box of its own."""

    def graded(task: Task, answer: Json, files: Mapping[str, bytes]) -> Sequence[CheckResult]:
        return grade(sandbox, task.checks, answer, files, task.limits.workspace_mb).checks

    return graded


def grade(
    sandbox: Sandbox, checks: Sequence[Check], answer: Json, files: Mapping[str, bytes], workspace_mb: int
) -> Grade:
    """Hold the answer and the files that a run left against the checks.

    Raises Unavailable when the machinery failed. A check that takes too long or too much fails. Where all of them only
    compare small values, no box is made: nothing in them runs (docs/decisions/compared-here.md).
    """
    reasons = [compared(check.kind, check.spec, answer) for check in checks]
    if None not in reasons:
        pairs = zip(checks, reasons, strict=True)
        return Grade(
            tuple(CheckResult(check.kind, not why, shorten(why or "", DETAIL_MAX)) for check, why in pairs)
        )
    asked = sent(checks)
    job = GradeJob(checks=list(asked.wire), answer=answer, wall_s=GRADING_LIMITS.wall_s)
    limits = Limits(
        **{name: getattr(GRADING_LIMITS, name) for name in Limits.__slots__} | {"workspace_mb": workspace_mb}
    )
    with sandbox.open(limits, light=True) as box:
        exchange = Exchange(box, GRADING_LIMITS.wall_s)
        try:
            exchange.send(job, [write_tar(files)])
            answered, _ = exchange.receive({"done": GradeDone})
        except BoxDied as error:
            if error.cause == "gone":
                raise
            return _failed(
                checks, kernel_fault(KernelFault.GRADER, f"the checks could not be applied: {error}")
            )
    if isinstance(answered, FaultFrame):
        return _failed(
            checks,
            kernel_fault(KernelFault.GRADER, f"the checks could not be applied: {answered.fault.message}"),
        )
    assert isinstance(answered, GradeDone)
    if [found.kind for found in answered.checks] != [check.kind for check in asked.wire]:
        return _failed(
            checks, kernel_fault(KernelFault.GRADER, "the grader answered for other checks than it was given")
        )
    return Grade(asked.results(answered.checks))


def _failed(checks: Sequence[Check], fault: Fault) -> Grade:
    return Grade(tuple(CheckResult(check.kind, False, fault.message) for check in checks), fault)
