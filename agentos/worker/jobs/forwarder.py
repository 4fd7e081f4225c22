"""Loopback HTTP inside the box, for programs that know a URL and not the sdk.

``/v1/chat/completions`` and ``/v1/models`` speak OpenAI's protocol, and so do ``/v1/responses`` and
Anthropic's ``/v1/messages``, by translation (``dialects``); ``/fetch`` takes one request to the outside
world as JSON. A model that is none of the run's stands for the first of these: programs have names of
their own in their settings. Each becomes an ask to the kernel, which decides, records and pays; the
box itself has no way out. A stream is made from the whole answer: whoever waits for the first token
waits for the last, and what is recorded is what was given.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agentos.messages import ModelCard
from agentos.wire import FrameError
from agentos.worker.dialects import messages, responses
from agentos.worker.rpc import KernelClient, Refused

BODY_MAX = 8 << 20  # of one request
# Clients ask again by themselves after 408, 409, 429 and 5xx: so not after what would be the same, and paid once more.
_STATUS = {"context": 400, "request": 400, "effect": 403, "not_available": 404, "cut": 422, "refused": 422}


class Forwarder:
    """Listens from the moment it is made; serves once ``start`` is called (no thread before that)."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def start(self, talk: KernelClient, models: list[ModelCard]) -> None:
        """Serve on threads of its own, for as long as the process lives."""
        server = _Server(self._listening, talk, models)
        threading.Thread(target=server.serve_forever, name="forwarder", daemon=True).start()


class _Unreadable(Exception):
    """A body that is not of the protocol at whose place it was sent."""


def _translated(into: Callable[[dict[str, Any]], dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    try:
        return into(body)
    except ValueError as error:  # what is understood, and cannot be done here
        raise _Unreadable(str(error)) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise _Unreadable(
            f"the body breaks the rules of this place: {type(error).__name__}: {error}"
        ) from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening: socket.socket, talk: KernelClient, models: list[ModelCard]) -> None:
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.talk = talk
        self.models = models


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        data = [{"id": card.name, "object": "model", "owned_by": "agentos"} for card in self.server.models]
        one = next((item for item in data if path == f"/v1/models/{item['id']}"), None)
        if path == "/v1/models":
            self._json(HTTPStatus.OK, {"object": "list", "data": data})
        elif one is not None:
            self._json(HTTPStatus.OK, one)
        else:
            self._error(HTTPStatus.NOT_FOUND, "not_found", f"there is nothing at {self.path}")

    def do_POST(self) -> None:
        places = {
            "/v1/chat/completions": self._complete,
            "/v1/messages": self._messages,
            "/v1/messages/count_tokens": self._count_tokens,
            "/v1/responses": self._responses,
            "/fetch": self._fetch,
        }
        place = places.get(self.path.partition("?")[0].rstrip("/"))
        try:
            body = self._body()  # read also where it is of no use: else it were taken for the next request
        except (ValueError, RecursionError) as error:
            self.close_connection = True  # what is left of the body is not read
            self._error(HTTPStatus.BAD_REQUEST, "request", str(error))
            return
        if place is None:
            self._error(HTTPStatus.NOT_FOUND, "not_found", f"there is nothing at {self.path}")
            return
        try:
            place(body)
        except Refused as error:
            status = _STATUS.get(error.fault.type, HTTPStatus.BAD_GATEWAY)
            self._error(status, error.fault.type, error.fault.message)
        except (_Unreadable, FrameError) as error:
            self._error(HTTPStatus.BAD_REQUEST, "request", str(error))

    def _complete(self, body: dict[str, Any]) -> None:
        streamed = bool(body.pop("stream", False))
        options = body.pop("stream_options", None) or {}
        if not isinstance(options, dict):
            raise _Unreadable("stream_options is no object")
        reply = self._asked(body)
        if not streamed:
            self._json(HTTPStatus.OK, reply)
            return
        self._begin_stream()
        for chunk in chunks(reply, usage=bool(options.get("include_usage"))):
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def _messages(self, body: dict[str, Any]) -> None:
        asked = _translated(messages.request, body)
        model = str(body.get("model", ""))
        reply = self._asked(asked)
        if body.get("stream"):
            self._stream(messages.events(reply, model))
        else:
            self._json(HTTPStatus.OK, messages.reply(reply, model))

    def _responses(self, body: dict[str, Any]) -> None:
        asked = _translated(responses.request, body)
        reply = self._asked(asked)
        if body.get("stream"):
            self._stream(responses.events(reply, body))
        else:
            self._json(HTTPStatus.OK, responses.reply(reply, body))

    def _count_tokens(self, body: dict[str, Any]) -> None:
        """An estimate: nobody here knows the model's own way to count."""
        text = [body.get(key) for key in ("system", "messages", "tools") if body.get(key)]
        self._json(HTTPStatus.OK, {"input_tokens": len(json.dumps(text).encode()) * 2 // 7})

    def _asked(self, body: dict[str, Any]) -> Any:
        """The kernel's chat completion."""
        names = [card.name for card in self.server.models]
        if names and body.get("model") not in names:
            body = {**body, "model": names[0]}
        return self.server.talk.ask("model", body)["reply"]

    def _stream(self, events: Iterator[tuple[str, dict[str, Any]]]) -> None:
        self._begin_stream()
        for name, event in events:
            self.wfile.write(f"event: {name}\ndata: {json.dumps(event)}\n\n".encode())

    def _begin_stream(self) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def _fetch(self, body: dict[str, Any]) -> None:
        self._json(HTTPStatus.OK, self.server.talk.ask("fetch", body))

    def _body(self) -> dict[str, Any]:
        """Raises ValueError."""
        length = int(self.headers.get("Content-Length") or -1)
        if not 0 <= length <= BODY_MAX:
            raise ValueError(f"a request needs a Content-Length of at most {BODY_MAX}")
        body = json.loads(self.rfile.read(length))
        if not isinstance(body, dict):
            raise ValueError("the body has to be a JSON object")
        return body

    def _json(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _error(self, status: int, type: str, message: str) -> None:
        # ``type`` beside ``error`` is what Anthropic's clients look for; others do not mind it
        said = {"message": message, "type": type, "param": None, "code": type}
        self._json(status, {"type": "error", "error": said})

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the server itself refuses (a method, a header), in the form of every other error."""
        self.close_connection = True
        self._error(code, "request", message or HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the kernel has the record."""


def chunks(reply: dict[str, Any], *, usage: bool) -> Iterator[dict[str, Any]]:
    """A chat completion as the chunks that a stream of it would have had."""
    head: dict[str, Any] = {key: reply[key] for key in ("id", "created", "model") if key in reply}
    head["object"] = "chat.completion.chunk"
    for choice in reply.get("choices", []):
        number = choice.get("index", 0)
        message = dict(choice.get("message") or {})
        if message.get("tool_calls"):
            calls = [{**call, "index": place} for place, call in enumerate(message["tool_calls"])]
            message["tool_calls"] = calls
        yield {**head, "choices": [{"index": number, "delta": message, "finish_reason": None}]}
        ended = {"index": number, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield {**head, "choices": [ended]}
    if usage:
        yield {**head, "choices": [], "usage": reply.get("usage")}
