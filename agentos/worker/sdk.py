"""What a harness and its hooks stand on: the stable contract for authors of a harness.

The worker loads ``harness.py`` of the agent's harness and calls ``run(sdk)`` once. The harness asks
for texts and tools, calls tools, records what it does, and ends with ``finish`` or ``fail``. A
harness that returns without either has failed. Every recorded step leaves the sandbox at once.
docs/writing-tools-and-skills.md has an example.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentos.messages import ModelCard, RunDone, RunJob, StepFrame, ToolCard, WireFault
from agentos.worker import toolfile
from agentos.worker.asking import Refused, Talk
from agentos.worker.children import Clip
from agentos.worker.faults import Failed, NotPlain, encode, fault, resource_of
from agentos.worker.held import Held
from agentos.worker.toolhost import ToolHost, ToolResult

__all__ = [
    "Clip",
    "ModelCard",
    "Refused",
    "Sdk",
    "StepsUsedUp",
    "Task",
    "ToolCall",
    "ToolCard",
    "ToolResult",
    "WireFault",
    "fault",
]

_HEAD = 2_000  # characters kept of a value that is too large for a step


class StepsUsedUp(BaseException):
    """The step budget is spent. Not an Exception: a harness that carries on cannot swallow it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What the task asks to call: ``tool`` is ``name`` or ``skill/tool``."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done, and within which bounds."""

    run_id: str
    goal: str
    call: ToolCall | None
    agent: str
    effects: frozenset[str]  # pure, read, write, external
    max_steps: int


class Sdk:
    """One run's view of the world. Methods may be called from several threads."""

    def __init__(self, talk: Talk, job: RunJob, held: Held, hosts: Sequence[ToolHost]) -> None:
        call = ToolCall(job.call["tool"], job.call["args"]) if job.call else None
        self.task = Task(job.run_id, job.goal, call, job.agent, frozenset(job.effects), job.max_steps)
        self._talk = talk
        self._held = held
        self._hosts: queue.SimpleQueue[ToolHost] = queue.SimpleQueue()
        for host in hosts:
            self._hosts.put(host)
        self._cards = {card.path: card for card in job.cards}
        self._models = tuple(job.models)
        self._asks_tools = job.asks_tools
        self._paths = sorted(job.files)
        self._most = job.output_bytes
        self._steps = 0
        self._since = time.monotonic()
        self._lock = threading.RLock()
        self._used = {f"agent/{job.agent}", resource_of(job.harness)}
        self._end: RunDone | None = None

    # --- texts ----------------------------------------------------------------------------

    @property
    def agent(self) -> dict[str, Any]:
        """The agent's ``resource.toml``; empty when the run has none."""
        path = f"agent/{self.task.agent}/resource.toml"
        return tomllib.loads(self.read(path)) if path in self._paths else {}

    @property
    def prompt(self) -> str:
        """The text of the agent's prompt; empty when the run has none."""
        path = f"prompt/{self.agent.get('prompt', 'default')}/prompt.md"
        return self.read(path) if path in self._paths else ""

    def paths(self, prefix: str = "") -> Sequence[str]:
        """The registry paths that this run was given, below ``prefix``, sorted."""
        return [path for path in self._paths if path.startswith(prefix)]

    def read(self, path: str) -> str:
        """The text of one of them. Raises FileNotFoundError."""
        self._used.add(resource_of(path))
        return self._held.text(path)

    # --- tools ----------------------------------------------------------------------------

    def tools(self) -> list[ToolCard]:
        """What each tool of this run says of itself; a tool that does not load is left out."""
        return [card for path in self._paths if toolfile.is_tool(path) and (card := self._card(path))]

    def _card(self, path: str) -> ToolCard | None:
        if path not in self._cards:
            with self._host() as host:
                described = host.describe(path)
            if not described.ok:
                return None
            self._cards[path] = ToolCard.model_validate(described.output)
        return self._cards[path]

    def call_tool(self, ref: str, args: dict[str, Any], *, trace: bool = False) -> ToolResult:
        """Call a tool by reference and record the call as a step of node ``act``.

        Calls from several threads run side by side, as many as the run has tool hosts.
        Never raises for what the tool does: ``result.ok`` is False and ``result.fault`` says why.
        Its type is an exception's class name, or ``unknown_tool``, ``effect`` (the task does not
        allow what the tool declares), ``load``, ``input``, ``output``, ``timeout``, ``memory``,
        ``exit``, ``signal``, ``limit`` or ``protocol``. ``result.recorded`` says that the call was
        not made, because the run is served from a recording.
        """
        with self._lock:
            self._ask_for_a_step()
        action: dict[str, Any] = {"tool": ref, "args": args}
        started = time.monotonic()
        try:
            path = toolfile.find(ref, self._paths)
            self._used.add(resource_of(path))
            action["path"] = path
            go, recorded = self._announced(ref, args, path) if self._to_be_announced(path) else (True, None)
            result = recorded
            if go or result is None:
                with self._host() as host:
                    result = host.call(path, args, trace=trace)
            if recorded is not None and recorded.ok == result.ok:
                result = recorded
        except Failed as error:
            duration_ms = (time.monotonic() - started) * 1000
            result = ToolResult(False, None, error.fault, Clip(), Clip(), duration_ms)
        self.step("act", action, observation_of(result), result.fault, duration_ms=result.duration_ms)
        return result

    def _to_be_announced(self, path: str) -> bool:
        """Whether the kernel is asked before the call. Raises Failed when the task forbids the call."""
        says = toolfile.declared(self._held.text(path), path)
        if missing := [effect for effect in says.effects if effect not in (*self.task.effects, "pure")]:
            why = f"'{says.name}' has the effect '{missing[0]}': add it to the task's effects to allow it"
            raise Failed(fault("effect", why, path=path))
        return self._asks_tools or "external" in says.effects

    def _announced(self, ref: str, args: dict[str, Any], path: str) -> tuple[bool, ToolResult | None]:
        """Whether the call is to be made, and its recorded result, which then counts in either case.

        A call is made again for what it changes in the workspace. Where that fails this time, or
        works this time, the new result counts: the recorded one would tell of files that are not there.
        """
        try:
            answer = self._talk.ask("tool", {"tool": ref, "args": args, "path": path})
        except Refused as error:
            raise Failed(error.fault) from None
        return bool(answer.get("go")), result_of_record(answer) if "observation" in answer else None

    @contextmanager
    def _host(self) -> Iterator[ToolHost]:
        host = self._hosts.get()
        try:
            yield host
        finally:
            self._hosts.put(host)

    # --- asking the kernel ----------------------------------------------------------------

    @property
    def models(self) -> Sequence[ModelCard]:
        """The models that this run may ask; the first is the agent's own. Empty: there is none."""
        return self._models

    def model(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask a model: an OpenAI chat completion request in, the chat completion out.

        ``request["model"]`` is the name of one of ``models``; without it, the first. The kernel
        records the call as a step of node ``model``. Raises Refused with a fault of type
        ``malformed``, ``cut``, ``refused``, ``empty``, ``context`` or ``request``; whatever else
        goes wrong ends the run.
        """
        return dict(self._talk.ask("model", request)["reply"])

    def recall(self, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Memories that fit the query, best first: {"id", "text", "score"}. Raises Refused."""
        return list(self._talk.ask("recall", {"query": query, "limit": limit})["memories"])

    def remember(self, text: str, why: str = "") -> str:
        """Propose a memory; a person or an evolution decides. The proposal's id. Raises Refused."""
        return str(self._talk.ask("remember", {"text": text, "why": why})["proposed"])

    def ask_person(self, question: str, choices: Sequence[str] = ()) -> str:
        """A person's answer. Where there is none yet the run ends here, and goes on when there is."""
        return str(self._talk.ask("person", {"question": question, "choices": list(choices)})["answer"])

    def delegate(self, agent: str, goal: str, inputs: Sequence[str] = ()) -> dict[str, Any]:
        """Hand a sub-task to another agent: {"run", "ok", "answer", "reason"}. Raises Refused.

        ``inputs`` are workspace files that it gets a copy of.
        """
        files = {name: (Path.cwd() / name).read_text("utf-8") for name in inputs}
        return self._talk.ask("delegate", {"agent": agent, "goal": goal, "inputs": files})

    # --- recording and the end ------------------------------------------------------------

    @property
    def steps_left(self) -> int:
        """How many more steps may be recorded."""
        return self.task.max_steps - self._steps

    def step(
        self,
        node: str,
        action: Any = None,
        observation: Any = None,
        fault: WireFault | None = None,
        *,
        duration_ms: float | None = None,
    ) -> None:
        """Record one step; it leaves the sandbox at once. Values are JSON; large ones are cut.

        ``duration_ms`` is by default the time since the step before. Raises StepsUsedUp.
        """
        with self._lock:
            self._ask_for_a_step()
            now = time.monotonic()
            frame = StepFrame(
                node=node[:100],
                action=self._fitting(action),
                observation=self._fitting(observation),
                fault=fault,
                duration_ms=(now - self._since) * 1000 if duration_ms is None else duration_ms,
            )
            self._steps += 1
            self._since = now
            self._talk.send(frame)

    def finish(self, answer: Any) -> None:
        """The run's answer: what the checks will see. The last ``finish`` or ``fail`` counts."""
        try:
            encode(answer, self._most)
        except NotPlain as error:
            self.fail(fault(error.type, f"the answer: {error}"))
            return
        self._done("answered", answer=answer)

    def fail(self, fault: WireFault) -> None:
        """The run has no answer; ``fault`` says why."""
        self._done("failed", fault=fault)

    @property
    def end(self) -> RunDone | None:
        """What the run ended with so far."""
        return self._end and self._end.model_copy(update={"resources": sorted(self._used - {""})})

    def _done(
        self,
        finished: Literal["answered", "failed", "limit"],
        *,
        answer: Any = None,
        fault: WireFault | None = None,
    ) -> None:
        if self._end is None or self._end.finished != "limit":
            self._end = RunDone(finished=finished, answer=answer, fault=fault)

    def _ask_for_a_step(self) -> None:
        if self._steps >= self.task.max_steps:
            why = f"the run made all {self.task.max_steps} steps that the task allows"
            self._done("limit", fault=fault("steps", why))
            raise StepsUsedUp

    def _fitting(self, value: Any) -> Any:
        try:
            encode(value, self._most)
        except NotPlain as error:
            text = json.dumps(value, default=repr, skipkeys=True) if error.type == "limit" else repr(value)
            return {"cut": str(error), "head": text[: min(_HEAD, self._most // 8)]}
        return value


def observation_of(result: ToolResult) -> dict[str, Any]:
    """What the step of a tool call holds beside its fault."""
    observation: dict[str, Any] = {"ok": result.ok}
    if result.ok:
        observation["output"] = result.output
    for name in ("stdout", "stderr"):
        clip = getattr(result, name)
        if clip.size:
            observation[name] = {"head": clip.head, "tail": clip.tail, "size": clip.size}
    if result.recorded:
        observation["recorded"] = True
    return observation


def result_of_record(answer: dict[str, Any]) -> ToolResult:
    """The inverse: what a call gave when it was recorded."""
    observation = answer["observation"]
    found = answer.get("fault")
    out, err = (Clip(**observation[name]) if name in observation else Clip() for name in ("stdout", "stderr"))
    return ToolResult(
        ok=bool(observation.get("ok")),
        output=observation.get("output"),
        fault=WireFault.model_validate(found) if found else None,
        stdout=out,
        stderr=err,
        duration_ms=0.0,
        recorded=True,
    )
