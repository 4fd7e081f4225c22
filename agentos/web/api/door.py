"""What every request of a program has to pass: its address, its token, how much and how often it asks.

A browser cannot be used against the API: cookies count for nothing here, no other site may read an answer (no CORS
header is sent), and the value of Host must be ours, so a name that was rebound to this machine is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentos import checks
from agentos.daemon.control import tokens
from agentos.daemon.control.tokens import Token
from agentos.errors import (
    AgentOSError,
    Conflict,
    HomeBusy,
    Invalid,
    NotFound,
    Unavailable,
    UserError,
    error_json,
)
from agentos.home import Home

PREFIXES = ("/api/", "/v1/")
DOCUMENT = "/api/v1/openapi.json"  # holds nothing of the home, so it needs no token
BODY_MAX = 16 << 20  # bytes: files of a task in base64
RATE, BURST = 50.0, 200.0  # requests a second of one token in the long run, and at once
FAILED_RATE, FAILED_BURST = 1.0, 20.0  # of all that come without a token that is known
_BUCKETS_MAX = 4_096
_IN_ADDRESS = ("access_token", "api_key", "apikey", "authorization", "token")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Buckets:
    """Token buckets by name. Safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[str, tuple[float, float]] = {}  # what is left, and when that was
        self._lock = Lock()

    def take(self, name: str, rate: float, burst: float) -> float:
        """0 where one may go on, else the seconds after which one may."""
        now = self._clock()
        with self._lock:
            while len(self._found) >= _BUCKETS_MAX:
                del self._found[next(iter(self._found))]
            left, at = self._found.get(name, (burst, now))
            left = min(burst, left + (now - at) * rate)
            if left < 1:
                self._found[name] = (left, now)
                return (1 - left) / rate
            self._found[name] = (left - 1, now)
            return 0.0


class ApiDoor:
    """ASGI: requests of programs go to ``api`` with their token in ``scope["token"]``, all others to ``page``."""

    def __init__(self, home: Home, api: ASGIApp, page: ASGIApp, hosts: frozenset[str]) -> None:
        self._home, self._api, self._page, self._hosts = home, api, page, hosts
        self._buckets = Buckets()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIXES):
            await self._page(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._examine(scope)
        except ApiRefusal as error:
            await problem(Request(scope), error)(scope, receive, with_headers)
            return
        await self._api(scope, receive, with_headers)

    def _examine(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self._hosts:
            raise ApiRefusal(421, "wrong_host", "The API answers under the address of `agentos web` only.")
        if has_token_in_address(scope):
            raise ApiRefusal(
                400,
                "token_in_address",
                "A token goes into the header `Authorization: Bearer …`, never into an address: "
                "revoke this one by `agentos token revoke NAME`, and make another.",
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > BODY_MAX:
            raise ApiRefusal(413, "too_large", f"A request has at most {BODY_MAX:,} bytes.")
        if scope["path"] != DOCUMENT:
            scope["token"] = self._token(headers)

    def _token(self, headers: Headers) -> Token:
        given = headers.getlist("authorization")
        kind, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        found = tokens.known_token(self._home, text.strip()) if kind.lower() == "bearer" else None
        wait = (
            self._buckets.take(found.id, RATE, BURST)
            if found
            else self._buckets.take("", FAILED_RATE, FAILED_BURST)
        )
        if wait:
            again = {"Retry-After": f"{int(wait) + 1}"}
            raise ApiRefusal(429, "too_often", f"Too many requests: ask again in {wait:.1f} s.", again)
        if found is None:
            sentence = (
                "The token is unknown, revoked or expired"
                if given
                else "A token is needed in `Authorization`"
            )
            raise ApiRefusal(
                401,
                "no_token" if not given else "bad_token",
                f"{sentence}: `agentos token add NAME --scope SCOPE` makes one.",
                {"WWW-Authenticate": 'Bearer realm="agentos"'},
            )
        return found


def has_token_in_address(scope: Scope) -> bool:
    """Addresses end in histories, logs and Referers; whoever sends a token there is to learn that at once."""
    query = scope["query_string"].decode("latin-1")
    names = {unquote(part.partition("=")[0]).lower() for part in query.split("&")}
    return bool(names & set(_IN_ADDRESS)) or tokens.looks_like_one(unquote(f"{scope['path']}?{query}"))


class EventStream(StreamingResponse):
    """Server-sent events. ``ended`` is called once, also where the caller is gone before the first of them."""

    def __init__(self, events: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


# -------------------------------------------------------------------------------------------------
# How the API says that something went wrong: problem details (RFC 9457) under ``/api``, OpenAI's
# error object under ``/v1``.


_STATUS: tuple[tuple[type[AgentOSError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (HomeBusy, 409),
    (Invalid, 422),
    (UserError, 400),
    (Unavailable, 503),
)
# What OpenAI's clients know as the type of an error, by status; the rest is ``invalid_request_error``.
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 503: "server_error"}


class ApiRefusal(AgentOSError):
    """Something is refused for a reason that only HTTP knows. ``kind`` is for programs, the sentence for people."""

    def __init__(
        self, status: int, kind: str, sentence: str, headers: Mapping[str, str] | None = None, param: str = ""
    ) -> None:
        self.status, self.param = status, param
        self.headers = dict(headers or {})
        super().__init__(sentence, kind=kind)


def problem(request: Request, error: AgentOSError) -> Response:
    """The answer that tells the error."""
    if isinstance(error, ApiRefusal):
        return told(request.url.path, error)
    status = next((code for type_, code in _STATUS if isinstance(error, type_)), 500)
    return told(request.url.path, ApiRefusal(status, error.kind, str(error)), error)


def told(path: str, why: ApiRefusal, error: AgentOSError | None = None) -> Response:
    """An error in the form that callers of ``path`` expect; ``error`` is what it was before HTTP."""
    if path.startswith("/v1/"):
        body: dict[str, Any] = {"error": error_object(why.status, why.kind, str(why), why.param)}
        # what we refuse is refused again: their clients else repeat 409, 429 and 503 by themselves
        again = {"x-should-retry": "true" if why.status == 429 else "false"}
        return JSONResponse(body, why.status, headers={**again, **why.headers})
    body = {"type": "about:blank", "title": why.kind.replace("_", " "), "status": why.status}
    body |= error_json(error or why)
    return JSONResponse(body, why.status, headers=why.headers, media_type="application/problem+json")


def error_object(status: int, kind: str, sentence: str, param: str = "") -> dict[str, Any]:
    """As OpenAI's clients read it."""
    type_ = _TYPES.get(status, "invalid_request_error")
    return {"message": sentence, "type": type_, "param": param or None, "code": kind}


# -------------------------------------------------------------------------------------------------
# What a request says, held against its form: so much of it, in JSON, and nothing that the form does
# not know.


def read_query(request: Request, form: type[BaseModel] | None) -> Any:
    """The query, held against its form. Raises Invalid."""
    given = request.query_params.multi_items()
    if len({name for name, _ in given}) != len(given):
        raise Invalid("the query", ["a name is given twice"])
    return held_against(form or _Nothing, lambda model: model.model_validate(dict(given)), "the query")


class _Nothing(BaseModel, extra="forbid"):
    """No fields."""


async def read_body(request: Request, form: type[BaseModel]) -> Any:
    """The body, held against its form. Raises ApiRefusal and Invalid."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise ApiRefusal(415, "not_json", "The body is JSON: send `Content-Type: application/json`.")
    data = await _read(request, BODY_MAX)
    return await run_in_threadpool(_read_json, data, form)  # a second of a large one would hold up all others


def _read_json(data: bytes, form: type[BaseModel]) -> BaseModel:
    _refuse_twice(data)
    return held_against(form, lambda model: model.model_validate_json(data, strict=False), "the body")


def _refuse_twice(data: bytes) -> None:
    """A reader before us may have gone by the first of two equal keys where we would go by the last."""
    with suppress(ValueError, RecursionError):  # what is no JSON is told with its place by who reads it
        json.loads(data, object_pairs_hook=_unique, parse_int=str, strict=False)


def _unique(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ApiRefusal(
                400, "duplicate_key", f"The body gives the key {key[:60]!r} twice: give it once."
            )
        seen.add(key)


async def no_body(request: Request) -> object:
    """Nothing is expected, and what comes is not kept."""
    await _read(request, 1 << 16)
    return None


async def _read(request: Request, most: int) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise ApiRefusal(
                413, "too_large", f"This request has at most {most:,} bytes.", {"Connection": "close"}
            )
    return bytes(data)


def held_against(form: type[BaseModel], read: Callable[[type[BaseModel]], BaseModel], what: str) -> BaseModel:
    """What ``read`` makes of the form; Invalid with a sentence for each fault."""
    try:
        return read(form)
    except ValidationError as error:
        faults = [
            ": ".join(filter(None, (".".join(map(str, one["loc"])), checks.told(one))))
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise Invalid(what, faults[:50]) from None
