"""The job ``mcp``: what odd and hostile servers say on their standard streams, and over HTTP."""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentos.messages import Answer, Ask, FaultFrame, McpCall, McpJob, McpResult, McpServed

SERVER = """
import json, sys, time
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def answer(asked):
    id = asked["id"]
    if asked["method"] == "initialize":
        begin(id)
    elif asked["method"] == "tools/list":
        send(id=id, result={"tools": [{"name": "t", "inputSchema": {}}]})
    else:
        call(id)
def begin(id):
    send(id=id, result={"capabilities": {"tools": {}}, "serverInfo": {"name": "odd"}})
def call(id):
    send(id=id, result={"content": []})
def note(asked):
    pass
%s
for line in sys.stdin:
    asked = json.loads(line)
    answer(asked) if "id" in asked and "method" in asked else note(asked)
"""


def begun(worker: Any, code: str, **more: Any) -> McpServed:
    """A server with these functions in place of its own."""
    told: dict[str, Any] = {
        "root": "skill/odd", "files": [], "inputs": [], "brings": False, "environment": {}, "wall_s": 30.0,
        "output_bytes": 1 << 20, "command": [sys.executable, "-c", SERVER % code],
    }  # fmt: skip
    worker.send(McpJob(**told | more))
    head = worker.receive().head
    assert head["type"] == "served", head
    return McpServed.model_validate(head)


def called(worker: Any, wall_s: float = 30.0) -> McpResult:
    worker.send(McpCall(tool="t", args={}, wall_s=wall_s))
    return worker.done(McpResult)


def test_half_a_character_is_replaced(worker: Any) -> None:
    """Servers of JavaScript write it that cut a text: the model's next request would be refused for it."""
    code = 'def call(id): send(id=id, result={"content": [{"type": "text", "text": "cut \\ud83d"}]})'
    assert begun(worker, code).name == "odd"
    assert called(worker).result == {"content": [{"type": "text", "text": "cut ?"}]}


def test_half_a_character_in_what_it_says_of_itself_is_replaced(worker: Any) -> None:
    code = (
        'def begin(id): send(id=id, result={"serverInfo": {"name": "\\ud83d"}, "instructions": "\\udc00!"})'
    )
    served = begun(worker, code)
    assert (served.name, served.instructions) == ("?", "?!")


@pytest.mark.parametrize("id", ["id", "str(id)", "float(id)"])
def test_an_answer_is_known_by_its_id_however_it_is_spelt(worker: Any, id: str) -> None:
    begun(worker, f'def call(id): send(id={id}, result={{"content": [1]}})')
    assert called(worker).result == {"content": [1]}


@pytest.mark.parametrize("code", [-32700, -32600])
def test_a_server_that_could_not_read_a_request_says_so_without_an_id(worker: Any, code: int) -> None:
    begun(worker, f'def call(id): send(id=None, error={{"code": {code}, "message": "what?"}})')
    fault = called(worker).fault
    assert fault is not None
    assert (fault.type, fault.message) == ("refused", "what?")


def test_an_error_about_a_notification_answers_nothing(worker: Any) -> None:
    begun(worker, 'def note(asked): send(id=None, error={"code": -32601, "message": "no such method"})')
    assert called(worker).result == {"content": []}


def test_what_a_server_writes_on_standard_error_fills_no_disk(worker: Any, tmp_path: Path) -> None:
    """All of it was kept in a file, so that a server that only logs came to the end of its box."""
    told = tmp_path / "told"
    code = (
        f"told = {str(told)!r}\n"
        "def call(id):\n"
        "    sys.stderr.write(('x' * 99 + '\\n') * 200_000)\n"
        "    open(told, 'w').write(str(os.fstat(2).st_size))\n"
        "    sys.exit('error: out of ink')"
    )
    begun(worker, f"import os\n{code}")
    fault = called(worker).fault
    assert fault is not None
    assert told.read_text() == "0", "20 MB lie in a file"
    assert (fault.type, fault.message) == ("exit", "it ended with status 1: error: out of ink")


@pytest.mark.parametrize(
    "odd",
    [
        "'error': {'code': 1, 'data': DEEP}, 'id': id",
        "'error': {'code': 1, 'message': DEEP}, 'id': id",
        "'method': 'roots/list', 'id': DEEP",
        "'method': DEEP, 'id': 7",
    ],
)
def test_what_is_nested_deeply_ends_no_job(worker: Any, odd: str) -> None:
    """An error of ours it was, by which the whole run ended."""
    code = (
        "def call(id):\n"
        "    text = json.dumps({'jsonrpc': '2.0', ODD})\n"
        "    for depth in range(300, 1_100, 20):\n"
        "        print(text.replace('\"DEEP\"', '[' * depth + ']' * depth), flush=True)\n"
        "    send(id=id, result={'content': []})"
    ).replace("ODD", odd.replace("DEEP", "'DEEP'"))
    begun(worker, code)
    answer = called(worker)
    assert answer.fault is None or answer.fault.type == "refused"


def test_what_a_server_says_of_itself_may_be_too_large_to_be_sent(worker: Any) -> None:
    code = 'def begin(id): send(id=id, result={"capabilities": {"tools": {}}})\n'
    code += "def answer(asked):\n    if asked['method'] == 'initialize': begin(asked['id'])\n"
    code += "    else: sys.stdout.reconfigure(encoding='utf-8'); print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], "
    code += "'result': {'tools': [{'name': 'é' * (2 << 20)}]}}, ensure_ascii=False), flush=True)"
    told = {
        "root": "skill/odd",
        "files": [],
        "inputs": [],
        "brings": False,
        "environment": {},
        "wall_s": 30.0,
    }
    worker.send(McpJob(**told, output_bytes=8 << 20, command=[sys.executable, "-c", SERVER % code]))
    assert worker.done(FaultFrame).fault.type == "limit"


# --- over HTTP -----------------------------------------------------------------------------------

EVENTS = "text/event-stream"


def served_by(worker: Any, *bodies: tuple[int, str, str]) -> list[dict[str, Any]]:
    """Begin, and answer so many requests."""
    told = {"root": "skill/odd", "files": [], "inputs": [], "brings": False, "environment": {}, "command": []}
    worker.send(McpJob(**told, url="https://example.org/mcp", wall_s=30.0, output_bytes=1 << 20))
    return answered(worker, *bodies)


def answered(worker: Any, *bodies: tuple[int, str, str], **headers: str) -> list[dict[str, Any]]:
    """Answer so many requests of a server by URL with status, type and body, in which $ID is the id; what was sent."""
    sent = []
    for status, kind, body in bodies:
        ask = Ask.model_validate(worker.receive().head)
        sent.append(json.loads(base64.b64decode(ask.body["body"])))
        sent[-1]["session"] = ask.body["headers"].get("Mcp-Session-Id")
        content = body.replace("$ID", json.dumps(sent[-1].get("id"))).encode()
        said = {
            "status": status,
            "headers": {"content-type": kind, **headers},
            "body": base64.b64encode(content).decode(),
        }
        worker.send(Answer(id=ask.id, body=said))
    return sent


def reply(result: str) -> str:
    return '{"jsonrpc": "2.0", "id": $ID, "result": ' + result + "}"


NOTHING = reply('{"capabilities": {}}')
BEGUN = (200, "application/json", NOTHING)


@pytest.mark.parametrize("said", ["", "Accepted", "null", "<html>"])
def test_what_stands_in_the_answer_to_a_notification_is_none(worker: Any, said: str) -> None:
    served_by(worker, BEGUN, (202, "text/plain", said))
    assert worker.done(McpServed).tools == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_stream_may_hold_other_words(worker: Any, end: str) -> None:
    lines = [
        ": hello",
        "event: ping",
        "data: 12:00",
        "",
        "id: 4",
        f"data: {NOTHING}",
        "",
        "",
    ]
    served_by(worker, (200, f"{EVENTS.title()}; charset=utf-8", end.join(lines)), (202, "", ""))
    assert worker.done(McpServed).tools == []


def test_a_server_that_only_asks_is_not_answered_for_ever(worker: Any) -> None:
    served_by(worker, BEGUN, (202, "", ""))
    worker.done(McpServed)
    worker.send(McpCall(tool="t", args={}, wall_s=0.3))
    asks = "\n".join('data: {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}\n' for _ in range(1_000))
    began, count = time.monotonic(), 0
    while (head := worker.receive().head)["type"] == "ask":
        count += 1
        said = {
            "status": 200,
            "headers": {"content-type": EVENTS},
            "body": base64.b64encode(asks.encode()).decode(),
        }
        time.sleep(0.01)  # a site's way is no shorter
        worker.send(Answer(id=head["id"], body=said))
    fault = McpResult.model_validate(head).fault
    assert fault is not None
    assert fault.type == "timeout"
    assert count < 1_000
    assert time.monotonic() - began < 60.0


TAKEN, PLAIN = (202, "", ""), "text/plain"
DONE = (200, "application/json", reply('{"content": []}'))


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_busy_is_asked_again(worker: Any, status: int) -> None:
    served_by(worker, (status, PLAIN, "not now"), BEGUN, (status, PLAIN, ""), TAKEN)
    worker.done(McpServed)
    worker.send(McpCall(tool="t", args={}, wall_s=30.0))
    first, second = answered(worker, (status, PLAIN, ""), DONE)
    assert first == second
    assert worker.done(McpResult).result == {"content": []}


def test_a_call_that_may_have_been_made_is_not_made_again(worker: Any) -> None:
    served_by(worker, (502, PLAIN, "oh"), BEGUN, TAKEN)
    worker.done(McpServed)
    worker.send(McpCall(tool="t", args={}, wall_s=30.0))
    answered(worker, (502, PLAIN, "oh"))
    fault = worker.done(McpResult).fault
    assert fault is not None
    assert fault.type == "exit"


@pytest.mark.parametrize("said", ["600", "9" * 400, "soon", "-1", "nan", "²"])
def test_nobody_waits_as_long_as_a_server_likes(worker: Any, said: str) -> None:
    served_by(worker, BEGUN, TAKEN)
    worker.done(McpServed)
    worker.send(McpCall(tool="t", args={}, wall_s=0.1))
    answered(worker, (429, PLAIN, "not now"), **{"retry-after": said})
    fault = worker.done(McpResult).fault
    assert fault is not None
    assert fault.type == "exit"


@pytest.mark.parametrize("lost", [(404, PLAIN, ""), (400, PLAIN, "Bad Request: no valid session ID")])
def test_a_session_that_the_server_forgot_is_begun_anew(worker: Any, lost: tuple[int, str, str]) -> None:
    told = {"root": "skill/odd", "files": [], "inputs": [], "brings": False, "environment": {}, "command": []}
    worker.send(McpJob(**told, url="https://example.org/mcp", wall_s=30.0, output_bytes=1 << 20))
    answered(worker, BEGUN, TAKEN, **{"mcp-session-id": "one"})
    worker.done(McpServed)
    worker.send(McpCall(tool="t", args={}, wall_s=30.0))
    asked = answered(worker, lost)
    asked += answered(worker, BEGUN, **{"mcp-session-id": "two"})
    asked += answered(worker, TAKEN, DONE)
    assert worker.done(McpResult).result == {"content": []}
    assert [(one["method"], one["session"]) for one in asked] == [
        ("tools/call", "one"),
        ("initialize", None),
        ("notifications/initialized", "two"),
        ("tools/call", "two"),
    ]


def test_a_server_that_forgets_each_session_is_no_endless_round(worker: Any) -> None:
    told = {"root": "skill/odd", "files": [], "inputs": [], "brings": False, "environment": {}, "command": []}
    worker.send(McpJob(**told, url="https://example.org/mcp", wall_s=30.0, output_bytes=1 << 20))
    answered(worker, BEGUN, TAKEN, **{"mcp-session-id": "one"})
    worker.done(McpServed)
    worker.send(McpCall(tool="t", args={}, wall_s=30.0))
    lost = (404, PLAIN, "")
    answered(worker, lost)
    answered(worker, BEGUN, TAKEN, lost, **{"mcp-session-id": "two"})
    fault = worker.done(McpResult).fault
    assert fault is not None
    assert fault.type == "exit"
