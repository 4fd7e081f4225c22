"""What is wrong with a model's reply, and what it used: nothing is trusted that a provider sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentos.domain import Json
from agentos.models.requests import texts, tokens_of, tool_names

# Kinds of ModelFailed that a reply itself can be, in the order in which they are looked for.
FAULTS = ("empty", "refused", "cut", "malformed")
UNKNOWN_TOOL = "unknown_tool"  # counted only: the agent is told by whoever is asked to call it


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. ``cached`` are those of ``input`` that the provider had at hand."""

    input: int
    output: int
    cached: int = 0
    estimated: bool = False  # the provider did not say


@dataclass(frozen=True, slots=True)
class ReplyFinding:
    """``fault`` is "" for a reply that can be used, UNKNOWN_TOOL for one that only names a wrong tool."""

    fault: str = ""
    message: str = ""


def finding_of(body: Mapping[str, Any], request: Mapping[str, Any]) -> ReplyFinding:
    """What is wrong with a chat completion. Of several choices one that can be used is enough."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return ReplyFinding("empty", "the reply has no choices")
    findings = [_choice(choice, tool_names(request)) for choice in choices]
    return next((found for found in findings if found.fault in ("", UNKNOWN_TOOL)), findings[0])


def _choice(choice: Any, tools: frozenset[str]) -> ReplyFinding:
    message = (choice.get("message") if isinstance(choice, Mapping) else None) or {}
    finish = choice.get("finish_reason") if isinstance(choice, Mapping) else None
    calls = message.get("tool_calls") or []
    if finish == "content_filter" or message.get("refusal"):
        reason = message.get("refusal") or "the provider's filter held the answer back"
        return ReplyFinding("refused", f"the model refused: {str(reason)[:500]}")
    if finish == "length":
        return ReplyFinding(
            "cut", "the reply was cut at the limit of its length; allow more tokens or ask for less"
        )
    if not calls and not message.get("content"):
        return ReplyFinding("empty", "the reply has neither text nor tool calls")
    return next((found for call in calls if (found := _call(call, tools)).fault), ReplyFinding())


def _call(call: Any, tools: frozenset[str]) -> ReplyFinding:
    function = (call.get("function") if isinstance(call, Mapping) else None) or {}
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        return ReplyFinding("malformed", "a tool call of the reply has no name or no arguments")
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        return ReplyFinding("malformed", f"the arguments of the call of '{name}' are not JSON: {error}")
    if not isinstance(value, dict):
        return ReplyFinding("malformed", f"the arguments of the call of '{name}' must be a JSON object")
    if name not in tools:
        return ReplyFinding(UNKNOWN_TOOL, f"the reply calls '{name}', which is none of the request's tools")
    return ReplyFinding()


def usage_of(body: Mapping[str, Any], input_estimate: int) -> Usage:
    """What the provider says was used; where it says nothing, an estimate that is marked as one."""
    usage = body.get("usage") or {}
    given, answered = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if given or answered:
        cached = _count((usage.get("prompt_tokens_details") or {}).get("cached_tokens"))
        return Usage(given, answered, min(cached, given))
    said = sum(len(text.encode("utf-8", "replace")) for text in texts(body.get("choices") or []))
    return Usage(input_estimate, tokens_of(said), estimated=True)


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 40 else 0


def with_usage(body: Mapping[str, Any], usage: Usage) -> Json:
    """The reply with an estimated usage filled in and marked."""
    if not usage.estimated:
        return dict(body)
    said = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "estimated": True,
    }
    return {**body, "usage": said}
