"""Anthropic's Messages (``/v1/messages``): https://docs.anthropic.com/en/api/messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_CHOICE = {"auto": "auto", "any": "required", "none": "none"}
_SAME = ("model", "max_tokens", "temperature", "top_p", "top_k")


def request(body: dict[str, Any]) -> dict[str, Any]:
    """As a chat completion request. Raises KeyError, TypeError, AttributeError on what is no such body."""
    messages = []
    if system := _text(body.get("system") or ""):
        messages.append({"role": "system", "content": system})
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        messages += _assistant(blocks) if message["role"] == "assistant" else _user(blocks)
    asked = {"messages": messages, **{name: body[name] for name in _SAME if name in body}}
    if "stop_sequences" in body:
        asked["stop"] = body["stop_sequences"]
    tools = [_tool(tool) for tool in body.get("tools") or () if "input_schema" in tool]
    if tools:
        asked["tools"] = tools
        asked |= _choice(body.get("tool_choice") or {})
        if (body.get("tool_choice") or {}).get("disable_parallel_tool_use"):
            asked["parallel_tool_calls"] = False
    return asked


def reply(answer: dict[str, Any], model: str) -> dict[str, Any]:
    """As the message that answers."""
    choice = answer["choices"][0]
    usage = answer.get("usage") or {}
    return {
        "id": f"msg_{answer.get('id', '')}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(_blocks(choice.get("message") or {})),
        "stop_reason": _STOP.get(choice.get("finish_reason"), "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.get("prompt_tokens", 0),
            "output_tokens": usage.get("completion_tokens", 0),
        },
    }


def events(answer: dict[str, Any], model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same as a stream would have had it."""
    whole = reply(answer, model)
    yield _event("message_start", message={**whole, "content": [], "stop_reason": None})
    for number, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=number, content_block=empty)
        yield _event("content_block_delta", index=number, delta=delta)
        yield _event("content_block_stop", index=number)
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage=whole["usage"])
    yield _event("message_stop")


def _event(name: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return name, {"type": name, **fields}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _assistant(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    message: dict[str, Any] = {"role": "assistant", "content": _text(blocks) or None}
    if calls:
        message["tool_calls"] = calls
    if calls or message["content"]:
        yield message


def _user(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Results of tools have to stand right behind the calls, so they come first; pictures in them, which no such
    message may hold, behind all of them."""
    shown: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] == "tool_result":
            content = block.get("content") or ""
            failed = "The call failed: " if block.get("is_error") else ""
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": failed + _text(content)}
            shown += [] if isinstance(content, str) else [one for one in content if one["type"] == "image"]
    parts = [part for block in (*shown, *blocks) if (part := _part(block))]
    if any(part["type"] != "text" for part in parts):
        yield {"role": "user", "content": parts}
    elif parts:
        yield {"role": "user", "content": "\n".join(part["text"] for part in parts)}


def _part(block: dict[str, Any]) -> dict[str, Any] | None:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] == "image":
        source = block["source"]  # an address is handed on: the kernel says that it fetches none
        inline = source["type"] == "base64"
        url = f"data:{source['media_type']};base64,{source['data']}" if inline else source["url"]
        return {"type": "image_url", "image_url": {"url": url}}
    return None


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "parameters": tool["input_schema"],
    }
    return {"type": "function", "function": function}


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    if choice.get("type") == "tool":
        return {"tool_choice": {"type": "function", "function": {"name": choice["name"]}}}
    return {"tool_choice": _CHOICE[choice["type"]]} if choice.get("type") in _CHOICE else {}


def _blocks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if message.get("content"):
        yield {"type": "text", "text": message["content"]}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {"type": "tool_use", "id": call["id"], "name": function["name"], "input": _input(function)}


def _input(function: dict[str, Any]) -> dict[str, Any]:
    """Arguments that are no JSON object are handed on under a name that no tool has: it will say so."""
    try:
        found = json.loads(function.get("arguments") or "{}")
        json.dumps(found, allow_nan=False)  # a model may write NaN, and no client reads that
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"not_json": function["arguments"]}
