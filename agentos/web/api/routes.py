"""Serves the table of operations, the streams, the document and the agents: what ``app.py`` mounts."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agentos import __version__
from agentos.daemon.control.tokens import Token, TokenScope, still_stands
from agentos.daemon.views.json_views import without_share
from agentos.domain import Run, Step
from agentos.errors import AgentOSError, NotFound
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.plaintext import json_text
from agentos.web.api import documents
from agentos.web.api.chat import chat_routes
from agentos.web.api.door import (
    DOCUMENT,
    ApiDoor,
    ApiRefusal,
    EventStream,
    no_body,
    problem,
    read_body,
    read_query,
    told,
)
from agentos.web.api.home import ApiHome, note_act
from agentos.web.api.operations import OPERATIONS, ApiCall, ApiOperation, Done

PREFIX = "/api/v1"
_KINDS = {404: "not_found", 405: "method_not_allowed"}


class _Place(IntegerConvertor):
    """The place of one of a few: a number of thousands of digits is no int in Python."""

    regex = "[0-9]{1,9}"


register_url_convertor("place", _Place())


def with_api(site: ApiHome, page: ASGIApp, hosts: frozenset[str], is_ending: Callable[[], bool]) -> ApiDoor:
    """The page with the API beside it. Arguments as of ``app.make_app``."""
    streams = Streams(site, is_ending)
    routes = [
        Route(DOCUMENT, _document, methods=["GET"]),
        Route(f"{PREFIX}/events", guarded(TokenScope.LOOK, streams.events), methods=["GET"]),
        Route(f"{PREFIX}/runs/{{id}}/events", guarded(TokenScope.LOOK, streams.steps), methods=["GET"]),
        Route(
            f"{PREFIX}/runs/{{id}}/files/{{number:place}}",
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
    return told(request.url.path, ApiRefusal(error.status_code, kind, sentence, error.headers))


async def _document(request: Request) -> Response:
    return Response(json.dumps(document(), indent=1), media_type="application/json")


# -------------------------------------------------------------------------------------------------
# What is followed while it happens: the audit log and the steps of a run, as server-sent events that
# can be resumed.


EVERY_S = 0.5
ALIVE_EVERY = 40  # looks without news, after which a comment keeps the connection
OPEN_MAX = 64  # streams at a time
_AT_ONCE = 500


class Streams:
    """Serves them; at most ``OPEN_MAX`` at a time, until the server or the token ends."""

    def __init__(self, site: ApiHome, is_ending: Callable[[], bool]) -> None:
        self._site, self._is_ending = site, is_ending
        self._open = 0

    async def events(self, request: Request) -> Response:
        """What happens in this home, in the order of the audit log; from now on, or after ``Last-Event-ID``."""
        reader = self._site.reader
        given = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = _place(given) if given else (await run_in_threadpool(reader.head)).count
        return self._stream(self._entries(reader, after, request.scope["token"]))

    def _is_over(self, token: Token) -> bool:
        return self._is_ending() or not still_stands(self._site.home, token.name, token.id)

    async def _entries(self, reader: Reader, after: int, token: Token) -> AsyncIterator[str]:
        quiet = 0
        while not self._is_over(token):
            found = await run_in_threadpool(reader.entries_after, after, _AT_ONCE)
            for entry in found:
                after = entry.seq
                told = {"seq": entry.seq, "at": entry.at, "event": entry.event, "subject": entry.subject}
                yield f"id: {entry.seq}\nevent: {entry.event}\ndata: {json_text(told)}\n\n"
            quiet = 0 if found else quiet + 1
            if quiet >= ALIVE_EVERY:
                quiet = 0
                yield ": \n\n"
            if len(found) < _AT_ONCE:
                await asyncio.sleep(EVERY_S)

    async def steps(self, request: Request) -> Response:
        """The steps of a run as they come, then the run; after that the stream ends."""
        reader = self._site.reader
        run_id = await run_in_threadpool(reader.resolve, "run", request.path_params["id"])
        given = request.headers.get("last-event-id", "")
        after = _place(given) if given else -1
        return self._stream(self._steps(reader, run_id, after, request.scope["token"]))

    async def _steps(self, reader: Reader, run_id: str, after: int, token: Token) -> AsyncIterator[str]:
        quiet = 0
        while not self._is_over(token):
            run, steps = await run_in_threadpool(_look, reader, run_id, after)
            for step in steps:
                after = step.index
                yield f"id: {step.index}\nevent: step\ndata: {json_text(step)}\n\n"
            if run.outcome is not None:
                yield f"event: run\ndata: {json_text(without_share(run))}\n\n"
                return
            quiet = 0 if steps else quiet + 1
            if quiet >= ALIVE_EVERY:
                quiet = 0
                yield ": \n\n"
            await asyncio.sleep(EVERY_S)

    def _stream(self, events: AsyncIterator[str]) -> Response:
        if self._open >= OPEN_MAX:
            raise ApiRefusal(
                429, "too_many_streams", f"{OPEN_MAX} streams are open already.", {"Retry-After": "5"}
            )

        async def beginning() -> AsyncIterator[str]:
            yield "retry: 2000\n\n"
            async for event in events:
                yield event

        self._open += 1  # before anything is waited for: many come at once
        return EventStream(beginning(), self._leave)

    def _leave(self) -> None:
        self._open -= 1

    async def file(self, request: Request) -> Response:
        """A file that a run left, by its place in the list: no path comes from the address."""
        return await run_in_threadpool(self._file, request)

    def _file(self, request: Request) -> Response:
        reader = self._site.reader
        run = reader.run(reader.resolve("run", request.path_params["id"]))
        number = request.path_params["number"]
        if not 0 <= number < len(run.outputs):
            raise NotFound(f"{run.id} left {len(run.outputs)} files, counted from 0.")
        file = run.outputs[number]
        name = quote(PurePosixPath(file.path).name, safe="")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        content = BlobStore(self._site.home.blobs).get(file.sha256)
        return Response(content, media_type="application/octet-stream", headers=headers)


def _look(reader: Reader, run_id: str, after: int) -> tuple[Run, list[Step]]:
    """The run before its steps: so that none that came before its end is left out."""
    run = reader.run(run_id)
    return run, list(reader.steps(run_id, after))


def _place(text: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise ApiRefusal(400, "bad_place", "`Last-Event-ID` is the id of an event of this stream, a number.")
    return int(text)


# --- The OpenAPI document, made of the table of operations and of the forms: nothing in it is written twice


_REF = "#/components/schemas/{model}"
_ALWAYS = (400, 401, 403, 413, 429)  # what every operation may answer
_STREAMS = {
    "/events": ("events.follow", "What happens, in the order of the audit log, as server-sent events."),
    "/runs/{id}/events": ("runs.follow", "The steps of a run as server-sent events, then the run."),
}


@cache
def document() -> dict[str, Any]:
    """The whole of it."""
    shapes, schemas = _schemas()
    paths: dict[str, Any] = {}
    for it in OPERATIONS:
        paths.setdefault(PREFIX + it.path, {})[it.method.lower()] = _described(it, shapes)
    for path, (name, summary) in _STREAMS.items():
        paths[PREFIX + path] = {"get": _other(path, name, summary, "text/event-stream")}
    file = "/runs/{id}/files/{number}"
    paths[PREFIX + file] = {
        "get": _other(file, "runs.file", "A file that a run left.", "application/octet-stream")
    }
    bearer = {"type": "http", "scheme": "bearer", "description": "`agentos token add NAME --scope SCOPE`"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "agentos", "version": __version__, "license": {"name": "Apache-2.0"}},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": bearer}},
    }


def _schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each body and answer by the operation's id, and all that they refer to."""
    inputs: list[tuple[str, Any, TypeAdapter[Any]]] = []
    for it in OPERATIONS:
        inputs.append((f"{it.id}:returns", "serialization", TypeAdapter(it.returns)))
        if it.body:
            inputs.append((f"{it.id}:body", "validation", TypeAdapter(it.body)))
    inputs.append(("problem", "serialization", TypeAdapter(documents.Problem)))
    found, defs = TypeAdapter.json_schemas(inputs, ref_template=_REF)
    schemas = dict(defs["$defs"])
    _without(schemas["Run"], "share")  # as json_views leaves them out
    _without(schemas["Consent"], "token")
    return {name: schema for (name, _), schema in found.items()}, schemas


def _without(schema: dict[str, Any], name: str) -> None:
    del schema["properties"][name]
    schema["required"] = [one for one in schema["required"] if one != name]


def _described(it: ApiOperation, shapes: dict[str, Any]) -> dict[str, Any]:
    scope = f"Needs the scope `{it.scope}`." if it.scope else "Needs any token."
    told: dict[str, Any] = {
        "operationId": it.id,
        "tags": [it.id.partition(".")[0]],
        "summary": it.summary,
        "description": scope,
        "parameters": [*_in_path(it.path), *_in_query(it), *([_IF_MATCH] if it.bound else [])],
        "responses": {
            str(it.status): {"description": "Done.", "content": _json_content(shapes[f"{it.id}:returns"])},
            **_problems(*((404, 409, 422) if it.path != "/token" else (422,)), *_more(it)),
        },
    }
    if it.body:
        told["requestBody"] = {"required": True, "content": _json_content(shapes[f"{it.id}:body"])}
    return told


def _more(it: ApiOperation) -> tuple[int, ...]:
    return (*((415,) if it.body else ()), *((412, 428) if it.bound else ()))


_IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "The ETag of the evolution as it was looked at.",
    "schema": {"type": "string", "pattern": '^"[0-9a-f]{64}"$'},
}


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0}
            if name == "number"
            else {"type": "string", "minLength": 1},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]


def _in_query(it: ApiOperation) -> list[dict[str, Any]]:
    if it.query is None:
        return []
    schema = it.query.model_json_schema(ref_template=_REF)
    found = []
    for name, about in schema["properties"].items():
        plain = {key: value for key, value in about.items() if key not in ("title", "description", "default")}
        for choice in plain.pop("anyOf", ()):  # of an enumeration that may be left out
            if "$ref" in choice:
                plain = {"type": "string", "enum": schema["$defs"][choice["$ref"].rpartition("/")[2]]["enum"]}
        told = {"name": name, "in": "query", "required": False, "schema": plain}
        found.append(told | ({"description": about["description"]} if "description" in about else {}))
    return found


def _other(path: str, id: str, summary: str, media: str) -> dict[str, Any]:
    content = {media: {"schema": {"type": "string"}}}
    return {
        "operationId": id,
        "tags": [id.partition(".")[0]],
        "summary": summary,
        "description": "Needs the scope `look`.",
        "parameters": [
            *_in_path(path),
            *([_LAST] if media.startswith("text") else []),
        ],
        "responses": {"200": {"description": "Done.", "content": content}, **_problems(404)},
    }


_LAST = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "Go on after this event.",
    "schema": {"type": "integer", "minimum": 0},
}


def _problems(*statuses: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": _REF.format(model="Problem")}}}
    return {
        str(one): {"description": "Refused.", "content": content} for one in sorted({*_ALWAYS, *statuses})
    }


def _json_content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
