"""Lets a run's requests to the outside world through, one by one, to the hosts that a person named.

The box has no network: what it asks for here is made by the kernel and recorded as a step, the request with
what came of it. A name is resolved once, and the address that was looked at is the one connected to: what lies
on this machine or in its own networks only where the settings name the address or its network. In a replay or a trial it is never made: the n-th of equal requests gets the n-th recorded answer.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import SplitResult, urlsplit

from agentos.daemon.requests.run_requests import (
    Denied,
    RequestHandler,
    RunContext,
    RunEnds,
    Ungranted,
)
from agentos.daemon.requests.secret_requests import OutgoingRequest, fill, place_of
from agentos.domain import Effect, Json, KernelFault, Result, digest, kernel_fault
from agentos.evolver.find.mining import GRANT
from agentos.evolver.history.recordings import FETCH, fetch_key
from agentos.home import Home
from agentos.resources.declarations import ServerTool

BODY_MAX = 4 << 20  # of a response
_PATIENCE_S = 30.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_KEYS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")  # and halves of characters
_HEADERS_MAX = 64 << 10
_EMBEDDING = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address in the last 32 bits
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_SET_BY_US = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


class Egress(RequestHandler):
    """One run's way out. ``hosts`` are names, or ``*.name`` for all below one; ``name:port`` for a port.

    Addresses and networks (``10.1.2.0/24``) among them are those that a name may lead to although they are
    not public.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        asking: RunContext,
        home: Home | None = None,
        server: ServerTool | None = None,
    ) -> None:
        """``home`` has the secrets. ``server``: the requests are those of an MCP server, and go no further than it was allowed when it was added."""
        self._hosts = hosts
        self._home = home
        self._server = server
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
        patience_s = min(_PATIENCE_S, self._asking.deadline - time.monotonic())
        if patience_s <= 0:  # its box ends in a moment, which says so of the run
            return {"type": "timeout", "error": "the run's time is over"}
        until = time.monotonic() + patience_s
        granted = self._server.secrets if self._server else None
        try:
            target, host = self._allowed(url)
            request = OutgoingRequest(method, target, headers, content)
            filled = fill(self._home, self._asking, request, granted)
        except Denied as error:  # on record: somebody may want to know what was tried
            return _refusal(error)
        try:
            seen = self._answered(filled.request, host, until)
        except Denied as error:  # it may quote what was sent
            seen = _refusal(error)
        return {name: filled.redact(value) for name, value in seen.items()}

    def _answered(self, request: OutgoingRequest, host: str, until: float) -> dict[str, Json]:
        port = request.target.port or (443 if request.target.scheme == "https" else 80)
        try:
            plain = _connected(self._addresses(host, port, until), port, until)
            status, found, data = _fetch(plain, request, http.client.HTTPConnection(host, port), until)
        except ssl.SSLCertVerificationError as error:
            why = f"{host} shows a certificate that is not trusted ({error.verify_message})"
            told = "SSL_CERT_FILE in the daemon's environment names those to trust"
            return {"type": "unreachable", "error": f"{why}: {told}"}
        except (OSError, http.client.HTTPException) as error:
            return {"type": "unreachable", "error": f"{host} does not answer: {error}"}
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

    def _allowed(self, url: str) -> tuple[SplitResult, str]:
        """The URL's parts and its host, in lower case. Raises Denied."""
        try:
            target = urlsplit(url)
            host, place = place_of(target)
        except ValueError as error:
            raise Denied("request", f"the URL cannot be read: {error}") from None
        if target.scheme not in ("http", "https") or not host or target.username is not None:
            raise Denied("request", "a URL is http:// or https://, with a host and without a user")
        if "%" in host:  # a zone within an address may read like a name that is allowed
            raise Denied("request", "a host has no '%'")
        if _literal(host) is None and (len(host) > 253 or not all(map(_LABEL.fullmatch, host.split(".")))):
            raise Denied("request", "a host is a name of labels of 1 to 63 letters, digits, '-' and '_'")
        if self._server is not None and not is_named(place, self._server.hosts):
            name = self._server.resource.partition("/")[2]
            why = f"{place} is not a host that the MCP server {name} may reach: name it by `agentos mcp add --host`"
            raise Ungranted(why)
        if is_named(place, self._hosts):
            return target, host
        raise Ungranted(f"{place} is not a host that runs may reach: add it to 'egress' in agentos.toml")

    def _addresses(self, host: str, port: int, until: float) -> list[_Address]:
        """Where the host is, as far as a run may go there. Raises Denied, OSError."""
        found = list(dict.fromkeys(_resolved(host, port, until)))
        named = [network for entry in self._hosts if (network := _network(entry, port)) is not None]
        allowed = [
            address for address in found if _is_public(address) or any(address in net for net in named)
        ]
        if not allowed:
            raise Ungranted(
                f"{host} leads to {', '.join(map(str, found)) or 'nowhere'}, which is not public: "
                "add that address, or its network, to 'egress' in agentos.toml",
            )
        return allowed


def is_named(place: str, hosts: Sequence[str]) -> bool:
    """Whether ``name`` or ``name:port`` is among the hosts: equal to one, or below a ``*.name``."""
    return any(
        place in (allowed, f"[{allowed}]") or (allowed.startswith("*.") and place.endswith(allowed[1:]))
        for allowed in map(str.lower, hosts)
    )


def _refusal(error: Denied) -> dict[str, Json]:
    """As it is recorded, and answered."""
    said: dict[str, Json] = {"type": error.fault.type, "error": error.fault.message}
    return said | {GRANT: True} if isinstance(error, Ungranted) else said


def _literal(text: str) -> _Address | None:
    """The address that the text is; one that only wraps an IPv4 address is that one."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address in _EMBEDDING:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def _network(entry: str, port: int) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """What an entry of the settings names of addresses, for this port; None where it is a name."""
    text = entry.removesuffix(f":{port}") if entry.count(":") == 1 or entry.startswith("[") else entry
    text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    address = _literal(text)
    try:
        return ipaddress.ip_network(text if address is None else address, strict=False)
    except ValueError:
        return None


def _is_public(address: _Address) -> bool:
    odd = address.is_multicast or address.is_unspecified or address.is_reserved or address.is_link_local
    if isinstance(address, ipaddress.IPv6Address):
        # site-local is no longer to be used, and still is (RFC 3879)
        odd = odd or address.is_site_local or address.teredo is not None
    return address.is_global and not odd


def _resolved(host: str, port: int, until: float) -> list[_Address]:
    """All addresses of the host, asked for once. Raises OSError, also when that takes too long."""
    answers: SimpleQueue[list[str] | OSError] = SimpleQueue()

    def resolve() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put([str(place[0]) for *_, place in found])
        except (OSError, UnicodeError) as error:
            answers.put(OSError(str(error)))

    threading.Thread(target=resolve, name="resolving", daemon=True).start()
    try:
        answer = answers.get(timeout=max(0.0, until - time.monotonic()))
    except Empty:
        raise TimeoutError("its name was not resolved in time") from None
    if isinstance(answer, OSError):
        raise answer
    return [address for text in answer if (address := _literal(text)) is not None]


def _connected(addresses: Sequence[_Address], port: int, until: float) -> socket.socket:
    """A connection to the first of these that takes one; none of them may take the time of all. Raises OSError."""
    last = OSError("nowhere to connect to")
    for number, address in enumerate(addresses):
        sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6)
        try:
            left_s = until - time.monotonic()
            sock.settimeout(max(0.01, left_s / (len(addresses) - number + 1)))
            sock.connect((str(address), port))
            sock.settimeout(max(0.01, until - time.monotonic()))
        except OSError as error:
            sock.close()
            last = error
        else:
            return sock
    raise last


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
    if sum(len(name) + len(value) for name, value in sent.items()) > _HEADERS_MAX:
        raise Denied("request", f"the headers have {_HEADERS_MAX} characters at most")
    for name, value in sent.items():
        if not _HEADER.fullmatch(name) or _CONTROL.search(value):
            raise Denied("request", f"the header {name!r:.80} has a control character, or no name")
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
    plain: socket.socket, request: OutgoingRequest, connection: http.client.HTTPConnection, until: float
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what answers on the open socket; ``connection`` names its host and port."""
    target = request.target
    secure = target.scheme == "https"
    connection.default_port = 443 if secure else 80  # what is left out after the host's name
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    with plain, plain.dup() as handle:
        # The socket's own patience is for each read: whoever sends a byte now and then would hold us for ever.
        cut = threading.Timer(max(0.01, until - time.monotonic()), _cut, (handle,))
        cut.start()
        try:
            connection.sock = _secured(plain, connection.host) if secure else plain
            connection.request(request.method, path, request.content or None, dict(request.headers))
            response = connection.getresponse()
            data = response.read(BODY_MAX + 1)
            if response.length and len(data) <= BODY_MAX:  # read() does not tell of what never came
                raise http.client.IncompleteRead(data, response.length)
        except ssl.SSLError:  # that of a certificate is a ValueError, too
            raise
        except ValueError as error:  # a header that is not Latin-1
            raise Denied("request", str(error)) from None
        finally:
            cut.cancel()
            connection.close()
    if time.monotonic() >= until:
        raise TimeoutError("not in time")
    found: dict[str, str] = {}
    for name, value in response.getheaders():  # one that is there several times is one list
        found[name.lower()] = f"{found[name.lower()]}, {value}" if name.lower() in found else value
    if any(_CONTROL.search(part) for header in found.items() for part in header):
        raise http.client.HTTPException("its headers have control characters")
    return response.status, found, data


def _secured(plain: socket.socket, host: str) -> socket.socket:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(plain, server_hostname=host)


def _cut(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is over already
        handle.shutdown(socket.SHUT_RDWR)


def _ms(began: float) -> float:
    return (time.monotonic() - began) * 1000
