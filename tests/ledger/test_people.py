"""Questions to people, proposed memories, handed-over tasks: kept once, answered once, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from agentos.domain import (
    MemoryProposal,
    Outcome,
    ProposalState,
    Question,
    Result,
    Run,
    Share,
    Task,
    TaskState,
)
from agentos.errors import Conflict, ErrorKind, NotFound
from agentos.ledger import connect
from agentos.ledger.store import Ledger
from agentos.testing import MemoryLedger
from tests.ledger.conftest import IN_FILE
from tests.refusals import raises

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WAITING = Outcome(Result.WAITING, 0.0, "which one?")


def question(number: int = 1, *, task_id: str = "task-1", root_id: str = "task-1") -> Question:
    return Question(f"question-{number}", task_id, root_id, "run-1", f"which one ({number})?", (), NOW)


@pytest.fixture
def waiting(ledger: Ledger, make_task: Callable[..., Task], make_run: Callable[..., Run]) -> Ledger:
    ledger.add_task(make_task(), Share.OPEN)
    ledger.begin_run(make_run())
    ledger.keep(question())
    ledger.finish_run("run-1", WAITING)
    return ledger


@pytest.mark.parametrize("make", [MemoryLedger, None])
def test_a_waiting_run_makes_its_task_wait(
    make: Callable[[], MemoryLedger] | None,
    ledger: Ledger,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
) -> None:
    book = make() if make else ledger
    book.add_task(make_task(), Share.OPEN)
    book.begin_run(make_run())
    book.finish_run("run-1", WAITING)
    state = book.states["task-1"] if isinstance(book, MemoryLedger) else book.task_view("task-1").state
    assert state is TaskState.WAITING
    with raises(Conflict, ErrorKind.OVER, names=["task task-1"]):
        book.begin_run(make_run("run-2", attempt=2))


def test_an_answer_queues_the_task_once(waiting: Ledger) -> None:
    assert [asked.id for asked in waiting.open_questions()] == ["question-1"]
    assert waiting.answers("task-1") == {}
    answered = waiting.answer("question-1", "the left one")
    assert (answered.answer, answered.answered_at is not None) == ("the left one", True)
    assert waiting.task_view("task-1").state is TaskState.QUEUED
    assert waiting.answers("task-1") == {"which one (1)?": "the left one"}
    assert waiting.open_questions() == []
    with raises(Conflict, ErrorKind.DECIDED, names=["the left one"]):
        waiting.answer("question-1", "the right one")
    assert [entry.event for entry in waiting.entries(1)] == ["question.answered"]


def test_a_task_waits_for_all_its_questions_also_those_of_tasks_it_handed_over(
    waiting: Ledger, make_task: Callable[..., Task]
) -> None:
    child = replace(make_task("task-2"), parent="task-1")
    waiting.add_task(child, Share.OPEN, TaskState.WAITING)
    waiting.add_task(replace(make_task("task-3"), parent="task-2"), Share.OPEN, TaskState.WAITING)
    waiting.keep(question(2, task_id="task-2"))
    assert [view.task.id for view in waiting.handed_over("task-1")] == ["task-2", "task-3"]
    waiting.answer("question-1", "left")
    assert waiting.task_view("task-1").state is TaskState.WAITING
    waiting.answer("question-2", "right")
    assert waiting.task_view("task-1").state is TaskState.QUEUED
    assert waiting.task_view("task-2").state is TaskState.WAITING  # the run above takes it up again
    assert waiting.answers("task-2") == {"which one (2)?": "right"}


def test_nobody_answers_what_is_not_waited_for(waiting: Ledger) -> None:
    with raises(NotFound, names=["question-9"]):
        waiting.answer("question-9", "yes")
    waiting.set_task_state("task-1", (TaskState.WAITING,), TaskState.CANCELLED)
    assert waiting.open_questions() == []
    with raises(Conflict, ErrorKind.OVER, names=["is cancelled"]):
        waiting.answer("question-1", "yes")


def test_a_question_asked_again_is_the_one_on_record(waiting: Ledger) -> None:
    waiting.keep(replace(question(), asked_at=datetime.now(UTC), run_id="run-2"))
    assert [asked.run_id for asked in waiting.open_questions()] == ["run-1"]


def proposal() -> MemoryProposal:
    return MemoryProposal("proposal-1", "run-1", "k" * 64, "dates are in UTC", "", NOW)


def test_a_proposal_is_decided_once(ledger: Ledger) -> None:
    ledger.keep(proposal())
    ledger.keep(replace(proposal(), run_id="run-2"))
    assert [kept.run_id for kept in ledger.find(MemoryProposal, state=ProposalState.OPEN)] == ["run-1"]
    ledger.decide(replace(proposal(), state=ProposalState.ACCEPTED, resource="memory/dates"))
    with raises(Conflict, ErrorKind.DECIDED, names=["accepted"]):
        ledger.decide(replace(proposal(), state=ProposalState.REJECTED))
    assert ledger.find(MemoryProposal, run_id="run-1")[0].resource == "memory/dates"


@pytest.mark.parametrize("table", ["question", "proposal"])
@IN_FILE
def test_what_was_answered_is_not_rewritten_even_by_raw_sql(
    table: str, waiting: Ledger, tmp_path: Path
) -> None:
    waiting.answer("question-1", "left")
    waiting.keep(proposal())
    waiting.decide(replace(proposal(), state=ProposalState.REJECTED))
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as connection:
        (row,) = connection.execute(f"SELECT * FROM {table}").fetchall()
        marks = ", ".join("?" for _ in row)
        for statement, values in (
            (f"UPDATE {table} SET body = '{{}}'", ()),
            (f"DELETE FROM {table}", ()),
            (f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row),
        ):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement, values)


def test_a_ledger_of_the_first_schema_is_brought_up_to_date(
    tmp_path: Path, make_task: Callable[..., Task]
) -> None:
    path = tmp_path / "ledger.db"
    engine = connect._engine(path)
    config = Config()
    config.set_main_option("script_location", "agentos.ledger:migrations")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    engine.dispose()
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        columns = "id, name, task_key, share, state, agent, created_at, body"
        body = (
            '{"id":"task-1","name":"n","goal":"g","call":null,"inputs":[],"agent":"default","limits":{},'
            '"effects":[],"checks":[],"schedule":null,"created_at":"2026-01-01T00:00:00+00:00"}'
        )
        values = ("task-1", "n", "k", "open", "done", "default", "2026", body)
        raw.execute(f"INSERT INTO task ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    ledger = Ledger(path)
    assert ledger.task("task-1").parent == ""
    ledger.add_task(replace(make_task("task-2"), parent="task-1"), Share.OPEN, TaskState.WAITING)
    assert [view.task.id for view in ledger.handed_over("task-1")] == ["task-2"]
    ledger.close()
