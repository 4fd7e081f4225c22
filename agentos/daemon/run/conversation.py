"""One run in one box: the job goes in, steps and asks come out, until the worker says how it ended."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.requests.enforcement import (
    HAD,
    NODE,
    Enforcer,
    RuleChecks,
    Supervision,
    SupervisorPlan,
)
from agentos.daemon.requests.overseer import Overseer
from agentos.daemon.requests.run_requests import (
    Answerers,
    RequestDispatcher,
    RequestHandler,
    RunContext,
    RunEnds,
    RunSpending,
    ToolAsks,
)
from agentos.domain import (
    Fault,
    Json,
    KernelFault,
    Kind,
    Limits,
    ModelSpec,
    Origin,
    Result,
    Snapshot,
    Step,
    Task,
    box_fault,
    digest,
    kernel_fault,
)
from agentos.errors import BoxDied, UserError
from agentos.evolver.history.recordings import ACT
from agentos.messages import (
    Answer,
    Ask,
    FaultFrame,
    ModelCard,
    RunDone,
    RunJob,
    StepFrame,
    ToolCard,
    WireFault,
)
from agentos.ports import Box, Plan
from agentos.resources import tool_path
from agentos.resources.declarations import declared
from agentos.rules.watching import RunRules
from agentos.sandboxes.box import Exchange
from agentos.sandboxes.plainfiles import FileLimits, read_tar
from agentos.supervisor.watching import NODE as SUPERVISOR
from agentos.syntax import LABEL_MAX
from agentos.wire import weigh

_RESULT = {"answered": Result.PASSED, "failed": Result.FAILED, "limit": Result.BUDGET}
# What only the kernel sees happen; a box that could write such steps could make up its own record.
KERNEL_NODES = frozenset(
    {
        "model",
        "external",
        "fetch",
        "person",
        "delegate",
        "recall",
        "remember",
        "skills",
        NODE,
        HAD,
        SUPERVISOR,
    }
)
_ANSWER_S = 30.0  # until a worker has to have taken an answer
# What a run may send in all, and what its steps may hold of the kernel's memory: so often what one output may hold
_SENT_MAX, _HELD_MAX = 512, 64


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """One run to do."""

    task: Task
    snapshot: Snapshot
    run_id: str
    bundle: Bundle
    inputs: Mapping[str, bytes]
    record: Callable[[Step], None]
    plan: Plan
    redact: Callable[[Json], Json] = lambda value: value
    models: tuple[ModelSpec, ...] = ()
    cards: tuple[ToolCard, ...] = ()
    supervised: SupervisorPlan | None = None

    @property
    def limits(self) -> Limits:
        """What the run may use."""
        return self.bundle.limits

    @property
    def wall_s(self) -> float:
        """When it is ended."""
        return min(self.limits.wall_s, self.plan.wall_s or self.limits.wall_s)


@dataclass(frozen=True, slots=True)
class BoxResult:
    """What came out of the run's box."""

    result: Result
    fault: Fault | None = None
    answer: Json = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    cpu_s: float = 0.0
    memory_mb: float = 0.0
    reached: tuple[str, ...] = ()  # functions of evolvable code that were entered, as the box says


class Conversation:
    """Drives one run in its box; adds to ``spent`` what its model calls use."""

    def __init__(self, box: Box, job: PreparedRun, answerers: Answerers, spent: RunSpending) -> None:
        self._job = job
        self._exchange = Exchange(box, job.wall_s, _SENT_MAX * job.limits.output_bytes)
        self._room = _HELD_MAX * job.limits.output_bytes
        self._sending = threading.Lock()
        self._recording = threading.Lock()
        self._count = 0
        self._supervision = self._supervised(job)
        self._rules = self._held_to(job)
        asking = RunContext(
            run_id=job.run_id,
            task=job.task,
            snapshot=job.snapshot,
            plan=job.plan,
            bundle=job.bundle,
            deadline=time.monotonic() + job.wall_s,
            step=self._saw,
            spent=spent,
            redact=job.redact,
            rules=self._rules,
        )
        # A tool call is announced whatever a run is made for, so somebody always answers that.
        answerers = {"tool": ToolAsks, **answerers}
        self._desk = RequestDispatcher(asking, answerers, self._answer, box.close)
        if self._supervision is not None and job.supervised is not None and job.supervised.overseer:
            self._supervision.overseer = Overseer(job.supervised.overseer, asking)

    def run(self) -> BoxResult:
        """To the run's end. Raises BoxDied, or what an ask ended the run with."""
        job = self._job
        try:
            if self._rules is not None:
                self._rules.begin()
            self._exchange.send(message_of(job), [*job.bundle.files.values(), *job.inputs.values()])
            return self._listen()
        except RunEnds as end:
            return BoxResult(end.result, end.fault)
        except BoxDied:
            if isinstance(self._desk.ending, RunEnds):
                return BoxResult(self._desk.ending.result, self._desk.ending.fault)
            if self._desk.ending is not None:
                raise self._desk.ending from None
            raise
        finally:
            if self._supervision is not None:
                self._supervision.close()
            self._desk.close()

    def _listen(self) -> BoxResult:
        limits = self._job.limits
        steps = 0
        kinds: dict[str, type[BaseModel]] = {"step": StepFrame, "ask": Ask, "done": RunDone}
        while steps <= limits.steps:
            message, blobs = self._exchange.receive(kinds)
            if isinstance(message, StepFrame):
                if message.node in KERNEL_NODES:
                    raise self._exchange.broken(f"a step '{message.node}' is for the kernel alone to record")
                steps += 1
                self._exchange.measure(message.action, limits.output_bytes, "an action")
                self._exchange.measure(message.observation, limits.output_bytes, "an observation")
                step = self._record(message, self._exchange.weight)
                if self._rules is not None:
                    self._rules.saw(step)
            elif isinstance(message, Ask):
                self._desk.take(message, self._exchange.weight)
            elif isinstance(message, FaultFrame):
                return BoxResult(Result.FAILED, self._fault(message.fault))
            else:
                assert isinstance(message, RunDone)
                return self._done(message, blobs)
        return BoxResult(
            Result.BUDGET, kernel_fault(KernelFault.LIMIT, f"the run made more than {limits.steps} steps")
        )

    def _done(self, message: RunDone, blobs: tuple[bytes, ...]) -> BoxResult:
        limits = self._job.limits
        self._exchange.measure(message.answer, limits.output_bytes, "the answer")
        late = message.fault is not None and message.fault.type == "timeout"
        most = FileLimits(total_bytes=limits.workspace_mb << 20)
        files = read_tar(blobs[0], most).files if blobs else {}
        if self._rules is not None and message.finished == "answered":
            self._rules.answer(message.answer, files)
        return BoxResult(
            result=Result.TIMEOUT if late else _RESULT[message.finished],
            fault=self._end_fault(message.fault),
            answer=self._job.redact(message.answer),
            files=files,
            resources=self._used(message.resources),
            reached=tuple(label[:LABEL_MAX] for label in message.reached),
        )

    def _used(self, said: Iterable[str]) -> tuple[str, ...]:
        """What a box says, of what it was given: it cannot hide what drives it, nor name what others are judged by."""
        job = self._job
        driving = {f"{Kind.AGENT}/{job.task.agent}", "/".join(job.bundle.harness.split("/")[:2])}
        return tuple(sorted(job.bundle.resources & {*said, *driving}))

    def _held_to(self, job: PreparedRun) -> RuleChecks | None:
        if not job.bundle.rules and self._supervision is None:
            return None
        rules = RunRules(job.bundle.rules, job.task.agent, job.task.goal)
        return RuleChecks(rules, self._saw, self._person, self._effects, self._supervision, job.redact)

    def _supervised(self, job: PreparedRun) -> Supervision | None:
        if job.supervised is None:
            return None
        enforcer = Enforcer(KernelFault.SUPERVISOR, self._person)
        return Supervision(job.supervised, self._saw, enforcer, lambda error: self._desk.end(error))

    def _effects(self, tool: str) -> frozenset[str]:
        """As the kernel reads them in the tool's source; none of a tool that the run does not have."""
        files = self._job.bundle.files
        try:
            path = tool_path(tool, files)
        except UserError:
            return frozenset()
        return declared(path, files[path]).effects

    def _person(self) -> RequestHandler | None:
        return self._desk.answerer("person")

    def _answer(self, answer: Answer) -> None:
        with self._sending:
            self._exchange.reply(answer, _ANSWER_S)

    def _fault(self, fault: WireFault | None) -> Fault | None:
        found = fault_of(fault)
        return found and replace(found, message=self._job.redact(found.message))

    def _end_fault(self, fault: WireFault | None) -> Fault | None:
        """As whose fault the run ended. That no model is set up the kernel says only where it knows so itself."""
        found = self._fault(fault)
        lacking = self._job.task.call is None and not self._job.models
        if found is None or not lacking or found.origin is not Origin.HARNESS or found.resource:
            return found
        is_said = found.type == KernelFault.NO_MODEL
        return kernel_fault(KernelFault.NO_MODEL, found.message) if is_said else found

    def _saw(self, node: str, action: Json, observation: Json, duration_ms: float) -> Step:
        """Record what the kernel itself saw: the nodes of ``KERNEL_NODES``."""
        frame = StepFrame(node=node, action=action, observation=observation, duration_ms=duration_ms)
        return self._record(frame, weigh(json.dumps([action, observation]).encode()))

    def _record(self, frame: StepFrame, weight: int) -> Step:
        """Raises RunEnds when the run's steps hold all that they may."""
        with self._recording:
            self._room -= weight
            if self._room < 0:
                why = (
                    f"the steps of the run hold more than {_HELD_MAX * self._job.limits.output_bytes:,} bytes"
                )
                raise RunEnds(Result.BUDGET, kernel_fault(KernelFault.LIMIT, why))
            action, observation = self._job.redact([frame.action, frame.observation])
            step = Step(
                run_id=self._job.run_id,
                index=self._count,
                node=frame.node,
                action=action,
                observation=observation,
                fault=self._fault(frame.fault),
                started_at=datetime.now(UTC) - timedelta(milliseconds=min(frame.duration_ms, 1e9)),
                duration_ms=frame.duration_ms,
            )
            self._count += 1
            if self._was_served(step):
                step = replace(step, observation={**step.observation, "recorded": True})
            self._job.record(step)
            if self._rules is not None:
                self._rules.rules.saw(step)
            if self._supervision is not None:
                self._supervision.saw(step)
            return step

    def _was_served(self, step: Step) -> bool:
        tools = self._desk.answerer("tool") if step.node == ACT else None
        return isinstance(tools, ToolAsks) and tools.was_served(step)


def wire_run_id(run_id: str) -> str:
    """The run's id as the code inside knows it: a trial's own would tell that it is being replayed."""
    return digest([run_id])[:16]


def message_of(job: PreparedRun) -> RunJob:
    """The job as the worker gets it."""
    task, limits = job.task, job.limits
    return RunJob(
        run_id=wire_run_id(job.run_id),
        goal=task.goal,
        call={"tool": task.call.tool, "args": dict(task.call.args)} if task.call else None,
        agent=task.agent,
        effects=[effect.value for effect in task.effects],
        max_steps=limits.steps,
        max_calls=limits.calls,
        max_tokens=limits.tokens,
        # a tool that hangs is to be told by the worker, which knows where it hung
        tool_wall_s=max(0.8 * limits.wall_s, limits.wall_s - 1.0),
        output_bytes=limits.output_bytes,
        memory_mb=limits.memory_mb,
        harness=job.bundle.harness,
        command=list(job.bundle.command) or None,
        more_skills=job.bundle.more_skills,
        files=list(job.bundle.files),
        inputs=list(job.inputs),
        cards=list(job.cards),
        models=[ModelCard(name=spec.name, context_tokens=spec.context_tokens) for spec in job.models],
    )


def fault_of(fault: WireFault | None) -> Fault | None:
    """The record of a fault that came over the wire."""
    return box_fault(fault.type, fault.message, fault.where, fault.resource) if fault else None
