"""Reading the history for people: log and diff, through GitPython, closed after each use.

GitPython never writes here (measured: its index commits lose work under concurrency), and its
git subprocess gets the same clean environment as our own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agentos.errors import Unavailable
from agentos.registry.git import versions
from agentos.registry.git.repository import MAIN, Repository, environment

if TYPE_CHECKING:
    import git


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit on ``main``. ``versions`` are the texts ``kind/name@number`` that it made."""

    commit: str
    at: datetime
    author: str
    origin: str
    subject: str
    versions: tuple[str, ...]
    trailers: tuple[tuple[str, str], ...]


def log(repository: Repository, limit: int, path: str = "") -> list[HistoryEntry]:
    """The newest commits of ``main`` that touched ``path`` ("" is all), newest first."""
    form = "%H%x00%ct%x00%an%x00%B%x1e"
    arguments = ["--first-parent", f"--max-count={limit}", f"--format={form}", MAIN, "--"]
    with _open(repository) as reader:
        text = reader.git.log(*arguments, *([path] if path else []))
    return [_entry(record.lstrip("\n")) for record in text.split("\x1e") if record.strip()]


def diff(repository: Repository, old: str, new: str, path: str = "") -> str:
    """The unified diff between two commits or trees, below ``path`` ("" is all)."""
    arguments = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", old, new, "--"]
    with _open(repository) as reader:
        text: str = reader.git.diff(*arguments, *([path] if path else []), strip_newline_in_stdout=False)
        return text


def _entry(record: str) -> HistoryEntry:
    commit, when, author, text = record.split("\x00", 3)
    found = versions.trailers(text)
    own = {"Origin", "Version", "Parent-Version"}
    return HistoryEntry(
        commit=commit,
        at=datetime.fromtimestamp(int(when), UTC),
        author=author,
        origin=versions.first(found, "Origin") or "",
        subject=text.partition("\n")[0],
        versions=tuple(found.get("Version", [])),
        trailers=tuple((key, value) for key, values in found.items() if key not in own for value in values),
    )


@contextmanager
def _open(repository: Repository) -> Iterator[git.Repo]:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        del os.environ[key]  # GitPython can add to the environment of its git, not take away
    import git

    try:
        reader = git.Repo(repository.path)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise Unavailable(f"The registry cannot be read: {error}") from None
    try:
        reader.git.update_environment(**environment())
        yield reader
    except git.GitCommandError as error:
        raise Unavailable(f"The registry's history cannot be read: {error.stderr.strip()}") from None
    finally:
        reader.close()
