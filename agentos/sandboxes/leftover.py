"""What a killed daemon can leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BOXES = Path("run", "boxes")  # below a home: the socket directories of containers that are being made


@dataclass(frozen=True, slots=True)
class Leftover:
    """One orphan, with what tells it from others: a pid, a directory or the engine's id for it.

    ``kind`` is ``process``, ``cgroup``, ``container`` or ``directory``.
    """

    kind: str
    what: str
    owner: str
