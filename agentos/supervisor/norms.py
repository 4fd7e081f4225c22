"""What runs like this one took, and how those that began like it ended: fitted on past runs, without a model.

The largest of the runs that passed, and more; and for each checkpoint the level of trouble (``RunWatch.trouble``) from which on
hardly any run passed: the least level that past runs bound, so it is an isotonic estimate with one step.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentos.domain import Json, Result, Run, Step
from agentos.evolver.find.signals import tool_of
from agentos.supervisor.watching import CHECKPOINTS, Norms, RunUsage, RunWatch

RUNS_MIN = 8  # passed runs of the same work, before one can be far beyond them
AGENT_RUNS_MIN = 30  # of an agent's, whatever the work
TOOL_CALLS_MIN = 20
HOPELESS_RUNS_MIN = 20  # in trouble at a checkpoint
HOPELESS_MAX = 0.1  # upper bound of the share of those that pass
# How far beyond the largest of n passed runs is far: 1 + 16 / n times, so three times of 8 and half as much again of 30.
# That the next one passes and is larger at all has the chance 1 / (n + 1).
_FAR = 16.0
_SILENT, _SILENT_MIN_S = 5.0, 20.0  # times the longest call of a tool; and never less than this
_Z = 1.2816  # of a one-sided bound of 90 %


@dataclass(frozen=True, slots=True)
class PastRun:
    """A finished run of an agent, with its steps."""

    run: Run
    agent: str
    steps: Sequence[Step]

    @property
    def passed(self) -> bool:
        """Whether it counts as a success."""
        return self.run.outcome is not None and self.run.outcome.result is Result.PASSED


@dataclass(frozen=True, slots=True)
class PastNorms:
    """The norms of all work that is known."""

    work: Mapping[str, RunUsage] = field(default_factory=dict)  # by task key
    agents: Mapping[str, RunUsage] = field(default_factory=dict)
    tools: Mapping[str, float] = field(default_factory=dict)
    hopeless: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def of(self, task_key: str, agent: str) -> Norms:
        """Those of one run."""
        usage = self.work.get(task_key) or self.agents.get(agent) or RunUsage()
        return Norms(usage, self.tools, self.hopeless)

    def document(self) -> dict[str, Json]:
        """As JSON."""
        return asdict(self)


def read_norms(document: Mapping[str, Any]) -> PastNorms:
    """What ``PastNorms.document`` wrote."""
    return PastNorms(
        {name: RunUsage(**usage) for name, usage in document["work"].items()},
        {name: RunUsage(**usage) for name, usage in document["agents"].items()},
        dict(document["tools"]),
        {int(place): (float(level), float(most)) for place, (level, most) in document["hopeless"].items()},
    )


def fit(past: Iterable[PastRun]) -> PastNorms:
    """The norms of these runs."""
    work: dict[str, list[RunUsage]] = defaultdict(list)
    agents: dict[str, list[RunUsage]] = defaultdict(list)
    tools: dict[str, list[float]] = defaultdict(list)
    trouble: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for one in past:
        watch = RunWatch()
        for step in one.steps:
            before = watch.moves
            watch.saw(step)
            if watch.moves != before and watch.moves in CHECKPOINTS:
                trouble[watch.moves].append((watch.trouble(), one.passed))
            if step.node == "act":
                tools[tool_of(step)].append(step.duration_ms / 1000)
        if one.passed and not one.run.resumes:  # what goes on from a record takes less
            work[one.run.task_key].append(watch.used)
            agents[one.agent].append(watch.used)
    return PastNorms(
        {key: _far(used) for key, used in work.items() if len(used) >= RUNS_MIN},
        {agent: _far(used) for agent, used in agents.items() if len(used) >= AGENT_RUNS_MIN},
        {
            tool: max(_SILENT_MIN_S, _SILENT * max(took))
            for tool, took in tools.items()
            if len(took) >= TOOL_CALLS_MIN
        },
        {place: found for place, seen in trouble.items() if (found := _hopeless(seen)) is not None},
    )


def _far(used: Sequence[RunUsage]) -> RunUsage:
    def beyond(values: Iterable[float], least: float) -> float:
        return max(least, (1 + _FAR / len(used)) * max(values))

    return RunUsage(
        beyond((one.steps for one in used), 20),
        beyond((one.calls for one in used), 5),
        beyond((one.tokens for one in used), 2_000),
        beyond((one.seconds for one in used), 10),
    )


def _hopeless(seen: Sequence[tuple[float, bool]]) -> tuple[float, float] | None:
    """The least trouble from which on the share that passes is at most ``HOPELESS_MAX`` with 90 % confidence."""
    found = None
    passed = 0
    ordered = sorted(seen, reverse=True)
    for count, (level, ended_well) in enumerate(ordered, start=1):
        passed += ended_well
        is_last_of_level = count == len(ordered) or ordered[count][0] < level
        bounds = is_last_of_level and level > 0 and count >= HOPELESS_RUNS_MIN
        if bounds and (most := _upper(passed, count)) <= HOPELESS_MAX:
            found = (level, most)
    return found


def _upper(passed: int, count: int) -> float:
    """Wilson's upper bound of a share."""
    share, square = passed / count, _Z * _Z
    middle = share + square / (2 * count)
    spread = _Z * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return (middle + spread) / (1 + square / count)
