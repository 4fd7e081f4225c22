"""The model server over plain HTTP: what it says, what it counts, how it fails."""

from __future__ import annotations

import errno
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from agentos.testing import ModelServer, call, fault, say
from agentos.testing.modelserver import FAULTS, ServerToolCall
from agentos.testing.modelserver.replies import UNPAID, ServerReply
from tests.refusals import raises

TOOL = {"type": "function", "function": {"name": "sum", "parameters": {"type": "object", "properties": {}}}}


def post(server: ModelServer, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Status and body, as JSON where it is."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as client:
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        client.request("POST", "/v1/chat/completions", data, headers or {})
        answer = client.getresponse()
        text = answer.read().decode()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text


def ask(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], **more}


def said(server: ModelServer, body: Any, **headers: str) -> str:
    status, found = post(server, body, {name.replace("_", "-"): value for name, value in headers.items()})
    assert status == 200, found
    return str(found["choices"][0]["message"]["content"])


def streamed(server: ModelServer, body: Any) -> list[Any]:
    status, text = post(server, {**body, "stream": True})
    assert status == 200
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    return [json.loads(event) for event in events[:-1]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


# --- what it says -------------------------------------------------------------------------------


def test_it_says_what_the_script_says_and_what_it_is() -> None:
    with ModelServer([say("one"), say("two", finish="length")]) as server:
        status, first = post(server, ask())
        assert (status, first["choices"][0]["message"]["content"]) == (200, "one")
        assert (first["model"], first["system_fingerprint"]) == ("scripted", "agentos-scripted")
        assert first["usage"]["total_tokens"] == sum(
            first["usage"][name] for name in ("prompt_tokens", "completion_tokens")
        )
        assert post(server, ask())[1]["choices"][0]["finish_reason"] == "length"
        status, over = post(server, ask())
        assert status == 400
        assert over["error"]["code"] == "script_ended"
        server.add(say("three"))
        assert said(server, ask()) == "three"


def test_a_function_sees_the_request_and_its_number() -> None:
    with ModelServer(lambda request, number: say(f"{number}: {request['messages'][0]['content']}")) as server:
        assert [said(server, ask("a")), said(server, ask("b"))] == ["1: a", "2: b"]


def test_the_policy_goes_on_where_the_script_ends() -> None:
    with ModelServer([say("scripted")], policy=lambda request, number: say("thought")) as server:
        assert [said(server, ask()), said(server, ask())] == ["scripted", "thought"]


def test_a_bug_in_a_script_is_raised_when_the_server_closes() -> None:
    server = ModelServer(lambda request, number: say(request["nothing"]))
    server.start()
    with pytest.raises(http.client.RemoteDisconnected):
        post(server, ask())
    with raises(KeyError, names=["nothing"]):
        server.close()


def test_calls_of_tools_in_parallel() -> None:
    with ModelServer([call("sum", {"a": 1}, ("product", {"b": 2}), text="both")]) as server:
        choice = post(server, ask(tools=[TOOL]))[1]["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    first, second = choice["message"]["tool_calls"]
    assert (first["function"]["name"], json.loads(first["function"]["arguments"])) == ("sum", {"a": 1})
    assert (second["function"]["name"], second["type"]) == ("product", "function")
    assert first["id"] != second["id"]


def test_ids_of_calls_differ_between_servers_unless_they_are_given() -> None:
    def id_of(reply: ServerReply) -> str:
        with ModelServer([reply]) as server:
            return str(post(server, ask())[1]["choices"][0]["message"]["tool_calls"][0]["id"])

    assert id_of(call("sum", {})) != id_of(call("sum", {}))
    assert id_of(ServerReply(calls=(ServerToolCall("sum", "{}", "mine"),))) == "mine"


def test_n_choices_are_equal_or_as_the_policy_gives_them() -> None:
    with ModelServer([say("same")], policy=lambda r, n: [say(str(i)) for i in range(r["n"])]) as server:
        texts = [[c["message"]["content"] for c in post(server, ask(n=3))[1]["choices"]] for _ in range(2)]
        assert texts == [["same"] * 3, ["0", "1", "2"]]
        assert server.paid == 2


@pytest.mark.parametrize(
    ("text", "format", "expected"),
    [
        ("four", {"type": "json_object"}, {"answer": "four"}),
        ('{"x": 4}', {"type": "json_object"}, {"x": 4}),
        (
            "four",
            {"type": "json_schema", "json_schema": {"schema": {"properties": {"size": {}}}}},
            {"size": "four"},
        ),
    ],
)
def test_json_mode_gives_an_object(text: str, format: Any, expected: Any) -> None:
    with ModelServer([say(text)]) as server:
        assert json.loads(said(server, ask(response_format=format))) == expected


def test_a_stream_adds_up_to_the_reply() -> None:
    with ModelServer([say("some longer text than one piece"), call("sum", {"a": "long enough"})]) as server:
        chunks = streamed(server, ask(stream_options={"include_usage": True}))
        assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)
        *deltas, last = chunks
        assert last["choices"] == []
        assert last["usage"]["completion_tokens"] > 0
        text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in deltas)
        assert text == "some longer text than one piece"
        assert len(deltas) > 3
        assert deltas[-1]["choices"][0]["finish_reason"] == "stop"

        chunks = streamed(server, ask())
        calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
        assert calls[0]["id"]
        assert calls[0]["function"]["name"] == "sum"
        assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"a": "long enough"}
        assert not any(chunk.get("usage") for chunk in chunks)


def test_models_are_listed_and_unknown_urls_refused(server: ModelServer) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as client:
        client.request("GET", "/v1/models")
        assert [model["id"] for model in json.load(client.getresponse())["data"]] == ["scripted"]
        client.request("GET", "/v1/elsewhere")
        assert client.getresponse().status == 404


# --- what it counts -----------------------------------------------------------------------------


def test_equal_requests_without_a_key_are_paid_each(server: ModelServer) -> None:
    for _ in range(3):
        said(server, ask())
    assert (server.paid, server.repeated) == (3, 0)


def test_a_key_seen_before_gets_the_same_answer_and_is_not_paid_again() -> None:
    with ModelServer(lambda request, number: say(str(number))) as server:
        texts = [said(server, ask(), Idempotency_Key=key) for key in ("a", "b", "a")]
        assert texts == ["1", "2", "1"]
        assert streamed_text(server, "a") == "1"  # a stream of the same is the same call
        assert (server.paid, server.repeated) == (2, 2)
        status, refused = post(server, ask("something else"), {"Idempotency-Key": "a"})
        assert status == 400
        assert refused["error"]["code"] == "idempotency_key_reused"
        assert server.stats() == {"requests": 5, "paid": 2, "repeated": 2, "refused": 1}


def streamed_text(server: ModelServer, key: str) -> str:
    _, text = post(server, ask(stream=True), {"Idempotency-Key": key})
    events = [json.loads(line[6:]) for line in text.split("\n\n") if line and "[DONE]" not in line]
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events)


def test_a_client_that_leaves_has_paid_and_gets_the_same_when_it_asks_again() -> None:
    with ModelServer([say("late", delay_s=0.3)]) as server:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as client:
            client.request("POST", "/v1/chat/completions", json.dumps(ask()), {"Idempotency-Key": "k"})
            until(lambda: server.paid == 1)
        assert said(server, ask(), Idempotency_Key="k") == "late"
        assert (server.paid, server.repeated) == (1, 1)


def test_a_client_that_leaves_a_slow_stream_has_paid_and_can_have_the_whole() -> None:
    with ModelServer([say("w" * 200, pace_s=0.05)]) as server:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as client:
            client.request(
                "POST", "/v1/chat/completions", json.dumps(ask(stream=True)), {"Idempotency-Key": "k"}
            )
            first = client.getresponse().read1()
            assert b"[DONE]" not in first  # it comes in pieces
        assert said(server, ask(), Idempotency_Key="k") == "w" * 200
        assert (server.paid, server.repeated) == (1, 1)


def test_requests_are_kept_with_headers_and_time(server: ModelServer) -> None:
    said(server, ask("look at me"), Authorization="Bearer secret")
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer secret"
    assert request.body["messages"][0]["content"] == "look at me"
    assert request.at.tzinfo is not None
    assert request.outcome == "paid"


def test_64_connections_at_once_lose_and_double_nothing() -> None:
    with (
        ModelServer(lambda request, number: say(request["messages"][0]["content"], delay_s=0.05)) as server,
        ThreadPoolExecutor(64) as pool,
    ):
        start = threading.Barrier(64)

        def one(number: int) -> str:
            start.wait()
            return said(server, ask(f"n{number}"))

        assert sorted(pool.map(one, range(64))) == sorted(f"n{number}" for number in range(64))
        assert server.paid == 64


def until(true: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- how it fails -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("rate_limit", 429, "rate_limit_exceeded"),
        ("server_error", 500, None),
        ("overloaded", 503, "overloaded"),
        ("unauthorized", 401, "invalid_api_key"),
        ("context_length", 400, "context_length_exceeded"),
    ],
)
def test_refusals_cost_nothing_and_do_not_move_the_script(kind: str, status: int, code: str) -> None:
    with ModelServer([say("after all")]) as server:
        server.fault_next(kind, times=2)
        for _ in range(2):
            found, body = post(server, ask(), {"Idempotency-Key": "k"})
            assert (found, body["error"]["code"]) == (status, code)
        assert said(server, ask(), Idempotency_Key="k") == "after all"
        assert server.stats() == {"requests": 3, "paid": 1, "repeated": 0, kind: 2}


@pytest.mark.parametrize("after", [None, 0.5, 2])
def test_429_says_when_to_come_again_only_if_told_to(after: float | None, server: ModelServer) -> None:
    server.fault_next("rate_limit", retry_after_s=after)
    with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as client:
        client.request("POST", "/v1/chat/completions", json.dumps(ask()))
        assert client.getresponse().getheader("Retry-After") == (None if after is None else f"{after:g}")


@pytest.mark.parametrize("kind", ["reset", "reset_midstream"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reset_is_paid_and_the_answer_is_there_for_who_asks_again(kind: str, stream: bool) -> None:
    with ModelServer([fault(kind, say("the whole answer, at last"))]) as server:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as client:
            body = json.dumps(ask(stream=stream))
            client.request("POST", "/v1/chat/completions", body, {"Idempotency-Key": "k"})
            with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
                client.getresponse().read()
        assert said(server, ask(stream=False), Idempotency_Key="k") == "the whole answer, at last"
        assert (server.paid, server.repeated) == (1, 1)
        assert [request.fault for request in server.requests] == [kind, ""]


def test_a_cut_stream_gives_its_first_half() -> None:
    with (
        ModelServer([fault("reset_midstream", say("x" * 400))]) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as client,
    ):
        body = json.dumps(ask(stream=True))
        client.sendall(
            f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        data = bytearray()

        def receive() -> None:
            while piece := client.recv(65536):
                data.extend(piece)

        with pytest.raises(ConnectionResetError):
            receive()
        assert 100 < data.count(b"x") < 400


def test_a_hang_lasts_until_the_client_leaves_or_as_long_as_told(server: ModelServer) -> None:
    server.fault_next("hang")
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=0.2)) as client:
        client.request("POST", "/v1/chat/completions", json.dumps(ask()))
        with pytest.raises(TimeoutError):
            client.getresponse()
    server.fault_next("hang", seconds=0.05)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        post(server, ask())
    assert server.paid == 0


def test_answers_that_are_no_json() -> None:
    with ModelServer([fault("malformed"), fault("html")]) as server:
        status, text = post(server, ask())
        assert status == 200
        assert isinstance(text, str)
        assert text.startswith('{"id"')
        status, text = post(server, ask())
        assert status == 200
        assert text.startswith("<html>")


def choice(server: ModelServer, **more: Any) -> Any:
    return post(server, ask(**more))[1]["choices"][0]


def test_answers_that_are_bad(server: ModelServer) -> None:
    server.fault_next("bad_arguments")
    with pytest.raises(ValueError):
        json.loads(choice(server, tools=[TOOL])["message"]["tool_calls"][0]["function"]["arguments"])
    server.fault_next("unknown_tool")
    assert choice(server)["message"]["tool_calls"][0]["function"]["name"] == "no_such_tool"
    server.fault_next("no_choices")
    assert post(server, ask())[1]["choices"] == []
    server.fault_next("no_usage")
    assert "usage" not in post(server, ask())[1]
    server.fault_next("length")
    assert choice(server)["finish_reason"] == "length"
    server.fault_next("refusal")
    assert choice(server)["message"]["refusal"]
    server.fault_next("content_filter")
    assert choice(server)["finish_reason"] == "content_filter"
    server.fault_next("huge")
    assert len(choice(server)["message"]["content"]) == 10 * 1024 * 1024
    server.fault_next("slow", seconds=0.1)
    begun = time.monotonic()
    choice(server)
    assert time.monotonic() - begun >= 0.1
    assert server.paid == 9


def test_a_request_may_ask_for_its_fault(server: ModelServer) -> None:
    assert post(server, ask(), {"X-Scripted-Fault": "server_error"})[0] == 500
    wanted = json.dumps({"fault": "rate_limit", "retry_after_s": 3})
    assert post(server, ask(), {"X-Scripted-Fault": wanted})[0] == 429
    status, body = post(server, ask(), {"X-Scripted-Fault": "bad weather"})
    assert status == 400
    assert "bad weather" in body["error"]["message"]
    assert said(server, ask()) == "ok"


@pytest.mark.parametrize("kind", sorted(FAULTS - {"hang"}))
def test_after_any_fault_the_next_request_is_answered_and_counted_right(kind: str) -> None:
    with ModelServer([fault(kind, seconds=0.01), say("fine")]) as server:
        with suppress(http.client.HTTPException, OSError):
            post(server, ask(stream=True))
        assert said(server, ask()) == "fine"
        assert server.paid == (1 if kind in UNPAID else 2)


def test_a_fault_that_does_not_exist_is_refused_at_once(server: ModelServer) -> None:
    with raises(ValueError, message="model_server.bad_fault"):
        fault("rate_limits")
    with raises(ValueError, names=["'nap'"]):
        server.fault_next("nap")


@pytest.mark.parametrize(
    "body",
    [
        "no json",
        "[]",
        "{}",
        {"model": "m"},
        {"model": "m", "messages": []},
        {"model": "m", "messages": ["hi"]},
        {"messages": [{"role": "user", "content": "hi"}]},
        ask(n=0.5),
        ask(n=-1),
        ask(n=1000),
        {"model": "m", "messages": [{"role": "user", "content": 7}]},
        {"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]},
        {"model": "m", "messages": [{"role": "user"}], "tools": [{"name": "sum"}]},
        {"model": "m", "messages": [{"role": "user"}], "response_format": "json"},
        {"model": "m", "messages": [{"role": "user"}], "stream": True, "stream_options": 7},
    ],
)
def test_requests_that_no_provider_takes_are_refused_and_free(server: ModelServer, body: Any) -> None:
    status, found = post(server, body)
    assert status == 400
    assert found["error"]["type"] == "invalid_request_error"
    assert server.paid == 0


@pytest.mark.parametrize(
    "raw",
    [
        b"hello\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
    ],
)
def test_bytes_that_are_no_http_get_an_answer_and_hurt_nobody(server: ModelServer, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(raw)
        assert b"400" in client.recv(4096)
    assert said(server, ask()) == "ok"


def test_chunked_requests_and_expectations_are_understood(server: ModelServer) -> None:
    body = json.dumps(ask()).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nConnection: close\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        client.sendall(head + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n" + chunk)
        data = b"".join(iter(lambda: client.recv(4096), b""))
    assert data.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "script",
    [
        "no json",
        [],
        {"replies": [7]},
        {"replies": [{"calls": []}]},
        {"replies": [{"calls": 7}]},
        {"replies": [{"calls": [["sum"]]}]},
        {"replies": ["fine", {"say": "x", "delay_s": "long"}]},
        {"replies": [{"say": "x", "pace_s": None}]},
        {"faults": [{"fault": "slow", "seconds": []}]},
        {"faults": ["nap"]},
        {"replies": 7},
        {"faults": True},
        {"replies": [{"say": 7}]},
    ],
)
def test_a_bad_script_from_outside_is_refused_whole(server: ModelServer, script: Any) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as client:
        client.request("POST", "/_/script", json.dumps(script))
        answer = client.getresponse()
        assert (answer.status, json.load(answer)["error"]["code"]) == (400, "bad_script")
    assert said(server, ask()) == "ok"


def test_a_port_that_is_taken_is_said_at_once_and_closing_twice_is_fine(server: ModelServer) -> None:
    other = ModelServer(port=server.port)
    with raises(OSError, names=[f"[Errno {errno.EADDRINUSE}]"]):
        other.start()
    other.close()
    ModelServer().close()  # never started
    with ModelServer() as third:
        third.close()


# --- from another process -----------------------------------------------------------------------


def test_a_process_without_arguments_follows_the_rules() -> None:
    command = [sys.executable, "-W", "error", "-m", "agentos.testing.modelserver"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = int(process.stdout.readline().rsplit(":", 1)[1].split("/")[0])
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as client:
            client.request("POST", "/v1/chat/completions", json.dumps(ask("Total these numbers: 3, 4")))
            answer = json.load(client.getresponse())
        process.terminate()
    assert answer["choices"][0]["message"]["content"] == "7"


def test_a_process_of_its_own(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('knows = ["Always answer in upper case."]\n')
    command = [sys.executable, "-W", "error", "-m", "agentos.testing.modelserver", "--rules", str(rules)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        url = process.stdout.readline()
        port = int(url.rsplit(":", 1)[1].split("/")[0])
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as client:

            def send(path: str, body: Any) -> Any:
                client.request("POST" if body else "GET", path, json.dumps(body) if body else None)
                return json.load(client.getresponse())

            script = {"replies": ["plain", {"calls": [["sum", {"a": 1}]]}], "faults": ["server_error"]}
            assert send("/_/script", script) == {"replies": 2, "faults": 1}
            assert "error" in send("/v1/chat/completions", ask())
            assert send("/v1/chat/completions", ask())["choices"][0]["message"]["content"] == "plain"
            found = send("/v1/chat/completions", ask())["choices"][0]
            assert found["message"]["tool_calls"][0]["function"]["name"] == "sum"
            text = send("/v1/chat/completions", ask('say "hello"'))["choices"][0]["message"]["content"]
            assert text == "HELLO"
            assert send("/_/stats", None) == {"requests": 4, "paid": 3, "repeated": 0, "server_error": 1}
            assert "error" in send("/_/script", {"replies": [{"shout": 1}]})
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")
    assert json.loads(rest)["paid"] == 3
