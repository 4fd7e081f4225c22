"""A conversation as what the ledger keeps: a task, a finished run and its steps, marked as imported.

Ids are made of the content, so that importing the same again changes nothing. A run that was made
elsewhere says nothing of this home's resources. Where an agent of this home is named and the record
says how success is told (``checks``), its task can be run here, so it may become evidence or a guard;
else it is kept to be read, compared and exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from agentos.domain import (
    IMPORT,
    Fault,
    Json,
    KernelFault,
    Limits,
    Outcome,
    Result,
    Run,
    Snapshot,
    Step,
    Task,
    digest,
    kernel_fault,
    share_of,
)
from agentos.trajectories.conversations import ChatConversation, text_of
from agentos.trajectories.readers.records import plain_json

AGENT = "imported"  # of tasks that cannot be run here; no registry has an agent of this name
FIRST = "import"  # node of the step that holds what is no message
NAME_MAX = 60


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """Where imported runs go: the registry's state at that time, and who could do their tasks."""

    snapshot: Snapshot
    hold_out: float
    now: datetime
    agent: str = ""  # of the registry; "" means that nothing is to be run again


@dataclass(frozen=True, slots=True)
class Source:
    """Where a conversation was read."""

    format: str
    file: str
    record: int


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A task, its one run, and the run's steps."""

    task: Task
    run: Run
    steps: tuple[Step, ...]


def past_of(conversation: ChatConversation, source: Source, into: ImportTarget) -> ImportedRun:
    """The records of one conversation; equal conversations give equal ids."""
    agent = into.agent if into.agent and conversation.checks else AGENT
    content = asdict(conversation)
    name = digest([content, agent])[:20]
    task = Task(
        id=f"task-{name}",
        name=" ".join(conversation.goal.split())[:NAME_MAX],
        goal=conversation.goal,
        call=None,
        inputs=(),
        agent=agent,
        limits=Limits(),
        effects=(),
        checks=conversation.checks,
        schedule=None,
        created_at=into.now,
    )
    run = Run(
        id=f"run-{name}",
        task_id=task.id,
        task_key=task.key,
        share=share_of(task.key, into.hold_out),
        attempt=1,
        snapshot=into.snapshot,
        sandbox=IMPORT,
        level="none",
        started_at=into.now,
        finished_at=into.now,
        outcome=_outcome(conversation, runs_here=agent != AGENT),
        answer=_answer(conversation.messages),
        resources=(f"agent/{agent}",) if agent != AGENT else (),
    )
    return ImportedRun(task, run, tuple(_steps(conversation, source, run)))


def _outcome(conversation: ChatConversation, *, runs_here: bool) -> Outcome:
    ended = conversation.ended
    if ended.result in (Result.PASSED, Result.UNKNOWN):
        return Outcome(ended.result, ended.score, ended.reason)
    # the fault's kind decides (evolver/taxonomy.toml) whether an evolution may rest on it
    fault = kernel_fault(KernelFault.CHECK if runs_here else KernelFault.IMPORTED, ended.reason)
    return Outcome(ended.result, ended.score, ended.reason, fault)


def _answer(messages: Sequence[Json]) -> Json:
    last = messages[-1]
    return (
        text_of(last.get("content")) if last["role"] == "assistant" and not last.get("tool_calls") else None
    )


def _steps(conversation: ChatConversation, source: Source, run: Run) -> Iterator[Step]:
    first = {"tools": list(conversation.tools), "rest": dict(conversation.rest)}
    yield Step(run.id, 0, FIRST, asdict(source), first, None, run.started_at, 0.0)
    calls: dict[str, Json] = {}
    for number, message in enumerate(conversation.messages):
        node, action, observation = _step_of(message, number, calls)
        blame = conversation.blame
        fault = None
        if blame is not None and blame.message == number:
            fault = Fault("mistake", blame.reason, blame.agent)
        yield Step(run.id, number + 1, node, action, observation, fault, run.started_at, 0.0)


def _step_of(message: Json, number: int, calls: dict[str, Json]) -> tuple[str, Json, Json]:
    """Node, action and observation, as a run of this home has them; the message can be had back."""
    if message["role"] == "assistant":
        calls.update({call["id"]: call["function"] for call in message.get("tool_calls") or []})
        return "model", {"model": "", "messages": number}, {"message": message}
    if message["role"] in ("tool", "function"):
        called = calls.get(str(message.get("tool_call_id")), {"name": message.get("name"), "arguments": "{}"})
        rest = {key: value for key, value in message.items() if key != "content"}
        action = {"tool": str(called["name"]), "args": _arguments(called["arguments"])}
        return "act", action, {"output": message["content"], "message": rest}
    return "message", {"role": message["role"]}, {"message": message}


def _arguments(arguments: Json) -> Json:
    """As the tool would have got them; a text that is no JSON stays what it is."""
    try:
        return plain_json(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def conversation_parts(steps: Sequence[Step]) -> tuple[Json, list[Json]]:
    """What ``past_of`` put into the steps of an imported run: the first step's, and the messages."""
    messages = [
        {**step.observation["message"], "content": step.observation["output"]}
        if step.node == "act"
        else step.observation["message"]
        for step in steps[1:]
    ]
    return steps[0].observation, messages
