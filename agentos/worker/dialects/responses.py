"""OpenAI's Responses (``/v1/responses``): https://platform.openai.com/docs/api-reference/responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_SAME = ("model", "temperature", "top_p", "parallel_tool_calls")
_STATEFUL = ("previous_response_id", "conversation", "background")
_NOT_KEPT = "'{}' is not there: nothing is kept between requests, so send the whole input"
_ONE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def request(body: dict[str, Any]) -> dict[str, Any]:
    """As a chat completion request.

    Raises KeyError, TypeError, AttributeError on what is no such body, ValueError on what nobody here can honour.
    """
    if stateful := next((name for name in _STATEFUL if body.get(name)), ""):
        raise ValueError(_NOT_KEPT.format(stateful))
    same = {name: body[name] for name in _SAME if body.get(name) is not None}
    asked = {"messages": _messages(body), **same, **_form(body)}
    if body.get("max_output_tokens"):
        asked["max_tokens"] = body["max_output_tokens"]
    tools = _tools(body)
    if not tools:
        asked.pop("parallel_tool_calls", None)
    return {**asked, **tools}


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        _add(messages, item)
    return messages


def _form(body: dict[str, Any]) -> dict[str, Any]:
    """Of the answer, where a schema says it."""
    form = (body.get("text") or {}).get("format") or {}
    if form.get("type") != "json_schema":
        return {}
    schema = {name: form[name] for name in ("name", "schema", "strict") if name in form}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _tools(body: dict[str, Any]) -> dict[str, Any]:
    """What is said of tools; nothing where there are none that a chat completion knows."""
    tools = [_tool(tool) for tool in body.get("tools") or () if tool["type"] in ("function", "custom")]
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and "name" in choice:
        choice = {"type": "function", "function": {"name": choice["name"]}}
    if not tools:
        return {}
    return {"tools": tools, "tool_choice": choice} if choice else {"tools": tools}


def reply(answer: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """As the response that answers the request ``body``."""
    choice = answer["choices"][0]
    usage = answer.get("usage") or {}
    asked, given = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    custom = {tool["name"] for tool in body.get("tools") or () if tool["type"] == "custom"}
    cut = choice.get("finish_reason") == "length"
    return {
        "id": f"resp_{answer.get('id', '')}",
        "object": "response",
        "created_at": answer.get("created", 0),
        "model": body.get("model", ""),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "output": list(_output(choice.get("message") or {}, custom)),
        "usage": {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": given,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked + given,
        },
    }


def events(answer: dict[str, Any], body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same as a stream would have had it."""
    whole = reply(answer, body)
    begun = {**whole, "output": [], "status": "in_progress", "usage": None}
    yield _event("response.created", response=begun)
    for number, item in enumerate(whole["output"]):
        place = {"output_index": number, "item_id": item["id"]}
        if item["type"] == "message":
            yield _event("response.output_item.added", output_index=number, item={**item, "content": []})
            (part,) = item["content"]
            text = part["text"]
            place["content_index"] = 0
            yield _event("response.content_part.added", **place, part={**part, "text": ""})
            yield _event("response.output_text.delta", **place, delta=text)
            yield _event("response.output_text.done", **place, text=text)
            yield _event("response.content_part.done", **place, part=part)
        else:
            yield _event("response.output_item.added", output_index=number, item=item)
            if item["type"] == "function_call":
                arguments = item["arguments"]
                yield _event("response.function_call_arguments.delta", **place, delta=arguments)
                yield _event("response.function_call_arguments.done", **place, arguments=arguments)
        yield _event("response.output_item.done", output_index=number, item=item)
    yield _event(f"response.{whole['status']}", response=whole)


def _event(name: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return name, {"type": name, **fields}


def _add(messages: list[dict[str, Any]], item: dict[str, Any]) -> None:
    """One item of the input; calls join the message of the assistant before them."""
    kind = item.get("type", "message")
    if kind == "message":
        role = "system" if item["role"] == "developer" else item["role"]
        messages.append({"role": role, "content": _content(item["content"])})
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item["arguments"] if kind == "function_call" else json.dumps({"input": item["input"]})
        call = {
            "id": item["call_id"],
            "type": "function",
            "function": {"name": item["name"], "arguments": arguments},
        }
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": None})
        messages[-1].setdefault("tool_calls", []).append(call)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        content = _content(item["output"])
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})
    elif kind == "item_reference":
        raise ValueError(_NOT_KEPT.format(kind))


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts = [part for given in content if (part := _part(given))]
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n".join(part["text"] for part in parts)


def _part(part: dict[str, Any]) -> dict[str, Any] | None:
    if part["type"] in ("input_text", "output_text", "text"):
        return {"type": "text", "text": part["text"]}
    if part["type"] == "input_image" and part.get("image_url"):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    return None


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool that takes free text becomes a function with that text as its one argument."""
    parameters = _ONE_TEXT if tool["type"] == "custom" else tool.get("parameters") or {"type": "object"}
    grammar = (tool.get("format") or {}).get("definition", "") if tool["type"] == "custom" else ""
    description = tool.get("description") or ""
    if grammar:
        description = f"{description}\nThe input has to follow this grammar:\n{grammar}"
    function = {"name": tool["name"], "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _output(message: dict[str, Any], custom: set[str]) -> Iterator[dict[str, Any]]:
    if message.get("content"):
        part = {"type": "output_text", "text": message["content"], "annotations": []}
        item = {"type": "message", "id": "msg_0", "status": "completed", "role": "assistant"}
        yield {**item, "content": [part]}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        item = {
            "id": f"fc_{call['id']}",
            "call_id": call["id"],
            "name": function["name"],
            "status": "completed",
        }
        if function["name"] in custom:
            yield {"type": "custom_tool_call", **item, "input": _one_text(function["arguments"])}
        else:
            yield {"type": "function_call", **item, "arguments": function.get("arguments") or "{}"}


def _one_text(arguments: str) -> str:
    try:
        found = json.loads(arguments)["input"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return arguments
    return found if isinstance(found, str) else arguments
