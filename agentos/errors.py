"""Every exception that crosses a module boundary, and what it means to the person who reads it.

A task that fails is *data* (an ``Outcome``), never an exception. An exception means that the
machinery could not do its job, and there are only two kinds of that: a person can mend it, or
something the machinery stands on is gone.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any


class ErrorKind(StrEnum):
    """What a program goes by where it tells errors apart; ``docs/use/api.md`` has the table.

    Each class has one that says no more than the class; a finer one is given where callers act differently on it.
    """

    # of a class
    ERROR = "error"
    REFUSED = "refused"
    NOT_FOUND = "not_found"
    INVALID = "invalid"
    CONFLICT = "conflict"
    BUSY = "busy"
    BUG = "bug"  # of ours: a report was written
    UNAVAILABLE = "unavailable"
    # a person gives something else
    USAGE = "usage"  # options or arguments that do not go together, or one too few
    AMBIGUOUS = "ambiguous"  # a name or an id stands for several
    EXPOSED = "exposed"  # others may read what is to be kept from them
    UNREADABLE = "unreadable"  # a file or folder that cannot be read, or is not of its form
    NEWER = "newer"  # a newer release wrote it
    OLDER = "older"  # an older one did
    HIDDEN = "hidden"  # it belongs to the hold-out, which nobody who proposes may learn of
    NOT_INSTALLED = "not_installed"  # a program or a part of agentos
    NOT_RUNNING = "not_running"  # the daemon is wanted
    # it stands otherwise than was thought
    TAKEN = "taken"  # there is another thing of this name or number
    STALE = "stale"  # it moved since it was read
    MISMATCHED = "mismatched"  # two things do not belong together
    LATER = "later"  # something came after it and stands on it
    DECIDED = "decided"  # it was said, answered or done already
    OVER = "over"  # it has ended and takes no more
    AT_WORK = "at_work"  # another one does it now
    FIXED = "fixed"  # it is never changed
    # something underneath
    DAMAGED = "damaged"  # content that is not what it was; a backup may have it
    NOT_WRITTEN = "not_written"
    FULL = "full"  # the disk, or a limit of the machine
    CLOSED = "closed"  # it was ended here, and takes no more
    TIMEOUT = "timeout"  # all tries within the time that it is given failed


class Sentence(str):
    """A text, and in ``type_next`` the commands in it that it says to type, in its order.

    What others wrote is among the parts as a plain text: a command in that is none that we say to type.
    """

    type_next: tuple[str, ...] = ()

    def __new__(cls, *parts: object) -> Sentence:
        """Of the parts, one after the other; commands are those of the parts that are sentences or errors."""
        made = super().__new__(cls, "".join(map(str, parts)))
        said = (part.type_next for part in parts if isinstance(part, Sentence | AgentOSError))
        made.type_next = tuple(command for commands in said for command in commands)
        return made


def to_type(text: str) -> Sentence:
    """A command to type, as it stands in a sentence."""
    made = Sentence(f"`{text}`")
    made.type_next = (text,)
    return made


# a command; what stands in quotes (a file's name, a value) goes first: others may have written it, a command and all
_COMMAND = re.compile(
    r"""(?<![\w`])(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")(?!\w)"""
    r"|`((?:agentos|apt-get|chmod|dockerd|git|pip|python|sudo|systemctl) [^`]+)`"
)


class AgentOSError(Exception):
    """Base of all errors that the program raises on purpose; ``kind`` is for programs, the text for people.

    The text is made of ``parts``: texts, each command (``to_type``), other sentences and errors.
    """

    kind: str = ErrorKind.ERROR

    def __init__(self, *parts: object, kind: str = "") -> None:
        if kind:
            self.kind = kind
        self.sentence = Sentence(*parts)
        super().__init__(self.sentence)

    @property
    def type_next(self) -> tuple[str, ...]:
        """The commands that it says to type, in its order; where no part of it is one, those that are found in the text
        (in backticks, not within quotes)."""
        found = (command for command in _COMMAND.findall(str(self)) if command)
        return self.sentence.type_next or tuple(found)


class UserError(AgentOSError):
    """A person can fix it. One sentence: what was expected, what was found, what to type next."""

    kind: str = ErrorKind.REFUSED


class NotFound(UserError):
    """A name or id that the home does not know."""

    kind: str = ErrorKind.NOT_FOUND


_TOLD = 12  # faults of one document that the sentence names; a file of another kind has one in each line


class Invalid(UserError):
    """A document (task, skill, tool, settings, resource) breaks its rules.

    ``faults`` holds one sentence per fault, in the order found.
    """

    kind: str = ErrorKind.INVALID

    def __init__(self, what: str, faults: list[str], *, kind: str = "") -> None:
        self.faults = list(faults)
        more = len(faults) - _TOLD
        told = faults[:_TOLD] + ([f"and {more} more faults"] if more > 0 else [])
        apart = (part for fault in told for part in ("; ", fault))
        super().__init__(f"{what}: ", *list(apart)[1:], kind=kind)


class Conflict(UserError):
    """The state moved since it was read (compare-and-swap lost, stale verdict, merge conflict)."""

    kind: str = ErrorKind.CONFLICT


class PromotionRefused(Conflict):
    """The state of an evolution, a consent or an edit does not allow what was asked for; ``kind`` says which.

    It is a ``domain.RefusalKind``, which this module cannot import.
    """

    def __init__(self, kind: str, *parts: object) -> None:
        super().__init__(*parts, kind=kind)


class HomeBusy(UserError):
    """Another process holds what is needed (a second daemon on one home)."""

    kind: str = ErrorKind.BUSY


class Unavailable(AgentOSError):
    """Something underneath is gone: bubblewrap, the disk, a corrupt object, a model.

    During a replay it voids the trial; it never counts for or against a candidate.
    """

    kind: str = ErrorKind.UNAVAILABLE


class DamagedBlob(Unavailable):
    """Content that is not what its name says: waiting does not mend it, a backup may."""

    kind: str = ErrorKind.DAMAGED


class ModelAway(Unavailable):
    """No model answers: its server is away, or a budget that all share is used up."""


class KeyRefused(ModelAway):
    """The provider takes no such key: to ask again changes nothing until a person gives another."""


class BudgetUsedUp(ModelAway):
    """What all runs of a day may use is used up: no model is away, and it is there again at midnight UTC."""


class ModelMissing(ModelAway):
    """None is set up, or the evolution's own budget is used up: that does not change by waiting."""


class BoxDied(Unavailable):
    """The sandbox ended before its job did.

    ``cause`` is ``wall`` (time limit), ``memory``, ``killed`` (by us, on request), ``output``
    (it sent more than it may), ``protocol`` (it sent what is no frame) or ``gone`` (anything else).
    The first five and a ``gone`` that repeats are the job's own fault and become an ``Outcome``;
    the caller decides, because only the caller knows whether it asked for the end.
    """

    def __init__(self, cause: str, detail: str = "") -> None:
        self.cause = cause
        self.detail = detail
        super().__init__(f"the sandbox ended early ({cause}){': ' + detail if detail else ''}")


class HostAway(Unavailable):
    """No host is there for a box, or the one that was to hold it is not: that says nothing of its job."""


class HostLost(HostAway):
    """The host of a box that was at work is gone, or was given up."""


def error_json(error: AgentOSError) -> dict[str, Any]:
    """What programs are told of it: ``kind``, ``detail`` (the sentence), ``faults`` and ``type_next`` (lists of texts)."""
    faults = error.faults if isinstance(error, Invalid) else []
    return {
        "kind": str(error.kind),
        "detail": str(error),
        "faults": list(faults),
        "type_next": list(error.type_next),
    }


_LACKING = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EMFILE: "the daemon may open no further file: raise its limit (ulimit -n, LimitNOFILE=)",
    errno.EAGAIN: "the daemon may start no further process: raise its limit (ulimit -u, TasksMax=)",
    errno.ENFILE: "the machine may open no further file: raise fs.file-max",
    errno.ENOMEM: "the machine has no memory left",
    errno.EROFS: "the disk is read-only",
    errno.EIO: "the disk reports errors",
    errno.EFBIG: "the daemon may write no larger file: raise its limit (ulimit -f, LimitFSIZE=)",
}
_NO_THREAD = (
    "the daemon may make no further thread or has no memory for one: raise its limits "
    "(ulimit -u, ulimit -v, TasksMax=, MemoryMax=)"
)
_NO_MEMORY = "the daemon gets no further memory: free some, or raise its limit (ulimit -v, MemoryMax=)"


def lacking(error: BaseException) -> str:
    """What the machine or a limit of the process does not give, "" where the error says nothing of it."""
    if isinstance(error, MemoryError):
        return _NO_MEMORY
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":  # has no kind of its own
        return _NO_THREAD
    return _LACKING.get(getattr(error, "errno", None) or 0, "")


def shown(value: object, most: int = 60) -> str:
    """A value as it stands in a sentence: what is too long is cut, and keeps its closing quote or bracket."""
    text = repr(value)
    if len(text) <= most:
        return text
    end = text[-1] if text[-1] in "'\"])}" else ""
    return f"{text[: most - len(end) - 1]}…{end}"


def meant(name: str, known: Iterable[str], *otherwise: object) -> Sentence:
    """What to say after a name that stands for nothing: the names near to it, else ``otherwise``, what to type."""
    near = near_names(name, known)
    return Sentence(*([f"Did you mean {' or '.join(near)}?"] if near else otherwise))


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Those of the names that are written nearly so, the nearest first."""
    import difflib

    return difflib.get_close_matches(name, sorted(set(known)), n=3)


def missing_extra(extra: str, what: str) -> Sentence:
    """What to say where an optional library is wanted and not installed; ``extra`` as in ``pyproject.toml``."""
    install = to_type(f"pip install 'agentos-daemon[{extra}]'")
    return Sentence(f"{what} needs a part of agentos that is not installed: type ", install, ".")


class ModelFailed(AgentOSError):
    """A model call gave nothing that can be used; ``kind`` says why, for whoever has to decide.

    ``budget`` (the run's), ``evolution_budget``, ``day_budget``, ``not_recorded``, ``not_allowed`` (the run may not use this model) and ``auth`` end
    the run. ``unreachable``, ``overloaded`` and ``timeout`` (each after all retries) say nothing of
    the run: the machinery is away. ``slow`` (a server of one's own that talks, but had no answer in time) is the
    run's time-out. ``internal`` is a bug of the gateway's: the run is void, and the call is not made again. ``malformed``, ``cut``, ``refused``, ``empty``, ``context`` (the
    request is too long) and ``request`` (the provider refuses it) are for the agent to deal with.
    ``used`` is what the call is booked with all the same, by a ``Reply``'s names and ``estimated``; empty where it was not sent.
    """

    def __init__(self, kind: str, message: str, used: Mapping[str, Any] | None = None) -> None:
        self.used = used or {}
        super().__init__(message, kind=kind)
