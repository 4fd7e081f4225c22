"""What is asked for: tasks with their inputs, limits and checks; and what passes between people and runs.

That is questions, proposed memories, what people say of runs, and what they are told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from agentos.records.identity import Effect, InputFile, Json, dataclass, digest


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its arguments. ``tool`` is ``name`` or ``skill/tool``."""

    tool: str
    args: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Check:
    """Decides success. ``kind`` is one of checks.KINDS or of a plug-in; ``spec`` holds that kind's parameters."""

    kind: str
    spec: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. Everything is enforced outside the run's reach."""

    steps: int = 50
    wall_s: float = 60.0
    memory_mb: int = 512
    output_bytes: int = 1 << 20  # what an answer, an observation, or a stream may hold
    workspace_mb: int = 64
    processes: int = 64
    # What its model calls may use; 0 means: as the settings' budget says.
    cost_usd: float = 0.0
    tokens: int = 0
    calls: int = 0


BUDGETS = frozenset({"calls", "tokens", "cost_usd"})  # limits whose 0 means that none is set here


class _Keyed:
    """Room for a key that was computed: an evolution asks some hundred times for those of a dozen tasks."""

    __slots__ = ("_key", "_work")
    _key: str
    _work: str


@dataclass(frozen=True, slots=True)
class Task(_Keyed):
    """A goal with inputs, limits and checks."""

    id: str
    name: str
    goal: str
    call: Call | None
    inputs: tuple[InputFile, ...]
    agent: str
    limits: Limits
    effects: tuple[Effect, ...]
    checks: tuple[Check, ...]
    schedule: str | None
    created_at: datetime
    secrets: tuple[str, ...] = ()  # that its runs may have put into their requests
    parent: str = ""  # the task whose run handed this one over; nobody but that run starts it
    sources: tuple[
        InputSource, ...
    ] = ()  # live inputs that are still to be read; then they are among ``inputs``
    trigger: Trigger | None = None
    deliver: tuple[Destination, ...] = ()
    schedule_id: str = ""  # the task that this one is a copy of

    @property
    def key(self) -> str:
        """Identity of the *work*: two tasks with equal keys ask for the same thing."""
        try:
            return self._key
        except AttributeError:
            key = digest([self.goal, self.call, self.inputs, self.agent, self.checks])
            object.__setattr__(self, "_key", key)
            return key

    @property
    def recurs(self) -> bool:
        """Whether it is a schedule: copies of it run, and never it itself."""
        return self.schedule is not None or (self.trigger is not None and self.trigger.watch is not None)


class TaskState(StrEnum):
    """Where a task stands. A scheduled task is ``scheduled`` (or ``paused``) and spawns queued ones."""

    SCHEDULED = "scheduled"
    PAUSED = "paused"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # for a person's answer
    DONE = "done"
    CANCELLED = "cancelled"


# --- Which work a task asks for ------------------------------------------------------------------

_NAME = r"[\w./-]"


def work_of(task: Task) -> str:
    """Identity of the work, whatever it and its files are called: its call on these contents, or its goal.

    The same work filed anew, under other names or with other checks, is no other work.
    """
    try:
        return task._work
    except AttributeError:
        object.__setattr__(task, "_work", _work_of(task))
        return task._work


def _work_of(task: Task) -> str:
    if task.call is None:
        return digest([task.agent, " ".join(task.goal.split()), sorted(item.sha256 for item in task.inputs)])
    names = {name: item.sha256 for item in task.inputs for name in (item.path, PurePosixPath(item.path).name)}
    args = mapped(dict(task.call.args), lambda text: exchanged(text, names))
    return digest([task.call.tool, args, sorted(item.sha256 for item in task.inputs)])


def exchanged(text: str, names: Mapping[str, str]) -> str:
    """Whole names alone: what only begins or ends like one is another."""
    if not names:
        return text
    longest = sorted(names, key=len, reverse=True)
    pattern = rf"(?<!{_NAME})((?:\./)*)({'|'.join(map(re.escape, longest))})(?![\w-])(?!\.\w)"
    return re.sub(pattern, lambda found: found[1] + names[found[2]], text)


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """JSON with each of its texts changed, names of fields too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(name): mapped(item, change) for name, item in value.items()}
    return [mapped(item, change) for item in value] if isinstance(value, list | tuple) else value


# --- What ties a task to the days of a person: files read when it runs, what starts it, where results go


@dataclass(frozen=True, slots=True)
class InputSource:
    """Files of this machine that are read when the task runs: a file, the tree below a folder, or a glob."""

    path: str  # absolute
    place: str  # in the workspace: of a file its path, else the folder above the tree, "" for the top
    newer_than: str = ""  # last_run or last_pass: only what changed since that copy of the schedule read
    max_files: int = 1_000
    max_bytes: int = 0  # 0: as many as the workspace holds
    exclude: tuple[str, ...] = ()  # globs below the folder


@dataclass(frozen=True, slots=True)
class Watch:
    """A folder in which each file that arrives starts a copy of the task."""

    folder: str  # absolute
    pattern: str = "*"
    settle_s: float = 2.0  # without a change, until a file counts as complete
    existing: bool = False  # whether what lies there already starts a copy too


@dataclass(frozen=True, slots=True)
class Trigger:
    """What starts copies of a task, beside and about its cron line."""

    timezone: str = ""  # of the cron line, as in the IANA database; "" is this machine's
    missed: str = "once"  # or skip: what is done about times that passed while nothing could run
    when_empty: str = "skip"  # or run: what is done when its live inputs find no file
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a result goes. With a folder and a command, the command is told the path."""

    folder: str = ""  # absolute
    name: str = ""  # with {date} and the like; "" is the default
    file: str = ""  # glob of the files that the run left; "" is the answer
    command: tuple[str, ...] = ()
    timeout_s: float = 60.0  # of the command
    replace: bool = False  # what the same schedule delivered there, if nobody changed it
    when: str = "passed"  # or always


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One file or answer of a run, brought to where the person wants it. Its content is a blob."""

    id: str
    run_id: str
    task_id: str
    schedule_id: str  # "" for a task that no schedule started
    destination: Destination
    file: str  # of the run's workspace; "" is the answer
    sha256: str  # "" where there was nothing to deliver
    size: int
    state: DeliveryState
    created_at: datetime
    path: str = ""  # where it lies, or is about to; "" for a command alone
    attempts: int = 0
    due_at: datetime | None = None  # the next attempt
    command_began: bool = False  # a command that began is not repeated by itself
    ended_at: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """Times at which a schedule started nothing, one after another for the same reason."""

    id: str
    schedule_id: str
    reason: str
    first_at: datetime
    last_at: datetime
    times: int = 1


# Of the cursors by a fingerprint's id, odd while it is muted: its failures are mined and counted all the same.
MUTED_CURSOR = "muted:"


@dataclass(frozen=True, slots=True)
class Question:
    """What a run asked a person. It is answered once, and for the whole task."""

    id: str
    task_id: str  # of the run that asked
    root_id: str  # the task that people gave: the asking one, or that which handed it over
    run_id: str  # that asked first
    text: str
    choices: tuple[str, ...]  # the answers that are possible; empty: any
    asked_at: datetime
    answer: str | None = None
    answered_at: datetime | None = None


class ProposalState(StrEnum):
    """What became of a proposed memory."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class MemoryProposal:
    """A memory that a run would keep. Nothing holds it for true before it is accepted.

    Equal texts are one proposal, whichever run comes with them: the first one is kept.
    """

    id: str
    run_id: str
    task_key: str
    text: str
    why: str
    at: datetime
    state: ProposalState = ProposalState.OPEN
    decided_at: datetime | None = None
    resource: str = ""  # the memory that it became
    reason: str = ""  # for which it was rejected


class Rating(StrEnum):
    """What a person thinks of a run."""

    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Feedback:
    """One person's word on a run. Evidence or a guard may be made of it; a verdict never is.

    Of its ``checks`` a task is made that asks for the run's work with these beside its own: ``task_id``. What
    the run left is held against them, as the run ``regraded_id``. Without checks there is neither.
    """

    id: str
    run_id: str
    task_key: str  # of the run's work
    rating: Rating
    because: str
    checks: tuple[Check, ...]
    principal: str  # who, as the kernel knows it (consent.person)
    at: datetime

    @property
    def task_id(self) -> str:
        return f"task-{self.id.partition('-')[2]}"

    @property
    def regraded_id(self) -> str:
        return f"run-{self.id.partition('-')[2]}"


@dataclass(frozen=True, slots=True)
class StandingCheck:
    """A check that a person accepted for all later tasks of a name, or (``ends``) took back."""

    id: str
    task_name: str
    check: Check
    principal: str
    at: datetime
    ends: str = ""  # the StandingCheck that this one takes back


class NotificationState(StrEnum):
    """What became of a notification."""

    MUTED = "muted"  # nobody wants to be told; it is kept because the next change is told from it
    PENDING = "pending"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up
    UNCERTAIN = "uncertain"  # the daemon ended while it was sent: it is not sent twice


@dataclass(frozen=True, slots=True)
class Notification:
    """One change of state that one channel is told of."""

    id: str  # of the audit entry that told the change, and the channel
    subject: str  # what changed: task:NAME, run:ID, evolution:ID, budget:DAY
    event: str  # a notify.EVENTS
    channel: str  # command, mail, webhook, desktop; "" of a muted one
    title: str
    text: str
    at: datetime
    state: NotificationState = NotificationState.PENDING
    tries: int = 0
    due: datetime | None = None  # of the next try
    why: str = ""  # the last one did not succeed
