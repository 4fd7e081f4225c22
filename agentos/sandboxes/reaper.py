"""Finds and removes what a daemon that was killed left outside its own process.

Two kinds of things can be left: control groups, and a template with its boxes that the kernel
has not ended yet. Mounts live in namespaces that die with their processes, and nothing is ever
written to a host directory. A thing is a leftover when its label names this home and a process
that is no more.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentos.errors import Unavailable
from agentos.sandboxes import cgroups
from agentos.sandboxes.bubblewrap.launch import LABEL_VARIABLE
from agentos.sandboxes.owner import BOXES, GROUPS, PODS, Leftover, Owner, home_id, orphaned, runs_of


def leftovers(home: Path) -> list[Leftover]:
    """All orphans of this home; those of living owners are not."""
    found = [*_processes(home_id(home)), *_groups(home), *_notes(home)]
    if (home / BOXES).is_dir():  # else no container was ever made for this home
        with contextlib.suppress(Unavailable):  # the extra was removed: what it made cannot be seen without
            from agentos.sandboxes.docker import engine as docker_reaper

            found += docker_reaper.leftovers(home)
    if (home / PODS).is_file():
        with contextlib.suppress(Unavailable):  # the cluster is away, or the extra was removed
            from agentos.sandboxes.kubernetes import sandbox as pods

            found += pods.leftovers(home)
    return found


def reap(found: Iterable[Leftover]) -> list[Leftover]:
    """Remove them, processes first; those that would not go."""
    ordered = sorted(found, key=lambda leftover: leftover.kind != "process")
    mine = [leftover for leftover in ordered if leftover.kind in ("process", "cgroup", "note")]
    pods_left = [leftover for leftover in ordered if leftover.kind == "pod"]
    others = [leftover for leftover in ordered if leftover not in (*mine, *pods_left)]
    left = [leftover for leftover in mine if not _remove(leftover)]
    if others:
        from agentos.sandboxes.docker import engine as docker_reaper

        left += docker_reaper.reap(others)
    if pods_left:
        from agentos.sandboxes.kubernetes import sandbox as pods

        left += pods.reap(pods_left)
    return left


def drop_strangers(home: Path) -> int:
    """Take away the control groups of other homes whose process is no more; of how many processes there were some.

    A home that is gone starts no daemon that would do it. One that holds a process stays: the kernel removes an empty
    group only, so what lives in another namespace of processes, where we cannot see its owner, is safe as well.
    """
    own, gone = home_id(home), set[str]()
    for place in [*cgroups.labelled("")]:
        owner = Owner.parse(place.name.removeprefix(cgroups.PREFIX))
        if owner is None or owner.home == own or owner.alive():
            continue
        for child in place.glob("*/"):
            cgroups.remove(child, 0.0)
        if cgroups.remove(place, 0.0):
            gone.add(str(owner))
    return len(gone)


def _processes(home: str) -> Iterator[Leftover]:
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        label = _label(int(entry.name))
        owner = Owner.parse(label)
        if owner is not None and owner.home == home and not owner.alive():
            yield Leftover("process", entry.name, label)


def _label(pid: int) -> str:
    """The value of our variable in a process' environment, "" for other people's processes."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    name = LABEL_VARIABLE.encode() + b"="
    for variable in environment.split(b"\0"):
        if variable.startswith(name):
            return variable.removeprefix(name).decode("ascii", "replace")
    return ""


def _groups(home: Path) -> Iterator[Leftover]:
    for place in cgroups.labelled(home_id(home)):
        label = place.name.removeprefix(cgroups.PREFIX)
        owner = Owner.parse(label)
        if owner is not None and not owner.alive():
            runs = sorted(run for child in place.glob("*/") for run in runs_of(home / GROUPS, child.name))
            yield Leftover("cgroup", str(place), label, tuple(runs))


def _notes(home: Path) -> Iterator[Leftover]:
    for note in orphaned(home / GROUPS):
        yield Leftover("note", str(note.path), str(note.owner), note.runs)


def _remove(leftover: Leftover) -> bool:
    if leftover.kind == "note":
        Path(leftover.what).unlink(missing_ok=True)
        return True
    if leftover.kind == "process":
        if _label(int(leftover.what)) == leftover.owner:  # the pid may be another's by now
            _kill(int(leftover.what))
        return True
    place = Path(leftover.what)
    boxes = [child for child in place.glob("*/") if (child / "cgroup.procs").exists()]
    for box in boxes:
        with contextlib.suppress(OSError):  # gone by itself, or by another who looked
            for pid in (box / "cgroup.procs").read_text().split():
                _kill(int(pid))
    return all([cgroups.remove(box) for box in [*boxes, place]])


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
