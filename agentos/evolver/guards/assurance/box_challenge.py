"""A question to a fresh box, whose answer nobody can give who does not run in that box.

The box is asked through its harness to call a tool that the kernel brings along under a name drawn
for it. The tool reads what stands in the box and gives it back with the word that was drawn for this
start. So an answer that was made earlier, or elsewhere, or by heart, is told from a true one.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Call, Effect, Json, Limits, ResourceId, Result, Snapshot, Step, Task, new_id
from agentos.errors import ModelAway, Unavailable
from agentos.evolver.guards.assurance import ChallengeContext
from agentos.ports import Attempt, Executor, Plan

VOID = frozenset({Result.INFRA, Result.CANCELLED})
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TOOL = '''"""Says where it runs."""

import hashlib
import pathlib

from pydantic import BaseModel

TOOL = {{"name": "{name}", "description": "Says where it runs.", "effects": ["read"]}}


class Input(BaseModel):
    boot: str
    resources: list[str]


class Output(BaseModel):
    boot: str
    digests: dict[str, str]


def run(input: Input) -> Output:
    root = pathlib.Path(__file__).resolve().parents[2]
    digests = {{}}
    for resource in input.resources:
        found = {{
            path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (root / resource).rglob("*")
            if path.is_file()
        }}
        lines = "".join(f"{{path}}\\n{{found[path]}}\\n" for path in sorted(found))
        digests[resource] = hashlib.sha256(lines.encode()).hexdigest()
    return Output(boot=input.boot, digests=digests)
'''


@dataclass(frozen=True, slots=True)
class BoxReport:
    """What one box said of itself. ``fault``: why it counts for nothing, "" when it counts."""

    boot: str
    fault: str
    start_s: float  # from the order to the harness' first step; 0.0 when there was none
    memory_mb: float
    took_s: float
    late: bool  # the fault is that its time was over


def ask(
    parts: ChallengeContext, snapshot: Snapshot, agent: ResourceId, below: Sequence[ResourceId]
) -> BoxReport:
    """Open a box of the snapshot for the agent, and hear from it what it runs.

    ``below`` are the resources that the agent stands on. Raises Unavailable when the machinery failed.
    """
    resources = [str(name) for name in (agent, *below)]
    boot = new_id("boot")
    name = "".join(random.choices(_LETTERS, k=8))  # noqa: S311 - only not to be foreseen by an edit
    task = Task(
        id=f"task-{boot}",
        name="probe",
        goal="Say where you run.",
        call=Call(name, {"boot": boot, "resources": resources}),
        inputs=(),
        agent=agent.name,
        limits=Limits(steps=30, wall_s=parts.policy.probe.run_s),
        effects=(Effect.READ,),
        checks=(),
        schedule=None,
        created_at=parts.now(),
    )
    heard: list[Step] = []
    started: list[float] = []

    def hear(step: Step) -> None:
        if heard and step.index <= heard[-1].index:  # another box: the one before was lost
            heard.clear()
        heard.append(step)
        started.append(time.monotonic())

    tool = {f"tool/{name}/tool.py": _TOOL.format(name=name).encode()}
    executor = RetryingExecutor(parts.executor_with(tool, frozenset()), parts.policy.replay.infra_retries)
    began = time.monotonic()
    attempt = executor.execute(task, snapshot, f"run-{boot}", hear)
    digests = {name: content_sha256(parts.snapshots.files(snapshot, name)) for name in resources}
    fault = _fault(attempt, heard, task, {"boot": boot, "digests": digests})
    start_s = started[0] - began if started else 0.0
    late = attempt.outcome.result is Result.TIMEOUT
    return BoxReport(boot, fault, start_s, attempt.memory_mb, time.monotonic() - began, late)


def _fault(attempt: Attempt, steps: Sequence[Step], task: Task, right: Mapping[str, Json]) -> str:
    outcome, answer = attempt.outcome, attempt.answer
    if outcome.result is not Result.PASSED:
        return f"it did not bring a call to its end ({outcome.result.value}: {outcome.reason[:300]})"
    if not isinstance(answer, dict) or answer.get("boot") != right["boot"]:
        return f"it answered for another start than this one: {json.dumps(answer)[:200]}"
    if answer != right:
        return f"it answered for another content than it was given: {json.dumps(answer)[:300]}"
    assert task.call is not None
    calls = [step.action for step in steps if step.node == "act" and step.fault is None]
    if not any(_is(action, task.call) for action in calls):
        return "it answered without having looked"
    return ""


def _is(action: Json, call: Call) -> bool:
    return isinstance(action, dict) and (action.get("tool"), action.get("args")) == (call.tool, call.args)


def content_sha256(files: Mapping[str, bytes]) -> str:
    """As the tool finds it in the box."""
    lines = (f"{path}\n{hashlib.sha256(files[path]).hexdigest()}\n" for path in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RetryingExecutor:
    """An executor that tries again what the machinery lost.

    A harness that kills its own box looks like that too; lost often enough, it is the harness' fault.
    """

    executor: Executor
    times: int

    def given(self, task: Task, snapshot: Snapshot) -> str:
        """See ports.Executor."""
        return self.executor.given(task, snapshot)

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        """See ports.Executor; Unavailable when it was lost each time."""
        why = ""
        for _ in range(max(1, self.times)):
            try:
                done = self.executor.execute(task, snapshot, run_id, on_step, plan)
            except ModelAway:
                raise
            except Unavailable as error:
                why = str(error)
                continue
            if done.outcome.result not in VOID:
                return done
            why = done.outcome.reason
        raise Unavailable(f"the probe's run of {task.name} was lost: {why}")
