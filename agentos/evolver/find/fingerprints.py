"""Fingerprints: when are two failures the same failure?

A fingerprint names the file at fault, the failure class and a normalised message. Numbers, quoted
text, paths and addresses are replaced, because they change from run to run while the fault stays.
A wrong answer has no message of its own: there, the file alone identifies it.

A run in which an agent chose what to do has a goal of its own, so what stays is how it went wrong: two goals
missed for one reason are one failure. A lapse is named so that it stays the same over different goals: how the run
stopped, which tool it stopped at, which kinds of checks its answer failed; its type is looked up in the taxonomy as
``agent:TYPE``. Where a tool broke on the way and never worked again, it is the same failure as when a task calls
that tool itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentos import checks
from agentos.domain import (
    FAILING,
    WRONG_ANSWER,
    Check,
    Cost,
    Fault,
    Fingerprint,
    Json,
    KernelFault,
    Kind,
    Layer,
    Outcome,
    Result,
    Run,
    Step,
    Task,
    canonical,
    digest,
    folder_of,
    kernel_fault,
    kind_of,
    word_of,
)
from agentos.evolver.find import FailureClass, InspectContext
from agentos.evolver.find.signals import Signal, changed_names, fault_in, read_signals, speaker_of, tool_of

MESSAGE_MAX = 200
# in the taxonomy; no box can speak it: it is looked up for what the kernel recorded
NOT_GRANTED = "kernel:not_granted"
BAD_CALL = "input"  # what arguments that do not fit the tool are

_RULES = (
    # In "can't" no text begins; in b'…' one does.
    (re.compile(r"(?:(?<!\w)|(?<=\b[bru]))'[^']*'|\"[^\"]*\""), "S"),
    (re.compile(r"(?:/[\w.+-]+){2,}"), "P"),
    (re.compile(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}\b", re.IGNORECASE), "H"),
    (re.compile(r"[-+]?\d+(?:[.,:]\d+)*"), "N"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing run as the miner sees it."""

    fault: Fault
    klass: FailureClass
    fingerprint: Fingerprint
    broken: Fault | None = None  # of a tool's code, where that is what failed


@dataclass(frozen=True, slots=True)
class AgentActions:
    """What an agent did that chose its own calls. ``agent`` is its ResourceId; ``steps`` reads them."""

    agent: str
    steps: Callable[[], Sequence[Step]]


def normalise(message: str) -> str:
    """The part of a message that stays the same when the same thing goes wrong again."""
    text = message[: 4 * MESSAGE_MAX]
    for pattern, symbol in _RULES:
        text = pattern.sub(symbol, text)
    return text.strip()[:MESSAGE_MAX]


def classify(fault: Fault, taxonomy: tuple[FailureClass, ...]) -> FailureClass:
    """The first class that the fault's word fits; the last class fits any."""
    return _first(taxonomy, {word_of(fault), "*"})


def classify_lapse(type: str, taxonomy: tuple[FailureClass, ...]) -> FailureClass:
    """The class of what went wrong in an agent's own doing: ``agent:TYPE`` in the taxonomy.

    What has no class of that name is where faults of its type are, unless that is a tool's.
    """
    others = tuple(klass for klass in taxonomy if klass.layer is not Layer.TOOL or "*" in klass.faults)
    return _first(others, {f"agent:{type}", "agent:*", type, "*"})


def _first(taxonomy: tuple[FailureClass, ...], names: set[str]) -> FailureClass:
    return next((klass for klass in taxonomy if names & set(klass.faults)), taxonomy[-1])


def fault_of(outcome: Outcome) -> Fault:
    """The outcome's fault; a failed check and a time limit have none of their own and get one."""
    if outcome.fault is not None:
        return outcome.fault
    if outcome.result is Result.TIMEOUT:
        return kernel_fault(KernelFault.TIMEOUT, "the run did not end in time")
    return kernel_fault(KernelFault.CHECK, outcome.reason)


def failure_of(
    run: Run, path: str, taxonomy: tuple[FailureClass, ...], doing: AgentActions | None = None
) -> Failure | None:
    """What failed in ``run``, or None when it did not fail for a reason of its own.

    ``path`` is the registry path of the tool that the task called, "" for a task without a call: of
    such a one, ``doing`` tells what the agent made of it. Its steps are read only if the run failed.
    """
    if run.outcome is None or run.outcome.result not in FAILING:
        return None
    fault = fault_of(run.outcome)
    if doing is None:
        return _of_code(fault, path, taxonomy)
    klass = classify_lapse(word_of(fault), taxonomy)
    if kind_of(fault) is KernelFault.IMPORTED:
        told = (
            " ".join(part.split())[:MESSAGE_MAX] for part in imported_lapse(run, doing.steps(), normalise)
        )
        return Failure(fault, klass, _fingerprint(doing.agent, klass, " | ".join(told)))
    lapse = lapse_in(run.outcome, fault, doing.steps()) if klass.evolvable else AgentFailure(word_of(fault))
    if lapse.tool is not None:
        return _of_code(lapse.tool, lapse.tool.where.partition(":")[0], taxonomy)
    klass = classify_lapse(lapse.type, taxonomy)
    # names come out of the sandbox: as long as a reply, and with whatever in them
    about = (" ".join(part.split())[:MESSAGE_MAX] for part in (lapse.type, *lapse.about))
    signature = " | ".join([doing.agent, *about])
    return Failure(fault, klass, _fingerprint(doing.agent, klass, signature))


def _of_code(fault: Fault, path: str, taxonomy: tuple[FailureClass, ...]) -> Failure:
    klass = classify(fault, taxonomy)
    resource = fault.resource or folder_of(path)
    place = fault.where or path
    message = "" if klass.name == "wrong_answer" else normalise(fault.message)
    signature = " | ".join([path or resource, fault.type, place, message])
    return Failure(fault, klass, _fingerprint(resource, klass, signature), broken=fault)


def of_refusal(failure: Failure, refused: Step, taxonomy: tuple[FailureClass, ...]) -> Failure:
    """The same failure as what it is: a person's to settle, one for each thing that was refused."""
    klass = _first(taxonomy, {NOT_GRANTED})
    if NOT_GRANTED not in klass.faults:  # a taxonomy of a person's own, from before
        return failure
    said = refused.observation["error"] if isinstance(refused.observation, dict) else ""
    resource = failure.fingerprint.resource
    signature = " | ".join([resource, NOT_GRANTED, " ".join(str(said).split())[:MESSAGE_MAX]])
    return Failure(failure.fault, klass, _fingerprint(resource, klass, signature))


def of_bad_call(failure: Failure, taxonomy: tuple[FailureClass, ...]) -> Failure:
    """The same failure as the task's own: no edit of the tool makes its call right."""
    klass = _first(taxonomy, {BAD_CALL})
    if BAD_CALL not in klass.faults:  # a taxonomy of a person's own
        return failure
    fingerprint = failure.fingerprint
    return Failure(failure.fault, klass, _fingerprint(fingerprint.resource, klass, fingerprint.signature))


def _fingerprint(resource: str, klass: FailureClass, signature: str) -> Fingerprint:
    return Fingerprint(digest([resource, klass.name, signature])[:16], resource, klass.name, signature)


# --- What a failed run that was made elsewhere went wrong by, so that equal failures are found together
# Where a tool failed and never worked again, that is the failure, whichever task it was met in: the tool,
# the kind of error and its message without what differs from run to run. Where no tool tells, two runs failed
# alike if they missed the same task, stopped at the same tool or speaker, and changed the same things.


CHANGES_MAX = 8  # names in one signature


def imported_lapse(run: Run, steps: Sequence[Step], normalise: Callable[[str], str]) -> tuple[str, ...]:
    """The parts of the failure's signature: where, the kind, its message; else the task and the changes."""
    failing = never_worked(steps)
    if failing:
        last = failing[-1]
        return last.where, last.type, normalise(last.message)
    root = root_step(steps)
    at = next((step for step in steps if step.index == root), None)
    acts = [step for step in steps if step.node == "act"]
    who = (speaker_of(at) if at is not None else "") or (tool_of(acts[-1]) if acts else "")
    changed = list(dict.fromkeys(name for step in acts for name in changed_names(step)))
    return who or "no call", "missed", ", ".join(sorted(changed)[:CHANGES_MAX]), f"task {run.task_key[:16]}"


# --- What an agent's own doing went wrong by, where no task says which tool to call.

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


# -------------------------------------------------------------------------------------------------
# Signs that the harness is to blame: what the tools gave is not what came of it. Read off steps and checks alone, in
# one run. They concern what no tool does: the joining of answers, and the hooks around a call.


ANOTHER_ORDER = "what the tools gave is answered in another order"
SOMETHING_ELSE = "what a tool gave is answered as something else"


def mistold(task: Task, run: Run, steps: Sequence[Step]) -> str:
    """Why the answer to a call is wrong though the tools were right, "" where that is not shown.

    What each failed check expects stands in what the tools gave, so their own code did its part.
    """
    outputs = _outputs(steps)
    missed = _missed(task.checks, run.outcome)
    if not outputs or not missed:
        return ""
    if all(any(not _why(spec, output) for output in outputs) for spec in missed):
        return SOMETHING_ELSE
    return ANOTHER_ORDER if all(_rearranged(spec, outputs) for spec in missed) else ""


def _missed(asked: Sequence[Check], outcome: Outcome | None) -> list[checks.Equals]:
    """The failed checks, if all of them compare the answer with a value; else none."""
    results = outcome.checks if outcome else ()
    if len(results) != len(asked):
        return []
    failed = [check for check, result in zip(asked, results, strict=True) if not result.passed]
    specs = [checks.parse(check.kind, check.spec) for check in failed if check.kind == "equals"]
    equals = [spec for spec in specs if isinstance(spec, checks.Equals)]
    return equals if len(equals) == len(failed) else []


def _outputs(steps: Sequence[Step]) -> list[Json]:
    """What each call gave; none if one of them failed, or is not on record as a whole."""
    acts = [step for step in steps if step.node == "act"]
    seen = [mapping_in(step.observation) for step in acts]
    if any(step.fault is not None for step in acts) or any("output" not in one for one in seen):
        return []
    return [one["output"] for one in seen]


def _why(spec: checks.Equals, value: Json) -> str:
    return checks.judge(spec, value, Path())


def _rearranged(spec: checks.Equals, outputs: Sequence[Json]) -> bool:
    """Whether a list of what the tools gave, in some order, is what is expected there."""
    place, _, rest = (spec.path or "").partition(".")
    if place.isdigit():
        of_one = spec.model_copy(update={"path": rest or None})
        return any(not _why(of_one, output) for output in outputs)
    expected = spec.value
    if place or not isinstance(expected, list) or len(expected) != len(outputs):
        return False
    return sorted(map(canonical, expected)) == sorted(map(canonical, outputs))


def mapping_in(value: Json) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# --- Runs that used up what they might: when that is their own fault, and when they were given too little
# A budget that somebody set too low is no fault of what evolves. So such a run counts as failed only where
# it shows by itself that no budget would have done: it made the same call again and again, or asked again for
# what it knew; or where other work like it shows that this one would have: an equal task passed with no more.


# Steps and questions; calls, tokens and money of models. Of a budget that many runs share none is to blame.
_OWN = frozenset({KernelFault.LIMIT, KernelFault.BUDGET, KernelFault.SUPERVISOR})
_SPENT_IN_CIRCLES = frozenset({Signal.RETRY_LOOP, Signal.FORGOTTEN})


def as_failed(parts: InspectContext, task: Task, run: Run, steps: Sequence[Step] | None = None) -> Run:
    """The run, as one that failed where it used up its budget by a fault; else as it is.

    ``steps`` are its own where the journal does not know it.
    """
    outcome = run.outcome
    if outcome is None or outcome.result is not Result.BUDGET or outcome.fault is None:
        return run
    fault = outcome.fault
    if kind_of(fault) not in _OWN:
        return run
    own = parts.journal.steps(run.id) if steps is None else steps
    circles = any(sign.signal in _SPENT_IN_CIRCLES for sign in read_signals(own))
    if not circles and not _was_enough(parts, run, outcome, len(own)):
        return run
    if task.call is not None:  # what it called is not asked how many steps it took
        fault = Fault("harness", f"it did not come to an end: {fault.message}", resource=_harness(run))
    return replace(run, outcome=replace(outcome, result=Result.FAILED, fault=fault))


def _was_enough(parts: InspectContext, run: Run, outcome: Outcome, steps: int) -> bool:
    """Whether equal work passed with no more than the run had used when it was stopped."""
    return any(
        other.outcome is not None
        and other.outcome.result is Result.PASSED
        and _no_more(other.outcome.cost, outcome.cost)
        and len(parts.journal.steps(other.id)) <= steps
        for other in parts.journal.runs_of(run.task_key, parts.policy.look_back.successes)
    )


def _no_more(cost: Cost, than: Cost) -> bool:
    return cost.calls <= than.calls and cost.tokens <= than.tokens and (cost.usd or 0.0) <= (than.usd or 0.0)


def _harness(run: Run) -> str:
    prefix = f"{Kind.HARNESS.value}/"
    return next((name for name in run.resources if name.startswith(prefix)), f"{prefix}default")
