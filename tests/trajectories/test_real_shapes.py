"""What files of other programs turned out to look like, in small: shapes that the published descriptions do not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentos.errors import Invalid
from agentos.evolver.find.signals import fault_in
from agentos.trajectories.conversations import ChatConversation, text_of
from agentos.trajectories.past import ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import detect, read
from agentos.trajectories.readers.records import read_records


def conversations(path: Path, format: str) -> list[ChatConversation]:
    found: list[ChatConversation] = []
    for record in read_records(path):
        assert not record.fault
        assert detect(record.value) == format
        found += read(record.value)
    return found


def lines(path: Path, *values: Any) -> Path:
    path.write_text("\n".join(json.dumps(value) for value in values))
    return path


def said(conversation: ChatConversation) -> list[str]:
    return [text_of(message["content"]) for message in conversation.messages]


# --- Claude Code ------------------------------------------------------------------------------------


def claude(kind: str, uuid: str, parent: str | None, *blocks: Any, **rest: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": [*blocks]}
    if kind == "assistant":
        message["id"] = f"msg-{rest.pop('turn', uuid)}"
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **rest}


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def call(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}


def result(id: str, content: str = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def test_what_a_person_took_back_is_left_out_but_not_answers_that_came_together(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        claude("user", "u1", None, text("start")),
        claude("assistant", "a1", "u1", text("ready")),
        claude("user", "b1", "a1", text("first try")),
        claude("assistant", "b2", "b1", text("first answer")),
        claude("user", "c1", "a1", text("second try")),
        claude("assistant", "c2", "c1", call("t1"), turn="c"),
        claude("assistant", "c3", "c2", call("t2"), turn="c"),
        claude("user", "r1", "c2", result("t1", "one")),
        claude("user", "r2", "c3", result("t2", "two")),
        claude("assistant", "c4", "r2", text("done")),
    )
    (found,) = conversations(path, "claude-code")
    assert said(found) == ["start", "ready", "second try", "", "one", "two", "done"]


def test_a_line_that_stands_twice_costs_no_session(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        {"type": "permission-mode", "permissionMode": "default", "sessionId": "s"},
        claude(
            "user", "u0", None, text("This session is being continued from a previous conversation. Summary.")
        ),
        claude("user", "u1", "u0", text("go on")),
        claude("assistant", "a1", "u1", call("t1"), turn="a"),
        claude("assistant", "a2", "a1", call("t1"), turn="a"),
        claude("user", "r1", "a2", result("t1")),
    )
    (found,) = conversations(path, "claude-code")
    assert found.goal == "go on"
    assert len(found.messages[2]["tool_calls"]) == 1


# --- Codex ------------------------------------------------------------------------------------------


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "t", "type": "response_item", "payload": {"type": kind, **payload}}


def codex_talk(*outputs: Any) -> list[dict[str, Any]]:
    found = [
        item(
            "message", role="user", content=[{"type": "input_text", "text": "<plugins>\na list\n</plugins>"}]
        ),
        item("message", role="user", content=[{"type": "input_text", "text": "list <b> the files"}]),
    ]
    for number, output in enumerate(outputs):
        found.append(item("function_call", name="exec", arguments="{}", call_id=f"c{number}"))
        found.append(item("function_call_output", call_id=f"c{number}", output=output))
    return [*found, item("message", role="assistant", content=[{"type": "output_text", "text": "there"}])]


def test_a_session_of_codex_is_known_without_its_first_line(tmp_path: Path) -> None:
    (found,) = conversations(lines(tmp_path / "r.jsonl", *codex_talk("a b")), "codex")
    assert (found.goal, said(found)[-2:]) == ("list <b> the files", ["a b", "there"])


def test_the_oldest_sessions_of_codex_have_a_bare_first_line(tmp_path: Path) -> None:
    talk = [line["payload"] for line in codex_talk()]
    (found,) = conversations(lines(tmp_path / "r.jsonl", {"id": "4", "timestamp": "t"}, *talk), "codex")
    assert said(found)[-1] == "there"


@pytest.mark.parametrize(
    ("output", "shown", "fails"),
    [
        ([{"type": "output_text", "text": "Done!"}], "Done!", False),
        (json.dumps({"output": "no such file", "metadata": {"exit_code": 2}}), "no such file", True),
        (json.dumps({"output": "", "metadata": {"exit_code": 1}}), "", False),
        (json.dumps({"output": "fine", "metadata": {"exit_code": 0}}), "fine", False),
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nbad", None, True),
        ("Exit code: 0\nOutput:\nProcess exited with code 3", None, False),
        ('{"output": 1e400}', None, False),
    ],
)
def test_what_a_call_of_codex_gave(
    tmp_path: Path, into: ImportTarget, output: Any, shown: str | None, fails: bool
) -> None:
    (found,) = conversations(lines(tmp_path / "r.jsonl", *codex_talk(output)), "codex")
    assert said(found)[-2] == (output if shown is None else shown)
    steps = past_of(found, Source("codex", "r", 1), into).steps
    assert any(fault_in(step) is not None for step in steps) is fails


# --- inspect, SWE-agent, mini-swe-agent -------------------------------------------------------------


def test_a_sample_that_broke_costs_no_other_of_its_log(tmp_path: Path) -> None:
    aside = {
        "messages": [{"role": "user", "content": "attachment://1"}, {"role": "assistant", "content": "42"}]
    }
    samples = [
        {"id": 1, "input": "x", "messages": [], "error": {"message": "no box"}},
        "no sample",
        {"id": 2, "input": "attachment://1", "attachments": {"1": "a long question"}, **aside},
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": samples}, indent=1))
    records = list(read_records(path))
    assert [record.number for record in records] == [1, 2, 3]
    (found,) = read(records[2].value)
    assert (found.goal, said(found)) == ("a long question", ["a long question", "42"])


def test_a_demonstration_of_swe_agent_has_its_messages_only(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "you are", "agent": "main"},
        {"role": "user", "content": "the issue", "agent": "main"},
        {"role": "assistant", "content": "I look", "thought": "I look", "action": "find_file a.py"},
        {"role": "tool", "content": [{"type": "text", "text": "found"}], "tool_call_ids": ["c1"]},
        {"role": "assistant", "content": "I end", "action": "submit"},
    ]
    path = tmp_path / "x.traj"
    path.write_text(json.dumps({"history": history}, indent=1))
    (found,) = conversations(path, "swe-agent")
    assert said(found)[:4] == ["you are", "the issue", "I look", "found"]


def test_mini_swe_agent_without_the_name_of_its_format(tmp_path: Path) -> None:
    asked = "<pr_description>\nConsider the following PR description:\nit breaks\n</pr_description>\nDo this and that"
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    record = {
        "info": {"exit_status": "Submitted", "submission": "diff"},
        "messages": [
            {"role": "system", "content": "you can"},
            {"role": "user", "content": asked},
            {
                "role": "assistant",
                "content": "I",
                "tool_calls": [{"index": 0, "function": function, "id": "c"}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "<returncode>0</returncode>", "extra": {}},
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
        ],
    }
    path = tmp_path / "x.traj.json"
    path.write_text(json.dumps(record, indent=1))
    (found,) = conversations(path, "mini-swe-agent")
    assert (found.goal, found.messages[-1]["role"]) == ("it breaks", "tool")


def test_a_record_with_anthropics_blocks_has_calls() -> None:
    messages = [
        {"role": "user", "content": "do"},
        {"role": "assistant", "content": [text("I do"), call("t1")]},
        {"role": "user", "content": [result("t1")]},
    ]
    (found,) = read({"messages": messages, "outcome": "passed"})
    assert [message["role"] for message in found.messages] == ["user", "assistant", "tool"]


# --- spans ------------------------------------------------------------------------------------------


def trace(*spans: dict[str, str]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "t",
                                "name": "chat x",
                                "startTimeUnixNano": number,
                                "attributes": [
                                    {"key": key, "value": {"stringValue": value}}
                                    for key, value in span.items()
                                ],
                            }
                            for number, span in enumerate(spans)
                        ]
                    }
                ]
            }
        ]
    }


ASKED = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "where is it"}]}])
ANSWERED = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "here"}]}])


@pytest.mark.parametrize("operation", [{}, {"gen_ai.operation.name": "invoke_agent"}])
def test_spans_that_do_not_say_that_they_are_a_chat(operation: dict[str, str]) -> None:
    (found,) = read(trace({**operation, "gen_ai.input.messages": ASKED, "gen_ai.output.messages": ANSWERED}))
    assert said(found) == ["where is it", "here"]


def test_messages_as_one_attribute_a_field() -> None:
    first = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "where is it",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "find",
        "gen_ai.completion.0.tool_calls.0.arguments": "{}",
    }
    second = {
        **{key: value for key, value in first.items() if key.startswith("gen_ai.prompt")},
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "find",
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.prompt.2.content": "here",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "it is here",
    }
    (found,) = read(trace(first, second))
    assert [message["role"] for message in found.messages] == ["user", "assistant", "tool", "assistant"]
    assert said(found)[-1] == "it is here"


@pytest.mark.parametrize(
    "value", [None, 1, [], "x", {"role": 1}, [{"content": {}}], {"eval": 1, "samples": [1]}]
)
@pytest.mark.parametrize("key", ["history", "messages", "attributes", "info", "samples", "lines"])
def test_an_odd_value_is_a_refusal(tmp_path: Path, key: str, value: Any) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        json.dumps({"eval": {}, "info": {"exit_status": 1, "submission": 1}, "messages": [], key: value})
    )
    for record in read_records(path):
        with pytest.raises(Invalid):
            read(record.value if not record.fault else {})
