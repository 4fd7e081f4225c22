"""One run under the supervisor's eyes: what it finds in the steps as they arrive, without a model.

Finds only; what is done about it is the kernel's ``supervision``. It reads nothing but steps, and no clock but the
times that the kernel wrote into them: so a recorded run can be looked at just as a live one.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from agentos.domain import Fault, Json, Step
from agentos.evolver.find.signals import changed_names, fault_in, tool_of

NODE = "supervisor"  # of its steps
WARNED = "supervisor"  # type of the fault by which it tells an agent

LOOP_ALIKE = 6  # repetitions of the same calls with the same results
LOOP_VARIED = 10  # of calls that differ in numbers and quoted texts alone, with the same results
LOOP_BLIND = 30  # of the same call, whatever it is said to have given: a box may make up results
PERIODS = range(1, 5)  # calls in a repeating pattern
STALE_CALLS = 20  # in a row, without a new result or a change
REFUSALS = 5  # in a row
CHECKPOINTS = (6, 12, 24)  # calls after which a run is held against those before it

_REFUSED = frozenset({"refused", "denied", "effect", "not_allowed", WARNED})
_READS = re.compile(
    r"(?:^|[_\W])(?:check|count|fetch|find|get|grep|list|look\w*|query|read|search|view)", re.I
)
_VARIES = re.compile(r"\d+|\s+")


class SupervisorCheck(StrEnum):
    """What a run can look lost by."""

    LOOP = "loop"
    NO_PROGRESS = "no_progress"
    REFUSALS = "refusals"
    COST = "cost"
    SILENT_TOOL = "silent_tool"
    HOPELESS = "hopeless"
    OVERSEER = "overseer"  # a model that looks on says so


# What an agent can mend by itself: it is told before anything else is done.
MENDABLE = frozenset({SupervisorCheck.LOOP, SupervisorCheck.NO_PROGRESS, SupervisorCheck.REFUSALS})


@dataclass(frozen=True, slots=True)
class Finding:
    """``what`` is one sentence, the same each time; ``detail`` has the numbers."""

    check: SupervisorCheck
    what: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run used: steps, model calls, tokens, seconds. As a limit, 0 is none."""

    steps: float = 0.0
    calls: float = 0.0
    tokens: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Norms:
    """What is known of runs like this one. The defaults know nothing, and then nothing is held against it."""

    usage: RunUsage = field(default_factory=RunUsage)  # beyond which a run is far from those that passed
    tools: Mapping[str, float] = field(default_factory=dict)  # seconds, by tool, beyond which one is silent
    # by checkpoint: the trouble from which on at most so large a share of runs passed
    hopeless: Mapping[int, tuple[float, float]] = field(default_factory=dict)


class RunWatch:
    """Takes the steps of one run; ``take`` gives what was found since. Not thread-safe."""

    def __init__(self, norms: Norms | None = None) -> None:
        self.used = RunUsage()
        self.moves = 0  # calls, or replies of a model where no call is seen
        self._norms = norms or Norms()
        self.found: list[Finding] = []
        self._alike, self._varied, self._blind = _Repeats(), _Repeats(), _Repeats()
        self._seen: set[bytes] = set()
        self._stale = self._refused = self._failed = self._known = 0
        self._acts = 0
        self._warnings = 0  # of the supervisor, that have not come back as the refusal of a call
        self._first: datetime | None = None
        self._once: set[SupervisorCheck] = set()

    def take(self) -> list[Finding]:
        """What was found since it was asked last."""
        found, self.found = self.found, []
        return found

    def trouble(self) -> float:
        """Share of the calls so far that failed, and of those that gave nothing new: 0 to 2."""
        return (self._failed + self._known) / self.moves if self.moves else 0.0

    def saw(self, step: Step) -> None:
        """One step, as it stands on record."""
        if step.node == NODE:
            self._warnings += isinstance(step.action, dict) and step.action.get("act") == "warn"
            return
        self._measure(step)
        if step.node == "act":
            self._acts += 1
            self._act(step)
        elif step.node == "model" and not self._acts:
            self._reply(step)

    def announced(self, tool: str, args: Mapping[str, Json]) -> None:
        """A call that the kernel was asked for: of these a box can hide none."""
        if self._blind.add(_key(tool, args)) >= LOOP_BLIND:
            self._blind = _Repeats()
            self._find(SupervisorCheck.LOOP, f"{LOOP_BLIND} equal calls of {tool} in a row")

    def _act(self, step: Step) -> None:
        fault = fault_in(step)
        if self._warnings and fault is not None and fault.type == WARNED:
            self._warnings -= 1  # a tool that says the same of itself is counted
            return
        tool = tool_of(step)
        args = step.action.get("args") if isinstance(step.action, dict) else None
        result = _VARIES.sub("#", fault.message) if fault else step.observation
        refused = fault is not None and _is_refusal(fault)
        self._refused = self._refused + 1 if refused else 0
        changed = fault is None and any(changed_names(step))
        call, gave = _key(tool, args), _key(tool, result)
        is_new = fault is None and (gave not in self._seen or (changed and call not in self._seen))
        self._seen |= {call, gave}
        self._moved(failed=fault is not None, new=is_new)
        alike = self._alike.add(call + gave)
        varies = fault is not None or (not changed and _READS.search(tool) is not None)
        varied = self._varied.add(_key(tool, _VARIES.sub("#", repr(args))) + gave if varies else call + gave)
        if alike >= LOOP_ALIKE or varied >= LOOP_VARIED:
            self._alike, self._varied = _Repeats(), _Repeats()
            self._find(
                SupervisorCheck.LOOP, f"{max(alike, varied)} times the same, last {tool}", new_start=True
            )
        if self._refused >= REFUSALS:
            self._refused = 0
            self._find(SupervisorCheck.REFUSALS, f"{REFUSALS} refusals in a row, the last by {tool}")

    def _reply(self, step: Step) -> None:
        """Of an agent whose calls are seen in its model's replies alone."""
        said = step.observation.get("message") if isinstance(step.observation, dict) else None
        if not isinstance(said, dict):
            return
        calls = [_function(call) for call in said.get("tool_calls") or ()]
        key = _key("", calls or said.get("content"))
        self._moved(failed=False, new=key not in self._seen)
        self._seen.add(key)
        if self._alike.add(key) >= 2 * LOOP_ALIKE:  # what the calls gave is not seen
            self._alike = _Repeats()
            self._find(SupervisorCheck.LOOP, f"{2 * LOOP_ALIKE} equal replies of its model", new_start=True)

    def _moved(self, *, failed: bool, new: bool) -> None:
        self.moves += 1
        self._failed += failed
        self._known += not new
        self._stale = 0 if new else self._stale + 1
        if self._stale >= STALE_CALLS:
            self._stale = 0
            self._find(SupervisorCheck.NO_PROGRESS, f"{STALE_CALLS} calls gave nothing new")
        if (known := self._norms.hopeless.get(self.moves)) is not None and self.trouble() >= known[0]:
            self._find_once(
                SupervisorCheck.HOPELESS,
                f"trouble {self.trouble():.2f} after {self.moves} calls; of such runs at most {known[1]:.0%} pass",
            )

    def _measure(self, step: Step) -> None:
        ended = step.started_at + timedelta(milliseconds=min(step.duration_ms, 1e9))  # by the kernel's clock
        self._first = self._first or ended
        usage = step.observation.get("usage") if isinstance(step.observation, dict) else None
        own = usage if step.node == "model" and isinstance(usage, dict) else {}
        self.used = RunUsage(
            self.used.steps + 1,
            self.used.calls + (step.node == "model"),
            self.used.tokens + sum(int(own.get(name) or 0) for name in ("input_tokens", "output_tokens")),
            (ended - self._first).total_seconds(),
        )
        for name in ("steps", "calls", "tokens", "seconds"):
            used, most = getattr(self.used, name), getattr(self._norms.usage, name)
            if 0 < most < used:
                self._find_once(SupervisorCheck.COST, f"{used:,.0f} {name}, more than {most:,.0f}")

    def _find_once(self, check: SupervisorCheck, detail: str) -> None:
        if check not in self._once:
            self._once.add(check)
            self._find(check, detail)

    def _find(self, check: SupervisorCheck, detail: str, *, new_start: bool = False) -> None:
        if new_start:  # one finding for one cause
            self._stale = 0
        self.found.append(Finding(check, _WHAT[check], detail))


_WHAT: Mapping[SupervisorCheck, str] = {
    SupervisorCheck.LOOP: "the same calls give the same results again and again",
    SupervisorCheck.NO_PROGRESS: "many calls in a row have brought nothing new",
    SupervisorCheck.REFUSALS: "one call after the other is refused",
    SupervisorCheck.COST: "it has used far more than such work took",
    SupervisorCheck.SILENT_TOOL: "a tool takes far longer than it ever did",
    SupervisorCheck.HOPELESS: "runs that began like this one hardly ever passed",
    SupervisorCheck.OVERSEER: "a model that looks on calls it lost",
}


def finding(check: SupervisorCheck, detail: str) -> Finding:
    """One that is not read off the steps."""
    return Finding(check, _WHAT[check], detail)


class _Repeats:
    """How often the newest pattern of keys stands there in a row, the longest of all periods; O(periods) a key."""

    def __init__(self) -> None:
        self._last: deque[bytes] = deque(maxlen=PERIODS[-1])
        self._equal: Counter[int] = Counter()  # by period: keys in a row that equal the one so many before

    def add(self, key: bytes) -> int:
        longest = 1
        for period in PERIODS:
            alike = len(self._last) >= period and self._last[-period] == key
            self._equal[period] = self._equal[period] + 1 if alike else 0
            longest = max(longest, 1 + self._equal[period] // period)
        self._last.append(key)
        return longest


def _key(tool: str, value: Any) -> bytes:
    return blake2b(f"{tool} {value!r}".encode("utf-8", "replace"), digest_size=12).digest()


def _function(call: Any) -> Any:
    return call.get("function") if isinstance(call, dict) else call


def _is_refusal(fault: Fault) -> bool:
    return fault.type in _REFUSED
