"""What an agent's own doing went wrong by, where no task says which tool to call.

A lapse is named so that it stays the same over different goals: how the run stopped, which tool it
stopped at, which kinds of checks its answer failed. Its type is looked up in the taxonomy as
``agent:TYPE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentos.domain import WRONG_ANSWER, Fault, Outcome, Step, kind_of, word_of
from agentos.evolver.find.signals import Signal, read_signals
from agentos.evolver.find.step_failures import fault_in, speaker_of, tool_of

TOOLS_MAX = 6  # names in one lapse

# Faults of a call that the model got wrong: the tool's code is not to blame.
_WRONG_CALLS = frozenset({"input", "bad_arguments", "unknown_tool"})
# Faults of a call that nobody's code is to blame for.
_NOT_CODE = _WRONG_CALLS | {"not_made", "effect", "inputs", "agent"}
# The run ended by itself with these; its last call is what it was at.
_AT_A_CALL = frozenset({"loop", "limit", "budget", "steps", "timeout", "wall", *_WRONG_CALLS})


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """What went wrong. ``tool``: the fault of a tool's code that is behind it, where there is one."""

    type: str
    about: tuple[str, ...] = ()
    tool: Fault | None = None


@dataclass(frozen=True, slots=True)
class HandedFailure:
    """Work that an agent was handed and did not do. ``step`` is the index of the step that tells of it."""

    step: int
    agent: str
    task_id: str


def lapse_in(outcome: Outcome, fault: Fault, steps: Sequence[Step]) -> AgentFailure:
    """Why a run without a call failed; ``fault`` is the outcome's, or made of it."""
    if fault.resource.startswith("harness/"):
        return AgentFailure("harness", (fault.where,))
    failing = never_worked(steps)
    broken = next((found for found in failing if _is_code(found)), None)
    if broken is not None:
        return AgentFailure(word_of(broken), tool=broken)
    if fault.resource:
        return AgentFailure(word_of(fault), (fault.where,))
    if kind_of(fault) not in WRONG_ANSWER:
        word = word_of(fault)
        return AgentFailure(word, _last_call(steps) if word in _AT_A_CALL else ())
    if wrong := [found for found in failing if found.type in _WRONG_CALLS]:
        return AgentFailure(wrong[-1].type, (wrong[-1].where,))
    if _forgot(steps):
        return AgentFailure("forgotten", _last_call(steps))
    return AgentFailure(word_of(fault), (_checks(outcome), *_at_fault(steps, failing)))


def root_step(steps: Sequence[Step]) -> int:
    """Index of the step that most likely decided the failure; 0 of a run without steps.

    A person's word first (an imported mark). Then the first call of a tool that failed and never
    worked again (of a program that a speaker wrote and a terminal ran: the speaker's step), the call
    that a loop began with, the call that was made again because its result was lost. Where nothing
    failed by its own account: of several speakers, the first in the second quarter of the run who did
    not open it; else the model's last word. docs/understand/signals.md says how often that is right.
    """
    if not steps:
        return 0
    marked = next((step for step in steps if step.fault is not None and step.fault.type == "mistake"), None)
    if marked is not None:
        return marked.index
    failed = [fault_in(step) is not None for step in steps]
    worked = {
        tool_of(step): place for place, step in enumerate(steps) if step.node == "act" and not failed[place]
    }
    for place, step in enumerate(steps):
        if step.node == "act" and failed[place] and place > worked.get(tool_of(step), -1):
            return step.index
        if step.node in ("message", "model") and failed[place] and place:
            return steps[place - 1].index
    if below := failed_below(steps):
        return below[0].step
    signs = [sign for sign in read_signals(steps) if sign.signal in _CIRCLES]
    if signs:
        return signs[0].since
    return _by_position(steps)


def telling_step(steps: Sequence[Step], *, called: bool) -> int:
    """Index of the step by which a failure is told; 0 of a run without steps.

    Of a task that names its call (``called``), nothing was decided on the way: the first step with a
    fault, else the last. Of any other run its root step.
    """
    if not called:
        return root_step(steps)
    faulty = [step for step in steps if step.fault is not None]
    return (faulty[:1] or [*steps[-1:]])[0].index if steps else 0


_CIRCLES = frozenset({Signal.RETRY_LOOP, Signal.OSCILLATION, Signal.STAGNATION, Signal.FORGOTTEN})


def _by_position(steps: Sequence[Step]) -> int:
    said = [step for step in steps if step.node in ("model", "message")]
    names = [speaker_of(step) for step in said]
    opener = next((name for name in names if name not in ("", "human")), "")
    for step, name in zip(said[len(said) // 4 :], names[len(said) // 4 :], strict=True):
        if name not in ("", "human", opener):
            return step.index
    models = [step for step in said if step.node == "model"]
    return models[-1].index if models else steps[-1].index


def never_worked(steps: Sequence[Step]) -> list[Fault]:
    """For each tool that failed and did not work later in the run: its last fault, with where it was."""
    failing: dict[str, Fault] = {}
    for step in steps:
        if step.node != "act":
            continue
        name = tool_of(step)
        fault = fault_in(step)
        failing.pop(name, None)
        if fault is not None:
            failing[name] = replace(fault, where=fault.where or _path(step) or name)
    return list(failing.values())


def failed_below(steps: Sequence[Step]) -> list[HandedFailure]:
    """For each agent that was handed work, did not succeed and did not later in the run: the first such work."""
    failing: dict[str, HandedFailure] = {}
    for step in steps:
        given, came = step.action, step.observation
        if step.node != "delegate" or not isinstance(given, dict) or not isinstance(came, dict):
            continue
        agent = str(given.get("agent"))
        if came.get("ok") is True:
            failing.pop(agent, None)
        else:
            failing.setdefault(agent, HandedFailure(step.index, agent, str(came.get("task"))))
    return list(failing.values())


def _is_code(fault: Fault) -> bool:
    """Was it raised by the code of a tool, which an edit may mend?"""
    return fault.resource.startswith(("tool/", "skill/")) and fault.type not in _NOT_CODE


def _path(step: Step) -> str:
    path = step.action.get("path") if isinstance(step.action, dict) else None
    return path if isinstance(path, str) else ""


def _last_call(steps: Sequence[Step]) -> tuple[str, ...]:
    """The tool that was called last, and how that went."""
    last = next((step for step in reversed(steps) if step.node == "act"), None)
    if last is None:
        return ("no call",)
    fault = fault_in(last)
    return (tool_of(last), fault.type if fault else "")


def _forgot(steps: Sequence[Step]) -> bool:
    """A call was made again after its result had been compacted away."""
    compacted = [
        step.index
        for step in steps
        if step.node == "think" and isinstance(step.action, dict) and step.action.get("compacted")
    ]
    again = [sign.step for sign in read_signals(steps) if sign.signal is Signal.FORGOTTEN]
    return any(step > compacted[0] for step in again) if compacted else False


def _checks(outcome: Outcome) -> str:
    return ", ".join(sorted({check.kind for check in outcome.checks if not check.passed}))


def _at_fault(steps: Sequence[Step], failing: Sequence[Fault]) -> tuple[str, ...]:
    """Which calls failed for good; then who of several spoke at the root, or what the run did last."""
    lost = ", ".join(sorted({f"{fault.where}: {fault.type}" for fault in failing})[:TOOLS_MAX])
    if len({speaker_of(step) for step in steps} - {"", "human"}) < 2:
        return lost, *_last_call(steps)
    root = root_step(steps)
    return lost, next(speaker_of(step) for step in steps if step.index == root)
