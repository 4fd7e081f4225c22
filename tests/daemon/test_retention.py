"""What a home lets go, what stays, and that nobody can have his change forgotten."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.retention import FAILED, DailyPrune, is_due, prune
from agentos.domain import (
    Call,
    Evolution,
    Fingerprint,
    InputFile,
    Limits,
    Outcome,
    Result,
    Run,
    Share,
    Sighting,
    Snapshot,
    Step,
    Task,
    Trial,
)
from agentos.errors import Conflict, ErrorKind
from agentos.home import Home
from agentos.ledger import retention
from agentos.ledger.audit import pruned_so_far
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.ledger.rows.codec import plain
from agentos.ledger.rows.record_types import RUN_ENDS
from agentos.ledger.store import Ledger
from agentos.settings import Retention
from tests.cli.evolved_home import evolve_home
from tests.refusals import raises

LATER = datetime.now(UTC) + timedelta(days=400)


@pytest.fixture(scope="session")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pruned") / "home"
    init_home(Home(root))
    evolve_home(Home(root))
    return root


@pytest.fixture
def home(evolved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """All its files are old, and only the newest two runs of a resource keep their steps."""
    shutil.copytree(evolved, tmp_path / "home")
    monkeypatch.setattr(retention, "NEWEST_OF_EACH", 2)
    home = Home(tmp_path / "home")
    _age(home)
    return home


def _age(home: Home) -> None:
    for path in home.blobs.glob("??/*"):
        os.utime(path, (time.time() - 30 * 86_400,) * 2)


def _let_go(home: Home, *, days: float = 1, gb: float = 0, apply: bool = True) -> Any:
    return prune(home, LATER, Retention(days=days, gb=gb), apply=apply)


def _steps(home: Home) -> dict[str, int]:
    with closing(sqlite3.connect(home.ledger)) as connection:
        return dict(connection.execute("SELECT run_id, count(*) FROM step GROUP BY run_id"))


@pytest.fixture
def unlocked(home: Home) -> Any:
    """The ledger in the hands of somebody who has dropped its triggers."""
    with closing(sqlite3.connect(home.ledger, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        yield connection


@pytest.mark.slow
def test_what_is_old_goes_and_what_a_verdict_needs_stays(home: Home) -> None:
    reader = Reader(home.ledger)
    before = _steps(home)
    evidence = {run for item in reader.find(Evolution) for run in _evidence(home, item.evidence_id)}
    planned = _let_go(home, apply=False)
    assert _steps(home) == before
    done = _let_go(home)
    assert (done.runs, done.evolutions, done.blobs) == (planned.runs, planned.evolutions, planned.blobs)
    left = _steps(home)
    assert done.runs > 0
    assert done.evolutions == 1
    assert evidence <= left.keys()
    assert "run-0" in left  # flagged
    assert len(left) < len(before)
    assert verify_home(home).faults == ()
    gone = next(run for run in map(reader.run, before.keys() - left.keys()))
    assert gone.outcome is not None
    assert reader.is_pruned(gone)
    assert not reader.is_pruned(reader.run("run-0"))
    assert reader.find(Trial)
    assert _let_go(home).runs == 0
    assert verify_home(home).faults == ()


def _evidence(home: Home, evidence_id: str) -> set[str]:
    from agentos.domain import Evidence

    return set(Reader(home.ledger).get(Evidence, evidence_id).run_ids)


def test_trajectories_of_trials_go_and_verdicts_compute_again(home: Home) -> None:
    blobs = {trial.steps_in or trial.steps_sha256 for trial in Reader(home.ledger).find(Trial)} - {""}
    there = {path.parent.name + path.name for path in home.blobs.glob("??/*")}
    _let_go(home)
    after = {path.parent.name + path.name for path in home.blobs.glob("??/*")}
    assert blobs & there
    assert not blobs & after
    assert verify_home(home).faults == ()


def test_a_run_that_was_changed_is_not_forgotten(home: Home, unlocked: sqlite3.Connection) -> None:
    victim = next(name for name in _steps(home) if name not in _kept(home))
    unlocked.execute("UPDATE step SET observation = '\"forged\"' WHERE run_id = ?", (victim,))
    assert any(victim in fault for fault in verify_home(home).faults)
    _let_go(home)
    assert victim in _steps(home)
    assert any(victim in fault for fault in verify_home(home).faults)


def test_a_run_that_is_changed_afterwards_is_told(home: Home, unlocked: sqlite3.Connection) -> None:
    _let_go(home)
    victim = next(
        run for run in Reader(home.ledger).runs() if run.id not in _steps(home) and run.id != "run-0"
    )
    ((body,),) = unlocked.execute("SELECT body FROM run WHERE id = ?", (victim.id,)).fetchall()
    unlocked.execute(
        "UPDATE run SET body = ? WHERE id = ?", (plain(body).replace('"cpu_s"', '"cpu_s" '), victim.id)
    )
    assert verify_home(home).faults


def test_steps_removed_by_hand_are_told(home: Home, unlocked: sqlite3.Connection) -> None:
    victim = next(name for name in _steps(home) if name not in _kept(home))
    unlocked.execute("INSERT INTO pruned VALUES (NULL, 1, 1000, '2026')")
    unlocked.execute("DELETE FROM step WHERE run_id = ?", (victim,))
    assert any(victim in fault for fault in verify_home(home).faults)


def test_triggers_let_only_covered_steps_go(home: Home) -> None:
    _let_go(home)
    with closing(sqlite3.connect(home.ledger)) as connection:
        for statement in ("DELETE FROM pruned", "UPDATE pruned SET to_seq = 9"):
            with pytest.raises(sqlite3.DatabaseError):
                connection.execute(statement)
    fresh = Ledger(home.ledger)
    covered = retention.covered_to(fresh._rows)
    fresh.close()
    assert covered > 0


def _kept(home: Home) -> frozenset[str]:
    return retention.protected_runs(Reader(home.ledger)._rows)


def _ran(
    ledger: Ledger, name: str, at: datetime, goal: str = "", event: str = "run.finished"
) -> tuple[str, str]:
    """A run on record with a step and an input of its own, of a skill that no other test uses: its id, the input's blob."""
    content = f"given to {goal or name}".encode()
    given = InputFile("in.txt", ledger.blobs.put(content), len(content))
    task = Task(f"task-{name}", name, goal or name, Call("odd/tool", {}), (given,), "default", Limits(), (), (), None, at)  # fmt: skip
    run = Run(f"run-{name}", task.id, task.key, Share.OPEN, 1, Snapshot("c" * 40, "t" * 40), "fake", "none", at,
              finished_at=at, outcome=Outcome(Result.PASSED, 1.0, ""), resources=("skill/odd",))  # fmt: skip
    step = Step(run.id, 0, "act", {"tool": "odd"}, {"text": f"seen by {name}"}, None, at, 1.0)
    assert ledger.add_past(task, run, [step], event)
    return run.id, given.sha256


def test_what_a_task_was_given_goes_with_its_runs(home: Home) -> None:
    ledger = Ledger(home.ledger)
    at = LATER - timedelta(days=300)
    made = [_ran(ledger, f"odd-{number}", at, f"work {number}") for number in range(6)]
    _age(home)
    _let_go(home)
    whole = [name for name, _ in made if ledger.steps(name)]
    assert whole == ["run-odd-4", "run-odd-5"]  # NEWEST_OF_EACH
    there = [name for name, sha256 in made if (home.blobs / sha256[:2] / sha256[2:]).exists()]
    assert there == whole
    assert {run.id for run in ledger.runs_using("skill/odd", 100)} == set(whole)
    assert ledger.task("task-odd-0").goal == "work 0"
    assert ledger.run("run-odd-0").outcome is not None
    assert verify_home(home).faults == ()


@pytest.mark.parametrize("event", RUN_ENDS)
def test_a_run_goes_whatever_made_it(home: Home, event: str) -> None:
    """What a person's word made of a run stayed for ever."""
    with closing(Ledger(home.ledger)) as ledger:
        at = LATER - timedelta(days=300)
        for number in range(3):
            _ran(ledger, f"odd-{number}", at, f"work {number}", event)
        _let_go(home)
        assert [bool(ledger.steps(f"run-odd-{number}")) for number in range(3)] == [False, True, True]
    assert verify_home(home).faults == ()


def test_of_work_that_is_rare_the_newest_run_stays_whole(home: Home) -> None:
    ledger = Ledger(home.ledger)
    at = LATER - timedelta(days=300)
    for number, goal in enumerate(("rare", *["daily"] * 5)):
        _ran(ledger, f"odd-{number}", at, goal)
    _let_go(home)
    assert [number for number in range(6) if ledger.steps(f"run-odd-{number}")] == [0, 4, 5]


def test_a_failure_keeps_what_its_evidence_needs_until_it_recurs(home: Home) -> None:
    ledger, at = Ledger(home.ledger), LATER - timedelta(days=300)
    made = [_ran(ledger, f"odd-{number}", at, f"work {number}") for number in range(20)]
    seen = Fingerprint("f" * 16, "skill/odd", "exception", "odd")
    for name, _ in made[:10]:
        task = ledger.task(ledger.run(name).task_id)
        ledger.put(Sighting(name, task.id, task.key, seen, at))
    _age(home)
    _let_go(home)
    whole = [name for name, _ in made if ledger.steps(name)]
    assert whole == [name for name, _ in (*made[2:10], *made[-2:])]
    assert all(ledger.blobs.get(sha256) for name, sha256 in made if name in whole)


def test_a_task_that_waits_keeps_what_it_goes_on_from(home: Home, unlocked: sqlite3.Connection) -> None:
    ledger = Ledger(home.ledger)
    made = [
        _ran(ledger, f"odd-{number}", LATER - timedelta(days=300), f"work {number}") for number in range(4)
    ]
    unlocked.execute("UPDATE task SET state = 'waiting' WHERE id = 'task-odd-0'")
    _age(home)
    _let_go(home)
    (first, sha256), (second, _), *_ = made
    assert ledger.steps(first)
    assert ledger.blobs.get(sha256)
    assert not ledger.steps(second)


def test_two_that_prune_at_once_do_it_once(home: Home) -> None:
    ledger, rows = Ledger(home.ledger), Reader(home.ledger)._rows
    batch = retention.batch_after(rows, 0, retention.last_before(rows, LATER), retention.protected_runs(rows))
    assert batch is not None
    ledger.prune(batch)
    with raises(Conflict, ErrorKind.AT_WORK):
        ledger.prune(batch)
    assert len(pruned_so_far(rows).ranges) == 1


def test_a_run_that_a_person_speaks_of_meanwhile_keeps_what_it_has(home: Home) -> None:
    rows, ledger = Reader(home.ledger)._rows, Ledger(home.ledger)
    batch = retention.batch_after(rows, 0, retention.last_before(rows, LATER), retention.protected_runs(rows))
    assert batch is not None
    ledger.flag(batch.runs[0], "look at this one")
    with pytest.raises(Conflict):
        ledger.prune(batch)
    assert ledger.steps(batch.runs[0])
    ledger.close()


def test_a_run_while_the_clock_was_ahead_holds_up_nothing(home: Home) -> None:
    ledger = Ledger(home.ledger)
    times = [LATER - timedelta(days=300), LATER + timedelta(days=3650), *[LATER - timedelta(days=299)] * 4]
    for number, at in enumerate(times):
        _ran(ledger, f"odd-{number}", at, f"work {number}")
    _let_go(home)
    assert [number for number in range(6) if ledger.steps(f"run-odd-{number}")] == [1, 4, 5]
    assert verify_home(home).faults == ()


def test_the_daemon_prunes_daily_and_not_at_once_when_the_clock_leaps_ahead(home: Home) -> None:
    with closing(Ledger(home.ledger)) as ledger:
        now = datetime.now(UTC)
        day, hour, ahead = timedelta(days=1), timedelta(hours=1), timedelta(days=3650)
        looks = [
            (now, False),  # a new home
            (now + day, True),
            (now + day + hour, False),
            (now + day + ahead, False),
            (now + day + hour + ahead, False),
            (now + day + 2 * hour, True),  # it was put right
            (now + 2 * day + 2 * hour, True),
            (now + 9 * day, False),  # nobody was here
            (now + 10 * day, True),
            (now + 17 * day, False),
            (now + 24 * day, True),  # who is here once a week prunes every other time
        ]
        assert [is_due(ledger, at) for at, _ in looks] == [due for _, due in looks]


@pytest.mark.slow
def test_a_daily_prune_that_fails_is_told_until_one_works(home: Home) -> None:
    with closing(Ledger(home.ledger)) as ledger:
        now = datetime.now(UTC)
        daily = DailyPrune(home, ledger)
        daily.look(now)  # a new home
        told = []
        for number, settings in enumerate((b"retention = 3\n", b""), 1):
            kept = home.settings.read_bytes()
            home.settings.write_bytes(settings or kept)
            daily.look(now + timedelta(days=number))
            assert daily._child is not None
            daily._child.wait(120)
            daily.look(now + timedelta(days=number))
            home.settings.write_bytes(kept)
            told.append(ledger.get_kv(FAILED))
    assert "retention" in told[0]
    assert told[0].isprintable()
    assert not told[0].startswith("{"), "people read it"
    assert told[1] == ""


def test_the_room_decides_too(home: Home) -> None:
    assert _let_go(home, days=0, gb=0, apply=False).runs == 0
    assert _let_go(home, days=0, gb=1e-6, apply=False).runs > 0


def test_files_that_somebody_stores_now_stay(home: Home) -> None:
    store = BlobStore(home.blobs)
    orphan, fresh = store.put(b"an orphan" * 2_000), store.put(b"a fresh one" * 2_000)
    _age(home)
    store.put(b"a fresh one" * 2_000)
    assert _let_go(home).blobs > 0
    assert store.get(fresh)
    assert not (home.blobs / orphan[:2] / orphan[2:]).exists()


@pytest.mark.slow
def test_a_prune_that_is_killed_is_done_again(home: Home) -> None:
    program = (
        "import sys; from datetime import datetime; from pathlib import Path; from agentos.daemon.upkeep.retention import prune;"
        "from agentos.ledger import retention; from agentos.settings import Retention; from agentos.home import Home; retention.NEWEST_OF_EACH = 2; retention.BATCH = 2;"
        "print('go', flush=True); prune(Home(Path(sys.argv[1])), datetime.fromisoformat(sys.argv[2]), Retention(days=1, gb=0), apply=True)"
    )
    for after in (0.01, 0.03, 0.1):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(home.root), LATER.isoformat()], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(after)
            child.kill()
        assert verify_home(home).faults == ()
    _let_go(home)
    assert verify_home(home).faults == ()
    assert _steps(home).keys() <= _kept(home)


def test_a_prune_that_hangs_is_ended_and_told(home: Home, ledger: Ledger) -> None:
    now = datetime.now(UTC)
    ledger.set_kv("retention.at", now.isoformat())
    daily = DailyPrune(home, ledger)
    daily._child = hangs = subprocess.Popen(["sleep", "600"])
    daily._said, daily._began = tempfile.TemporaryFile(), now  # noqa: SIM115 - until it has ended
    try:
        daily.look(now + timedelta(hours=1))
        assert hangs.poll() is None
        daily.look(now + timedelta(hours=13))
        hangs.wait(60)
        daily.look(now + timedelta(hours=14))
    finally:
        hangs.kill()
        hangs.wait()
    assert ledger.get_kv(FAILED, "")
