"""One daemon for one home: the lock that says so, and who holds it.

The lock is held by the kernel of the operating system for as long as the process lives, so it can
never be stale. It is on the home's directory itself: a file in it could be deleted, and a second daemon
would lock the next one of that name. The file ``run/daemon.json`` only tells a person who it is; its pid
is believed only when the start time of the process fits.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from agentos import __version__
from agentos.errors import HomeBusy, Unavailable, UserError, to_type
from agentos.home import Home, made_folder
from agentos.sandboxes.owner import Owner, place_of

_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class DaemonInfo:
    """Who the daemon of a home is, or was."""

    pid: int
    owner: str  # pid with start time, so that a later process with the same pid is told apart
    version: str
    started_at: str
    ready: bool
    stand_by: bool = False  # waits for the control process that leads on the database to be gone
    overdue: tuple[str, ...] = ()  # a sentence for each box that should have been gone
    place: str = ""  # of the home, as the system knows it: a copy of the home tells of no daemon of its own
    alive: bool = False


def daemon_info(home: Home) -> DaemonInfo | None:
    """The daemon that runs, or the last one that did (``alive`` is False); None for none.

    One of a later release may say more of itself, which is passed over.
    """
    try:
        said = json.loads((home.run / "daemon.json").read_text())
        known = {field.name: said[field.name] for field in fields(DaemonInfo) if field.name in said}
        found = DaemonInfo(**known | {"overdue": tuple(known.get("overdue", ()))})
        owner = Owner.parse(found.owner)
    except (OSError, ValueError, TypeError):
        return None
    alive = owner is not None and owner.alive() and is_of(home, found.place, home.root)
    return replace(found, alive=alive)


def is_of(home: Home, place: str, locked: Path) -> bool:
    """Whether a note with this ``place`` tells of a process of this home, or came here with a copy of another one.

    Some file systems of users number a folder anew each time: there the lock tells, which that process has on ``locked``.
    """
    try:
        if place in ("", place_of(home.root)):
            return True
        descriptor = os.open(locked, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def daemon_runs(home: Home) -> bool:
    """Whether one does now."""
    info = daemon_info(home)
    return info is not None and info.alive


class DaemonLock:
    """Held for the life of the daemon. Raises Busy when another holds it, NotFound without a home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        home.require()
        self._directory = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._take()
        self._info = DaemonInfo(
            pid=os.getpid(),
            owner=str(Owner.here(home.root)),
            version=__version__,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            ready=False,
            place=place_of(home.root),
        )
        self._write(self._info)

    def _take(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                info = daemon_info(self._home)
                # one that was killed a moment ago may hold it until its last thread is gone
                if (info and info.alive) or time.monotonic() > deadline:
                    os.close(self._directory)
                    alive = info is not None and info.alive
                    who = f"with pid {info.pid}, since {info.started_at}" if info and alive else "just now"
                    raise HomeBusy(
                        f"another daemon runs on {self._home.root} ({who}); ",
                        to_type("agentos daemon stop"),
                        " ends it",
                    ) from None
                time.sleep(0.05)

    def ready(self) -> None:
        """Tell whoever waits that tasks are now taken."""
        self._info = replace(self._info, ready=True, stand_by=False)
        self._write(self._info)

    def stand_by(self) -> None:
        """Tell whoever waits that another control process leads."""
        self._info = replace(self._info, stand_by=True)
        self._write(self._info)

    def lead(self) -> None:
        """Tell that the start goes on."""
        self._info = replace(self._info, stand_by=False)
        self._write(self._info)

    def name_overdue(self, boxes: tuple[str, ...]) -> None:
        """Say which boxes would not go, for `agentos doctor` and whoever asks ``daemon_info``."""
        if boxes != self._info.overdue:
            self._info = replace(self._info, overdue=boxes)
            with suppress(OSError):
                self._write(self._info)

    def keep(self) -> None:
        """Tell it again where somebody deleted the file, or all of ``run/``: else nobody could stop us."""
        if not (self._home.run / "daemon.json").exists():
            with suppress(OSError):  # a full disk: the next turn tries again
                self._write(self._info)

    def release(self) -> None:
        """Give the lock up. On a disk that is read-only by now it looks like a kill."""
        with suppress(OSError):
            (self._home.run / "daemon.json").unlink()
        os.close(self._directory)

    def _write(self, info: DaemonInfo) -> None:
        made_folder(self._home.run)
        # one name: what a kill left is written over by the next daemon
        aside = self._home.run / "daemon.json.new"
        aside.write_text(json.dumps(asdict(info)))
        aside.rename(self._home.run / "daemon.json")


# --- A daemon seen from the command line: started in the background, asked to end ----------------
# Nothing of what the daemon works with is imported here: that takes a second, and only the daemon needs it.


_READY_S = 60.0
_POLL_S = 0.05
_HANGS_S = 30.0  # since it was asked to stop at once


def start_daemon(home: Home, *, stand_by: bool = False) -> DaemonInfo:
    """Start a daemon in the background and wait until it takes tasks, or stands by.

    Raises UserError when one runs, Unavailable with its last words when it does not come up.
    """
    info = daemon_info(home)
    if info is not None and info.alive:
        raise UserError(f"the daemon of {home.root} runs already (pid {info.pid})")
    home.require()
    said = made_folder(home.logs) / "daemon.out"
    command = [sys.executable, "-P", "-m", "agentos", "--home", str(home.root), "daemon", "run", "--quiet"]
    command += ["--stand-by"] if stand_by else []
    with said.open("wb") as out:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=home.root,
        )
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        info = daemon_info(home)
        if info is not None and info.pid == child.pid and (info.ready or info.stand_by):
            return info
        if child.poll() is not None:
            raise Unavailable(f"the daemon did not start: {_last_words(said)}")
        time.sleep(_POLL_S)
    raise Unavailable(f"the daemon is not ready after {_READY_S:.0f} s; see {home.logs / 'daemon.log'}")


def _last_words(said: Path) -> str:
    words = said.read_text(errors="replace").strip().splitlines()
    try:
        said.write_text("\n".join(words) or "it said nothing")
    except OSError as error:  # it had no room for its words either
        return f"{error.strerror}: {said}"
    return words[-1] if words else "it said nothing"


def stop_daemon(
    home: Home, *, at_once: bool, patience_s: float = _HANGS_S
) -> Literal["", "stopped", "killed"]:
    """Ask the daemon to drain (or to stop at once) and wait until it is gone; "" when none ran.

    ``at_once``, one that does not answer for ``patience_s`` hangs, and is killed.
    """
    info = daemon_info(home)
    if info is None or not info.alive:
        return ""
    _ask_to_end(info.pid)
    began = asked = time.monotonic()
    ended: Literal["stopped", "killed"] = "stopped"
    while (now := daemon_info(home)) is not None and now.alive and now.owner == info.owner:
        if at_once and ended == "stopped" and time.monotonic() - began > patience_s:
            _signal(info.pid, signal.SIGKILL)
            ended = "killed"
        # a second signal that follows too closely would be merged with the first
        elif at_once and time.monotonic() - asked > 4 * _POLL_S:
            _ask_to_end(info.pid)
            asked = time.monotonic()
        time.sleep(_POLL_S)
    return ended


def _ask_to_end(pid: int) -> None:
    """Raises UserError where it is another user's."""
    _signal(pid, signal.SIGTERM)
    _signal(pid, signal.SIGCONT)  # one that was stopped hears nothing else


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it ended by itself a moment ago
        pass
    except PermissionError:
        raise UserError(
            f"the daemon (pid {pid}) is another user's: stop it as that user, or as root"
        ) from None
