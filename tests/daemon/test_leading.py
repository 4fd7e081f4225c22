"""Two control processes on one database: one leads, the other one takes over, and who was replaced writes nothing."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.process import REPLACED
from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.mirroring import GIVEN, MIRROR, MirrorKeeper, follow, keeper_of
from agentos.daemon.upkeep.moving import move_home
from agentos.daemon.upkeep.status import daemon_status
from agentos.domain import Result, Share, TaskState
from agentos.home import Home
from agentos.ledger.postgres import connection
from agentos.ledger.postgres.leadership import Leadership, control
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.git.repository import MAIN, Repository
from agentos.registry.mirror import Mirror, MirrorState
from agentos.registry.store import Registry
from agentos.settings import RegistrySettings
from tests.daemon.conftest import Daemon, _make_task, until
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.sandbox]


@pytest.fixture
def two(home: Home, postgres_address: str, tmp_path: Path) -> Iterator[tuple[Daemon, Daemon]]:
    """Daemons of two homes with one database; neither runs."""
    move_home(home, postgres_address)
    other = Home(tmp_path / "other")
    shutil.copytree(home.root, other.root)
    pair = Daemon(home, stand_by=True), Daemon(other, stand_by=True)
    yield pair
    for daemon in pair:
        if daemon.child is not None and daemon.child.poll() is None:
            daemon.signal(signal.SIGCONT)
        daemon.close()


def stands_by(daemon: Daemon) -> bool:
    info = daemon_info(daemon.home)
    assert daemon.child is not None
    return info is not None and info.pid == daemon.child.pid and info.stand_by


def add(home: Home, n: int) -> str:
    task = _make_task("double", n=n, expect=2 * n)
    with closing(Ledger(home.ledger)) as ledger:
        ledger.add_task(task, Share.OPEN)
    return task.id


def until_done(home: Home, tasks: list[str]) -> None:
    with closing(Reader(home.ledger)) as reader:
        until(
            lambda: all(reader.task_view(name).state is TaskState.DONE for name in tasks),
            "all tasks are done",
            120,
        )
        for name in tasks:
            passed = [run for run in reader.runs(name) if run.outcome and run.outcome.result is Result.PASSED]
            assert len(passed) == 1, "no outcome is lost, and none is there twice"


def test_the_stand_by_takes_over_after_a_kill_with_runs_under_way(two: tuple[Daemon, Daemon]) -> None:
    first, second = two
    first.start()
    second.start(wait=False)
    until(lambda: stands_by(second), "the second one stands by", 60)
    assert daemon_status(second.home).state == "stand-by"
    assert daemon_status(second.home).code == 0
    said = daemon_status(second.home).leads
    assert str(first.home.root) in said.split("leads")[0]
    assert "stands by" in said.split("leads")[1]
    tasks = [add(second.home, n) for n in range(8)]
    first.signal(signal.SIGKILL)
    until(second.ready, "the second one leads", 30)
    until_done(second.home, tasks)
    assert verify_home(second.home).faults == ()


def test_a_frozen_leader_is_replaced_and_writes_nothing_when_it_wakes_up(
    two: tuple[Daemon, Daemon], postgres_address: str
) -> None:
    first, second = two
    first.start()
    second.start(wait=False)
    until(lambda: stands_by(second), "the second one stands by", 60)
    before = control(postgres_address)
    assert before is not None
    assert datetime.fromisoformat(before.since).isoformat(timespec="seconds") == before.since
    tasks = [add(second.home, n) for n in range(6)]
    first.signal(signal.SIGSTOP)
    until(second.ready, "the second one leads", 60)
    after = control(postgres_address)
    assert after is not None
    assert (after.term, after.leads) == (before.term + 1, True)
    until_done(second.home, tasks)
    first.signal(signal.SIGCONT)
    assert first.ended(30) == REPLACED
    until_done(second.home, tasks)
    assert verify_home(second.home).faults == ()
    with closing(psycopg.connect(postgres_address)) as raw:
        found = raw.execute("SELECT count(*) FROM dbos.workflow_status WHERE status = 'ERROR'").fetchone()
    assert found == (0,)


def bare(place: Path) -> str:
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    return str(place)


def commit(home: Home, name: str) -> str:
    files = {
        path: text
        for path, text in Registry(home.registry)
        .files(Registry(home.registry).stable(), "skill/test-kit")
        .items()
    }
    files = {path.replace("skill/test-kit/", f"skill/{name}/", 1): text for path, text in files.items()}
    files[f"skill/{name}/SKILL.md"] = files[f"skill/{name}/SKILL.md"].replace(b"test-kit", name.encode())
    return Registry(home.registry).commit(files, f"Add {name}", "edit").commit


def main(home: Home) -> str:
    return Registry(home.registry).stable().commit


@pytest.mark.slow
def test_the_registry_comes_by_the_mirror_and_without_the_newest_version_nobody_leads(
    two: tuple[Daemon, Daemon], tmp_path: Path
) -> None:
    first, second = two
    url = bare(tmp_path / "mirror.git")
    for daemon in two:
        with daemon.home.settings.open("a") as file:
            file.write(f'\n[registry]\nmirror = "{url}"\n')
    first.start()
    made = commit(first.home, "more-kit")
    with closing(Reader(first.home.ledger)) as reader:
        until(lambda: (reader.get_kv("registry.mirror") or {}).get("main") == made, "it is pushed", 60)
    second.start(wait=False)
    until(lambda: stands_by(second), "the second one stands by", 60)
    first.signal(signal.SIGKILL)
    until(second.ready, "the second one leads", 60)
    assert main(second.home) == made
    # now the mirror is away, and a task runs on a version that only the second one has
    Path(url).rename(tmp_path / "away.git")
    newest = commit(second.home, "most-kit")
    task = add(second.home, 3)
    with closing(Reader(second.home.ledger)) as reader:
        until(lambda: reader.task_view(task).state is TaskState.DONE, "it ran", 60)
        assert next(iter(reader.runs())).snapshot.commit == newest
        until(lambda: (reader.get_kv("registry.mirror") or {}).get("why"), "it is said", 60)
    first.start(wait=False)
    until(lambda: stands_by(first), "the first one stands by", 60)
    second.signal(signal.SIGKILL)
    log = first.home.logs / "daemon.log"
    until(lambda: f"lack {newest[:12]}" in log.read_text(), "it says what it lacks", 60)
    assert not first.ready()
    (tmp_path / "away.git").rename(url)
    second.start(wait=False)
    until(lambda: second.ready() or first.ready(), "who has it leads", 90)
    assert second.ready()
    assert main(second.home) == newest


def test_a_restarted_server_keeps_its_leader_or_gets_the_other_one(home: Home, tmp_path: Path) -> None:
    with PostgresServer.start() as server, server.database() as address:
        move_home(home, address)
        other = Home(tmp_path / "other")
        shutil.copytree(home.root, other.root)
        first, second = Daemon(home, stand_by=True), Daemon(other, stand_by=True)
        try:
            first.start()
            second.start(wait=False)
            until(lambda: stands_by(second), "the second one stands by", 60)
            tasks = [add(home, n) for n in range(6)]
            server.run("pg_ctl", "-m", "immediate", "stop")
            server.up()
            until_done(home, tasks)
            # the lock lay in a session that went with the server: whoever leads takes it again in a moment
            until(lambda: (found := control(address)) is not None and found.leads, "one of them leads", 60)
            assert verify_home(home).faults == ()
        finally:
            first.close()
            second.close()


def test_a_second_one_is_refused_unless_it_stands_by_and_takes_over_in_an_upgrade(
    two: tuple[Daemon, Daemon], home: Home
) -> None:
    first, second = two
    first.start()
    second.stand_by = False
    second.start(wait=False)
    assert second.ended(30) == 1
    first.signal(signal.SIGTERM)  # a rolling upgrade: the one that leads drains, the other one takes over
    second.stand_by = True
    second.start(wait=False)
    assert first.ended(60) == 0
    until(second.ready, "the second one leads", 60)
    first.start(wait=False)
    until(lambda: stands_by(first), "the first one stands by", 60)
    shutil.rmtree(home.root)  # for good: nobody stands by for what is gone
    assert first.ended(30) == 1


def test_standing_by_needs_a_database(daemon: Daemon) -> None:
    daemon.stand_by = True
    daemon.start(wait=False)
    assert daemon.ended(30) == 1


@pytest.fixture
def leads_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process leads it leads no longer after the test: later ones write to other databases."""
    begins = connection._BEGINS
    monkeypatch.setitem(begins, "BEGIN IMMEDIATE", begins["BEGIN IMMEDIATE"])


@pytest.mark.usefixtures("leads_here")
@pytest.mark.parametrize("term", [0, 1, 3])
def test_the_fence_refuses_every_other_term_of_ledger_and_engine(postgres_address: str, term: int) -> None:
    """What a process that was replaced would send, said by hand."""
    with closing(Leadership(postgres_address, "one")) as one:
        assert one.take()
    with closing(Leadership(postgres_address, "two")) as two_:
        assert two_.take()
        assert two_.term == 2
        with closing(psycopg.connect(postgres_address, autocommit=True)) as raw:
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                raw.execute(f"SELECT agentos_control.fence({term})".encode())
            raw.execute("SELECT agentos_control.fence(2)")
            raw.execute(
                "CREATE SCHEMA dbos; CREATE TABLE dbos.some (n int); SELECT agentos_control.fence_engine()"
            )
            raw.execute("INSERT INTO dbos.some VALUES (1)")  # of whoever has no term: a person's command
            raw.execute(f"SET agentos.term = '{term}'".encode())
            for statement in (
                "INSERT INTO dbos.some VALUES (2)",
                "UPDATE dbos.some SET n = 3",
                "DELETE FROM dbos.some",
            ):
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                    raw.execute(statement.encode())
            assert raw.execute("SELECT n FROM dbos.some").fetchall() == [(1,)]


def test_a_change_that_is_made_while_the_mirror_is_pushed_comes_over(
    home: Home, ledger: Ledger, tmp_path: Path
) -> None:
    url = bare(tmp_path / "mirror.git")
    behind = Home(tmp_path / "behind")
    shutil.copytree(home.root, behind.root)
    made = []

    class Late(Mirror):
        def push(self, main: str = "") -> MirrorState:
            if not made:
                made.append(commit(home, "more-kit"))
            return super().push(main)

    keeper = MirrorKeeper(ledger, Late(home.registry, url), url, lambda why: None)
    keeper.look()
    # whoever is killed here leaves a ledger that knows of all that is there
    assert str(Repository(Path(url)).resolve(MAIN)) == ledger.get_kv(GIVEN) != made[0]
    keeper.look()
    behind.ledger.unlink()
    with closing(sqlite3.connect(home.ledger)) as whole:
        whole.execute("VACUUM INTO ?", (str(behind.ledger),))
    follow(behind, url, 0)
    assert [main(behind)] == made


def test_a_mirror_that_was_taken_out_of_the_settings_lacks_nothing(
    home: Home, ledger: Ledger, tmp_path: Path
) -> None:
    settings = RegistrySettings(mirror=str(tmp_path / "nowhere.git"))
    keeper = keeper_of(home, ledger, settings, 0)
    assert keeper is not None
    keeper.look()
    assert ledger.get_kv(MIRROR)["why"]
    assert keeper_of(home, ledger, RegistrySettings(), 0) is None
    assert not ledger.get_kv(MIRROR)


def test_what_the_mirror_has_is_known_to_the_next_daemon_also_while_it_is_away(
    home: Home, ledger: Ledger, tmp_path: Path
) -> None:
    url = bare(tmp_path / "mirror.git")
    MirrorKeeper(ledger, Mirror(home.registry, url), url, lambda why: None).look()
    had = ledger.get_kv(MIRROR)["main"]
    assert had == main(home)
    (tmp_path / "mirror.git").rename(tmp_path / "away.git")
    keeper = MirrorKeeper(ledger, Mirror(home.registry, url), url, lambda why: None)
    commit(home, "more-kit")
    keeper.look()
    said = ledger.get_kv(MIRROR)
    assert (said["main"], bool(said["why"])) == (had, True)


def test_a_mirror_that_is_away_for_days_is_tried_again(home: Home, ledger: Ledger, tmp_path: Path) -> None:
    url = str(tmp_path / "nowhere.git")
    keeper = MirrorKeeper(ledger, Mirror(home.registry, url), url, lambda why: None)
    keeper._failures = 1_023  # some 13 hours of a try a minute
    keeper.look()
    assert ledger.get_kv(MIRROR)["why"]
    keeper._due = 0.0
    bare(tmp_path / "nowhere.git")
    keeper.look()
    assert ledger.get_kv(MIRROR)["main"] == main(home)


def test_nobody_leads_on_what_somebody_else_wrote_to_the_mirror(
    home: Home, ledger: Ledger, tmp_path: Path
) -> None:
    url = bare(tmp_path / "mirror.git")
    behind, thief = Home(tmp_path / "behind"), Home(tmp_path / "thief")
    shutil.copytree(home.root, behind.root)
    made = commit(home, "more-kit")  # a person's change, on which nothing has run
    MirrorKeeper(ledger, Mirror(home.registry, url), url, lambda why: None).look()
    shutil.copytree(home.root, thief.root)
    forged = commit(thief, "evil-kit")
    assert Mirror(thief.registry, url).push().main == forged
    behind.ledger.unlink()
    with closing(sqlite3.connect(home.ledger)) as whole:
        whole.execute("VACUUM INTO ?", (str(behind.ledger),))
    follow(behind, url, 0)
    assert main(behind) == made
