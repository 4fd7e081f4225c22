"""A step failed by its own account, or it merely shows trouble that is somebody else's."""

from datetime import UTC, datetime

import pytest

from agentos.domain import Fault, Json, Step
from agentos.evolver.find.signals import LINE_MAX, fault_in, speaker_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOG = "ERROR: connection timeout, rate limit exceeded\nTraceback (most recent call last):\nKeyError: 1"


def step(observation: Json, node: str = "act", tool: str = "run", fault: Fault | None = None) -> Step:
    return Step("run-1", 0, node, {"tool": tool, "args": {}}, observation, fault, NOW, 1.0)


def kind(observation: Json, node: str = "act", tool: str = "run") -> str:
    found = fault_in(step(observation, node, tool))
    return found.type if found else ""


def said(content: str, name: str = "Terminal") -> Json:
    return {"message": {"role": "user", "name": name, "content": content}}


def test_a_structured_fault_comes_first() -> None:
    fault = Fault("KeyError", "'a'")
    assert fault_in(step({"ok": False}, fault=fault)) is fault


@pytest.mark.parametrize(
    "output",
    [
        LOG,
        "Error: no such file",
        {"text": LOG},
        {"exit": 0, "stdout": LOG, "stderr": LOG, "timed_out": False},
        {"exit": 1, "stdout": "", "stderr": "", "timed_out": False},  # grep found nothing
        {"exit": True},
        {"error": "", "rows": 3},
        {"error": None},
        None,
        7,
        [LOG],
    ],
)
def test_content_is_no_failure_whatever_it_says(output: Json) -> None:
    assert kind({"ok": True, "output": output}) == ""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"exit": 2, "stdout": "timeout", "stderr": "x: No such file or directory"}, "not_found"),
        ({"exit": 127, "stdout": "", "stderr": "sh: 1: csvtool: not found"}, "not_found"),
        ({"exit": -9, "stdout": "", "stderr": "", "timed_out": True}, "timeout"),
        ({"exit": 1, "stdout": "a timeout in a log", "stderr": LOG}, "KeyError"),
        ({"error": {"type": "x", "message": "too many requests"}}, "rate_limit"),
        ({"ok": False, "message": "seat 4 is already taken"}, "state"),
    ],
)
def test_fields_tell_how_a_call_went(output: Json, expected: str) -> None:
    assert kind({"ok": True, "output": output}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Error: payment method not found", "not_found"),
        ("Error: it does not add up\nsee: timeout", "error"),
        ("ValueError: Invalid API key provided.", "denied"),
        ('{"error": "the field x is required"}', "arguments"),
        ("exitcode: 1 (execution failed)\nCode output: timeout\nunknown language", "error"),
        ("exit status 2\nfatal", "error"),
        ("exitcode: 0 (execution succeeded)\nError: a timeout", ""),
        ("Search result 1: Error: 404 not found", ""),
        ("the answer is 403", ""),
        ("errors: none were found", ""),
        ('{"flights": [{"price": 404}]}', ""),
        ("{" * 19_999, ""),
    ],
)
def test_where_nothing_is_structured_the_head_of_an_answer_tells(text: str, expected: str) -> None:
    assert kind({"output": text, "message": {"role": "tool"}}) == expected


@pytest.mark.parametrize("tool", ["read_file", "cat", "skill/view-logs", "grep"])
def test_what_a_tool_reads_is_content(tool: str) -> None:
    assert kind({"output": LOG}, tool=tool) == ""
    assert kind({"output": LOG}, tool="calculate") != ""


def test_a_terminal_among_the_speakers_is_believed_and_nobody_else() -> None:
    failed = "exitcode: 1 (execution failed)\nTraceback (most recent call last):\nNameError: name 'x'"
    assert kind(said(failed), node="message") == "NameError"
    assert kind(said("It led to an exit code of 1: why?"), node="message") == ""
    assert kind(said(LOG), node="message") == ""
    assert kind({"message": {"role": "user", "content": failed}}, node="message") == ""  # quoted by a person
    assert kind({"message": {"role": "assistant", "content": failed}}, node="model") == ""


def test_a_large_observation_shows_its_exit_status() -> None:
    def cut(head: str) -> Json:
        return {"blob": "ab", "size": 9, "head": head, "tail": LOG}

    assert kind(cut('{"ok":true,"output":{"exit":2,"stderr":"')) == "error"
    assert kind(cut('{"ok":true,"output":{"exit":0,"stderr":"')) == ""
    assert kind(cut('{"ok":true,"output":"{\\"exit\\":2')) == ""


def test_a_kind_is_read_from_the_line_that_reports_and_the_line_is_cut() -> None:
    found = fault_in(step({"output": f"Error: {'x' * 1000} timed out\nno such file"}))
    assert found is not None
    assert (found.type, len(found.message)) == ("timeout", LINE_MAX)


def test_hostile_texts_are_read_in_little_time() -> None:
    for text in ("Error " * 200_000, "exit " * 200_000, "Traceback Error\n" * 50_000, "A.a." * 200_000 + "!"):
        kind({"output": text})
        kind({"output": "exitcode: 1\n" + text})


def test_speakers_are_named_without_what_they_are_at() -> None:
    assert speaker_of(step(said("x", "Orchestrator (thought)"), node="message")) == "Orchestrator"
    assert speaker_of(step({"ok": True}, node="model")) == ""
    assert speaker_of(step({"output": "x", "message": {"name": "book"}})) == ""
