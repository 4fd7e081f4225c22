"""Calls of tools that MCP servers have: each server of a run is started when it is first called, in a box of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.mcp.server_box import Fetch, McpFault, ServedRun, ServerBox, ServerProgram, mcp_fault
from agentos.daemon.mcp.server_skill import as_it_is_now, question_of
from agentos.daemon.requests.egress import Egress
from agentos.daemon.requests.run_requests import (
    AGAIN,
    Denied,
    RequestHandler,
    RunContext,
    RunSpending,
    ToolAsks,
)
from agentos.domain import Effect, Json, Limits, RecordedTool, Snapshot, Step, Task
from agentos.errors import Conflict, NotFound, Unavailable, UserError
from agentos.home import Home
from agentos.messages import Answer, Ask, McpServed
from agentos.ports import Blobs, Plan, Sandbox
from agentos.resources.declarations import Effects, ServerTool, definition_of
from agentos.settings import load_settings

_BY_HAND_S = 120.0
_TAKE, _REFUSE = "take it", "leave it stopped"
_LEAST_S, _SHARE = 1.0, 0.8  # of a run's time a call may take all but this, or so much of it
_Call = tuple[str, Mapping[str, Json]]


@dataclass(frozen=True, slots=True)
class ServerParts:
    """What it takes to start servers. ``program`` finds what one is made of, at the run's snapshot."""

    sandbox: Sandbox
    blobs: Blobs
    program: Callable[[RunContext, ServerTool], ServerProgram]
    egress: Callable[[RunContext, ServerTool], RequestHandler] | None = None
    person: Callable[[RunContext], RequestHandler] | None = None  # who is asked about a server that changed
    # what is done where a person takes it as it is now
    accept: Callable[[str, McpServed], object] | None = None
    wheels: Callable[[Snapshot, str], bytes | None] | None = None  # the lock of a server on a snapshot


@dataclass
class _Server:
    """One server of a run. ``before`` are calls that were answered from the record, and changed something."""

    before: list[_Call] = field(default_factory=list)
    box: ServerBox | None = None
    starting: ServerBox | None = None  # the same, from when it can be closed
    held: set[str] = field(default_factory=set)  # tools that are as they were added, or as a person took them
    over: McpFault | None = None  # why it is not asked any more
    lock: threading.Lock = field(default_factory=threading.Lock)


class RunServers:
    """The servers of one run."""

    def __init__(self, parts: ServerParts, asking: RunContext) -> None:
        self._parts = parts
        self._asking = asking
        self._servers: dict[str, _Server] = {}
        self._lock = threading.Lock()
        self._closed = False

    def begin(self, tool: ServerTool) -> dict[str, Json] | None:
        """Start its server before a call is put on record as begun; what the call gets where that fails.

        Raises Unavailable, and RunEnds while it waits for a person.
        """
        server = self._server(tool)
        with server.lock:
            try:
                self._running(tool, server)
            except McpFault as error:
                return self._failed(server, error)
        return None

    def call(self, tool: ServerTool, args: Mapping[str, Json]) -> dict[str, Json]:
        """{"observation", "fault"}, as a call on record has them. Raises Unavailable, and RunEnds as ``begin``."""
        server = self._server(tool)
        with server.lock:
            try:
                result = self._running(tool, server).call(tool.tool, args, self._until())
            except McpFault as error:
                return self._failed(server, error)
        return self._told(tool, result)

    def _running(self, tool: ServerTool, server: _Server) -> ServerBox:
        """Raises McpFault, and RunEnds while it waits for a person."""
        if server.over is not None:
            raise server.over
        box = server.box or self._start(tool, server)
        self._hold_against(tool, server, box)  # each tool that is called, not the first alone
        return box

    def _failed(self, server: _Server, error: McpFault) -> dict[str, Json]:
        if error.over:
            server.over = error
            self._end(server)
        return {"observation": {"ok": False}, "fault": error.fault.model_dump()}

    def has_other_wheels(self, tool: ServerTool) -> bool:
        """Whether it runs on other wheels than those of the recording, which so says nothing of it."""
        recording, wheels = self._asking.plan.recording, self._parts.wheels
        if recording is None or wheels is None or not self._asking.plan.replays:
            return False
        return wheels(recording.snapshot, tool.resource) != wheels(self._asking.snapshot, tool.resource)

    def was_served(self, tool: ServerTool, args: Mapping[str, Json]) -> None:
        """A call was answered from the record: its server has to be brought that far, also one that is started later.

        Raises Unavailable.
        """
        server = self._server(tool)
        with server.lock:
            if server.box is None:
                server.before.append((tool.tool, args))
            elif server.over is None:
                try:
                    self._again(server.box, tool.tool, args)
                except McpFault as error:
                    self._failed(server, error)

    def close(self) -> None:
        """End all; a call under way ends with its box."""
        with self._lock:
            self._closed = True
            servers = [*self._servers.values()]
        for server in servers:
            self._end(server)

    def _server(self, tool: ServerTool) -> _Server:
        with self._lock:
            return self._servers.setdefault(tool.server, _Server())

    def _start(self, tool: ServerTool, server: _Server) -> ServerBox:
        asking = self._asking
        try:
            inputs = {
                file.path: self._parts.blobs.get(file.sha256)
                for file in asking.task.inputs
                if tool.sees(file.path)
            }
        except NotFound as error:
            raise Unavailable(f"an input of {asking.task.id} is gone: {error}") from None
        left_s = max(_LEAST_S, asking.deadline - time.monotonic())
        box = ServerBox(
            self._parts.sandbox,
            self._parts.program(asking, tool),
            ServedRun(asking.run_id, inputs, left_s, asking.bundle.limits.output_bytes),
            fetch=self._way_out(tool),
            opened=partial(self._opened, server),
        )
        server.box = box
        self._hold_against(tool, server, box)
        for name, args in server.before:
            self._again(box, name, args)
        return box

    def _opened(self, server: _Server, box: ServerBox) -> None:
        """Whoever ends the run finds it, also while it starts."""
        server.starting = box
        if self._closed:
            raise Unavailable("the run is over")

    def _way_out(self, tool: ServerTool) -> Fetch | None:
        """What makes the server's requests, None for one without hosts."""
        if not tool.hosts or self._parts.egress is None:
            return None
        return partial(_fetched, self._asking, self._parts.egress(self._asking, tool))

    def _again(self, box: ServerBox, name: str, args: Mapping[str, Json]) -> None:
        """A call that is on record, for what it changes in the server. Raises McpFault where the server is over."""
        try:
            box.call(name, args, self._until())
        except McpFault as error:
            if error.over:
                raise

    def _hold_against(self, tool: ServerTool, server: _Server, box: ServerBox) -> None:
        """What is called has to be the tool that was added, or a person has to take it as it is now.

        Raises McpFault, and RunEnds while it waits for a person.
        """
        if tool.tool in server.held:
            return
        has = {str(found.get("name")): definition_of(found) for found in box.served.tools}
        if has.get(tool.tool) == tool.definition:
            server.held.add(tool.tool)
            return
        if self._is_taken(tool, box):
            server.held |= {tool.tool, *has}  # all of it was shown
            return
        name = tool.resource.partition("/")[2]
        how = "defines it in another way now" if tool.tool in has else "has no such tool any more"
        why = (
            f"the MCP server {name} was stopped: '{tool.tool}' was added with another definition, and it {how}; "
            f"a person types: agentos mcp test {name}"
        )
        raise McpFault(mcp_fault("changed", why, tool.resource))

    def _is_taken(self, tool: ServerTool, box: ServerBox) -> bool:
        """Whether a person takes the server as it is now; asked in live runs alone. Raises RunEnds."""
        asking, parts = self._asking, self._parts
        if parts.person is None or parts.accept is None or asking.plan.replays:
            return False
        root = f"{tool.resource}/"
        files = {path: data for path, data in asking.bundle.files.items() if path.startswith(root)}
        try:
            question = question_of(tool.resource, as_it_is_now(tool.resource, files, box.served))
            given = parts.person(asking).answer({"question": question, "choices": [_TAKE, _REFUSE]})
            if given.get("answer") != _TAKE:
                return False
            parts.accept(tool.resource, box.served)
        except (Denied, UserError, Conflict):  # nothing that could be asked about, or taken
            return False
        return True

    def _until(self) -> float:
        """When a call has to be over, so that a server that hangs is said to before the run ends."""
        now = time.monotonic()
        left_s = max(0.0, self._asking.deadline - now)
        return now + max(_SHARE * left_s, left_s - _LEAST_S)

    def _told(self, tool: ServerTool, result: Mapping[str, Json]) -> dict[str, Json]:
        output = output_of(result)
        most = self._asking.bundle.limits.output_bytes
        if len(json.dumps(output)) > most:
            told = ("limit", f"its answer is larger than the {most:,} bytes that the task allows")
        elif result.get("isError") is True:
            why = str(self._asking.redact(output.get("text", output)))  # before it is cut
            told = ("error", why[:2_000] or "it gave no reason")
        else:
            return {"observation": {"ok": True, "output": output}, "fault": None}
        return {"observation": {"ok": False}, "fault": mcp_fault(*told, tool.resource).model_dump()}

    @staticmethod
    def _end(server: _Server) -> None:
        if server.starting is not None:
            server.starting.close()


def _fetched(asking: RunContext, egress: RequestHandler, ask: Ask) -> Answer:
    """What becomes of a request of a server to the outside. Raises RunEnds, Unavailable."""
    try:
        if asking.rules is not None:
            asking.rules.change(ask.what, ask.body)
        return Answer(id=ask.id, body=dict(egress.answer(ask.body)))
    except Denied as error:
        return Answer(id=ask.id, fault=error.fault)


def by_hand(home: Home, tool: ServerTool) -> Fetch | None:
    """For a server that a person starts, to add or to try it: what it was allowed, as far as the settings let runs go.

    None for one without hosts. Nothing of it is recorded.
    """
    if not tool.hosts:
        return None
    now, limits = datetime.now(UTC), Limits(wall_s=_BY_HAND_S)
    task = Task(
        "", "", "", None, (), "default", limits, (*Effect,), (), None, now, secrets=tuple(tool.secrets)
    )
    asking = RunContext(
        run_id="",
        task=task,
        snapshot=Snapshot("", ""),
        plan=Plan(),
        bundle=Bundle({}, "", limits),
        deadline=time.monotonic() + _BY_HAND_S,
        step=lambda node, action, seen, ms: Step("", 0, node, action, seen, None, now, ms),
        spent=RunSpending(),
    )
    egress = Egress(load_settings(home.settings).egress, asking, home, tool)
    return partial(_fetched, asking, egress)


def output_of(result: Mapping[str, Any]) -> dict[str, Json]:
    """What a call gave, as a tool's output: its structured content, else ``text``, and ``content`` that is no text."""
    structured = result.get("structuredContent")
    if isinstance(structured, dict) and structured:
        return structured
    content = result.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    others: list[Json] = [part for part in parts if part.get("type") != "text"]
    return {"text": "\n".join(texts), **({"content": others} if others else {})}


class ServerToolAsks(ToolAsks):
    """As ``ToolAsks`` for a run that has MCP servers: their tools are called here, where it is let happen, and the worker
    gets what they gave."""

    def __init__(self, asking: RunContext, servers: RunServers) -> None:
        super().__init__(asking)
        self.at_once = False
        self._servers = servers

    def _of_server(
        self, tool: ServerTool, action: Mapping[str, Json], says: Effects, found: RecordedTool | None
    ) -> Mapping[str, Json]:
        """From the record where it is on record, whatever its effects, unless it was made with other wheels.

        Else it is made, in a replay too unless it acts on the outside: the server's box is the run's own, and is
        brought first to where the calls before it left it.
        """
        if self._servers.has_other_wheels(tool):
            found = None  # what these wheels give is what is asked
        if Effect.EXTERNAL in says.effects:
            answer = self._served(action, says, found)
            if answer is None:
                # a server that does not start, or waits for a person, was asked for nothing
                failed = self._servers.begin(tool)
                if failed is not None:
                    return failed
                self._begins(action)
        else:
            answer = self._serve(found) if found is not None and found.result is not None else None
        if answer is None:
            return self._servers.call(tool, action["args"])
        # Where its requests are not served from the record, what acts on the outside would act there once more.
        acts = Effect.EXTERNAL in says.effects and not self._asking.plan.replays
        if not says.effects <= AGAIN and not acts:
            self._servers.was_served(tool, action["args"])
        return answer

    def close(self) -> None:
        """See ``RequestHandler``."""
        self._servers.close()

    stop = close  # a call under way ends with its server
