"""What ties a task to the days of a person: files read when it runs, what starts it, where results go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
