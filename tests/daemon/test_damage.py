"""A home that lost something: each loss is one sentence, and nothing begins anew unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.setup import add_tasks, init_home
from agentos.daemon.upkeep.doctor import examine
from agentos.errors import ErrorKind, Invalid, NotFound
from agentos.home import Home
from agentos.registry.git.repository import MAIN
from agentos.registry.store import Registry
from agentos.sandboxes.reaper import leftovers
from agentos.taskfile import drafts_of
from tests.refusals import raises


def lose_the_ledger(home: Home) -> None:
    for path in home.root.glob("ledger.db*"):
        path.unlink()


def empty_the_ledger(home: Home) -> None:
    lose_the_ledger(home)
    home.ledger.touch()


def overwrite_the_ledger(home: Home) -> None:
    lose_the_ledger(home)
    home.ledger.write_text("a text that is no ledger\n" * 100)


def overwrite_the_engine(home: Home) -> None:
    home.engine.write_text("a text that is no database\n" * 100)


def shorten_the_key(home: Home) -> None:
    home.consent_key.write_bytes(b"short")


def break_the_policy(home: Home) -> None:
    (home.root / "policy.toml").write_text("x = [")


def lose_main(home: Home) -> None:
    Registry(home.registry).repository.git.references.delete(MAIN)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lose_the_ledger, "is missing or empty: restore it from a backup"),
        (empty_the_ledger, "is missing or empty: restore it from a backup"),
        (overwrite_the_ledger, "no SQLite database; restore it from a backup"),
        (overwrite_the_engine, "engine.db cannot be used (file is not a database)"),
        (shorten_the_key, "5 bytes, 32 were expected"),
        (break_the_policy, "policy.toml: not TOML"),
        (lose_main, "has lost its branch main. `agentos init` brings it back"),
    ],
)
def test_a_damaged_home_has_no_daemon_and_the_doctor_sees_it(
    daemon: Any, home: Home, damage: Callable[[Home], None], sentence: str
) -> None:
    damage(home)
    assert examine(home, fix=False) != []
    daemon.start(wait=False)
    assert daemon.ended(30) == 1
    said = daemon.child.stderr.read().decode()
    assert sentence in said
    assert "Traceback" not in said
    assert leftovers(home.root) == []
    assert daemon_info(home) is None


def test_init_brings_a_lost_main_back_with_all_that_was_learnt(home: Home) -> None:
    before = Registry(home.registry).stable()
    lose_main(home)
    init_home(home)
    assert Registry(home.registry).stable() == before
    assert examine(home, fix=False) == []


def test_a_lost_ledger_is_not_replaced_by_adding_a_task(home: Home, tmp_path: Path) -> None:
    lose_the_ledger(home)
    with raises(NotFound, ErrorKind.DAMAGED):
        add_tasks(home, drafts_of(b"goal: x", "the task", tmp_path))
    assert not home.ledger.exists()


def test_an_input_that_cannot_be_read_is_named(home: Home, tmp_path: Path) -> None:
    with raises(Invalid, names=["/proc/self/mem"]):
        add_tasks(home, drafts_of(b"{goal: x, inputs: [/proc/self/mem]}", "the task", tmp_path))
