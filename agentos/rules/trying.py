"""What a rule would have done: with its own examples, and in runs that are on record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agentos.domain import WRONG_ANSWER, Json, Result, Run, Snapshot, Step, dataclass, kind_of
from agentos.ports import ObservedRun
from agentos.rules.document import RunRule
from agentos.rules.facts import called, given
from agentos.rules.watching import RuleDecision, RunRules

# What an example may say, and of which kind that is.
_ANYTHING: tuple[Any, str] = (object, "anything")
_FACTS: Mapping[str, tuple[Any, str]] = {
    "tool": (str, "a text"),
    "args": (Mapping, "a table"),
    "effects": (list, "a list"),
    "result": _ANYTHING,
    "ok": (bool, "true or false"),
    "request": (str, "a text"),
    "model": (str, "a text"),
    "answer": _ANYTHING,
    "files": (list, "a list"),
    "before": (list, "a list of calls"),
    "agent": (str, "a text"),
    "goal": (str, "a text"),
    "tokens": (int, "a whole number"),
    "usd": (int | float, "a number"),
}
_REFUSED = "refused"  # the fault of a call that a rule held back
EffectsAt = Callable[[Snapshot, str], Sequence[str]]  # of the tool at a registry path, as a run had it


@dataclass(frozen=True, slots=True)
class RuleHitInRun:
    """The first time that a rule would have acted in a run."""

    step: int | None  # None: at its answer
    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class ExampleFault:
    """An example that came out otherwise than its rule says."""

    wanted: str  # stops, passes
    number: int  # from 1
    example: Mapping[str, Json]
    why: str


def faults_of(rule: RunRule) -> list[ExampleFault]:
    """The examples of the rule that do not hold."""
    found = []
    for wanted, examples in (("stops", rule.stops), ("passes", rule.passes)):
        for number, example in enumerate(examples, 1):
            unknown = sorted(set(example) - _FACTS.keys())
            told = (
                f"'{unknown[0]}' is no fact of an example; there are {', '.join(sorted(_FACTS))}"
                if unknown
                else ""
            )
            if why := told or _wrong_kind(example):
                found.append(ExampleFault(wanted, number, example, why))
                continue
            decision = example_decision(rule, example)
            if bool(decision.acts) is not (wanted == "stops"):
                why = decision.acts[0].reason if decision.acts else "the rule lets it pass"
                found.append(ExampleFault(wanted, number, example, why))
    return found


def _wrong_kind(facts: Mapping[str, Any]) -> str:
    """Which fact of an example, or of a call before it, is of another kind than it has to be; "" where none is."""
    for name, value in facts.items():
        kind, said = _FACTS.get(name, _ANYTHING)
        if not isinstance(value, kind):
            return f"'{name}' of an example is {said}"
    if not all(isinstance(name, str) for name in facts.get("files", ())):
        return "'files' of an example is a list of names"
    calls = facts.get("before", ())
    if not all(isinstance(call, Mapping) for call in calls):
        return "'before' of an example is a list of calls"
    return next((why for call in calls if (why := _wrong_kind(call))), "")


def example_decision(rule: RunRule, example: Mapping[str, Json]) -> RuleDecision:
    """What the rule says of an example. ``before`` are calls that were made before it."""
    rules = RunRules([rule], str(example.get("agent", "")), str(example.get("goal", "")))
    if "tokens" in example or "usd" in example:
        rules.asked_model(int(example.get("tokens", 0)), float(given(example.get("usd", 0.0))))
    for index, call in enumerate(example.get("before", [])):
        rules.before_call(str(call.get("tool", "")), call.get("args", {}), call.get("effects", []))
        rules.saw(_told(index, call))
    return _at(rules, rule, example)


def _at(rules: RunRules, rule: RunRule, example: Mapping[str, Any]) -> RuleDecision:
    tool, args = str(example.get("tool", "")), example.get("args", {})
    match rule.on.value:
        case "before_call":
            return rules.before_call(tool, args, example.get("effects", []))
        case "after_call":
            return rules.after_call(tool, args, example.get("result"), ok=bool(example.get("ok", True)))
        case "before_model":
            return rules.before_model(str(example.get("model", "")), {"messages": [args]})
        case "before_change":
            return rules.before_change(str(example.get("request", "fetch")), args)
        case _:
            return rules.before_answer(example.get("answer"), example.get("files", []))


def in_run(rule: RunRule, seen: ObservedRun, effects: EffectsAt) -> RuleHitInRun | None:
    """The first act of the rule in a run on record; None where it would have let all pass.

    What a model was asked is not on record word for word, so rules at ``before_model`` see its name alone.
    """
    run, steps = seen.run, seen.steps
    rules = RunRules([rule], seen.task.agent, seen.task.goal)
    calls_seen = any(step.node == "act" for step in steps)
    hits: list[tuple[int | None, str]] = []
    for step in steps:
        for decision in _decisions(rules, step, partial(effects, run.snapshot), black_box=not calls_seen):
            hits += [(step.index, act.reason) for act in decision.acts]
        rules.saw(step)
    if _answered(run):
        decision = rules.before_answer(run.answer, [file.path for file in run.outputs])
        hits += [(None, act.reason) for act in decision.acts]
    return RuleHitInRun(hits[0][0], hits[0][1], len(hits)) if hits else None


def _answered(run: Run) -> bool:
    """Whether it came to an answer: else no rule was asked about one."""
    outcome = run.outcome
    wrong = outcome is not None and kind_of(outcome.fault) in WRONG_ANSWER
    return run.answer is not None or wrong or (outcome is not None and outcome.result is Result.PASSED)


def _decisions(
    rules: RunRules, step: Step, effects: Callable[[str], Sequence[str]], *, black_box: bool
) -> Iterator[RuleDecision]:
    action = step.action if isinstance(step.action, dict) else {}
    if step.node == "act" and isinstance(action.get("args"), dict):
        tool = str(action.get("tool"))
        refused = step.fault is not None and step.fault.type == _REFUSED
        yield rules.before_call(tool, action["args"], effects(str(action.get("path", ""))), refused=refused)
        yield rules.after_call(tool, action["args"], step.observation, ok=step.fault is None)
    elif step.node == "model":
        yield rules.before_model(str(action.get("model", "")), {})
        seen = step.observation if isinstance(step.observation, dict) else {}
        if "error" in seen:  # nothing came, so nothing is judged or counted
            return
        usage = seen.get("usage") or {}
        rules.asked_model(usage.get("input_tokens", 0) + usage.get("output_tokens", 0), seen.get("usd"))
        message = seen.get("message") or {}
        for call in (message.get("tool_calls") or ()) if black_box else ():
            yield rules.before_call(*called(call), ())
    elif step.node in ("fetch", "remember", "delegate"):
        yield rules.before_change(step.node, action)


def _told(index: int, call: Mapping[str, Any]) -> Step:
    action = {"tool": call.get("tool", ""), "args": call.get("args", {})}
    return Step("", index, "act", action, call.get("result"), None, datetime.fromtimestamp(0, UTC), 0.0)
