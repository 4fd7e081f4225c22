"""What `agentos evolve` says of evolutions that it did not open."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest
from typer.testing import CliRunner

from agentos.cli.evolutions.evolution import app
from agentos.cli.evolutions.evolve import _follow, _tell_left, _under_way, trials_of
from agentos.daemon.upkeep.heartbeat import settings_digest, stale_settings
from agentos.domain import Evolution, EvolutionState, Snapshot
from agentos.errors import ErrorKind, UserError
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.refusals import raises

Agentos = Callable[..., CompletedProcess[str]]


def test_what_is_under_way_is_told(home: Home) -> None:
    ledger = Ledger(home.ledger)
    base = Snapshot("c" * 40, "d" * 40)
    for name, state in (("evo-1", EvolutionState.REPLAYING), ("evo-2", EvolutionState.REJECTED)):
        ledger.put(Evolution(name, "evd-1", "f", state, base))
    ledger.close()
    assert [item.id for item in _under_way(home)] == ["evo-1"]
    assert trials_of(Reader(home.ledger), "evo-1") == 0


def test_who_leaves_is_told_what_goes_on(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger(home.ledger)
    base = Snapshot("c" * 40, "d" * 40)
    states = {
        "evo-1": EvolutionState.REPLAYING,
        "evo-2": EvolutionState.REJECTED,
        "evo-3": EvolutionState.MINED,
    }
    for name, state in states.items():
        ledger.put(Evolution(name, "evd-1", "f", state, base))
    ledger.close()
    _tell_left(home, ["evo-1", "evo-2"])
    assert "The daemon goes on with evo-1; `agentos evolution show evo-1`" in capsys.readouterr().err
    _tell_left(home, [*states])
    assert "and 1 more" in capsys.readouterr().err
    _tell_left(home, ["evo-2"])
    assert capsys.readouterr().err == ""


def test_who_follows_is_told_when_the_daemon_ends(home: Home) -> None:
    ledger = Ledger(home.ledger)
    base = Snapshot("c" * 40, "d" * 40)
    ledger.put(Evolution("evo-1", "evd-1", "f", EvolutionState.REPLAYING, base))
    ledger.put(Evolution("evo-2", "evd-1", "f", EvolutionState.REJECTED, base))
    ledger.close()
    with raises(UserError, ErrorKind.NOT_RUNNING, type_next="agentos daemon start"):
        _follow(home, ["evo-1"], quiet=True)
    assert [item.id for item in _follow(home, ["evo-2"], quiet=True)] == ["evo-2"]


def test_watching_ends_though_an_edit_waits_for_a_person(home: Home) -> None:
    ledger = Ledger(home.ledger)
    base = Snapshot("c" * 40, "d" * 40)
    ledger.put(Evolution("evo-1", "evd-1", "f", EvolutionState.AWAITING_CONSENT, base))
    ledger.close()
    watched = CliRunner().invoke(
        app, ["watch", "--exit-when-idle", "--json"], env={"AGENTOS_HOME": str(home.root)}
    )
    assert [json.loads(line)["id"] for line in watched.output.splitlines()] == ["evo-1"]


def test_files_that_changed_since_the_start_are_noticed(home: Home) -> None:
    said = {"pid": os.getpid(), "waiting": [], "settings": settings_digest(home)}
    beat = home.run / "heartbeat.json"
    beat.parent.mkdir(exist_ok=True)
    names = {"at": "", "turn_at": "", "error_at": "", "error": "", "descriptors": 1, "descriptors_max": 2}
    beat.write_text(json.dumps(names | said))
    assert not stale_settings(home, os.getpid())
    (home.root / "policy.toml").write_text("[mine]\nrecurrence = 3\n")
    assert stale_settings(home, os.getpid())
    assert not stale_settings(home, os.getpid() + 1), "of another daemon nothing is known"


def test_a_list_gives_the_newest_evolutions(home: Home) -> None:
    ledger = Ledger(home.ledger)
    base = Snapshot("c" * 40, "d" * 40)
    states = [EvolutionState.REJECTED, EvolutionState.REPLAYING, EvolutionState.REJECTED]
    for number, state in enumerate(states):
        ledger.put(Evolution(f"evo-{number}", "evd-1", "f", state, base))
    ledger.close()

    def listed(*given: str) -> list[str]:
        done = CliRunner().invoke(app, ["list", "--json", *given], env={"AGENTOS_HOME": str(home.root)})
        assert done.exception is None, repr(done.exception)
        return [item["id"] for item in json.loads(done.output)]

    assert listed() == ["evo-0", "evo-1", "evo-2"]
    assert listed("--limit", "2") == ["evo-1", "evo-2"]
    assert listed("--state", "rejected", "--limit", "1") == ["evo-2"]


@pytest.mark.parametrize(
    "typed",
    [
        ("run", "list", "--task", ""),
        ("run", "list", "--result", ""),
        ("task", "list", "--state", ""),
        ("evolution", "list", "--state", ""),
        ("skill", "sync", ""),
    ],
)
def test_what_a_script_left_empty_is_not_taken_for_all(agentos: Agentos, typed: tuple[str, ...]) -> None:
    assert agentos(*typed, code=1).stdout == ""
