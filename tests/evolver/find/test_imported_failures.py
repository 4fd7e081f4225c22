"""Failures of runs that were made elsewhere: equal ones get one fingerprint, different ones do not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.domain import Result, Snapshot
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.fingerprints import AgentActions, failure_of
from agentos.shipped import folder
from agentos.trajectories.past import ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import read

TAXONOMY = load_taxonomy(folder("evolver") / "taxonomy.toml")
INTO = ImportTarget(Snapshot("c" * 40, "t" * 40), 0.2, datetime(2026, 1, 2, tzinfo=UTC))
OK = "done"


def signature(*calls: tuple[str, dict[str, Any], str], goal: str = "book", outcome: str = "failed") -> str:
    """Of a run that made these calls: tool, arguments, answer."""
    messages: list[Any] = [{"role": "user", "content": goal}]
    for number, (tool, args, answer) in enumerate(calls):
        call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": args}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    messages.append({"role": "assistant", "content": "there you are"})
    (found,) = read({"messages": messages, "outcome": outcome})
    past = past_of(found, Source("openai-chat", "x", 1), INTO)
    failure = failure_of(past.run, "", TAXONOMY, AgentActions("agent/imported", lambda: past.steps))
    if failure is None:
        return ""
    assert (failure.klass.name, failure.klass.evolvable) == ("imported", False)
    return failure.fingerprint.signature


def test_a_tool_that_broke_is_one_failure_in_all_tasks() -> None:
    one = signature(("pay", {"sum": 1}, "Error: card 4711 was refused by 'visa'"))
    assert one == signature(("pay", {"sum": 2}, "Error: card 12 was refused by 'amex'"), goal="cancel")
    assert one != signature(("pay", {"sum": 1}, "Error: the account is closed"))
    assert one != signature(("refund", {"sum": 1}, "Error: card 4711 was refused by 'visa'"))


def test_a_tool_that_worked_again_is_not_the_failure() -> None:
    broken = ("pay", {}, "Error: no such card")
    assert signature(broken, ("pay", {"again": 1}, OK)) == signature(("pay", {}, OK))


@pytest.mark.parametrize(
    "other",
    [
        [("update_seat", {}, OK)],
        [("find", {}, OK), ("update_bag", {}, OK), ("update_seat", {}, OK)],
        [("find", {}, OK)],
        [],
    ],
)
def test_a_missed_task_is_told_by_what_was_changed(other: list[tuple[str, dict[str, Any], str]]) -> None:
    one = signature(("find", {}, OK), ("update_bag", {}, OK))
    assert one == signature(("look", {"x": 9}, OK), ("find", {}, OK), ("update_bag", {"n": 7}, OK))
    assert one != signature(*other)
    assert one != signature(("find", {}, OK), ("update_bag", {}, OK), goal="another")


def test_files_that_were_edited_are_told_apart_wherever_they_lie() -> None:
    def edited(path: str) -> str:
        return signature(("Edit", {"file_path": path, "old_string": "a"}, OK))

    assert edited("/home/a/repo/x.py") == edited("/tmp/b/x.py") != edited("/tmp/b/y.py")
    patch = ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/a.py\n"}, OK)
    shell = ("bash", {"command": "cat > out/a.py <<X"}, OK)
    assert "apply_patch a.py" in signature(patch)
    assert "bash a.py" in signature(shell)
    assert "bash" not in signature(("bash", {"command": "cat a.py"}, OK), patch).split(" | ")[2]


def test_a_command_may_be_a_list_of_words() -> None:
    shell = ("shell", {"command": ["bash", "-lc", "cat > out/a.py <<X"]}, OK)
    assert "shell a.py" in signature(shell)
    assert signature(("shell", {"command": {"argv": [1]}}, OK)) == signature(("shell", {}, OK))


def test_a_status_of_thousands_of_digits_is_none() -> None:
    """Python refuses to read such a number: whatever a log says, mining goes on."""
    told = f"exit code: {'9' * 5000}"
    assert signature(("shell", {}, told)) == signature(("shell", {}, OK))


def test_what_passed_and_what_nobody_knows_are_no_failures() -> None:
    assert signature(outcome=Result.PASSED) == signature(outcome=Result.UNKNOWN) == ""
