"""What holds of a ledger in PostgreSQL beyond what the other tests ask of both places."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.domain import Run, Share, Step, Task, TaskState
from agentos.errors import ErrorKind, Unavailable, UserError
from agentos.ledger.connect import tables_of
from agentos.ledger.listing import tasks_with
from agentos.ledger.moving import move_ledger
from agentos.ledger.postgres.address import address_of, fault_of
from agentos.ledger.postgres.connection import LeaderLock, PostgresConnection
from agentos.ledger.postgres.dialect import migration, statement
from agentos.ledger.reading import Reader
from agentos.ledger.rows.record_types import transaction
from agentos.ledger.rows.schema import LedgerConnection
from agentos.ledger.rows.tables import METADATA
from agentos.ledger.store import Ledger
from tests.ledger.test_store import PASSED, fill
from tests.postgres import PostgresServer
from tests.refusals import raises

pytestmark = pytest.mark.postgres
IN_POSTGRES = pytest.mark.parametrize("database", ["postgres"], indirect=True)
NEVER = ("step", "sighting", "evidence", "trial", "safety_rate", "verdict", "flag", "audit")


@pytest.fixture
def raw(database: str, tmp_path: Path) -> Iterator[LedgerConnection]:
    with closing(PostgresConnection(address_of(tmp_path / "ledger.db"))) as connection:
        yield connection


@IN_POSTGRES
@pytest.mark.parametrize("table", NEVER)
def test_history_is_not_rewritten_by_any_statement(
    table: str,
    ledger: Ledger,
    raw: LedgerConnection,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    fill(ledger, make_task(), make_run(), make_step())
    before = raw.execute(f"SELECT * FROM {table}").fetchall()
    assert before
    assert isinstance(raw, PostgresConnection)
    columns = raw.columns(table)
    place = columns[0]
    attacks = [
        *(f"UPDATE {table} SET {column} = {column}" for column in columns),
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"INSERT INTO {table} SELECT * FROM {table} ON CONFLICT ({place}) DO UPDATE SET {place} = 7",
        f"INSERT INTO {table} SELECT * FROM {table} ON CONFLICT DO NOTHING",
        f"WITH gone AS (DELETE FROM {table} RETURNING *) SELECT count(*) FROM gone",
        f"MERGE INTO {table} USING (SELECT 1 AS one) AS it ON TRUE WHEN MATCHED THEN DELETE",
    ]
    for attack in attacks:
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            raw.execute(attack)
    assert raw.execute(f"SELECT * FROM {table}").fetchall() == before


@IN_POSTGRES
def test_what_is_over_or_decided_is_not_rewritten(
    ledger: Ledger, raw: LedgerConnection, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    ledger.add_task(make_task(), Share.OPEN)
    ledger.begin_run(make_run())
    raw.execute("UPDATE run SET started_at = started_at")  # until it is over
    ledger.finish_run("run-1", PASSED)
    with pytest.raises(sqlite3.IntegrityError, match="a finished run"):
        raw.execute("UPDATE run SET result = 'failed'")


@IN_POSTGRES
def test_an_owner_of_the_tables_who_drops_the_triggers_is_seen(ledger: Ledger, raw: LedgerConnection) -> None:
    for number in range(5):
        ledger.note("decided", f"evolution-{number}", {"number": number})
    raw.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
    raw.execute("DELETE FROM audit WHERE seq = 3")
    assert "entry 3 is missing" in ledger.verify()[0]


@IN_POSTGRES
def test_the_migrations_make_the_tables_of_the_models(ledger: Ledger, raw: LedgerConnection) -> None:
    assert isinstance(raw, PostgresConnection)
    made = {table: set(raw.columns(table)) for table in tables_of(raw) if table != "alembic_version"}
    assert made == {
        name: {column.name for column in table.columns} for name, table in METADATA.tables.items()
    }


# One that forks: eight that each import would take a busy machine half a minute.
WRITERS = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from agentos.domain import *
from agentos.ledger.store import Ledger

def write(own):
    ledger = Ledger(Path(sys.argv[1]))
    for number in range(15):
        if ledger.set_task_state(f"task-{number}", (TaskState.QUEUED,), TaskState.RUNNING):
            ledger.note("claimed", f"task-{number}", {"by": own})
        at = datetime.now(UTC)
        run = Run(f"run-{own}-{number}", f"task-{own}", "k", Share.OPEN, number, Snapshot("c", "t"), "f", "n", at)
        ledger.begin_run(run)
        ledger.append_step(Step(run.id, 0, "act", {}, own * 300, None, at, 1.0))
        seq = ledger.finish_run(run.id, Outcome(Result.INFRA, 0.0, "no"), RunEnd(resources=("tool/a",)))
        assert seq in [place for place, _ in ledger.runs_after(seq - 1, 1)]

Ledger(Path(sys.argv[1])).close()  # imports all that there is
for own in "abcdefgh":
    if not os.fork():
        write(own)
        os._exit(0)
sys.exit(max(os.wait()[1] for _ in "abcdefgh"))
"""


@IN_POSTGRES
@pytest.mark.slow
def test_eight_processes_write_one_chain_in_one_order(
    ledger: Ledger, tmp_path: Path, make_task: Callable[..., Task]
) -> None:
    for name in (*map(str, range(15)), *"abcdefgh"):
        ledger.add_task(make_task(f"task-{name}"), Share.OPEN)
    writers = subprocess.Popen([sys.executable, "-W", "ignore", "-c", WRITERS, str(tmp_path / "ledger.db")])
    # a reader that goes along never sees a number appear behind one that it has seen
    seen: list[int] = []
    while writers.poll() is None:
        seen += [seq for seq, _ in ledger.runs_after(seen[-1] if seen else 0, 1000)]
        time.sleep(0.02)
    assert writers.returncode == 0
    seen += [seq for seq, _ in ledger.runs_after(seen[-1] if seen else 0, 1000)]
    assert seen == list(range(1, 121))
    assert ledger.verify() == []
    claims = [entry.subject for entry in ledger.entries() if entry.event == "claimed"]
    assert sorted(claims) == sorted(f"task-{number}" for number in range(15)), "each once"
    assert ledger.head().count == 135


def _cut_off(server: PostgresServer, ledger: Ledger) -> None:
    """A transaction whose server dies, as by kill -9 of all of it, and is there again."""
    with ledger._writing() as connection:
        connection.execute("UPDATE task SET state = 'done'")
        server.run("pg_ctl", "-m", "immediate", "stop")
        with pytest.raises(Unavailable):
            ledger.task("task-1")
        server.up()
        for _ in range(2):
            with pytest.raises(sqlite3.Error):  # on another connection it would stand alone
                connection.execute("UPDATE task SET name = 'other'")


@pytest.mark.slow
def test_a_server_that_is_restarted_is_found_again(tmp_path: Path, make_task: Callable[..., Task]) -> None:
    path = tmp_path / "ledger.db"
    with PostgresServer.start() as server, server.database(empty=True) as address:
        (tmp_path / "agentos.toml").write_text(f'database = "{address}"\n')
        with closing(Ledger(path)) as ledger:
            ledger.add_task(make_task("task-1"), Share.OPEN)
            with pytest.raises(Unavailable):
                _cut_off(server, ledger)
            assert ledger.task_view("task-1").state is TaskState.QUEUED
            ledger.add_task(make_task("task-2"), Share.OPEN)
            assert [view.task.id for view in Reader(path).tasks()] == ["task-1", "task-2"]


class _Between:
    """Passes on what is said on a socket in ``folder``, and cuts the connection off at the next COMMIT, once."""

    def __init__(self, folder: Path, server: str, *, passed_on: bool) -> None:
        self._server, self._passed_on, self._is_due = server, passed_on, True
        self._sockets = [socket.socket(socket.AF_UNIX)]
        self._sockets[0].bind(str(folder / ".s.PGSQL.5432"))
        self._sockets[0].listen()
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def close(self) -> None:
        for made in self._sockets:
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for made in self._sockets:
            made.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, server = self._sockets[0].accept()[0], socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(f"{self._server}/.s.PGSQL.5432")
                for ends in ((client, server), (server, client)):
                    self._threads.append(threading.Thread(target=self._pass_on, args=ends))
                    self._threads[-1].start()

    def _pass_on(self, here: socket.socket, there: socket.socket) -> None:
        with suppress(OSError):
            while data := here.recv(1 << 16):
                cut = self._is_due and b"COMMIT" in data
                if not cut or self._passed_on:
                    there.sendall(data)
                if cut:
                    self._is_due = False
                    here.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):  # the server ends once it has done what it was told
            there.shutdown(socket.SHUT_WR)


@IN_POSTGRES
@pytest.mark.parametrize("passed_on", [True, False])
def test_a_commit_whose_answer_is_lost_is_asked_for(
    database: str, tmp_path: Path, *, passed_on: bool
) -> None:
    address = address_of(tmp_path / "ledger.db")
    server = address.partition("?host=")[2]
    with tempfile.TemporaryDirectory() as folder:  # of a short name, as a socket's has to be
        between = _Between(Path(folder), server, passed_on=passed_on)
        with closing(between), closing(PostgresConnection(address.replace(server, folder))) as cut_off:
            outcome = nullcontext() if passed_on else pytest.raises(sqlite3.OperationalError)
            with outcome, transaction(cut_off):
                cut_off.execute("INSERT INTO memo (key, value) VALUES (?, ?)", ("k", "1"))
            assert cut_off.execute("SELECT count(*) FROM memo").fetchone() == (int(passed_on),)
            with transaction(cut_off):
                cut_off.execute("INSERT INTO memo (key, value) VALUES (?, ?)", ("l", "1"))


@IN_POSTGRES
def test_a_transaction_with_a_failed_statement_does_not_end_as_if_it_were_written(
    database: str, raw: LedgerConnection
) -> None:
    insert = ("INSERT INTO memo (key, value) VALUES (?, ?)", ("k", "1"))
    raw.execute("BEGIN IMMEDIATE")
    raw.execute(*insert)
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(*insert)
    with pytest.raises(sqlite3.OperationalError):
        raw.execute("COMMIT")
    assert raw.execute("SELECT count(*) FROM memo").fetchone() == (0,)


@IN_POSTGRES
def test_who_waits_too_long_for_the_others_can_write_afterwards(database: str, tmp_path: Path) -> None:
    address = address_of(tmp_path / "ledger.db")
    with closing(PostgresConnection(address)) as slow, closing(PostgresConnection(address)) as waiting:
        waiting.execute("SET lock_timeout = '20ms'")
        with transaction(slow), pytest.raises(sqlite3.OperationalError, match="lock timeout"):
            waiting.execute("BEGIN IMMEDIATE")
        with transaction(waiting):
            waiting.execute("INSERT INTO memo (key, value) VALUES (?, ?)", ("k", "1"))
        assert slow.execute("SELECT value FROM memo").fetchall() == [("1",)]


@IN_POSTGRES
def test_texts_and_bytes_come_back_as_they_were(database: str, raw: LedgerConnection) -> None:
    values = ["", "plain", "a\0b", "\x01bcmFj", "\x01s", "ä\ud7ff\U0001f600", b"", b"\x01\x00\xff", b"{}"]
    for value in values:
        assert raw.execute("SELECT ?", (value,)).fetchone() == (value,)
    with transaction(raw):
        raw.execute("INSERT INTO memo (key, value) VALUES (?, ?)", ("\x01b", b"\x00"))
    assert raw.execute("SELECT value FROM memo WHERE key = ?", ("\x01b",)).fetchall() == [(b"\x00",)]


@IN_POSTGRES
def test_json_that_postgresql_would_refuse_is_looked_into(database: str, raw: LedgerConnection) -> None:
    body = r'{"a":{"b":"x\u0000y\ud800"},"odd":"\\u0000","hidden":true,"n":1.5,"none":null}'
    paths = ("$.odd", "$.hidden", "$.n", "$.none", "$.missing")
    found = raw.execute(
        f"SELECT {', '.join(f'json_extract(?1, {path!r})' for path in paths)}", (body,)
    ).fetchone()
    assert found == ("\\u0000", "1", "1.5", None, None)


@IN_POSTGRES
@pytest.mark.parametrize("escaped", [r"\ud83d\ude00", r"\u0000\u0000", r"\ud800\\\ud800", r"\\\ud800x"])
def test_escapes_that_follow_one_another_hide_no_field(
    escaped: str, database: str, raw: LedgerConnection
) -> None:
    body = f'{{"odd":"{escaped}","klass":"exception"}}'
    assert raw.execute("SELECT json_extract(?, '$.klass')", (body,)).fetchone() == ("exception",)


def test_a_statement_is_numbered_as_sqlite_numbers_it() -> None:
    assert statement("a = ?2 AND b = ? AND c = '?' LIMIT -1") == "a = $2 AND b = $3 AND c = '?' LIMIT ALL"
    assert statement("x IN ()") == "x IN (NULL)"


def test_a_trigger_that_is_not_understood_is_not_left_out() -> None:
    odd = "CREATE TRIGGER a_no_update AFTER UPDATE ON a BEGIN SELECT 1; END"
    assert migration(odd) == odd, "PostgreSQL refuses it"


@pytest.mark.parametrize(
    "address",
    [
        "mysql://host/db",
        "ledger.db",
        "postgresql://me:secret@host/db",
        "postgresql://host/db?password=secret",
        "postgresql://host/db?sslmode=require&sslpassword=secret",
        "postgresql://[host/db",
        "postgresql://me:se#cret@host/db",
        "postgresql://me:se?cret@host/db",
        "postgresql://host/db?application_name=a#&password=secret",
        "postgresql://host/db#?password=secret",
        "postgresql://host/db?%70assword=secret",
    ],
)
def test_an_address_is_no_place_for_a_password(address: str, tmp_path: Path) -> None:
    assert fault_of(address)
    assert "secret" not in fault_of(address)
    (tmp_path / "agentos.toml").write_text(f'database = "{address}"\n')
    with pytest.raises(UserError):
        Ledger(tmp_path / "ledger.db")


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "agentos.toml").write_text(f'database = "postgresql://nobody@/none?host={tmp_path}"\n')
    for opened in (Ledger, Reader):
        with pytest.raises(Unavailable):
            opened(tmp_path / "ledger.db")


@pytest.mark.slow
def test_a_name_is_found_whatever_the_locale_of_the_database(
    postgres_server: PostgresServer, tmp_path: Path, make_task: Callable[..., Task]
) -> None:
    postgres_server._sql("CREATE DATABASE utf8 TEMPLATE template0 LOCALE 'C.UTF-8'")
    (tmp_path / "agentos.toml").write_text(f'database = "{postgres_server.address("utf8")}"\n')
    with closing(Ledger(tmp_path / "ledger.db")) as ledger:
        ledger.add_task(replace(make_task(), name="Ärger"), Share.OPEN)
        assert [view.task.name for view in tasks_with(ledger, "ÄRGER", 5)] == ["Ärger"]
    postgres_server._sql("DROP DATABASE utf8 WITH (FORCE)")


def test_a_ledger_is_sealed_whatever_stands_in_the_name_of_the_place_it_went_to(
    postgres_address: str, tmp_path: Path
) -> None:
    home = tmp_path / "a%b"
    home.mkdir()
    (home / "agentos.toml").write_text(f'database = "{postgres_address}"\n')
    with closing(Ledger(home / "ledger.db")) as ledger:
        ledger.note("event", "subject", {})
        move_ledger(home / "ledger.db", postgres_address, "")
        with pytest.raises(sqlite3.IntegrityError, match="a%b"):
            ledger.note("late", "where nobody looks", {})


@IN_POSTGRES
def test_one_leads_a_database(database: str, tmp_path: Path) -> None:
    address = address_of(tmp_path / "ledger.db")
    with closing(LeaderLock(address, "another one leads")), raises(UserError, ErrorKind.BUSY):
        LeaderLock(address, "another one leads")
    LeaderLock(address, "nobody leads").close()


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ('database = "postgresql://h/d"', "postgresql://h/d"),
        (' "database" = "postgresql://h/d"  # there', "postgresql://h/d"),
        ('web = true\r\ndatabase = ""', ""),
        ('# database = "postgresql://h/d"', ""),
        ('[providers.x]\ndatabase = "postgresql://h/d"', ""),
        ("\ufeff", ""),
        ('\ufeffdatabase = "postgresql://h/d"', "postgresql://h/d"),
    ],
)
def test_the_settings_say_where_it_lies(settings: str, address: str, tmp_path: Path) -> None:
    (tmp_path / "agentos.toml").write_text(settings)
    assert address_of(tmp_path / "ledger.db") == address
