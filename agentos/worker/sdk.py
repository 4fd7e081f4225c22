"""What a harness and its hooks stand on: the stable contract for authors of a harness.

The worker loads ``harness.py`` of the agent's harness and calls ``run(sdk)`` once. The harness asks
for texts and tools, calls tools, records what it does, and ends with ``finish`` or ``fail``. A
harness that returns without either has failed. Every recorded step leaves the sandbox at once.
docs/writing-tools-and-skills.md has an example.
"""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentos.messages import RunDone, RunJob, StepFrame, ToolCard, WireFault
from agentos.wire import Channel
from agentos.worker import toolfile
from agentos.worker.children import Clip
from agentos.worker.faults import Failed, NotPlain, encode, fault, resource_of
from agentos.worker.toolhost import ToolHost, ToolResult

__all__ = ["Clip", "Sdk", "StepsUsedUp", "Task", "ToolCall", "ToolCard", "ToolResult", "WireFault", "fault"]

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

    def __init__(self, channel: Channel, job: RunJob, root: Path, host: ToolHost) -> None:
        call = ToolCall(job.call["tool"], job.call["args"]) if job.call else None
        self.task = Task(job.run_id, job.goal, call, job.agent, frozenset(job.effects), job.max_steps)
        self._channel = channel
        self._root = root
        self._host = host
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
        return (self._root / path).read_text("utf-8")

    # --- tools ----------------------------------------------------------------------------

    def tools(self) -> list[ToolCard]:
        """What each tool of this run says of itself; a tool that does not load is left out."""
        cards = []
        for path in self._paths:
            if toolfile.is_tool(path):
                described = self._host.describe(path)
                if described.ok:
                    cards.append(ToolCard.model_validate(described.output))
        return cards

    def call_tool(self, ref: str, args: dict[str, Any], *, trace: bool = False) -> ToolResult:
        """Call a tool by reference and record the call as a step of node ``act``.

        Never raises for what the tool does: ``result.ok`` is False and ``result.fault`` says why.
        Its type is an exception's class name, or ``unknown_tool``, ``effect`` (the task does not
        allow what the tool declares), ``load``, ``input``, ``output``, ``timeout``, ``memory``,
        ``exit``, ``signal``, ``limit`` or ``protocol``.
        """
        with self._lock:
            self._ask_for_a_step()
            action: dict[str, Any] = {"tool": ref, "args": args}
            started = time.monotonic()
            try:
                path = toolfile.find(ref, self._paths)
                self._used.add(resource_of(path))
                action["path"] = path
                self._allow(path)
                result = self._host.call(path, args, trace=trace)
            except Failed as error:
                duration_ms = (time.monotonic() - started) * 1000
                result = ToolResult(False, None, error.fault, Clip(), Clip(), duration_ms)
            observation: dict[str, Any] = {"ok": result.ok}
            if result.ok:
                observation["output"] = result.output
            for name in ("stdout", "stderr"):
                clip = getattr(result, name)
                if clip.size:
                    observation[name] = {"head": clip.head, "tail": clip.tail, "size": clip.size}
            self.step("act", action, observation, result.fault, duration_ms=result.duration_ms)
            return result

    def _allow(self, path: str) -> None:
        says = toolfile.declared((self._root / path).read_text("utf-8"), path)
        if "external" in says.effects:
            why = "this stage has no way to the outside"
            raise Failed(
                fault("effect", f"'{says.name}' needs the outside world (external): {why}", path=path)
            )
        if missing := [effect for effect in says.effects if effect not in (*self.task.effects, "pure")]:
            why = f"'{says.name}' has the effect '{missing[0]}': add it to the task's effects to allow it"
            raise Failed(fault("effect", why, path=path))

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
            self._channel.send(frame.model_dump())

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
