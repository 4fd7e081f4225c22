"""What a scripted model can say, and how its replies go wrong, before any of it becomes bytes."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TypeAlias

from agentos.domain import Json

# Refused or lost before the model worked: no answer comes to be, and nothing is paid.
STATUS = {
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached for scripted"),
    "server_error": (500, "server_error", None, "The server had an error while processing your request"),
    "overloaded": (503, "server_error", "overloaded", "The engine is currently overloaded"),
    "unauthorized": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
    "no_model": (404, "invalid_request_error", "model_not_found", "The model `scripted` does not exist"),
    "context_length": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
    ),
}
UNPAID = frozenset({*STATUS, "hang", "html"})

# The model answered and was paid, and the answer is spoilt on its way.
SPOILT = frozenset({"reset", "reset_midstream", "malformed", "wrong_shape"})

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
    usage: bool | Mapping[str, int] = True  # or what is said of it, however wrong
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
        if not isinstance(reply.text, str | None):
            raise TypeError(f"its text is {reply.text!r}")
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


# --- As much of HTTP/1.1 as a model's client needs, on asyncio streams ---------------------------


HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 64 * 1024 * 1024
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class BadRequest(Exception):
    """The bytes are no request that this server reads; the connection is to be closed."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """``headers`` has lower-case names; the last of equal ones counts."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ReceivedRequest | None:
    """The next request of a connection; None when the client has left between requests.

    Raises BadRequest, and ConnectionError or IncompleteReadError when the client leaves in one.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    except asyncio.LimitOverrunError:
        raise BadRequest("the head is too long") from None
    first, *lines = head.decode("latin-1").split("\r\n")
    try:
        method, path, _ = first.split(" ")
        pairs = [line.split(":", 1) for line in lines if line]
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        length = int(headers.get("content-length", "0"))
    except ValueError:
        raise BadRequest(f"not a request: {first[:80]!r}") from None
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return ReceivedRequest(method, path, headers, await _chunked(reader))
    if not 0 <= length <= BODY_LIMIT:
        raise BadRequest("the body is too long")
    return ReceivedRequest(method, path, headers, await reader.readexactly(length))


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = await reader.readline()
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            raise BadRequest("a chunk has no size") from None
        if size < 0 or len(body) + size > BODY_LIMIT:
            raise BadRequest("the body is too long")
        if size == 0:
            while (await reader.readline()).strip():  # trailers
                pass
            return bytes(body)
        body += await reader.readexactly(size)
        await reader.readexactly(2)


def response(
    status: int, body: bytes, kind: str = "application/json", headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole response as bytes."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def failure(
    status: int, kind: str, code: str | None, message: str, headers: Mapping[str, str] | None = None
) -> bytes:
    """A response with OpenAI's error object."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return response(status, json.dumps(body).encode(), headers=headers)


def event(data: Json) -> bytes:
    """A server-sent event as one HTTP chunk; text goes as it is, anything else as JSON."""
    text = data if isinstance(data, str) else json.dumps(data)
    frame = f"data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(frame), frame)


def reset(writer: asyncio.StreamWriter) -> None:
    """Drop the connection with RST, as a crashed server or a middlebox does; what was sent arrives."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


# --- Replies as OpenAI's chat completion objects and as the chunks of a stream -------------------


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
    if isinstance(replies[0].usage, Mapping):
        return dict(replies[0].usage)
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
