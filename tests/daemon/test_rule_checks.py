"""What is done on each event of a run that has rules, without a box: what was let happen, what was not, what counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.daemon.requests.enforcement import RuleChecks
from agentos.daemon.requests.run_requests import RequestHandler, RunEnds
from agentos.domain import Fault, Json, Reply, Step, box_fault
from agentos.models.redaction import Redactor
from agentos.rules.document import rule_of
from agentos.rules.watching import RunRules

KEY = "sk-abcdefghijklmnopqrstuvwx"  # what a redactor knows by its look
REDACTED = Redactor([]).value
FAILED = box_fault("error", "it failed", "", "")


class Allows(RequestHandler):
    """A person who allows all."""

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        return {"answer": "allow"}


def step(node: str, action: Json, observation: Json, ms: float, fault: Fault | None = None) -> Step:
    """As the record has it: without secrets."""
    return Step("run-1", 0, node, REDACTED(action), REDACTED(observation), fault, datetime.now(UTC), ms)


def held(*rules: Mapping[str, Any]) -> RuleChecks:
    made = [
        rule_of(f"rule/r{number}", {"description": "d", "on": "before_call", **rule})
        for number, rule in enumerate(rules)
    ]
    return RuleChecks(RunRules(made), step, Allows, redact=REDACTED)


def called(tool: str, args: Json, fault: Fault | None = None) -> Step:
    return step("act", {"tool": tool, "args": args}, {"ok": fault is None}, 0.0, fault)


def reply(call: object, content: object = None) -> Reply:
    body: dict[str, Any] = {"choices": [{"message": {"content": content, "tool_calls": [call]}}]}
    return Reply("call-1", body, 1, 1, 0.0, 0.0, recorded=False, model="m")


NEVER = {"when": "tool == 'rm'", "enforce": "refuse", "advice": "no"}
TWICE = {"when": "'f' in calls && calls['f'] >= 2", "enforce": "stop"}


def test_a_call_that_was_refused_and_is_made_all_the_same_ends_the_run() -> None:
    rules = held(NEVER)
    assert rules.call("rm", {"path": "a"}, ()).refused
    rules.saw(called("rm", {"path": "a"}, box_fault("refused", "no", "", "")))
    assert rules.call("rm", {"path": "b"}, ()).refused
    with pytest.raises(RunEnds):
        rules.saw(called("rm", {"path": "b"}))


def test_a_call_that_failed_lets_no_other_happen() -> None:
    rules = held(TWICE)
    for _ in range(2):
        rules.call("f", {}, ())
        rules.saw(called("f", {}, FAILED))
    with pytest.raises(RunEnds):
        rules.saw(called("f", {}))


def test_a_refusal_that_is_told_late_takes_nothing_from_an_equal_call() -> None:
    rules = held({"when": "tool == 'f'", "enforce": "reflect", "advice": "sure?"}, NEVER)
    assert rules.call("f", {}, ()).refused
    assert not rules.call("f", {}, ()).refused
    rules.saw(called("f", {}, box_fault("refused", "sure?", "", "")))
    rules.saw(called("f", {}))


def test_a_secret_among_the_arguments_makes_no_other_call_of_it() -> None:
    asks = held({"when": "tool == 'f'", "enforce": "ask"})
    asks.call("f", {"key": KEY}, ())
    asks.saw(called("f", {"key": KEY}))  # it was allowed
    counts = held(TWICE)
    counts.call("f", {"key": KEY}, ())
    counts.saw(called("f", {"key": KEY}))
    assert counts.call("f", {}, ()).refused is None


@pytest.mark.parametrize("before", range(1_380, 1_480, 9))
def test_a_question_that_is_cut_holds_no_piece_of_a_secret(before: int) -> None:
    asked: list[str] = []

    class Notes(Allows):
        def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
            asked.append(body["question"])
            return super().answer(body)

    made = rule_of(
        "rule/r", {"description": "d", "on": "before_call", "when": "tool == 'f'", "enforce": "ask"}
    )
    rules = RuleChecks(RunRules([made]), step, Notes, redact=REDACTED)
    rules.call("f", {"text": f"{'x' * before} {KEY}", "z": "y" * 200}, ())
    assert len(asked) == 1
    assert KEY[:8] not in asked[0]


def test_what_a_person_allows_and_another_rule_refuses_does_not_count() -> None:
    rules = held({"when": "tool == 'f'", "enforce": "ask"}, {**NEVER, "when": "args == {'n': 1}"}, TWICE)
    for _ in range(3):
        assert rules.call("f", {"n": 1}, ()).refused
    assert rules.call("f", {}, ()).refused is None


@pytest.mark.parametrize("call", ["text", None, {"id": "1", "function": "f"}, {"id": "1", "function": {}}])
def test_a_call_of_a_model_that_is_none_can_be_written_anew_and_refused(call: object) -> None:
    writes = {"when": "tool != 'g'", "enforce": "replace", "replace": {"n": 2}}
    (choice,) = held(writes).reply(reply(call), black_box=True)["choices"]
    assert '"n": 2' in choice["message"]["tool_calls"][0]["function"]["arguments"]
    refuses = {**NEVER, "when": "tool != 'g'"}
    (choice,) = held(refuses).reply(reply(call), black_box=True)["choices"]
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "stop"


def test_a_reply_in_parts_keeps_them_beside_the_advice() -> None:
    parts = [{"type": "text", "text": "I remove it"}]
    call = {"id": "1", "function": {"name": "rm", "arguments": "{}"}}
    (choice,) = held(NEVER).reply(reply(call, parts), black_box=True)["choices"]
    assert choice["message"]["content"][0] == parts[0]
    assert len(choice["message"]["content"]) == 2
