"""Why something did not work, and who says so: the kernel, the harness, or a tool.

A box can name its faults as it likes, so what is decided on a fault is decided on its ``origin`` and, where
the kernel itself saw it, on its ``kind``: a closed set that nothing in a box can speak. ``type`` is a word for
people and fingerprints; ``message`` is prose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """Who says that something did not work."""

    UNSAID = ""  # on record from before it was written down: ``origin_of`` tells it from the rest
    KERNEL = "kernel"
    HARNESS = "harness"  # or the worker on its behalf: one process, so it is not told apart
    TOOL = "tool"


class KernelFault(StrEnum):
    """What the kernel itself saw go wrong."""

    NONE = ""
    NO_MODEL = "no_model"  # none is set up for the run
    BUDGET = "budget"  # of the run's own model calls
    EVOLUTION_BUDGET = "evolution_budget"  # shared by all trials of an evolution
    DAY_BUDGET = "day_budget"  # shared by all runs of a day
    LIMIT = "limit"  # steps, asks, bytes
    MEMORY = "memory"
    TIMEOUT = "timeout"
    EXIT = "exit"  # the worker's process ended before its job
    KILLED = "killed"
    PROTOCOL = "protocol"  # the box sent what is no frame
    NOT_RECORDED = "not_recorded"  # a replay came to what is not on record
    NOT_ALLOWED = "not_allowed"
    WAITING = "waiting"  # for a person
    UNKNOWN_TOOL = "unknown_tool"
    NOT_FOUND = "not_found"
    CHECK = "check"  # the answer is not what the checks expect
    FEEDBACK = "feedback"  # the answer is not what a person expects
    GRADER = "grader"  # a check could not be applied
    AWAY = "away"  # the machinery was, for whatever was tried: the attempt counts for nothing
    DAEMON = "daemon"  # it died during the run, which may or may not be the run's doing
    IMPORTED = "imported"  # made elsewhere, and cannot be run here
    RULE = "rule"  # a rule ended the run
    SUPERVISOR = "supervisor"  # the supervisor did
    OTHER = "other"  # of a run below that ended without a fault of its own


# Nobody's own: the next run would end alike, whatever it tries.
SHARED = frozenset({KernelFault.NO_MODEL, KernelFault.EVOLUTION_BUDGET, KernelFault.DAY_BUDGET})
# Words for what the kernel alone can know. From a box they are a word like another.
KERNEL_ONLY = frozenset(
    {
        *("no_model", "imported", "feedback", "grader", "grade", "not_recorded", "not_allowed", "waiting"),
        *("rule", "supervisor"),
    }
)
# The run came to an answer, and it is not the one that is wanted.
WRONG_ANSWER = frozenset({KernelFault.CHECK, KernelFault.FEEDBACK})
# The type under which a kind was stored before there were kinds, where that is another word.
_TYPES: Mapping[KernelFault, str] = {
    KernelFault.EVOLUTION_BUDGET: "budget",
    KernelFault.DAY_BUDGET: "budget",
    KernelFault.PROTOCOL: "harness",
}
_OF_TOOLS = ("tool/", "skill/")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something did not work, structured, so that nothing need read free text."""

    type: str  # exception class, or one of: check, timeout, memory, output, limit, protocol, ...
    message: str
    where: str = ""  # "path:function" of the innermost frame inside the resource
    resource: str = ""  # ResourceId whose code it was, "" if none
    origin: Origin = Origin.UNSAID
    kind: KernelFault = KernelFault.NONE  # of the kernel's own only

    def __post_init__(self) -> None:
        if self.kind and self.origin is not Origin.KERNEL:
            raise ValueError(f"a fault of the {self.origin or 'unsaid'} origin has no kernel's kind")


def kernel_fault(kind: KernelFault, message: str, *, type: str = "", resource: str = "") -> Fault:
    """What the kernel saw. ``type`` where it goes by another word than its kind."""
    return Fault(
        type or _TYPES.get(kind, kind.value), message, resource=resource, origin=Origin.KERNEL, kind=kind
    )


def box_fault(type: str, message: str, where: str = "", resource: str = "") -> Fault:
    """What came out of a box: a tool's where it is about a tool's code, else the harness'. Never the kernel's."""
    origin = Origin.TOOL if resource.startswith(_OF_TOOLS) else Origin.HARNESS
    return Fault(type, message, where, resource, origin)


def origin_of(fault: Fault) -> Origin:
    """Who says it. Of an old record: what names code is that code's, a word of the kernel's is the kernel's."""
    if fault.origin:
        return fault.origin
    if fault.resource or fault.where:
        return Origin.TOOL if fault.resource.startswith(_OF_TOOLS) else Origin.HARNESS
    return Origin.KERNEL if fault.type in _ON_OLD_RECORD else Origin.HARNESS


def kind_of(fault: Fault | None) -> KernelFault:
    """What the kernel saw; NONE where it is not the kernel who says it."""
    if fault is None or origin_of(fault) is not Origin.KERNEL:
        return KernelFault.NONE
    return fault.kind if fault.origin else _old_kind(fault)


def word_of(fault: Fault) -> str:
    """The type as anything may be decided on it: a word that is the kernel's alone means nothing from a box."""
    if fault.type in KERNEL_ONLY and origin_of(fault) is not Origin.KERNEL:
        return f"said {fault.type}"
    return fault.type


_ON_OLD_RECORD: Mapping[str, KernelFault] = {
    kind.value: kind
    for kind in KernelFault
    if kind not in (KernelFault.NONE, KernelFault.OTHER, KernelFault.RULE, KernelFault.SUPERVISOR)
}
# How the gateway began the sentence when whose budget it was stood nowhere else.
_OLD_BUDGETS = {
    "the evolution may use ": KernelFault.EVOLUTION_BUDGET,
    "all runs of a day may use ": KernelFault.DAY_BUDGET,
}


def _old_kind(fault: Fault) -> KernelFault:
    """Of a record from before kinds: here alone, and of such records only, words are read."""
    kind = _ON_OLD_RECORD.get(fault.type, KernelFault.NONE)
    if kind is not KernelFault.BUDGET:
        return kind
    shared = (found for start, found in _OLD_BUDGETS.items() if fault.message.startswith(start))
    return next(shared, kind)
