"""Where a job stands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """``alone``: the worker is process 1 of its namespace, so every other process is the job's."""

    workspace: Path
    snapshot: Path
    alone: bool
