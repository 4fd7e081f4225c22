"""Proposed memories are shown, and become resources only by a person's word."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agentos.domain import (
    Kind,
    Limits,
    MemoryProposal,
    Outcome,
    ProposalState,
    ResourceId,
    Result,
    Run,
    Share,
    Task,
)
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.refusals import assert_golden

Agentos = Callable[..., "subprocess.CompletedProcess[str]"]

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = 'Dates are in UTC, "always"\nalso on Sundays \\ holidays'


@pytest.fixture
def ledger(home: Home) -> Iterator[Ledger]:
    made = Ledger(home.ledger)
    made.keep(MemoryProposal("proposal-aaaaaaaaaaaaa", "run-1", "k", TEXT, "", NOW))
    made.keep(MemoryProposal("proposal-bbbbbbbbbbbbb", "run-1", "k", "Totals are gross", "a run failed", NOW))
    yield made
    made.close()


@pytest.mark.slow
def test_an_accepted_proposal_becomes_a_memory_with_a_version(
    agentos: Agentos, home: Home, ledger: Ledger
) -> None:
    listed = agentos("memory", "list").stdout
    assert "memory/default" in listed
    assert "proposed" in listed
    assert "Totals are gross" in agentos("memory", "show", "bbb").stdout
    assert "memory/dates-are-in-utc-always" in agentos("memory", "accept", "aaa").stdout
    registry = Registry(home.registry)
    files = registry.files(registry.stable(), "memory/dates-are-in-utc-always")
    text = files["memory/dates-are-in-utc-always/memory.md"].decode()
    assert text.endswith('- Dates are in UTC, "always"\n  also on Sundays \\ holidays\n')
    document = tomllib.loads(files["memory/dates-are-in-utc-always/resource.toml"].decode())
    assert document["description"].startswith('Dates are in UTC, "always" also')
    version = registry.latest(ResourceId(Kind.MEMORY, "dates-are-in-utc-always"))
    assert version is not None
    assert (version.origin, version.number) == ("edit", "1.0.0")
    kept = ledger.get(MemoryProposal, "proposal-aaaaaaaaaaaaa")
    assert (kept.state, kept.resource) == (ProposalState.ACCEPTED, "memory/dates-are-in-utc-always")
    assert_golden("memory_accept.accepted_as_memory_dates", agentos("memory", "accept", "aaa", code=1).stderr)
    assert "Dates are in UTC" in agentos("memory", "show", "dates-are-in-utc-always").stdout


@pytest.mark.slow
def test_a_rejected_proposal_is_no_memory(agentos: Agentos, home: Home, ledger: Ledger) -> None:
    before = Registry(home.registry).stable()
    agentos("memory", "reject", "bbb", "-m", "not so")
    assert_golden("memory_accept.rejected_already", agentos("memory", "accept", "bbb", code=1).stderr)
    assert "not so" in agentos("memory", "show", "bbb").stdout
    assert Registry(home.registry).stable() == before
    shown = json.loads(agentos("memory", "list", "--json").stdout)
    assert [proposal["id"] for proposal in shown["proposals"]] == ["proposal-aaaaaaaaaaaaa"]
    assert len(json.loads(agentos("memory", "list", "--all", "--json").stdout)["proposals"]) == 2


@pytest.mark.slow
def test_a_memory_is_never_overwritten_by_a_proposal(agentos: Agentos, home: Home, ledger: Ledger) -> None:
    done = agentos("memory", "accept", "bbb", "--name", "default", code=1)
    assert_golden("memory.memory_default_already", done.stderr)
    agentos("memory", "accept", "bbb", "--name", "totals")
    ledger.keep(MemoryProposal("proposal-ccccccccccccc", "run-1", "k", "Totals are", "another", NOW))
    ledger.keep(MemoryProposal("proposal-ddddddddddddd", "run-1", "k", "Totals! Are?", "a third", NOW))
    assert "memory/totals-are " in agentos("memory", "accept", "ccc").stdout
    assert "memory/totals-are-2" in agentos("memory", "accept", "ddd").stdout
    assert_golden("memory_show.no_proposal_zzz", agentos("memory", "show", "zzz", code=1).stderr)


def test_accepting_again_after_a_crash_in_between_makes_no_second_one(
    agentos: Agentos, home: Home, ledger: Ledger
) -> None:
    agentos("memory", "accept", "bbb")
    ledger.keep(
        MemoryProposal("proposal-eeeeeeeeeeeee", "run-1", "k", "Totals are gross", "a run failed", NOW)
    )
    assert "memory/totals-are-gross is" in agentos("memory", "accept", "eee").stdout


def test_a_form_that_only_a_harness_knows_is_shown_as_it_is_and_not_written(
    agentos: Agentos, home: Home, ledger: Ledger
) -> None:
    registry = Registry(home.registry)
    changes = {"memory/default/memory.md": b"[fact]\ntext = 'Dates are in UTC'\n"}
    for path in ("memory/default/resource.toml", "harness/default/resource.toml"):
        changes[path] = b"state = 2\n" + registry.files(registry.stable(), path)[path]
    registry.commit(changes, "Facts", "edit")
    shown = agentos("memory", "show", "default").stdout
    assert "It has form 2" in shown
    assert "text = 'Dates are in UTC'" in shown
    assert json.loads(agentos("memory", "show", "default", "--json").stdout)["form"] == 2
    assert json.loads(agentos("memory", "list", "--json").stdout)["lessons"] == []
    refused = agentos("memory", "accept", "bbb", code=1).stderr
    assert "harness/default reads memories of form 2" in " ".join(refused.split())
    assert ledger.get(MemoryProposal, "proposal-bbbbbbbbbbbbb").state is ProposalState.OPEN


def test_how_a_lesson_fared_is_counted_with_the_half_life_of_the_home(
    agentos: Agentos, home: Home, ledger: Ledger
) -> None:
    registry = Registry(home.registry)
    stable = registry.commit({"memory/default/memory.md": b"# Lessons\n\n- One.\n"}, "A lesson", "edit")
    then = datetime.now(UTC) - timedelta(days=30)
    task = Task("task-1", "t", "t", None, (), "default", Limits(), (), (), None, then)
    outcome = Outcome(Result.PASSED, 1.0, "")
    run = Run("run-1", task.id, task.key, Share.OPEN, 1, stable, "fake", "none", then, then, outcome)
    assert ledger.add_past(task, replace(run, resources=("memory/default",)), ())

    def score() -> float:
        (lesson,) = json.loads(agentos("memory", "list", "--json").stdout)["lessons"]
        return float(lesson["score"])

    assert score() == pytest.approx(1.5 / 2.5, abs=0.001), "half of a success after one half-life"
    (home.root / "policy.toml").write_text("[mine]\nhalf_life_days = 15\n")
    assert score() == pytest.approx(1.25 / 2.25, abs=0.001)


def test_a_lesson_is_told_with_the_version_from_which_on_it_has_stood_there(
    agentos: Agentos, home: Home
) -> None:
    registry = Registry(home.registry)
    for lessons in (["One."], ["One.", "Two."], ["Two."], ["Two.", "One."], ["Two.", "One.", "Three."]):
        text = "".join(f"- {lesson}\n" for lesson in lessons)
        registry.commit({"memory/default/memory.md": f"# Lessons\n\n{text}".encode()}, "Lessons", "edit")
    numbers = [version.number for version in registry.versions(ResourceId(Kind.MEMORY, "default"))]
    told = json.loads(agentos("memory", "show", "default", "--json").stdout)["lessons"]
    assert {one["text"]: one["since"] for one in told} == {
        "Three.": numbers[0],
        "One.": numbers[1],  # it was away in between
        "Two.": numbers[3],
    }
