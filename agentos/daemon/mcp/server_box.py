"""One MCP server in a box of its own, from the kernel's side: it is started, says what it has, and is called.

The box has no network and no file of the host; it ends with the run that it was opened for, and so does the server.
What the server asks of the outside comes here, request by request, and is handed to whoever may make it (``Fetch``).
"""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentos.domain import Json, Limits
from agentos.errors import BoxDied, Unavailable, to_type
from agentos.messages import WHEELS, Answer, Ask, FaultFrame, McpCall, McpJob, McpResult, McpServed, WireFault
from agentos.ports import Box, Sandbox
from agentos.resources.declarations import ServerTool
from agentos.sandboxes.box import Exchange

_START_S = 30.0
_SLACK_S = 5.0  # beyond a call's own time: the box watches that itself
_MEMORY_MB = 1024  # node reserves far more address space than it uses
_FILES_MB = 64  # for what it writes, beside what it brings
_LIST_BYTES = 4 << 20
_ASKS_MAX = 2_000  # requests of one server to the outside
_ANSWERED = ("refused", "output")  # faults of a server that answered, if with nothing that is of use
_WORDS = {"wall": "timeout", "output": "limit", "protocol": "protocol", "memory": "memory"}


# Makes one request of a server to the outside, or says why not. Raises RunEnds and Unavailable.
Fetch = Callable[[Ask], Answer]


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """What a server is made of. ``modules`` are its unpacked wheels, ``brings`` the tar of its own files."""

    resource: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, bytes] = field(default_factory=dict)
    brings: bytes | None = None
    url: str = ""
    hosts: tuple[
        str, ...
    ] = ()  # that it may reach by ``fetch``; ``environment`` are headers where it has a URL


def program_of(server: ServerTool, modules: Mapping[str, bytes], brings: bytes | None) -> ServerProgram:
    """What starts it."""
    about = (server.resource, server.command, server.environment)
    return ServerProgram(*about, modules, brings, server.url, server.hosts)


@dataclass(frozen=True, slots=True)
class ServedRun:
    """The run that a server is started for: what it finds in its directory, and for how long and how much it may speak.

    The defaults are for a look at what a server says of itself.
    """

    id: str = ""
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    wall_s: float = 60.0
    output_bytes: int = 1 << 20


def mcp_fault(type: str, message: str, resource: str) -> WireFault:
    """A fault of the tools of this resource."""
    return WireFault(type=type, message=message[:20_000], where="", resource=resource)


class McpFault(Exception):
    """The server did not do what was asked of it. ``over`` says that it is not to be asked again."""

    def __init__(self, fault: WireFault, *, over: bool = True) -> None:
        self.fault = fault
        self.over = over
        super().__init__(fault.message)


_LOOK = ServedRun()


class ServerBox:
    """A running server; ``served`` is what it said of itself. One call at a time, from any thread."""

    def __init__(
        self,
        sandbox: Sandbox,
        program: ServerProgram,
        run: ServedRun = _LOOK,
        fetch: Fetch | None = None,
        opened: Callable[[ServerBox], None] | None = None,
    ) -> None:
        """Start it; ``opened`` gets it as soon as it can be closed. Raises McpFault, Unavailable."""
        self._calling = threading.Lock()
        self._fetch = fetch
        self._asked = 0
        self._resource = program.resource
        self._is_far = bool(program.url)
        brings = program.brings
        size = sum(map(len, run.inputs.values())) + len(brings or b"")
        limits = Limits(
            wall_s=run.wall_s,
            memory_mb=_MEMORY_MB,
            workspace_mb=_FILES_MB + (size >> 20),
            output_bytes=max(run.output_bytes, _LIST_BYTES),
        )
        certificate = certificate_for(program.hosts) if program.hosts and not program.url else ""
        self._box: Box = sandbox.open(limits, run=run.id)
        start_s = min(_START_S, run.wall_s)
        self._exchange = Exchange(self._box, start_s + _SLACK_S)
        job = McpJob(
            root=program.resource,
            files=[f"{program.resource}/{WHEELS}/{name}" for name in program.modules],
            inputs=list(run.inputs),
            brings=brings is not None,
            command=list(program.command),
            environment=dict(program.environment),
            url=program.url,
            hosts=list(program.hosts),
            certificate=certificate,
            wall_s=start_s,
            output_bytes=limits.output_bytes,
        )
        blobs = [*program.modules.values(), *run.inputs.values(), *([brings] if brings is not None else [])]
        with ExitStack() as undo:
            undo.callback(self.close)
            if opened is not None:
                opened(self)
            self.served: McpServed = self._talk(job, blobs, McpServed, "served")
            undo.pop_all()

    def call(self, tool: str, args: Mapping[str, Json], until: float) -> dict[str, Json]:
        """The result as MCP has it; ``until`` on the time.monotonic clock. Raises McpFault, Unavailable."""
        with self._calling:
            wall_s = max(0.01, until - time.monotonic())
            self._exchange.extend(wall_s + _SLACK_S)
            answer = self._talk(McpCall(tool=tool, args=dict(args), wall_s=wall_s), (), McpResult, "result")
        if answer.fault is not None:
            raise self._fault(answer.fault)
        return dict(answer.result or {})

    def close(self) -> None:
        """End the server and its box; idempotent, from any thread."""
        self._box.close()

    def _talk(self, message: Any, blobs: Any, kind: Any, word: str) -> Any:
        try:
            self._exchange.send(message, blobs)
            answer, _ = self._exchange.receive({word: kind, "ask": Ask})
            while isinstance(answer, Ask):
                self._exchange.send(self._answer(answer))
                answer, _ = self._exchange.receive({word: kind, "ask": Ask})
        except BoxDied as error:
            if error.cause == "gone":
                raise
            told = mcp_fault(_WORDS.get(error.cause, "exit"), f"its box ended: {error}", self._resource)
            raise self._fault(told, ended=True) from None
        if isinstance(answer, FaultFrame):
            raise self._fault(answer.fault, ended=True)
        return answer

    def _answer(self, ask: Ask) -> Answer:
        """What becomes of a request to the outside."""
        self._asked += 1
        if self._fetch is None or ask.what != "fetch":
            why = ("effect", "this server was given no way out: name hosts by `agentos mcp add --host`")
        elif self._asked > _ASKS_MAX:
            why = ("limit", f"a server makes at most {_ASKS_MAX:,} requests in one run")
        else:
            return self._fetch(ask)
        return Answer(id=ask.id, fault=mcp_fault(*why, self._resource))

    def _fault(self, fault: WireFault, *, ended: bool = False) -> McpFault:
        """A refusal is an answer like another; after everything else nobody knows in which state a program is.

        A server by URL serves others too, and each of its answers is read whole: it may be asked again.
        """
        message = f"the MCP server {self._resource.partition('/')[2]}: {fault.message}"
        over = ended or (not self._is_far and fault.type not in _ANSWERED)
        return McpFault(mcp_fault(fault.type, message, self._resource), over=over)


# --- A certificate for the hosts that one server's box may reach, of use in that box alone -------
# TLS of the server's requests is ended inside its box, so that the kernel can hold each to its rules; nobody but
# the programs of that box trusts it, and it is thrown away with the box.


_DAYS = "3"  # a box lives for minutes; clocks differ
_TIMEOUT_S = 30.0


def certificate_for(hosts: Iterable[str]) -> str:
    """Key and certificate as PEM, for these (``name``, ``*.name``, ``name:port``). Raises Unavailable."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise Unavailable(
            "an MCP server with a way out needs openssl, which is not here: type ",
            to_type("apt-get install openssl"),
        )
    names = ",".join(sorted({_alternative(host) for host in hosts}))
    extensions = [
        f"subjectAltName={names}",
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,keyCertSign,digitalSignature",
    ]
    with tempfile.TemporaryDirectory(prefix="agentos-certificate-") as folder:
        key, made = Path(folder, "key"), Path(folder, "made")
        command = [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]
        command += ["-subj", "/CN=agentos", "-days", _DAYS, "-keyout", str(key), "-out", str(made)]
        command += [word for extension in extensions for word in ("-addext", extension)]
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"openssl made no certificate for the MCP server: {error}") from None
        return key.read_text() + made.read_text()


def _alternative(host: str) -> str:
    name = host[1:].partition("]")[0] if host.startswith("[") else host
    name = name.partition(":")[0] if name.count(":") == 1 else name
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"
