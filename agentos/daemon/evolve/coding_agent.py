"""Runs programs that edit files, such as coding agents: the way of any black-box agent, without a task.

Implements ``coding_agent.AgentRunner`` of the proposers. The box has no network and no host files; the models, by the forwarder
on its loopback and the gateway behind it, are the only way out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.requests.model_requests import model_asks
from agentos.daemon.requests.run_requests import RunSpending
from agentos.daemon.run.conversation import BoxResult, Conversation, PreparedRun
from agentos.domain import (
    Cost,
    Effect,
    Json,
    KernelFault,
    Layer,
    Limits,
    ModelSpec,
    Result,
    Snapshot,
    Step,
    Task,
    kernel_fault,
)
from agentos.errors import BoxDied, NotFound, Unavailable, UserError
from agentos.evolver.history.recordings import packed
from agentos.home import Home
from agentos.ports import Audit, Blobs, Models, Plan, Proposer, Sandbox
from agentos.proposers.coders import AgentJob, AgentJobResult, AgentRunner, load_coders
from agentos.proposers.command import CommandProposer
from agentos.shipped import folder

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


# --- The coding agent that proposes, as the home's ``coders.toml`` says; part of the composition


def with_coder(
    proposers: Mapping[Layer, tuple[Proposer, ...]], home: Home, workshop: AgentRunner, audit: Audit
) -> Mapping[Layer, tuple[Proposer, ...]]:
    """The proposers, and after them the coder in its layers, where one is chosen.

    Raises UserError when the home's document, or what it names, does not fit.
    """
    coders = load_coders(folder("evolver") / "coders.toml", home.root / "coders.toml")
    coder = coders.chosen
    if coder is None:
        return proposers
    program = dict(_files(home.root / coder.program)) if coder.program else {}
    proposer = CommandProposer(coders, coder, program, workshop, audit)
    asked = {layer: (*proposers.get(layer, ()), proposer) for layer in coders.layers}
    return {**proposers, **asked}


def _files(place: Path) -> Iterator[tuple[str, bytes]]:
    """Plain files below ``place``; links are left out, as a box could not follow them."""
    if not place.is_dir():
        raise UserError(f"coders.toml names the directory {place} as a coder's program, and there is none")
    room = FILES_MB << 20
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_symlink():
            room -= path.stat().st_size
            if room < 0:
                raise UserError(
                    f"{place} holds more than the {FILES_MB} MB that a box has room for: install the program "
                    "where boxes see it, see docs/understand/proposers.md"
                )
            yield path.relative_to(place).as_posix(), path.read_bytes()
