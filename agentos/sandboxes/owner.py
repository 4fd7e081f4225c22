"""Whose leftovers are whose: the label on everything a sandbox puts outside its own process.

A label names the home and the process that made the thing. A pid alone lies after a reboot or a
wrap-around, so the process' start time belongs to it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

_TEXT = re.compile(r"(?P<home>[0-9a-f]{12})-(?P<pid>\d{1,10})-(?P<started>\d{1,20})")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that worked for a home. ``str()`` is the label."""

    home: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.home}-{self.pid}-{self.started}"

    @classmethod
    def here(cls, home: Path) -> Owner:
        """This process, for this home."""
        return cls(home_id(home), os.getpid(), _started(os.getpid()))

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner on a label; None when it is none of ours."""
        found = _TEXT.fullmatch(text)
        return cls(found["home"], int(found["pid"]), int(found["started"])) if found else None

    def alive(self) -> bool:
        """Whether that very process still runs."""
        return _started(self.pid) == self.started


def home_id(home: Path) -> str:
    """Twelve hex digits that stand for a home on labels, whose place is nobody else's concern."""
    return hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:12]


def place_of(home: Path) -> str:
    """What the system knows the home's folder by, under whichever path; a copy is another one. Raises OSError."""
    found = home.stat()
    return f"{found.st_dev}:{found.st_ino}"


def _started(pid: int) -> int:
    """Start time in clock ticks since boot; -1 when there is no such process (or only its corpse)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    fields = stat.rpartition(")")[2].split()
    return -1 if fields[0] in "ZX" else int(fields[19])


# --- What a killed daemon can leave behind, and the notes that tell whose it is ------------------
# The name of a box is a random token: what runs inside may see it (its control group, the path of its
# socket), and must not learn from it why it runs. Whose the box is, and for which run, stands in a note
# that lies outside, under the token.


BOXES = Path("run", "boxes")  # below a home: socket directories of new containers, and their notes
GROUPS = Path("run", "groups")  # notes on control groups
PODS = Path("run", "kubernetes.id")  # what the pods of a home are labelled with, once there was one

_NOTE = ".note"
_TOKEN = re.compile(r"[0-9a-f]{32}")
_STRANGE = re.compile(r"[^A-Za-z0-9-]")


@dataclass(frozen=True, slots=True)
class Leftover:
    """One orphan, with what tells it from others: a pid, a directory or the engine's id for it.

    ``kind`` is ``process``, ``cgroup``, ``container``, ``pod``, ``directory`` or ``note``. ``runs`` are those that it
    was made for, as far as that was known; ``home`` has the settings that tell of a pod's cluster.
    """

    kind: str
    what: str
    owner: str
    runs: tuple[str, ...] = ()
    home: str = ""

    def __str__(self) -> str:
        return f"{self.what} (of {', '.join(self.runs)})" if self.runs else self.what


@dataclass(frozen=True, slots=True)
class OwnerNote:
    """A file by the name ``<token>.<owner>.note``; it holds the run, where one is known."""

    path: Path

    @classmethod
    def fresh(cls, folder: Path, owner: Owner | str, run: str = "") -> OwnerNote:
        """Written, under a token of its own. Raises OSError."""
        note = cls(folder / f"{secrets.token_hex(16)}.{owner}{_NOTE}")
        note.write(run)
        return note

    @property
    def token(self) -> str:
        """The box's name."""
        return self.path.name.partition(".")[0]

    @property
    def owner(self) -> Owner | None:
        """The process that the box belongs to."""
        return Owner.parse(self.path.name.removesuffix(_NOTE).partition(".")[2])

    @property
    def runs(self) -> tuple[str, ...]:
        """The run that it is for, if that is known."""
        try:
            run = _STRANGE.sub("", self.path.read_text("utf-8", "replace"))[:100]
        except OSError:
            return ()
        return (run,) if run else ()

    def write(self, run: str) -> None:
        """Say for which run it is. Raises OSError."""
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, _STRANGE.sub("", run)[:100].encode())
        finally:
            os.close(file)

    def remove(self) -> None:
        """Idempotent."""
        self.path.unlink(missing_ok=True)


def notes(folder: Path, box: str = "*") -> list[OwnerNote]:
    """All that lie there, or those of one box."""
    return [OwnerNote(path) for path in sorted(folder.glob(f"{box}.*{_NOTE}"))]


def runs_of(folder: Path, token: str) -> tuple[str, ...]:
    """The runs that the box of this name was for, as far as that is known."""
    return notes(folder, token)[0].runs if _TOKEN.fullmatch(token) and notes(folder, token) else ()


def orphaned(folder: Path) -> list[OwnerNote]:
    """The notes of processes that are no more."""
    return [note for note in notes(folder) if note.owner is not None and not note.owner.alive()]
