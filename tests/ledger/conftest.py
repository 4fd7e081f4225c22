from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.domain import Call, Check, Effect, InputFile, Limits, Run, Share, Snapshot, Step, Task
from agentos.ledger.store import Ledger

# Of tests that look into the file, or do to it what one cannot do to a server.
IN_FILE = pytest.mark.parametrize("database", ["file"], indirect=True)
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Both places of a ledger at ``tmp_path / "ledger.db"``, for tests of what it promises."""
    if request.param == "postgres":
        address = request.getfixturevalue("postgres_address")
        (tmp_path / "agentos.toml").write_text(f'database = "{address}"\n')
    return str(request.param)


@pytest.fixture
def ledger(database: str, tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path / "ledger.db")
    yield made
    made.close()


@pytest.fixture
def make_task() -> Callable[..., Task]:
    def make(id: str = "task-1", *, goal: str = "add up") -> Task:
        return Task(
            id=id,
            name="sum",
            goal=goal,
            call=Call("column_sum", {"column": "b", "deep": [1, None, {"x": 1.5}]}),
            inputs=(InputFile("in.csv", "0" * 64, 12),),
            agent="default",
            limits=Limits(steps=3),
            effects=(Effect.READ,),
            checks=(Check("equals", {"value": 6}),),
            schedule=None,
            created_at=NOW,
        )

    return make


@pytest.fixture
def make_run(make_task: Callable[..., Task]) -> Callable[..., Run]:
    def make(id: str = "run-1", *, task: Task | None = None, attempt: int = 1) -> Run:
        of = task or make_task()
        return Run(id, of.id, of.key, Share.OPEN, attempt, Snapshot("c" * 40, "t" * 40), "fake", "none", NOW)

    return make


@pytest.fixture
def make_step() -> Callable[..., Step]:
    def make(index: int = 0, *, run_id: str = "run-1", observation: object = None) -> Step:
        return Step(run_id, index, "act", {"tool": "column_sum"}, observation, None, NOW, 1.25)

    return make
