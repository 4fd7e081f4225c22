"""How the daemon does, in ``run/heartbeat.json``: what ``agentos status`` reads without asking anybody.

The file is opened once and written in place, at one size: so that a disk that is full, or a daemon that may
open nothing more, can still say so.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from agentos.domain import dataclass
from agentos.home import Home

_SIZE = 8192  # bytes, whatever it says
_LONGEST = 600  # characters of a reason
_CHORE_LONGEST = 300
_LATELY_S = 900.0  # within which a chore that fails was tried: the rarest comes every ten minutes
_AGAIN_S = 15.0  # from the failure of a chore to its next try
_EVERY_S = 1.0
SILENT_S = 60.0  # without a word, until a daemon is said to hang


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Times are ISO, UTC; "" for never. ``waiting`` are tasks and evolutions that stand still."""

    pid: int
    at: str
    turn_at: str  # of the last turn that did all it had to
    error: str = ""  # of the last turn that did not
    error_at: str = ""
    paused: str = ""  # why no task is started
    paused_since: str = ""
    damaged: bool = False  # paused for good: the ledger
    descriptors: int = 0
    descriptors_max: int = 0
    waiting: tuple[str, ...] = ()
    settings: str = ""  # digest of the files that were read at the start
    chores: str = ""  # which ones fail, since when and why

    @property
    def silent_s(self) -> float:
        """Since when nothing was heard."""
        return (datetime.now(UTC) - datetime.fromisoformat(self.at)).total_seconds()


@dataclass(frozen=True, slots=True)
class _FailingChore:
    kind: str  # of its error
    since: str
    why: str
    times: int
    last: float  # on the monotonic clock


class HeartbeatFile:
    """Written by the daemon alone; not thread-safe."""

    def __init__(self, home: Home) -> None:
        self._path = home.run / "heartbeat.json"
        self._settings = settings_digest(home)
        self._file = -1
        self._next = 0.0
        self._turned: float | None = None
        self._error = self._error_at = ""
        self._chores: dict[str, _FailingChore] = {}

    def chore(self, name: str, kind: str = "", why: str = "") -> bool:
        """A chore is over, or failed with an error of this kind; whether that is news. On the chore's thread.

        A sentence may name a file that is another one each time, so it is the kind that tells.
        """
        if not kind:
            return self._chores.pop(name, None) is not None
        known = self._chores.get(name)
        since, times = (known.since, known.times) if known else (_now(), 0)
        self._chores[name] = _FailingChore(kind, since, why[:_CHORE_LONGEST], times + 1, time.monotonic())
        return known is None or known.kind != kind

    def is_to_be_tried(self, name: str) -> bool:
        """Whether a chore failed a while ago, by a ledger that was away, say: nothing new need come before the next try."""
        known = self._chores.get(name)
        return known is not None and time.monotonic() - known.last > _AGAIN_S

    def _is_in_place(self) -> bool:
        """Not once the file was removed, or its folder moved away and another one put there."""
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def _failing(self) -> str:
        """Those that failed again when they came again; one that comes no more is no fault for ever."""
        lately = time.monotonic() - _LATELY_S
        known = sorted(self._chores.copy().items())
        failing = [(name, it) for name, it in known if it.times > 1 and it.last > lately]
        return "; ".join(f"{name} since {it.since}: {it.why}" for name, it in failing)[:_LONGEST]

    def turned(self, error: str = "") -> None:
        """A turn is over."""
        if error:
            self._error, self._error_at, self._next = error, _now(), 0.0
        else:
            self._turned = time.time()
            if self._error_at > _iso(
                self._turned
            ):  # the clock was put back: it would go on to be the newer one
                self._error_at = _iso(self._turned)

    def write(self, paused: str, paused_since: str, waiting: Sequence[str], *, damaged: bool = False) -> None:
        """Say it, at most once a second. A disk that does not take even that is passed over."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        beat = Heartbeat(
            pid=os.getpid(),
            at=_now(),
            turn_at="" if self._turned is None else _iso(self._turned),
            error=self._error[:_LONGEST],
            error_at=self._error_at,
            paused=paused[:_LONGEST],
            paused_since=paused_since,
            damaged=damaged,
            descriptors=_descriptors(),
            descriptors_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            waiting=tuple(waiting)[:20],
            settings=self._settings,
            chores=self._failing(),
        )
        try:
            if self._file >= 0 and not self._is_in_place():
                gone, self._file = self._file, -1
                os.close(gone)
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._file, _encoded(beat), 0)
        except OSError:
            self._next = 0.0


def _encoded(beat: Heartbeat) -> bytes:
    """As JSON of ``_SIZE`` bytes: reasons are cut in which each letter takes many, rather than the document."""
    most = _LONGEST
    while len(data := json.dumps(asdict(beat)).encode()) > _SIZE:
        most //= 2
        cut = {name: getattr(beat, name)[:most] for name in ("error", "paused", "chores")}
        waiting = tuple(name[:most] for name in beat.waiting)
        beat = replace(beat, waiting=waiting, **cut)
    return data.ljust(_SIZE)


def read_heartbeat(path: Path) -> Heartbeat | None:
    """What the daemon said last; None when it said nothing that can be read."""
    for _ in range(3):  # it may be written at this moment
        try:
            said = json.loads(path.read_text())
            return Heartbeat(**said | {"waiting": tuple(said["waiting"])})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            time.sleep(0.01)
    return None


def stale_settings(home: Home, pid: int) -> bool:
    """Whether a file that the daemon of this process reads at its start alone has changed since."""
    beat = read_heartbeat(home.run / "heartbeat.json")
    return beat is not None and beat.pid == pid and beat.settings not in ("", settings_digest(home))


def settings_digest(home: Home) -> str:
    """Of what a daemon reads at its start alone: policy, probes, settings without models and providers."""
    found = []
    for name in ("policy.toml", "safety_probes.toml"):
        with suppress(OSError):
            found.append(name.encode() + (home.root / name).read_bytes())
    with suppress(OSError, ValueError):
        table = tomllib.loads(home.settings.read_text(encoding="utf-8-sig"))
        kept = {key: value for key, value in table.items() if key not in ("model", "providers")}
        found.append(json.dumps(kept, sort_keys=True, default=str).encode())
    return hashlib.sha256(b"\0".join(found)).hexdigest()[:16]


def _descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:  # no descriptor is left to look with
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _now() -> str:
    return _iso(time.time())


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
