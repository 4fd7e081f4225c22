"""What a killed daemon can leave behind, and the notes that tell whose it is.

The name of a box is a random token: what runs inside may see it (its control group, the path of its
socket), and must not learn from it why it runs. Whose the box is, and for which run, stands in a note
that lies outside, under the token.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from agentos.sandboxes.owner import Owner

BOXES = Path("run", "boxes")  # below a home: socket directories of new containers, and their notes
GROUPS = Path("run", "groups")  # notes on control groups

_NOTE = ".note"
_TOKEN = re.compile(r"[0-9a-f]{32}")
_STRANGE = re.compile(r"[^A-Za-z0-9-]")


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
        self.path.write_text(_STRANGE.sub("", run)[:100])

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
