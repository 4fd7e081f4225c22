"""A run as a conversation in OpenAI's form, whether it was made here or imported.

An imported run gives back exactly what was read. Of a run made here the steps say what the models
answered and what the tools gave; a call that the harness made without a model is shown as a call
of the assistant, so that the conversation is whole. The agent's prompt is not part of the steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from agentos.domain import IMPORT, Json, Run, Step, Task
from agentos.trajectories.conversations import is_message, part_of
from agentos.trajectories.past import conversation_parts
from agentos.trajectories.readers.formats import MARK


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What is told: a task, a finished run of it, and the run's steps with their big values whole."""

    task: Task
    run: Run
    steps: tuple[Step, ...]

    @property
    def by_model(self) -> bool:
        """Did a model speak in it?"""
        return any(_message(step) is not None for step in self.steps)


def chat_record(happened: FinishedRun) -> dict[str, Json]:
    """One ``openai-chat`` record; importing it again gives the same conversation."""
    task, run = happened.task, happened.run
    rest: Json = {"tools": [], "rest": {}}
    if run.sandbox == IMPORT:
        rest, messages = conversation_parts(happened.steps)
    else:
        messages = list(_messages(happened))
    record = {**rest["rest"], "goal": task.goal, "messages": messages}
    if rest["tools"]:
        record["tools"] = rest["tools"]
    if task.checks:
        record["checks"] = [{check.kind: dict(check.spec)} for check in task.checks]
    if run.outcome is not None:
        outcome = run.outcome
        record["outcome"] = {"result": outcome.result.value, "score": outcome.score, "reason": outcome.reason}
    record[MARK] = {"run": run.id, "task": task.id, "agent": task.agent, "snapshot": run.snapshot.commit}
    return record


def _message(step: Step) -> Json:
    """The assistant's message that a model step recorded; None for other steps and failed calls."""
    found = part_of(step.observation, "message")
    if step.node != "model" or not isinstance(found, dict):
        return None
    message = {**found, "role": "assistant", "content": found.get("content")}
    return message if is_message(message) else None  # a step is the word of a sandbox


def _messages(happened: FinishedRun) -> Iterator[Json]:
    yield {"role": "user", "content": happened.task.goal}
    waiting: list[Json] = []  # calls of the last assistant message that have no answer yet
    last: Json = None
    for step in happened.steps:
        message = _message(step)
        if message is not None:
            yield from _unanswered(waiting)
            last = message
            waiting = list(message.get("tool_calls") or [])
            yield last
        elif step.node == "act" and isinstance(step.action, dict):
            call = _take(waiting, str(step.action.get("tool", "")))
            if call is None:
                call = _call(step)
                yield {"role": "assistant", "content": None, "tool_calls": [call]}
            last = {"role": "tool", "tool_call_id": call["id"], "content": _told(step)}
            yield last
    yield from _unanswered(waiting)
    if happened.run.answer is not None and not _is_answer(last):
        yield {"role": "assistant", "content": _text(happened.run.answer)}


def _take(waiting: list[Json], tool: str) -> Json:
    """The first waiting call of that tool, else the first one; None when none waits."""
    for call in waiting:
        name = call["function"]["name"]
        if name == tool or _plain(name) == _plain(tool):
            waiting.remove(call)
            return call
    return waiting.pop(0) if waiting else None


def _plain(tool: str) -> str:
    """``skill/tool`` and whatever a model has to write instead of the slash are the same tool."""
    return "".join(letter for letter in tool if letter.isalnum()).lower()


def _call(step: Step) -> Json:
    name, args = str(step.action.get("tool", "")), step.action.get("args", {})
    function = {"name": name, "arguments": json.dumps(args, ensure_ascii=False)}
    return {"id": f"step-{step.index}", "type": "function", "function": function}


def _told(step: Step) -> str:
    if step.fault is not None:
        return _text({"error": {"type": step.fault.type, "message": step.fault.message}})
    observation = step.observation
    return _text(observation.get("output", observation) if isinstance(observation, dict) else observation)


def _unanswered(waiting: list[Json]) -> Iterator[Json]:
    """Every call has an answer in a conversation that goes on; the steps hold none for these."""
    while waiting:
        yield {"role": "tool", "tool_call_id": waiting.pop(0)["id"], "content": '{"error": "no answer"}'}


def _is_answer(message: Json) -> bool:
    return message is not None and message["role"] == "assistant" and not message.get("tool_calls")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
