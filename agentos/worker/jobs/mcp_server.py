"""The job ``mcp``: a program that speaks the Model Context Protocol on its standard streams, in a box of its own.

A client of our own, of the four messages that are needed: what a server writes may be anything, so it is read here,
in the box, and only what was understood goes to the kernel.
"""

from __future__ import annotations

import configparser
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from agentos import __version__
from agentos.messages import WHEELS, FaultFrame, McpJob, McpResult, McpServed, WireFault
from agentos.wire import LEVELS_MAX, Channel, FrameError, is_deeper, shorten
from agentos.worker import files
from agentos.worker.faults import Failed, fault
from agentos.worker.files import WorkerPlace
from agentos.worker.jobs.mcp_outside import KernelLine, Proxy, SessionLost, UrlServer

PROTOCOL = "2025-06-18"
FILES, BRINGS = "files", "server"  # in the workspace: its current directory, and what it brings
# tools of ours for what a server has beside tools: no tool of its has such a name
PROMPT, READ = ("prompt ", "read resource")
_NAMED_MAX = 50  # resources in a description
_PAGES_MAX = 50
_NO_METHOD = -32601
_UNREAD = (-32700, -32600)  # parse error, invalid request
_STRAY_MAX = 10_000  # lines that are no messages
_ERRORS_KEPT = 4_000  # bytes


def serve_calls(channel: Channel, job: McpJob, blobs: tuple[bytes, ...], place: WorkerPlace) -> None:
    """Start the server, say what its tools are, then answer one call frame after the other."""
    line = KernelLine(channel)
    try:
        server = McpSession(UrlServer(job, line)) if job.url else _started(job, blobs, place, line)
        line.send(server.begin(time.monotonic() + job.wall_s))
    except Failed as error:
        line.send(FaultFrame(fault=error.fault))
        return
    except FrameError as error:
        line.send(FaultFrame(fault=fault("limit", f"what it says of itself cannot be sent: {error}")))
        return
    while True:
        call = line.call()
        try:
            answer = McpResult(result=server.call(call.tool, call.args, time.monotonic() + call.wall_s))
        except Failed as error:
            answer = McpResult(fault=error.fault)
        try:
            line.send(answer)
        except (FrameError, ValueError) as error:
            line.send(McpResult(fault=fault("limit", f"its answer cannot be sent: {error}")))


def _started(job: McpJob, blobs: tuple[bytes, ...], place: WorkerPlace, line: KernelLine) -> McpSession:
    """With its files in place, and a proxy where it has a way out. Raises Failed."""
    count, after = len(job.files), len(job.files) + len(job.inputs)
    own, brought = place.workspace / FILES, place.workspace / BRINGS
    own.mkdir()
    files.write(place.snapshot, job.files, blobs[:count])
    files.write(own, job.inputs, blobs[count:after])
    if job.brings:
        files.unpack(brought, blobs[after])
    way_out = Proxy(job, place.workspace, line).environment if job.hosts else {}
    return McpSession(StdioServer(job, place.snapshot / job.root / WHEELS, (own, brought), way_out))


class Transport(Protocol):
    """How messages go to a server and come back. Both raise Failed."""

    def began(self, said: Mapping[str, Any]) -> None:
        """It answered ``initialize`` with this."""
        ...

    def send(self, message: dict[str, Any], deadline: float) -> None:
        """Send one; never waits longer than the deadline (time.monotonic)."""
        ...

    def receive(self, method: str, deadline: float) -> dict[str, Any]:
        """The next message of its; ``method`` is what was asked for."""
        ...


class McpSession:
    """One server that is spoken to. One request at a time; what it asks of us is refused."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._number = 0

    def begin(self, deadline: float) -> McpServed:
        """Shake hands and ask for all tools. Raises Failed."""
        said = self._shake_hands(deadline)
        told = said.get("serverInfo")
        info: dict[str, Any] = told if isinstance(told, dict) else {}
        able = said.get("capabilities")
        has: dict[str, Any] = able if isinstance(able, dict) else {}
        tools = self._listed("tools", deadline) if "tools" in has else []
        tools = [tool for tool in tools if not str(tool.get("name")).startswith((PROMPT, READ))]
        if "prompts" in has:
            tools += map(_prompt_tool, self._listed("prompts", deadline))
        if "resources" in has:
            tools.append(self._reading_tool(has["resources"], deadline))
        return McpServed(
            name=str(info.get("name", ""))[:1_000],
            version=str(info.get("version", ""))[:1_000],
            instructions=str(said.get("instructions") or "")[:100_000],
            tools=tools[:500],
        )

    def _shake_hands(self, deadline: float) -> dict[str, Any]:
        about = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "agentos", "version": __version__},
        }
        said = self._asked("initialize", about, deadline)
        self._transport.began(said)
        self._send({"method": "notifications/initialized"}, deadline)
        return said

    def call(self, tool: str, args: dict[str, Any], deadline: float) -> dict[str, Any]:
        """The result as MCP has it. Raises Failed."""
        if tool.startswith(PROMPT):
            about = {"name": tool[len(PROMPT) :], "arguments": args}
            return {"structuredContent": self._ask("prompts/get", about, deadline)}
        if tool == READ:
            return {"structuredContent": self._ask("resources/read", {"uri": args.get("uri")}, deadline)}
        return self._ask("tools/call", {"name": tool, "arguments": args}, deadline)

    def _listed(self, what: str, deadline: float, method: str = "") -> list[dict[str, Any]]:
        """All pages of a list. Raises Failed."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_PAGES_MAX):
            page = self._ask(method or f"{what}/list", {"cursor": cursor} if cursor else {}, deadline)
            listed = page.get(what)
            if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
                raise Failed(fault("protocol", f"its list of {what} is none"))
            found += listed
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return found

    def _reading_tool(self, about: Any, deadline: float) -> dict[str, Any]:
        """The tool that reads its resources. Those are part of its definition, unless the server says that they come and go."""
        listed = self._listed("resources", deadline)
        try:
            listed += self._listed("resourceTemplates", deadline, "resources/templates/list")
        except Failed as error:
            if error.fault.type != "refused":  # a server need not know of templates
                raise
        moves = isinstance(about, dict) and about.get("listChanged") is True
        named = (
            [] if moves else [f"{it.get('uri') or it.get('uriTemplate')} ({it.get('name')})" for it in listed]
        )
        which = ", ".join(named[:_NAMED_MAX]) or "those that it names"
        return _defined(READ, f"Reads a resource of the server by its URI: {which}", ["uri"], ["uri"])

    def _ask(self, method: str, params: dict[str, Any], deadline: float) -> dict[str, Any]:
        try:
            return self._asked(method, params, deadline)
        except SessionLost:
            self._shake_hands(deadline)
            return self._asked(method, params, deadline)

    def _asked(self, method: str, params: dict[str, Any], deadline: float) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params}, deadline)
        while True:
            message = self._transport.receive(method, deadline)
            if "method" in message:
                self._refuse(message, deadline)
            elif self._answers(message):
                if isinstance(error := message.get("error"), dict):
                    raise Failed(fault("refused", _why(error)))
                if not isinstance(result := message.get("result"), dict):
                    raise Failed(fault("protocol", f"its answer to {method} has no result"))
                return _plain(result, method)

    def _answers(self, message: Mapping[str, Any]) -> bool:
        """Whether it is for the one request that is under way; who could not read that one knows no id."""
        error = message.get("error") if message.get("id") is None else None
        unread = isinstance(error, dict) and error.get("code") in _UNREAD
        return unread or message.get("id") in (self._number, str(self._number))

    def _refuse(self, message: dict[str, Any], deadline: float) -> None:
        """It may ask to be answered at all; it gets no files, no models and no person of ours."""
        if not isinstance(
            message.get("id"), str | int | float
        ):  # of another kind it is no id, and may be of any depth
            return
        if message["method"] == "ping":
            self._send({"id": message["id"], "result": {}}, deadline)
            return
        refusal = {"code": _NO_METHOD, "message": "this client offers nothing"}
        self._send({"id": message["id"], "error": refusal}, deadline)

    def _send(self, message: dict[str, Any], deadline: float) -> None:
        self._transport.send({"jsonrpc": "2.0", **message}, deadline)


class StdioServer:
    """A started program, spoken to on its standard streams; implements ``Transport``."""

    def __init__(
        self, job: McpJob, wheels: Path, places: tuple[Path, Path], way_out: Mapping[str, str]
    ) -> None:
        own, brought = places
        self._most = job.output_bytes
        self._pending = bytearray()
        self._stray = ""
        self._strays = 0
        paths = [str(wheels), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **way_out, **job.environment}
        self._errors = b""  # the end of what it wrote on standard error
        try:
            self._process = subprocess.Popen(
                _argv(job.command, wheels, brought),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={name: value.replace("{server}", str(brought)) for name, value in environment.items()},
                cwd=own,
                bufsize=0,
            )
        except OSError as error:
            raise Failed(fault("load", f"it cannot be started: {error.strerror}")) from None
        self._listening = threading.Thread(target=self._listen, name="errors", daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        """A file of all its words would fill the box."""
        assert self._process.stderr is not None
        while data := os.read(self._process.stderr.fileno(), 1 << 16):
            self._errors = (self._errors + data)[-_ERRORS_KEPT:]

    def began(self, said: Mapping[str, Any]) -> None:
        """See ``Transport``; nothing follows from it here."""

    def send(self, message: dict[str, Any], deadline: float) -> None:
        """Never waits longer than the deadline for a server that does not read."""
        assert self._process.stdin is not None
        data = memoryview(json.dumps(message).encode() + b"\n")
        descriptor = self._process.stdin.fileno()
        os.set_blocking(descriptor, False)
        while data:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([], [descriptor], [], left_s)[1]:
                raise Failed(fault("timeout", "it does not read what it is sent"))
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise Failed(self._ended()) from None

    def receive(self, method: str, deadline: float) -> dict[str, Any]:
        """The next message; lines that are none are passed over."""
        while True:
            if time.monotonic() > deadline:  # whoever always has something to say is never waited for
                raise Failed(self._late(method))
            line = self._line(method, deadline).strip()
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
                return message
            if line:
                self._stray = self._stray or shorten(line.decode("utf-8", "replace"), 200)
                self._strays += 1
            if self._strays > _STRAY_MAX:
                raise Failed(fault("protocol", f"it writes lines that are no messages: {self._stray}"))

    def _line(self, method: str, deadline: float) -> bytes:
        assert self._process.stdout is not None
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            if len(self._pending) > self._most:
                raise Failed(fault("limit", f"a message of it is larger than {self._most:,} bytes"))
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left_s)[0]:
                raise Failed(self._late(method))
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise Failed(self._ended())
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        if len(line) > self._most:
            raise Failed(fault("limit", f"a message of it is larger than {self._most:,} bytes"))
        return line

    def _late(self, method: str) -> WireFault:
        said = f"; it wrote: {self._stray}" if self._stray else ""
        return fault("timeout", f"it did not answer {method} in time{said}")

    def _ended(self) -> WireFault:
        """What is said of a server that closed its streams."""
        try:
            code: int | None = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            code = None
        self._listening.join(1.0)  # programs of its own may hold the stream open
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        telling = [line for line in lines if "error" in line.lower()] or lines
        why = (
            f": {shorten(telling[-1].strip(), 500)}"
            if lines
            else f"; it wrote: {self._stray}"
            if self._stray
            else ""
        )
        how = "closed its streams" if code is None else f"ended with status {code}"
        return fault("exit", f"it {how}{why}")


def _why(error: dict[str, Any]) -> str:
    said = error.get("message")
    try:
        return shorten(said if isinstance(said, str) else str(error), 2_000)
    except RecursionError:
        return "it says why in too many levels"


def _plain(result: dict[str, Any], method: str) -> dict[str, Any]:
    """It, where the kernel takes it: Python's servers write NaN, which is no JSON. Raises Failed.

    Half of a surrogate pair, which servers make that cut texts, would be refused with the next model call.
    """
    try:
        data = json.dumps(result, allow_nan=False).encode()
        if b"\\ud" in data:
            result = json.loads(json.dumps(result, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise Failed(fault("output", f"its answer to {method} is not JSON: {error}")) from None
    if is_deeper(result, LEVELS_MAX, data):
        raise Failed(fault("output", f"its answer to {method} is nested more than {LEVELS_MAX} levels deep"))
    return result


def _prompt_tool(prompt: dict[str, Any]) -> dict[str, Any]:
    """The tool that gives a prompt, filled in."""
    said = prompt.get("arguments")
    arguments = [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    required = [str(one.get("name")) for one in arguments if one.get("required") is True]
    name = str(prompt.get("name"))
    about = str(prompt.get("description") or prompt.get("title") or name)
    return _defined(
        f"{PROMPT}{name}", f"Gives the prompt: {about}", [str(one.get("name")) for one in arguments], required
    )


def _defined(name: str, about: str, arguments: list[str], required: list[str]) -> dict[str, Any]:
    """As a server lists a tool of its own, which only reads."""
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": about, "inputSchema": schema, "annotations": {"readOnlyHint": True}}


def _argv(command: list[str], wheels: Path, brought: Path) -> list[str]:
    """What starts it: a script that its wheels declare, or a program of the box."""
    first, *rest = (word.replace("{server}", str(brought)) for word in command)
    if entry := _script(first, wheels):
        return [sys.executable, "-c", entry, *rest]
    if first in ("python", "python3"):
        return [sys.executable, *rest]
    if shutil.which(first) is None:
        raise Failed(fault("load", f"it needs '{first}', which this sandbox does not have"))
    return [first, *rest]


def _script(name: str, wheels: Path) -> str:
    """The code of the console script that a wheel declares by this name, "" where none does."""
    for found in sorted(wheels.glob("*.dist-info/entry_points.txt")):
        parser = configparser.ConfigParser(delimiters=("=",))
        parser.optionxform = str  # type: ignore[assignment,method-assign] # names have cases
        try:
            parser.read_string(found.read_text("utf-8"))
            target = parser.get("console_scripts", name, fallback="")
        except (configparser.Error, UnicodeDecodeError):
            continue
        module, _, attribute = target.partition("[")[0].strip().partition(":")
        if all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
            return (
                f"import sys; sys.argv[0] = {name!r}; from {module} import {attribute.split('.')[0]}; "
                f"sys.exit({attribute}())"
            )
    return ""
