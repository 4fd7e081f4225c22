"""The canonical form of a request: what makes two model calls the same call.

Two requests with the same key mean the same to a model; they may differ in what a run cannot help
(its own id, the ids of tool calls, how JSON is spelt). Recorded answers are found by this key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentos.domain import Json, ModelSpec, canonical, digest

# What a request may carry, and a model resource's parameters too; nothing else is ever sent on.
# An address, a key or a header among them would send our keys to whoever wrote the request.
PARAMETERS = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "temperature",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
    }
)
OUTPUT_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
# Of a model resource only: fields of one provider's own, put into the body beside the others.
RESOURCE_PARAMETERS = PARAMETERS | {"extra_body", "thinking"}


def effective(request: Mapping[str, Any], spec: ModelSpec) -> dict[str, Any]:
    """What is asked: the messages, and the resource's parameters under the request's own.

    How long an answer may be is the resource's to say, if it does: a model that reasons needs room for it.
    """
    given = {key: value for key, value in spec.parameters.items() if key in RESOURCE_PARAMETERS}
    named = OUTPUT_LIMITS if OUTPUT_LIMITS & given.keys() else frozenset()
    asked = {key: value for key, value in request.items() if key in PARAMETERS - named and value is not None}
    given |= asked
    return {"messages": request["messages"], **given}


def run_mark(run_id: str) -> str:
    """The name by which a worker knows its run; it shows in what tools and harness write."""
    return digest([run_id])[:16]


def request_key(asked: Mapping[str, Any], spec: ModelSpec, run_id: str) -> str:
    """SHA-256 of the canonical form of ``asked`` (from ``effective``), 64 hex digits."""
    return digest(canonical_form(asked, spec, run_id))


def canonical_form(asked: Mapping[str, Any], spec: ModelSpec, run_id: str) -> bytes:
    """The request as any run would have asked it."""
    ids = _numbered(asked["messages"])
    form = {
        "model": [spec.name, spec.model],
        **{key: value for key, value in asked.items() if not _empty(value)},
        "messages": [_message(message, ids) for message in asked["messages"]],
    }
    plain = canonical(form)
    marks = [mark for mark in (run_id, run_mark(run_id)) if mark and mark.encode() in plain]
    return canonical(_without(form, marks)) if marks else plain


def _numbered(messages: list[Any]) -> Mapping[str, str]:
    """Tool call ids by the order in which they appear."""
    ids: dict[str, str] = {}
    for message in messages:
        for found in _ids(message):
            ids.setdefault(found, f"call-{len(ids)}")
    return ids


def _ids(message: Any) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        yield str(call.get("id"))
    if "tool_call_id" in message:
        yield str(message["tool_call_id"])


def _message(message: Mapping[str, Any], ids: Mapping[str, str]) -> Json:
    plain = {key: value for key, value in message.items() if not _empty(value)}
    plain.pop("provider_specific_fields", None)
    if "content" in plain:
        plain["content"] = _content(plain["content"])
    if "tool_call_id" in plain:
        plain["tool_call_id"] = ids[str(plain["tool_call_id"])]
    if "tool_calls" in plain:
        plain["tool_calls"] = [_call(call, ids) for call in plain["tool_calls"]]
    return plain


def _empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _content(content: Json) -> Json:
    """A list of nothing but texts is the text."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        return "".join(part["text"] for part in content)
    return content


def _call(call: Mapping[str, Any], ids: Mapping[str, str]) -> Json:
    function = call.get("function") or {}
    return {
        "id": ids[str(call.get("id"))],
        "name": function.get("name"),
        "arguments": _arguments(function.get("arguments")),
    }


def _arguments(text: Any) -> Json:
    try:
        return {"json": json.loads(text)} if isinstance(text, str) else {"json": text}
    except (ValueError, RecursionError):
        return text


def _without(value: Json, marks: list[str]) -> Json:
    """The value with each whole word that names the run replaced."""
    pattern = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(map(re.escape, marks))})(?![0-9A-Za-z])")

    def replaced(item: Json) -> Json:
        if isinstance(item, str):
            return pattern.sub("<run>", item)
        if isinstance(item, list):
            return [replaced(one) for one in item]
        if isinstance(item, dict):
            return {replaced(key): replaced(one) for key, one in item.items()}
        return item

    return replaced(value)
