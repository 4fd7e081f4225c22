"""Serves the table of operations, the streams, the document and the agents: what ``app.py`` mounts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agentos.errors import AgentOSError
from agentos.plaintext import json_text
from agentos.web.api import openapi
from agentos.web.api.chat import chat_routes
from agentos.web.api.door import DOCUMENT, ApiDoor
from agentos.web.api.operations import OPERATIONS, ApiCall, ApiHome, ApiOperation, Done, note_act
from agentos.web.api.problems import ApiRefusal, problem, told
from agentos.web.api.requests import no_body, read_body, read_query
from agentos.web.api.streams import Streams
from agentos.web.api.tokens import Token, TokenScope

PREFIX = "/api/v1"
_KINDS = {404: "not_found", 405: "method_not_allowed"}


def with_api(site: ApiHome, page: ASGIApp, hosts: frozenset[str], is_ending: Callable[[], bool]) -> ApiDoor:
    """The page with the API beside it. Arguments as of ``app.make_app``."""
    streams = Streams(site, is_ending)
    routes = [
        Route(DOCUMENT, _document, methods=["GET"]),
        Route(f"{PREFIX}/events", guarded(TokenScope.LOOK, streams.events), methods=["GET"]),
        Route(f"{PREFIX}/runs/{{id}}/events", guarded(TokenScope.LOOK, streams.steps), methods=["GET"]),
        Route(
            f"{PREFIX}/runs/{{id}}/files/{{number:int}}",
            guarded(TokenScope.LOOK, streams.file),
            methods=["GET"],
        ),
        *(
            Route(PREFIX + it.path, guarded(it.scope, _serving(site, it)), methods=[it.method])
            for it in OPERATIONS
        ),
        *chat_routes(site, is_ending, guarded),
    ]
    handlers: Mapping[Any, Any] = {HTTPException: _http, AgentOSError: problem}
    api = Starlette(routes=routes, exception_handlers=handlers)
    api.router.redirect_slashes = False
    return ApiDoor(site.home, api, page, hosts)


def guarded(scope: TokenScope | None, serve: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Only for tokens that have the scope."""

    async def checked(request: Request) -> Response:
        token: Token = request.scope["token"]
        if scope is not None and scope not in token.scopes:
            raise ApiRefusal(
                403,
                "wrong_scope",
                f"This needs a token with the scope {scope.value}; {token.name} has {', '.join(token.scopes)}.",
            )
        response: Response = await serve(request)
        return response

    return checked


def _serving(site: ApiHome, it: ApiOperation) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        body = await read_body(request, it.body) if it.body else await no_body(request)
        token: Token = request.scope["token"]
        call = ApiCall(
            site, token, request.path_params, read_query(request, it.query), body, _seen(request, it), etag_of
        )
        return await run_in_threadpool(_done, it, call)

    return serve


def _done(it: ApiOperation, call: ApiCall) -> Response:
    found = it.do(call)
    if isinstance(found, Done):
        note_act(call.site, call.token, it.id, found.subject)
        return _json(found.told, it.status)
    return _json(found, it.status, {"ETag": f'"{etag_of(found)}"'})


def etag_of(value: Any) -> str:
    """A digest of what is told."""
    return hashlib.sha256(json_text(value).encode()).hexdigest()


def _json(value: Any, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_text(value), status, headers=headers, media_type="application/json")


def _seen(request: Request, it: ApiOperation) -> str:
    if not it.bound:
        return ""
    given = request.headers.get("if-match", "").strip()
    if not given:
        raise ApiRefusal(
            428,
            "not_looked_at",
            "Look at the evolution first, and send its ETag as `If-Match`: nobody decides on what they have not seen.",
        )
    return given.strip('"')


async def _http(request: Request, error: HTTPException) -> Response:
    kind = _KINDS.get(error.status_code, "refused")
    sentence = f"{request.method} {request.url.path[:200]}: {error.detail}; {DOCUMENT} says what there is."
    return told(request.url.path, error.status_code, kind, sentence, headers=error.headers)


async def _document(request: Request) -> Response:
    return Response(json.dumps(openapi.document(), indent=1), media_type="application/json")
