"""A small form of ``make torture``: every aim exists, and a few kills break no invariant."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentos.home import Home
from tests.daemon.conftest import QUICK_POLICY
from tests.torture.aimed import Aims
from tests.torture.invariants import INVARIANTS
from tests.torture.kill_points import ALL, KillPoint, find
from tests.torture.storm import one_round, world
from tests.torture.workers import Cluster, Wire, cluster, torture

KILLS = int(os.environ.get("AGENTOS_TEST_KILLS", "3"))


@pytest.mark.parametrize(
    "point", {point.target: point for point in ALL}.values(), ids=lambda point: point.target
)
def test_what_is_aimed_at_is_there(point: KillPoint) -> None:
    owner, name = find(point.target)
    assert callable(getattr(owner, name))


def test_each_invariant_says_what_holds() -> None:
    assert len(INVARIANTS) >= 15
    assert all(look.__doc__ for look in INVARIANTS.values())


@pytest.fixture
def aims(tmp_path: Path) -> Iterator[Aims]:
    made = Aims.prepared(tmp_path, seed=3)
    yield made
    made.nursery.close()


@pytest.mark.slow
def test_kills_between_a_failure_and_a_promotion_and_of_what_copies_a_home_break_nothing(aims: Aims) -> None:
    aims.case(0)
    assert aims.faults == []
    assert aims.killed.total() >= 5
    assert {"migration", "restore"} <= {*aims.killed}


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_storm_over_a_home_that_works_breaks_nothing(tmp_path: Path) -> None:
    with world(tmp_path, QUICK_POLICY.replace("[mine]\n", "[mine]\nmax_wait_s = 3.0\n")) as around:
        done = one_round(around, 1, KILLS, seed=11)
    assert done.faults == []
    assert done.killed.total() >= KILLS


def test_what_a_worker_writes_into_a_home_is_found(tmp_path: Path) -> None:
    made = Cluster(tmp_path, Home(tmp_path / "home"), 0, Wire(0))
    try:
        assert made.strays() == []
        (made.no_home / "logs" / "bug-1.txt").write_text("KeyError: 'x'")
        (made.no_home / "ledger.db").touch()
        assert ["KeyError" in stray for stray in made.strays()] == [False, True]
    finally:
        made.close()


@pytest.mark.sandbox
@pytest.mark.slow
def test_faults_of_workers_and_of_what_is_between_lose_no_task_and_do_none_twice(tmp_path: Path) -> None:
    with cluster(tmp_path) as made:
        done = torture(made, KILLS, seed=3)
    assert (done.wrong, done.told_twice) == ([], 0)
    assert done.faults.total() == KILLS


@pytest.mark.sandbox
@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nft", "nsenter", "setpriv", "psql"))),
    reason="makes network namespaces: needs root, ip, nft, nsenter, setpriv and psql",
)
def test_cuts_of_the_network_between_hosts_lose_nothing() -> None:
    words = ["-m", "tests.torture.partitions", "--faults", str(KILLS), "--exams", "0"]
    root = Path(__file__).parents[2]  # a process of its own: it moves into a namespace for good
    done = subprocess.run([sys.executable, *words], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(json.loads(done.stdout)["faults"].values()) == KILLS
