"""A search whose boxes are on workers: it finds the same, outlives a worker, and one that lies only costs it time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.control.workers import Trust
from agentos.daemon.evolve.benches import BoxBenches
from agentos.domain import Call, Check, Kind, Limits, ResourceId
from agentos.errors import HostAway, HostLost
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Brief, Case, Placement, Proposal
from agentos.proposers.search_process import SearchProcess
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.remote.places import WorkerPlaces
from agentos.testing import FakeSandbox
from agentos.wire import FrameError, WireClosed
from tests.sandboxes.test_remote import Control, control_of

pytestmark = [pytest.mark.sandbox]

PATH = "skill/test-kit/tools/double.py"


class Unopened:
    """The sandbox of the daemon's machine, of which nothing but the image may be asked."""

    def __init__(self, real: Bubblewrap) -> None:
        self.name, self.level, self.image = real.name, real.level, real.image

    def choose(self, asked: str = "auto", prefer: str = "auto") -> Any:
        return self

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Any:
        raise AssertionError("a box on the daemon's machine")


def lying(real: Bubblewrap, told: list[int], cpu_s: float = 0.001) -> FakeSandbox:
    """A worker's sandbox that runs nothing, and says of every source that it fails."""

    def serve(channel: Any) -> None:
        with suppress(WireClosed, FrameError):
            channel.receive()
            channel.send({"type": "ready"}, [])
            lines = [*range(1, 30)]
            while True:
                count = len(channel.receive().head["cases"])
                told.append(count)
                tried = {"passed": [False] * count, "scores": [0.0] * count, "outputs": [{"n": 0}] * count}
                channel.send({"type": "tried", "cpu_s": cpu_s, "lines": [lines] * count, **tried}, [])

    made = FakeSandbox(serve)
    made.name, made.level, made.image = real.name, real.level, real.image  # type: ignore[misc]
    return made


@dataclass
class World:
    control: Control
    ledger: Ledger
    registry: Registry
    real: Bubblewrap
    trust: Trust
    notes: Path

    def __post_init__(self) -> None:
        choice: Any = Unopened(self.real)
        self.places = WorkerPlaces(choice, self.control.fleet, 0)

    def benches(self, share: float) -> BoxBenches:
        return BoxBenches(self.registry, self.places, self.trust, share)

    def brief(self) -> Brief:
        base = self.registry.stable()
        source = self.registry.files(base, PATH)[PATH].decode()
        cases = [
            Case(f"t{n}", Call("double", {"n": n}), {}, (Check("equals", {"value": 2 * n, "path": "n"}),))
            for n in (2, 3)
        ]
        return Brief("e1", base, ResourceId(Kind.SKILL, "test-kit"), PATH, source, tuple(cases), (), 10.0, 3)

    def search(self, share: float = 0.0, *, anew: bool = False) -> list[Proposal]:
        kept = None if anew else self.notes
        return list(SearchProcess("tool", self.benches(share), 2, kept=kept).propose(self.brief()))

    def first(self, share: float) -> Proposal:
        """What it finds first; the rest of its budget is not used up."""
        with closing(
            SearchProcess("tool", self.benches(share), 2, kept=self.notes).propose(self.brief())
        ) as found:
            return next(found)


@pytest.fixture
def world(home: Home, ledger: Ledger, sandbox: Bubblewrap) -> Iterator[World]:
    registry = Registry(home.registry)
    source = registry.files(registry.stable(), PATH)[PATH]
    registry.commit({PATH: source.replace(b"input.n * 2", b"input.n * 3")}, "Break it", "edit")
    with control_of("one", "two", "liar") as control:

        def stands(name: str) -> str:
            return trust.of(name)

        trust = Trust(ledger, home.searches)
        door = control.fleet._door
        object.__setattr__(door, "unwanted", lambda admission, hello: stands(admission.name))
        yield World(control, ledger, registry, sandbox, trust, home.searches)


def test_a_search_finds_the_edit_with_no_box_on_the_daemons_machine(world: World) -> None:
    for name in ("one", "two"):
        world.control.join(world.real, name)
    opened: set[str] = set()
    plain = world.control.fleet.open

    def noted(name: str, *given: Any, **more: Any) -> Any:
        opened.add(name)
        return plain(name, *given, **more)

    world.control.fleet.open = noted  # type: ignore[method-assign]
    first, *_ = world.search(share=0.5)
    assert "input.n * 2" in first.files[PATH]
    assert opened == {"one", "two"}
    assert (world.trust.of("one"), world.trust.of("two")) == ("", "")
    assert [state.runs for state in world.control.fleet.states()] == [(), ()]


def test_a_bench_goes_on_elsewhere_when_its_worker_is_lost(world: World) -> None:
    for name in ("one", "two"):
        world.control.join(world.real, name)
    brief = world.brief()
    good = brief.source.replace("input.n * 3", "input.n * 2")
    with closing(world.benches(0.0).bench(brief.base, PATH, brief.cases, 2.0)) as bench:
        assert bench.try_source(good).passed == (True, True)
        first = bench._bench.host  # type: ignore[attr-defined]
        link = world.control.fleet._workers[first]
        link.loop.call_soon_threadsafe(link.connection.transport.abort)
        assert bench.try_source(good).passed == (True, True)
        assert bench.try_source(brief.source).passed == (False, False)


def test_with_no_worker_a_search_says_nothing_of_its_source(world: World) -> None:
    with pytest.raises(HostAway):
        world.search()


def test_a_lying_worker_is_found_and_its_search_begins_anew_without_its_notes(world: World) -> None:
    told: list[int] = []
    hosts: list[str] = []
    world.control.join(lying(world.real, told), "liar", boxes=64)
    assert world.search() == []  # it can waste a search, here whole
    assert told
    before = {path.name for path in world.notes.iterdir()}
    assert before
    for name in ("one", "two"):
        world.control.join(world.real, name, boxes=1)
    assert world.search() == []  # what it said is noted, and not tried again
    with ExitStack() as busy:
        for _ in range(2):  # so that all of the search is on the liar
            place = busy.enter_context(world.places.place(Placement(avoid=frozenset({"liar", *hosts}))))
            hosts.append(place.host)
        with pytest.raises(HostLost):
            world.search(share=1.0, anew=True)
    assert (bool(world.trust.of("liar")), world.trust.of("one"), world.trust.of("two")) == (True, "", "")
    assert [entry.subject for entry in world.ledger.entries() if entry.event == "worker.distrusted"] == [
        "liar"
    ]
    assert not before & {path.name for path in world.notes.iterdir()}
    lies = len(told)
    assert "input.n * 2" in world.first(share=1.0).files[PATH]
    assert len(told) == lies  # it was asked nothing more


def test_an_open_bench_on_a_worker_that_is_distrusted_is_not_believed(world: World) -> None:
    world.control.join(lying(world.real, [], 1e300), "liar")
    brief = world.brief()
    with closing(world.benches(0.0).bench(brief.base, PATH, brief.cases, 2.0)) as bench:
        assert bench.try_source(brief.source).cpu_s < 60.0  # it may not say that it took ages
        world.trust.distrust("liar", "found elsewhere")
        with pytest.raises(HostLost):
            bench.try_source(brief.source)


def test_a_tool_that_does_not_do_alike_twice_blames_nobody(world: World) -> None:
    with ExitStack() as stack:
        for name in ("one", "two"):
            world.control.join(world.real, name)
        brief = world.brief()
        varying = brief.source.replace(
            "return Output(n=input.n * 3)",
            "import time\n    return Output(n=input.n * (2 + time.time_ns() // 1000 % 2))",
        )
        bench = stack.enter_context(closing(world.benches(1.0).bench(brief.base, PATH, brief.cases, 2.0)))
        for _ in range(3):
            bench.try_source(varying)
    assert (world.trust.of("one"), world.trust.of("two")) == ("", "")
