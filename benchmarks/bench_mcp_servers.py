"""Nine public MCP servers: added, every tool called once from a run's place, nothing left behind.

    python benchmarks/bench_mcp_servers.py [--sandbox bubblewrap|docker] [--only NAME …] [--json FILE]

Five come from PyPI and four from npm, as the machine's own pip and npm get them; it needs both, node, and a network. Each
server is added as `agentos mcp add` does it, and started in a box of its own; each tool is called with arguments made
from its schema. A call counts as answered also where the answer is an error: what is told apart is a server that is over.
At the end a process with all nine servers started is killed (SIGKILL), and what runs of it 30 s later is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentos.daemon.mcp.adding import NewServer, add_server
from agentos.daemon.mcp.packages import archive, packages_of
from agentos.daemon.mcp.server_box import McpFault, ServedRun, ServerBox, ServerProgram, program_of
from agentos.daemon.mcp.server_skill import tools_of
from agentos.daemon.setup import init_home
from agentos.errors import AgentOSError
from agentos.home import Home
from agentos.ports import Sandbox
from agentos.registry.store import Registry
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings

SERVERS: Mapping[str, str] = {
    "time": "uvx mcp-server-time",
    "git": "uvx mcp-server-git",
    "fetch": "uvx mcp-server-fetch",
    "sqlite": "uvx --with mcp<2 mcp-server-sqlite",
    "calculator": "uvx mcp-server-calculator",
    "filesystem": "npx -y @modelcontextprotocol/server-filesystem .",
    "memory": "npx -y @modelcontextprotocol/server-memory",
    "thinking": "npx -y @modelcontextprotocol/server-sequential-thinking",
    "everything": "npx -y @modelcontextprotocol/server-everything",
}
_CALL_S = 60.0
_GONE_S = 30.0
_MARK = "AGENTOS_BENCH"  # a variable of each server's environment, by which its processes are found
_VALUES: Mapping[str, Any] = {
    "timezone": "UTC",
    "source_timezone": "UTC",
    "target_timezone": "Asia/Tokyo",
    "time": "12:00",
    "repo_path": ".",
    "path": ".",
    "url": "https://example.org/",
    "expression": "1 + 2",
    "query": "SELECT 1",
    "duration": 1,
    "steps": 1,
}


@dataclass(slots=True)
class ServerResult:
    """What became of one server; ``fault`` is the sentence where it was refused."""

    name: str
    fault: str = ""
    added_s: float = 0.0
    started_s: float = 0.0
    tools: int = 0
    answered: int = 0
    errors: int = 0  # of the answered ones, those that say that it did not work
    call_ms: float = 0.0  # median
    over: str = ""  # the first fault that ended the server during a call


def value_for(name: str, schema: Mapping[str, Any]) -> Any:
    """Something of the schema's type."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return arguments(schema)
    if kind == "array":
        return [value_for(name, schema.get("items") or {"type": "string"})]
    plain = {"integer": 1, "number": 1, "boolean": False, "null": None}
    return plain[kind] if kind in plain and name not in _VALUES else _VALUES.get(name, "a")


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The required ones."""
    known = schema.get("properties") or {}
    return {name: value_for(name, known.get(name, {})) for name in schema.get("required") or ()}


def measured(home: Home, sandbox: Sandbox, name: str, mark: str) -> ServerResult:
    """Add it, start it, and call every tool."""
    result = ServerResult(name)
    began = time.monotonic()
    try:
        new = NewServer(name, packages_of(SERVERS[name].split()), environment={_MARK: mark})
        add_server(home, sandbox, new)
    except AgentOSError as error:
        result.fault = str(error)
        return result
    result.added_s = time.monotonic() - began
    took: list[float] = []
    began = time.monotonic()
    try:
        with closing(
            ServerBox(sandbox, program(home, name), ServedRun(inputs={"a.txt": b"a"}, wall_s=600.0))
        ) as box:
            result.started_s = time.monotonic() - began
            result.tools = len(box.served.tools)
            for tool in box.served.tools:
                _call(box, tool, result, took)
    except McpFault as error:
        result.over = result.over or str(error)
    result.call_ms = statistics.median(took) * 1000 if took else 0.0
    return result


def _call(box: ServerBox, tool: Mapping[str, Any], result: ServerResult, took: list[float]) -> None:
    began = time.monotonic()
    try:
        found = box.call(str(tool["name"]), arguments(tool["inputSchema"]), began + _CALL_S)
        result.errors += found.get("isError") is True
    except McpFault as error:
        if error.over:
            raise
        result.errors += 1
    result.answered += 1
    took.append(time.monotonic() - began)


def program(home: Home, name: str) -> ServerProgram:
    """What starts a server that was added."""
    registry = Registry(home.registry)
    files = registry.files(registry.stable(), f"skill/{name}")
    tool = tools_of(files)[0]
    modules = registry.wheels_of(files).get(tool.resource, {})
    return program_of(tool, modules, archive(home, tool.brings) if tool.brings else None)


def running(mark: str) -> int:
    """Processes of this machine with the mark in their environment."""
    count = 0
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            count += f"{_MARK}={mark}".encode() in place.read_bytes()
        except OSError:
            continue
    return count


def left_after_kill(root: Path, sandbox: str, names: list[str], mark: str) -> tuple[int, int]:
    """How many processes ran when the one that started all servers was killed, and how many do 30 s later."""
    command = [sys.executable, __file__, "--hold", str(root), "--sandbox", sandbox, "--only", *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        before = running(mark)
        child.send_signal(signal.SIGKILL)
    until = time.monotonic() + _GONE_S
    while running(mark) and time.monotonic() < until:
        time.sleep(0.2)
    return before, running(mark)


def hold(root: Path, sandbox: str, names: list[str]) -> None:
    """Start them all, say so, and wait to be killed."""
    home = Home(root)
    with closing(Choice(root, load_settings(home.settings).run_uid, sandbox)) as chosen:
        boxes = [ServerBox(chosen, program(home, name), ServedRun(wall_s=600.0)) for name in names]
        print(len(boxes), flush=True)
        signal.pause()


def row(it: ServerResult) -> str:
    numbers = f"{it.added_s:>8.1f}{it.started_s:>9.1f}{it.tools:>7}{it.answered:>10}{it.errors:>8}{it.call_ms:>8.0f}"
    return f"{it.name:<12}{numbers}  {it.fault or it.over}"


def show(results: list[ServerResult], before: int, left: int) -> None:
    whole = [it for it in results if not it.fault]
    answered, tools = sum(it.answered for it in results), sum(it.tools for it in results)
    print(
        f"| public MCP servers that work | {len(whole)} of {len(results)} | | the others refused in a sentence |"
    )
    print(f"| their tools that answered | {answered} of {tools} | | arguments made from the schema |")
    print(f"| their processes after SIGKILL | {left} | {before} before | within {_GONE_S:.0f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", default="bubblewrap", choices=("bubblewrap", "docker"))
    parser.add_argument("--only", nargs="*", default=list(SERVERS), choices=list(SERVERS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--hold", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.hold:
        hold(given.hold, given.sandbox, given.only)
        return
    mark = os.urandom(8).hex()
    with tempfile.TemporaryDirectory(prefix="agentos-bench-mcp-") as place:
        root = Path(place, "home")
        home = Home(root)
        init_home(home)
        with closing(Choice(root, load_settings(home.settings).run_uid, given.sandbox)) as sandbox:
            print(
                f"{'server':<12}{'add s':>8}{'start s':>9}{'tools':>7}{'answered':>10}{'errors':>8}{'ms':>8}  remark"
            )
            results = []
            for name in given.only:
                results.append(measured(home, sandbox, name, mark))
                print(row(results[-1]), flush=True)
        whole = [it.name for it in results if not it.fault]
        before, left = left_after_kill(root, given.sandbox, whole, mark)
    show(results, before, left)
    if given.json:
        document = {"sandbox": given.sandbox, "servers": results, "killed": before, "left": left}
        given.json.write_text(
            json.dumps(document, default=lambda it: {k: getattr(it, k) for k in it.__slots__})
        )


if __name__ == "__main__":
    main()
