"""The reading side: fast to import, read-only, beside a writer, and helpful about ids."""

from __future__ import annotations

import errno
import gc
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.domain import (
    Candidate,
    Diagnosis,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Manifest,
    Outcome,
    Result,
    Run,
    Share,
    Snapshot,
    Step,
    Task,
    TaskState,
)
from agentos.errors import ErrorKind, NotFound, Unavailable, UserError
from agentos.ledger import reading
from agentos.ledger.listing import counts, evolutions_with, newest_open_runs, tasks_with
from agentos.ledger.reading import Reader
from agentos.ledger.rows.schema import FULL, unavailable
from agentos.ledger.store import Ledger
from tests.ledger.conftest import IN_FILE
from tests.refusals import raises

PASSED = Outcome(Result.PASSED, 1.0, "ok")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.slow
def test_reading_imports_nothing_heavy(ledger: Ledger, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from agentos.ledger.listing import Reader, counts; "
        "counts(Reader(pathlib.Path(sys.argv[1]))); "
        "heavy = {'sqlalchemy', 'sqlmodel', 'alembic', 'pydantic', 'typer'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "ledger.db")], check=True, timeout=60)


def test_a_home_without_a_ledger_says_what_to_type(tmp_path: Path) -> None:
    with raises(NotFound, type_next="agentos init"):
        Reader(tmp_path / "ledger.db")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", ErrorKind.NEWER),
        ("UPDATE alembic_version SET version_num = '0000'", ErrorKind.OLDER),
        ("DROP TABLE alembic_version", ErrorKind.OLDER),
    ],
)
@IN_FILE
def test_a_ledger_of_another_release_is_refused(
    ledger: Ledger, tmp_path: Path, change: str, kind: ErrorKind
) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute(change)
    with raises(UserError, kind, type_next="agentos init" if kind is ErrorKind.OLDER else ""):
        Reader(tmp_path / "ledger.db")


@IN_FILE
def test_a_damaged_file_is_unavailable(
    ledger: Ledger, tmp_path: Path, make_task: Callable[..., Task]
) -> None:
    for number in range(50):
        ledger.add_task(make_task(f"task-{number}"), Share.OPEN)
    ledger.close()
    path = tmp_path / "ledger.db"
    data = bytearray(path.read_bytes())
    data[8192:] = b"\x5a" * (len(data) - 8192)
    path.write_bytes(data)
    with raises(Unavailable, ErrorKind.DAMAGED):
        Reader(path).tasks()


def test_a_reader_cannot_write(ledger: Ledger, tmp_path: Path) -> None:
    reader = Reader(tmp_path / "ledger.db")
    with raises(Unavailable, ErrorKind.NOT_WRITTEN):
        reader._rows("DELETE FROM task")
    reader.close()


@IN_FILE
def test_a_reader_that_is_dropped_keeps_no_file_open(tmp_path: Path, ledger: Ledger) -> None:
    ledger.close()  # SQLite keeps what is closed while another connection of the process has the file
    before = len(os.listdir("/proc/self/fd"))
    gc.disable()
    try:
        for _ in range(20):
            Reader(tmp_path / "ledger.db").tasks()
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        gc.enable()


def test_a_reader_sees_what_was_written_a_moment_ago(
    ledger: Ledger,
    tmp_path: Path,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    reader = Reader(tmp_path / "ledger.db")
    assert reader.tasks() == []
    ledger.add_task(make_task(), Share.HOLD_OUT)
    (view,) = reader.tasks(TaskState.QUEUED)
    assert (view.task, view.share) == (make_task(), Share.HOLD_OUT)
    ledger.begin_run(make_run())
    assert [run.id for run in newest_open_runs(reader, 100)] == ["run-1"]
    for index in range(3):
        ledger.append_step(make_step(index))
    assert [step.index for step in reader.steps("run-1", after=0)] == [1, 2]
    ledger.finish_run("run-1", PASSED)
    assert newest_open_runs(reader, 100) == []
    assert reader.tasks(TaskState.QUEUED) == []
    found = counts(reader)
    assert (found.tasks, found.runs, found.steps) == ({"done": 1}, {"passed": 1}, 3)
    reader.close()


def test_lists_show_the_newest_and_filter(
    ledger: Ledger, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    for number in range(4):
        task = make_task(f"task-{number}")
        ledger.add_task(task, Share.OPEN)
        ledger.begin_run(make_run(f"run-{number}", task=task))
    ledger.finish_run("run-2", PASSED)
    assert [view.task.id for view in ledger.tasks(limit=2)] == ["task-2", "task-3"]
    assert [run.id for run in ledger.runs(limit=2)] == ["run-3", "run-2"]
    assert [run.id for run in ledger.runs(result=Result.PASSED)] == ["run-2"]
    assert [run.id for run in ledger.runs(task_id="task-1")] == ["run-1"]
    assert ledger.runs(task_id="task-1", result=Result.PASSED) == []


def test_tasks_and_evolutions_are_found_by_a_part_of_a_name(
    ledger: Ledger, make_task: Callable[..., Task]
) -> None:
    task = replace(make_task(), name="Nightly sum")
    ledger.add_task(task, Share.OPEN)
    diagnosis = Diagnosis(Layer.TOOL, "tool/sum", "tool/sum/tool.py", "why", ())
    evolution = Evolution(
        "evolution-1",
        "evidence-1",
        "f" * 16,
        EvolutionState.PROPOSING,
        Snapshot("c", "t"),
        diagnosis=diagnosis,
    )
    ledger.put(evolution)
    assert [view.task for view in tasks_with(ledger, "nightLY", 5)] == [task]
    assert list(evolutions_with(ledger, "L/Sum", 5)) == [evolution]
    assert (tasks_with(ledger, "daily", 5), evolutions_with(ledger, "daily", 5)) == ([], [])


def test_an_id_may_be_shortened(ledger: Ledger, make_task: Callable[..., Task]) -> None:
    for name in ("task-0abc1xyz", "task-0abd2xyw", "task-0abd"):
        ledger.add_task(make_task(name), Share.OPEN)
    for fragment in ("task-0abc1xyz", "task-0abc", "0abc", "xyz"):
        assert ledger.resolve("task", fragment) == "task-0abc1xyz"
    assert ledger.resolve("task", "task-0abd") == "task-0abd"  # whole, though another begins like it
    with raises(UserError, ErrorKind.AMBIGUOUS, names=["task-0abc1xyz, task-0abd, task-0abd2xyw"]):
        ledger.resolve("task", "0ab")
    for missing in ("zzz", "", "%", "_"):
        with raises(NotFound, type_next="agentos task list"):
            ledger.resolve("task", missing)
    with pytest.raises(TypeError):
        ledger.resolve("sqlite_master", "x")


def test_what_begins_a_schedules_id_is_the_schedules_though_its_copies_begin_alike(
    ledger: Ledger, make_task: Callable[..., Task]
) -> None:
    ledger.add_task(make_task("task-0abc"), Share.OPEN)
    for number in range(8):
        copy = replace(make_task(f"task-0abc-2026010{number}0600"), schedule_id="task-0abc")
        ledger.add_task(copy, Share.OPEN)
    for fragment in ("task-0abc", "0abc", "task-0a", "0a"):
        assert ledger.resolve("task", fragment) == "task-0abc"
    for fragment in ("task-0abc-202601050600", "0abc-20260105", "050600"):
        assert ledger.resolve("task", fragment) == "task-0abc-202601050600"
    with raises(UserError, ErrorKind.AMBIGUOUS):
        ledger.resolve("task", "0abc-2026")
    ledger.add_task(make_task("task-0abd"), Share.OPEN)
    with raises(UserError, ErrorKind.AMBIGUOUS, names=[" task-0abc, task-0abd:"]):
        ledger.resolve("task", "0a")


def test_the_story_of_an_evolution(ledger: Ledger) -> None:
    base = Snapshot("c", "t")
    fingerprint = Fingerprint("f" * 16, "tool/a", "exception", "?")
    evidence = Evidence("evidence-1", fingerprint, ("run-1",), ("task-1",), NOW, "0" * 64)
    evolution = Evolution("evolution-1", "evidence-1", fingerprint.id, EvolutionState.MINED, base)
    manifest = Manifest("evidence-1", "cause", "edit", ("f",), ("task-1",), (), Layer.TOOL, "why")
    mine = Candidate(
        "candidate-1", "evolution-1", "repair", 1, manifest, Edit({"f": "x"}, "s", "o"), base, base
    )
    other = Candidate(
        "candidate-2", "evolution-2", "repair", 1, manifest, Edit({"f": "x"}, "s", "o"), base, base
    )
    for record in (evidence, evolution, mine, other):
        ledger.put(record)
    story = ledger.story("evolution-1")
    assert (story.evolution, story.evidence, story.candidates) == (evolution, evidence, (mine,))
    assert (story.trials, story.verdicts, story.consents, story.attestation) == ((), (), (), None)
    with pytest.raises(NotFound):
        ledger.story("evolution-9")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT result, count(*) FROM run GROUP BY result",
        "SELECT run.body FROM run WHERE result IS NULL ORDER BY no",
        "SELECT no, body FROM run WHERE result = 'failed' ORDER BY no DESC LIMIT 9",
    ],
)
@IN_FILE
def test_counts_and_open_runs_read_an_index_and_sort_nothing(ledger: Ledger, sql: str) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection:
        plan = " ".join(str(row[-1]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}"))
    assert "ix_run_result" in plan
    assert "TEMP B-TREE" not in plan


def test_the_queue_is_looked_at_by_id_alone(
    ledger: Ledger, make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        ledger.add_task(make_task(f"task-{number}"), Share.OPEN)
    ledger.set_task_state("task-1", (TaskState.QUEUED,), TaskState.CANCELLED)
    ledger.set_task_state("task-2", (TaskState.QUEUED,), TaskState.DONE)
    assert ledger.queued(2) == ["task-0", "task-3"]
    assert ledger.queued(100) == ["task-0", "task-3", "task-4"]
    monkeypatch.setattr(reading, "_BOUND_MAX", 2)  # the last is asked for in a statement of its own
    found = ledger.states(["task-2", "task-1", "nobody", "task-0"])
    assert [*found.items()] == [
        ("task-2", TaskState.DONE),
        ("task-1", TaskState.CANCELLED),
        ("task-0", TaskState.QUEUED),
    ]
    assert ledger.states([]) == {}


def test_a_ledger_has_a_name_of_its_own(ledger: Ledger) -> None:
    assert ledger.name() == ""
    ledger.note("event", "subject", {})
    name = ledger.name()
    ledger.note("event", "subject", {})
    assert ledger.name() == name != ""


@pytest.mark.parametrize(
    ("error", "is_full"),
    [
        (OSError(errno.EROFS, "Read-only file system", "/mnt/the disk is full/audit.head"), False),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/home/a/audit.head"), True),
        (sqlite3.OperationalError("database or disk is full"), True),
        (sqlite3.OperationalError("attempt to write a readonly database"), False),
    ],
)
def test_a_disk_is_called_full_by_what_the_system_says_and_not_by_its_path(
    error: Exception, is_full: bool
) -> None:
    assert (FULL in str(unavailable(Path("/mnt/full/ledger.db"), error))) is is_full
