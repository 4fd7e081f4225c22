"""Holds a run to its rules, and to its supervisor: what is decided on each event is done here, and stands in the
record as a step.

The kernel's side of the channel, so that it holds for every harness and for black-box agents alike. What happens
inside the box without passing the channel is the sandbox's to hold back, not a rule's.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentos.daemon.requests.run_requests import CallCheck, Denied, Enforcer, RequestHandler, refusal
from agentos.domain import Json, KernelFault, Reply, Step, digest
from agentos.rules.document import Enforcement, RuleTrigger
from agentos.rules.facts import called
from agentos.rules.watching import RuleDecision, RunRules

if TYPE_CHECKING:
    from agentos.daemon.requests.supervision import Supervision

NODE, HAD = "rule", "rules"  # steps: what a rule did, and which rules the run had
_StepRecorder = Callable[[str, Json, Json, float], Step]


@dataclass
class RuleChecks:
    """One run's rules; implements ``EventChecks``. ``person`` gives who puts questions to people."""

    rules: RunRules
    step: _StepRecorder
    person: Callable[[], RequestHandler | None]
    effects: Callable[[str], Iterable[str]] = lambda tool: ()  # of a tool, for calls that nobody announced
    supervision: Supervision | None = None
    redact: Callable[[Json], Json] = lambda value: value  # as it is done to what is recorded
    _announced: Counter[str] = field(default_factory=Counter)
    _refused: Counter[str] = field(default_factory=Counter)
    _asked: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def _enforcer(self) -> Enforcer:
        return Enforcer(KernelFault.RULE, self.person)

    def begin(self) -> None:
        """Put on record which rules the run has."""
        if self.rules.rules:
            self.step(HAD, {rule.name: rule.digest for rule in self.rules.rules}, None, 0.0)

    def call(self, tool: str, args: Mapping[str, Json], effects: Iterable[str]) -> CallCheck:
        """Of a tool call that is about to be made. Raises RunEnds."""
        decision = self.rules.before_call(tool, args, effects)
        if not decision.acts:
            checked = CallCheck(args)
        else:
            event: dict[str, Json] = {"tool": tool, "args": args}
            if decision.enforce is Enforcement.ASK and decision.args != args:
                event["instead"] = decision.args  # what a person allows is what will be called
            advice = self._act(decision, RuleTrigger.BEFORE_CALL, event)
            if decision.enforce is Enforcement.ASK and not advice:
                self.rules.allowed(tool)
            checked = CallCheck(decision.args or args, refusal(advice) if advice else None)
        if self.supervision is not None:
            checked = self.supervision.call(tool, checked)
        if self.rules.rules:
            known = self._announced if checked.refused is None else self._refused
            with self._lock:
                known[self._key(tool, checked.args)] += 1
        return checked

    def saw(self, step: Step) -> None:
        """A step that the box sent, which is on record. Raises RunEnds where a rule is against what it tells of."""
        if self.supervision is not None:
            self.supervision.settle()
        if not self.rules.rules:
            return
        action = step.action
        if step.node != "act" or not isinstance(action, dict) or not isinstance(action.get("args"), dict):
            return
        tool, args = str(action.get("tool")), action["args"]
        announced = self._was_announced(tool, args, failed=step.fault is not None)
        if step.fault is None and not announced:
            self._late(tool, args)
        if self.rules.has(RuleTrigger.AFTER_CALL):
            decision = self.rules.after_call(tool, args, step.observation, ok=step.fault is None)
            self._act(decision, RuleTrigger.AFTER_CALL, {"tool": tool, "step": step.index})

    def model(self, model: str, body: Mapping[str, Any]) -> None:
        """Of a model call that is about to be made. Raises RunEnds and Denied."""
        if self.supervision is not None:
            self.supervision.before_model()
        if advice := self._act(
            self.rules.before_model(model, body), RuleTrigger.BEFORE_MODEL, {"model": model}
        ):
            raise _denied(advice)

    def asked_model(self, tokens: int, usd: float | None) -> None:
        """See ``EventChecks``."""
        self.rules.asked_model(tokens, usd)

    def reply(self, reply: Reply, *, black_box: bool) -> Mapping[str, Json]:
        """The reply as the run gets it: a black-box agent's calls are seen nowhere else. Raises RunEnds."""
        self.asked_model(reply.input_tokens + reply.output_tokens, reply.usd)
        if not black_box or not (self.supervision or self.rules.has(RuleTrigger.BEFORE_CALL)):
            return dict(reply.body)
        choices = [self._choice(choice) for choice in reply.body.get("choices") or ()]
        return {**reply.body, "choices": choices}

    def change(self, request: str, body: Mapping[str, Any]) -> None:
        """Of an ask that changes something outside the box. Raises RunEnds and Denied."""
        decision = self.rules.before_change(request, body)
        event = {
            "request": request,
            **{name: body[name] for name in ("method", "url", "agent") if name in body},
        }
        if advice := self._act(decision, RuleTrigger.BEFORE_CHANGE, event):
            raise _denied(advice)

    def answer(self, answer: Json, files: Iterable[str]) -> None:
        """Of the run's answer. Raises RunEnds."""
        self._act(
            self.rules.before_answer(answer, files),
            RuleTrigger.BEFORE_ANSWER,
            {"answer": digest(answer)[:16]},
        )

    def _act(self, decision: RuleDecision, on: RuleTrigger, event: Mapping[str, Json]) -> str:
        """Do what the strongest rule says; the advice where the event is not to happen. Raises RunEnds."""
        for number, act in enumerate(decision.acts):
            about = {"rule": act.rule.name, "digest": act.rule.digest, "on": on.value}
            seen: dict[str, Json] = {"reason": act.reason, "acted": number == 0}
            self.step(NODE, {**about, "enforce": act.rule.enforce.value, **event}, seen, 0.0)
        if not decision.acts or decision.enforce is Enforcement.REPLACE:
            return ""
        first = decision.acts[0]
        if decision.enforce is Enforcement.STOP:
            self._enforcer.stop(f"{first.rule.name} stopped the run: {first.reason}")
        if decision.enforce is Enforcement.ASK:
            shown = self.redact(dict(self._numbered(first.rule.name, event)))  # before it is cut
            self._enforcer.ask(f"{first.rule.name} asks: {first.reason}", shown)
        # what a person allows by one rule, another may still refuse: else a rule that asks would lift it
        acts = [act for act in decision.acts if act.rule.enforce in (Enforcement.REFUSE, Enforcement.REFLECT)]
        if not acts:
            return ""
        rule, reason = acts[0].rule, acts[0].reason
        again = " If it is right as it is, do it again." if rule.enforce is Enforcement.REFLECT else ""
        return f"{rule.name}: {reason} {rule.advice}{again}"

    def _numbered(self, rule: str, event: Mapping[str, Json]) -> Mapping[str, Json]:
        """The event, told from those equal to it that came before: else one "allow" would let all of them happen."""
        with self._lock:
            self._asked[key := digest([rule, dict(event)])] += 1
            number = self._asked[key]
        return event if number == 1 else {**event, "time": number}

    def _choice(self, choice: Any) -> Any:
        message = choice.get("message") if isinstance(choice, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(calls, list) or not calls:
            return choice
        kept, advice = [], []
        for call in calls:
            name, args = called(call)  # also of no call that we know: somebody may
            checked = self.call(name, args, self.effects(name))
            if checked.refused is not None:
                advice.append(str(checked.refused["fault"]["message"]))
            elif checked.args != args:
                kept.append(_rewritten(call, checked.args))
            else:
                kept.append(call)
        if not advice:
            return {**choice, "message": {**message, "tool_calls": kept}}
        before = message.get("content")
        if isinstance(before, list):  # parts, as some providers answer
            said: Json = [*before, {"type": "text", "text": "\n".join(advice)}]
        else:
            said = "\n".join(filter(None, [before, *advice]))
        changed = {**message, "content": said, "tool_calls": kept}
        if not kept:
            del changed["tool_calls"]
        return {**choice, "message": changed, **({} if kept else {"finish_reason": "stop"})}

    def _key(self, tool: str, args: Mapping[str, Json]) -> str:
        return digest(self.redact([tool, dict(args)]))

    def _was_announced(self, tool: str, args: Mapping[str, Json], *, failed: bool) -> bool:
        """Whether a call was let happen that no step told of yet. One that was refused lets none happen."""
        key = self._key(tool, args)
        with self._lock:
            known = self._refused if failed and self._refused[key] else self._announced
            there = known[key] > 0
            known[key] -= there
            if not known[key]:
                del known[key]
        return there

    def _late(self, tool: str, args: Mapping[str, Json]) -> None:
        """A call that was made without the kernel being asked: any rule against it ends the run."""
        decision = self.rules.before_call(tool, args, self.effects(tool))
        if decision.acts:
            act = decision.acts[0]
            about = {"rule": act.rule.name, "digest": act.rule.digest, "on": RuleTrigger.BEFORE_CALL.value}
            why = f"the call was made without asking, and {act.reason}"
            self.step(NODE, {**about, "enforce": "stop", "tool": tool}, {"reason": why, "acted": True}, 0.0)
            self._enforcer.stop(f"{act.rule.name} stopped the run: {why}")


def _rewritten(call: Any, args: Mapping[str, Json]) -> dict[str, Json]:
    shown = call if isinstance(call, dict) else {}
    function = shown.get("function")
    known = function if isinstance(function, dict) else {}
    return {**shown, "function": {**known, "arguments": json.dumps(dict(args))}}


def _denied(advice: str) -> Exception:
    return Denied("refused", advice)
