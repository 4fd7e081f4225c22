"""What a harness and its hooks stand on: the stable contract for authors of a harness.

The worker loads ``harness.py`` of the agent's harness and calls ``run(sdk)`` once. The harness asks
for texts and tools, calls tools, records what it does, and ends with ``finish`` or ``fail``. A
harness that returns without either has failed. Every recorded step leaves the sandbox at once.
docs/use/writing-tools-and-skills.md has an example.
"""

from __future__ import annotations

import os
import queue
import stat
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from agentos.messages import WHEELS, ModelCard, RunDone, RunJob, StepFrame, ToolCard, WireFault
from agentos.programs import is_script
from agentos.worker.children import Clip
from agentos.worker.faults import Failed, NotPlain, cut_of, encode, fault, resource_of
from agentos.worker.rpc import KernelClient, Refused
from agentos.worker.tools import entered, programs, toolfile
from agentos.worker.tools.bundle_importer import BundleFiles, SkillCard, skills_of
from agentos.worker.tools.toolhost import ToolHost, ToolResult

__all__ = [
    "Clip",
    "Failed",
    "ModelCard",
    "Refused",
    "Sdk",
    "SkillCard",
    "StepsUsedUp",
    "Task",
    "ToolCall",
    "ToolCard",
    "ToolResult",
    "WireFault",
    "fault",
]

_INPUT_MAX = 1 << 20  # of a file that is handed over with a sub-task
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
    max_calls: int = 0  # of models; 0: no limit, as of tokens
    max_tokens: int = 0


class Sdk:
    """One run's view of the world. Methods may be called from several threads."""

    def __init__(self, talk: KernelClient, job: RunJob, held: BundleFiles, hosts: Sequence[ToolHost]) -> None:
        call = ToolCall(job.call["tool"], job.call["args"]) if job.call else None
        self.task = Task(
            job.run_id,
            job.goal,
            call,
            job.agent,
            frozenset(job.effects),
            job.max_steps,
            job.max_calls,
            job.max_tokens,
        )
        self._talk = talk
        self._held = held
        self._hosts: queue.SimpleQueue[ToolHost] = queue.SimpleQueue()
        for host in hosts:
            self._hosts.put(host)
        self._side_by_side = max(1, len(hosts))
        self._says: dict[str, toolfile.ToolDeclaration] = {}
        self._cards = {card.path: card for card in job.cards}
        self._models = tuple(job.models)
        self._more_skills = job.more_skills
        self._paths = sorted(path for path in job.files if f"/{WHEELS}/" not in path)
        self._inputs = tuple(sorted(job.inputs))
        self._most = job.output_bytes
        self._steps = 0
        self._since = time.monotonic()
        self._lock = threading.RLock()
        self._used = {f"agent/{job.agent}", resource_of(job.harness)}
        self._entered: set[str] = set()
        self._end: RunDone | None = None
        self._skills: list[SkillCard] | None = None

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

    @property
    def inputs(self) -> Sequence[str]:
        """The task's input files, as they stand in the workspace, sorted."""
        return self._inputs

    def paths(self, prefix: str = "") -> Sequence[str]:
        """The registry paths that this run was given, below ``prefix``, sorted."""
        return [path for path in self._paths if path.startswith(prefix)]

    def read(self, path: str) -> str:
        """The text of one of them. Raises FileNotFoundError."""
        self._used.add(resource_of(path))
        return self._held.text(path)

    def skills(self) -> list[SkillCard]:
        """What each skill of this run says of itself. Reading one is ``read``."""
        if self._skills is None:
            self._skills = skills_of(self._held, self._paths)
        return self._skills

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
        ``exit``, ``signal``, ``limit`` or ``protocol``.
        """
        with self._lock:
            self._ask_for_a_step()
        prepared = self._prepare(ToolCall(ref, args))
        return self._acted(prepared, self._make(prepared, trace=trace))

    def call_tools(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Call several tools; results and steps stand in the order of the calls.

        Neighbours that only read run side by side. A tool that writes, or reaches outside, runs alone
        in its turn: what the calls before it left is there, and a replay finds the same.
        """
        results: list[ToolResult] = []
        for group in self._groups(calls):
            with self._lock:
                self._ask_for_a_step(len(group))
            prepared = [self._prepare(call) for call in group]
            if len(group) == 1:
                results.append(self._acted(prepared[0], self._make(prepared[0])))
                continue
            with ThreadPoolExecutor(min(len(group), self._side_by_side)) as pool:
                made = pool.map(self._make, prepared)
                results += [self._acted(one, result) for one, result in zip(prepared, made, strict=True)]
        return results

    def _groups(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        quiet: list[ToolCall] = []
        for call in calls:
            if self._changes(call.tool):
                if quiet:
                    yield quiet
                yield [call]
                quiet = []
            else:
                quiet.append(call)
        if quiet:
            yield quiet

    def _changes(self, ref: str) -> bool:
        try:
            effects = self._declared(toolfile.find(ref, self._paths)).effects
        except Failed:
            return False  # it will not be made at all
        return "write" in effects or "external" in effects

    def _prepare(self, call: ToolCall) -> _Prepared:
        """Everything up to the call itself: find it, ask for it where that is needed."""
        prepared = _Prepared({"tool": call.tool, "args": call.args}, time.monotonic())
        try:
            prepared.path = toolfile.find(call.tool, self._paths)
            self._used.add(resource_of(prepared.path))
            prepared.action["path"] = prepared.path
            self._must_allow(prepared.path)
            prepared.go, prepared.recorded = self._announced(prepared)
        except Failed as error:
            prepared.refused = error.fault
        return prepared

    def _make(self, prepared: _Prepared, *, trace: bool = False) -> ToolResult:
        if prepared.refused is not None:
            duration_ms = (time.monotonic() - prepared.began) * 1000
            return ToolResult(False, None, prepared.refused, Clip(), Clip(), duration_ms)
        result = prepared.recorded
        if prepared.go or result is None:
            with self._host() as host:
                result = host.call(prepared.path, prepared.action["args"], trace=trace)
            with self._lock:
                self._entered.update(result.entered)
        if prepared.recorded is not None and prepared.recorded.ok == result.ok:
            return prepared.recorded
        return result

    def _acted(self, prepared: _Prepared, result: ToolResult) -> ToolResult:
        observed = observation_of(result)
        self.step("act", prepared.action, observed, result.fault, duration_ms=result.duration_ms)
        return result

    def _declared(self, path: str) -> toolfile.ToolDeclaration:
        """What the tool says of itself, read once. Raises Failed(load)."""
        if path not in self._says:
            declared = programs.declared if programs.is_program(path) else toolfile.declared
            self._says[path] = declared(self._held.content(path) or b"", path)
        return self._says[path]

    def _must_allow(self, path: str) -> None:
        """Raises Failed when the task forbids the call."""
        says = self._declared(path)
        if is_script(path) and not any(
            it.scripts for it in self.skills() if path.startswith(f"skill/{it.name}/")
        ):
            why = "the skill's 'allowed-tools' name no shell, so its scripts do not run"
            raise Failed(fault("effect", why, path=path))
        if missing := [effect for effect in says.effects if effect not in (*self.task.effects, "pure")]:
            why = f"'{says.name}' has the effect '{missing[0]}': add it to the task's effects to allow it"
            raise Failed(fault("effect", why, path=path))

    def _announced(self, prepared: _Prepared) -> tuple[bool, ToolResult | None]:
        """Whether the call is to be made, and its recorded result, which then counts in either case.

        The kernel is asked before each call, whether or not there is a recording: or a run could tell.
        A call is made again for what it changes in the workspace. Where that fails this time, or
        works this time, the new result counts: the recorded one would tell of files that are not there.
        The kernel may say with which arguments it is to be made.
        """
        began = time.monotonic()
        try:
            answer = self._talk.ask("tool", dict(prepared.action))
        except Refused as error:
            raise Failed(error.fault) from None
        prepared.action["args"] = answer.get("args", prepared.action["args"])
        if "observation" not in answer:
            return bool(answer.get("go")), None
        return bool(answer.get("go")), result_of_record(answer, (time.monotonic() - began) * 1000)

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

    @property
    def more_skills(self) -> int:
        """How many skills the agent may have beside those of this run: ``find_skills`` looks among them."""
        return self._more_skills

    def find_skills(self, query: str, limit: int = 3) -> list[dict[str, Any]]:
        """Texts of skills that this run lacks, best first: {"name", "description", "text"}. Raises Refused."""
        return list(self._talk.ask("skills", {"query": query, "limit": limit})["skills"])

    def remember(self, text: str, why: str = "") -> str:
        """Propose a memory; a person or an evolution decides. The proposal's id. Raises Refused."""
        return str(self._talk.ask("remember", {"text": text, "why": why})["proposed"])

    def ask_person(self, question: str, choices: Sequence[str] = ()) -> str:
        """A person's answer. Where there is none yet the run ends here, and goes on when there is."""
        return str(self._talk.ask("person", {"question": question, "choices": list(choices)})["answer"])

    def delegate(self, agent: str, goal: str, inputs: Sequence[str] = ()) -> dict[str, Any]:
        """Hand a sub-task to another agent: {"run", "ok", "answer", "reason"}. Raises Refused.

        ``inputs`` are workspace files that it gets a copy of; raises Failed(inputs) for what is no text.
        """
        # a shell tells whole paths
        files = {name.removeprefix(f"{os.getcwd()}/"): _text_of(name) for name in inputs}
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
        with self._lock:
            reached = entered.fitting({*self._entered, *entered.labels()})
        about = {"resources": sorted(self._used - {""}), "reached": reached}
        return self._end and self._end.model_copy(update=about)

    def _done(
        self,
        finished: Literal["answered", "failed", "limit"],
        *,
        answer: Any = None,
        fault: WireFault | None = None,
    ) -> None:
        if self._end is None or self._end.finished != "limit":
            self._end = RunDone(finished=finished, answer=answer, fault=fault)

    def _ask_for_a_step(self, count: int = 1) -> None:
        if self._steps + count > self.task.max_steps:
            why = f"the run made all {self.task.max_steps} steps that the task allows"
            self._done("limit", fault=fault("steps", why))
            raise StepsUsedUp

    def _fitting(self, value: Any) -> Any:
        try:
            encode(value, self._most)
        except NotPlain as error:
            return cut_of(value, error, min(_HEAD, self._most // 8))
        return value


@dataclass
class _Prepared:
    """A call before it is made: ``go`` says that it is to be made, ``refused`` why it cannot be."""

    action: dict[str, Any]
    began: float
    path: str = ""
    go: bool = True
    recorded: ToolResult | None = None
    refused: WireFault | None = None


def _text_of(name: str) -> str:
    """A workspace file as text: opened without waiting for whoever else, links not followed."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Failed(fault("inputs", f"'{name}' is no plain file"))
            content = file.read(_INPUT_MAX + 1)
        if len(content) > _INPUT_MAX:
            raise Failed(fault("inputs", f"'{name}' is larger than {_INPUT_MAX} bytes"))
        return content.decode("utf-8")
    except OSError as error:
        raise Failed(fault("inputs", f"'{name}' cannot be read: {error.strerror}")) from None
    except UnicodeDecodeError:
        raise Failed(fault("inputs", f"'{name}' is no UTF-8 text")) from None
    except ValueError:  # a null character, or half of another
        raise Failed(fault("inputs", f"{name!r} is no name of a file")) from None


def observation_of(result: ToolResult) -> dict[str, Any]:
    """What the step of a tool call holds beside its fault."""
    observation: dict[str, Any] = {"ok": result.ok}
    if result.ok:
        observation["output"] = result.output
    for name in ("stdout", "stderr"):
        clip = getattr(result, name)
        if clip.size:
            observation[name] = {"head": clip.head, "tail": clip.tail, "size": clip.size}
    return observation


def result_of_record(answer: dict[str, Any], duration_ms: float) -> ToolResult:
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
        duration_ms=duration_ms,
    )
