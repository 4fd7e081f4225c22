"""What is read from each format, and the reason for each record that is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentos.domain import IMPORT, Result, Share
from agentos.errors import Invalid
from agentos.ledger.store import Ledger
from agentos.trajectories.chat import FinishedRun, chat_record
from agentos.trajectories.conversations import ChatConversation
from agentos.trajectories.past import ImportedRun, ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import detect, read

ASKED = {"role": "user", "content": "add 1 and 2"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
GAVE = {"role": "tool", "tool_call_id": "c1", "content": "3"}
SAID = {"role": "assistant", "content": "3"}
CHAT = [ASKED, CALLS, GAVE, SAID]


def one(record: dict[str, Any], format: str = "auto") -> ChatConversation:
    (conversation,) = read(record, format)
    return conversation


def past(record: dict[str, Any], into: ImportTarget, format: str = "auto") -> ImportedRun:
    return past_of(one(record, format), Source("openai-chat", "x.jsonl", 1), into)


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "result", "score"),
    [
        ({"outcome": "passed"}, Result.PASSED, 1.0),
        ({"outcome": "timeout"}, Result.TIMEOUT, 0.0),
        ({"outcome": {"result": "failed", "score": 0.5, "reason": "half"}}, Result.FAILED, 0.5),
        ({"outcome": True}, Result.PASSED, 1.0),
        ({"reward": 1}, Result.PASSED, 1.0),
        ({"reward": 0.25}, Result.FAILED, 0.25),
        ({"reward": -(10**400)}, Result.FAILED, 0.0),
        ({"score": 7.5}, Result.PASSED, 1.0),
        ({"passed": False}, Result.FAILED, 0.0),
        ({"success": True}, Result.PASSED, 1.0),
    ],
)
def test_an_outcome_is_said_in_many_ways(said: dict[str, Any], result: Result, score: float) -> None:
    ended = one({"messages": CHAT, **said}).ended
    assert (ended.result, ended.score) == (result, score)


def test_the_goal_is_named_or_is_what_the_user_asked_first() -> None:
    assert one({"messages": CHAT, "reward": 1}).goal == "add 1 and 2"
    assert one({"messages": CHAT, "reward": 1, "goal": "sum"}).goal == "sum"
    parts = [{"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}]}, SAID]
    assert one({"messages": parts, "reward": 1}).goal == "look"


def test_examples_have_passed_and_groups_are_taken_apart() -> None:
    assert one({"messages": CHAT}, "sft").ended.result is Result.PASSED
    group = {"prompt": [ASKED], "completions": [[SAID], [{**SAID, "content": "4"}]], "rewards": [1.0, 0.0]}
    assert detect(group) == "grpo"
    assert [c.ended.result for c in read(group)] == [Result.PASSED, Result.FAILED]
    assert [c.messages[-1]["content"] for c in read(group)] == ["3", "4"]


def test_a_tool_call_becomes_a_step_like_one_of_our_own(into: ImportTarget) -> None:
    steps = past({"messages": CHAT, "reward": 1, "tools": [{"type": "function"}]}, into).steps
    assert [step.node for step in steps] == ["import", "message", "model", "act", "model"]
    assert steps[3].action == {"tool": "add", "args": {"a": 1, "b": 2}}
    assert steps[3].observation["output"] == "3"


def test_arguments_that_are_no_json_stay_what_they_are(into: ImportTarget) -> None:
    for arguments in ('{"a": ', '{"a": NaN}', "[" * 5_000 + "]" * 5_000):
        call = {**CALL, "function": {"name": "add", "arguments": arguments}}
        chat = [ASKED, {**CALLS, "tool_calls": [call]}, GAVE, SAID]
        assert past({"messages": chat, "reward": 1}, into).steps[3].action["args"] == arguments


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({}, "in no known format (it has no keys); the formats are openai-chat, tau-bench, whowhen"),
        ({"log": ["codex"], "lines": []}, "in no known format (it has log, lines)"),
        ({"messages": CHAT, "outcome": "great"}, "must be a number, true, false or one of"),
        ({"messages": CHAT, "reward": []}, "must be a number"),
        ({"messages": CHAT, "outcome": {"score": 1}}, "'outcome.result' must be"),
        ({"messages": [], "reward": 1}, "at least one message"),
        ({"messages": "hello", "reward": 1}, "must be a list"),
        ({"messages": ["hello"], "reward": 1}, "message 0 is no object"),
        ({"messages": [{"role": "robot", "content": ""}], "reward": 1}, "message 0 has the role 'robot'"),
        ({"messages": [{"role": "user", "content": 5}, SAID], "reward": 1}, "neither a text nor a list"),
        ({"messages": [{"role": "user"}, SAID], "reward": 1}, "message 0 has no content"),
        ({"messages": [ASKED], "reward": 1}, "no message is the assistant's"),
        ({"messages": [SAID], "reward": 1}, "it has no goal"),
        ({"messages": [ASKED, GAVE, SAID], "reward": 1}, "message 1 answers the tool call 'c1', which was"),
        ({"messages": [ASKED, CALLS, SAID], "reward": 1}, "message 2 comes before the tool call 'c1' is"),
        ({"messages": [ASKED, CALLS, GAVE, GAVE], "reward": 1}, "message 3 answers the tool call"),
        (
            {"messages": [ASKED, {**SAID, "tool_calls": [{"id": "x"}]}], "reward": 1},
            "message 1 has a tool call",
        ),
        ({"messages": [ASKED, {**SAID, "tool_calls": "x"}], "reward": 1}, "message 1 has a tool call"),
        ({"messages": CHAT, "reward": 1, "tools": "add"}, "'tools' must be a list"),
        ({"messages": CHAT, "reward": 1, "checks": [{"guess": {}}]}, "check 1: 'guess' is no kind"),
        ({"messages": CHAT, "reward": 1, "checks": {"equals": {}}}, "check 1 must be an object"),
        ({"messages": CHAT, "reward": 1, "checks": [{"regex": {"pattern": "("}}]}, "check 1: "),
        ({"traj": CHAT, "reward": "?"}, "'reward' must be"),
        ({"traj": None, "reward": 1}, "must be a list"),
        ({"history": {}, "question": "?"}, "'history' must be a list"),
        ({"history": [SAID], "question": None}, "it has no goal"),
        ({"history": [3], "question": "?"}, "message 0 is no object"),
        ({"prompt": [ASKED], "completions": [[SAID]], "rewards": []}, "1 completions and 0 rewards"),
        ({"prompt": [ASKED], "completions": ["3"], "rewards": [1]}, "completion 0 is no list"),
        ({"prompt": "x", "completions": [], "rewards": []}, "must be lists"),
    ],
)
def test_a_broken_record_is_refused_with_its_reason(record: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(record)
    assert why in caught.value.faults[0]


def test_a_conversation_may_break_off_after_a_call(into: ImportTarget) -> None:
    assert past({"messages": [ASKED, CALLS], "reward": 0}, into).run.answer is None


# --- what it is in the ledger -----------------------------------------------------------------------


def test_an_imported_run_is_marked_and_cannot_be_taken_for_one_of_ours(into: ImportTarget) -> None:
    made = past({"messages": CHAT, "reward": 0}, into)
    assert (made.run.sandbox, made.run.level, made.task.agent) == (IMPORT, "none", "imported")
    assert made.run.resources == ()
    assert made.run.outcome is not None
    assert made.run.outcome.fault is not None
    assert made.run.outcome.fault.type == "imported"


def test_only_what_has_checks_can_be_done_by_an_agent_of_the_registry(into: ImportTarget) -> None:
    ours = replace(into, agent="default")
    without = past({"messages": CHAT, "reward": 0}, ours)
    checked = past({"messages": CHAT, "reward": 0, "checks": [{"equals": {"value": 3}}]}, ours)
    assert (without.task.agent, without.run.resources) == ("imported", ())
    assert (checked.task.agent, checked.run.resources) == ("default", ("agent/default",))
    assert checked.run.outcome is not None
    assert checked.run.outcome.fault is not None
    assert checked.run.outcome.fault.type == "check"


def test_equal_content_has_equal_ids_and_any_difference_others(into: ImportTarget) -> None:
    record = {"messages": CHAT, "reward": 1}
    same = past({**record, "agentos": {"run": "run-of-another-home"}}, into)
    assert same.run.id == past(record, into).run.id
    others = [
        {**record, "reward": 0},
        {**record, "trial": 2},
        {**record, "goal": "sum"},
        {**record, "messages": [*CHAT, SAID]},
        {**record, "checks": [{"equals": {"value": 3}}]},
    ]
    assert len({past(other, into).run.id for other in [record, *others]}) == 6
    assert past({**record, "trial": 2}, into).task.key == past(record, into).task.key


def test_a_share_is_of_the_work_and_not_of_the_run(into: ImportTarget) -> None:
    chats = [
        {"messages": CHAT, "reward": 1, "goal": f"goal {n}", "trial": t} for n in range(40) for t in (0, 1)
    ]
    shares: dict[str, set[Share]] = {}
    for chat in chats:
        made = past(chat, into)
        shares.setdefault(made.task.goal, set()).add(made.run.share)
    assert all(len(found) == 1 for found in shares.values())
    assert set().union(*shares.values()) == {Share.OPEN, Share.HOLD_OUT}


@pytest.mark.parametrize(
    "extra",
    [
        {"outcome": {"result": "failed", "score": 0.5, "reason": "half \ud800"}, "x": None},
        {"reward": 0.5, "tools": [{"type": "function", "function": {"name": "add"}}], "id": 7},
        {
            "score": 1.0,
            "checks": [{"contains": {"value": "3", "path": None}}],
            "meta": {"a": [1, {"b": "c" * 20_000}]},
        },
    ],
)
def test_nothing_is_lost_on_the_way_through_the_ledger(
    extra: dict[str, Any], into: ImportTarget, ledger: Ledger
) -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "and this"}], "name": "bob"}
    record = {"messages": [{"role": "system", "content": "s" * 20_000}, *CHAT, parts, SAID], **extra}
    made = past(record, into)
    ledger.add_past(made.task, made.run, made.steps)
    steps = tuple(
        replace(s, observation=ledger.blobs.expand(s.observation)) for s in ledger.steps(made.run.id)
    )
    out = chat_record(FinishedRun(ledger.task(made.task.id), ledger.run(made.run.id), steps))
    assert {key: out[key] for key in record if key != "outcome"} == {
        key: value for key, value in record.items() if key != "outcome"
    }
    assert past(out, into).run.id == made.run.id
