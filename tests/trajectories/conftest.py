"""Real runs of other systems, where they are there, and a home's ledger to take them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.domain import Snapshot
from agentos.ledger.store import Ledger
from agentos.trajectories.past import Into

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "trajectories"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def into() -> Into:
    return Into(Snapshot("c" * 40, "t" * 40), 0.2, NOW)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path / "ledger.db")
    yield made
    made.close()


@pytest.fixture
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip("needs the shared trajectories beside the project")
    return DATA
