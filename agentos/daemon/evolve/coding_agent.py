"""Runs programs that edit files, such as coding agents: the way of any black-box agent, without a task.

Implements ``coding_agent.AgentRunner`` of the proposers. The box has no network and no host files; the models, by the forwarder
on its loopback and the gateway behind it, are the only way out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.run_requests import RunSpending
from agentos.daemon.run.conversation import BoxResult, Conversation, PreparedRun
from agentos.domain import (
    Cost,
    Effect,
    Json,
    KernelFault,
    Limits,
    ModelSpec,
    Result,
    Snapshot,
    Step,
    Task,
    kernel_fault,
)
from agentos.errors import BoxDied, NotFound, Unavailable
from agentos.evolver.history.recordings import packed
from agentos.ports import Blobs, Models, Plan, Sandbox
from agentos.proposers.coding_agent import AgentJob, AgentJobResult

GONE_MAX = 3  # times in a row that a worker may vanish before that is the program's own fault
FILES_MB = 48  # of the 64 that a box has for what it is given
_PLACE = "harness/errand"  # where the worker puts what it is given
# Interpreters reserve far more address space than they use memory, so it is not limited beyond what the
# box itself does.
_ADDRESS_SPACE_MB = 1 << 20
_PRINTED = 8 << 20  # bytes of each stream
# Through a copy, so that what was taken away in the workspace shows in what is left there.
_START = """
cp -R "$1/workspace/." "$2" || exit
if [ -d "$1/program" ]; then chmod -R u+x "$1/program"; fi
shift 2
exec "$@"
"""
_DEATH = {
    "wall": "the program did not end within {seconds:g} s",
    "memory": "the program used more than {memory_mb} MB of memory",
    "output": "the program left or sent more than it may: {detail}",
    "protocol": "the box broke the protocol: {detail}",
    "killed": "the program was ended",
    "gone": "the box ended before the program, several times in a row",
}

_KIND = {
    "wall": KernelFault.TIMEOUT,
    "memory": KernelFault.MEMORY,
    "output": KernelFault.LIMIT,
    "protocol": KernelFault.PROTOCOL,
    "killed": KernelFault.KILLED,
    "gone": KernelFault.EXIT,
}


class BoxAgentRunner:
    """Thread-safe. ``spec`` finds a model by its name at a snapshot; raises NotFound."""

    def __init__(
        self,
        sandbox: Sandbox,
        models: Models,
        spec: Callable[[str, Snapshot], ModelSpec],
        blobs: Blobs,
        redact: Callable[[Json], Json] = lambda value: value,
    ) -> None:
        self._sandbox = sandbox
        self._models = models
        self._spec = spec
        self._blobs = blobs
        self._redact = redact

    def run(self, errand: AgentJob) -> AgentJobResult:
        """See ``coding_agent.AgentRunner`` of the proposers."""
        steps: list[Step] = []
        spent = RunSpending()
        started = time.monotonic()
        size = sum(map(len, (*errand.program.values(), *errand.files.values()))) >> 20
        if size > FILES_MB:
            ran = BoxResult(
                Result.FAILED,
                kernel_fault(KernelFault.LIMIT, f"its files have {size} MB, a box has room for {FILES_MB}"),
            )
        else:
            ran = self._in_boxes(self._job(errand, steps), errand, spent)
        cost = spent.onto(Cost(wall_s=time.monotonic() - started, cpu_s=ran.cpu_s))
        fault = ran.fault or kernel_fault(KernelFault.EXIT, "the program failed")
        return AgentJobResult(
            files=ran.files,
            refused=tuple(_refused(steps)),
            fault=None if ran.result is Result.PASSED else fault,
            cost=cost,
            steps_sha256=self._blobs.put(packed(steps)),
        )

    def _job(self, errand: AgentJob, steps: list[Step]) -> PreparedRun:
        budget = errand.budget
        limits = Limits(
            wall_s=budget.seconds,
            memory_mb=_ADDRESS_SPACE_MB,
            output_bytes=_PRINTED,
            workspace_mb=errand.limits.workspace_mb,
            cost_usd=budget.usd,
            tokens=budget.tokens,
            calls=budget.calls,
        )
        return PreparedRun(
            task=_task(errand, limits),
            snapshot=errand.base,
            run_id=errand.id,
            bundle=Bundle(_given(errand), _PLACE, limits, command=_command(errand)),
            inputs={},
            record=steps.append,
            plan=Plan(evolution_id=errand.evolution_id),
            redact=self._redact,
            models=self._specs(errand),
        )

    def _specs(self, errand: AgentJob) -> tuple[ModelSpec, ...]:
        """None where none is set up: a program may do without."""
        try:
            return (self._spec(errand.model, errand.base),)
        except NotFound:
            return ()

    def _in_boxes(self, job: PreparedRun, errand: AgentJob, spent: RunSpending) -> BoxResult:
        limits = replace(errand.limits, wall_s=errand.budget.seconds)
        for left in range(GONE_MAX - 1, -1, -1):
            with self._sandbox.open(limits, light=True, run=errand.id) as box:
                try:
                    answerers = {"model": model_asks(self._models, lambda asking: job.models)}
                    ran = Conversation(box, job, answerers, spent).run()
                except BoxDied as error:
                    if error.cause == "gone" and left:
                        continue
                    ran = _died(error, limits)
                return replace(ran, cpu_s=box.close().cpu_s)
        raise Unavailable("the box ended before the program")


def _died(error: BoxDied, limits: Limits) -> BoxResult:
    text = _DEATH[error.cause].format(seconds=limits.wall_s, memory_mb=limits.memory_mb, detail=error.detail)
    return BoxResult(Result.FAILED, kernel_fault(_KIND[error.cause], text, type=error.cause))


def _given(errand: AgentJob) -> Mapping[str, bytes]:
    program = {f"{_PLACE}/program/{path}": content for path, content in errand.program.items()}
    return program | {f"{_PLACE}/workspace/{path}": content for path, content in errand.files.items()}


def _command(errand: AgentJob) -> tuple[str, ...]:
    words = (word.replace("{program}", "{harness}/program") for word in errand.command)
    return ("sh", "-c", _START, "start", "{harness}", "{workspace}", *words)


def _task(errand: AgentJob, limits: Limits) -> Task:
    return Task(
        id=errand.id,
        name="an errand",
        goal="",
        call=None,
        inputs=(),
        agent="errand",
        limits=limits,
        effects=(Effect.PURE, Effect.READ, Effect.WRITE),
        checks=(),
        schedule=None,
        created_at=datetime.now(UTC),
    )


def _refused(steps: list[Step]) -> list[str]:
    """What the worker found in the workspace that is no plain file. What it says may be anything."""
    found = [
        step.observation.get("refused")
        for step in steps
        if step.node == "outputs" and isinstance(step.observation, dict)
    ]
    return [str(sentence)[:300] for said in found if isinstance(said, list) for sentence in said]
