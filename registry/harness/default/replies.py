"""Reads a model's reply: the calls it asks for, or the answer it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from history import Asked, Exchange
from text_calls import calls_in, said_of, value_of

# A provider that reasons wants to see its own reasoning again while tools are called.
_KEPT = ("content", "tool_calls", "reasoning_content", "thinking_blocks")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\n(.*?)\n?```", re.DOTALL)


def exchange_of(body: Mapping[str, Any], number: int, offered: Collection[str] = ()) -> Exchange:
    """The first choice of a chat completion; ``number`` counts the replies, for calls without an id.

    ``offered`` are the tools that the request named: a call of one may stand in the text.
    """
    choices = body.get("choices") or [{}]
    said = choices[0].get("message") or {}
    asked = [
        _asked(call, f"call_{number}_{index}") for index, call in enumerate(said.get("tool_calls") or [])
    ]
    _make_unique(asked, number)
    message: dict[str, Any] = {"role": "assistant", "content": None}
    message |= {key: said[key] for key in _KEPT if said.get(key) is not None}
    if asked:
        message["tool_calls"] = [
            {
                "id": one.id,
                "type": "function",
                "function": {"name": _plain(one.name), "arguments": _told(one)},
            }
            for one in asked
        ]
        return Exchange(message, asked)
    message.pop("tool_calls", None)
    message["content"] = said_of(text_of(message))
    asked = calls_in(message["content"], offered)
    return Exchange(message, asked, as_text=bool(asked))


def text_of(message: Mapping[str, Any]) -> str:
    """What a message says in words; a list of parts is joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def answer_of(text: str) -> Any:
    """The answer that a text stands for.

    A fence around the whole is taken off. What then is exactly one JSON value is that value, so that
    checks can look into it; anything else is the text.
    """
    text = text.strip()
    fenced = _FENCED.fullmatch(text)
    inner = fenced[1].strip() if fenced and "```" not in fenced[1] else text
    try:
        return value_of(inner)
    except (ValueError, RecursionError):
        return inner


def _asked(call: Any, spare_id: str) -> Asked:
    call = call if isinstance(call, dict) else {}
    function, given_id = call.get("function"), call.get("id")
    function = function if isinstance(function, dict) else {}
    asked = Asked(str(given_id or spare_id), str(function.get("name") or "nothing"), {})
    given = function.get("arguments")
    try:
        args = value_of(given) if isinstance(given, str) and given.strip() else given or {}
    except (ValueError, RecursionError) as error:
        asked.wrong = f"the arguments are not JSON ({error}): send one JSON object"
        return asked
    if isinstance(args, dict):
        asked.args = args
    else:
        asked.wrong = f"the arguments are {type(args).__name__}, but they have to be one JSON object"
    return asked


def _make_unique(asked: list[Asked], number: int) -> None:
    seen: set[str] = set()
    for index, one in enumerate(asked):
        if one.id in seen:
            one.id = f"call_{number}_{index}"
        seen.add(one.id)


def _plain(name: str) -> str:
    """As every provider takes it back: one that is in no catalog ("multi_tool_use.parallel") may hold anything."""
    return _ODD.sub("_", name)[:64]


def _told(asked: Asked) -> str:
    """The arguments as they were understood: what is no JSON would be refused when it is sent back."""
    return json.dumps(asked.args, ensure_ascii=False)
