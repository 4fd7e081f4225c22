"""Does what the supervisor's settings say where a run looks lost: a message to its agent, a question to a person, its end.

The kernel's side: findings are read off the record, acts are enforced where rules are (``rule_checks``), and each
is a step ``supervisor`` that no box can write. A trial is supervised just as a live run is.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentos.daemon.requests.overseer import Overseer, OverseerPlan
from agentos.daemon.requests.run_requests import CallCheck, Enforcer, RunEnds, refusal
from agentos.domain import Json, Result, Step
from agentos.errors import AgentOSError
from agentos.supervisor.watching import (
    MENDABLE,
    NODE,
    WARNED,
    Finding,
    Norms,
    RunWatch,
    SupervisorCheck,
    finding,
)

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
        self._step(NODE, action, {"reason": one.what, "detail": one.detail, "why": why}, 0.0)
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
