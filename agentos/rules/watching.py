"""One run under its rules: what has happened so far, and what its rules say of what is about to.

Says and counts only; who enforces it is the kernel's ``enforcement``. The same run sees the same decisions
in a replay: nothing here reads a clock, and what was spent is counted as it stands on record.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from agentos.domain import Json, Step, dataclass
from agentos.rules.document import STRENGTH, Enforcement, RuleTrigger, RunRule
from agentos.rules.facts import LIST_MAX, given, hosts, longest_list, paths, plain, uncovered
from agentos.rules.predicate import PredicateError, judging

# Of CPU, for one evaluation: the rule is not asked again in this run, and counts as one that failed. Not by a clock:
# on a busy machine every rule would come to that.
_SLOW_S = 0.5
_STEPS_MAX, _STEP_TEXT = 100, 500
_SEEN_MAX = 500
_OWN = frozenset({"rule", "rules"})  # steps that are about rules


@dataclass(frozen=True, slots=True)
class RuleAct:
    """A rule that holds. ``error`` says why it could not be evaluated, "" where it was."""

    rule: RunRule
    error: str = ""

    @property
    def reason(self) -> str:
        """One sentence for people."""
        why = f" (it could not be evaluated: {self.error})" if self.error else ""
        return f"{self.rule.description}{why}"


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """What the rules say of one event: all that hold, the strongest first, and the arguments to go on with."""

    acts: tuple[RuleAct, ...] = ()
    args: Mapping[str, Json] = field(default_factory=dict)

    @property
    def enforce(self) -> Enforcement | None:
        """The strongest; None where the event may go on as it is."""
        return self.acts[0].rule.enforce if self.acts else None


NOTHING = RuleDecision()


class RunRules:
    """The rules of one run. Thread-safe."""

    def __init__(self, rules: Sequence[RunRule], agent: str = "", goal: str = "") -> None:
        self.rules = tuple(rules)
        self._by_trigger = {on: [rule for rule in rules if rule.on is on] for on in RuleTrigger}
        self._names = {
            on: frozenset().union(*(rule.when.names for rule in found), frozenset())
            for on, found in self._by_trigger.items()
        }
        self._patterns = {
            on: frozenset(expression for rule in found for expression in rule.when.patterns)
            for on, found in self._by_trigger.items()
        }
        self._remembers = frozenset().union(*self._names.values()) & {"steps", "seen_hosts", "seen_paths"}
        self._about = {"agent": given(agent), "goal": given(goal)}
        self._calls: Counter[str] = Counter()
        self._model_calls = self._tokens = 0
        self._usd = 0.0
        self._steps: deque[dict[str, Json]] = deque(maxlen=_STEPS_MAX)
        self._seen: dict[str, dict[str, None]] = {"seen_hosts": {}, "seen_paths": {}}
        self._reflected: set[str] = set()
        self._slow: set[str] = set()
        self._lock = threading.Lock()

    def has(self, *triggers: RuleTrigger) -> bool:
        """Whether a rule is asked at one of these."""
        return any(self._by_trigger[on] for on in triggers)

    def before_call(
        self, tool: str, args: Mapping[str, Json], effects: Iterable[str], *, refused: bool = False
    ) -> RuleDecision:
        """Of a tool call. It counts as made unless it is held back, or was, by a rule that is not here (``refused``)."""
        event = {"tool": tool, "args": args, "effects": sorted(map(str, effects))}
        with self._lock:
            decision = self._decide(RuleTrigger.BEFORE_CALL, event, args)
            if decision.enforce in (Enforcement.REPLACE, Enforcement.ASK):
                decision = self._replaced(decision, event)
            if decision.enforce in (None, Enforcement.REPLACE) and not refused:
                self._calls[tool] += 1
        return decision if decision.args or not decision.acts else RuleDecision(decision.acts, args)

    def allowed(self, tool: str) -> None:
        """A person let happen what was asked about."""
        with self._lock:
            self._calls[tool] += 1

    def after_call(self, tool: str, args: Mapping[str, Json], result: Json, *, ok: bool) -> RuleDecision:
        """Of a call's result."""
        with self._lock:
            return self._decide(RuleTrigger.AFTER_CALL, {"tool": tool, "args": args, "ok": ok}, result)

    def before_model(self, model: str, body: Mapping[str, Any]) -> RuleDecision:
        """Of a model call; ``text`` is what the newest message says, the ones before were judged before."""
        messages = body.get("messages")
        newest = messages[-1] if isinstance(messages, list) and messages else {}
        with self._lock:
            return self._decide(RuleTrigger.BEFORE_MODEL, {"model": model}, newest)

    def before_change(self, request: str, body: Mapping[str, Any]) -> RuleDecision:
        """Of what the run asks for that changes something outside its box: fetch, remember, delegate."""
        with self._lock:
            return self._decide(RuleTrigger.BEFORE_CHANGE, {"request": request, "args": body}, body)

    def before_answer(self, answer: Json, files: Iterable[str] = ()) -> RuleDecision:
        """Of the run's answer; ``args`` holds it, and the names of the files it left."""
        names = sorted(files)
        with self._lock:
            event: dict[str, Json] = {"args": {"answer": answer, "files": names}}
            return self._decide(RuleTrigger.BEFORE_ANSWER, event, [answer, names])

    def asked_model(self, tokens: int, usd: float | None) -> None:
        """A model call was made, or served from the record: a replay counts alike."""
        with self._lock:
            self._model_calls += 1
            self._tokens += tokens
            self._usd += usd or 0.0

    def saw(self, step: Step) -> None:
        """A step of the run, as it is recorded."""
        if not self._remembers or step.node in _OWN:
            return
        action = step.action if isinstance(step.action, Mapping) else {}
        try:
            text = str(given(plain(step.action)[: 16 * _STEP_TEXT]))
        except PredicateError:
            text = ""
        with self._lock:
            self._steps.append(
                {
                    "node": step.node,
                    "tool": given(str(action.get("tool", ""))),
                    "text": uncovered(text[:_STEP_TEXT])[:_STEP_TEXT],
                    "ok": step.fault is None,
                }
            )
            for name, found in (("seen_hosts", hosts), ("seen_paths", paths)):
                if name in self._remembers:
                    self._remember(name, found(text, len(text)))  # however many: a run may name them

    def _remember(self, name: str, found: Sequence[str]) -> None:
        seen = self._seen[name]
        seen.update(dict.fromkeys(map(str, map(given, found))))
        while len(seen) > _SEEN_MAX:
            del seen[next(iter(seen))]

    def _replaced(self, decision: RuleDecision, event: Mapping[str, Json]) -> RuleDecision:
        """With the arguments that stand in their place, which the other rules have to let pass as well.

        A question to a person stays one: what is allowed then is the call with these arguments.
        """
        writes = [act for act in decision.acts if act.rule.enforce is Enforcement.REPLACE]
        if not writes:
            return decision
        args = dict(event["args"])
        for act in writes:
            args |= act.rule.replace
        again = self._decide(RuleTrigger.BEFORE_CALL, {**event, "args": args}, args)
        stronger = [act for act in again.acts if STRENGTH[act.rule.enforce] > STRENGTH[Enforcement.REPLACE]]
        if decision.enforce is Enforcement.ASK:
            held = {act.rule.name for act in decision.acts}
            more = [act for act in stronger if act.rule.name not in held]
            stronger = sorted([*decision.acts, *more], key=lambda act: -STRENGTH[act.rule.enforce])
        return RuleDecision(tuple(stronger) or decision.acts, args)

    def _decide(self, on: RuleTrigger, event: Mapping[str, Json], content: Json) -> RuleDecision:
        rules = self._by_trigger[on]
        if not rules:
            return NOTHING
        try:
            facts = self._facts(self._names[on], event, content)
            with judging(facts, self._patterns[on]) as activation:
                acts = self._acts(rules, event, activation, "")
        except PredicateError as failed:
            acts = self._acts(rules, event, None, str(failed))
        acts.sort(key=lambda act: -STRENGTH[act.rule.enforce])
        self._reflected.update(act.rule.name for act in acts[:1] if act.rule.enforce is Enforcement.REFLECT)
        return RuleDecision(tuple(acts)) if acts else NOTHING

    def _acts(
        self, rules: Sequence[RunRule], event: Mapping[str, Json], activation: Any, why: str
    ) -> list[RuleAct]:
        """The rules that hold; ``why`` none of them can be evaluated, "" where they can."""
        walks = any(rule.when.loops for rule in rules)
        long = walks and not why and longest_list(event.get("args", {})) > LIST_MAX
        acts = []
        for rule in rules:
            error = why
            if long and rule.when.loops:
                error = f"a list of the call has more than {LIST_MAX:,} entries, which no rule walks"
            holds, error = self._asked(rule, activation, error)
            if holds and not self._was_reflected(rule):
                acts.append(RuleAct(rule, error))
        return acts

    def _was_reflected(self, rule: RunRule) -> bool:
        return rule.enforce is Enforcement.REFLECT and rule.name in self._reflected

    def _asked(self, rule: RunRule, facts: Any, error: str) -> tuple[bool, str]:
        """Whether it holds, and why it could not be evaluated."""
        if rule.name in self._slow:
            error = f"it took more than {_SLOW_S:g} s of CPU before"
        if not error:
            began = time.thread_time()
            try:
                return rule.when.holds(facts), ""
            except PredicateError as failed:
                error = str(failed)
            finally:
                if time.thread_time() - began > _SLOW_S:
                    self._slow.add(rule.name)
        return rule.acts_on_error, error

    def _facts(self, names: frozenset[str], event: Mapping[str, Json], content: Json) -> dict[str, Json]:
        """The variables that the rules of this event ask for. Raises PredicateError."""
        facts: dict[str, Json] = {name: _EMPTY.get(name, "") for name in names}
        if names & {"text", "hosts", "paths"}:
            said = plain(content)
            shown = uncovered(said)
            facts["text"] = shown
            # not folded: a host that looks like one that is allowed is another
            facts["hosts"] = hosts(f"{given(said)}\n{shown}") if "hosts" in names else []
            facts["paths"] = paths(shown) if "paths" in names else []
        facts |= {name: given(value) for name, value in event.items() if name in names}
        facts |= {name: value for name, value in self._about.items() if name in names}
        counts: dict[str, Json] = {
            "calls": dict(self._calls),
            "tool_calls": self._calls.total(),
            "model_calls": self._model_calls,
            "tokens": self._tokens,
            "usd": self._usd,
        }
        facts |= {name: value for name, value in counts.items() if name in names}
        if "steps" in names:
            facts["steps"] = list(self._steps)
        facts |= {name: list(seen) for name, seen in self._seen.items() if name in names}
        return facts


_EMPTY: Mapping[str, Json] = {"args": {}, "effects": [], "hosts": [], "paths": [], "ok": True}
