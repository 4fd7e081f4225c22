"""Finds and removes what a killed daemon left in the container engine and of its socket directories.

A container whose daemon died ends by itself when it waits or its job is over, but nobody removes it;
one in the middle of a job goes on until it is removed here. Images belong to no home: what a build
that was cut short leaves is removed by ``image.prune``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import docker.errors

from agentos.errors import Unavailable
from agentos.sandboxes.docker.engine import DockerEngine, answering
from agentos.sandboxes.docker.profile import HOME_LABEL, OWNER_LABEL
from agentos.sandboxes.leftover import BOXES, NOTE, Leftover
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


def owner_of(name: str) -> Owner | None:
    """Whose container or socket directory has this name."""
    return Owner.parse(name.removeprefix("agentos-").rpartition("-")[0])


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
            yield Leftover("container", row["Id"], label, _runs(home / BOXES, row["Names"][0].strip("/")))


def _runs(place: Path, name: str) -> tuple[str, ...]:
    try:
        return ((place / (name + NOTE)).read_text()[:100],)
    except OSError:
        return ()


def _directories(home: Path) -> Iterator[Leftover]:
    place = home / BOXES
    for directory in sorted(place.iterdir()) if place.is_dir() else []:
        owner = owner_of(directory.name)
        if owner is not None and not owner.alive():
            kind = "note" if directory.name.endswith(NOTE) else "directory"
            yield Leftover(kind, str(directory), str(owner))


def _remove(engine: DockerEngine, leftover: Leftover) -> bool:
    if leftover.kind == "note":
        Path(leftover.what).unlink(missing_ok=True)
        return True
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
