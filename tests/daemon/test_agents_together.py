"""The example of agents together: one tree of runs, on one budget, and a fault is found where it was planted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.offline import offline_context
from agentos.daemon.run.delegation import DelegationHandlers
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.daemon.views.json_views import handed_below
from agentos.domain import InputFile, Limits, Result, Run, Share, Task, TaskState, new_id
from agentos.evolver.find.mining import inspect
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.taskfile import read_drafts

pytestmark = pytest.mark.sandbox

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "agents-together"
KINDS = ("agent", "harness", "tool")
FAULTS = {  # tool -> what is right in it, and what is planted
    "sum-amounts": ('float(line.replace(",", ""))', "float(line)"),
    "check-totals": ('row["amount"].replace(",", "")', 'row["amount"]'),
}


def files() -> dict[str, bytes]:
    return {
        path.relative_to(EXAMPLE).as_posix(): path.read_bytes()
        for path in EXAMPLE.rglob("*")
        if path.is_file() and path.relative_to(EXAMPLE).parts[0] in KINDS
    }


def planted(tool: str) -> dict[str, bytes]:
    path = f"tool/{tool}/tool.py"
    source = files()[path].decode()
    right, wrong = FAULTS[tool]
    assert right in source
    return files() | {path: source.replace(right, wrong).encode()}


class World:
    def __init__(self, home: Home, ledger: Ledger, sandbox: Bubblewrap) -> None:
        self.home, self.ledger = home, ledger
        self.registry = Registry(home.registry)
        self.handing = DelegationHandlers(ledger, lambda: self.executor)
        serving = RunServices(answerers={"delegate": self.handing.answerer})
        self.executor = BoxExecutor(self.registry, ledger.blobs, sandbox, serving=serving)

    def run(self, content: dict[str, bytes], **limits: float) -> Run:
        self.registry.commit(content, "Agents together", "edit")
        (draft,) = read_drafts(EXAMPLE / "task.yaml")
        sales = (EXAMPLE / "sales.csv").read_bytes()
        given = [InputFile("sales.csv", self.ledger.blobs.put(sales), len(sales))]
        task = replace(draft.task(new_id("task"), given, datetime.now(UTC)), limits=Limits(**limits))
        return self.do(task)

    def do(self, task: Task) -> Run:
        self.ledger.add_task(task, Share.OPEN, TaskState.RUNNING)
        run = Run(
            new_id("run"), task.id, task.key, Share.OPEN, 1, self.registry.stable(), "bubblewrap", "",
            datetime.now(UTC),
        )  # fmt: skip
        self.ledger.begin_run(run)
        done = self.executor.execute(task, run.snapshot, run.id, self.ledger.append_step)
        self.ledger.finish_run(run.id, done.outcome, done.answer, (), done.resources)
        return self.ledger.run(run.id)


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap) -> World:
    return World(home, ledger, sandbox)


def test_planner_workers_and_checker_do_the_job(world: World) -> None:
    run = world.run(files())
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED, run.outcome.reason
    below = list(handed_below(world.ledger, run.task_id))
    assert [task.agent for _, task, _ in below] == ["worker", "worker", "worker", "checker"]
    assert all(newest and newest.parent == run.id for _, _, newest in below)


def test_those_below_draw_from_the_limits_above(world: World) -> None:
    run = world.run(files(), wall_s=40.0, tokens=1000, calls=7)
    for _, task, _ in handed_below(world.ledger, run.task_id):
        assert task.limits.wall_s < 40.0
        assert (task.limits.tokens, task.limits.calls) == (1000, 7)


@pytest.mark.parametrize(("tool", "agent"), [("sum-amounts", "worker"), ("check-totals", "checker")])
def test_a_fault_is_found_where_it_was_planted(world: World, tool: str, agent: str) -> None:
    run = world.run(planted(tool))
    assert run.outcome is not None
    assert run.outcome.result is Result.FAILED
    (failed,) = [
        newest for _, task, newest in handed_below(world.ledger, run.task_id)
        if newest and newest.outcome and newest.outcome.result is Result.FAILED
    ]  # fmt: skip
    assert world.ledger.task(failed.task_id).agent == agent
    with offline_context(world.home) as parts:
        above, below = inspect(parts, run), inspect(parts, failed)
    assert above is not None and below is not None
    assert above.fingerprint == below.fingerprint  # one failure, not two
    assert above.fingerprint.resource == f"tool/{tool}"


def test_the_example_stands_alone(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "copy")
    assert [draft.agent for draft in read_drafts(tmp_path / "copy" / "task.yaml")] == ["planner"]
