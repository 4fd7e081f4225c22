"""What a run may ask: the rules for a request, which comes from inside a sandbox."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

MESSAGES_MAX = 10_000
CHOICES_MAX = 16
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_PARTS = frozenset({"text", "image_url", "input_audio", "refusal", "thinking"})
# What litellm stumbles over by itself would look like a provider that is away, and void the run.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "frequency_penalty": (int, float),
    "logit_bias": Mapping,
    "logprobs": bool,
    "parallel_tool_calls": bool,
    "presence_penalty": (int, float),
    "reasoning_effort": str,
    "response_format": Mapping,
    "seed": int,
    "stop": (str, list),
    "stream_options": Mapping,
    "temperature": (int, float),
    "tool_choice": (str, Mapping),
    "top_k": int,
    "top_logprobs": int,
    "top_p": (int, float),
}
_BYTES_PER_TOKEN = 3.5  # of English and JSON with the usual tokenizers; low, so that more is reserved
_OUTPUT_TOKENS = 2_048  # reserved for an answer whose length nobody limited


def request_fault(request: Any) -> str:
    """ "" when it may be sent on, else a sentence. It must not make anybody fetch or search anything:
    pictures come as ``data:`` URLs, and tools are functions of the run's own."""
    if not isinstance(request, Mapping):
        return "the request must be a JSON object"
    if fault := _parameter_fault(request):
        return fault
    messages = request.get("messages")
    if not isinstance(messages, list) or not 1 <= len(messages) <= MESSAGES_MAX:
        return f"'messages' must be a list of 1 to {MESSAGES_MAX} messages"
    choices = request.get("n")
    if choices is not None and (type(choices) is not int or not 1 <= choices <= CHOICES_MAX):
        return f"'n' must be a whole number from 1 to {CHOICES_MAX}"
    for key in ("max_tokens", "max_completion_tokens"):
        limit = request.get(key)
        if limit is not None and (type(limit) is not int or not 1 <= limit <= 1 << 24):
            return f"'{key}' must be a whole number from 1"
    return next((fault for message in messages if (fault := _message_fault(message))), "") or _tools_fault(
        request.get("tools")
    )


def _parameter_fault(request: Mapping[str, Any]) -> str:
    try:
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        return (
            "the request must be plain JSON: no NaN, no half of a surrogate pair, nothing nested too deeply"
        )
    for key, allowed in _TYPES.items():
        value = request.get(key)
        if value is not None and not isinstance(value, allowed):
            return f"'{key}' cannot be {json.dumps(value)[:60]}"
    stop = request.get("stop")
    if isinstance(stop, list) and not all(isinstance(text, str) for text in stop):
        return "'stop' must be a text or a list of texts"
    return ""


def _message_fault(message: Any) -> str:
    if not isinstance(message, Mapping) or not _is_one_of(message.get("role"), ROLES):
        return f"a message must be an object with a 'role' of {', '.join(sorted(ROLES))}"
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(_is_call(call) for call in calls)):
        return "'tool_calls' of a message must be a list of calls with 'id' and 'function'"
    content = message.get("content")
    if content is None or isinstance(content, str):
        return ""
    if not isinstance(content, list):
        return "the 'content' of a message must be a text or a list of parts"
    return next((fault for part in content if (fault := _part_fault(part))), "")


def _is_one_of(value: Any, known: frozenset[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_call(call: Any) -> bool:
    return isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)


def _part_fault(part: Any) -> str:
    if not isinstance(part, Mapping) or not _is_one_of(part.get("type"), _PARTS):
        return f"a part of a message must be an object with a 'type' of {', '.join(sorted(_PARTS))}"
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        return "a part of the type 'text' needs its text"
    if part["type"] != "image_url":
        return ""
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or not url.startswith("data:"):
        return "a picture must be given as a data: URL; nothing is fetched for a run"
    return ""


def _tools_fault(tools: Any) -> str:
    if tools is None:
        return ""
    if not isinstance(tools, list) or not all(
        isinstance(tool, Mapping)
        and tool.get("type") == "function"
        and isinstance(tool.get("function"), Mapping)
        and isinstance(tool["function"].get("name"), str)
        for tool in tools
    ):
        return "'tools' must be a list of tools of the type 'function', each with a name"
    return ""


def tool_names(request: Mapping[str, Any]) -> frozenset[str]:
    """The tools that a reply may call."""
    return frozenset(tool["function"]["name"] for tool in request.get("tools") or ())


def tokens_of(size: int) -> int:
    """About how many tokens ``size`` bytes of text are."""
    return int(size / _BYTES_PER_TOKEN) + 1


def output_limit(asked: Mapping[str, Any]) -> int:
    """How many tokens may be answered at most, as far as somebody said so. Of two limits nobody knows
    which one a provider keeps to."""
    limits = [asked.get("max_completion_tokens") or 0, asked.get("max_tokens") or 0]
    return int(max(limits) or _OUTPUT_TOKENS) * int(asked.get("n") or 1)


def texts(value: Any) -> Iterator[str]:
    """Every text within a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)
