"""Reads the authored files of the top-level ``sandboxes/`` folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from agentos import shipped


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """``limits.toml``: what every box gets beside the limits of its task."""

    tmp_mb: int
    snapshot_mb: int
    shm_mb: int
    inodes: int
    open_files: int
    cpus: float
    grace_s: float


def box_limits() -> BoxLimits:
    """The limits of every box."""
    return BoxLimits(**_table("limits.toml"))


def deny_list() -> dict[str, Any]:
    """``seccomp.toml``: the refused system calls by name, with their numbers."""
    return _table("seccomp.toml")


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((shipped.folder("sandboxes") / name).read_text(encoding="utf-8"))
