"""Holds a run to its rules and to its supervisor's settings: what is decided on each event is done here, and stands in
the record as a step, ``rule`` or ``supervisor``, that no box can write.

The kernel's side of the channel, so that it holds for every harness and for black-box agents alike. What happens
inside the box without passing the channel is the sandbox's to hold back, not a rule's. A trial is held to the same as
a live run.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from agentos.daemon.requests.overseer import Overseer, OverseerPlan
from agentos.daemon.requests.run_requests import CallCheck, Denied, RequestHandler, RunEnds
from agentos.domain import Json, KernelFault, Reply, Result, Step, digest, kernel_fault
from agentos.errors import AgentOSError
from agentos.messages import WireFault
from agentos.rules.document import Enforcement, RuleTrigger
from agentos.rules.facts import called
from agentos.rules.watching import RuleDecision, RunRules
from agentos.supervisor.watching import (
    MENDABLE,
    WARNED,
    Finding,
    Norms,
    RunWatch,
    SupervisorCheck,
    finding,
)
from agentos.supervisor.watching import NODE as SUPERVISOR

NODE, HAD = "rule", "rules"  # steps: what a rule did, and which rules the run had
_StepRecorder = Callable[[str, Json, Json, float], Step]
_ALLOW, _STOP = "allow", "stop"
_SHOWN_MAX = 1_500  # characters of an event that a person is shown


@dataclass(frozen=True, slots=True)
class Enforcer:
    """Does what was decided on a run: ends it, or asks a person. ``person`` gives who puts questions to people."""

    kind: KernelFault
    person: Callable[[], RequestHandler | None]

    def stop(self, why: str, result: Result = Result.FAILED, type: str = "") -> NoReturn:
        """Raises RunEnds."""
        raise RunEnds(result, kernel_fault(self.kind, why, type=type))

    def ask(self, why: str, event: Mapping[str, Json]) -> None:
        """Returns where a person allows it. Raises RunEnds: it waits for the answer, or the answer is no."""
        person = self.person()
        shown = json.dumps(event, ensure_ascii=False, sort_keys=True, default=str) if event else ""
        if len(shown) > _SHOWN_MAX:
            shown = f"{shown[:_SHOWN_MAX]}… ({len(shown):,} characters, {digest(event)[:16]})"
        if person is None:
            self.stop(f"{why} (and nobody can be asked here)")
        given = person.answer({"question": f"{why}\n{shown}", "choices": [_ALLOW, _STOP]})
        if given.get("answer") != _ALLOW:
            self.stop(f"{why} A person said: {given.get('answer')}")


def refusal(advice: str, type: str = "refused") -> dict[str, Json]:
    """What an agent gets in place of a call's result."""
    fault = WireFault(type=type, message=advice, where="", resource="").model_dump()
    return {"observation": {"ok": False}, "fault": fault}


# --- rules ---


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


# --- the supervisor: findings are read off the record ---


_HINT = (
    " Take another way, or give your answer with what you have. If the call is right as it is, make it again."
)
# What a stopped run ended by, in the words of those that end so by themselves.
_TYPES: Mapping[SupervisorCheck, str] = {
    SupervisorCheck.LOOP: "loop",
    SupervisorCheck.NO_PROGRESS: "loop",
    SupervisorCheck.SILENT_TOOL: "timeout",
}


@dataclass(frozen=True, slots=True)
class SupervisorPlan:
    """What one run is held to. ``acts`` has what is done by check; one that is not there is off."""

    norms: Norms
    acts: Mapping[SupervisorCheck, str]
    held_back: str = ""  # why nothing is done but told on the record: the task is one of those only looked at
    # checks that may not stop or ask, and why
    off: Mapping[SupervisorCheck, str] = field(default_factory=dict)
    overseer: OverseerPlan | None = None


class Supervision:
    """One run's. ``end`` decides the run from a thread of its own; thread-safe."""

    def __init__(
        self,
        plan: SupervisorPlan,
        step: Callable[[str, Json, Json, float], Step],
        enforcer: Enforcer,
        end: Callable[[BaseException], None],
    ) -> None:
        self._plan = plan
        self._step = step
        self._enforcer = enforcer
        self._end = end
        self.overseer: Overseer | None = None
        self._watch = RunWatch(plan.norms)
        self._lock = threading.Lock()
        self._acting = threading.RLock()  # of what several threads found, one is acted on at a time
        self._closed = False
        self._found: list[Finding] = []
        self._told: set[SupervisorCheck] = set()
        self._done: set[SupervisorCheck] = set()
        self._advice = ""
        self._timers: dict[str, list[threading.Timer]] = defaultdict(list)
        self._held: Counter[str] = Counter()  # calls that were refused, by tool, of which no step told yet

    def saw(self, step: Step) -> None:
        """A step of the run, as it is recorded; acts on nothing yet."""
        with self._lock:
            self._watch.saw(step)
            if self._watch.found:
                self._found += self._watch.take()
        if self.overseer is not None:
            self.overseer.saw(step)
        if self._timers and step.node == "act" and isinstance(step.action, dict):
            tool = str(step.action.get("tool"))
            with self._lock:
                held = step.fault is not None and self._held[tool] > 0
                self._held[tool] -= held
            if not held:  # another call of the tool may be under way
                self._answered(tool)

    def settle(self) -> None:
        """Do what is to be done about all that was found. Raises RunEnds."""
        while self._found:
            with self._acting:
                with self._lock:
                    one = self._found.pop(0) if self._found else None
                if one is not None and one.check in self._plan.acts and one.check not in self._done:
                    self._act(one)

    def before_model(self) -> None:
        """As ``settle``; and it is time for a model that looks on. Raises RunEnds."""
        if self.overseer is not None and (why := self.overseer.look()):
            with self._lock:
                self._found.append(finding(SupervisorCheck.OVERSEER, why))
        self.settle()

    def call(self, tool: str, checked: CallCheck) -> CallCheck:
        """Of a call that rules let happen: what becomes of it. Raises RunEnds."""
        with self._lock:
            self._watch.announced(tool, checked.args)
            if self._watch.found:
                self._found += self._watch.take()
        self.settle()
        with self._lock:
            advice, self._advice = ("", self._advice) if checked.refused else (self._advice, "")
            self._held[tool] += bool(advice or checked.refused)
        if advice:
            return CallCheck(checked.args, refusal(advice, WARNED))
        if checked.refused is None and SupervisorCheck.SILENT_TOOL in self._plan.acts:
            self._began(tool)
        return checked

    def close(self) -> None:
        """The run is over."""
        with self._lock:
            self._closed = True
            timers = [timer for waiting in self._timers.values() for timer in waiting]
            self._timers.clear()
        for timer in timers:
            timer.cancel()

    def _act(self, one: Finding) -> None:
        act, why = self._plan.acts[one.check], ""
        mends = one.check in MENDABLE and one.check not in self._told
        if self._plan.held_back:
            act, why = "note", self._plan.held_back
        elif act in ("ask", "stop") and one.check in self._plan.off:
            act, why = "note", self._plan.off[one.check]
        elif act in ("ask", "stop") and mends:
            act, why = "warn", f"it is told first; then: {act}"
        elif act == "warn" and one.check in self._told:
            return
        self._told.add(one.check)
        if act in ("ask", "stop"):
            self._done.add(one.check)
        action = {"check": one.check.value, "act": act}
        self._step(SUPERVISOR, action, {"reason": one.what, "detail": one.detail, "why": why}, 0.0)
        if act == "warn":
            with self._lock:
                self._advice = self._advice or f"{WARNED}: {one.what}.{_HINT}"
        elif act == "ask":  # without numbers: when it goes on, the question is the same
            self._enforcer.ask(f"The supervisor asks whether this run may go on: {one.what}.", {})
        elif act == "stop":
            result = Result.BUDGET if one.check is SupervisorCheck.COST else Result.FAILED
            reason = f"the supervisor stopped the run: {one.what} ({one.detail})"
            self._enforcer.stop(reason, result, _TYPES.get(one.check, ""))

    # --- a tool that does not answer --------------------------------------------------------------

    def _began(self, tool: str) -> None:
        wall_s = self._plan.norms.tools.get(tool)
        if wall_s is None:
            return
        timer = threading.Timer(wall_s, self._silent, (tool, wall_s))
        timer.daemon = True
        with self._lock:
            if not self._closed:
                self._timers[tool].append(timer)
                timer.start()

    def _answered(self, tool: str) -> None:
        with self._lock:
            timer = self._timers[tool].pop(0) if self._timers.get(tool) else None
        if timer is not None:
            timer.cancel()

    def _silent(self, tool: str, wall_s: float) -> None:
        with self._lock:
            self._found.append(
                finding(SupervisorCheck.SILENT_TOOL, f"{tool} has not answered for {wall_s:.0f} s")
            )
        try:
            self.settle()
        except (RunEnds, AgentOSError) as ends:
            self._end(ends)
