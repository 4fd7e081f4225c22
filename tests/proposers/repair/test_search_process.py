"""The search in a process of its own: it proposes what the search does, and its end is nobody else's."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from local_bench import LocalBenches

from agentos.benches import Bench, BenchResult
from agentos.domain import Call, Check, Kind, ResourceId, SearchEffort, Snapshot
from agentos.errors import Unavailable
from agentos.ports import Brief, Case, Proposal
from agentos.proposers import search_process
from agentos.proposers.repair import RepairProposer
from agentos.proposers.search_process import SearchProcess
from tests.command_server import ForkedPopen
from tests.refusals import raises


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is started as it is for users, a child of this one, and not forked as elsewhere in the suite."""
    monkeypatch.setattr(ForkedPopen, "forks", False)


LIMIT = "def probe(x):\n    if x > 3:\n        return 'big'\n    return 'small'\n"


def brief_of(source: str, expected: object, budget_s: float = 20.0, **args: object) -> Brief:
    case = Case("t1", Call("probe", args), {}, (Check("equals", {"value": expected}),))
    resource_id = ResourceId(Kind.TOOL, "probe")
    nowhere = Snapshot("", "")
    return Brief("e1", nowhere, resource_id, "tool/probe/tool.py", source, (case,), (), budget_s, 3)


def all_of(
    search: SearchProcess | RepairProposer, brief: Brief
) -> tuple[list[Proposal], SearchEffort | None]:
    found, proposals = [], search.propose(brief)
    while True:
        try:
            found.append(next(proposals))
        except StopIteration as end:
            return found, end.value


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_it_proposes_what_the_search_does_and_closes_its_benches() -> None:
    benches = LocalBenches()
    brief = brief_of(LIMIT, "big", x=3)
    found, effort = all_of(SearchProcess("tool", benches, 2), brief)
    expected, _ = all_of(RepairProposer(LocalBenches(), 2), brief)
    assert found[0].files == expected[0].files
    assert effort is None
    assert all(bench._server.ended for bench in benches.opened)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("search")]


@pytest.mark.slow
def test_how_far_it_came_is_handed_on() -> None:
    found, effort = all_of(SearchProcess("tool", LocalBenches(), 1), brief_of(LIMIT, "big", 0.0, x=3))
    assert found == []
    assert effort is not None
    assert not effort.exhausted


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_more_memory_than_it_may_have_ends_the_search_alone() -> None:
    source = f"def probe(x):\n    if x < 0:\n        return {list(range(40_000))}\n    return x\n"
    benches = LocalBenches()
    found, effort = all_of(SearchProcess("tool", benches, 1, memory_mb=24), brief_of(source, 17, x=3))
    assert found == []
    assert effort is not None
    assert not effort.exhausted
    assert all(bench._server.ended for bench in benches.opened), "open ones are closed by the daemon"


class Gone(LocalBenches):
    """Opens benches whose machine has gone away."""

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        raise Unavailable("the sandbox is gone")


class Watched(LocalBenches):
    """Ends, by its id, the process that searches when it tries its first edit, or a later one."""

    def __init__(self, after: int = 1) -> None:
        super().__init__()
        self.left = after

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        made = super().bench(snapshot, path, cases, timeout_s)
        plain = made.try_source

        def ending(source: str, **given: object) -> BenchResult:
            self.left -= source != LIMIT
            if self.left <= 0:
                for task in Path("/proc/self/task").iterdir():
                    for child in (task / "children").read_text().split():
                        if b"search_worker" in Path("/proc", child, "cmdline").read_bytes():
                            os.kill(int(child), signal.SIGKILL)
            return plain(source, **given)  # type: ignore[arg-type]

        made.try_source = ending  # type: ignore[method-assign]
        return made


@pytest.mark.slow
def test_a_machine_that_is_gone_is_told_by_its_own_error() -> None:
    with raises(Unavailable, names=["the sandbox is gone"]):
        all_of(SearchProcess("tool", Gone(), 1), brief_of(LIMIT, "big", x=3))


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_a_killed_process_is_a_search_that_was_cut_short() -> None:
    benches = Watched()
    found, effort = all_of(SearchProcess("tool", benches, 1), brief_of(LIMIT, "big", x=3))
    assert found == []
    assert effort is not None
    assert effort.tried >= 1
    assert not effort.exhausted
    assert all(bench._server.ended for bench in benches.opened)


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_a_killed_search_goes_on_behind_what_it_had_tried(tmp_path: Path) -> None:
    brief = brief_of(LIMIT, 17, x=3)  # which nothing in reach makes
    _, killed = all_of(SearchProcess("tool", Watched(after=20), 1, kept=tmp_path), brief)
    assert killed is not None
    assert killed.tried >= 20
    _, effort = all_of(SearchProcess("tool", LocalBenches(), 1, kept=tmp_path), brief)
    assert effort is not None
    assert effort.exhausted
    assert effort.before >= 15  # its last tries may not have been noted, and some tries only looked
    assert "of them now" in str(effort)


@pytest.mark.slow
def test_a_search_that_broke_is_told_from_one_that_was_cut_short() -> None:
    broken = replace(brief_of(LIMIT, "big", x=3), source=None)  # type: ignore[arg-type] # what no proposer can read
    with pytest.raises(RuntimeError, match="Error: "):
        all_of(SearchProcess("tool", LocalBenches(), 1), broken)


@pytest.mark.slow
def test_what_is_done_with_a_proposal_is_not_the_searchs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(ahead=0.0, monotonic=lambda: time.monotonic() + clock.ahead)
    monkeypatch.setattr(search_process, "time", clock)
    whole, _ = all_of(SearchProcess("tool", LocalBenches(), 1), brief_of(LIMIT, "big", 4.0, x=3))
    found = []
    for proposal in SearchProcess("tool", LocalBenches(), 1).propose(brief_of(LIMIT, "big", 4.0, x=3)):
        found.append(proposal.files)
        clock.ahead += 10_000.0
    assert len(found) > 1
    assert found == [proposal.files for proposal in whole]


@pytest.mark.slow
def test_a_brief_of_which_nobody_asks_for_more_ends_its_process() -> None:
    proposals = SearchProcess("tool", LocalBenches(), 1).propose(brief_of(LIMIT, "big", x=3))
    assert next(proposals).predicted_fixes == ("t1",)
    proposals.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("search")]
