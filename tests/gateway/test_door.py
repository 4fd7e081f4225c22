"""The socket: who may ask, what a client sees, and what never comes out."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import ModelSpec
from agentos.errors import ModelFailed
from agentos.gateway.client import GatewayRequest, GatewaySession
from agentos.testing import call
from tests.gateway.conftest import KEY, SPEC, Bench, asking, said, within
from tests.refusals import raises

SPENT = "AKIAIOSFODNN7EXAMPLE"


def post(session: GatewaySession, body: Any, token: str = "") -> tuple[int, bytes]:
    process, own = session._opened(within())
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = process.request(
        GatewayRequest("POST", "/v1/chat/completions", token or own, content), within()
    )
    return response.status, response.body


def code(body: bytes) -> str:
    return str(json.loads(body)["error"]["code"])


def test_a_token_is_good_for_its_run_until_that_ends(bench: Bench) -> None:
    session, other = bench.open(), bench.open()
    assert post(session, asking("mine"))[0] == 200
    _, token = session._opened(within())
    forged = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
    for wrong in (forged, "x", token.lower() + token.upper()):
        status, body = post(other, asking("not mine"), wrong)
        assert (status, code(body)) == (401, "token")
    session.close()
    session.close()
    status, body = post(other, asking("revoked"), token)
    assert (status, code(body)) == (401, "token")
    with raises(ModelFailed, "not_allowed"):
        session.complete(asking("closed"), within())


def test_who_waits_for_an_answer_when_the_run_ends_waits_no_longer_and_the_call_is_on_record(
    bench: Bench,
) -> None:
    session, told = bench.open(run_id := bench.new_run()), list[ModelFailed]()

    def ask() -> None:
        try:
            session.complete(asking("slow goodbye"), within())
        except ModelFailed as error:
            told.append(error)

    waiting = threading.Thread(target=ask)
    waiting.start()
    deadline = time.monotonic() + 60
    while not bench.calls(run_id) and time.monotonic() < deadline:
        time.sleep(0.01)
    session.close()
    waiting.join(60)
    assert [error.kind for error in told] == ["not_allowed"]
    assert told[0].used["input_tokens"] > 0, "it may be paid, so the run is booked with it"
    assert told[0].used["estimated"]
    while not any(call.state == "done" for call in bench.calls(run_id)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [call.state for call in bench.calls(run_id)] == ["done"]


def test_a_run_cannot_use_the_control_of_the_gateway(bench: Bench) -> None:
    process, token = bench.open()._opened(within())
    for path in ("open", "close"):
        response = process.request(GatewayRequest("POST", f"/control/{path}", token, b"{}"), within())
        assert (response.status, code(response.body)) == (401, "token")
    assert process.request(GatewayRequest("GET", "/control/stats", token, b""), within()).status == 401


def test_the_daemon_sees_what_is_open(bench: Bench) -> None:
    session = bench.open()
    process, _ = session._opened(within())
    secret = bench.models._setup().secret

    def stats() -> dict[str, int]:
        found: dict[str, int] = json.loads(
            process.request(GatewayRequest("GET", "/control/stats", secret, b""), within()).body
        )
        return found

    before = stats()
    session.close()
    assert stats() == {"grants": before["grants"] - 1, "in_flight": 0}


def test_a_run_may_ask_its_own_models_only(bench: Bench) -> None:
    second = ModelSpec("second", "openai/scripted", "local", {})
    session = bench.open(specs=(SPEC, second))
    assert session.complete(asking("who", model="second"), within()).model == "second"
    assert session.complete(asking("who", model="default"), within()).model == "main"
    for name in ("third", "openai/scripted", 7, ["main"]):
        with raises(ModelFailed, "not_allowed", names=["main, second"]) as caught:
            session.complete(asking("who", model=name), within())
        assert caught.value.kind == "not_allowed"
    process, token = session._opened(within())
    listed = json.loads(process.request(GatewayRequest("GET", "/v1/models", token, b""), within()).body)
    assert [model["id"] for model in listed["data"]] == ["main", "second"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"[" * 100_000,
        {"messages": []},
        {"messages": [{"role": "user", "content": 7}]},
        {"messages": [{"role": "root", "content": "x"}]},
        {**asking("x"), "n": 100},
        {**asking("x"), "max_tokens": -5},
        {**asking("x"), "stop": "\ud800"},
        {**asking("\ud800")},
        {**asking("x"), "temperature": float("nan")},
        {**asking("x"), "temperature": "hot"},
        {**asking("x"), "stop": [{}]},
        {**asking("x"), "stream": True, "stream_options": "x"},
        {**asking("x"), "response_format": 7},
        {"messages": [{"role": [], "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": {}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
        {**asking("x"), "tools": [{"type": "web_search"}]},
        {**asking("x"), "tools": [{"type": "mcp", "server_url": "http://127.0.0.1:1"}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "http://x"}}]}]},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}],
                }
            ]
        },
    ],
)
def test_a_request_that_breaks_the_rules_is_refused_before_anybody_is_asked(bench: Bench, body: Any) -> None:
    before = len(bench.server.requests)
    status, answer = post(bench.open(), body)
    assert (status, code(answer)) == (400, "request")
    assert len(bench.server.requests) == before


def test_the_socket_and_the_record_are_for_their_owner_only(bench: Bench) -> None:
    bench.open().complete(asking("begin"), within())
    for path in (bench.home.run / "gateway.sock", bench.home.calls, bench.home.logs / "gateway.log"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


# --- streams ----------------------------------------------------------------------------------


def chunks(body: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_stream_says_what_the_whole_answer_says(bench: Bench) -> None:
    run = bench.new_run()
    request = asking("tell me a long story " * 20)
    whole = json.loads(post(bench.open(run), request)[1])
    options = {"stream": True, "stream_options": {"include_usage": True}}
    status, body = post(bench.open(run), {**request, **options})
    assert status == 200
    found = chunks(body)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in found if chunk["choices"])
    assert text == whole["choices"][0]["message"]["content"]
    assert found[-1]["usage"] == whole["usage"]
    assert found[-2]["choices"][0]["finish_reason"] == "stop"
    assert len(bench.calls(run)) == 1  # the same call, whether streamed or not


def test_tool_calls_are_streamed_whole(bench: Bench) -> None:
    bench.server.add(call("a", {"x": 1}, ("b", {"y": [2]})))
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in "ab"]
    found = chunks(post(bench.open(), asking("work", tools=tools, stream=True))[1])
    calls = [one for chunk in found for one in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert [(one["index"], one["function"]["name"]) for one in calls] == [(0, "a"), (1, "b")]
    assert json.loads(calls[1]["function"]["arguments"]) == {"y": [2]}


# --- secrets ----------------------------------------------------------------------------------


def test_secrets_are_taken_out_before_anything_is_stored_or_sent(bench: Bench) -> None:
    run = bench.new_run()
    text = f"the key is {KEY}, the other the-secret-of-somebody-else, and {SPENT}"
    session = bench.open(run)
    reply = session.complete(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}, within()
    )
    sent = json.dumps(bench.server.requests[-1].body)
    for where in (sent, json.dumps(reply.body)):
        assert KEY not in where
        assert "the-secret-of-somebody-else" not in where
        assert SPENT not in where
    assert "[redacted:GATEWAY_TEST_API_KEY]" in said(reply)
    assert "[redacted:UNRELATED_SECRET]" in sent
    assert "[redacted:aws-key]" in sent
    assert bench.server.requests[-1].headers["authorization"] == f"Bearer {KEY}"  # it did reach the provider


def test_a_secret_in_a_reply_is_taken_out_too(bench: Bench) -> None:
    bench.server.add(call("show", {"key": KEY}))
    reply = bench.open().complete(asking("leak it"), within())
    assert KEY not in json.dumps(reply.body)


def test_an_error_that_quotes_a_key_does_not_pass_it_on(bench: Bench) -> None:
    bench.server.fault_next("unauthorized")
    with pytest.raises(ModelFailed) as caught:
        bench.open().complete(asking("quote"), within())
    assert KEY not in str(caught.value)


def test_no_secret_lies_anywhere_in_the_home_nor_in_the_arguments(bench: Bench) -> None:
    bench.open().complete(asking(f"once more {KEY}"), within())
    secret = bench.models._setup().secret
    for path in sorted(bench.home.root.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            assert KEY.encode() not in content, path
            assert secret.encode() not in content, path
    arguments = Path(f"/proc/{bench.models.pid}/cmdline").read_bytes()
    environment = Path(f"/proc/{bench.models.pid}/environ").read_bytes()
    assert secret.encode() not in arguments + environment
    assert KEY.encode() not in arguments


def test_the_log_has_no_words_of_the_calls(bench: Bench) -> None:
    bench.open().complete(asking("unmistakable words"), within())
    assert "unmistakable" not in (bench.home.logs / "gateway.log").read_text()
    for line in (bench.home.logs / "gateway.log").read_text().splitlines():
        assert re.fullmatch(r"\{.*\}", line)
        json.loads(line)


def test_litellm_reads_no_file_and_fetches_nothing_at_its_start(bench: Bench) -> None:
    """The environment that keeps it from doing so stands before its import."""
    text = Path(f"/proc/{bench.models.pid}/maps").read_text()
    assert "libpython" in text or "python" in text
    listed = subprocess.run(["ss", "-tnp"], capture_output=True, text=True, check=False).stdout
    theirs = [line for line in listed.splitlines() if f"pid={bench.models.pid}," in line]
    assert all("127.0.0.1" in line for line in theirs)
