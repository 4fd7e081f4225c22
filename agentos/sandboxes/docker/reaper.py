"""Finds and removes what a killed daemon left in the container engine and of its socket directories.

A container whose daemon died ends by itself when it waits or its job is over, but nobody removes it;
one in the middle of a job goes on until it is removed here. Images belong to no home: what a build
that was cut short leaves is removed by ``image.prune``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from agentos.errors import Unavailable
from agentos.sandboxes.docker.engine import DockerEngine, answering
from agentos.sandboxes.docker.profile import BOX_LABEL, HOME_LABEL, OWNER_LABEL
from agentos.sandboxes.docker.sdk import docker
from agentos.sandboxes.leftover import BOXES, Leftover, orphaned, runs_of
from agentos.sandboxes.owner import Owner, home_id


def leftovers(home: Path) -> list[Leftover]:
    """All orphans of this home; those of living owners are not. Without an engine, what can be seen."""
    found: list[Leftover] = []
    with _engine() as engine, contextlib.suppress(Unavailable):
        found += _containers(engine, home)
    return [*found, *_directories(home)]


def reap(found: list[Leftover]) -> list[Leftover]:
    """Remove them; those that would not go."""
    with _engine() as engine:
        return [leftover for leftover in found if not _remove(engine, leftover)]


@contextlib.contextmanager
def _engine() -> Iterator[DockerEngine]:
    engine = DockerEngine()
    try:
        yield engine
    finally:
        engine.close()


def _containers(engine: DockerEngine, home: Path) -> Iterator[Leftover]:
    with answering():
        rows = engine.api.containers(all=True, filters={"label": f"{HOME_LABEL}={home_id(home)}"})
    for row in rows:
        label = row["Labels"].get(OWNER_LABEL, "")
        owner = Owner.parse(label)
        if owner is None or not owner.alive():
            yield Leftover(
                "container", row["Id"], label, runs_of(home / BOXES, row["Labels"].get(BOX_LABEL, ""))
            )


def _directories(home: Path) -> Iterator[Leftover]:
    """A note is written before its directory is made, and is removed after it."""
    for note in orphaned(home / BOXES):
        if (home / BOXES / note.token).is_dir():
            yield Leftover("directory", str(home / BOXES / note.token), str(note.owner))
        yield Leftover("note", str(note.path), str(note.owner))


def _remove(engine: DockerEngine, leftover: Leftover) -> bool:
    if leftover.kind == "directory":
        return _remove_directory(Path(leftover.what))
    try:
        with answering():
            engine.api.remove_container(leftover.what, force=True, v=True)
    except Unavailable as error:
        return isinstance(error.__context__, docker.errors.NotFound)
    return True


def _remove_directory(directory: Path) -> bool:
    """Only what we put there; nothing inside a box can add to it."""
    for name in ("socket", "start.json"):
        (directory / name).unlink(missing_ok=True)
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
