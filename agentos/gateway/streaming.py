"""A finished chat completion as the stream of chunks that a client asked for.

Nothing is given out that is not on record, so a stream begins when the whole answer is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

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
