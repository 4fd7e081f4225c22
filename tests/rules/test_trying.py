"""What a run tells its rules: live, and from the record."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentos.domain import (
    Fault,
    Json,
    KernelFault,
    Limits,
    Origin,
    Outcome,
    Result,
    Run,
    Share,
    Snapshot,
    Step,
    Task,
    kernel_fault,
)
from agentos.ports import ObservedRun
from agentos.rules import trying
from agentos.rules.document import RunRule, rule_of
from agentos.rules.watching import RunRules


def rule(when: str, on: str = "before_call") -> RunRule:
    return rule_of("rule/mine", {"description": "d", "on": on, "when": when, "enforce": "stop"})


def step(node: str, action: Json, observation: Json = None) -> Step:
    return Step("run-1", 0, node, action, observation, None, datetime.now(UTC), 0.0)


def in_run(rule: RunRule, seen: ObservedRun) -> trying.RuleHitInRun | None:
    return trying.in_run(rule, seen, lambda snapshot, path: ())


def on_record(*steps: Step) -> ObservedRun:
    now, base = datetime.now(UTC), Snapshot("c", "t")
    task = Task("task-1", "t", "g", None, (), "default", Limits(), (), (), None, now)
    run = Run("run-1", "task-1", "k", Share.OPEN, 1, base, "x", "y", now, now, None, len(steps), (), ())
    return ObservedRun(task, run, steps)


@pytest.mark.parametrize(
    ("when", "word"),
    [("'h399.org' in seen_hosts", "http://h{}.org"), ("'/a/h399' in seen_paths", "\ud800 /a/h{}")],
)
def test_a_step_may_name_many_hosts_and_paths(when: str, word: str) -> None:
    rules = RunRules([rule(when)])
    text = " ".join(word.format(number) for number in range(400))
    rules.saw(step("act", {"tool": "f", "args": {"text": text}}))
    assert rules.before_call("f", {}, ()).acts


class Waits:
    """A program that waits for a processor, and says no."""

    def eval(self, facts: object) -> Waits:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            time.sleep(0.005)
        return self

    def value(self) -> bool:
        return False


def test_a_busy_machine_makes_no_rule_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentos.rules.watching._SLOW_S", 0.01)
    made = rule("tool == 'f'")
    rules = RunRules([replace(made, when=replace(made.when, program=Waits()))])
    for _ in range(2):
        assert not rules.before_call("f", {}, ()).acts


def test_a_model_call_without_an_answer_is_judged_and_no_more() -> None:
    """As a live run has it: nothing came that could be counted, and its ``message`` is the error's."""
    used = {"input_tokens": 9, "output_tokens": 0, "estimated": True}
    failed = step("model", {"model": "m"}, {"error": "bad_reply", "message": "it is empty", "usage": used})
    assert in_run(rule("model_calls > 0 || tokens > 0", "before_model"), on_record(failed, failed)) is None
    assert in_run(rule("model == 'm'", "before_model"), on_record(failed)) is not None


@pytest.mark.parametrize(
    ("outcome", "answer", "asked"),
    [
        (Outcome(Result.TIMEOUT, 0.0, "", kernel_fault(KernelFault.TIMEOUT, "too long")), None, False),
        (None, None, False),
        (Outcome(Result.FAILED, 0.0, "", kernel_fault(KernelFault.CHECK, "wrong")), None, True),
        (Outcome(Result.PASSED, 1.0, ""), None, True),
        (Outcome(Result.FAILED, 0.0, ""), {"total": 3}, True),
    ],
)
def test_a_rule_of_answers_says_nothing_of_a_run_without_one(
    outcome: Outcome | None, answer: Json, asked: bool
) -> None:
    seen = on_record()
    seen = replace(seen, run=replace(seen.run, outcome=outcome, answer=answer))
    fails = rule("args.answer.contains('x')", "before_answer")  # on what is no text, and so it acts
    assert (in_run(fails, seen) is not None) is asked


@pytest.mark.parametrize("call", ["text", {"function": "f"}, {"function": {"name": "f", "arguments": "["}}])
def test_a_call_on_record_that_is_none_is_judged_as_it_was(call: Json) -> None:
    asked = step("model", {"model": "m"}, {"message": {"tool_calls": [call]}})
    assert in_run(rule("has(args.arguments)"), on_record(asked)) is not None


def test_a_call_that_was_refused_counts_as_none_that_was_made() -> None:
    made = step("act", {"tool": "f", "path": "tool/f/tool.py", "args": {}})
    refused = replace(made, fault=Fault("refused", "not so", "", "", Origin.HARNESS))
    second = rule("tool_calls > 0")
    assert in_run(second, on_record(refused, refused)) is None
    assert in_run(second, on_record(refused, made, made)) is not None
    assert in_run(rule("tool == 'f'"), on_record(refused)) is not None, "it is asked all the same"
