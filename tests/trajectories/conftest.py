"""Real runs of other systems, where they are there; a ledger to take them; and runs as made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentos.domain import Cost, Fault, Json, Limits, Outcome, Result, Run, Share, Snapshot, Step, Task
from agentos.ledger.store import Ledger
from agentos.trajectories.chat import FinishedRun
from agentos.trajectories.past import ImportTarget

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "trajectories"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Made = tuple[str, Json, Json]  # node, action, observation


@pytest.fixture
def into() -> ImportTarget:
    return ImportTarget(Snapshot("c" * 40, "t" * 40), 0.2, NOW)


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


@pytest.fixture
def happened() -> Callable[..., FinishedRun]:
    """A finished run of this home: ``happened(("model", action, observation), …, result=…)``."""

    def make(
        *steps: Made,
        id: str = "run-1",
        goal: str = "add 1 and 2",
        result: Result = Result.PASSED,
        answer: Json = None,
        fault_at: int = -1,
    ) -> FinishedRun:
        task = Task("task-1", "sum", goal, None, (), "default", Limits(), (), (), None, NOW)
        outcome = Outcome(result, 1.0 if result is Result.PASSED else 0.0, "", cost=Cost(1.0, 0.5, 12, None))
        run = Run(
            id,
            task.id,
            task.key,
            Share.OPEN,
            1,
            Snapshot("c" * 40, "t" * 40),
            "bubblewrap",
            "namespaces",
            NOW,
            NOW + timedelta(seconds=2),
            outcome,
            answer,
        )
        return FinishedRun(task, run, _steps(id, steps, fault_at))

    return make


def _steps(run_id: str, made: Sequence[Made], fault_at: int) -> tuple[Step, ...]:
    return tuple(
        Step(
            run_id,
            index,
            *parts,
            fault=Fault("ValueError", "no such number") if index == fault_at else None,
            started_at=NOW + timedelta(milliseconds=10 * index),
            duration_ms=2.5,
        )
        for index, parts in enumerate(made)
    )
