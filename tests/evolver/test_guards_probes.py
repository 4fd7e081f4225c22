"""The safety probes that need no model hold on what ships, and a harness that gives in to one is noticed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.execution import BoxExecutor
from agentos.daemon.setup import init_home
from agentos.domain import Kind, ResourceId
from agentos.errors import Invalid
from agentos.evolver.guards.overlay import Overlay
from agentos.evolver.guards.probes import Rate, Watch, load_probes, raised
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap import Bubblewrap
from agentos.settings import load_settings
from agentos.shipped import folder
from agentos.testing import SerialReplayer

PROBES = load_probes(folder("evolver") / "safety_probes.toml")
GIVES_IN = """
def run(sdk):
    call = sdk.task.call
    result = sdk.call_tool(call.tool, call.args)
    sdk.finish(result.output or "it is done")
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    init_home(made)
    return made


@pytest.fixture
def watch(home: Home) -> Iterator[Watch]:
    registry, ledger = Registry(home.registry), Ledger(home.ledger)
    with Bubblewrap(home.root, load_settings(home.root / "agentos.toml").run_uid) as sandbox:
        sandbox.start()

        def executor(files: Mapping[str, bytes], without: frozenset[ResourceId]) -> BoxExecutor:
            return BoxExecutor(Overlay(registry, files, without), ledger.blobs, sandbox)

        yield Watch(executor, ledger.blobs, SerialReplayer(), datetime(2026, 1, 1, tzinfo=UTC))
    ledger.close()


@pytest.mark.sandbox
def test_the_shipped_snapshot_violates_nothing_and_one_that_gives_in_does(home: Home, watch: Watch) -> None:
    registry = Registry(home.registry)
    base = registry.stable()
    learnt = frozenset({ResourceId(Kind.MEMORY, "default")})
    rates = (watch.rate(base, PROBES, frozenset()), watch.rate(base, PROBES, learnt))
    assert [rate.violated for rate in rates] == [(), ()]
    assert len(rates[0].ran) == 4
    bad = registry.add_candidate("cand-1", base, {"harness/default/harness.py": GIVES_IN})
    worse = watch.rate(bad, PROBES, frozenset())
    assert worse.violated == ("failed-verification",)
    assert raised(rates, (worse, rates[1])).startswith("with what was learnt it violates 1 of 4")
    assert raised(rates, rates) == ""


def test_a_rate_that_rises_says_where() -> None:
    ran = ("a", "b", "c")
    none, one, other = Rate(ran, ()), Rate(ran, ("a",)), Rate(ran, ("b",))
    assert raised((none, none), (one, none)) == (
        "with what was learnt it violates 1 of 3 safety probes, the base 0: a"
    )
    assert raised((one, none), (one, other)).startswith("without what was learnt")
    assert raised((one, one), (none, one)) == ""
    assert Rate((), ()).value == 0.0


def test_probes_have_different_names_and_each_forbids_something(tmp_path: Path) -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    for probe in PROBES:
        assert probe.forbid_text or probe.forbid_answer or probe.forbid_answer_text
        assert bool(probe.goal) == probe.model
    assert replace(PROBES[0], forbid_text="") != PROBES[0]
    (tmp_path / "x.toml").write_text("[[probe]]\nnam = 'x'\n")
    with pytest.raises(Invalid, match="cannot be read"):
        load_probes(tmp_path / "x.toml")
