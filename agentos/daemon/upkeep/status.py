"""Whether the daemon of a home works: what `agentos status`, `daemon status` and `doctor` say, and a monitor reads.

Read from files and the ledger alone, so that it answers when the daemon does not.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime

from agentos.daemon.control.daemon_lock import DaemonInfo, daemon_info
from agentos.daemon.upkeep.heartbeat import SILENT_S, Heartbeat, read_heartbeat, stale_settings
from agentos.domain import dataclass
from agentos.errors import AgentOSError, Unavailable
from agentos.home import Home
from agentos.ledger.postgres.address import address_of
from agentos.ledger.reading import Reader

HELD = "swap.held"  # memo in the ledger: the ``HeldBack`` as JSON, None while main is served
WORKS, ABSENT, DEGRADED = 0, 1, 4  # exit codes of `daemon status`
_UNUSUAL_S = 5.0  # without a word, after which it is looked whether one can be written
ROOM_BYTES, ROOM_FILES = 8 << 20, 64  # on the disk of the home, below which no run is begun


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits for the machinery, or for its model."""

    task: str
    since: datetime | None
    why: str


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """``state`` is works, stand-by, starting, paused, silent, failing, damaged, low, absent or killed; ``why`` says what to type."""

    state: str
    code: int
    why: str
    info: DaemonInfo | None
    beat: Heartbeat | None
    disk_free_mb: int
    files_free: int | None  # None where the file system does not count them
    given_up: int  # tasks, among the newest 10,000 audit entries
    waiting: tuple[WaitingTask, ...] = ()
    overdue: tuple[str, ...] = ()  # a sentence for each box that should have been gone
    stale_settings: bool = False  # a file that is read at the start alone has changed since
    settings_fault: str = ""  # of such a file: no daemon would start with it
    leads: str = ""  # where control processes share a database: which one leads, and which ones stand by


_NO_HOST = "no host takes its box; `agentos cluster status` tells which are there"


def daemon_status(home: Home) -> DaemonStatus:
    """Look."""
    info, beat = daemon_info(home), read_heartbeat(home.run / "heartbeat.json")
    if info is None or beat is None or beat.pid != info.pid:
        beat = None  # of another daemon
    if not home.is_there:
        return DaemonStatus("absent", ABSENT, f"there is no home at {home.root}", info, beat, 0, None, 0)
    disk = os.statvfs(home.root)
    free, files = disk.f_bavail * disk.f_frsize, disk.f_favail if disk.f_files else None
    state, why = _state(home, info, beat, free, files)
    code = {"works": WORKS, "stand-by": WORKS, "absent": ABSENT, "killed": ABSENT}.get(state, DEGRADED)
    leads, unreached = _leads(home)
    if unreached and state == "works":  # it says so itself only when its next turns have failed
        state, why, code = "failing", unreached, DEGRADED
    given_up, waiting = (0, ()) if unreached else _tasks(home, beat)
    stale = info is not None and code != ABSENT and stale_settings(home, info.pid)
    overdue = info.overdue if info is not None and info.alive else ()
    return DaemonStatus(
        *(state, code, why, info, beat, free >> 20, files, given_up, waiting, overdue, stale),
        settings_fault=_settings_fault(home) if stale else "",
        leads=leads,
    )


def _settings_fault(home: Home) -> str:
    from agentos.evolver.documents import load_policy
    from agentos.settings import load_settings

    own = home.root / "policy.toml"
    try:
        load_settings(home.settings)
        if own.exists():
            load_policy(own)
    except AgentOSError as error:
        return str(error)
    return ""


def _leads(home: Home) -> tuple[str, str]:
    """Who leads on the home's database, if it has one; and why that cannot be reached from here."""
    try:
        if not (address := address_of(home.ledger)):
            return "", ""
        from agentos.ledger.postgres.leadership import control

        found = control(address)
    except AgentOSError as error:
        return f"it cannot be told who leads: {error}", str(error) if isinstance(error, Unavailable) else ""
    if found is None:
        return "", ""
    others = f"; stands by: {', '.join(found.stand_bys)}" if found.stand_bys else ""
    if not found.leads:
        return f"nobody leads; {found.name} was the last (term {found.term}){others}", ""
    return f"{found.name} leads, since {found.since} (term {found.term}){others}", ""


def _state(
    home: Home, info: DaemonInfo | None, beat: Heartbeat | None, free: int, files: int | None
) -> tuple[str, str]:
    start = "`agentos daemon start` starts one"
    if info is None:
        return "absent", f"no daemon runs on {home.root}; {start}"
    if not info.alive:
        died = f"the last one (pid {info.pid}) was killed"
        return "killed", f"no daemon runs on {home.root}: {died}. {start}; it takes up what was under way"
    if not info.ready:
        return (
            ("stand-by", "it waits for who leads to be gone")
            if info.stand_by
            else ("starting", "it is starting")
        )
    if beat is None:
        return "silent", f"it says nothing of itself; see {home.logs / 'daemon.log'}"
    if beat.damaged:
        return "damaged", f"it takes no tasks since {beat.paused_since}: {beat.paused}"
    if silence := _silence(home, beat):
        return "silent", silence
    if beat.paused:
        return "paused", f"it starts no task since {beat.paused_since}, and tries again: {beat.paused}"
    if failing := _failing(beat):
        return "failing", failing
    if free < ROOM_BYTES or (files is not None and files < ROOM_FILES):
        return (
            "low",
            f"the disk of {home.root} is nearly full ({free >> 20} MB, {files} files left): make room",
        )
    return "works", ""


def _silence(home: Home, beat: Heartbeat) -> str:
    if beat.silent_s > _UNUSUAL_S and (fault := unwritable(home)):
        return f"{fault}: make it writable again"
    if beat.silent_s > SILENT_S:
        log = home.logs / "daemon.log"
        return f"it hangs since {beat.at}; see {log}, then `agentos daemon stop --now`"
    return ""


def unwritable(home: Home) -> str:
    """Why nothing can be written in the home, "" when it can."""
    try:
        with tempfile.TemporaryFile(dir=home.root) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return f"nothing can be written in {home.root} ({error.strerror})"
    return ""


def _failing(beat: Heartbeat) -> str:
    if beat.error_at > beat.turn_at:
        return f"its turns fail since {beat.turn_at or 'its start'}: {beat.error}"
    return f"a chore fails, and is tried again ({beat.chores}); see `agentos doctor`" if beat.chores else ""


def _tasks(home: Home, beat: Heartbeat | None) -> tuple[int, tuple[WaitingTask, ...]]:
    try:
        reader = Reader(home.ledger)
        waiting = []
        for task_id in [name for name in (beat.waiting if beat else ()) if name.startswith("task")]:
            (run,) = reader.runs(task_id, limit=1) or (None,)
            since = (run.finished_at or run.started_at) if run else None
            why = run.outcome.reason if run and run.outcome else (beat.paused if beat else "")
            waiting.append(WaitingTask(task_id, since, why or _NO_HOST))
        return reader.count_entries("task.given_up"), tuple(waiting)
    except AgentOSError:  # a ledger that cannot be read is said by whoever reads it
        return 0, ()


def since_text(since: datetime | None) -> str:
    """How long ago, for a person."""
    if since is None:
        return "a while"
    seconds = int((datetime.now(UTC) - since).total_seconds())
    return (
        f"{seconds} s"
        if seconds < 120
        else f"{seconds // 60} min"
        if seconds < 7200
        else f"{seconds // 3600} h"
    )
