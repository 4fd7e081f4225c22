"""Calls of MCP servers that are answered from the record: which of them a server has to be told of all the same."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.mcp.server_box import ServerBox
from agentos.daemon.requests.run_requests import RunContext, RunSpending
from agentos.daemon.requests.server_calls import RunServers, ServerParts, ServerToolAsks
from agentos.domain import Effect, Json, Limits, Mode, RecordedTool, Recording, Snapshot, Step, Task
from agentos.ports import Plan
from agentos.resources.declarations import ServerTool, server_tool

PATH = "skill/post/tools/send/tool.json"
NOTHING: Any = None  # no box is opened here
GIVEN = {"ok": True, "output": {"id": 7}}


class Box:
    """A server that runs."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def call(self, tool: str, args: Mapping[str, Json], until: float) -> dict[str, Json]:
        self.calls.append(tool)
        return {}


def manifest(effect: Effect) -> bytes:
    mcp = {"tool": "send", "definition": "d"}
    return json.dumps({"name": "send", "effects": [effect.value], "command": ["true"], "mcp": mcp}).encode()


def asking(effect: Effect, plan: Plan) -> RunContext:
    now, limits = datetime.now(UTC), Limits()
    return RunContext(
        run_id="run-1",
        task=Task("t", "", "", None, (), "default", limits, (*Effect,), (), None, now),
        snapshot=Snapshot("", ""),
        plan=plan,
        bundle=Bundle({PATH: manifest(effect)}, "", limits),
        deadline=time.monotonic() + 10,
        step=lambda node, action, seen, ms: Step("run-1", 0, node, action, seen, None, now, ms),
        spent=RunSpending(),
    )


def record_of(effect: Effect, *, replays: bool) -> tuple[RunServers, ServerTool, ServerToolAsks]:
    recording = Recording(("run-0",), Snapshot("", ""), (RecordedTool("post/send", {}, GIVEN, None),))
    mode: Any = {"mode": Mode.REPLAY} if replays else {"resume": True}
    context = asking(effect, Plan(recording=recording, **mode))
    servers = RunServers(ServerParts(NOTHING, NOTHING, NOTHING), context)
    tool = server_tool(PATH, context.bundle.files[PATH])
    assert isinstance(tool, ServerTool)
    return servers, tool, ServerToolAsks(context, servers)


# A call of which a server has to be told all the same, in a replay or in an attempt that goes on from one that was cut.
TOLD = [
    (Effect.WRITE, True, ["send"]),
    (Effect.WRITE, False, ["send"]),
    (Effect.READ, True, []),
    (Effect.EXTERNAL, True, ["send"]),  # its requests come from the record
    (Effect.EXTERNAL, False, []),  # they would be made: it is sent once
]


@pytest.mark.parametrize(("effect", "replays", "calls"), TOLD)
def test_a_server_that_runs_is_told_of_what_changed_it(
    effect: Effect, replays: bool, calls: list[str]
) -> None:
    servers, tool, asks = record_of(effect, replays=replays)
    box = Box()
    servers._server(tool).box = cast(ServerBox, box)
    assert asks.answer({"tool": "post/send", "args": {}})["observation"] == GIVEN
    assert box.calls == calls


@pytest.mark.parametrize(("effect", "replays", "calls"), TOLD)
def test_and_one_that_starts_later_is(effect: Effect, replays: bool, calls: list[str]) -> None:
    servers, tool, asks = record_of(effect, replays=replays)
    assert asks.answer({"tool": "post/send", "args": {}})["observation"] == GIVEN
    assert [name for name, _ in servers._server(tool).before] == calls
