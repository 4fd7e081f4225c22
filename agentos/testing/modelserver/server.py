"""The server: what it was asked, what it answers, and how often somebody would have paid for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import uuid
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from agentos.domain import Json, digest
from agentos.testing.modelserver.replies import (
    HEAD_LIMIT,
    MODEL,
    SPOILT,
    SSE_HEAD,
    STATUS,
    UNPAID,
    BadRequest,
    Policy,
    ReceivedRequest,
    ServerFault,
    ServerReply,
    as_asked,
    chunks,
    completion,
    event,
    failure,
    fault_from,
    read_request,
    reply_from,
    reset,
    response,
    say,
    spoil,
)

FAULT_HEADER = "x-scripted-fault"


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion request as it came in.

    ``outcome`` is ``paid``, ``repeated`` (its key had been answered before), the name of the fault
    that met it, or ``refused`` (no valid request, or nothing left in the script).
    """

    at: datetime
    headers: Mapping[str, str]
    body: Json
    outcome: str
    fault: str = ""  # what went wrong with an answer that was paid


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was decided for one request. ``refusal`` is the whole response where nothing is answered."""

    replies: tuple[ServerReply, ...] = ()
    id: str = ""
    fault: ServerFault | None = None
    refusal: bytes = b""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The answer that belongs to an idempotency key, and for which request it was given."""

    request: str
    answer: _Answer


class RequestRefused(Exception):
    """A request that no model would have worked on."""

    def __init__(self, message: str, code: str = "invalid_request") -> None:
        self.code = code
        super().__init__(message)


class ModelServer:
    """A model's HTTP server on 127.0.0.1, on a thread of its own. Use it as a context manager.

    ``script`` is a list of replies, given in order, or a function of a request and its number.
    ``policy`` answers what the script does not (``Rules``, or any such function). Without both, the
    answer is "ok". A request beyond the end of a script is refused with 400.
    """

    def __init__(
        self,
        script: Iterable[ServerReply] | Policy | None = None,
        *,
        policy: Policy | None = None,
        port: int = 0,
    ) -> None:
        self.port = port
        self._lock = threading.Lock()
        self._policy = script if callable(script) else policy
        self._script = deque[ServerReply](() if script is None or callable(script) else script)
        if script is None and policy is None:
            self._policy = lambda request, number: say("ok")
        self._faults = deque[ServerFault]()
        self._requests: list[Request] = []
        self._kept: dict[str, _Kept] = {}
        self._paid = 0
        self._mark = uuid.uuid4().hex[:8]  # ids differ between servers, as they do between providers' answers
        self._thread = threading.Thread(
            target=lambda: self._loop.run_forever(), name="model-server", daemon=True
        )
        self._open: set[asyncio.Task[None]] = set()
        self._bugs: list[BaseException] = []

    # --- its life -----------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        """What a client takes as ``api_base`` or OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Listen, once; raises OSError when the port is taken."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=HEAD_LIMIT, backlog=1024),
            self._loop,
        )
        try:
            self._server = listening.result()
        except OSError:
            self._end_loop()
            raise
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Drop all connections and end the thread; idempotent. Raises what a script or policy raised."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
            self._end_loop()
        if self._bugs:
            raise self._bugs[0]

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> ModelServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what it counted ----------------------------------------------------------------------

    @property
    def requests(self) -> list[Request]:
        """Every chat completion request, in order."""
        with self._lock:
            return list(self._requests)

    @property
    def paid(self) -> int:
        """Distinct calls that a provider would have charged for."""
        with self._lock:
            return self._paid

    @property
    def repeated(self) -> int:
        """Requests that were answered from their idempotency key, and not charged again."""
        return self.stats()["repeated"]

    def stats(self) -> dict[str, int]:
        """How many requests had which outcome, and how many there were, as ``requests``."""
        with self._lock:
            counted = Counter(request.outcome for request in self._requests)
            return {"requests": len(self._requests), "paid": self._paid, "repeated": 0, **counted}

    # --- what it will do ----------------------------------------------------------------------

    def add(self, *replies: ServerReply) -> None:
        """Append to the script."""
        with self._lock:
            self._script.extend(replies)

    def fault_next(
        self, kind: str, *, times: int = 1, seconds: float = 0.0, retry_after_s: float | None = None
    ) -> None:
        """The next ``times`` requests meet this fault. Where nothing is paid, the script does not move on."""
        wrong = ServerFault(kind, seconds, retry_after_s)
        with self._lock:
            self._faults.extend([wrong] * times)

    # --- deciding: everything that needs the lock ---------------------------------------------

    def _decide(self, headers: Mapping[str, str], body: Json) -> _Answer:
        with self._lock:
            try:
                answer, outcome = self._answer(headers, body)
            except RequestRefused as refusal:
                text = failure(400, "invalid_request_error", refusal.code, str(refusal))
                answer, outcome = _Answer(refusal=text), "refused"
            wrong = answer.fault.kind if answer.fault and outcome != answer.fault.kind else ""
            self._requests.append(Request(datetime.now(UTC), headers, body, outcome, wrong))
            return answer

    def _answer(self, headers: Mapping[str, str], body: Json) -> tuple[_Answer, str]:
        _validate(body)
        wrong = self._faults.popleft() if self._faults else _asked_for(headers)
        if wrong and wrong.kind in UNPAID:
            return _Answer(fault=wrong), wrong.kind
        key = headers.get("idempotency-key", "")
        asked = digest({name: value for name, value in body.items() if not name.startswith("stream")})
        kept = self._kept.get(key) if key else None
        if kept is not None:
            if kept.request != asked:
                raise RequestRefused(
                    "this Idempotency-Key was used for another request", "idempotency_key_reused"
                )
            answer, outcome = kept.answer, "repeated"
        else:
            replies = self._next(body)
            wrong = wrong or replies[0].fault
            if wrong and wrong.kind in UNPAID:
                return _Answer(fault=wrong), wrong.kind
            self._paid += 1
            answer, outcome = _Answer(replies, f"chatcmpl-{self._mark}-{self._paid}"), "paid"
        if wrong and wrong.kind not in SPOILT:
            answer = _Answer(tuple(spoil(reply, wrong, body) for reply in answer.replies), answer.id)
        if key and kept is None:
            self._kept[key] = _Kept(asked, answer)
        return _Answer(answer.replies, answer.id, wrong), outcome

    def _next(self, body: Json) -> tuple[ServerReply, ...]:
        choices = body.get("n") or 1
        if self._script:
            said: ServerReply | Sequence[ServerReply] = self._script.popleft()
        elif self._policy:
            said = self._policy(body, self._paid + 1)
        else:
            raise RequestRefused(f"the script ended after {self._paid} replies", "script_ended")
        replies = [said] * choices if isinstance(said, ServerReply) else list(said)
        if len(replies) != choices:
            raise RequestRefused(
                f"expected {choices} replies of the policy; found {len(replies)}", "script_ended"
            )
        return tuple(as_asked(reply, body) for reply in replies)

    # --- answering ----------------------------------------------------------------------------

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        if not task.cancelled() and (bug := task.exception()):
            self._bugs.append(bug)

    async def _stop(self) -> None:
        self._server.close()
        for task in list(self._open):
            task.cancel()
        while self._open:
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while received := await read_request(reader, writer):
                await self._respond(received, reader, writer)
                await writer.drain()
                if writer.is_closing() or received.headers.get("connection", "").lower() == "close":
                    return
        except BadRequest as error:
            writer.write(failure(400, "invalid_request_error", "bad_http", str(error)))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, which is its right
        finally:
            writer.close()

    async def _respond(
        self, received: ReceivedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        route = (received.method, received.path.partition("?")[0].removeprefix("/v1"))
        if route == ("POST", "/chat/completions"):
            await self._complete(received, reader, writer)
        elif route == ("GET", "/models"):
            about = {"id": MODEL, "object": "model", "created": 0, "owned_by": "agentos"}
            writer.write(_json({"object": "list", "data": [about]}))
        elif route == ("GET", "/_/stats"):
            writer.write(_json(self.stats()))
        elif route == ("POST", "/_/script"):
            writer.write(self._extend(received.body))
        else:
            writer.write(failure(404, "invalid_request_error", "unknown_url", f"no such URL: {route}"))

    def _extend(self, body: bytes) -> bytes:
        """Take {"replies": […], "faults": […]} from another process."""
        try:
            document = json.loads(body)
            replies = [reply_from(one) for one in document.get("replies") or []]
            faults = [fault_from(one) for one in document.get("faults") or []]
        except (ValueError, AttributeError, TypeError) as error:
            return failure(400, "invalid_request_error", "bad_script", str(error))
        with self._lock:
            self._script.extend(replies)
            self._faults.extend(faults)
        return _json({"replies": len(replies), "faults": len(faults)})

    async def _complete(
        self, received: ReceivedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            body = json.loads(received.body)
        except ValueError:
            body = None
        answer = self._decide(received.headers, body)
        if answer.refusal:
            writer.write(answer.refusal)
        elif answer.fault and answer.fault.kind in UNPAID:
            await _refuse(answer.fault, reader, writer)
        elif answer.fault and answer.fault.kind == "reset":
            reset(writer)
        else:
            await asyncio.sleep(answer.replies[0].delay_s)
            if body.get("stream"):
                await _stream(answer, body, writer)
            else:
                await _whole(answer, body, writer)


class _Part(BaseModel):
    text: str = ""


class _Function(BaseModel):
    name: str
    arguments: str = ""
    parameters: dict[str, Json] | None = None


class _Called(BaseModel):
    id: str = ""
    function: _Function


class _Message(BaseModel):
    role: str = ""
    content: str | list[_Part] | None = None
    tool_calls: list[_Called] | None = None
    tool_call_id: str | None = None


class _Form(BaseModel):
    """As much of a request as is looked at."""

    model: str
    messages: list[_Message] = Field(min_length=1)
    tools: list[_Called] | None = None
    n: Annotated[int, Field(ge=0, le=128)] | None = None
    response_format: dict[str, Json] | None = None
    stream_options: dict[str, Json] | None = None


def _validate(body: Json) -> None:
    try:
        _Form.model_validate(body, strict=True)
    except ValidationError as error:
        found = error.errors()[0]
        place = ".".join(map(str, found["loc"])) or "the body"
        raise RequestRefused(f"'{place}': {found['msg']}") from None


def _asked_for(headers: Mapping[str, str]) -> ServerFault | None:
    """The fault that the request itself asks for, by its kind or as JSON."""
    text = headers.get(FAULT_HEADER)
    if not text:
        return None
    try:
        return fault_from(json.loads(text) if text.startswith("{") else text)
    except ValueError as error:
        raise RequestRefused(f"{FAULT_HEADER}: {error}") from None


def _json(document: Json) -> bytes:
    return response(200, json.dumps(document).encode())


async def _refuse(wrong: ServerFault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if wrong.kind == "hang":
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1), wrong.seconds or None)
        writer.close()
    elif wrong.kind == "html":
        page = b"<html><head><title>Bad gateway</title></head><body><h1>502</h1></body></html>"
        writer.write(response(200, page, "text/html"))
    else:
        status, kind, code, message = STATUS[wrong.kind]
        after = {} if wrong.retry_after_s is None else {"Retry-After": f"{wrong.retry_after_s:g}"}
        writer.write(failure(status, kind, code, message, after))


async def _whole(answer: _Answer, request: Json, writer: asyncio.StreamWriter) -> None:
    said = completion(answer.replies, request, answer.id)
    kind = answer.fault.kind if answer.fault else ""
    body = json.dumps({**said, "choices": [None]} if kind == "wrong_shape" else said).encode()
    if kind == "malformed":
        body = body[: len(body) // 2]
    data = response(200, body)
    if kind == "reset_midstream":
        writer.write(data[: -len(body) // 2])
        await writer.drain()
        reset(writer)
    else:
        writer.write(data)


async def _stream(answer: _Answer, request: Json, writer: asyncio.StreamWriter) -> None:
    """Server-sent events, each flushed on its own only if the reply has a pace."""
    frames = [event(chunk) for chunk in chunks(answer.replies, request, answer.id)]
    kind = answer.fault.kind if answer.fault else ""
    if kind == "malformed":
        frames[len(frames) // 2 :] = [event('{"id": "chatcmpl-'), event("[DONE]"), b"0\r\n\r\n"]
    elif kind == "reset_midstream":
        frames = frames[: len(frames) // 2]
    else:
        frames += [event("[DONE]"), b"0\r\n\r\n"]
    pace_s = answer.replies[0].pace_s
    writer.write(SSE_HEAD)
    if pace_s:
        for frame in frames:
            writer.write(frame)
            await writer.drain()
            await asyncio.sleep(pace_s)
    else:
        writer.write(b"".join(frames))
        await writer.drain()
    if kind == "reset_midstream":
        reset(writer)
