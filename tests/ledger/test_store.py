"""What only the real ledger has: threads and processes, append-only tables, migrations, big values."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from agentos.domain import (
    Arm,
    Candidate,
    Check,
    CheckResult,
    Cost,
    Decision,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Manifest,
    Outcome,
    Rebase,
    Result,
    Run,
    RunEnd,
    SafetyRate,
    Share,
    Sighting,
    Snapshot,
    StandingCheck,
    Step,
    Task,
    TaskState,
    Trial,
    TrialLook,
    TrialSet,
    Verdict,
    canonical,
)
from agentos.errors import Conflict, ErrorKind, NotFound, Unavailable, UserError
from agentos.ledger.connect import NEWEST, _engine, migrate, open_ledger
from agentos.ledger.integrity import LedgerSnapshot, blob_faults
from agentos.ledger.listing import LedgerStats, SpentTotals, failure_group, failure_groups
from agentos.ledger.rows.schema import HEAD, unavailable
from agentos.ledger.rows.tables import METADATA
from agentos.ledger.schedules import give_inputs
from agentos.ledger.store import Ledger
from tests.ledger.conftest import IN_FILE
from tests.refusals import raises

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PRINT = Fingerprint("f" * 16, "tool/a", "exception", "?")
PASSED = Outcome(Result.PASSED, 1.0, "ok")


def raw(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, isolation_level=None))


# --- append-only ------------------------------------------------------------------------------


def fill(ledger: Ledger, task: Task, run: Run, step: Step) -> None:
    snapshot = Snapshot("c", "t")
    ledger.add_task(task, Share.OPEN)
    ledger.begin_run(run)
    ledger.append_step(step)
    ledger.finish_run(run.id, PASSED)
    ledger.flag(run.id, "it lies")
    ledger.put(Sighting(run.id, task.id, task.key, PRINT, NOW))
    ledger.put(Evidence("evidence-1", PRINT, (run.id,), (task.id,), NOW, "0" * 64))
    ledger.put(
        Trial(
            id="trial-1",
            evolution_id="evolution-1",
            candidate_id="",
            task_id=task.id,
            set=TrialSet.EVIDENCE,
            arm=Arm.BASE,
            repeat=0,
            snapshot=snapshot,
            outcome=PASSED,
            answer_sha256="",
            sandbox="fake",
            level="none",
        )
    )
    ledger.put(
        SafetyRate("safety-1", "evolution-1", "", Arm.BASE, snapshot, "a", True, (), (), (), "p", "auto", NOW)
    )
    ledger.put(
        Verdict("verdict-1", "evolution-1", "c", Decision.HOLD, (), (), (), (), "t", "t", "m", "r", "p")
    )


@pytest.mark.parametrize(
    "table", ["step", "sighting", "evidence", "trial", "safety_rate", "verdict", "flag", "audit"]
)
@IN_FILE
def test_history_is_not_rewritten_even_by_raw_sql(
    table: str,
    ledger: Ledger,
    tmp_path: Path,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    fill(ledger, make_task(), make_run(), make_step())
    with raw(tmp_path / "ledger.db") as connection:
        before = connection.execute(f"SELECT * FROM {table}").fetchall()
        assert before
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        for column in columns:
            with raises(sqlite3.IntegrityError, message=f"ledger.{table}_changed"):
                connection.execute(f"UPDATE {table} SET {column} = 7")
        with raises(sqlite3.IntegrityError, message=f"ledger.{table}_removed"):
            connection.execute(f"DELETE FROM {table}")
        marks = ", ".join("?" for _ in columns)
        with raises(sqlite3.IntegrityError, message=f"ledger.{table}_replaced"):
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", before[0])
        assert connection.execute(f"SELECT * FROM {table}").fetchall() == before


@IN_FILE
def test_a_finished_run_is_not_rewritten_by_raw_sql(
    ledger: Ledger, tmp_path: Path, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    ledger.add_task(make_task(), Share.OPEN)
    ledger.begin_run(make_run())
    ledger.finish_run("run-1", PASSED)
    with (
        raw(tmp_path / "ledger.db") as connection,
        raises(sqlite3.IntegrityError, message="ledger.finished_run"),
    ):
        connection.execute("UPDATE run SET result = 'failed'")


# --- what is over takes less room ---------------------------------------------------------------


def evolved(ledger: Ledger, name: str, ended_at: datetime | None, trials: int = 20) -> list[Trial]:
    """An evolution with trials, as large as they are."""
    snapshot = Snapshot("c" * 40, "t" * 40)
    state = EvolutionState.REJECTED if ended_at else EvolutionState.REPLAYING
    ledger.put(Evolution(name, "evidence-1", "f" * 16, state, snapshot, created_at=NOW, ended_at=ended_at))
    outcome = Outcome(Result.PASSED, 1.0, "ok", cost=Cost(cpu_s=0.5))
    made = [
        Trial(
            f"trial-{name}-{number}", name, "", f"task-{number}", TrialSet.GUARD, Arm.BASE, 0, snapshot, outcome,
            f"{number:064x}", "fake", "none",
        )
        for number in range(trials)
    ]  # fmt: skip
    for trial in made:
        ledger.put(trial)
    return made


def test_what_a_person_ended_meanwhile_is_neither_opened_again_nor_added_to(ledger: Ledger) -> None:
    """By whoever read it before that: its end says of which records it was, and `audit verify` holds it to that."""
    (trial,) = evolved(ledger, "evo-1", None, trials=1)
    waiting = ledger.get(Evolution, "evo-1")
    base = Snapshot("c" * 40, "t" * 40)
    manifest = Manifest("evidence-1", "", "", (), (), (), Layer.SKILL, "")
    candidate = Candidate("cand-1", "evo-1", "p", 1, manifest, Edit({}, "", ""), base, base)
    ledger.put(candidate)
    ended = replace(waiting, state=EvolutionState.REJECTED, ended_at=NOW)
    ledger.note("evolution.rejected", ended.id, {}, (ended,))
    put_on = replace(candidate, rebase=Rebase(base, base, "0" * 64, 1, NOW))
    fresh = replace(trial, id="trial-fresh", set=TrialSet.FRESH)
    late: list[Callable[[], None]] = [
        lambda: ledger.put(replace(waiting, state=EvolutionState.PROMOTING)),
        lambda: ledger.put(fresh),
        lambda: ledger.note("candidate.rebased", ended.id, {}, (put_on,)),
        lambda: ledger.advance("fresh", 1, [waiting], note=("fresh.tried", ended.id, {})),
    ]
    for store in late:
        with pytest.raises(Conflict):
            store()
    ledger.put(candidate)  # the same again changes nothing
    assert ledger.get(Evolution, "evo-1") == ended
    assert len(ledger.find(Trial, evolution_id="evo-1")) == 1
    assert ledger.find(Candidate) == [candidate]


def test_a_trial_that_was_taken_over_costs_once(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    made = evolved(ledger, "evo-before", NOW, trials=4)
    (own,) = evolved(ledger, "evo-again", NOW, trials=1)
    for number, trial in enumerate(made):
        name = f"trial-again-{number}"
        ledger.put(replace(trial, id=name, evolution_id="evo-again", taken_from=trial.id))
    wanted = {"evo-before": SpentTotals(4, 2.0), "evo-again": SpentTotals(1, own.outcome.cost.cpu_s)}
    assert LedgerStats(path).spent() == wanted
    assert ledger.pack_trials(NOW + timedelta(hours=1)) == 2
    assert LedgerStats(path).spent() == wanted
    assert len(ledger.find(Trial, evolution_id="evo-again")) == 5


def rows_of(path: Path, table: str) -> int:
    with raw(path) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_looks_at_a_failure_stay_known_however_its_trials_lie(ledger: Ledger) -> None:
    """Packed or not, remembered or not; also where a row gets the number of one that was packed."""
    (first,) = evolved(ledger, "evo-over", NOW, trials=1)
    own = replace(first, id="trial-own", candidate_id="cand-1", arm=Arm.CANDIDATE, look=2)
    fingerprint = ledger.get(Evolution, "evo-over").fingerprint_id
    assert ledger.looks(fingerprint) == []
    ledger.put(own)
    expected = [TrialLook("cand-1", own.task_id, own.set, own.number, 2)]
    assert ledger.looks(fingerprint) == expected
    ledger.pack_trials(NOW + timedelta(days=1))
    assert ledger.looks(fingerprint) == expected
    late = [replace(own, id=f"trial-late-{number}", look=3 + number) for number in range(2)]
    late += [replace(own, id="trial-repeated", look=4, repeat=1)]  # is no further look
    ledger.put(*late)  # their rows have the numbers of those that were packed
    expected += [TrialLook("cand-1", own.task_id, own.set, own.number, 3 + number) for number in range(2)]
    assert ledger.looks(fingerprint) == expected
    assert ledger.find(Trial, evolution_id="evo-over") == [first, own, *late]
    assert ledger.looks("another") == []


@IN_FILE
def test_trials_of_what_is_over_lie_in_one_row_and_read_the_same(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    over, fresh = evolved(ledger, "evo-over", NOW), evolved(ledger, "evo-fresh", NOW + timedelta(hours=1))
    running = evolved(ledger, "evo-running", None)
    before, spent = ledger.find(Trial), LedgerStats(path).spent()
    assert ledger.pack_trials(NOW + timedelta(hours=1)) == 1
    assert (rows_of(path, "trial"), rows_of(path, "trial_pack")) == (40, 1)
    assert ledger.find(Trial) == before == [*over, *fresh, *running]
    assert ledger.find(Trial, evolution_id="evo-over") == over
    assert ledger.find(Trial, evolution_id="evo-over", task_id="task-3") == [over[3]]
    assert ledger.story("evo-over").trials == tuple(over)
    assert LedgerStats(path).spent() == spent == dict.fromkeys(spent, SpentTotals(20, 10.0))
    assert ledger.pack_trials(NOW + timedelta(hours=1)) == 0, "once"
    with raw(path) as connection:
        (size,) = connection.execute("SELECT length(body) FROM trial_pack").fetchone()
    assert size < 20 * 100


def test_a_trial_that_is_stored_again_after_all_counts_once_and_as_it_was(ledger: Ledger) -> None:
    """As by a daemon that was killed at the very end of an evolution and comes back a day later."""
    (made,) = evolved(ledger, "evo-over", NOW, trials=1)
    ledger.pack_trials(NOW + timedelta(days=1))
    ledger.put(replace(made, outcome=replace(made.outcome, reason="another time")))
    for _ in range(2):
        assert ledger.find(Trial, evolution_id="evo-over") == [made]
        ledger.pack_trials(NOW + timedelta(days=1))


@IN_FILE
def test_trials_can_be_removed_by_packing_alone(ledger: Ledger, tmp_path: Path) -> None:
    evolved(ledger, "evo-over", NOW)
    with raw(tmp_path / "ledger.db") as connection:
        with raises(sqlite3.IntegrityError, message="ledger.trial_removed"):
            connection.execute("DELETE FROM trial")
        ledger.pack_trials(NOW + timedelta(days=1))
        for attack in ("DELETE FROM trial_pack", "UPDATE trial_pack SET body = x'00'",
                       "INSERT OR REPLACE INTO trial_pack VALUES (1, 'evo-over', 1, 1.0, x'00')"):  # fmt: skip
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                connection.execute(attack)


@IN_FILE
def test_a_pack_that_is_damaged_is_told(ledger: Ledger, tmp_path: Path) -> None:
    evolved(ledger, "evo-over", NOW)
    ledger.pack_trials(NOW + timedelta(days=1))
    with raw(tmp_path / "ledger.db") as connection:
        connection.execute("DROP TRIGGER trial_pack_no_update")
        connection.execute("UPDATE trial_pack SET body = substr(body, 1, 100)")
    with raises(Unavailable, ErrorKind.DAMAGED):
        ledger.find(Trial, evolution_id="evo-over")


@IN_FILE
def test_a_long_record_is_kept_compressed_and_reads_the_same(ledger: Ledger, tmp_path: Path) -> None:
    snapshot = Snapshot("c" * 40, "t" * 40)
    long = Evolution("evo-1", "evidence-1", "f" * 16, EvolutionState.HELD, snapshot, "because " * 400)
    for record in (long, replace(long, id="evo-2", reason="")):
        ledger.put(record)
        ledger.put(record)
    assert ledger.find(Evolution) == [long, replace(long, id="evo-2", reason="")]
    with raw(tmp_path / "ledger.db") as connection:
        sizes = connection.execute("SELECT typeof(body), length(body) FROM evolution ORDER BY seq").fetchall()
        connection.execute("UPDATE evolution SET body = substr(body, 1, 50) WHERE id = 'evo-1'")
    assert [kind for kind, _ in sizes] == ["blob", "blob"]
    assert sizes[0][1] < 400
    for look in (lambda: ledger.get(Evolution, "evo-1"), lambda: ledger.put(long)):
        with raises(Unavailable, ErrorKind.DAMAGED):
            look()


# --- many writers -----------------------------------------------------------------------------


def test_threads_claim_each_task_once(ledger: Ledger, make_task: Callable[..., Task]) -> None:
    for number in range(40):
        ledger.add_task(make_task(f"task-{number}"), Share.OPEN)
    won: list[str] = []

    def work() -> None:
        for number in range(40):
            if ledger.set_task_state(f"task-{number}", (TaskState.QUEUED,), TaskState.RUNNING):
                won.append(f"task-{number}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted(f"task-{number}" for number in range(40))


CLAIM = """
import sys
from pathlib import Path
from agentos.domain import TaskState
from agentos.ledger.store import Ledger
ledger = Ledger(Path(sys.argv[1]))
for number in range(40):
    if ledger.set_task_state(f"task-{number}", (TaskState.QUEUED,), TaskState.RUNNING):
        ledger.note("claimed", f"task-{number}", {})
        print(number)
"""


@IN_FILE  # test_postgres.py asks it of eight
@pytest.mark.slow
def test_processes_claim_each_task_once_and_share_one_chain(
    ledger: Ledger, tmp_path: Path, make_task: Callable[..., Task]
) -> None:
    for number in range(40):
        ledger.add_task(make_task(f"task-{number}"), Share.OPEN)
    command = [sys.executable, "-c", CLAIM, str(tmp_path / "ledger.db")]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    won = [line for worker in workers for line in worker.communicate(timeout=60)[0].split()]
    assert sorted(map(int, won)) == list(range(40))
    assert ledger.verify() == []
    assert ledger.head().count == 40


@pytest.mark.slow
def test_two_processes_make_one_ledger(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys, pathlib; from agentos.ledger.store import Ledger; Ledger(pathlib.Path(sys.argv[1]))",
        str(tmp_path / "ledger.db"),
    ]
    makers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for maker in makers:
        assert maker.communicate(timeout=60) == (None, b"")
        assert maker.returncode == 0


# --- schema -----------------------------------------------------------------------------------


def test_the_migrations_make_the_tables_of_the_models(tmp_path: Path) -> None:
    open_ledger(tmp_path / "ledger.db").close()
    engine = _engine(tmp_path / "ledger.db")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def test_the_newest_migration_is_the_head_that_the_program_knows() -> None:
    config = Config()
    config.set_main_option("script_location", "agentos.ledger:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


@contextmanager
def locked_by_a_daemon(home: Path) -> Iterator[None]:
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    yield
    os.close(folder)


def test_a_ledger_of_the_release_before_keeps_what_it_has(tmp_path: Path) -> None:
    """Rows without compression, with an index each: made by the migrations of then."""
    path, newer = tmp_path / "ledger.db", tmp_path / "newer.db"
    ledger = Ledger(newer)
    trials = evolved(ledger, "evo-over", NOW)
    ledger.close()
    engine = _engine(path)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "agentos.ledger:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "0006")
    engine.dispose()
    with raw(path) as connection:
        connection.execute("ATTACH ? AS newer", (str(newer),))
        for table in ("trial", "evolution"):
            connection.execute(f"INSERT INTO {table} SELECT * FROM newer.{table}")
    with locked_by_a_daemon(tmp_path):
        with raises(UserError, ErrorKind.BUSY, type_next="agentos daemon stop"):
            Ledger(path)
        assert [*tmp_path.glob("ledger.db.before-*")] == [], "nothing was begun"
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "daemon.json").write_text(json.dumps({"pid": os.getpid()}))  # it is the newer one
        Ledger(path).close()
    ledger = Ledger(path)
    assert ledger.find(Trial) == trials
    assert ledger.pack_trials(NOW + timedelta(days=1)) == 1
    assert ledger.find(Trial) == trials
    ledger.close()


@pytest.mark.parametrize("new", [True, False])
def test_a_ledger_of_this_release_needs_neither_alembic_nor_sqlalchemy(tmp_path: Path, *, new: bool) -> None:
    if not new:
        Ledger(tmp_path / "ledger.db").close()
    program = (
        "import sys, pathlib; from agentos.ledger.store import Ledger; "
        "Ledger(pathlib.Path(sys.argv[1])); assert not {'alembic', 'sqlalchemy'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "ledger.db")], check=True, timeout=60)


def test_a_new_ledger_is_what_the_migrations_make(tmp_path: Path) -> None:
    """Where this fails after a new migration: what it says last goes into the file."""
    (tmp_path / "migrated.db").touch()
    migrate(tmp_path / "migrated.db")
    Ledger(tmp_path / "ledger.db").close()
    told, settings = [], []
    for name in ("migrated.db", "ledger.db"):
        with raw(tmp_path / name) as connection:
            told.append("".join(f"{line}\n" for line in [*connection.iterdump()][1:-1]))
            settings.append(
                [connection.execute(f"PRAGMA {each}").fetchone() for each in ("journal_mode", "auto_vacuum")]
            )
    assert settings[0] == settings[1]
    assert told[0] == told[1] == NEWEST.read_text("utf-8"), told[0]


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    with raw(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with raises(UserError, ErrorKind.NEWER):
        Ledger(path)


@IN_FILE
def test_the_ledger_is_for_its_owner_only(ledger: Ledger, tmp_path: Path) -> None:
    ledger.note("e", "s", None)
    for name in ("ledger.db", "ledger.db-wal", "audit.head"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_run_made_elsewhere_is_stored_once_and_whole(
    ledger: Ledger,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    task, open_run = make_task(), make_run()
    run = replace(open_run, outcome=PASSED, finished_at=NOW, resources=("agent/a",), answer="x" * 20_000)
    steps = [make_step(0), make_step(1, observation={"text": "y" * 20_000})]
    assert ledger.add_past(task, run, steps)
    assert not ledger.add_past(task, run, steps)
    assert ledger.task_view(task.id).state is TaskState.DONE
    assert [(seq, stored.id) for seq, stored in ledger.runs_after(0, 9)] == [(1, run.id)]
    assert [stored.id for stored in ledger.runs_using("agent/a", 9)] == [run.id]
    assert ledger.blobs.expand(ledger.run(run.id).answer) == run.answer
    assert ledger.blobs.expand(ledger.steps(run.id)[1].observation) == steps[1].observation
    assert [entry.event for entry in ledger.entries()] == ["run.imported"]
    assert not ledger.verify()


def test_a_run_made_elsewhere_does_not_take_the_place_of_a_task_that_is_there(
    ledger: Ledger, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    ledger.add_task(make_task(), Share.OPEN)
    with pytest.raises(Conflict):
        ledger.add_past(make_task(), replace(make_run(), outcome=PASSED, finished_at=NOW), [])
    assert not ledger.runs()
    assert not ledger.entries()


def test_half_of_a_run_made_elsewhere_is_not_stored(
    ledger: Ledger,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    run = replace(make_run(), outcome=PASSED, finished_at=NOW)
    with pytest.raises(sqlite3.IntegrityError):
        ledger.add_past(make_task(), run, [make_step(0), make_step(0)])
    assert not ledger.tasks()
    assert not ledger.runs()
    assert not ledger.entries()


def test_a_missing_folder_and_a_foreign_file(tmp_path: Path) -> None:
    with raises(NotFound, type_next="agentos init"):
        Ledger(tmp_path / "none" / "ledger.db")
    (tmp_path / "ledger.db").write_bytes(b"no database, but long enough to look at" * 100)
    with raises(Unavailable, ErrorKind.DAMAGED):
        Ledger(tmp_path / "ledger.db")


# --- values -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_big_values_lie_in_blobs(
    ledger: Ledger,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    big = {"text": "x" * 20_000}
    ledger.add_task(make_task(), Share.OPEN)
    ledger.begin_run(make_run())
    ledger.append_step(replace(make_step(), observation=big))
    ledger.append_step(replace(make_step(), observation=big))
    (step,) = ledger.steps("run-1")
    assert set(step.observation) == {"blob", "size", "head", "tail"}
    assert ledger.blobs.expand(step.observation) == big
    ledger.finish_run("run-1", PASSED, RunEnd(big))
    assert ledger.blobs.expand(ledger.run("run-1").answer) == big


def test_a_read_beside_a_writer_waits_for_nobody_and_sees_what_was_committed(ledger: Ledger) -> None:
    ledger.set_kv("place", "before")
    with ledger._writing() as connection:
        connection.execute("UPDATE memo SET value = ? WHERE key = 'place'", ('"half"',))
        assert ledger.get_kv("place") == "before"
    assert ledger.get_kv("place") == "half"
    found: list[object] = []
    with ledger._lock:
        thread = threading.Thread(target=lambda: found.append(ledger.get_kv("place")))
        thread.start()
        thread.join(30)
    assert found == ["half"]


def test_memos(ledger: Ledger) -> None:
    assert ledger.get_kv("daemon") is None
    assert ledger.get_kv("daemon", {}) == {}
    ledger.set_kv("daemon", {"pid": 1})
    ledger.set_kv("daemon", {"pid": 2, "beat": 1.5})
    assert ledger.get_kv("daemon") == {"pid": 2, "beat": 1.5}


def test_live_inputs_are_stored_with_their_entry_or_not_at_all(
    ledger: Ledger, make_task: Callable[..., Task]
) -> None:
    ledger.add_task(make_task(), Share.OPEN)
    with pytest.raises(TypeError):
        give_inputs(ledger, make_task(goal="as it was read"), Share.OPEN, {"no entry": object()})
    assert ledger.task("task-1") == make_task()


def test_flags_have_an_order_of_their_own(
    ledger: Ledger, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    ledger.add_task(make_task(), Share.OPEN)
    ledger.begin_run(make_run())
    with pytest.raises(Conflict):
        ledger.flag("run-1", "not over yet")
    assert ledger.flags("run-1") == []
    ledger.finish_run("run-1", PASSED)
    ledger.flag("run-1", "wrong")
    ledger.flag("run-1", "still wrong")
    assert [(flag.seq, flag.reason) for flag in ledger.flags("run-1")] == [(1, "wrong"), (2, "still wrong")]
    assert ledger.flags("run-2") == []
    with pytest.raises(NotFound):
        ledger.flag("run-9", "no such run")


# --- the disk ---------------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tiny", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine lets even root mount nothing")
    return place


def test_a_full_disk_is_a_sentence_and_nothing_is_half_written(
    tiny_disk: Path,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    try:
        ledger = Ledger(tiny_disk / "ledger.db")
        ledger.add_task(make_task(), Share.OPEN)
        ledger.begin_run(make_run())
        stored = 0

        def fill_up() -> None:
            nonlocal stored
            while True:
                ledger.append_step(make_step(stored, observation="x" * 8_000))
                stored += 1

        with raises(Unavailable, ErrorKind.FULL):
            fill_up()
        assert stored > 10
        with raises(Unavailable, ErrorKind.NOT_WRITTEN):
            ledger.blobs.put(os.urandom(2 << 20))
        assert not list((tiny_disk / "blobs").glob("tmp/*"))
        assert [step.index for step in ledger.steps("run-1")] == list(range(stored))
        assert ledger.verify() == []
        ledger.close()
        with raw(tiny_disk / "ledger.db") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        subprocess.run(["umount", "-l", tiny_disk], check=True)


def test_a_big_observation_of_a_long_action_is_looked_for_and_found(
    ledger: Ledger,
    tmp_path: Path,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    ledger.add_task(replace(make_task(), inputs=()), Share.OPEN)
    ledger.begin_run(make_run())
    ledger.append_step(replace(make_step(observation="o" * 20_000), action={"tool": "a" * 200}))
    with LedgerSnapshot(tmp_path / "ledger.db") as reader:
        assert list(blob_faults(reader, tmp_path / "blobs")) == []
        (path,) = (tmp_path / "blobs").glob("??/*")
        path.unlink()
        (fault,) = blob_faults(reader, tmp_path / "blobs")
        assert "a step of run-1" in fault


def test_a_second_ledger_in_one_process_leaves_the_first_one_its_locks(tmp_path: Path) -> None:
    """POSIX drops all locks of a process on a file when it closes any descriptor of it."""
    path = tmp_path / "ledger.db"
    with closing(Ledger(path)) as first:
        first.note("first", "x", {})
        Ledger(path).close()
        other = (
            "import sys; from pathlib import Path; from agentos.ledger.store import Ledger\n"
            "made = Ledger(Path(sys.argv[1])); made.note('other', 'x', {}); made.close()"
        )
        subprocess.run([sys.executable, "-c", other, str(path)], check=True, timeout=60)
        assert [entry.event for entry in first.entries()] == ["first", "other"]
        first.note("last", "x", {})
    with closing(Ledger(path)) as again:
        assert [entry.event for entry in again.entries()] == ["first", "other", "last"]


def test_a_failure_of_a_run_that_is_graded_again_was_first_seen_before_it_was_last_seen(
    ledger: Ledger, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    times = (NOW + timedelta(seconds=2), NOW)  # the older run was graded anew, and mined last
    for number, seen_at in enumerate(times):
        task = make_task(f"task-{number}", goal=f"sum {number}")
        run = make_run(f"run-{number}", task=task)
        ledger.add_task(task, Share.OPEN)
        ledger.begin_run(run)
        ledger.finish_run(run.id, PASSED)
        ledger.put(Sighting(run.id, run.task_id, run.task_key, PRINT, seen_at))
    (listed,) = failure_groups(ledger, 5)
    for group in (listed, failure_group(ledger, PRINT.id)):
        assert (group.count, group.first_at, group.last_at) == (2, NOW, times[0])


@pytest.mark.slow
def test_what_was_written_here_is_read_as_every_other_process_reads_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    """To the type of each number and the zone of each time, for its digest is taken."""
    snapshot = Snapshot("c" * 40, "t" * 40)
    zone = timezone(timedelta(hours=2))
    begun = Evolution(
        "evo-1", "evidence-1", "f" * 16, EvolutionState.REPLAYING, snapshot, created_at=NOW.astimezone(zone)
    )
    outcome = Outcome(Result.PASSED, 1, "", checks=[CheckResult("equals", True, "")])  # type: ignore[arg-type]
    trial = Trial(
        "trial-1",
        "evo-1",
        "",
        "task-1",
        TrialSet.GUARD,
        Arm.BASE,
        0,
        snapshot,
        outcome,
        "a" * 64,
        "fake",
        "none",
        "run-1",
    )
    ledger.put(begun, trial)
    here = (ledger.get(Evolution, "evo-1"), *ledger.find(Trial, evolution_id="evo-1"))
    read = "import sys; from pathlib import Path; from agentos.domain import Evolution, Trial, canonical\n"
    read += "from agentos.ledger.reading import Reader; reader = Reader(Path(sys.argv[1]))\n"
    read += "found = (reader.get(Evolution, 'evo-1'), *reader.find(Trial, evolution_id='evo-1'))\n"
    read += "sys.stdout.buffer.write(canonical(found))\n"
    command = [sys.executable, "-c", read, str(tmp_path / "ledger.db")]
    assert canonical(here) == subprocess.run(command, check=True, capture_output=True).stdout
    assert here == (begun, replace(trial, outcome=replace(outcome, checks=tuple(outcome.checks))))


def test_what_the_writer_does_to_its_record_is_not_in_the_ledger(ledger: Ledger) -> None:
    spec = {"value": [1]}
    ledger.put(StandingCheck("standing-1", "sum", Check("equals", spec), "person:a", NOW))
    spec["value"].append(2)
    (found,) = ledger.find(StandingCheck)
    assert found.check.spec == {"value": [1]}


def test_what_a_server_says_over_several_lines_is_told_once_and_in_one() -> None:
    said = str(
        unavailable(Path("ledger.db"), sqlite3.OperationalError("connection failed:\n\tno such socket"))
    )
    assert "\n" not in said
    assert said.count("no such socket") == 1


def test_why_a_ledger_on_a_read_only_disk_cannot_be_read_is_told(tmp_path: Path) -> None:
    said = str(unavailable(tmp_path / "ledger.db", sqlite3.OperationalError("unable to open database file")))
    assert "read-only disk" in said
