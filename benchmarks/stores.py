"""Blobs in files and in S3, and two control processes under faults: what docs/use/stores.md says of them.

    python benchmarks/stores.py blobs
    python benchmarks/stores.py faults [rounds]

Everything is real and on this machine: moto's S3 server, a PostgreSQL cluster in a temporary folder, two homes with a
daemon each. A round of faults is a kill -9 of the leader, a SIGSTOP of it, a kill -9 of the stand-by and an immediate stop
of PostgreSQL, tasks under way each time; the killed are started again.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.moving import move_home
from agentos.domain import Result, Share, TaskState
from agentos.home import Home
from agentos.ledger.blob_url import UrlBlobs
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.daemon.conftest import KIT, _make_task
from tests.postgres import PostgresServer
from tests.s3 import BUCKET, KEYS, S3Server

_REPEATS = 60


def blobs() -> None:
    """Medians of puts and gets of new content, in turns."""
    with tempfile.TemporaryDirectory() as place, S3Server.start() as server:
        os.environ.update(KEYS, AWS_ENDPOINT_URL=server.endpoint)
        files, far = BlobStore(Path(place) / "blobs"), UrlBlobs(f"s3://{BUCKET}/bench")
        stores = {"files": (files.write, files.read), "s3": (far.write, far.read)}
        for size in (1_000, 100_000, 5_000_000):
            took: dict[tuple[str, str], list[float]] = {}
            for _ in range(_REPEATS):
                data = os.urandom(size)
                name = os.urandom(32).hex()
                for store, (write, read) in stores.items():
                    took.setdefault((store, "put"), []).append(_timed(lambda: write(name, data)))  # noqa: B023
                    took.setdefault((store, "get"), []).append(_timed(lambda: read(name)))  # noqa: B023
            for what in ("put", "get"):
                own, there = (statistics.median(took[store, what]) * 1e3 for store in stores)
                print(
                    f"{size:>9,} bytes  {what}  files {own:7.2f} ms  s3 {there:7.2f} ms  {there / own:5.1f} x"
                )


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Pair:
    """Two homes on one database, and their daemons."""

    def __init__(self, place: Path, address: str) -> None:
        first = Home(place / "one")
        init_home(first)
        kit = {
            f"skill/test-kit/{path.relative_to(KIT).as_posix()}": path.read_bytes()
            for path in KIT.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        Registry(first.registry).commit(kit, "The test kit", "edit")
        move_home(first, address)
        second = Home(place / "two")
        shutil.copytree(first.root, second.root)
        self.homes = (first, second)
        self.children: dict[Home, subprocess.Popen[bytes]] = {}

    def up(self, home: Home) -> None:
        words = ["-P", "-m", "agentos", "--home", str(home.root), "daemon", "run", "--quiet", "--stand-by"]
        self.children[home] = subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL)

    def state(self, home: Home) -> str:
        info = daemon_info(home)
        if info is None or info.pid != self.children[home].pid or not info.alive:
            return "away"
        return "leads" if info.ready else "stands by" if info.stand_by else "starts"

    def leader(self) -> Home | None:
        return next((home for home in self.homes if self.state(home) == "leads"), None)

    def settle(self) -> Home:
        """Until one leads and the other one stands by."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            for home in self.homes:
                if home not in self.children or self.children[home].poll() is not None:
                    self.up(home)
            if sorted(map(self.state, self.homes)) == ["leads", "stands by"]:
                found = self.leader()
                if found is not None:
                    return found
            time.sleep(0.05)
        raise TimeoutError([self.state(home) for home in self.homes])


def faults(rounds: int) -> None:
    """Counts what is lost or doubled, and how long nobody led."""
    place = Path(tempfile.mkdtemp(prefix="agentos-stores-"))
    tasks: list[str] = []
    gaps: dict[str, list[float]] = {}
    with PostgresServer.start() as server, server.database(empty=True) as address:
        pair = Pair(place, address)
        try:
            for _ in range(rounds):
                for kind in ("leader killed", "leader frozen", "stand-by killed", "PostgreSQL stopped"):
                    leader = pair.settle()
                    other = next(home for home in pair.homes if home != leader)
                    with closing(Ledger(leader.ledger)) as ledger:
                        for n in range(6):
                            task = _make_task("double", n=n, expect=2 * n)
                            ledger.add_task(task, Share.OPEN)
                            tasks.append(task.id)
                    time.sleep(0.15)
                    began = time.monotonic()
                    frozen = _strike(kind, pair, leader, other, server)
                    while (now := pair.leader()) is None or (now == leader and kind.startswith("leader")):
                        if frozen is not None or kind == "leader killed":
                            now = other if pair.state(other) == "leads" else None
                            if now is not None:
                                break
                        time.sleep(0.02)
                    gaps.setdefault(kind, []).append(time.monotonic() - began)
                    if frozen is not None:
                        frozen.send_signal(signal.SIGCONT)
                        frozen.wait(60)
                    print(f"{kind}: {gaps[kind][-1]:.1f} s", flush=True)
            leader = pair.settle()
            _count(leader, tasks)
        finally:
            for child in pair.children.values():
                child.kill()
    for kind, found in gaps.items():
        print(
            f"{kind:20} {len(found)} times, median {statistics.median(found):.1f} s, longest {max(found):.1f} s"
        )
    shutil.rmtree(place, ignore_errors=True)


def _strike(
    kind: str, pair: Pair, leader: Home, other: Home, server: PostgresServer
) -> subprocess.Popen[bytes] | None:
    if kind == "leader frozen":
        pair.children[leader].send_signal(signal.SIGSTOP)
        return pair.children[leader]
    if kind == "PostgreSQL stopped":
        server.run("pg_ctl", "-m", "immediate", "stop")
        server.up()
        return None
    child = pair.children[leader if kind == "leader killed" else other]
    child.kill()
    child.wait()
    return None


def _count(home: Home, tasks: list[str]) -> None:
    deadline = time.monotonic() + 300
    with closing(Reader(home.ledger)) as reader:
        while any(reader.task_view(name).state is not TaskState.DONE for name in tasks):
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        lost = doubled = attempts = 0
        for name in tasks:
            runs = reader.runs(name)
            attempts += len(runs)
            passed = sum(run.outcome is not None and run.outcome.result is Result.PASSED for run in runs)
            lost, doubled = lost + (passed == 0), doubled + (passed > 1)
    print(f"{len(tasks)} tasks, {attempts} attempts; lost {lost}, done twice {doubled}")
    print(f"faults that the audit found: {list(verify_home(home).faults)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["faults"]:
        faults(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    else:
        blobs()
