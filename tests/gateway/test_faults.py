"""Each way in which a provider can fail, through real HTTP and the real litellm."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentos.domain import Budget, Mode, ModelSpec, Price
from agentos.errors import ModelFailed
from agentos.gateway.calls import CallRecord, ProviderCall
from agentos.gateway.client import GatewayModels
from agentos.gateway.setup import GatewayLimits, ProviderTarget
from agentos.models.redaction import Redactor
from agentos.ports import Grant
from agentos.testing import ModelServer, call, say
from tests.gateway.conftest import KEY, SPEC, Bench, asking, echo, make_home, said, settings_for, within
from tests.refusals import raises

TOOL = {"type": "function", "function": {"name": "sum", "parameters": {"type": "object", "properties": {}}}}


def sent_since(bench: Bench, before: int) -> int:
    return len(bench.server.requests) - before


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("no_choices", "empty"),
        ("length", "cut"),
        ("refusal", "refused"),
        ("content_filter", "refused"),
        ("bad_arguments", "malformed"),
        ("context_length", "context"),
        ("unauthorized", "auth"),
        ("no_model", "auth"),
    ],
)
def test_a_fault_that_no_retry_mends_is_typed_and_sent_once(bench: Bench, fault: str, kind: str) -> None:
    before = len(bench.server.requests)
    bench.server.fault_next(fault)
    run = bench.new_run()
    with pytest.raises(ModelFailed) as caught:
        bench.open(run).complete(asking(f"meet {fault}"), within())
    assert caught.value.kind == kind
    assert sent_since(bench, before) == 1
    assert [row.fault for row in bench.calls(run)] == [kind]


@pytest.mark.parametrize(
    "fault", ["rate_limit", "server_error", "overloaded", "reset", "malformed", "html", "wrong_shape"]
)
def test_a_fault_that_passes_is_retried_with_the_same_key_and_paid_once(bench: Bench, fault: str) -> None:
    before, paid = len(bench.server.requests), bench.server.paid
    bench.server.fault_next(fault)
    reply = bench.open().complete(asking(f"overcome {fault}"), within())
    assert said(reply).startswith(f"overcome {fault}")
    assert sent_since(bench, before) == 2
    assert bench.server.paid - paid == 1
    keys = {request.headers["idempotency-key"] for request in bench.server.requests[before:]}
    assert len(keys) == 1


def test_retry_after_is_honoured_and_a_call_that_cannot_wait_that_long_fails_at_once(bench: Bench) -> None:
    bench.server.fault_next("rate_limit", retry_after_s=1)
    began = time.monotonic()
    bench.open().complete(asking("wait a second"), within())
    assert 1.0 <= time.monotonic() - began < 20.0  # no more than is asked for
    bench.server.fault_next("rate_limit", retry_after_s=45)
    began = time.monotonic()
    with pytest.raises(ModelFailed) as caught:
        bench.open().complete(asking("cannot wait"), within(30))
    assert caught.value.kind == "overloaded"
    assert time.monotonic() - began < 20.0  # neither the 45 s nor its own 30


@pytest.mark.slow  # litellm is imported
@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("7", 7, 7),
        ("+20 s", 15, 20),
        ("+1 day", 60, 60),
        ("-1 day", 0, 0),
        ("Sun, 99 Nov 99999 00:00:00 GMT", 0, 0),
        ("soon", 0, 0),
        ("nan", 0, 0),
    ],
)
def test_retry_after_may_be_a_moment(said: str, least: float, most: float) -> None:
    from agentos.gateway.asking import _retry_after

    ways = {"+20 s": 20.0, "+1 day": 86_400.0, "-1 day": -86_400.0}
    error = Exception()
    at = formatdate(time.time() + ways[said], usegmt=True) if said in ways else said
    error.litellm_response_headers = {"retry-after": at}  # type: ignore[attr-defined]
    assert least <= _retry_after(error) <= most


@pytest.mark.slow  # litellm is imported
@pytest.mark.parametrize(
    ("begins", "goes_on", "alive"),
    [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", True),
        ("HTTP/1.1 200 OK\r\n", "X-More: x\r\n", False),
    ],
)
def test_whether_a_server_is_alive_is_known_in_time(begins: str, goes_on: str, alive: bool) -> None:
    """One that answers without an end held its call, and a place among those under way, for ever."""
    from agentos.gateway.asking import _is_alive

    over = threading.Event()

    def drip() -> None:
        taken, _ = listening.accept()
        with taken, contextlib.suppress(OSError):
            taken.recv(1 << 16)
            taken.sendall(begins.encode())
            while not over.wait(0.05):
                taken.sendall(goes_on.encode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            asked = _is_alive(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", 2.0)
            assert asyncio.run(asyncio.wait_for(asked, 60.0)) is alive
        finally:
            over.set()
            thread.join()


@pytest.mark.slow
def test_a_server_that_talks_but_has_no_answer_in_time_is_slow_and_not_asked_a_third_time(
    bench: Bench,
) -> None:
    before = len(bench.server.requests)
    plodding = ModelSpec("plodding", "openai/scripted", "local", {})

    def hang(run: str, seconds: float) -> None:
        with pytest.raises(ModelFailed) as caught:
            bench.open(run, specs=(plodding,)).complete(asking("hang"), within(seconds))
        assert caught.value.kind == "slow"

    for _ in range(2):  # after one alone the model may only have been loaded
        bench.server.fault_next("hang")
        run, began = bench.new_run(), time.monotonic()
        hang(run, 5.0)  # a tenth of it is for the server to show that it is alive
        assert 2.5 < time.monotonic() - began < 20.0
        assert [row.fault for row in bench.calls(run)] == ["slow"]
    assert sent_since(bench, before) == 2, "what is slow would be slow again, and is paid each time"
    hang(bench.new_run(), 1.5)
    assert sent_since(bench, before) == 2
    assert said(bench.open(specs=(plodding,)).complete(asking("has more time"), within()))


def test_a_server_that_takes_connections_and_says_nothing_at_all_is_away(bench: Bench) -> None:
    mute = ModelSpec("mute", "openai/nobody", "mute", {})
    with pytest.raises(ModelFailed) as caught:
        bench.open(specs=(mute,)).complete(asking("anybody"), within(2.0))
    assert caught.value.kind == "timeout"
    assert caught.value.used["estimated"] is True
    assert caught.value.used["input_tokens"] > 0, "it was sent, and may be paid"


@pytest.mark.slow
def test_a_call_that_a_fallback_may_have_counted_stays_booked(bench: Bench) -> None:
    mute = ModelSpec("mute", "openai/scripted", "mute", {})
    away = ModelSpec("away", "openai/nobody", "away", {}, fallbacks=(mute,))
    with pytest.raises(ModelFailed) as caught:
        bench.open(specs=(away,)).complete(asking("anybody else"), within(4.0))
    assert caught.value.kind == "unreachable"
    assert caught.value.used["input_tokens"] > 0


def test_what_was_answered_and_cannot_be_used_is_told_with_what_it_cost(bench: Bench) -> None:
    bench.server.fault_next("length")
    with pytest.raises(ModelFailed) as caught:
        bench.open().complete(asking("anything"), within())
    assert caught.value.kind == "cut"
    assert caught.value.used["input_tokens"] + caught.value.used["output_tokens"] > 0
    bench.server.fault_next("unauthorized")
    with pytest.raises(ModelFailed) as caught:
        bench.open().complete(asking("no key"), within())
    assert not caught.value.used.get("input_tokens"), "what was refused costs nothing"


def test_a_fallback_answers_when_the_first_is_away_and_the_record_says_which(bench: Bench) -> None:
    away = ModelSpec("away", "openai/nobody", "away", {}, fallbacks=(SPEC,))
    run = bench.new_run()
    reply = bench.open(run, specs=(away,)).complete(asking("is anybody there"), within(8))
    assert reply.model == "main"
    assert [(row.model, row.answered_by) for row in bench.calls(run)] == [("away", "main")]


@pytest.mark.slow
def test_a_model_that_was_too_late_is_booked_beside_the_fallback_that_answers(bench: Bench) -> None:
    price = Price(1_000.0, 1_000.0)
    dear = ModelSpec("dear", "openai/scripted", "local", {"max_tokens": 100}, price=price)
    mute = replace(dear, name="mute", provider="mute", fallbacks=(dear,))
    bench.open().complete(asking("is it up"), within())
    plain = bench.open(specs=(dear,)).complete(asking("in time"), within())
    late = bench.open(specs=(mute,)).complete(asking("too late"), within(6.0))
    assert late.model == "dear"
    assert late.output_tokens >= plain.output_tokens + 100
    assert late.usd is not None
    assert plain.usd is not None
    assert late.usd > plain.usd + 0.1


def test_what_keeps_a_server_out_of_reach_is_told(bench: Bench) -> None:
    away = ModelSpec("away", "openai/nobody", "away", {})
    with raises(ModelFailed, "unreachable", names=["Errno 111"]) as caught:
        bench.open(specs=(away,)).complete(asking("why not"), within(2.0))
    assert caught.value.kind == "unreachable"


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_server_of_this_machine_is_asked_past_the_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # where nobody is
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", KEY)
    with ModelServer(echo) as server:
        models = GatewayModels(make_home(tmp_path / "home"), settings_for(server))
        try:
            session = models.open(Grant("run-1", Mode.RECORD, (SPEC,), Budget(), "", (), goes_on=False))
            assert said(session.complete(asking("directly"), within())).startswith("directly")
            session.close()
        finally:
            models.close()


def test_a_refused_request_does_not_wander_to_the_fallbacks(bench: Bench) -> None:
    before = len(bench.server.requests)
    bench.server.fault_next("unauthorized")
    first = ModelSpec("first", "openai/scripted", "local", {}, fallbacks=(SPEC,))
    with raises(ModelFailed, "auth"):
        bench.open(specs=(first,)).complete(asking("no key"), within())
    assert sent_since(bench, before) == 1


def test_a_call_of_an_unknown_tool_is_given_and_counted(bench: Bench) -> None:
    bench.server.add(call("no_such_tool", {"a": 1}))
    run = bench.new_run()
    reply = bench.open(run).complete(asking("call it", tools=[TOOL]), within())
    assert reply.body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "no_such_tool"
    assert [(row.state, row.fault) for row in bench.calls(run)] == [("done", "unknown_tool")]


def test_missing_usage_is_estimated_and_marked(bench: Bench) -> None:
    bench.server.fault_next("no_usage")
    reply = bench.open().complete(asking("how much was it"), within())
    assert reply.body["usage"]["estimated"] is True
    assert reply.input_tokens > 0
    assert reply.output_tokens > 0


@pytest.mark.parametrize("asked", [-1_000_000_000, 10**30, 0])
def test_a_count_that_cannot_be_neither_fills_a_budget_nor_empties_it(bench: Bench, asked: int) -> None:
    """Once a provider's 10**30 tokens were 10**23 dollars of the day, and no model was asked until midnight."""
    listed = ModelSpec("listed", "openai/gpt-4o-mini", "local", {})
    bench.server.add(replace(say("counted"), usage={"prompt_tokens": asked, "completion_tokens": 3}))
    run = bench.new_run()
    reply = bench.open(run, specs=(listed,)).complete(asking("count"), within())
    (row,) = bench.calls(run)
    assert 0 < row.input_tokens < 1_000
    assert row.estimated
    assert row.usd is not None
    assert 0 < row.usd < 0.01
    assert reply.body["usage"]["total_tokens"] == row.input_tokens + row.output_tokens


def test_a_cache_of_more_than_was_asked_makes_nothing_cheaper(bench: Bench) -> None:
    listed = ModelSpec("listed", "openai/gpt-4o-mini", "local", {})
    details = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 10**9}}
    bench.server.add(replace(say("cached"), usage=details))
    usd = bench.open(specs=(listed,)).complete(asking("cache"), within()).usd
    assert usd is not None
    assert usd > 0


def test_half_of_a_character_in_a_reply_is_replaced(bench: Bench) -> None:
    """Once it was an error of the gateway's own, so that the run was void and the call was paid again and again."""
    bench.server.add(say("one \ud800 half"))
    run = bench.new_run()
    assert said(bench.open(run).complete(asking("half"), within())) == "one ? half"
    assert [row.state for row in bench.calls(run)] == ["done"]


@pytest.mark.slow
def test_replies_of_no_known_shape_are_the_models_and_booked(bench: Bench) -> None:
    bench.server.fault_next("wrong_shape", times=5)
    with pytest.raises(ModelFailed) as caught:
        bench.open().complete(asking("what shape"), within())
    assert caught.value.kind == "malformed"
    assert "Traceback" not in str(caught.value)
    assert caught.value.used["input_tokens"] > 0


@pytest.mark.slow
def test_half_of_a_character_as_a_key_of_a_reply_is_the_models_and_booked(bench: Bench) -> None:
    """Once the request was blamed for it, and what the provider had counted was booked with nothing."""
    bench.server.add(replace(say("odd"), usage={"prompt_tokens": 9, "completion_tokens": 3, "\ud800": 1}))
    with pytest.raises(ModelFailed) as caught:
        bench.open().complete(asking("what key"), within())
    assert caught.value.kind == "malformed"
    assert caught.value.used["input_tokens"] > 0


def nested(levels: int) -> object:
    value: object = "sk-what-looks-like-a-key-0123456789"  # so that all of it is gone through
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), nested(600)], ids=["infinite", "none", "deep"])
def test_a_reply_that_nobody_could_store_or_hand_on_is_the_models(bench: Bench, odd: object) -> None:
    """Once it was an error of the gateway's own: the run was void, and asked and paid again for ever."""
    before = len(bench.server.requests)
    usage: dict[str, Any] = {"prompt_tokens": 9, "completion_tokens": 3, "more": odd}
    bench.server.add(replace(say("odd"), usage=usage))
    run = bench.new_run()
    with pytest.raises(ModelFailed) as caught:
        bench.open(run).complete(asking("odd"), within())
    assert caught.value.kind == "malformed"
    assert sent_since(bench, before) == 1
    assert [(row.state, row.fault) for row in bench.calls(run)] == [("done", "malformed")]


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [{"role": "user", "content": [{"type": "thinking"}]}]},
        {"response_format": {"type": "json_schema"}},
    ],
)
def test_a_request_that_litellm_stumbles_over_is_no_outage(bench: Bench, more: dict[str, object]) -> None:
    before = len(bench.server.requests)
    claude = ModelSpec("claude", "anthropic/claude-3-5-sonnet-20241022", "open", {})
    with pytest.raises(ModelFailed) as caught:
        bench.open(specs=(claude,)).complete({**asking("stumble"), **more}, within())
    assert caught.value.kind == "request"
    assert sent_since(bench, before) == 0


def test_a_key_that_no_header_can_hold_is_said_to_be_so(bench: Bench) -> None:
    spec = ModelSpec("spaced", "openai/scripted", "spaced", {})
    with raises(ModelFailed, "auth", names=["GATEWAY_SPACED_KEY"]) as caught:
        bench.open(specs=(spec,)).complete(asking("key"), within())
    assert caught.value.kind == "auth"


@pytest.mark.slow
def test_a_reply_of_ten_megabytes_arrives(bench: Bench) -> None:
    bench.server.fault_next("huge")
    assert len(said(bench.open().complete(asking("say much"), within(60)))) == 10 << 20


@pytest.mark.slow
@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/claude-3-5-sonnet-20241022"])
@pytest.mark.parametrize("status", ["200 OK", "500 Oh"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.filterwarnings("ignore")  # litellm's own, when it is imported
def test_a_reply_without_an_end_is_cut_off(
    model: str, status: str, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read until the deadline, and filled the gateway's memory."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # as the gateway's process has it
    from agentos.gateway.asking import AttemptTally, ModelCall, Providers, ask

    pack = zlib.compressobj(wbits=31)
    text = pack.compress(b" " * (1 << 26)) + pack.flush(zlib.Z_SYNC_FLUSH) if packed else b" " * (1 << 16)
    encoding = "Content-Encoding: gzip\r\n" if packed else ""

    def flood() -> None:
        taken, _ = listening.accept()
        with taken, contextlib.suppress(OSError):
            taken.recv(1 << 16)
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{encoding}"
            taken.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            while True:
                taken.sendall(b"%x\r\n%s\r\n" % (len(text), text))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        base = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        tally = AttemptTally()
        spec = ModelSpec("flood", model, "flood", {})
        call = ModelCall(asking("flood"), "key", within(), tally)
        asked = ask(spec, call, Providers({"flood": ProviderTarget(base, "")}, {}))
        with pytest.raises(ModelFailed) as caught:
            asyncio.run(asked)
        assert caught.value.kind == "malformed", str(caught.value)
        thread.join()
    assert (tally.tries, tally.uncertain) == (1, True), "what is paid is not asked for again"


@contextlib.contextmanager
def serving(answer: Callable[[str], tuple[str, bytes]]) -> Iterator[tuple[str, list[bytes]]]:
    """The api_base of a server that answers each path with a head and a body, and the requests that came."""
    came: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                taken, _ = listening.accept()
            except OSError:
                return
            with taken, contextlib.suppress(OSError):
                request = taken.recv(1 << 16)
                came.append(request)
                head, body = answer(request.split(b" ")[1].decode())
                taken.sendall(
                    f"HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", came
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def asked_of(base: str, model: str) -> tuple[Any, int]:
    """What came of it, an answer or ModelFailed, and how often it was tried."""
    from agentos.gateway.asking import AttemptTally, ModelCall, Providers, ask

    tally = AttemptTally()
    call = ModelCall(asking("what"), "key", within(), tally)
    providers = Providers({"here": ProviderTarget(base, "GATEWAY_HERE_KEY")}, {"GATEWAY_HERE_KEY": KEY})
    try:
        return asyncio.run(ask(ModelSpec("here", model, "here", {}), call, providers)), tally.tries
    except ModelFailed as error:
        return error, tally.tries


def many(choices: int, calls: int) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "yes", "tool_calls": [call] * calls or None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice] * choices}).encode()


@pytest.mark.slow  # litellm is imported
@pytest.mark.parametrize("model", ["openai/x", "anthropic/claude-3-5-sonnet-20241022", "ollama_chat/x"])
@pytest.mark.filterwarnings("ignore")  # litellm's own, when it is imported
def test_nobody_is_asked_where_a_provider_redirects_to(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was followed to whatever listens on this machine, by some with the key."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with serving(lambda _: ("200 OK", many(1, 0))) as (other, came):
        with serving(lambda _: (f"307 Moved\r\nLocation: {other}/models", b"")) as (base, _):
            error, tries = asked_of(base, model)
        assert (error.kind, tries, came) == ("auth", 1, [])


@pytest.mark.slow  # litellm is imported
@pytest.mark.filterwarnings("ignore")  # litellm's own, when it is imported
def test_a_server_may_redirect_to_another_of_its_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")

    def moved(path: str) -> tuple[str, bytes]:
        if path == "/new":
            return "200 OK\r\nContent-Type: application/json", many(1, 0)
        return "308 Moved\r\nLocation: /new", b""

    with serving(moved) as (base, came):
        completion, tries = asked_of(base, "openai/x")
    assert (completion.body["choices"][0]["message"]["content"], tries, len(came)) == ("yes", 1, 2)


@pytest.mark.slow  # litellm is imported
@pytest.mark.parametrize(("choices", "calls"), [(50_000, 0), (1, 50_000), (200, 200)])
@pytest.mark.filterwarnings("ignore")  # litellm's own, when it is imported
def test_a_reply_of_very_many_parts_is_not_gone_through(
    choices: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50,000 choices held up the calls of all runs for a minute."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    body = many(choices, calls)
    with serving(lambda _: ("200 OK\r\nContent-Type: application/json", body)) as (base, _):
        asked_of(base, "openai/x")  # what it imports is no matter of the reply
        began = time.thread_time()
        error, tries = asked_of(base, "openai/x")
    assert (error.kind, tries) == ("malformed", 1)
    assert time.thread_time() - began < 3.0


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.filterwarnings("ignore")  # litellm's own, when it is imported
def test_a_packed_reply_is_unpacked_little_at_a_time(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 KiB that came at once were 64 MB in gzip, and 2 GB in zstd, before the first of them was counted."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import zstandard

    from agentos.gateway.transport import ReplyTooLong

    pack = zlib.compressobj(wbits=31) if encoding == "gzip" else zstandard.ZstdCompressor().compressobj()
    came = b"".join([*(pack.compress(bytes(1 << 20)) for _ in range(24)), pack.flush()])
    assert len(came) < 1 << 16
    reply = httpx.Response(200, headers={"content-encoding": encoding}, stream=httpx.ByteStream(came))
    sizes = [len(part) for part in reply.iter_bytes()]
    assert sum(sizes) == 24 << 20
    assert max(sizes) <= 5 << 20
    twice = httpx.Response(200, headers={"content-encoding": "gzip, gzip"}, stream=httpx.ByteStream(came))
    with pytest.raises(ReplyTooLong):
        list(twice.iter_bytes())


def test_the_price_is_that_of_the_resource_and_unknown_without_one(bench: Bench) -> None:
    priced = ModelSpec("priced", "openai/scripted", "local", {}, price=Price(1.0, 2.0))
    reply = bench.open(specs=(priced,)).complete(asking("dear"), within())
    assert reply.usd == pytest.approx((reply.input_tokens + 2 * reply.output_tokens) / 1e6)
    assert bench.open().complete(asking("free?"), within()).usd is None
    listed = ModelSpec("listed", "openai/gpt-4o-mini", "local", {})
    usd = bench.open(specs=(listed,)).complete(asking("listed"), within()).usd
    assert usd is not None
    assert 0 < usd < 0.01


def test_parameters_of_the_resource_are_sent_under_those_of_the_request(bench: Bench) -> None:
    warm = ModelSpec("warm", "openai/scripted", "local", {"temperature": 0.7, "top_p": 0.5})
    bench.open(specs=(warm,)).complete(asking("how warm", temperature=0.1, max_tokens=20), within())
    body = bench.server.requests[-1].body
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.1, 0.5, 20)


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_how_long_an_answer_may_be_is_the_resources_to_say(bench: Bench, key: str) -> None:
    thinker = ModelSpec("thinker", "openai/scripted", "local", {key: 9_000})
    bench.open(specs=(thinker,)).complete(asking("think", max_tokens=20), within())
    sent = bench.server.requests[-1].body
    assert {name: sent[name] for name in ("max_tokens", "max_completion_tokens") if name in sent} == {
        key: 9_000
    }


@pytest.mark.parametrize(
    "attack",
    [
        {"api_base": "http://127.0.0.1:1/v1"},
        {"base_url": "http://127.0.0.1:1/v1"},
        {"api_key": "mine"},
        {"extra_headers": {"X-Scripted-Fault": "unauthorized"}},
        {"mock_response": "a lie"},
        {"custom_llm_provider": "ollama"},
        {"num_retries": 7},
        {"extra_body": {"model": "dearer"}},
        {"fallbacks": ["gpt-5"]},
    ],
)
def test_a_request_cannot_say_where_it_goes_or_with_which_key(
    bench: Bench, attack: dict[str, object]
) -> None:
    before = len(bench.server.requests)
    reply = bench.open().complete(asking(f"attack {next(iter(attack))}", **attack), within())
    assert said(reply).startswith("attack")
    received = bench.server.requests[before:]
    assert len(received) == 1
    assert not set(attack) & set(received[0].body)
    assert received[0].body["model"] == "scripted"


@pytest.mark.parametrize(
    ("model", "provider", "words"),
    [
        ("openai/scripted", "nowhere", "no .providers.nowhere."),
        ("openai/scripted", "keyless", "set GATEWAY_NO_SUCH_KEY"),
        ("deepinfra/anything", "openai", "begin with 'openai/'"),  # that would be sent openai's key
        ("qwen3", "local", "PROVIDER/NAME"),
        ("azure/anything", "", "Missing credentials"),
    ],
)
def test_a_provider_that_is_not_set_up_is_a_sentence(
    bench: Bench, model: str, provider: str, words: str
) -> None:
    with pytest.raises(ModelFailed, match=words) as caught:
        bench.open(specs=(ModelSpec("lost", model, provider, {}),)).complete(asking("lost"), within())
    assert caught.value.kind == "auth"


def test_without_a_key_of_its_own_a_server_is_sent_none(bench: Bench) -> None:
    spec = ModelSpec("open", "openai/scripted", "open", {})
    bench.open(specs=(spec,)).complete(asking("no key here"), within())
    assert bench.server.requests[-1].headers["authorization"] == "Bearer none"


def test_json_mode_and_several_choices_pass_through(bench: Bench) -> None:
    reply = bench.open().complete(asking("two", n=2, response_format={"type": "json_object"}), within())
    assert len(reply.body["choices"]) == 2
    assert bench.server.requests[-1].body["response_format"] == {"type": "json_object"}
    assert json.dumps(reply.body)


def test_words_that_cannot_be_stored_do_not_end_the_record(tmp_path: Path) -> None:
    """Half of a surrogate pair in a row once ended the thread that writes, and with it all calls of all runs."""

    async def write() -> None:
        record = CallRecord(tmp_path / "calls.db")
        call = ProviderCall(*("x",) * 4, 0, *("x",) * 6, 0, 0, 0, None, 0.0, 0, *("x",) * 3, 0.0)
        with raises(ModelFailed, "unreachable", names=["recorded"]):
            await asyncio.wait_for(record.put(replace(call, message="\ud800")), 5)
        await asyncio.wait_for(record.put(call), 5)
        record.close()

    asyncio.run(write())


class _FailsOnReplies(Redactor):
    """Stands for any bug of the gateway's between the answer of a provider and its record."""

    def value(self, value: Any) -> Any:
        if "choices" in value:
            raise AssertionError("a bug of ours")
        return super().value(value)


@pytest.mark.slow  # litellm is imported
@pytest.mark.filterwarnings("ignore")  # litellm's own, when it is imported
def test_a_bug_of_ours_over_a_paid_call_ends_it_and_is_not_paid_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It had no end on record, so that each attempt of the run paid for it anew."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from agentos.gateway.answering import CallEnded, CallService
    from agentos.gateway.asking import Providers

    async def ask_twice(base: str) -> list[ProviderCall]:
        record = CallRecord(tmp_path / "calls.db")
        providers = Providers({"local": ProviderTarget(base, "")}, {})
        service = CallService(record, providers, _FailsOnReplies([]), GatewayLimits(), 4)
        ended = []
        for grant in (
            Grant("run-a", Mode.RECORD, (SPEC,), Budget()),
            Grant("run-b", Mode.REPLAY_THEN_LIVE, (SPEC,), Budget(), "", ("run-a",), goes_on=True),
        ):
            session, _ = service.open(grant, {})
            with pytest.raises(CallEnded) as caught:
                await service.complete(session, asking("what"), 60.0)
            ended.append(caught.value.call)
        record.close()
        return ended

    with serving(lambda _: ("200 OK\r\nContent-Type: application/json", many(1, 0))) as (base, came):
        first, second = asyncio.run(ask_twice(base))
    assert (first.fault, second.fault, len(came)) == ("internal", "internal", 1)
    assert first.input_tokens > 0, "it stays booked"
    assert "a bug of ours" in caplog.text


def test_an_address_in_a_models_name_gets_no_key(bench: Bench) -> None:
    for provider in ("", "huggingface"):
        spec = ModelSpec("far", f"huggingface/{bench.server.base_url}", provider, {})
        before = len(bench.server.requests)
        with raises(ModelFailed, "auth", names=["huggingface/"]):
            bench.open(specs=(spec,)).complete(asking("where to?"), within())
        assert sent_since(bench, before) == 0
