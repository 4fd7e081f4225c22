"""Lets a run's requests to the outside world through, one by one, to the hosts that a person named.

The box has no network: what it asks for here is made by the kernel, recorded as a step, and never
made in a replay or a trial.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from agentos.daemon.requests.run_requests import Answerer, Asking, Denied, RunEnds
from agentos.domain import Effect, Json, KernelFault, Result, kernel_fault
from agentos.errors import Unavailable

BODY_MAX = 4 << 20  # of a response
_PATIENCE_S = 30.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_SET_BY_US = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


class Egress(Answerer):
    """One run's way out. ``hosts`` are names, or ``*.name`` for all below one; ``name:port`` for a port."""

    def __init__(self, hosts: Sequence[str], asking: Asking) -> None:
        self._hosts = hosts
        self._asking = asking

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"status", "headers", "body"}, the body in base64; redirects are given, not followed."""
        asking = self._asking
        if Effect.EXTERNAL not in asking.task.effects:
            raise Denied("effect", "the task does not allow outside effects: add 'external' to its effects")
        if asking.plan.replays:
            why = "a replay came to a request to the outside, which is never repeated"
            raise RunEnds(Result.NOT_REPLAYABLE, kernel_fault(KernelFault.NOT_RECORDED, why))
        method, url, headers, content = _request(body)
        target = self._allowed(url)
        began = time.monotonic()
        try:
            status, found, data = _fetch(method, target, headers, content, asking.deadline)
        except (OSError, http.client.HTTPException) as error:
            asking.step("fetch", {"method": method, "url": url}, {"error": str(error)}, _ms(began))
            raise Denied("unreachable", f"{target.hostname} does not answer: {error}") from None
        seen = {"status": status, "bytes": len(data)}
        asking.step("fetch", {"method": method, "url": url}, seen, _ms(began))
        if len(data) > BODY_MAX:
            raise Denied("limit", f"the response is larger than {BODY_MAX} bytes")
        return {"status": status, "headers": found, "body": base64.b64encode(data).decode()}

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
