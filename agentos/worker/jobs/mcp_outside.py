"""The way out of an MCP server's box: each request goes to the kernel, which makes it or refuses.

A server by URL is spoken to in this way. A program gets a proxy on loopback, which ends TLS here, with a certificate
that is of use in this box alone: so the kernel sees each request whole, holds it to the hosts that a person named,
and puts secrets in that this box never holds.
"""

from __future__ import annotations

import base64
import itertools
import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pydantic import BaseModel

from agentos.messages import Answer, Ask, McpCall, McpJob
from agentos.wire import Channel, FrameError, WireClosed, shorten
from agentos.worker.faults import Failed, fault
from agentos.worker.rpc import Refused

BODY_MAX = 5 << 20  # of a request
_BUSY = frozenset({429, 503})  # nothing was done yet
_PASSES = _BUSY | {500, 502, 504}  # what only reads may be asked again
_TRIES, _WAIT_S, _WAIT_MAX_S = 4, 0.5, 5.0
_CHANGING = "tools/call"
_CERTIFICATE, _KEY = "certificate.pem", "key.pem"
_OF_THE_HOP = frozenset(
    {"connection", "proxy-connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host"}
)
_FOR_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_FOR_TRUST = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


class KernelLine:
    """The one channel, read by a thread of its own: calls are for the job, answers for whoever asked."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._calls: SimpleQueue[McpCall | Exception] = SimpleQueue()
        self._waiting: dict[int, SimpleQueue[Answer | Exception]] = {}
        threading.Thread(target=self._read, name="kernel", daemon=True).start()

    def send(self, message: BaseModel) -> None:
        """Raises FrameError where it does not fit into a frame."""
        with self._sending:
            self._channel.send(message.model_dump())

    def call(self) -> McpCall:
        """The next one; raises what ended the channel."""
        found = self._calls.get()
        if isinstance(found, Exception):
            raise found
        return found

    def fetch(self, body: dict[str, Any]) -> dict[str, Any]:
        """One request to the outside, as ``messages.Ask`` says. Raises Refused, FrameError, and what ended the channel."""
        number, place = next(self._numbers), SimpleQueue[Answer | Exception]()
        self._waiting[number] = place
        try:
            self.send(Ask(id=number, what="fetch", body=body))
            found = place.get()
        finally:
            del self._waiting[number]
        if isinstance(found, Exception):
            raise found
        if found.fault is not None:
            raise Refused(found.fault)
        return found.body

    def _read(self) -> None:
        try:
            while True:
                head = self._channel.receive().head
                if head.get("type") == "call":
                    self._calls.put(McpCall.model_validate(head))
                else:
                    answer = Answer.model_validate(head)
                    if place := self._waiting.get(answer.id):
                        place.put(answer)
        except (WireClosed, FrameError, ValueError) as error:  # whoever waits is told, and the job ends
            self._calls.put(error)
            for place in [*self._waiting.values()]:
                place.put(error)


class SessionLost(Failed):
    """A server by URL does not know the session any more: nothing was done, and a new one has to begin."""


class UrlServer:
    """A server that is reached by URL (MCP's streamable HTTP), one request for each message; implements ``Transport``.
    How long a request may take is the kernel's to say.
    """

    def __init__(self, job: McpJob, line: KernelLine) -> None:
        self._url = job.url
        self._own = dict(job.environment)  # headers, with the names of secrets in them
        self._headers: dict[str, str] = {}
        self._line = line
        self._messages: deque[dict[str, Any]] = deque()

    def began(self, said: Mapping[str, Any]) -> None:
        """What it said to ``initialize``: from now on each request names the version that it speaks."""
        self._headers["MCP-Protocol-Version"] = str(said.get("protocolVersion", ""))[:100]

    def send(self, message: Mapping[str, Any], deadline: float) -> None:
        """Post one message, and take in what it answers with. Raises Failed, SessionLost."""
        body = base64.b64encode(json.dumps(message).encode()).decode()
        passing = _BUSY if message.get("method") == _CHANGING else _PASSES
        for number in range(1, _TRIES + 1):
            found = self._posted(body)
            wait_s = max(_WAIT_S * 2 ** (number - 1), _asked_to_wait(found["headers"]))
            too_late = wait_s > min(_WAIT_MAX_S, deadline - time.monotonic())
            if found["status"] not in passing or number == _TRIES or too_late:
                break
            time.sleep(wait_s)
        data = base64.b64decode(found["body"])
        if session := found["headers"].get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        if not 200 <= found["status"] < 300:
            raise self._refusal(found, data)
        if "id" not in message or "method" not in message:
            return  # nothing was asked: whatever stands there ("Accepted") is no answer
        stream = "text/event-stream" in found["headers"].get("content-type", "").lower()
        self._messages += _messages(_events(data), passing=True) if stream else _messages([data])

    def _posted(self, body: str) -> dict[str, Any]:
        told = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers = {**told, **self._headers, **self._own}
        try:
            return self._line.fetch({"method": "POST", "url": self._url, "headers": headers, "body": body})
        except Refused as error:
            raise Failed(fault(error.fault.type, error.fault.message)) from None
        except FrameError as error:
            raise Failed(fault("limit", f"what it is sent is too large: {error}")) from None

    def _refusal(self, found: Mapping[str, Any], data: bytes) -> Failed:
        where = found["headers"].get("location", "")
        said = f"go to {where}" if where else data.decode("utf-8", "replace").strip()
        told = fault("exit", shorten(f"it answered with HTTP {found['status']}: {said}", 500))
        # by the protocol 404; several servers say 400
        lost = found["status"] == 404 or (found["status"] == 400 and "session" in said.lower())
        if lost and "Mcp-Session-Id" in self._headers:
            self._headers.clear()
            return SessionLost(told)
        return Failed(told)

    def receive(self, method: str, deadline: float) -> dict[str, Any]:
        """The next message of what it answered. Raises Failed."""
        if time.monotonic() > deadline:  # each request of its that is refused is one of ours
            raise Failed(fault("timeout", f"it did not answer {method} in time"))
        if not self._messages:
            raise Failed(fault("protocol", f"what it answered to {method} holds no reply"))
        return self._messages.popleft()


def _asked_to_wait(headers: Mapping[str, str]) -> float:
    """Seconds, 0 where it says none; the protocol's other form, a date, is not read."""
    said = headers.get("retry-after", "").strip()
    return float(said) if said.isascii() and said.isdecimal() and len(said) < 10 else 0.0


def _events(data: bytes) -> list[bytes]:
    """The data of each server-sent event."""
    blocks = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n")
    lines = [
        [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")] for block in blocks
    ]
    return [b"\n".join(block) for block in lines if block]


def _messages(documents: list[bytes], *, passing: bool = False) -> list[dict[str, Any]]:
    """Raises Failed for what is no JSON, unless that is passed over, as a stream may hold other words."""
    found: list[dict[str, Any]] = []
    for document in filter(None, map(bytes.strip, documents)):
        try:
            value = json.loads(document)
        except (ValueError, RecursionError):
            if passing:
                continue
            raise Failed(fault("protocol", "it answered with something that is no JSON")) from None
        found += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
    return found


class Proxy:
    """A proxy for the program of this box, on loopback; serves from the moment it is made."""

    def __init__(self, job: McpJob, place: Path, line: KernelLine) -> None:
        cut = job.certificate.find("-----BEGIN CERTIFICATE")
        (place / _KEY).write_text(job.certificate[:cut])
        (place / _CERTIFICATE).write_text(job.certificate[cut:])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place / _CERTIFICATE, place / _KEY)
        context.set_alpn_protocols(["http/1.1"])
        server = _ProxyServer(job.hosts, context, line)
        threading.Thread(target=server.serve_forever, name="proxy", daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        self.environment = {
            **dict.fromkeys(_FOR_PROXY, url),
            **dict.fromkeys(_FOR_TRUST, str(place / _CERTIFICATE)),
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "NODE_USE_ENV_PROXY": "1",
        }


class _ProxyServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hosts: list[str], context: ssl.SSLContext, line: KernelLine) -> None:
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        self.hosts, self.context, self.line = hosts, context, line

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a program that hangs up is no error of ours."""


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _ProxyServer
    origin = ""  # of a connection that TLS was ended for

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        place = host if port == "443" else self.path
        if not any(fnmatchcase(place.lower(), allowed.lower()) for allowed in self.server.hosts):
            self._say(
                403, f"{place} is not a host that this server may reach: name it by `agentos mcp add --host`"
            )
            return
        self.send_response(200)
        self.end_headers()
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb", -1)
        self.wfile = self.connection.makefile("wb", 0)
        self.origin = f"https://{place}"
        self.close_connection = False

    def _any(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_THE_HOP}
        url = f"{self.origin}{self.path}" if self.path.startswith("/") else self.path
        try:
            body = base64.b64encode(self._body()).decode()
            asked = {"method": self.command, "url": url, "headers": headers, "body": body}
            found = self.server.line.fetch(asked)
        except Refused as error:
            self._say(403 if error.fault.type == "effect" else 502, error.fault.message)
            return
        except (ValueError, FrameError) as error:
            self.close_connection = True
            self._say(413, str(error))
            return
        data = base64.b64decode(found["body"])
        self.send_response(found["status"])
        for name, value in found["headers"].items():
            if name not in _OF_THE_HOP and (name != "content-length" or self.command == "HEAD"):
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else data)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _any

    def _body(self) -> bytes:
        """Raises ValueError."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self._read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline(100).partition(b";")[0], 16):
            data += self._read(size, len(data))
            self.rfile.readline(100)
        while self.rfile.readline(10_000).strip():
            pass
        return data

    def _read(self, size: int, before: int = 0) -> bytes:
        if not 0 <= size <= BODY_MAX - before:
            raise ValueError(f"a request has at most {BODY_MAX:,} bytes")
        return self.rfile.read(size)

    def _say(self, status: int, message: str) -> None:
        data = message.encode()
        self.send_response(
            status, shorten(" ".join(message.split()), 200).encode("ascii", "replace").decode()
        )
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the kernel has the record."""
