"""``agentos failure`` and ``agentos model stop``: what a person leaves alone, and stops."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess

from agentos.cli.evolutions.failure import Standing, as_they_lie, standings
from agentos.domain import Evidence, Evolution, EvolutionEnding, EvolutionState, Fingerprint, Sighting
from agentos.errors import ErrorKind
from agentos.evolver.find.triage import mute
from agentos.home import Home
from agentos.ledger.listing import failure_groups
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.git.repository import MAIN
from agentos.registry.store import Registry
from tests.refusals import assert_golden

Agentos = Callable[..., CompletedProcess[str]]


def test_a_failure_is_muted_by_the_start_of_its_id(home: Home, evolved_home: Path, agentos: Agentos) -> None:
    shutil.rmtree(home.root)
    shutil.copytree(evolved_home, home.root)
    (known, *_) = json.loads(agentos("failure", "list", "--json").stdout)
    name = known["fingerprint"]["id"]
    assert not known["muted"]
    assert json.loads(agentos("failure", "mute", name[:8], "-m", "theirs", "--json").stdout)["muted"]
    (known, *_) = json.loads(agentos("failure", "list", "--json").stdout)
    assert (known["muted"], known["standing"]) == (True, "muted")
    assert_golden("failure_mute.muted_already", agentos("failure", "mute", name, code=1).stderr)
    agentos("failure", "unmute", name)
    for no_id in ("zzz", ""):
        assert "failure list" in agentos("failure", "mute", no_id, code=1).stderr
    assert [it["event"] for it in json.loads(agentos("audit", "list", "--json").stdout)][-2:] == [
        "failure.muted",
        "failure.unmuted",
    ]


def test_models_are_stopped_until_they_are_let_go_on(agentos: Agentos) -> None:
    assert json.loads(agentos("model", "stop", "-m", "dear", "--json").stdout)["stopped"]
    assert "model resume" in agentos("model", "list").stdout
    assert_golden("model_stop.already", agentos("model", "stop", code=1).stderr)
    agentos("model", "resume")
    agentos("model", "resume", code=1)


def test_an_empty_list_says_no_more_than_it_knows(agentos: Agentos) -> None:
    assert "looked at once no task waits" in agentos("failure", "list").stdout


def test_a_failure_is_told_without_what_is_said_twice() -> None:
    path = "skill/office/tools/clean.py"
    for signature, told in (
        (f"{path} | ValueError | {path}:run | no row", f"ValueError | {path}:run | no row"),
        (f"{path} | feedback | {path} | ", f"{path} | feedback"),
        ("skill/office | kernel:not_granted | no host", "kernel:not_granted | no host"),
    ):
        assert Fingerprint("f", "skill/office", "tool_error", signature).text == told


def test_a_tool_without_a_source_is_named_by_its_document(home: Home) -> None:
    registry = Registry(home.registry)
    repository, main = registry.repository, registry.stable()
    documents = {f"{place}/tool.json": b"{}" for place in ("tool/program", "skill/programs/tools/count")}
    with repository.lock():  # as no check of the registry's would let it in
        tree = repository.write_tree(main.tree, dict(documents))
        parent = repository.commit(main.commit).id
        made = repository.write_commit(tree, [parent], "Programs\n", datetime.now(UTC))
        repository.move(MAIN, made, expected=parent)
    said = "tool/program/tool.py | skill/programs/tools/count.py:3 | tool/none/tool.py"
    there = "tool/program/tool.json | skill/programs/tools/count/tool.json:3 | tool/none/tool.py"
    assert as_they_lie(home, [said]) == [there]
    assert as_they_lie(Home(home.root / "none"), [said]) == [said]


def test_what_was_not_old_enough_is_not_offered_to_be_pruned(home: Home, agentos: Agentos) -> None:
    assert "--yes" not in agentos("prune").stdout
    assert not json.loads(agentos("prune", "--json").stdout)["applied"]


def test_failures_that_open_nothing_are_counted_by_why(home: Home, agentos: Agentos) -> None:
    ledger, registry, at = Ledger(home.ledger), Registry(home.registry), datetime.now(UTC)
    path = "skill/gone/SKILL.md"
    registry.commit({path: b"---\nname: gone\ndescription: To be retired.\n---\nx\n"}, "add", "edit")
    registry.commit({path: None}, "retire", "edit")
    declined = Evolution("evo-no", "evd", "declined", EvolutionState.REJECTED, registry.stable(), ended_at=at,
                         ending=EvolutionEnding.DECLINED)  # fmt: skip
    at_work = Evolution("evo-on", "evd", "at-work", EvolutionState.REPLAYING, registry.stable())
    sightings = [
        Sighting(f"run-{name}-{number}", "task", "key", Fingerprint(name, resource, klass, name), at)
        for name, resource, klass, count in (
            ("few", "skill/words", "tool_error", 1),
            ("many", "skill/words", "tool_error", 2),  # looked at soon
            ("gone", "skill/gone", "tool_error", 3),
            ("muted", "skill/words", "tool_error", 3),
            ("declined", "skill/words", "tool_error", 3),
            ("at-work", "skill/words", "tool_error", 1),
            ("elsewhere", "", "imported", 3),
        )
        for number in range(count)
    ]
    evidence = Evidence("evd", sightings[-4].fingerprint, (), (), at, "")
    ledger.put(evidence, declined, at_work, *sightings)
    mute(ledger, "muted", "person:ann(1)", "")
    reader = Reader(home.ledger)
    assert standings(home, reader, failure_groups(reader, 20)) == {
        "few": Standing.FEW,
        "gone": Standing.RETIRED,
        "muted": Standing.MUTED,
        "declined": Standing.DECLINED,
        "elsewhere": Standing.ELSEWHERE,
    }
    ledger.close()
    assert json.loads(agentos("status", "--json").stdout)["idle_failures"] == dict.fromkeys(
        (Standing.FEW, Standing.RETIRED, Standing.MUTED, Standing.DECLINED, Standing.ELSEWHERE), 1
    )
    assert "5 open no evolution" in agentos("status").stdout
    assert len(json.loads(agentos("evolve", "--no-wait", "--json").stdout)["opened"]) == 1, (
        "what was not counted"
    )
    assert "5 open no evolution" in agentos("evolve", "--no-wait").stdout
    several = json.loads(agentos("failure", "mute", "m", "--json", code=1).stderr)["error"]
    assert several["kind"] == ErrorKind.AMBIGUOUS
