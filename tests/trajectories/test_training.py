"""Runs made here as conversations, and what may be learnt from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.domain import Json, Result, Snapshot
from agentos.trajectories.chat import FinishedRun, chat_record
from agentos.trajectories.past import ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import read
from agentos.trajectories.training import SkippedExample, dpo, grpo, sft

Make = Callable[..., FinishedRun]


def call(id: str = "c1", name: str = "add", arguments: str = '{"a": 1}') -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def says(content: str | None = None, *calls: Json) -> tuple[str, Json, Json]:
    message: Json = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    return "model", {"model": "m", "messages": 1}, {"message": message, "finish_reason": "stop"}


def acts(tool: str, output: Json) -> tuple[str, Json, Json]:
    return "act", {"tool": tool, "args": {"a": 1}}, {"ok": True, "output": output}


def chat(happened: FinishedRun) -> list[Any]:
    messages: list[Any] = chat_record(happened)["messages"]
    return messages


def roles(happened: FinishedRun) -> list[str]:
    return [message["role"] for message in chat(happened)]


# --- runs as conversations --------------------------------------------------------------------------


def test_a_run_is_told_with_its_goal_its_calls_and_its_answer(happened: Make) -> None:
    run = happened(says(None, call()), acts("add", 3), says("it is 3"), answer="it is 3")
    assert chat(run) == [
        {"role": "user", "content": "add 1 and 2"},
        {"role": "assistant", "content": None, "tool_calls": [call()]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "assistant", "content": "it is 3"},
    ]


def test_answers_go_to_the_calls_of_their_tool_whatever_came_first(happened: Make) -> None:
    both = (call("c1", "math__add"), call("c2", "read"))
    run = happened(says(None, *both), acts("read", "text"), acts("math/add", 3), says("done"))
    assert [(m["tool_call_id"], m["content"]) for m in chat(run) if m["role"] == "tool"] == [
        ("c2", "text"),
        ("c1", "3"),
    ]


def test_a_call_made_without_a_model_is_told_as_one(happened: Make) -> None:
    run = happened(("route", None, None), acts("add", {"sum": 3}), answer={"sum": 3})
    assert roles(run) == ["user", "assistant", "tool", "assistant"]
    assert chat(run)[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert not run.by_model


def test_a_fault_is_what_the_model_saw_of_the_call(happened: Make) -> None:
    run = happened(says(None, call()), acts("add", None), says("sorry"), fault_at=1)
    assert chat(run)[2]["content"] == '{"error": {"type": "ValueError", "message": "no such number"}}'


def test_calls_that_left_no_step_are_answered_so_that_it_can_be_imported_again(happened: Make) -> None:
    run = happened(says(None, call("c1"), call("c2")), acts("add", 3), says(None, call("c1")))
    assert roles(run) == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    (again,) = read(chat_record(run))
    assert list(again.messages) == chat(run)


@pytest.mark.parametrize(
    "observation",
    [
        None,
        [],
        {"message": "an error of the provider", "error": "overloaded"},
        {"message": {"tool_calls": 5, "content": "x"}},
        {"message": {"tool_calls": [{"id": 1}], "content": "x"}},
        {"message": {"content": {"a": 1}}},
        {"message": {"role": "system"}},
    ],
)
def test_steps_are_the_word_of_a_sandbox(happened: Make, observation: Json) -> None:
    hostile = ("model", None, observation)
    run = happened(hostile, ("act", "x", 3), ("act", {"tool": ["y"]}, [1]), ("import", {}, {}))
    record = chat_record(run)
    assert "rest" not in record
    assert record["messages"][0] == {"role": "user", "content": "add 1 and 2"}
    assert all("system" not in message["role"] for message in record["messages"])


# --- training data ----------------------------------------------------------------------------------


def test_examples_are_passed_runs_in_which_a_model_spoke(happened: Make) -> None:
    good = happened(says("3"), id="run-good")
    bad = happened(says("4"), id="run-bad", result=Result.FAILED)
    mute = happened(acts("add", 3), id="run-mute")
    lost = happened(says("3"), id="run-lost", result=Result.INFRA)
    example, *left = sft([good, bad, mute, lost])
    assert example == {
        "messages": [{"content": "add 1 and 2", "role": "user"}, {"content": "3", "role": "assistant"}],
        "agentos": {"runs": ["run-good"], "task": "task-1"},
    }
    assert left == [
        SkippedExample("run-bad", "it did not pass"),
        SkippedExample("run-mute", "no model spoke in it"),
        SkippedExample("run-lost", "its outcome says nothing of what was done"),
    ]


def test_a_preference_is_what_was_done_after_the_same_question(happened: Make) -> None:
    good = happened(says(None, call()), acts("add", 3), says("3"), id="run-good")
    bad = happened(says("4"), id="run-bad", result=Result.FAILED)
    (pair,) = dpo([[bad, good]])
    assert not isinstance(pair, SkippedExample)
    assert [m["role"] for m in pair["prompt"]] == ["user"]
    assert [m["role"] for m in pair["chosen"]] == ["assistant", "tool", "assistant"]
    assert pair["rejected"] == [{"content": "4", "role": "assistant"}]
    assert pair["agentos"]["runs"] == ["run-good", "run-bad"]


def test_what_a_tool_gave_is_no_preference_of_the_model(happened: Make) -> None:
    steps = (says(None, call("c1")), acts("add", 3), says("done"))
    other = (says(None, call("c9")), acts("add", 4), says("done"))
    (left,) = dpo([[happened(*steps), happened(*other, result=Result.FAILED)]])
    assert isinstance(left, SkippedExample)
    assert "what differed is what a tool gave" in left.why


def test_no_run_stands_in_two_pairs_and_none_with_another_question(happened: Make) -> None:
    good = happened(says("3"))
    bad = [happened(says(str(n)), id=f"run-{n}", result=Result.FAILED) for n in (4, 5)]
    other = happened(says("7"), id="run-other", goal="add 3 and 4", result=Result.FAILED)
    pair, *left = dpo([[good, *bad, other]])
    assert pair["agentos"]["runs"] == ["run-1", "run-4"]
    assert [item.run for item in left] == ["run-5", "run-other"]


def test_a_group_has_the_scores_as_rewards(happened: Make) -> None:
    tries = [happened(says("3"), id="run-a"), happened(says("4"), id="run-b", result=Result.FAILED)]
    alone = happened(says("7"), id="run-other", goal="add 3 and 4")
    group, left = grpo([[*tries, alone]])
    assert not isinstance(group, SkippedExample)
    assert (len(group["completions"]), group["rewards"]) == (2, [1.0, 0.0])
    assert left == SkippedExample("run-other", "no other run was asked the same")
    assert [c.ended.score for c in read(group)] == [1.0, 0.0]  # and it can be imported again


def test_the_name_of_an_agent_becomes_one_that_trainers_take(happened: Make) -> None:
    step = says("3")
    step[2]["message"]["agent"] = "Orchestrator (-> WebSurfer)"
    (example,) = sft([happened(step)])
    assert example["messages"][1] == {
        "role": "assistant",
        "content": "3",
        "name": "Orchestrator_-_WebSurfer",
    }


@pytest.mark.parametrize("agent", [5, None, {"name": "x"}])
def test_an_agent_that_is_no_text_gives_no_name(happened: Make, agent: Json) -> None:
    message = {"role": "assistant", "content": "it is 3", "agent": agent}
    (example,) = sft([happened(("model", {"model": "m"}, {"message": message}))])
    assert not isinstance(example, SkippedExample)
    assert all("name" not in message for message in example["messages"])


def test_a_log_that_begins_with_an_agents_words_gets_its_goal_as_prompt(happened: Make) -> None:
    run = happened(says("3"))
    imported = replace(
        run,
        run=replace(run.run, sandbox="import"),
        steps=(replace(run.steps[0], node="import", observation={"tools": [], "rest": {}}), *run.steps),
    )
    (example,) = sft([imported])
    assert [m["role"] for m in example["messages"]] == ["user", "assistant"]


def test_a_message_that_says_nothing_is_one_without_content() -> None:
    (conversation,) = read(
        {"messages": [{"role": "user", "content": "3?"}, {"role": "assistant"}], "outcome": "passed"}
    )
    into = ImportTarget(Snapshot("c" * 40, "t" * 40), 0.2, datetime.now(UTC))
    made = past_of(conversation, Source("x", "x", 1), into)
    (example,) = sft([FinishedRun(made.task, made.run, made.steps)])
    assert example["messages"][1] == {"role": "assistant", "content": None}
