"""Lets a run's requests to the outside world through, one by one, to the hosts that a person named.

The box has no network: what it asks for here is made by the kernel and recorded as a step, the request with
what came of it. In a replay or a trial it is never made: the n-th of equal requests gets the n-th recorded answer.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from agentos.daemon.requests.run_requests import Answerer, Asking, Denied, RunEnds
from agentos.domain import Effect, Json, KernelFault, Result, digest, kernel_fault
from agentos.errors import Unavailable
from agentos.evolver.history.recordings import FETCH, fetch_key

BODY_MAX = 4 << 20  # of a response
_PATIENCE_S = 30.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_KEYS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
_SET_BY_US = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


class Egress(Answerer):
    """One run's way out. ``hosts`` are names, or ``*.name`` for all below one; ``name:port`` for a port."""

    def __init__(self, hosts: Sequence[str], asking: Asking) -> None:
        self._hosts = hosts
        self._asking = asking
        self._recorded: dict[str, list[Json]] = {}
        for fetch in (asking.plan.recording and asking.plan.recording.fetches) or ():
            self._recorded.setdefault(fetch_key(fetch.request), []).append(fetch.answer)
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"status", "headers", "body"}, the body in base64; redirects are given, not followed."""
        asking = self._asking
        if Effect.EXTERNAL not in asking.task.effects:
            raise Denied("effect", "the task does not allow outside effects: add 'external' to its effects")
        method, url, headers, content = _request(body)
        asked = {"method": method, "url": url, "headers": _without_keys(headers), "body": _told(content)}
        began = time.monotonic()
        if asking.plan.replays:
            seen = self._served(asked)
            asking.step(FETCH, asked, {**seen, "recorded": True}, _ms(began))
        else:
            seen = self._made(method, url, headers, content)
            asking.step(FETCH, asked, seen, _ms(began))
        if "type" in seen:
            raise Denied(str(seen["type"]), str(seen["error"]))
        data = _data(seen["body"])
        return {"status": seen["status"], "headers": seen["headers"], "body": base64.b64encode(data).decode()}

    def _made(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> dict[str, Json]:
        """What came of it, as it is recorded: an answer, or the ``type`` of a fault and its ``error``."""
        target = self._allowed(url)
        try:
            status, found, data = _fetch(method, target, headers, content, self._asking.deadline)
        except (OSError, http.client.HTTPException) as error:
            return {"type": "unreachable", "error": f"{target.hostname} does not answer: {error}"}
        if len(data) > BODY_MAX:
            return {
                "type": "limit",
                "error": f"the response is larger than {BODY_MAX} bytes",
                "status": status,
            }
        return {"status": status, "headers": found, "body": _told(data), "bytes": len(data)}

    def _served(self, asked: Json) -> dict[str, Json]:
        """What came of the same request on record. Raises RunEnds."""
        key = fetch_key(self._asking.redact(asked))  # on record it stands without its secrets
        with self._lock:
            number = self._asked[key]
            self._asked[key] += 1
        answers = self._recorded.get(key, ())
        if number >= len(answers):
            why = "a replay came to a request to the outside that is not on record, and such a one is never made"
            raise RunEnds(Result.NOT_REPLAYABLE, kernel_fault(KernelFault.NOT_RECORDED, why))
        return {name: value for name, value in answers[number].items() if name != "recorded"}

    def _allowed(self, url: str) -> SplitResult:
        try:
            target = urlsplit(url)
            port = target.port
        except ValueError as error:
            raise Denied("request", f"the URL cannot be read: {error}") from None
        host = (target.hostname or "").rstrip(".")
        if target.scheme not in ("http", "https") or not host or target.username is not None:
            raise Denied("request", "a URL is http:// or https://, with a host and without a user")
        if "%" in host:  # a zone within an address may read like a name that is allowed
            raise Denied("request", "a host has no '%'")
        place = host if port is None else f"{host}:{port}"
        for allowed in map(str.lower, self._hosts):
            if place == allowed or (allowed.startswith("*.") and place.endswith(allowed[1:])):
                return target
        raise Denied(
            "effect", f"{place} is not a host that runs may reach: add it to 'egress' in agentos.toml"
        )


def _request(body: Mapping[str, Any]) -> tuple[str, str, dict[str, str], bytes]:
    """What is asked for, held against what may be. Raises Denied."""
    method, url = str(body.get("method", "GET")).upper(), str(body.get("url", ""))
    headers = body.get("headers") or {}
    if method not in _METHODS or not isinstance(headers, dict) or len(url) > 8_000:
        raise Denied("request", f"a request has a method of {', '.join(sorted(_METHODS))}, a URL and headers")
    if any(ord(letter) <= 32 or ord(letter) > 126 for letter in url):
        raise Denied("request", "a URL is made of visible ASCII characters")
    sent = {
        str(name): str(value)
        for name, value in headers.items()
        if str(name).strip().lower() not in _SET_BY_US
    }
    try:
        return method, url, sent, base64.b64decode(str(body.get("body", "")), validate=True)
    except ValueError:
        raise Denied("request", "the body has to be base64") from None


def _without_keys(headers: Mapping[str, str]) -> dict[str, Json]:
    """The headers as they are recorded: of what lets somebody in, a digest that tells equal ones."""
    return {
        name: f"sha256 {digest([value])[:16]}" if name.strip().lower() in _KEYS else value
        for name, value in headers.items()
    }


def _told(data: bytes) -> Json:
    """A body as it is recorded: as text where it is one, so that secrets are seen in it."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _data(told: Json) -> bytes:
    return base64.b64decode(told["base64"]) if isinstance(told, dict) else str(told).encode()


def _fetch(
    method: str, target: SplitResult, headers: Mapping[str, str], content: bytes, deadline: float
) -> tuple[int, dict[str, str], bytes]:
    patience_s = min(_PATIENCE_S, deadline - time.monotonic())
    if patience_s <= 0:
        raise Unavailable("the run's time is over")
    until = time.monotonic() + patience_s
    host, secure = target.hostname or "", target.scheme == "https"
    connection = http.client.HTTPConnection(host, target.port or (443 if secure else 80))
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    plain = socket.create_connection((host, connection.port), patience_s)
    with plain, plain.dup() as handle:
        # The socket's own patience is for each read: whoever sends a byte now and then would hold us for ever.
        cut = threading.Timer(patience_s, _cut, (handle,))
        cut.start()
        try:
            connection.sock = _secured(plain, host) if secure else plain
            connection.request(method, path, content or None, dict(headers))
            response = connection.getresponse()
            data = response.read(BODY_MAX + 1)
        except ValueError as error:  # a header with a line break
            raise Denied("request", str(error)) from None
        finally:
            cut.cancel()
            connection.close()
    if time.monotonic() >= until:
        raise TimeoutError(f"not within {patience_s:.0f} s")
    return response.status, {name.lower(): value for name, value in response.getheaders()}, data


def _secured(plain: socket.socket, host: str) -> socket.socket:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(plain, server_hostname=host)


def _cut(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is over already
        handle.shutdown(socket.SHUT_RDWR)


def _ms(began: float) -> float:
    return (time.monotonic() - began) * 1000
