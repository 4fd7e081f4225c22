"""What the audit log detects, and what it cannot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from agentos.cli.admin.audit import app
from agentos.errors import ErrorKind, UserError
from agentos.ledger.audit import AuditHead, chained
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.refusals import raises

Tamper = Callable[[sqlite3.Connection], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = Ledger(tmp_path / "ledger.db")
    for number in range(1, 7):
        ledger.note("decided", f"evolution-{number}", {"number": number})
    assert ledger.verify() == []
    ledger.close()
    return tmp_path / "ledger.db"


def tamper(path: Path, *statements: str) -> None:
    """As somebody would who may write the file: the triggers are dropped first."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statements", "fault"),
    [
        (["UPDATE audit SET detail = '{}' WHERE seq = 3"], "entry 3 was changed"),
        (["UPDATE audit SET subject = 'x' WHERE seq = 3"], "entry 3 was changed"),
        (["UPDATE audit SET at = at || ' ' WHERE seq = 1"], "entry 1 was changed"),
        (["UPDATE audit SET hash = previous WHERE seq = 3"], "entry 3 was changed"),
        (["DELETE FROM audit WHERE seq = 3"], "entry 3 is missing"),
        (["DELETE FROM audit WHERE seq = 1"], "entry 1 is missing"),
        (
            [
                "INSERT INTO audit SELECT 0, at, event, subject, detail, previous, hash FROM audit WHERE seq = 1"
            ],
            "entry 0",
        ),
        (
            ["DELETE FROM audit WHERE seq = 3", "UPDATE audit SET seq = seq - 1 WHERE seq > 3"],
            "entry 3 does not continue entry 2",
        ),
        (
            [
                "UPDATE audit SET seq = 30 WHERE seq = 3",
                "UPDATE audit SET seq = 3 WHERE seq = 4",
                "UPDATE audit SET seq = 4 WHERE seq = 30",
            ],
            "entry 3 does not continue entry 2",
        ),
        (["DELETE FROM audit WHERE seq > 4"], "cut short: the file audit.head knows 6 entries, 4 are there"),
        (["DELETE FROM audit"], "cut short: the file audit.head knows 6 entries, 0 are there"),
    ],
)
def test_a_changed_log_is_seen(path: Path, statements: list[str], fault: str) -> None:
    tamper(path, *statements)
    assert fault in "; ".join(Reader(path).verify())


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE audit SET detail = '{}' WHERE seq = 6", "entry 6 was changed"),
        ("UPDATE audit SET previous = '' WHERE seq = 5", "entry 5 does not continue entry 4"),
        ("UPDATE audit SET previous = substr(previous, 1, 7) WHERE seq = 5", "does not continue entry 4"),
        ("DELETE FROM audit WHERE seq = 5", "entry 5 is missing"),
        ("DELETE FROM audit WHERE seq = 4", "entry 4 is missing"),
        ("DELETE FROM audit WHERE seq > 3", "cut short: the file audit.head knows 6 entries, 3 are there"),
        ("DELETE FROM audit", "cut short: the file audit.head knows 6 entries, 0 are there"),
        ("UPDATE audit SET detail = '{}' WHERE seq = 2", ""),
    ],
)
def test_the_newest_entries_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, fault: str
) -> None:
    monkeypatch.setattr("agentos.ledger.audit._NEWEST", 2)
    assert Reader(path).verify(newest_only=True) == []
    tamper(path, statement)
    found = Reader(path).verify(newest_only=True)
    assert fault in "; ".join(found) if fault else found == []
    # of a head that is far behind all is read
    path.with_name("audit.head").write_text(f"{1:020d}:{'0' * 64}\n")
    assert len(Reader(path).verify(newest_only=True)) >= len(Reader(path).verify()) > 0


def test_entries_after_a_cut_do_not_hide_it(path: Path) -> None:
    tamper(path, "DELETE FROM audit WHERE seq > 4")
    ledger = Ledger(path)
    for number in range(9):
        ledger.note("later", str(number), None)
    assert "entry 6 is not the one that the file audit.head knows" in ledger.verify()
    ledger.close()


def test_a_rewritten_tail_needs_a_head_kept_elsewhere(path: Path) -> None:
    noted = Reader(path).head()
    before, entry = Reader(path).entries()[-2:]
    forged = chained(AuditHead(5, before.hash), entry.at, "decided", "evolution-6", '{"number": 7}')
    statement = f"UPDATE audit SET detail = '{forged.detail_text}', hash = '{forged.hash}' WHERE seq = 6"
    tamper(path, statement)
    assert Reader(path).verify() == ["entry 6 is not the one that the file audit.head knows"]
    path.with_name("audit.head").write_text(f"{6:020d}:{forged.hash}\n")
    assert Reader(path).verify() == []  # whoever writes both files is not seen from here
    assert Reader(path).verify(noted) == ["entry 6 is not the one that the head you gave knows"]


@pytest.mark.parametrize("content", [None, "", "nonsense", "\xff\xfe"])
def test_a_lost_head_is_a_fault_and_is_not_made_up_again(path: Path, content: str | None) -> None:
    head = path.with_name("audit.head")
    head.unlink() if content is None else head.write_text(content, encoding="latin-1")
    ledger = Ledger(path)
    ledger.note("later", "x", None)
    assert ["audit.head is missing or unreadable" in fault for fault in ledger.verify()] == [True]
    ledger.close()


def test_a_head_that_fell_behind_is_true_and_catches_up(path: Path) -> None:
    head = path.with_name("audit.head")
    old = head.read_text()
    ledger = Ledger(path)
    ledger.note("later", "x", None)
    newest = head.read_text()
    ledger.close()
    head.write_text(old)
    assert Reader(path).verify() == []
    Ledger(path).close()
    assert head.read_text() == newest


def test_a_noted_head_is_number_and_hash() -> None:
    assert str(AuditHead.parse("6:" + "a" * 64)) == "6:" + "a" * 64
    with raises(UserError, ErrorKind.USAGE, type_next="agentos audit verify"):
        AuditHead.parse("6")


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def run(path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("AGENTOS_HOME", str(path.parent))
    Registry.init(path.with_name("registry.git"), {})
    return lambda *words: CliRunner().invoke(app, list(words))


def test_verify_prints_the_head_to_note(run: Callable[..., Result], path: Path) -> None:
    result = run("verify")
    assert result.exit_code == 0
    assert str(Reader(path).head()) in result.output
    assert run("verify", "--head", str(Reader(path).head())).exit_code == 0
    found = json.loads(run("verify", "--json").output)
    assert (found["entries"], found["faults"], found["digests_since"]) == (6, [], None)


def test_verify_fails_with_the_faults(run: Callable[..., Result], path: Path) -> None:
    tamper(path, "DELETE FROM audit WHERE seq = 2")
    result = run("verify")
    assert result.exit_code == 1
    assert "entry 2 is missing" in result.output
    assert run("verify", "--json").exit_code == 1


def test_a_detail_that_is_no_json_any_more_is_told_and_the_rest_is_looked_at(
    run: Callable[..., Result], path: Path
) -> None:
    tamper(path, "UPDATE audit SET detail = 'no json' WHERE seq = 2")
    result = run("verify")
    assert result.exit_code == 1
    assert "entry 2 was changed" in result.output


def test_list_shows_the_newest(run: Callable[..., Result]) -> None:
    result = run("list", "--limit", "2")
    assert "evolution-6" in result.output
    assert "evolution-4" not in result.output
    assert '"subject": "evolution-2"' in run("list", "--subject", "evolution-2", "--json").output


def test_a_long_detail_is_packed_and_a_short_one_is_not(path: Path) -> None:
    ledger = Ledger(path)
    ledger.note("decided", "evolution-7", {"reason": "the same reason again, " * 20})
    assert Reader(path).entries()[-1].detail == {"reason": "the same reason again, " * 20}
    assert ledger.verify() == []
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT detail FROM audit WHERE seq > 5 ORDER BY seq").fetchall()
    assert [type(detail) for (detail,) in found] == [str, bytes]
    assert len(found[1][0]) < 100


@pytest.mark.parametrize("damage", ["x'0102'", "substr(detail, 1, 20)", "zeroblob(3)", "'{}'"])
def test_a_packed_detail_that_was_changed_is_seen(path: Path, damage: str) -> None:
    ledger = Ledger(path)
    ledger.note("decided", "evolution-7", {"reason": "the same reason again, " * 20})
    ledger.close()
    tamper(path, f"UPDATE audit SET detail = {damage} WHERE seq = 7")
    assert Reader(path).verify() == ["entry 7 was changed: its hash does not match its content"]


def test_entries_of_an_earlier_release_are_verified_with_those_of_this_one(path: Path) -> None:
    """They have the whole hash of the one before, and their details as text."""
    entries = Reader(path).entries()
    hashes = ["0" * 64, *(entry.hash for entry in entries)]
    tamper(path, *(f"UPDATE audit SET previous = '{hashes[seq - 1]}' WHERE seq = {seq}" for seq in (1, 2, 3)))
    assert Reader(path).verify() == []
    tamper(path, f"UPDATE audit SET previous = '{hashes[1][:63]}x' WHERE seq = 3")
    assert "entry 3 does not continue entry 2" in "; ".join(Reader(path).verify())
