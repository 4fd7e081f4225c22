"""What every harness must do, tried on a candidate by tasks and tools that it has never seen.

The suite belongs to the kernel: it is in no registry, and its names and values are new each time, so that
no candidate can be written to fit. It needs no model: that there is none is part of what is tried.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agentos.domain import (
    Call,
    Effect,
    Json,
    Kind,
    Limits,
    ResourceId,
    Result,
    Snapshot,
    Step,
    Task,
    content_sha256,
    new_id,
)
from agentos.errors import ModelAway, Unavailable
from agentos.evolver.guards.assurance import ChallengeContext
from agentos.ports import Attempt, Executor, Plan, Replayer

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LIMITS = Limits(steps=30, wall_s=30.0, output_bytes=64 << 10)
_PROGRAM = Limits(steps=30, wall_s=15.0)
_LARGE = 20_000  # characters: more than any prompt would show, less than the limit

_TOOL = '''"""Answers."""

from pydantic import BaseModel

TOOL = {{"name": "{name}", "description": "Answers.", "effects": {effects}}}


class Input(BaseModel):
    text: str = ""


class Output(BaseModel):
    {field}


def run(input: Input) -> Output:
    {body}
'''


@dataclass(frozen=True, slots=True)
class Clause:
    """One task and what a harness has to make of it: ``fault`` says what it did instead, or ""."""

    says: str
    task: Task
    fault: Callable[[Attempt], str]


@dataclass(frozen=True, slots=True)
class Suite:
    """``files`` have to stand beside the candidate's (see Overlay) in what the executor reads."""

    files: Mapping[str, bytes]
    clauses: tuple[Clause, ...]


def suite(harness: ResourceId, chance: random.Random, now: datetime) -> Suite:
    """The clauses for this harness, with names and values drawn by ``chance``."""
    words = iter(_words(chance, 9))
    agent, told, echo, bad, nothing, large, outside, unknown = (next(words) for _ in range(8))
    files = {
        **_surroundings(harness, agent),
        **_tool(echo, "text: str", "return Output(text=input.text[::-1])"),
        **_tool(bad, "text: str", "raise LookupError(input.text)"),
        **_tool(
            nothing, "text: str | None = None\n    model_config = {'extra': 'forbid'}", "return Output()"
        ),
        **_tool(large, "text: str", f"return Output(text=input.text * {_LARGE})"),
        **_tool(outside, "text: str", "return Output(text=input.text)", effects='["external"]'),
    }

    bare = _task(agent, f"Tell about {told}", now)

    def task(name: str, call: Call | None, **limits: int) -> Task:
        return replace(bare, id=f"task-{name}", name=name, call=call, limits=replace(_LIMITS, **limits))

    value = chance.choice(_LETTERS) + "-".join(_words(chance, 2))
    calls = {name: Call(name, {"text": value}) for name in (echo, bad, nothing, outside, unknown)}
    clauses = (
        Clause(
            "a call is passed through, and its result is the answer",
            task(echo, calls[echo]),
            _echoed(echo, value),
        ),
        Clause(
            "a failed tool fails the run, with its fault",
            task(bad, calls[bad]),
            _failed(bad, "LookupError", value),
        ),
        Clause("an unknown tool fails the run", task(unknown, calls[unknown]), _ended("unknown_tool")),
        Clause(
            "a tool whose effect is not allowed is not called",
            task(outside, calls[outside]),
            _ended("effect"),
        ),
        Clause(
            "a large answer is passed on whole",
            task(large, Call(large, {"text": value[0]})),
            _answered({"text": value[0] * _LARGE}),
        ),
        Clause(
            "an answer beyond the limit fails the run",
            task(f"{large}-2", Call(large, {"text": value})),
            _ended("limit"),
        ),
        Clause("a spent step budget ends the run", task(f"{echo}-2", calls[echo], steps=2), _spent),
        Clause(
            "an answer that says nothing is not passed off as more", task(nothing, calls[nothing]), _honest
        ),
        Clause("a task that needs a model says that there is none", task(told, None), _ended("no_model")),
    )
    return Suite(files, clauses)


def program_suite(harness: ResourceId, chance: random.Random, now: datetime, *, asks: bool) -> Suite:
    """The clauses for a harness that is a program of its own: it calls no tool on demand, and no model
    answers it here. ``asks``: whether it has to ask one for what it cannot know.

    What else holds of a run (limits, the end of every process, nothing left behind) is seen to by its
    box, whatever the program does.
    """
    agent, one, other = _words(chance, 3)

    def task(word: str) -> Task:
        bare = _task(agent, f"Which word did I draw beside {word}?", now)
        return replace(bare, id=f"task-{agent}-{word}", name=f"{agent}-{word}", limits=_PROGRAM)

    clauses = [Clause("a task is brought to an end", task(one), _at_an_end)]
    if asks:
        clauses.append(
            Clause("what cannot be known is asked of a model", task(other), _ended("no_model")),
        )
    return Suite(_surroundings(harness, agent), tuple(clauses))


def violations(
    executor: Executor, snapshot: Snapshot, tried: Suite, replayer: Replayer, plan: Plan | None = None
) -> Sequence[str]:
    """The clauses that the snapshot's harness breaks, a sentence each; empty when it keeps the contract.

    ``executor`` reads a registry that has the suite's files beside the snapshot's. Raises Unavailable when the machinery failed: then nothing is known.
    """

    def broken(clause: Clause) -> str:
        attempt = executor.execute(clause.task, snapshot, f"run-{clause.task.id}", plan=plan)
        fault = clause.fault(attempt)
        return f"{clause.says}: {fault}" if fault else ""

    return [sentence for sentence in replayer.map(broken, tried.clauses) if sentence]


def _words(chance: random.Random, count: int) -> list[str]:
    """Different names that say nothing."""
    found: set[str] = set()
    while len(found) < count:
        found.add("".join(chance.choices(_LETTERS, k=8)))
    return sorted(found, key=lambda word: chance.random())


def _task(agent: str, goal: str, now: datetime) -> Task:
    return Task(
        id="",
        name="",
        goal=goal,
        call=None,
        inputs=(),
        agent=agent,
        limits=_LIMITS,
        effects=(),
        checks=(),
        schedule=None,
        created_at=now,
    )


def _surroundings(harness: ResourceId, agent: str) -> dict[str, bytes]:
    return {
        f"agent/{agent}/resource.toml": _agent(harness.name, agent),
        f"environment/{agent}/resource.toml": b'description = "A sandbox."\n',
        f"prompt/{agent}/prompt.md": b"Do what the task says.\n",
    }


def _agent(harness: str, name: str) -> bytes:
    keys = {
        "description": "An agent.",
        "harness": harness,
        "prompt": name,
        "environment": name,
        "model": name,  # there is no such model: one that is set up must not answer
        "tools": [],
        "skills": [],
        "asks": [],
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()).encode()


def _tool(name: str, field: str, body: str, effects: str = '["pure"]') -> dict[str, bytes]:
    text = _TOOL.format(name=name, field=field, body=body, effects=effects)
    return {f"{Kind.TOOL.value}/{name}/tool.py": text.encode()}


# --- what is looked at ---------------------------------------------------------------------------


def _result(attempt: Attempt, result: Result) -> str:
    outcome = attempt.outcome
    if outcome.result is result:
        return ""
    return f"expected the run to end {result.value}, and it ended {outcome.result.value} ({outcome.reason[:200]})"


def _answered(answer: Json) -> Callable[[Attempt], str]:
    def look(attempt: Attempt) -> str:
        wrong = "" if attempt.answer == answer else f"the answer is another: {str(attempt.answer)[:200]}"
        return _result(attempt, Result.PASSED) or wrong

    return look


def _echoed(tool: str, value: str) -> Callable[[Attempt], str]:
    def look(attempt: Attempt) -> str:
        return _answered({"text": value[::-1]})(attempt) or _acted(
            attempt, tool, {"text": value}, failed=False
        )

    return look


def _failed(tool: str, fault: str, value: str) -> Callable[[Attempt], str]:
    def look(attempt: Attempt) -> str:
        unsaid = "" if value in attempt.outcome.reason else "the reason leaves out what the tool said"
        acted = _acted(attempt, tool, {"text": value}, failed=True)
        return _ended(fault)(attempt) or unsaid or acted

    return look


def _ended(fault: str) -> Callable[[Attempt], str]:
    def look(attempt: Attempt) -> str:
        found = attempt.outcome.fault.type if attempt.outcome.fault else "none"
        another = "" if found == fault else f"expected the fault '{fault}', and it is '{found}'"
        answer = "" if attempt.answer is None else "it gave an answer"
        return _result(attempt, Result.FAILED) or another or answer

    return look


def _at_an_end(attempt: Attempt) -> str:
    """It answered, or it asked a model, of which there is none."""
    outcome = attempt.outcome
    if outcome.result is Result.PASSED or (outcome.fault is not None and outcome.fault.type == "no_model"):
        return ""
    return f"it neither answered nor asked a model ({outcome.result.value}: {outcome.reason[:300]})"


def _acted(attempt: Attempt, tool: str, args: Json, *, failed: bool) -> str:
    """Exactly one step of the call, as it was made and as it went."""
    steps = [step for step in attempt.steps if step.node == "act"]
    if len(steps) != 1:
        return f"expected one step 'act', and there are {len(steps)}"
    action = steps[0].action
    if not isinstance(action, dict) or (action.get("tool"), action.get("args")) != (tool, args):
        return "the step 'act' names another call than the task"
    if (steps[0].fault is not None) != failed:
        return "the step 'act' does not say how the call went"
    return ""


def _spent(attempt: Attempt) -> str:
    over = "it recorded more steps than allowed" if len(attempt.steps) > 2 else ""
    return _result(attempt, Result.BUDGET) or over


def _honest(attempt: Attempt) -> str:
    if attempt.outcome.result is Result.FAILED or attempt.answer in ({"text": None}, {}):
        return ""
    return f"it answered {str(attempt.answer)[:200]}"


# --- A question to a fresh box, whose answer nobody can give who does not run in that box --------
# The box is asked through its harness to call a tool that the kernel brings along under a name drawn
# for it. The tool reads what stands in the box and gives it back with the word that was drawn for this
# start. So an answer that was made earlier, or elsewhere, or by heart, is told from a true one.


VOID = frozenset({Result.INFRA, Result.CANCELLED})
_PROBE_TOOL = '''"""Says where it runs."""

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

    tool = {f"tool/{name}/tool.py": _PROBE_TOOL.format(name=name).encode()}
    executor = RetryingExecutor(parts.executor_with(tool, frozenset()), parts.policy.replay.infra_retries)
    began = time.monotonic()
    attempt = executor.execute(task, snapshot, f"run-{boot}", hear)
    digests = {name: content_sha256(parts.snapshots.files(snapshot, name)) for name in resources}
    fault = _report_fault(attempt, heard, task, {"boot": boot, "digests": digests})
    start_s = started[0] - began if started else 0.0
    late = attempt.outcome.result is Result.TIMEOUT
    return BoxReport(boot, fault, start_s, attempt.memory_mb, time.monotonic() - began, late)


def _report_fault(attempt: Attempt, steps: Sequence[Step], task: Task, right: Mapping[str, Json]) -> str:
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
