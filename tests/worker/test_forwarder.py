"""The loopback server of a box, over HTTP: what black-box programs get, and what is refused."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from agentos.messages import ModelCard, WireFault
from agentos.wire import Channel
from agentos.worker.jobs.forwarder import Forwarder, chunks
from agentos.worker.rpc import KernelClient, Refused

REPLY = {
    "id": "x",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


class Kernel:
    """Answers each ask; ``asked`` has them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def ask(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((what, body))
        if "refuse" in str(body):
            kind = str(body.get("user")).partition(" ")[2] or "context"
            raise Refused(WireFault(type=kind, message="too long", where="", resource=""))
        return {"reply": REPLY}


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def connection(kernel: Kernel) -> Iterator[http.client.HTTPConnection]:
    forwarder = Forwarder()
    models = [ModelCard(name="main", context_tokens=8_192), ModelCard(name="other", context_tokens=8_192)]
    forwarder.start(kernel, models)  # type: ignore[arg-type]  # only ``ask`` is used
    made = http.client.HTTPConnection(forwarder.url.removeprefix("http://"), timeout=10)
    yield made
    made.close()


def call(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "application/json"
    return answer.status, json.loads(answer.read())


CHAT = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize(
    ("named", "meant"), [("main", "main"), ("other", "other"), ("gpt-4o-mini", "main"), (None, "main")]
)
def test_a_model_that_is_not_the_runs_stands_for_its_first(
    connection: http.client.HTTPConnection, kernel: Kernel, named: str | None, meant: str
) -> None:
    for path, body in (
        ("/v1/chat/completions", CHAT),
        ("/v1/responses", {"input": "x"}),
        ("/v1/messages", CHAT),
    ):
        status, _ = call(connection, "POST", path, {**body, "model": named, "max_tokens": 5})
        assert (status, kernel.asked[-1][1]["model"]) == (200, meant)


def test_models_are_listed_and_told_one_by_one(connection: http.client.HTTPConnection) -> None:
    status, listed = call(connection, "GET", "/v1/models?limit=9")
    assert (status, [item["id"] for item in listed["data"]]) == (200, ["main", "other"])
    assert call(connection, "GET", "/v1/models/other")[1]["id"] == "other"
    assert call(connection, "GET", "/v1/models/none")[0] == 404


def test_tokens_are_estimated_and_nobody_is_asked(
    connection: http.client.HTTPConnection, kernel: Kernel
) -> None:
    status, counted = call(
        connection, "POST", "/v1/messages/count_tokens", {**CHAT, "system": "be brief " * 100}
    )
    assert status == 200
    assert 200 < counted["input_tokens"] < 400
    assert kernel.asked == []


@pytest.mark.parametrize("key", ["previous_response_id", "conversation", "background"])
def test_what_cannot_be_honoured_is_refused(
    connection: http.client.HTTPConnection, kernel: Kernel, key: str
) -> None:
    status, said = call(connection, "POST", "/v1/responses", {"input": "x", key: "resp_1"})
    assert (status, said["error"]["type"]) == (400, "request")
    assert key in said["error"]["message"]
    assert kernel.asked == []


def test_what_refers_to_an_item_of_before_is_refused(connection: http.client.HTTPConnection) -> None:
    asked = {"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "and then?"}]}
    status, said = call(connection, "POST", "/v1/responses", asked)
    assert (status, said["error"]["type"]) == (400, "request")


def test_an_error_is_json_and_does_not_spoil_the_next_request(
    connection: http.client.HTTPConnection, kernel: Kernel
) -> None:
    for method, path, body, status in (
        ("POST", "/v1/embeddings", {"input": "x" * 10_000}, 404),
        ("POST", "/v1/chat/completions", ["no object"], 400),
        ("POST", "/v1/chat/completions", {**CHAT, "user": "refuse"}, 400),
        ("POST", "/v1/chat/completions", {**CHAT, "stream": True, "stream_options": [1]}, 400),
        ("DELETE", "/v1/models", None, 501),
    ):
        found, said = call(connection, method, path, body)
        assert found == status
        assert said["error"]["message"]
        assert call(connection, "POST", "/v1/chat/completions", CHAT)[0] == 200


@pytest.mark.parametrize(("kind", "status"), [("cut", 422), ("refused", 422), ("empty", 502)])
def test_a_client_asks_again_only_where_another_answer_may_come(
    connection: http.client.HTTPConnection, kind: str, status: int
) -> None:
    found, said = call(connection, "POST", "/v1/chat/completions", {**CHAT, "user": f"refuse {kind}"})
    assert (found, said["error"]["code"]) == (status, kind)


def test_streamed_calls_are_told_apart_whatever_index_a_server_gave_them() -> None:
    calls = [{"index": 0, "id": name, "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": calls}}]}
    first, _ = chunks(reply, usage=False)
    told = first["choices"][0]["delta"]["tool_calls"]
    assert [(call["index"], call["id"]) for call in told] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize("sent", ['"temperature": NaN', '"top_p": 1e999', f'"x": {"[" * 300 + "]" * 300}'])
def test_what_the_kernel_would_not_read_is_refused_and_spoils_nothing(sent: str) -> None:
    """The run ended with it: the kernel takes such a frame for a breach of the protocol."""
    ours, theirs = socket.socketpair()
    forwarder = Forwarder()
    forwarder.start(KernelClient(Channel(ours)), [])
    made = http.client.HTTPConnection(forwarder.url.removeprefix("http://"), timeout=10)
    made.request("POST", "/v1/chat/completions", f'{{"messages": [], {sent}}}')
    answer = made.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]["type"]) == (400, "request")
    made.close()
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("content", ["é" * 1_500_000, "[" * 100_000])
def test_what_no_frame_takes_or_nobody_can_parse_is_refused_in_words(content: str) -> None:
    ours, theirs = socket.socketpair()
    forwarder = Forwarder()
    forwarder.start(KernelClient(Channel(ours)), [])
    made = http.client.HTTPConnection(forwarder.url.removeprefix("http://"), timeout=10)
    body = (
        content
        if content.startswith("[")
        else f'{{"messages": [{{"role": "user", "content": "{content}"}}]}}'
    )
    made.request("POST", "/v1/chat/completions", body.encode())
    answer = made.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]["type"]) == (400, "request")
    made.close()
    theirs.close()
