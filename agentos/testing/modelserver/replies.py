"""What a scripted model can say, and how its replies go wrong, before any of it becomes bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agentos.domain import Json

# Refused or lost before the model worked: no answer comes to be, and nothing is paid.
STATUS = {
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached for scripted"),
    "server_error": (500, "server_error", None, "The server had an error while processing your request"),
    "overloaded": (503, "server_error", "overloaded", "The engine is currently overloaded"),
    "unauthorized": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
    "context_length": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
    ),
}
UNPAID = frozenset({*STATUS, "hang", "html"})

# The model answered and was paid, and the answer is spoilt on its way.
SPOILT = frozenset({"reset", "reset_midstream", "malformed"})

# The answer itself is bad, or late.
CONTENT = frozenset(
    {
        "bad_arguments",
        "unknown_tool",
        "no_choices",
        "no_usage",
        "length",
        "refusal",
        "content_filter",
        "huge",
        "slow",
    }
)
FAULTS = UNPAID | SPOILT | CONTENT

HUGE = 10 * 1024 * 1024  # characters


@dataclass(frozen=True, slots=True)
class ServerFault:
    """One thing that goes wrong. ``seconds`` belongs to ``hang`` (0: until the client leaves) and ``slow``.

    ``retry_after_s`` is sent as the header with any of the refusals.
    """

    kind: str
    seconds: float = 0.0
    retry_after_s: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise ValueError(f"expected a fault of {', '.join(sorted(FAULTS))}; found {self.kind!r}")


@dataclass(frozen=True, slots=True)
class ServerToolCall:
    """``arguments`` is the text that is sent, which need not be JSON. An empty ``id`` gets a fresh one."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class ServerReply:
    """What the model says in one choice. ``pace_s`` is the pause between the pieces of a stream."""

    text: str | None = None
    calls: tuple[ServerToolCall, ...] = ()
    finish: str = "stop"
    refusal: str | None = None
    pace_s: float = 0.0
    delay_s: float = 0.0
    usage: bool = True
    empty: bool = False  # a completion without choices
    fault: ServerFault | None = None


# A request and its number (from 1, in the order in which they were paid) -> one reply for every
# choice, or a reply for each. It runs on the server's own thread, so it must not block.
Policy: TypeAlias = Callable[[Json, int], "ServerReply | Sequence[ServerReply]"]


def say(text: str, *, finish: str = "stop", delay_s: float = 0.0, pace_s: float = 0.0) -> ServerReply:
    """A plain answer."""
    return ServerReply(text, finish=finish, delay_s=delay_s, pace_s=pace_s)


def call(name: str, args: Json, *more: tuple[str, Json], text: str | None = None) -> ServerReply:
    """A call of a tool; ``more`` (name, arguments) pairs are called in parallel with it."""
    wanted = tuple(ServerToolCall(tool, json.dumps(given)) for tool, given in ((name, args), *more))
    return ServerReply(text, wanted, finish="tool_calls")


def fault(
    kind: str, reply: ServerReply | None = None, *, seconds: float = 0.0, retry_after_s: float | None = None
) -> ServerReply:
    """``reply`` (default: "ok") with something going wrong; ``kind`` is one of FAULTS.

    After a fault that is paid and then lost, asking again with the same key gives ``reply``.
    """
    return replace(reply or say("ok"), fault=ServerFault(kind, seconds, retry_after_s))


def spoil(reply: ServerReply, wrong: ServerFault, request: Json) -> ServerReply:
    """The reply as a model gives it that makes this mistake; others than CONTENT change nothing here."""
    if wrong.kind in ("bad_arguments", "unknown_tool"):
        return _bad_call(reply, wrong.kind, request)
    text = reply.text or ""
    changes: Mapping[str, Mapping[str, Json]] = {
        "no_choices": {"empty": True},
        "no_usage": {"usage": False},
        "length": {"text": text[: len(text) // 2], "finish": "length"},
        "refusal": {"text": None, "calls": (), "refusal": "I can't help with that.", "finish": "stop"},
        "content_filter": {"text": "", "calls": (), "finish": "content_filter"},
        "huge": {"text": "x" * HUGE},
        "slow": {"delay_s": wrong.seconds},
    }
    return replace(reply, fault=None, **changes.get(wrong.kind, {}))


def _bad_call(reply: ServerReply, kind: str, request: Json) -> ServerReply:
    """Calls with a name or arguments that do not exist; a reply without calls gets one."""
    tools = request.get("tools") or []
    name = tools[0]["function"]["name"] if tools else "tool"
    calls = reply.calls or (ServerToolCall(name, "{}"),)
    if kind == "bad_arguments":
        wrong = tuple(replace(one, arguments='{"text": "unfinis') for one in calls)
    else:
        wrong = tuple(replace(one, name="no_such_tool") for one in calls)
    return replace(reply, calls=wrong, finish="tool_calls", fault=None)


def reply_from(document: Json) -> ServerReply:
    """A reply written as JSON.

    ``"text"`` | ``{"say": text}`` | ``{"calls": [[name, args], …]}``, with ``delay_s``, ``pace_s``,
    ``finish``, ``fault`` (a kind), ``seconds`` and ``retry_after_s`` beside it. Raises ValueError.
    """
    if isinstance(document, str):
        return say(document)
    if not isinstance(document, dict):
        raise ValueError(f"expected a reply as text or as an object; found {document!r}")
    known = {"say", "calls", "delay_s", "pace_s", "finish", "fault", "seconds", "retry_after_s"}
    if strange := set(document) - known:
        raise ValueError(f"expected {', '.join(sorted(known))}; found {', '.join(sorted(strange))}")
    try:
        how: dict[str, Json] = {name: float(document.get(name, 0)) for name in ("delay_s", "pace_s")}
        if "calls" in document:
            first, *more = ((str(tool), args) for tool, args in document["calls"])
            reply = call(*first, *more, text=document.get("say"))
        else:
            reply = say(document.get("say", "ok"))
    except TypeError as error:
        raise ValueError(f"not a reply: {error}") from None
    if "finish" in document:
        how["finish"] = document["finish"]
    return replace(reply, **how, fault=fault_from(document) if "fault" in document else None)


def fault_from(document: Json) -> ServerFault:
    """A fault written as its kind or as ``{"fault": kind, "seconds": …, "retry_after_s": …}``.

    Raises ValueError.
    """
    if isinstance(document, str):
        return ServerFault(document)
    if not isinstance(document, dict) or not isinstance(document.get("fault"), str):
        raise ValueError(f"expected the name of a fault; found {document!r}")
    try:
        after = document.get("retry_after_s")
        return ServerFault(
            document["fault"], float(document.get("seconds", 0)), None if after is None else float(after)
        )
    except TypeError as error:
        raise ValueError(f"not a fault: {error}") from None
