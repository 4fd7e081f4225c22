"""Calls that stand in a reply as text: so small models write them, and servers that do not read calls pass them on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from history import Asked

FLAGS = (
    "the model writes its calls as text, so its server may not be set to read them: "
    "llama.cpp needs --jinja, vLLM --enable-auto-tool-choice and --tool-call-parser"
)
LEVELS_MAX = 100  # of a value; a message to the kernel has 200, and other things around it
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*", re.DOTALL)  # what has no end is thought to the end
# No two parts beside each other take blanks: over many of them the time would grow with the square of their number.
_MARKED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_MISTRAL = re.compile(r"\A\s*\[TOOL_CALLS\]\s*(?:([\w.-]+)(?:\[ARGS\])?\s*)?([\[{].*)", re.DOTALL)
_FENCED = re.compile(r"```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)\n?```", re.DOTALL)
_NAMES, _ARGS = ("name", "tool", "tool_name", "function"), ("arguments", "parameters", "args", "input")
_FORMAL = ("arguments", "parameters")  # beside a name these are hardly an answer
_KEYS = {*_NAMES, *_ARGS, "type", "id"}


def value_of(text: str) -> Any:
    """The JSON value that the text is, of what every message can carry: no NaN, no half of a character, not too deep.

    Raises ValueError and RecursionError.
    """
    value = json.loads(text, parse_constant=_finite, parse_float=_finite)
    level, levels = [value], 0
    while level := [inner for outer in level for inner in _within(outer)]:
        levels += 1
        if levels > LEVELS_MAX:
            raise ValueError(f"it is nested more than {LEVELS_MAX} levels deep")
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _within(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:40]} is no number of JSON")
    return number


def said_of(text: str) -> str:
    """The reply without what the model thought aloud, whether the server kept the opening mark or not."""
    for end in ("</think>", "</thinking>"):
        text = text.rpartition(end)[2]
    return _THOUGHT.sub("", text)


def calls_in(text: str, offered: Collection[str]) -> list[Asked]:
    """The calls that the text is meant to be; empty where it is an answer.

    What is marked as a call is one, whatever it names. Bare JSON is one where nothing else of its kind stands in
    the text, and it names a tool that is offered, or has the form of a call and of nothing else.
    """
    marked = [call for call in _marked(text) if call is not None]
    if marked:
        return marked
    blocks = _FENCED.findall(text) or [text.strip()]
    bare = [call for block in blocks if (call := _call(_json(block))) is not None]
    if len(bare) != 1:
        return []
    formal = text.strip().startswith(("{", "[", "```")) and any(f'"{key}"' in text for key in _FORMAL)
    return bare if bare[0].name in offered or formal else []


def _marked(text: str) -> Iterator[Asked | None]:
    for found in _MARKED.finditer(text):
        inner = _FUNCTION.search(found[1])
        yield _function(inner) if inner else _call(_json(found[1]))
    if "<tool_call>" not in text:
        yield from (_function(found) for found in _FUNCTION.finditer(text))
    if found := _MISTRAL.match(text):
        value = _json(found[2])
        if found[1]:
            yield Asked("", found[1], value) if isinstance(value, dict) else None
        else:
            yield from (_call(item) for item in (value if isinstance(value, list) else [value]))


def _function(found: re.Match[str]) -> Asked | None:
    given = _PARAMETER.findall(found[2])
    args = {name: _value(text) for name, text in given} if given else _json(found[2].strip() or "{}")
    return Asked("", found[1], args) if isinstance(args, dict) else None


def _call(value: Any) -> Asked | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) or not set(value) <= _KEYS:
        return None
    if isinstance(inner := value.get("function"), dict):
        value = inner
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    args = next((value[key] for key in _ARGS if key in value), None)
    args = _json(args) if isinstance(args, str) else args
    return Asked("", name, args) if name and isinstance(args, dict) else None


def _value(text: str) -> Any:
    """A parameter as it was written: JSON where it is some, else the text."""
    try:
        return value_of(text)
    except (ValueError, RecursionError):
        return text


def _json(text: str) -> Any:
    try:
        return value_of(text)
    except (ValueError, RecursionError):
        return None
