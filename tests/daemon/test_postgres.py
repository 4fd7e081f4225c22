"""The daemon's main ways with its ledger and engine in PostgreSQL; and there and back."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentos.daemon.offline import offline_context
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.doctor import examine
from agentos.daemon.upkeep.moving import FILE, move_home
from agentos.domain import EvolutionState, Result, Share, TaskState
from agentos.errors import HomeBusy, UserError
from agentos.evolver.promote.promotion import roll_back
from agentos.home import Home
from agentos.ledger.audit import AuditHead
from agentos.ledger.postgres.address import address_of
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.command_server import command_server
from tests.daemon.conftest import Daemon, _make_task, until
from tests.daemon.test_evolutions import FAULTY, RIGHT, ended, evolutions, set_exam, source

pytestmark = [pytest.mark.postgres, pytest.mark.sandbox]


def command(home: Home, *words: str) -> dict[str, object]:
    done = command_server().run("--home", str(home.root), *words, "--json", env=os.environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_from_a_task_to_a_promotion_through_a_kill_and_back_into_the_file(
    daemon: Daemon, home: Home, postgres_address: str
) -> None:
    failing = set_exam(home)
    moved = command(home, "home", "move", "--to", postgres_address)
    assert address_of(home.ledger) == postgres_address
    reader = Reader(home.ledger)
    daemon.start()
    assert not home.engine.exists()
    with pytest.raises(HomeBusy):
        move_home(home, FILE)
    until(lambda: any(run.outcome for run in reader.runs()), "the first runs are over")
    daemon.signal(signal.SIGKILL)
    daemon.ended()
    task = _make_task("double", n=21, expect=42)
    with closing(Ledger(home.ledger)) as ledger:
        ledger.add_task(task, Share.OPEN)
    daemon.start()
    until(lambda: ended(home), "the evolution has ended", 180)
    (evolution,) = evolutions(home)
    assert evolution.state is EvolutionState.PROBATION, evolution.reason
    assert source(home) == RIGHT
    until(lambda: reader.task_view(task.id).state is TaskState.DONE, "a task of before the start is done")
    (run,) = reader.runs(task.id)
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED
    daemon.signal(signal.SIGTERM)
    assert daemon.ended() == 0
    with offline_context(home) as parts:
        roll_back(parts, parts.evolution(evolution.id), "by a test", origin="revert")
    assert source(home) == FAULTY
    assert [finding.what for finding in examine(home, fix=False)] == []
    assert len(failing) == 3

    head, before = reader.head(), reader.story(evolution.id)
    noted = AuditHead.parse(str(moved["head"]))
    reader.close()
    assert move_home(home, FILE).head == str(head)
    report = verify_home(home, [(noted, "the move"), (head, "the database")])
    assert report.faults == ()
    assert report.head == head
    assert Reader(home.ledger).story(evolution.id) == before


def test_a_home_made_for_a_database_finds_it_without_the_variable(
    tmp_path: Path, postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "made")
    monkeypatch.setenv("AGENTOS_DATABASE", postgres_address)
    init_home(home)
    monkeypatch.delenv("AGENTOS_DATABASE")
    assert (address_of(home.ledger), home.ledger.exists()) == (postgres_address, False)
    assert not init_home(home)
    assert move_home(home, FILE).head


def test_a_move_is_whole_sealed_and_can_be_asked_for_again(home: Home, postgres_address: str) -> None:
    writer = Ledger(home.ledger)  # of a command that was begun before
    before = writer.head()
    text = home.settings.read_text()
    first = move_home(home, postgres_address)
    assert first.head == str(before)
    with pytest.raises(sqlite3.IntegrityError, match="was moved to"):
        writer.note("late", "where nobody looks", {})
    writer.close()
    assert home.ledger.exists(), "it stays until a person removes it"
    home.settings.write_text(text)  # as of a move that was killed before its last step
    again = move_home(home, postgres_address)
    assert (again.rows, again.head, again.again) == (first.rows, first.head, True)
    with pytest.raises(UserError, match="already"):
        move_home(home, postgres_address)
    with closing(Ledger(home.ledger)) as ledger:
        ledger.note("went on", "there", {})
        assert ledger.head().count == before.count + 1
        after = ledger.head()
    assert move_home(home, FILE).head == str(after)
    assert address_of(home.ledger) == ""
    with pytest.raises(UserError, match="moved away"):  # the same rows, but it takes no more
        move_home(home, postgres_address)
    with closing(Ledger(home.ledger)) as ledger:
        ledger.note("went on", "here", {})
    assert Reader(home.ledger).verify() == []


def test_nothing_is_moved_to_where_something_is_or_out_of_a_cut_log(
    home: Home, postgres_address: str, tmp_path: Path
) -> None:
    with closing(Ledger(home.ledger)) as ledger:
        ledger.note("e", "s", {})
    with closing(sqlite3.connect(home.ledger)) as raw, raw:
        raw.execute("DROP TRIGGER audit_no_delete")
        raw.execute("DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)")
    with pytest.raises(UserError, match="cut short"):
        move_home(home, postgres_address)
    assert address_of(home.ledger) == ""
    for to in ("", "mysql://host/db", "postgresql://me:secret@host/db"):
        with pytest.raises(UserError):
            move_home(home, to)
