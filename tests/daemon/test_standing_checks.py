"""Checks that a task has without its author's doing: accepted for a name, or shipped with a skill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentos.daemon.job.bundle import bundle_of
from agentos.daemon.run.execution import BoxExecutor
from agentos.daemon.scheduling.schedules import spawn_due
from agentos.daemon.setup import add_tasks
from agentos.daemon.standing_checks import accept, checks_for, take_back
from agentos.daemon.upkeep.auditing import verify_home
from agentos.domain import KernelFault, Outcome, Result, Run, RunEnd, Share, Task, kind_of, new_id
from agentos.errors import NotFound
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.taskfile import drafts_of

TASK = b"{name: bill, call: {tool: double, args: {n: 1}}}"


@pytest.fixture
def done(home: Home, ledger: Ledger) -> Callable[[int], None]:
    """A task called bill that has passed without a check."""

    def make(total: int) -> None:
        (task,) = add_tasks(home, drafts_of(TASK, "t", Path()))
        run = Run(
            new_id("run"),
            task.id,
            task.key,
            Share.OPEN,
            1,
            Registry(home.registry).stable(),
            "b",
            "s",
            task.created_at,
        )
        ledger.begin_run(run)
        ledger.finish_run(
            run.id, Outcome(Result.PASSED, 1.0, ""), RunEnd({"total": total, "part": total - 1})
        )

    return make


def test_an_accepted_check_is_in_every_later_task_of_the_name(
    home: Home, ledger: Ledger, done: Callable[[int], None]
) -> None:
    for total in (3, 5, 8):
        done(total)
    found = checks_for(home, "bill")
    assert (found.own, found.accepted, found.runs) == ((), (), 3)
    (wanted,) = [item for item in found.proposed if item.says == "total was always >= part"]
    (standing,) = accept(home, "bill", [wanted.id])
    assert standing.principal.startswith("person:")
    (later,) = add_tasks(home, drafts_of(TASK, "t", Path()))
    assert [check.spec["made_by"] for check in later.checks] == ["invariant"]
    scheduled = replace(
        later, id="task-s", checks=(), schedule="* * * * *", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    spawned = spawn_due(ledger, scheduled, Share.OPEN, datetime.now(UTC) + timedelta(minutes=2))
    assert ledger.task(str(spawned)).checks == later.checks
    assert [item.id for item in checks_for(home, "bill").accepted] == [standing.id]
    assert verify_home(home).faults == ()

    take_back(home, "bill", [standing.id])
    assert add_tasks(home, drafts_of(TASK, "t", Path()))[0].checks == ()
    with pytest.raises(NotFound):
        accept(home, "bill", ["00000000"])


# --- with a skill -------------------------------------------------------------------------------

CHECK = b"- python: |\n    assert answer['n'] < 100\n"
PLACE = "skill/test-kit/checks/small.yaml"


@pytest.mark.sandbox
def test_checks_of_a_skill_guard_its_tasks_and_the_box_never_sees_them(
    home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
) -> None:
    registry = Registry(home.registry)
    registry.commit({PLACE: CHECK}, "A check", "edit")
    executor = BoxExecutor(registry, ledger.blobs, sandbox)
    small, large = (make_task("double", n=n) for n in (2, 70))
    bundle = bundle_of(registry, small, registry.stable())
    assert PLACE not in bundle.files
    assert bundle.checks[0].spec["made_by"] == "skill/test-kit"
    good, bad = (executor.execute(task, registry.stable(), new_id("run")).outcome for task in (small, large))
    assert (good.result, len(good.checks)) == (Result.PASSED, 1)
    assert (bad.result, kind_of(bad.fault)) == (Result.FAILED, KernelFault.CHECK)

    registry.commit({PLACE: b"- pyton: x\n"}, "A broken check", "edit")
    broken = executor.execute(small, registry.stable(), new_id("run")).outcome
    assert kind_of(broken.fault) is KernelFault.GRADER  # and of nobody's making that may evolve
