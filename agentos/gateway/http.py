"""The gateway's HTTP face: what OpenAI's clients speak, and what the daemon alone may ask."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agentos.domain import Json
from agentos.errors import ModelFailed
from agentos.gateway.answering import CallEnded, CallService, CallUnanswered
from agentos.gateway.calls import ProviderCall
from agentos.gateway.sessions import Session
from agentos.gateway.setup import CALL_HEADER, TIMEOUT_HEADER
from agentos.ports import Grant

BODY_MAX = 32 << 20
_TIMEOUT_S = 600.0
_STATUS: Mapping[str, int] = {
    "token": 401,
    "budget": 402,
    "evolution_budget": 402,
    "day_budget": 402,
    "not_allowed": 403,
    "not_recorded": 409,
    "request": 400,
    "context": 400,
    "overloaded": 503,
    "stopping": 503,
    "timeout": 504,
    "slow": 504,
}
_GRANT = TypeAdapter(Grant)
_DONE = TypeAdapter(dict[str, list[int]])


class GatewayRoutes:
    """The routes. ``stopping`` is set by whoever ends the gateway: no further call is taken then."""

    def __init__(self, answering: CallService, secret: str) -> None:
        self.stopping = False
        self._answering = answering
        self._secret = secret
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/control/open", self._open, methods=["POST"]),
                Route("/control/close", self._close, methods=["POST"]),
                Route("/control/stats", self._stats, methods=["GET"]),
            ]
        )

    # --- for runs -----------------------------------------------------------------------------

    async def _complete(self, request: Request) -> Response:
        try:
            session = self._session(request)
            asked = await _body(request)
            answer = await self._answering.complete(session, asked, _timeout(request))
        except ClientDisconnect:
            return Response(status_code=499)
        except (CallEnded, CallUnanswered) as error:
            return _refusal(error.kind, str(error), _about(error.call, session))
        except ModelFailed as error:
            return _refusal(error.kind, self._answering.redactor.text(str(error)))
        about = _about(answer.call, session)
        if not asked.get("stream"):
            return Response(answer.body, media_type="application/json", headers=about)
        usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        return StreamingResponse(
            iter([b"".join(events(json.loads(answer.body), usage=usage))]),
            media_type="text/event-stream",
            headers=about,
        )

    async def _models(self, request: Request) -> Response:
        try:
            session = self._session(request)
        except ModelFailed as error:
            return _refusal(error.kind, str(error))
        models = [
            {"id": spec.name, "object": "model", "created": 0, "owned_by": spec.provider or "default"}
            for spec in session.grant.models
        ]
        return JSONResponse({"object": "list", "data": models})

    def _session(self, request: Request) -> Session:
        if self.stopping:
            raise ModelFailed("stopping", "the gateway is ending and takes no more calls")
        session = self._answering.tokens.find(_bearer(request))
        if session is None:
            raise ModelFailed("token", "this token is not, or no longer, good for any run")
        return session

    # --- for the daemon -----------------------------------------------------------------------

    async def _open(self, request: Request) -> Response:
        if refused := self._refused(request):
            return refused
        try:
            table = await _body(request)
            grant = _GRANT.validate_python(table.get("grant"))
            session, token = self._answering.open(grant, _DONE.validate_python(table.get("done", {})))
        except (ModelFailed, ValidationError) as error:
            return _refusal("request", str(error))
        return JSONResponse({"id": session.id, "token": token})

    async def _close(self, request: Request) -> Response:
        if refused := self._refused(request):
            return refused
        self._answering.tokens.revoke(str((await _body(request)).get("id")))
        return JSONResponse({})

    async def _stats(self, request: Request) -> Response:
        stats = {"grants": len(self._answering.tokens), "in_flight": self._answering.in_flight}
        return self._refused(request) or JSONResponse(stats)

    def _refused(self, request: Request) -> Response | None:
        """Control is for whoever started the gateway; a run's token does not open it."""
        if hmac.compare_digest(_bearer(request).encode(), self._secret.encode()):
            return None
        return _refusal("token", "control requests need the secret that the gateway was started with")


def _bearer(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _timeout(request: Request) -> float:
    try:
        seconds = float(request.headers.get(TIMEOUT_HEADER, _TIMEOUT_S))
    except ValueError:
        return _TIMEOUT_S
    return min(max(seconds, 0.0), 24 * 3600.0) if math.isfinite(seconds) else _TIMEOUT_S


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; raises ModelFailed("request")."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > BODY_MAX:
            raise ModelFailed("request", f"the request has more than {BODY_MAX:,} bytes")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelFailed("request", f"the request is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFailed("request", "the request must be a JSON object")
    return value


def _about(call: ProviderCall, session: Session) -> dict[str, str]:
    about = {
        "id": call.id,
        "key": call.key,
        "nth": call.nth,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "estimated": bool(call.estimated),
        "usd": call.usd,
        "latency_ms": call.latency_ms,
        "recorded": bool(call.served_from),
        "own": call.served_from == call.id,  # from what this very run was answered before
        "model": call.answered_by,
        "run_id": session.grant.run_id,
        "ended": call.state == "done",
    }
    return {CALL_HEADER: json.dumps(about)}


def _refusal(kind: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    error: Json = {"error": {"message": message, "type": "agentos", "param": None, "code": kind}}
    return JSONResponse(error, _STATUS.get(kind, 502), headers=dict(headers or {}))


# --- A finished chat completion as the stream of chunks that a client asked for ------------------
# Nothing is given out that is not on record, so a stream begins when the whole answer is there.


_PIECE = 64  # characters of text in a chunk


def events(body: Mapping[str, Any], *, usage: bool) -> Iterator[bytes]:
    """Server-sent events; ``usage`` adds the chunk that ``stream_options.include_usage`` asks for."""
    about = {key: body[key] for key in ("id", "created", "model", "system_fingerprint") if key in body}
    about["object"] = "chat.completion.chunk"
    for choice in body.get("choices") or ():
        index = choice.get("index", 0)
        for delta in _deltas(choice.get("message") or {}):
            yield _event({**about, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
        end = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield _event({**about, "choices": [end]})
    if usage:
        yield _event({**about, "choices": [], "usage": body.get("usage")})
    yield b"data: [DONE]\n\n"


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    text = message.get("content")
    calls = message.get("tool_calls") or ()
    others = {key: value for key, value in message.items() if key not in ("content", "tool_calls", "role")}
    yield {"role": message.get("role", "assistant"), **others}
    if isinstance(text, str):
        yield from ({"content": text[at : at + _PIECE]} for at in range(0, max(len(text), 1), _PIECE))
    for place, call in enumerate(calls):
        yield {"tool_calls": [{**call, "index": place}]}


def _event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n\n"
