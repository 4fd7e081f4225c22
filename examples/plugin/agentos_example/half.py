"""Sandbox: bubblewrap's boxes with half of the memory and processes that was asked for, for small machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from agentos.domain import Limits
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap


class HalfSize(Bubblewrap):
    name = "half"

    def __init__(self, home: Path, run_uid: int | None) -> None:
        super().__init__(home, run_uid)

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Any:
        """As bubblewrap's; never less than what a worker needs to start."""
        memory, processes = max(128, limits.memory_mb // 2), max(16, limits.processes // 2)
        return super().open(replace(limits, memory_mb=memory, processes=processes), light=light, run=run)
