"""Runs as other programs write them down: SWE-agent, mini-swe-agent, inspect_ai, spans, sessions, converters."""

from __future__ import annotations

import json
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Json, Result, Step
from agentos.errors import Invalid, UserError
from agentos.evolver.find.signals import fault_in
from agentos.ledger.store import Ledger
from agentos.trajectories.chat import FinishedRun, chat_record
from agentos.trajectories.conversations import ChatConversation, MessageLog, checked_messages
from agentos.trajectories.past import ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import READERS, converted, converter, detect, read
from agentos.trajectories.readers.records import RECORD_MAX, read_records
from agentos.trajectories.spans import otlp
from tests.refusals import raises

USER = {"role": "user", "content": "mend it"}


def read_file(path: Path, format: str) -> list[ChatConversation]:
    found = []
    for record in read_records(path):
        assert not record.fault
        assert detect(record.value) == format
        found += read(record.value)
    return found


def lines(path: Path, *values: Any) -> Path:
    path.write_text("\n".join(json.dumps(value) for value in values))
    return path


def document(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1))
    return path


def shape(conversation: ChatConversation) -> list[Any]:
    """Roles; of an assistant also the tools it called."""
    return [
        (message["role"], *(call["function"]["name"] for call in message["tool_calls"]))
        if "tool_calls" in message
        else message["role"]
        for message in conversation.messages
    ]


def faults(conversation: ChatConversation, into: ImportTarget) -> list[str]:
    steps = past_of(conversation, Source("x", "x", 1), into).steps
    return [fault.type for step in steps if (fault := fault_in(step))]


# --- SWE-agent -----------------------------------------------------------------------------------


def traj(**info: Any) -> dict[str, Any]:
    turns = [
        {"response": "look", "thought": "look", "action": "ls -F\n", "observation": "a.py", "state": {}},
        {
            "response": "fix",
            "action": "str_replace_editor str_replace /repo/a.py --old_str x",
            "observation": "ok",
        },
        {"response": "done", "action": "submit", "observation": "diff"},
    ]
    history = [
        {"role": "system", "content": "You are", "agent": "main"},
        {"role": "user", "content": "a demonstration", "is_demo": True},
        {"role": "user", "content": [{"type": "text", "text": "mend it"}], "agent": "main"},
        {"role": "assistant", "content": "look"},
    ]
    return {"trajectory": turns, "history": history, "info": info, "environment": "swe"}


def test_a_trajectory_of_swe_agent(tmp_path: Path) -> None:
    path = document(tmp_path / "django__1.traj", traj(exit_status="submitted", submission="diff"))
    (found,) = read_file(path, "swe-agent")
    assert (found.goal, found.ended.result) == ("mend it", Result.UNKNOWN)
    assert shape(found)[:5] == [
        "system",
        "user",
        ("assistant", "bash"),
        "tool",
        ("assistant", "str_replace_editor"),
    ]
    call = found.messages[4]["tool_calls"][0]["function"]
    assert call["arguments"]["path"] == "/repo/a.py"


@pytest.mark.parametrize(
    ("info", "result"),
    [
        ({"exit_status": "exit_context"}, Result.BUDGET),
        ({"exit_status": "exit_format"}, Result.FAILED),
        ({"exit_status": "submitted (exit_cost)", "submission": "d"}, Result.UNKNOWN),
        ({"exit_status": "submitted", "resolved": True}, Result.PASSED),
        ({}, Result.UNKNOWN),
    ],
)
def test_what_the_exit_status_says(info: dict[str, Any], result: Result) -> None:
    assert read(traj(**info))[0].ended.result is result


def test_both_forms_of_mini_swe_agent(tmp_path: Path, into: ImportTarget) -> None:
    system = {"role": "system", "content": "You are"}
    told = "<returncode>127</returncode>\n<output>\nsh: foo: not found\n</output>"
    text = [
        system,
        USER,
        {"role": "assistant", "content": "so\n```bash\nfoo\n```"},
        {"role": "user", "content": told},
    ]
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "foo"}'}}
    tools = [
        system,
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call], "extra": {"cost": 1}},
        {"role": "tool", "tool_call_id": "c", "content": told, "extra": {"returncode": 127}},
        {"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded"}},
    ]
    for version, messages in (("1", text), ("1.1", tools)):
        record = {
            "info": {"exit_status": "LimitsExceeded", "submission": ""},
            "messages": messages,
            "trajectory_format": f"mini-swe-agent-{version}",
        }
        (found,) = read_file(document(tmp_path / "x.traj.json", record), "mini-swe-agent")
        assert shape(found) == ["system", "user", ("assistant", "bash"), "tool"]
        assert found.ended.result is Result.BUDGET
        assert len(faults(found, into)) == 1


def mini(*messages: Json) -> dict[str, Any]:
    return {"info": {"exit_status": "Submitted", "submission": "diff"}, "messages": list(messages)}


@pytest.mark.parametrize(
    "record",
    [traj(exit_status="submitted", submission="diff"), mini(USER, {"role": "assistant", "content": "done"})],
)
def test_what_was_exported_is_the_same_run_when_it_is_read_again(record: Json, into: ImportTarget) -> None:
    made = past_of(read(record)[0], Source("x", "x", 1), into)
    exported = chat_record(FinishedRun(made.task, made.run, made.steps))
    assert detect(exported) == "openai-chat"
    assert past_of(read(exported)[0], Source("y", "y", 1), into).run.id == made.run.id


def test_spaces_without_an_end_are_read_at_once() -> None:
    gap = " " * 300
    messages = [
        {"role": "user", "content": f"<task>{gap}x\n<issue>the fault</issue>"},
        {"role": "assistant", "content": "```bash" + "\n" * 2_000},
        {"role": "assistant", "content": "so\n```bash\nls\n```"},
        {"role": "user", "content": f"<returncode>1</returncode><output>{gap * 4}"},
        {"role": "assistant", "content": "done"},
    ]
    began = time.process_time()
    (found,) = read({"info": {"exit_status": "", "submission": "d"}, "messages": messages}, "mini-swe-agent")
    assert time.process_time() - began < 1.0
    assert found.goal == "the fault"


# --- inspect -------------------------------------------------------------------------------------


def sample(number: int, value: Any) -> dict[str, Any]:
    call = {"id": "c", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}
    return {
        "id": number,
        "epoch": 1,
        "input": "how many files?",
        "target": "3",
        "messages": [
            {"id": "m1", "role": "user", "content": "how many files?", "source": "input"},
            {
                "id": "m2",
                "role": "assistant",
                "content": [{"type": "text", "text": "so"}],
                "tool_calls": [call],
            },
            {
                "role": "tool",
                "content": "",
                "tool_call_id": "c",
                "function": "bash",
                "error": {"type": "timeout", "message": "Command timed out"},
            },
            {"role": "assistant", "content": "4"},
        ],
        "scores": {"match": {"value": value, "explanation": "4 is not 3"}},
    }


def test_an_eval_log_is_a_zip_of_samples(tmp_path: Path, into: ImportTarget) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "eval": {"task": "count", "model": "m"}}))
        for number, value in enumerate(["C", "I", 0.5, {"a": 1}], start=1):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample(number, value)))
        archive.writestr("samples/9_epoch_1.json", "{broken")
    records = list(read_records(path))
    assert [bool(record.fault) for record in records] == [False] * 4 + [True]
    found = [read(record.value)[0] for record in records[:4]]
    assert [item.ended.result.value for item in found] == ["passed", "failed", "failed", "unknown"]
    assert shape(found[0]) == ["user", ("assistant", "bash"), "tool", "assistant"]
    assert found[0].rest["inspect"] == {"task": "count", "model": "m"}
    assert faults(found[0], into) == ["timeout"]


def test_a_log_in_json_holds_all_its_samples(tmp_path: Path) -> None:
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t"},
        "samples": [sample(1, "C"), sample(2, 1.0)],
    }
    assert len(read_file(document(tmp_path / "x.json", log), "inspect")) == 2


@pytest.mark.parametrize("damage", ["no zip", "cut", "other compression"])
def test_a_broken_zip_file_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1, "C")))
    data = path.read_bytes()
    if damage == "other compression":  # as newer versions of inspect_ai write it
        data = data.replace(b"PK\x03\x04\x14\x00\x00\x00\x00\x00", b"PK\x03\x04\x14\x00\x00\x00\x5d\x00")
        at = data.index(b"PK\x01\x02") + 10
        data = data[:at] + b"\x5d\x00" + data[at + 2 :]
    path.write_bytes({"no zip": b"hello", "cut": data[:200]}.get(damage, data))
    (record,) = read_records(path)
    assert record.fault


@pytest.mark.parametrize("damage", ["a version to come", "broken xz"])
def test_a_zip_file_that_python_cannot_read_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1, "C")))
    data = bytearray(path.read_bytes())
    if damage == "a version to come":
        data[data.index(b"PK\x01\x02") + 6] = 255
    else:
        at = 30 + len("samples/1_epoch_1.json") + 9  # behind the properties of the stream
        data[at : at + 40] = b"\xff" * 40
    path.write_bytes(data)
    (record,) = read_records(path)
    assert record.fault


@pytest.mark.parametrize("kind", ["attachments", "completions"])
def test_a_small_record_does_not_become_a_huge_one(kind: str) -> None:
    text, times = "x" * (1 << 16), RECORD_MAX >> 15
    parts = [{"type": "text", "text": "attachment://a"}] * times
    said = [{"role": "user", "content": parts}, {"role": "assistant", "content": "y"}]
    broken = {**sample(1, "C"), "attachments": {"a": text}, "messages": said}
    group = {
        "prompt": [{"role": "user", "content": text}],
        "completions": [[{"role": "assistant", "content": "y"}]] * times,
        "rewards": [0] * times,
    }
    with pytest.raises(Invalid):
        read({"eval": {}, "samples": [broken]} if kind == "attachments" else group)


# --- spans ---------------------------------------------------------------------------------------


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(number: int, operation: str, parent: str = "s0", **values: Any) -> dict[str, Any]:
    named = {f"gen_ai.{key.replace('__', '.')}": value for key, value in values.items()}
    return {
        "traceId": "t1",
        "spanId": f"s{number}",
        **({"parentSpanId": parent} if parent else {}),
        "name": operation,
        "startTimeUnixNano": str(number),
        "attributes": [
            attribute("gen_ai.operation.name", operation),
            *(attribute(key, value) for key, value in named.items()),
        ],
    }


def request(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_spans_of_one_trace_are_one_run_wherever_they_lie(tmp_path: Path) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "weather?"}]}]
    call = {"type": "tool_call", "id": "c", "name": "weather", "arguments": {"in": "Rome"}}
    called = [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]
    gave = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "rain"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "rain"}], "finish_reason": "stop"}]
    root = span(0, "invoke_agent", parent="") | {"status": {"code": 2, "message": "bad"}}
    path = lines(
        tmp_path / "spans.jsonl",
        request(span(3, "chat", input__messages=asked + called + gave, output__messages=said), root),
        request(
            span(1, "chat", input__messages=asked, output__messages=called),
            span(2, "execute_tool", tool__name="weather", tool__call__id="c", tool__call__result="rain"),
        ),
    )
    (found,) = read_file(path, "otel")
    assert shape(found) == ["user", ("assistant", "weather"), "tool", "assistant"]
    assert (found.goal, found.ended.result) == ("weather?", Result.FAILED)


def test_spans_without_messages_are_refused_and_say_why() -> None:
    with raises(Invalid, message="spans.no_messages"):
        read(request(span(1, "chat")))


def test_own_spans_with_their_content_come_back(happened: Callable[..., FinishedRun]) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    ran = happened(
        ("model", {"model": "m"}, {"message": {"content": None, "tool_calls": [call]}}),
        ("act", {"tool": "add", "args": {}}, {"output": "3"}),
        ("model", {"model": "m"}, {"message": {"content": "3"}}),
        result=Result.FAILED,
    )
    (found,) = read(otlp([ran], content=True))
    assert shape(found) == ["user", ("assistant", "add"), "tool", "assistant"]
    assert found.ended.result is Result.FAILED


# --- sessions ------------------------------------------------------------------------------------


def line(type: str, content: Any, id: str = "", **more: Any) -> dict[str, Any]:
    message = {"role": type, "content": content, **({"id": id, "model": "m"} if id else {})}
    return {"type": type, "message": message, "sessionId": "s", "uuid": f"{type}{content}", **more}


def test_a_session_of_claude_code(tmp_path: Path, into: ImportTarget) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        {"type": "summary", "summary": "Mend", "leafUuid": "x"},
        line("user", "<command-name>/clear</command-name>"),
        line("user", "mend it", cwd="/repo", version="2.0"),
        line("assistant", [{"type": "thinking", "thinking": "hm"}], "m1"),
        line("assistant", [{"type": "text", "text": "I look"}], "m1"),
        line(
            "assistant", [{"type": "tool_use", "id": "a", "name": "Read", "input": {"file_path": "/x"}}], "m1"
        ),
        line("user", [{"type": "tool_result", "tool_use_id": "a", "content": "text"}]),
        line(
            "assistant", [{"type": "tool_use", "id": "b", "name": "Edit", "input": {"file_path": "/x"}}], "m1"
        ),
        line("assistant", [{"type": "text", "text": "a helper"}], "m9", isSidechain=True),
        line(
            "user",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "is_error": True,
                    "content": "<tool_use_error>String to replace not found in file.</tool_use_error>",
                }
            ],
        ),
        line("assistant", [{"type": "text", "text": "it cannot be done"}], "m2"),
    )
    with path.open("a") as file:
        file.write('\n{"type": "assist')  # a session that is under way
    *broken, record = read_records(path)
    assert len(broken) == 1
    (found,) = read(record.value)
    assert shape(found) == ["user", "user", ("assistant", "Read", "Edit"), "tool", "tool", "assistant"]
    assert (found.goal, found.ended.result) == ("mend it", Result.UNKNOWN)
    assert found.rest == {"sessionId": "s", "cwd": "/repo", "version": "2.0"} or "sessionId" in found.rest
    assert faults(found, into) == ["not_found"]


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}


def test_a_session_of_codex(tmp_path: Path) -> None:
    def said(role: str, text: str) -> dict[str, Any]:
        return item(type="message", role=role, content=[{"type": "input_text", "text": text}])

    items = [
        said("user", "<environment_context>…</environment_context>"),
        said("user", "mend it"),
        {"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": "mend it"}},
        item(type="reasoning", summary=[], encrypted_content="x"),
        item(type="function_call", name="shell", arguments='{"command": ["ls"]}', call_id="a"),
        item(type="function_call", name="shell", arguments='{"command": ["pwd"]}', call_id="b"),
        item(
            type="function_call_output", call_id="a", output='{"output": "x", "metadata": {"exit_code": 0}}'
        ),
        item(type="function_call_output", call_id="b", output={"content": "/", "success": True}),
        item(type="custom_tool_call", name="apply_patch", input="*** Update File: a.py", call_id="c"),
        item(type="custom_tool_call_output", call_id="c", output="Success"),
        said("assistant", "done"),
    ]
    meta = {
        "timestamp": "t",
        "type": "session_meta",
        "payload": {"id": "s1", "cwd": "/repo", "cli_version": "1"},
    }
    (found,) = read_file(lines(tmp_path / "rollout-1.jsonl", meta, *items), "codex")
    calls = [
        "user",
        "user",
        ("assistant", "shell", "shell"),
        "tool",
        "tool",
        ("assistant", "apply_patch"),
        "tool",
    ]
    assert shape(found) == [*calls, "assistant"]
    assert (found.goal, found.rest["cwd"]) == ("mend it", "/repo")
    old = {"id": "s0", "timestamp": "t", "instructions": None}
    (older,) = read_file(lines(tmp_path / "old.jsonl", old, *(one["payload"] for one in items)), "codex")
    assert shape(older) == shape(found)


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_a_plain_list_of_messages_is_one_run(tmp_path: Path, name: str) -> None:
    given = [USER, {"role": "assistant", "content": "done"}]
    path = lines(tmp_path / name, *given) if name == "x.jsonl" else document(tmp_path / name, given)
    (found,) = read_file(path, "messages")
    assert (shape(found), found.ended.result) == (["user", "assistant"], Result.UNKNOWN)


def test_a_list_in_anthropics_form_and_lists_as_lines(tmp_path: Path) -> None:
    blocks = [
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
    ]
    found = read_file(lines(tmp_path / "x.jsonl", blocks, blocks), "messages")
    assert [shape(one) for one in found] == [["user", ("assistant", "ls"), "tool"]] * 2


# --- all of them ---------------------------------------------------------------------------------


def test_an_unknown_outcome_goes_in_and_out_as_unknown(into: ImportTarget, ledger: Ledger) -> None:
    (found,) = read({"messages": [USER, {"role": "assistant", "content": "done"}]})
    past = past_of(found, Source("openai-chat", "x", 1), into)
    assert past.run.outcome
    assert (past.run.outcome.result, past.run.outcome.fault) == (Result.UNKNOWN, None)
    assert ledger.add_past(past.task, past.run, past.steps)
    out = chat_record(
        FinishedRun(past.task, ledger.run(past.run.id), tuple[Step, ...](ledger.steps(past.run.id)))
    )
    assert read(out)[0].ended.result is Result.UNKNOWN


@pytest.mark.parametrize("format", sorted(READERS))
@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [1], [None], {"a": 1}, [[]], [{"role": 1}]])
def test_no_odd_value_is_more_than_a_refusal(format: str, value: Any) -> None:
    keys = ("messages", "traj", "history", "trajectory", "info", "eval", "samples", "lines", "resourceSpans")
    record = dict.fromkeys(
        (*keys, "question", "reward", "prompt", "completions", "rewards", "outcome"), value
    )
    for odd in (record, {**record, "messages": [USER, value]}, {**record, "samples": [{"messages": value}]}):
        with suppress(Invalid):
            assert isinstance(read(odd, format), list)


CONVERTER = """
def convert(record):
    if "boom" in record:
        raise RuntimeError("boom")
    if "log" not in record:
        return None
    return [{"goal": "g", "messages": [{"role": "user", "content": "g"},
            {"role": "assistant", "content": text}], "outcome": "failed"} for text in record["log"]]
"""


def test_a_converter_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_format.py").write_text(CONVERTER)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    convert = converter("my_own_format:convert")
    assert sys.path == before
    assert [one.ended.result for one in converted({"log": ["a", "b"]}, convert)] == [Result.FAILED] * 2
    for bad, why in (({"boom": 1}, "boom"), ({}, "does not know"), ({"log": [1]}, "content")):
        with pytest.raises(Invalid, match=why):
            converted(bad, convert)
    for place in ("my_own_format", "my_own_format:other", "no_such_module:f", ":", "json:__name__"):
        with pytest.raises(UserError, match="module:function"):
            converter(place)


@pytest.mark.parametrize("number", ["²", "9" * 5_000, "--3", ""])
def test_a_span_whose_numbers_are_none_is_read(number: str) -> None:
    said = {
        "gen_ai.operation.name": {"stringValue": "chat"},
        "gen_ai.usage.input_tokens": {"intValue": number},
        "gen_ai.input.messages": {"stringValue": json.dumps([USER])},
        "gen_ai.output.messages": {"stringValue": json.dumps([{"role": "assistant", "content": "done"}])},
    }
    attributes = [{"key": key, "value": value} for key, value in said.items()]
    span = {"traceId": "a", "spanId": "b", "startTimeUnixNano": number, "attributes": attributes}
    (found,) = read({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert shape(found) == ["user", "assistant"]


@pytest.mark.parametrize(
    ("score", "kept"), [(10**400, 1.0), (-(10**400), 0.0), (7.5, 1.0), (0.5, 0.5), ("x", 0.0)]
)
def test_a_score_of_a_span_is_a_share(score: Json, kept: float) -> None:
    said = {
        "gen_ai.operation.name": {"stringValue": "chat"},
        "agentos.run.result": {"stringValue": "failed"},
        "agentos.run.score": {"doubleValue": score},
        "gen_ai.output.messages": {"stringValue": json.dumps([{"role": "assistant", "content": "done"}])},
    }
    span = {
        "traceId": "a",
        "name": "n",
        "attributes": [{"key": key, "value": it} for key, it in said.items()],
    }
    (found,) = read({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert (found.ended.result, found.ended.score) == (Result.FAILED, kept)


@pytest.mark.parametrize(
    "many",
    [
        lambda count: [("user", f"<{'a' * count}>{'x' * count}"), ("assistant", "well")],
        lambda count: [("user", "go on")] + [("assistant", "word")] * count,
    ],
)
def test_a_hostile_session_is_read_in_linear_time(many: Any) -> None:
    """A tag was compared with each beginning of its name, and a text copied for each of its pieces."""
    lines = [
        {
            "type": role,
            "sessionId": "s",
            "uuid": str(number),
            "message": {"id": "m", "role": role, "content": text},
        }
        for number, (role, text) in enumerate(many(100_000))
    ]
    (found,) = read({"log": "claude-code", "lines": lines})
    assert found.messages[-1]["role"] == "assistant"


def test_calls_and_answers_of_a_hostile_log_are_matched_in_linear_time() -> None:
    log = MessageLog()
    for number in range(100_000):
        log.call(str(number), "shell", {})
    for number in reversed(range(100_000)):
        log.answer(str(number), "done")
    assert len(checked_messages([*log.messages()])) == 100_001
    assert log.stray == 0


@pytest.mark.parametrize("text", ["\\ud800", '"}, {"text": ' + "[" * 900 + "]" * 900 + ', "more": "', "NaN"])
def test_messages_within_spans_are_held_to_what_others_are(text: str) -> None:
    """They stand in a text of JSON, which was read without looking: the import ended with an error of ours."""
    said = [
        {"key": f"gen_ai.{place}.messages", "value": {"stringValue": content}}
        for place, content in (
            ("input", f'[{{"role": "user", "content": "{text}"}}]'.replace('"NaN"', "NaN")),
            ("output", '[{"role": "assistant", "content": "done"}]'),
        )
    ]
    span = {"traceId": "t", "name": "chat", "attributes": said}
    (found,) = read({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert found.goal == "chat"
    json.dumps(found.messages, allow_nan=False, ensure_ascii=False).encode()
