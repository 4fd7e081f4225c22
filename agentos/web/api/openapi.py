"""The OpenAPI document, made of the table of operations and of the forms: nothing in it is written twice."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from agentos import __version__
from agentos.web.api import documents as forms
from agentos.web.api.operations import OPERATIONS, ApiOperation

PREFIX = "/api/v1"
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
    inputs.append(("problem", "serialization", TypeAdapter(forms.Problem)))
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
            str(it.status): {"description": "Done.", "content": _json(shapes[f"{it.id}:returns"])},
            **_problems(*((404, 409, 422) if it.path != "/token" else (422,)), *_more(it)),
        },
    }
    if it.body:
        told["requestBody"] = {"required": True, "content": _json(shapes[f"{it.id}:body"])}
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


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
