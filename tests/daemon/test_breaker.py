"""Whose fault a lost run is: the task's own, or that of a machinery that loses whatever it is given."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentos import __version__
from agentos.daemon.breaker import Breaker, cause, replaced
from agentos.daemon.run.tasks import MAX_ATTEMPTS, STOPPED, RunnerOptions, StopSignal, TaskRunner
from agentos.domain import KernelFault, Result, Run, Share, Task, TaskState
from agentos.errors import ModelAway, Unavailable
from agentos.ledger.store import Ledger
from agentos.testing.registry import attempt
from tests.daemon.test_tasks import SNAPSHOT, Executor, Snapshots, results

LOST = Unavailable("the box is gone")
NOW = datetime.now(UTC)


class Probe:
    fault: Exception | None = None

    def __call__(self) -> None:
        if self.fault is not None:
            raise self.fault


def runner(ledger: Ledger, breaker: Breaker, *script: Any) -> TaskRunner:
    return TaskRunner(
        ledger, Snapshots(), Executor(list(script)), StopSignal(), RunnerOptions(breaker=breaker)
    )  # type: ignore[arg-type]


def test_one_task_alone_is_its_own_fault_and_two_are_not() -> None:
    breaker = Breaker()
    assert not breaker.lost("a", LOST)
    assert not breaker.lost("a", LOST)
    assert breaker.pause is None
    assert breaker.lost("b", LOST)
    assert breaker.pause is not None
    assert breaker.pause.why == "the box is gone"
    assert breaker.lost("c", LOST), "while it is open nothing counts"


def test_one_that_came_to_its_end_says_that_the_machinery_works() -> None:
    breaker = Breaker()
    breaker.lost("a", LOST)
    breaker.worked()
    assert not breaker.lost("b", LOST)
    assert breaker.pause is None


def test_it_says_whether_an_end_is_news_to_it() -> None:
    breaker = Breaker()
    assert not breaker.has_losses
    breaker.lost("a", LOST)
    assert breaker.has_losses
    breaker.worked("b")
    assert breaker.has_losses, "the losses of a are counted on"
    breaker.worked("a")
    assert not breaker.has_losses
    breaker.open("no memory")
    assert breaker.has_losses


def test_an_end_is_news_where_a_pause_went_on_after_the_last_one() -> None:
    """Else the next pause, days later, begins with the length of this one."""
    probe = Probe()
    breaker = Breaker(probe)
    breaker.open("no memory")
    breaker.worked("a")
    probe.fault = Unavailable("still none")
    breaker.try_again()
    assert breaker.has_losses


@pytest.mark.parametrize(
    "number",
    [errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS, errno.EAGAIN, errno.EFBIG],
)
def test_what_the_machine_lacks_is_nobodys_fault(number: int) -> None:
    breaker = Breaker()
    error = Unavailable("the sandbox could not be made")
    error.__context__ = OSError(number, "said by the system")  # as `raise … from None` leaves it
    assert breaker.lost("a", error)
    assert breaker.pause is not None
    assert "said by the system" not in breaker.pause.why


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_what_a_limit_of_the_process_refuses_is_nobodys_fault_and_is_told(error: Exception) -> None:
    breaker = Breaker()
    assert breaker.lost("a", error)
    assert breaker.pause is not None
    assert "ulimit -v" in breaker.pause.why
    assert not Breaker().lost("a", RuntimeError("a bug"))


def test_a_probe_for_which_no_thread_can_be_made_is_made_again_later() -> None:
    probe = Probe()
    breaker = Breaker(probe)
    breaker.open("no memory")
    probe.fault = RuntimeError("can't start new thread")
    breaker.try_again()
    assert breaker.pause is not None
    assert not breaker.due(0.0)


def test_it_stays_open_until_the_probe_finds_nothing_and_waits_longer_each_time() -> None:
    probe = Probe()
    breaker = Breaker(probe)
    probe.fault = Unavailable("no sandbox")
    assert breaker.lost("a", LOST), "one loss is enough where the probe fails too"
    assert not breaker.due(0.0)
    assert breaker.due(1e12)
    breaker.try_again()
    assert breaker.pause is not None
    assert breaker.pause.why == "no sandbox"
    probe.fault = None
    breaker.try_again()
    assert breaker.pause is None
    breaker.hold(lambda seconds: pytest.fail("nothing is to be waited for"))


def test_a_damaged_ledger_is_for_good() -> None:
    breaker = Breaker()
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    assert breaker.lost("a", error)
    breaker.try_again()
    assert breaker.pause is not None
    assert breaker.pause.for_good
    assert not breaker.due(1e12)


def test_a_loss_by_the_machinery_never_counts(
    ledger: Ledger, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task, other = add(make_task("double", n=1)), add(make_task("double", n=2))
    full = OSError(errno.ENOSPC, "No space left on device")
    breaker = Breaker()

    def no_room() -> Any:
        raise full

    made = runner(ledger, breaker, *[no_room] * 5, attempt(passed=True), attempt(passed=True))
    for _ in range(5):
        with pytest.raises(Unavailable, match="disk is full"):
            made.attempt(task.id, NOW)
    assert ledger.task_view(task.id).state is TaskState.RUNNING
    breaker.try_again()
    assert made.attempt(task.id, NOW)
    assert made.attempt(other.id, NOW)
    assert results(ledger, task) == ["infra"] * 5 + ["passed"]
    lost = ledger.runs(task.id)[-1].outcome
    assert lost is not None
    assert lost.fault is not None
    assert lost.fault.kind is KernelFault.AWAY
    assert "killed" not in lost.reason


def test_a_run_that_got_no_thread_does_not_count(
    ledger: Ledger, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task = add(make_task("double", n=1))

    def no_thread() -> Any:
        raise RuntimeError("can't start new thread")

    made = runner(ledger, Breaker(), *[no_thread] * MAX_ATTEMPTS, attempt(passed=True))
    for _ in range(MAX_ATTEMPTS):
        with pytest.raises(RuntimeError):
            made.attempt(task.id, NOW)
    assert made.attempt(task.id, NOW)
    assert results(ledger, task) == ["infra"] * MAX_ATTEMPTS + ["passed"]


def test_a_model_that_is_away_costs_no_task_and_stops_no_other(
    ledger: Ledger, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task = add(make_task("double", n=1))
    breaker = Breaker()
    away = ModelAway("nobody listens")
    made = runner(ledger, breaker, *[away] * (MAX_ATTEMPTS + 1), attempt(passed=True))
    for _ in range(MAX_ATTEMPTS + 1):
        with pytest.raises(ModelAway):
            made.attempt(task.id, NOW)
    assert breaker.pause is None
    assert made.attempt(task.id, NOW)
    assert ledger.runs(task.id)[0].outcome.result is Result.PASSED  # type: ignore[union-attr]


def test_a_stop_at_once_is_no_kill_and_counts_for_nothing(
    ledger: Ledger, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task = add(make_task("double", n=1))
    begun = NOW - timedelta(seconds=5)
    for number in range(1, MAX_ATTEMPTS + 1):
        ledger.begin_run(
            Run(f"run-{number}", task.id, task.key, Share.OPEN, number, SNAPSHOT, "f", "none", begun)
        )
    ledger.set_kv(STOPPED, NOW.isoformat())
    assert runner(ledger, Breaker(), attempt(passed=True)).attempt(task.id, NOW)
    assert results(ledger, task) == ["infra"] * MAX_ATTEMPTS + ["passed"]
    assert "told to stop" in ledger.run("run-1").outcome.reason  # type: ignore[union-attr]


def test_no_task_is_done_without_a_run(
    ledger: Ledger, make_task: Callable[..., Task], add: Callable[..., Task]
) -> None:
    task = add(make_task("double", n=1))
    runner(ledger, Breaker()).give_up(task.id, "a bug")
    (run,) = ledger.runs(task.id)
    assert run.outcome is not None
    assert (run.outcome.result, run.outcome.reason) == (Result.INFRA, "a bug")


def test_a_cause_says_what_to_do() -> None:
    assert "ulimit -n" in cause(OSError(errno.EMFILE, "Too many open files"))
    assert cause(KeyError("x")) == "KeyError: 'x'"


def test_files_of_another_release_are_told_from_its_own(tmp_path: Path) -> None:
    program = tmp_path / "__init__.py"
    assert replaced() == ""
    assert "removed" in replaced(program)
    program.write_text('__version__ = "99.0"\n')
    assert "99.0" in replaced(program)
    program.write_text(f'__version__ = "{__version__}"\n')
    assert replaced(program) == ""
