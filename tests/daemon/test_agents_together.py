"""The example of agents together: one tree of runs, on one budget, and a fault is found where it was planted."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.offline import offline_context
from agentos.daemon.run.delegation import DelegationHandlers
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.daemon.views.json_views import handed_below
from agentos.domain import (
    InputFile,
    Json,
    Limits,
    Result,
    Run,
    RunEnd,
    Share,
    Task,
    TaskState,
    new_id,
)
from agentos.evolver.find.mining import inspect
from agentos.evolver.propose.briefing import calls_in
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import ObservedRun
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.taskfile import read_drafts
from agentos.testing import call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.command_server import command_server
from tests.daemon.conftest import Daemon, until
from tests.daemon.thinking_world import KEY, KEY_ENV, turn_of
from tests.daemon.thinking_world import world as model_world

pytestmark = pytest.mark.sandbox

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "agents-together"
KINDS = ("agent", "harness", "prompt", "tool")
FAULTS = {  # tool -> what is right in it, and what is planted
    "sum-amounts": ('float(line.replace(",", ""))', "float(line)"),
    "check-totals": ('row["amount"].replace(",", "")', 'row["amount"]'),
}


def files(root: Path = EXAMPLE) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] in KINDS
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

    def run(self, content: dict[str, bytes], *, ledger: bytes = b"", **limits: float) -> Run:
        self.registry.commit(content, "Agents together", "edit")
        (draft,) = read_drafts(EXAMPLE / "task.yaml")
        sales = ledger or (EXAMPLE / "sales.csv").read_bytes()
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
        self.ledger.finish_run(run.id, done.outcome, RunEnd(done.answer, resources=done.resources))
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
    assert above is not None
    assert below is not None
    assert above.fingerprint == below.fingerprint  # one failure, not two
    assert above.fingerprint.resource == f"tool/{tool}"


@pytest.mark.parametrize("tool", FAULTS)
def test_a_repair_of_it_is_tried_on_the_calls_of_the_agents(world: World, tool: str) -> None:
    """The calls that failed, and of guards that may be shown those that worked, with what they gave."""
    content = planted(tool)
    plain = world.run(content, ledger=b"region,amount\nsouth,2.00\nsouth,-1.00\n")
    failed = world.run(content)
    task = world.ledger.task(failed.task_id)
    path = f"tool/{tool}/tool.py"
    with offline_context(world.home) as parts:
        seen = ObservedRun(task, failed, tuple(parts.journal.steps(failed.id)))
        made = calls_in(parts, [seen], [world.ledger.task(plain.task_id)], path)
        assert calls_in(parts, [seen], [], "prompt/default/prompt.md").failing == ()
    assert [case.call.tool for case in made.failing] == [tool.replace("-", "_")]
    assert made.failing[0].checks == ()
    assert made.failing[0].inputs
    assert {"total": 1.0} in [output for _, output in made.working] or tool == "check-totals"
    assert made.working


def scripted_model(request: Json) -> ServerReply:
    """Does what the prompt of each of the three asks it to."""
    system = str(request["messages"][0]["content"])
    turn = turn_of(request)
    if "Split the ledger" in system:
        parts = {"north": "1,200.50\n19.50", "south": "80.00\n-5.25", "east": "2,000.00\n0.75"}
        calls = [
            *(call("write_file", {"path": f"part-{name}.txt", "text": text}) for name, text in parts.items()),
            *(
                call("ask_worker", {"goal": f"Sum up {name}", "inputs": [f"part-{name}.txt"]})
                for name in parts
            ),
            call("write_file", {"path": "totals.json", "text": json.dumps(TOTALS)}),
            call("ask_checker", {"goal": "Hold the totals", "inputs": ["totals.json", "sales.csv"]}),
        ]
        return calls[turn] if turn < len(calls) else say(json.dumps(TOTALS))
    if "`sum_amounts`" in system:
        name = re.search(r"part-\w+\.txt", json.dumps(request["messages"]))
        assert name is not None
        return call("sum_amounts", {"path": name[0]}) if not turn else say("1")
    return call("check_totals", {"ledger": "sales.csv", "totals": "totals.json"}) if not turn else say("[]")


TOTALS = {"north": 1220.0, "south": 74.75, "east": 2000.75}


@pytest.mark.slow
def test_the_same_with_a_model(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    with model_world(home, lambda request, number: scripted_model(request), settings='evolve = "manual"\n'):
        registry = Registry(home.registry)
        registry.commit(files() | files(EXAMPLE / "with-model"), "Agents together", "edit")
        registry.mark_good(registry.stable())
        ledger, daemon = Ledger(home.ledger), Daemon(home)
        (draft,) = read_drafts(EXAMPLE / "task.yaml")
        sales = (EXAMPLE / "sales.csv").read_bytes()
        given = [InputFile("sales.csv", ledger.blobs.put(sales), len(sales))]
        task = draft.task(new_id("task"), given, datetime.now(UTC))
        ledger.add_task(task, Share.OPEN)
        daemon.start()
        try:
            until(lambda: ledger.task_view(task.id).state is TaskState.DONE, "done", 90)
            (run,) = ledger.runs(task.id)
            assert run.outcome is not None
            assert run.outcome.result is Result.PASSED, run.outcome.reason
            below = [newest for _, _, newest in handed_below(ledger, task.id) if newest and newest.outcome]
            assert len(below) == 4
            # what those below used counts above
            assert run.outcome.cost.calls == 9 + sum(one.outcome.cost.calls for one in below if one.outcome)
            assert {"tool/sum-amounts", "tool/check-totals"} <= set(run.resources)
        finally:
            daemon.close()
            ledger.close()


@pytest.mark.example
@pytest.mark.slow
def test_a_planted_fault_is_blamed_mended_and_promoted(tmp_path: Path) -> None:
    """By the example's own script: the real command and the real daemon."""
    done = command_server().run(
        *("--strict", "--home", str(tmp_path / "together")),
        script=EXAMPLE / "run.py",
        env=os.environ | {"NO_COLOR": "1"},
        patience_s=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agent/worker" in done.stdout


def test_the_example_stands_alone(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "copy")
    assert [draft.agent for draft in read_drafts(tmp_path / "copy" / "task.yaml")] == ["planner"]
