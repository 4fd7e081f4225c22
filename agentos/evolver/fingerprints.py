"""Fingerprints: when are two failures the same failure?

A fingerprint names the file at fault, the failure class and a normalised message. Numbers, quoted
text, paths and addresses are replaced, because they change from run to run while the fault stays.
A wrong answer has no message of its own: there, the file alone identifies it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentos.domain import Fault, Fingerprint, Outcome, Result, Run, digest
from agentos.evolver.policy import FailureClass

MESSAGE_MAX = 200

# Results that say something of the agent. Infra, budget and cancelled say nothing of it.
FAILING = frozenset({Result.FAILED, Result.TIMEOUT})

_RULES = (
    (re.compile(r"'[^']*'|\"[^\"]*\""), "S"),
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


def normalise(message: str) -> str:
    """The part of a message that stays the same when the same thing goes wrong again."""
    text = message[: 4 * MESSAGE_MAX]
    for pattern, symbol in _RULES:
        text = pattern.sub(symbol, text)
    return text.strip()[:MESSAGE_MAX]


def classify(fault: Fault, taxonomy: tuple[FailureClass, ...]) -> FailureClass:
    """The first class that the fault's type fits; the last class fits any."""
    return next(
        (klass for klass in taxonomy if fault.type in klass.faults or "*" in klass.faults), taxonomy[-1]
    )


def fault_of(outcome: Outcome) -> Fault:
    """The outcome's fault; a failed check and a time limit have none of their own and get one."""
    if outcome.fault is not None:
        return outcome.fault
    if outcome.result is Result.TIMEOUT:
        return Fault("timeout", "the run did not end in time")
    return Fault("check", outcome.reason)


def failure_of(run: Run, path: str, taxonomy: tuple[FailureClass, ...]) -> Failure | None:
    """What failed in ``run``, or None when it did not fail for a reason of its own.

    ``path`` is the registry path of the tool that the task called, "" for a free-form task.
    """
    if run.outcome is None or run.outcome.result not in FAILING:
        return None
    fault = fault_of(run.outcome)
    klass = classify(fault, taxonomy)
    resource = fault.resource or "/".join(path.split("/")[:2])
    place = fault.where or path
    message = "" if klass.name == "wrong_answer" else normalise(fault.message)
    signature = " | ".join([path or resource, fault.type, place, message])
    name = digest([resource, klass.name, signature])[:16]
    return Failure(fault, klass, Fingerprint(name, resource, klass.name, signature))
