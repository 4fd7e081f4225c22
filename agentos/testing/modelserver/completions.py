"""Replies as OpenAI's chat completion objects and as the chunks of a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from agentos.domain import Json
from agentos.testing.modelserver.replies import ServerReply

MODEL = "scripted"
FINGERPRINT = "agentos-scripted"


def completion(replies: Sequence[ServerReply], request: Json, id: str) -> Json:
    """A whole chat completion: one choice for each reply."""
    body = _envelope(id, "chat.completion")
    body["choices"] = [
        {"index": index, "message": _message(reply, id), "logprobs": None, "finish_reason": reply.finish}
        for index, reply in enumerate(replies)
        if not reply.empty
    ]
    if replies[0].usage:
        body["usage"] = usage(replies, request)
    return body


def chunks(replies: Sequence[ServerReply], request: Json, id: str) -> Iterator[Json]:
    """The same as the chunks of a stream; the last carries the usage if the request wants it."""
    wants_usage = bool((request.get("stream_options") or {}).get("include_usage")) and replies[0].usage
    for index, reply in enumerate(replies):
        for delta, finish in () if reply.empty else _deltas(reply, id):
            chunk = _envelope(id, "chat.completion.chunk")
            chunk["choices"] = [{"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}]
            if wants_usage:
                chunk["usage"] = None
            yield chunk
    if wants_usage:
        yield {
            **_envelope(id, "chat.completion.chunk"),
            "choices": [],
            "usage": usage(replies, request),
        }


def usage(replies: Sequence[ServerReply], request: Json) -> dict[str, int]:
    """Tokens by the rule of thumb of four characters each, so that equal requests cost the same."""
    prompt = len(json.dumps([request.get("messages"), request.get("tools")])) // 4 + 1
    said = sum(
        len(reply.text or "") + len(reply.refusal or "") + sum(len(one.arguments) for one in reply.calls)
        for reply in replies
    )
    answer = said // 4 + len(replies)
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def as_asked(reply: ServerReply, request: Json) -> ServerReply:
    """In JSON mode a text that is no JSON becomes the one member of an object, as a provider would do."""
    wanted = request.get("response_format") or {}
    if wanted.get("type") not in ("json_object", "json_schema") or reply.text is None or reply.calls:
        return reply
    try:
        if isinstance(json.loads(reply.text), dict):
            return reply
    except ValueError:
        pass
    schema = (wanted.get("json_schema") or {}).get("schema") or {}
    name = next(iter(schema.get("properties") or {}), "answer")
    return ServerReply(**{**_fields(reply), "text": json.dumps({name: reply.text})})


def _fields(reply: ServerReply) -> dict[str, Json]:
    return {name: getattr(reply, name) for name in ServerReply.__slots__}


def _envelope(id: str, kind: str) -> dict[str, Json]:
    created = int(time.time())
    return {
        "id": id,
        "object": kind,
        "created": created,
        "model": MODEL,
        "system_fingerprint": FINGERPRINT,
    }


def _calls(reply: ServerReply, id: str) -> list[Json]:
    return [
        {
            "id": one.id or f"call_{id.removeprefix('chatcmpl-')}-{number}",
            "type": "function",
            "function": {"name": one.name, "arguments": one.arguments},
        }
        for number, one in enumerate(reply.calls)
    ]


def _message(reply: ServerReply, id: str) -> Json:
    message: dict[str, Json] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.calls:
        message["tool_calls"] = _calls(reply, id)
    return message


def _deltas(reply: ServerReply, id: str) -> Iterator[tuple[Json, str | None]]:
    yield {"role": "assistant", "content": "" if reply.text is not None else None}, None
    for piece in _pieces(reply.text or ""):
        yield {"content": piece}, None
    if reply.refusal is not None:
        yield {"refusal": reply.refusal}, None
    for number, whole in enumerate(_calls(reply, id)):
        arguments = whole["function"]["arguments"]
        opening = {**whole, "index": number, "function": {**whole["function"], "arguments": ""}}
        yield {"tool_calls": [opening]}, None
        for piece in _pieces(arguments):
            yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}, None
    yield {}, reply.finish


def _pieces(text: str) -> Iterator[str]:
    """Some characters at a time; never more than about 64 pieces, however long the text."""
    size = max(8, len(text) // 64)
    for start in range(0, len(text), size):
        yield text[start : start + size]
