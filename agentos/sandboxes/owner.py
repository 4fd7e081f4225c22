"""Whose leftovers are whose: the label on everything a sandbox puts outside its own process.

A label names the home and the process that made the thing. A pid alone lies after a reboot or a
wrap-around, so the process' start time belongs to it.
"""

from __future__ import annotations

import hashlib
import os
import re
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


def _started(pid: int) -> int:
    """Start time in clock ticks since boot; -1 when there is no such process (or only its corpse)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    fields = stat.rpartition(")")[2].split()
    return -1 if fields[0] in "ZX" else int(fields[19])
