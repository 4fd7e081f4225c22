"""Fingerprints: when are two failures the same failure?

A fingerprint names the file at fault, the failure class and a normalised message. Numbers, quoted
text, paths and addresses are replaced, because they change from run to run while the fault stays.
A wrong answer has no message of its own: there, the file alone identifies it.

A run in which an agent chose what to do has a goal of its own, so what stays is how it went wrong
(``agent_failures``): two goals missed for one reason are one failure. Where a tool broke on the way and
never worked again, it is the same failure as when a task calls that tool itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentos.domain import (
    FAILING,
    Fault,
    Fingerprint,
    KernelFault,
    Layer,
    Outcome,
    Result,
    Run,
    Step,
    digest,
    folder_of,
    kernel_fault,
    kind_of,
    word_of,
)
from agentos.evolver.find.agent_failures import AgentFailure, lapse_in, never_worked, root_step
from agentos.evolver.find.signals import changed_names, speaker_of, tool_of
from agentos.evolver.policy import FailureClass

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
