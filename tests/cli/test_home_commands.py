"""init, status and doctor."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentos.cli.connections import notify
from agentos.daemon.control.daemon_lock import DaemonLock
from agentos.domain import Evolution, EvolutionState, EvolutionWait, Notification, NotificationState
from agentos.gateway.setup import SOCKET, GatewayEnding, note_ending
from agentos.home import Home
from agentos.ledger.schedules import skip
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.refusals import assert_golden

Agentos = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.slow
def test_init_makes_a_home_that_only_its_owner_reads(agentos: Agentos, tmp_path: Path) -> None:
    made = Home(tmp_path / "new" / "home")
    assert "Made the home" in agentos("--home", str(made.root), "init").stdout
    assert stat.S_IMODE(made.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.consent_key.stat().st_mode) == 0o600
    assert "harness/default" in agentos("--home", str(made.root), "registry", "list").stdout
    assert "Nothing is wrong" in agentos("--home", str(made.root), "doctor").stdout


def test_init_again_changes_nothing(agentos: Agentos, home: Home) -> None:
    key = home.consent_key.read_bytes()
    home.settings.write_text(home.settings.read_text() + "parallel = 3\n")
    assert "Complete already" in agentos("init").stdout
    assert home.consent_key.read_bytes() == key
    assert "parallel = 3" in home.settings.read_text()


def test_init_completes_what_was_interrupted(agentos: Agentos, home: Home) -> None:
    home.consent_key.unlink()
    home.ledger.unlink()
    assert "Completed the home" in agentos("init").stdout
    assert "tasks" in agentos("status").stdout
    home.run.rmdir()
    assert "Completed the home" in agentos("init").stdout
    assert "Complete already" in agentos("init").stdout


def test_init_refuses_a_directory_that_is_something_else(agentos: Agentos, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    assert_golden("home_init.is_not_empty", agentos("--home", str(tmp_path / "other"), "init", code=1).stderr)
    assert_golden(
        "home_init.is_a_file",
        agentos("--home", str(tmp_path / "other" / "letter.txt"), "init", code=1).stderr,
    )
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["letter.txt"]


def test_init_says_where_else_a_home_may_be(agentos: Agentos) -> None:
    assert "AGENTOS_HOME" in agentos("--home", "/proc/home", "init", code=1).stderr


def test_status_tells_what_there_is(agentos: Agentos, home: Home) -> None:
    assert "no daemon runs" in agentos("status").stdout
    found = json.loads(agentos("status", "--json").stdout)
    assert found["home"] == str(home.root)
    assert found["daemon"] is None
    assert found["counts"]["tasks"] == {}


def test_doctor_says_once_that_there_is_no_home(agentos: Agentos, tmp_path: Path) -> None:
    done = agentos("--home", str(tmp_path / "nowhere"), "doctor", code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("There is no home at")
    assert done.stderr.count("agentos init") == 1


def test_doctor_tells_an_old_ledger_once(agentos: Agentos, home: Home) -> None:
    with closing(sqlite3.connect(home.ledger)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    found = [item["what"] for item in json.loads(agentos("doctor", "--json", code=1).stdout)["findings"]]
    assert sum("of an older release" in what for what in found) == 1, found


@pytest.mark.slow
def test_doctor_finds_and_mends(agentos: Agentos, home: Home) -> None:
    home.consent_key.chmod(0o644)
    (home.blobs / "tmp").mkdir()
    (home.blobs / "tmp" / "half").write_bytes(b"half")
    (home.root / "agentos.toml.new").write_text("half")
    for left in (home.blobs / "tmp" / "half", home.root / "agentos.toml.new"):
        os.utime(left, (0, 0))  # else whoever writes it may be about to rename it
    found = json.loads(agentos("doctor", "--json", code=1).stdout)["findings"]
    assert len(found) == 3
    assert all(item["mendable"] for item in found)
    assert agentos("doctor", "--fix").stdout.count("mended") == 3
    assert "Nothing is wrong" in agentos("doctor").stdout
    assert stat.S_IMODE(home.consent_key.stat().st_mode) == 0o600


def test_doctor_reads_every_document_that_a_daemon_reads_when_it_starts(agentos: Agentos, home: Home) -> None:
    documents = ("agentos.toml", "policy.toml", "safety_probes.toml", "coders.toml", "keys.toml")
    for name in documents:
        (home.root / name).write_text("nonsense = [")
        (home.root / name).chmod(0o600)
    found = [item["what"] for item in json.loads(agentos("doctor", "--json", code=1).stdout)["findings"]]
    assert [next(name for name in documents if name in what) for what in found] == list(documents)


@pytest.mark.slow
def test_doctor_takes_a_working_daemons_word_for_what_it_started_with(agentos: Agentos, home: Home) -> None:
    lock = DaemonLock(home)
    lock.ready()
    (home.root / "policy.toml").write_text("nonsense = [")
    whose = home.run / "daemon.json"
    for hours, version, code in ((-1, None, 1), (1, None, 0), (1, "0.0.1", 1)):
        began = datetime.now(UTC) + timedelta(hours=hours)
        said = json.loads(whose.read_text()) | {"started_at": began.isoformat()}
        whose.write_text(json.dumps(said | ({"version": version} if version else {})))
        done = agentos("doctor", "--json", options=("-X", "importtime"), code=None)
        found = [item["what"] for item in json.loads(done.stdout)["findings"]]
        assert any("policy.toml" in what for what in found) == bool(code), found
        assert bool(code) == ("pydantic" in done.stderr)
    lock.release()


def test_doctor_looks_at_what_the_newest_commit_made(agentos: Agentos, home: Home) -> None:
    git = Registry(home.registry).repository.git
    git.references.delete("refs/tags/harness/default@1.0.0")
    (found,) = json.loads(agentos("doctor", "--json").stdout)["findings"]
    assert (found["mended"], "version tag" in found["what"]) == (True, True)
    assert "refs/tags/harness/default@1.0.0" in git.references
    git.references.delete("refs/heads/main")
    assert "has lost its branch main" in agentos("doctor", code=1).stdout


def test_doctor_tells_damage_that_only_a_person_can_mend(agentos: Agentos, home: Home) -> None:
    Ledger(home.ledger).close()
    data = bytearray(home.ledger.read_bytes())
    data[8192:12288] = b"\xff" * 4096
    home.ledger.write_bytes(bytes(data))
    for path in home.root.glob("ledger.db-*"):
        path.unlink()
    (victim,) = (home.registry / "objects").rglob("*.pack")
    victim.chmod(0o600)
    victim.write_bytes(b"junk")
    said = agentos("doctor", "--fix", "--full", code=1).stdout
    assert "ledger" in said
    assert "registry" in said
    assert "Traceback" not in said


def test_status_tells_who_waits_for_what_and_what_to_type(agentos: Agentos, home: Home) -> None:
    base = Registry(home.registry).stable()
    until = datetime.now(UTC) + timedelta(seconds=200)
    waits = Evolution("evo-waits", "evd", "f", EvolutionState.REPLAYING, base, "nobody listens there",
                      waiting=EvolutionWait.MODEL, waits_until=until)  # fmt: skip
    ledger = Ledger(home.ledger)
    for item in (
        waits,
        replace(waits, id="evo-next", state=EvolutionState.MINED, waiting=EvolutionWait.NOTHING),
    ):
        ledger.put(item)
    ledger.close()
    told = agentos("status").stdout
    assert "evo-waits waits for the model until" in told
    assert "nobody listens there" in told
    assert "1 not begun yet" in told
    for command in ("agentos model test", "agentos model default NAME", "agentos model remove NAME"):
        assert command in told
    (found,) = json.loads(agentos("status", "--json").stdout)["waits"]
    assert (found["evolution"], found["for"]) == ("evo-waits", "model")


def test_status_says_what_to_type_where_the_budget_of_the_day_is_used_up(
    agentos: Agentos, home: Home
) -> None:
    """No model is to blame, so none is offered for a test or for removal."""
    base = Registry(home.registry).stable()
    ledger = Ledger(home.ledger)
    ledger.put(
        Evolution("evo-waits", "evd", "f", EvolutionState.REPLAYING, base, "used up " * 100,
                  waiting=EvolutionWait.BUDGET, waits_until=datetime.now(UTC))
    )  # fmt: skip
    ledger.close()
    (found,) = json.loads(agentos("status", "--json").stdout)["waits"]
    assert (found["for"], found["type"]) == ("budget", ["agentos evolution retry evo-waits"])
    told = agentos("status").stdout
    assert "day_… of [budget] in agentos.toml" in told
    assert "midnight UTC" in told
    assert "agentos model" not in told


def test_status_says_that_new_model_calls_wait_for_old_ones(agentos: Agentos, home: Home) -> None:
    note_ending(home.run, SOCKET, GatewayEnding(os.getpid(), 3, time.time() + 60))
    assert json.loads(agentos("status", "--json").stdout)["models_end"]["calls"] == 3
    assert "3 model call(s)" in agentos("status").stdout


def test_status_names_what_a_schedule_passed_over_lately(agentos: Agentos, home: Home) -> None:
    named = {}
    for name in ("inbox", "paused"):
        text = json.dumps({"name": name, "call": {"tool": "word_count", "args": {}}, "schedule": "0 0 1 1 *"})
        (named[name],) = json.loads(agentos("task", "add", "-", "--json", stdin=text).stdout)
    agentos("schedule", "pause", "paused")
    ledger = Ledger(home.ledger)
    for schedule in named.values():
        skip(ledger, schedule, "long ago", datetime.now(UTC) - timedelta(days=2))
    assert not json.loads(agentos("status", "--json").stdout)["skipped"]
    for schedule in named.values():
        skip(ledger, schedule, "'a.bin' was not taken: too large", datetime.now(UTC))
    ledger.close()
    assert [*json.loads(agentos("status", "--json").stdout)["skipped"]] == ["inbox"]
    assert f"agentos schedule show {named['inbox']}" in agentos("status").stdout


def test_a_list_of_what_was_told_is_as_long_as_was_asked(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTOS_HOME", str(home.root))
    ledger = Ledger(home.ledger)
    for number, state in enumerate((NotificationState.DELIVERED, NotificationState.MUTED)):
        ledger.put(
            Notification(f"note-{number}", "run:a", "failed", "mail", "t", "t", datetime.now(UTC), state)
        )
    ledger.close()
    done = CliRunner().invoke(notify.app, ["list", "--limit", "1", "--json"])
    assert [note["id"] for note in json.loads(done.output)] == ["note-0"]


@pytest.mark.parametrize("noun", ["audit", "registry"])
@pytest.mark.slow
def test_lists_say_local_time(agentos: Agentos, monkeypatch: pytest.MonkeyPatch, noun: str) -> None:
    found = {}
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        (said,) = re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d)", agentos(noun, "list", options=("-B",)).stdout)[
            :1
        ]
        found[zone] = datetime.fromisoformat(said)
    assert found["Asia/Tokyo"] - found["UTC"] == timedelta(hours=9)


def test_status_tells_what_it_can_while_the_ledgers_server_is_away(home: Home, agentos: Agentos) -> None:
    home.settings.write_text(f'database = "postgresql://me@/none?host={home.root}"\n')
    for words in ((), ("--check",)):
        told = agentos("status", "--json", *words, code=1)
        assert json.loads(told.stdout)["state"] == "absent"
        assert "see that the server runs" in told.stderr
    assert "daemon" in agentos("status", code=1).stdout
