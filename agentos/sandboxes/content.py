"""Reads the authored files of the top-level ``sandboxes/`` folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from agentos import shipped
from agentos.domain import Limits


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """``limits.toml``: what every box gets beside the limits of its task."""

    tmp_mb: int
    snapshot_mb: int
    shm_mb: int
    inodes: int
    open_files: int
    signals: int
    cpus: float
    grace_s: float
    sysctls: dict[str, str]


def box_limits() -> BoxLimits:
    """The limits of every box."""
    return BoxLimits(**_table("limits.toml"))


def file_systems_and_limits(limits: Limits, extras: BoxLimits) -> dict[str, Any]:
    """What a worker that makes its own file systems is told of them, and of its processes' limits (``agentos/worker/template.py``)."""
    return {
        "tmpfs": {
            "/ws": limits.workspace_mb << 10,
            "/tmp": extras.tmp_mb << 10,  # noqa: S108 - the box's own
            "/snapshot": extras.snapshot_mb << 10,
            "/dev/shm": extras.shm_mb << 10,  # noqa: S108 - the box's own
        },
        "inodes": extras.inodes,
        "memory": limits.memory_mb << 20,
        "rlimits": {
            "CORE": 0,
            "MSGQUEUE": 0,
            "SIGPENDING": extras.signals,
            "NOFILE": extras.open_files,
            "NPROC": limits.processes,  # counted in the box's own user namespace
            "FSIZE": limits.workspace_mb << 20,
        },
    }


@dataclass(frozen=True, slots=True)
class CallList:
    """``seccomp.toml``: the system calls that a box may make."""

    numbers: dict[str, dict[str, int]]  # machine -> name -> number
    families: tuple[int, ...]  # of sockets, allowed
    ioctls: tuple[int, ...]  # refused
    options: tuple[int, ...]  # of sockets, refused

    @property
    def names(self) -> frozenset[str]:
        """Of the calls of every machine."""
        return frozenset(name for calls in self.numbers.values() for name in calls)


def call_list() -> CallList:
    """The system calls of every box."""
    table = _table("seccomp.toml")
    calls = [word.split(":") for group in table["allow"].values() for word in group.split()]
    numbers = {
        machine: {call[0]: int(call[column]) for call in calls if call[column] != "-"}
        for column, machine in enumerate(("x86_64", "aarch64"), 1)
    }
    return CallList(numbers, *(tuple(table[name]) for name in ("families", "ioctls", "options")))


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((shipped.folder("sandboxes") / name).read_text(encoding="utf-8"))
