"""What a killed daemon can leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BOXES = Path("run", "boxes")  # below a home: socket directories of new containers, notes of those in use

NOTE = ".run"  # behind the name of a container: the file that says for which run it is used


@dataclass(frozen=True, slots=True)
class Leftover:
    """One orphan, with what tells it from others: a pid, a directory or the engine's id for it.

    ``kind`` is ``process``, ``cgroup``, ``container``, ``directory`` or ``note``. ``runs`` are those that it
    was made for, as far as that was known.
    """

    kind: str
    what: str
    owner: str
    runs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.what} (of {', '.join(self.runs)})" if self.runs else self.what
