"""Signals: cheap attributes of a trajectory, computed without a model, in one pass over its steps.

They mark a run as worth looking at; they are no measure of quality. The rules follow "Signals"
(arXiv 2604.00356) with two changes learnt from its misfires: a failure is read from the step's
structured fault, never from quoted text, and calls of tools that only read do not count as drift.

``deviation`` compares what a run changed with what other runs of its task changed, and looks at no outcome. Of all
that was measured (docs/understand/signals.md) it tells most of failure, and mostly of the task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import fmean
from typing import Any

from agentos.domain import Json, Step, canonical
from agentos.evolver.find.step_failures import fault_in, tool_of

LOOP_MIN = 3  # equal calls in a row
CYCLE_MIN = 3  # repetitions of a pattern of calls
CYCLE_PERIODS = range(2, 6)
FORGOTTEN_MIN = 3  # calls from one to its equal
STAGNANT_MIN = 3  # equal observations in a row, of differing calls

OTHERS_MAX = 20  # newest runs of the task that a run is compared with

_EXHAUSTION = frozenset({"timeout", "memory", "limit", "budget", "signal", "killed"})
_CHANGES = re.compile(
    r"(?:^|[_\W])(?:add|apply|append|book|buy|cancel|commit|create|delete|edit|exchange|insert|modify|move"
    r"|multiedit|notebookedit|patch|post|put|remove|rename|replace|return|send|set|submit|update|write)",
    re.IGNORECASE,
)
_READS = frozenset({"view", "read", "open", "list"})  # commands of an editor that does both
_PATHS = ("path", "file_path", "filename", "file", "notebook_path")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_SHELL = re.compile(
    r"\bsed -i\b[^|;&]*?(\S+)\s*$|>>?\s*([\w./-]+\.\w+)|\b(?:tee|patch)\s+(?:-a\s+)?(\S+)", re.M
)


class Signal(StrEnum):
    """What a trajectory shows."""

    FAILURE = "failure"  # a step failed by its own account
    RETRY_LOOP = "retry_loop"  # the same call, again and again
    OSCILLATION = "oscillation"  # a short pattern of calls, again and again
    DRIFT = "drift"  # the same tool with ever other arguments, each failing
    STAGNATION = "stagnation"  # differing calls, the same observation
    EXHAUSTION = "exhaustion"  # a limit was reached
    FORGOTTEN = "forgotten"  # the same call with the same result once more, long after the first


@dataclass(frozen=True, slots=True)
class SignalHit:
    """One signal, the step that shows it, and the step that it began with."""

    signal: Signal
    step: int
    since: int
    detail: str = ""


def read_signals(steps: Iterable[Step]) -> tuple[SignalHit, ...]:
    """All signals of one trajectory: faults in order, then loops and stagnation."""
    found: list[SignalHit] = []
    acts: list[Step] = []
    for step in steps:
        fault = fault_in(step)
        if fault is not None:
            kind = Signal.EXHAUSTION if fault.type in _EXHAUSTION else Signal.FAILURE
            found.append(SignalHit(kind, step.index, step.index, fault.type))
        if step.node == "act":
            acts.append(step)
    if len(acts) >= LOOP_MIN:
        loops = _loops(acts)
        found += loops
        found += _stagnation(acts)
        found += [] if loops else _forgotten(acts)
    return tuple(found)


def _loops(acts: Sequence[Step]) -> list[SignalHit]:
    """Retry loops, then drift, then oscillation; a later kind only where no earlier one covers it."""
    found: list[SignalHit] = []
    start = 0
    for position in range(1, len(acts) + 1):
        if position < len(acts) and tool_of(acts[position]) == tool_of(acts[start]):
            continue
        streak = acts[start:position]
        start = position
        if len(streak) < LOOP_MIN:
            continue
        if all(step.action == streak[0].action for step in streak):
            found.append(_sign(Signal.RETRY_LOOP, streak, f"{len(streak)} equal calls"))
        elif all(fault_in(step) is not None for step in streak):
            found.append(_sign(Signal.DRIFT, streak, f"{len(streak)} calls, none worked"))
    return found or _oscillation(acts)


def _oscillation(acts: Sequence[Step]) -> list[SignalHit]:
    tools = [tool_of(step) for step in acts]
    for period in CYCLE_PERIODS:
        length = period * CYCLE_MIN
        for start in range(len(tools) - length + 1):
            pattern = tools[start : start + period]
            if len(set(pattern)) > 1 and tools[start : start + length] == pattern * CYCLE_MIN:
                return [_sign(Signal.OSCILLATION, acts[start : start + length], " → ".join(pattern))]
    return []


def _stagnation(acts: Sequence[Step]) -> list[SignalHit]:
    streak = 1
    for place, (before, step) in enumerate(pairwise(acts), start=1):
        same = _result(step) == _result(before) and step.action != before.action
        streak = streak + 1 if same else 1
        if streak == STAGNANT_MIN:
            shown = acts[place - streak + 1 : place + 1]
            return [_sign(Signal.STAGNATION, shown, f"{streak} calls, one observation")]
    return []


def _sign(signal: Signal, streak: Sequence[Step], detail: str) -> SignalHit:
    return SignalHit(signal, streak[-1].index, streak[0].index, detail)


def _forgotten(acts: Sequence[Step]) -> list[SignalHit]:
    """What was known already was asked again: it was lost from view, or from mind."""
    found: list[SignalHit] = []
    last: dict[str, int] = {}
    for place, step in enumerate(acts):
        call = repr(step.action)  # a tenth of what a canonical form costs; arguments come in one order
        before = last.get(call, place)
        if place - before >= FORGOTTEN_MIN and _result(acts[before]) == _result(step):
            first = acts[before].index
            found.append(SignalHit(Signal.FORGOTTEN, step.index, first, f"as {place - before} calls before"))
        last[call] = place
    return found


def _result(step: Step) -> Json:
    """What a call gave, without what differs from call to call whatever it gave (the ids of imports)."""
    if isinstance(step.observation, dict) and "output" in step.observation:
        return step.observation["output"]
    return step.observation


# --- compared with other runs of the task ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far a run's changes are from those of ``others`` runs: 0 (the same) to 1 (none in common), on average."""

    share: float
    others: int


def deviation(steps: Sequence[Step], others: Iterable[Sequence[Step]]) -> Deviation | None:
    """None where there is no other run to compare with, or where none of them changed anything."""
    own = changes(steps)
    beside = [changes(other) for other in others]
    if not beside or not (own or any(beside)):
        return None
    return Deviation(fmean(_distance(own, other) for other in beside), len(beside))


def _distance(one: Counter[str], other: Counter[str]) -> float:
    """Jaccard's, over multisets."""
    union = (one | other).total()
    return 1 - (one & other).total() / union if union else 0.0


def changed_names(step: Step) -> Iterator[str]:
    """Tools that change something, with the files they named; a call that failed changed nothing."""
    tool, files = tool_of(step), _files(step)
    if files is not None:
        yield from (f"{tool} {name}" for name in files)
        if not files and _is_change(step):
            yield tool


def changes(steps: Sequence[Step]) -> Counter[str]:
    """Each change of a run and how often it was made: the tool and the file that it edited; where no file is
    named, the tool and its arguments."""
    found: Counter[str] = Counter()
    for step in steps:
        files = _files(step) if step.node == "act" else None
        if files:
            found.update(f"{tool_of(step)} {name}" for name in files)
        elif files is not None and _is_change(step):
            found[f"{tool_of(step)} {canonical(step.action).decode()}"] += 1
    return found


def _files(step: Step) -> list[str] | None:
    """The files that a call names as changed; None for one that changed nothing."""
    args = _args(step)
    if fault_in(step) is not None or args.get("command") in _READS:
        return None
    texts = [text for key in ("command", "cmd", "input", "patch") if isinstance(text := args.get(key), str)]
    files = [name for text in texts for found in _PATCHED.findall(text) for name in found if name]
    files += [name for text in texts for found in _SHELL.findall(text) for name in found if name]
    if _is_change(step):
        files += [path for key in _PATHS if isinstance(path := args.get(key), str)]
    return [_base(name) for name in files]


def _is_change(step: Step) -> bool:
    return _CHANGES.search(tool_of(step)) is not None or isinstance(_args(step).get("old_str"), str)


def _args(step: Step) -> Mapping[str, Any]:
    args = step.action.get("args") if isinstance(step.action, Mapping) else None
    return args if isinstance(args, Mapping) else {}


def _base(path: str) -> str:
    """The last part of a path: what is above it differs from machine to machine."""
    return path.strip("'\"").rstrip("/").rpartition("/")[2]
