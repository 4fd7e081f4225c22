"""Where the wall is: 100,000 queued tasks, 10,000 evolutions, 200 runs at a time on one ledger, 200 workers on one daemon.

python -m benchmarks.bench_scale [--tasks 100000] [--evolutions 10000] [--seconds 15] [--on FOLDER]

Each part on the ledger's file and on a real PostgreSQL that flushes. The claims are what the daemon does for a run in the
database, begun and ended by 200 threads of one process, which is how it has them. The workers are real ones whose boxes
do nothing, all in a second process.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tests.postgres
from agentos.domain import (
    Evolution,
    EvolutionState,
    Limits,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Task,
    TaskState,
)
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.sandboxes.remote.box import Admission
from agentos.sandboxes.remote.fleet import Door, Fleet
from agentos.sandboxes.remote.worker import BoxWorker, Joining
from agentos.testing import FakeSandbox
from agentos.wire import FrameError, WireClosed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SNAPSHOT = Snapshot("c" * 40, "t" * 40)
WORKERS = 200
_LASTING = {"fsync": "on", "full_page_writes": "on", "max_connections": "400", "shared_buffers": "128MB"}
_SMALL = Limits(wall_s=30, memory_mb=64, workspace_mb=8, processes=24)


def _task(number: int) -> Task:
    return Task(
        f"task-{number}", "n", f"goal {number % 50}", None, (), "default", Limits(), (), (), None, NOW
    )


def _ms(work: Callable[[], object], times: int = 5) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1e3)
    return round(statistics.median(took), 2)


def _server_cpu_s(server: tests.postgres.PostgresServer) -> float:
    """Of the server and its sessions, with those that have ended."""
    first = (server.folder / "data" / "postmaster.pid").read_text().split()[0]
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if stat.parent.name == first:
                total += sum(map(int, fields[11:15]))
            elif fields[1] == first:
                total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def queue(path: Path, tasks: int) -> dict[str, Any]:
    """So many queued: what the daemon and the page look at, and what a claim takes at the front of them."""
    with closing(Ledger(path)) as ledger:
        began = time.perf_counter()
        for at in range(0, tasks, 2_000):
            ledger.add_tasks(
                [(_task(n), Share.OPEN, TaskState.QUEUED) for n in range(at, min(at + 2_000, tasks))]
            )
        added_s = time.perf_counter() - began
        claims = []
        for number in range(50):
            task = _task(number)
            run = Run(f"first-{number}", task.id, task.key, Share.OPEN, 1, SNAPSHOT, "b", "l", NOW)
            claims.append(_ms(lambda run=run: ledger.begin_run(run), 1))
        return {
            "add_us_a_task": round(added_s / tasks * 1e6),
            "next_1000_ms": _ms(lambda: ledger.queued(1_000)),
            "list_newest_20_ms": _ms(lambda: ledger.tasks(TaskState.QUEUED, 20)),
            "read_all_ms": _ms(lambda: ledger.tasks(TaskState.QUEUED), 1),
            "cancelled_of_96_ms": _ms(lambda: ledger.cancelled([f"task-{n}" for n in range(96)])),
            "claim_ms": statistics.median(claims),
            "claim_p95_ms": statistics.quantiles(claims, n=20)[-1],
        }


def evolutions(path: Path, count: int) -> dict[str, Any]:
    """So many that have ended, and ten under way: what each of the daemon's looks reads."""
    with closing(Ledger(path)) as ledger:
        made = [
            Evolution(
                f"evolution-{n}", f"evidence-{n}", f"print-{n % 500}",
                EvolutionState.REJECTED if n >= 10 else EvolutionState.PROPOSING, SNAPSHOT, "no gain",
                created_at=NOW, ended_at=NOW if n >= 10 else None,
            )
            for n in range(count)
        ]  # fmt: skip
        began = time.perf_counter()
        for at in range(0, count, 500):
            ledger.note("evolution.moved", f"batch {at}", {}, made[at : at + 500])
        wrote_s = time.perf_counter() - began
        with closing(Reader(path)) as reader:
            return {
                "write_us_each": round(wrote_s / count * 1e6),
                "under_way_ms": _ms(lambda: reader.find(Evolution, state=EvolutionState.PROPOSING)),
                "one_ms": _ms(lambda: reader.find(Evolution, id=f"evolution-{count // 2}")),
                "all_ms": _ms(lambda: reader.find(Evolution), 1),
            }


_NUMBERS = itertools.count(1_000_000)


def claims(
    path: Path, seconds: float, server: tests.postgres.PostgresServer, threads: int = WORKERS
) -> dict[str, Any]:
    """Runs begun and ended by so many threads at a time; the task is added first, which is a third transaction."""
    took, over = list[float](), threading.Event()
    with closing(Ledger(path)) as ledger:

        def work() -> None:
            while not over.is_set():
                task = _task(next(_NUMBERS))
                run = Run(f"run-{task.id}", task.id, task.key, Share.OPEN, 1, SNAPSHOT, "b", "l", NOW)
                ledger.add_task(task, Share.OPEN)
                began = time.perf_counter()
                ledger.begin_run(run)
                took.append((time.perf_counter() - began) * 1e3)
                ledger.finish_run(run.id, Outcome(Result.PASSED, 1.0, ""), RunEnd({"sum": 1}))

        own, its, began = time.process_time(), _server_cpu_s(server), time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(threads):
                pool.submit(work)
            time.sleep(seconds)  # the length of the measurement
            over.set()
        span_s = time.monotonic() - began
    return {
        "threads": threads,
        "runs_per_s": round(len(took) / span_s, 1),
        "claim_ms": round(statistics.median(took), 1),
        "claim_p95_ms": round(statistics.quantiles(took, n=20)[-1], 1),
        "own_cpu_ms_a_run": round((time.process_time() - own) * 1e3 / len(took), 2),
        "server_cpu_ms_a_run": round((_server_cpu_s(server) - its) * 1e3 / len(took), 2),
    }


def _echo(channel: Any) -> None:
    with suppress(WireClosed, FrameError):
        while True:
            frame = channel.receive()
            channel.send(frame.head, frame.blobs)


def _be_workers(port: int) -> None:
    async def all_of_them() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))
        joinings = [
            Joining(f"http://127.0.0.1:{port}", f"token-{n}", boxes=8, memory_mb=8192) for n in range(WORKERS)
        ]
        await asyncio.gather(
            *(BoxWorker(FakeSandbox(_echo), one, lambda text: None).run() for one in joinings)
        )

    asyncio.run(all_of_them())


def fleet(seconds: float) -> dict[str, Any]:
    """So many workers on one door: what they cost while nothing is asked of them, and what a box costs."""
    tokens = {f"token-{n}": Admission(f"w{n}", f"id-{n}") for n in range(WORKERS)}
    made = Fleet(Door("127.0.0.1", 0, tokens.get, lambda admission: True))
    port = made.start()
    others = multiprocessing.get_context("spawn").Process(target=_be_workers, args=(port,), daemon=True)
    others.start()
    try:
        began = time.monotonic()
        while len(made.states()) < WORKERS and time.monotonic() - began < 120:
            time.sleep(0.1)
        joined_s, there = time.monotonic() - began, len(made.states())
        own = time.process_time()
        time.sleep(seconds)  # the length of the measurement
        idle_ms = (time.process_time() - own) * 1e3 / seconds
        states_ms = _ms(made.states)
        opened = itertools.count()

        def one(number: int) -> None:
            with made.open(f"w{number % WORKERS}", _SMALL, light=True, run="") as box:
                box.channel.send({"n": number})
                box.channel.receive(deadline=time.monotonic() + 30)
            next(opened)

        own, began = time.process_time(), time.monotonic()
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(one, range(1_000)))
        span_s = time.monotonic() - began
        return {
            "workers": there,
            "joined_s": round(joined_s, 1),
            "idle_cpu_ms_a_second": round(idle_ms, 1),
            "states_ms": states_ms,
            "boxes_per_s": round(1_000 / span_s, 1),
            "cpu_ms_a_box": round((time.process_time() - own), 3),
        }
    finally:
        others.kill()
        others.join()
        made.close()


def _home(place: Path, database: str) -> Path:
    place.mkdir()
    if database:
        (place / "agentos.toml").write_text(f'database = "{database}"\n')
    return place / "ledger.db"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--evolutions", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--on", type=Path, help="folder on the disk to measure")
    given = parser.parse_args()

    def say(part: str, store: str, found: dict[str, Any]) -> None:
        print(json.dumps({"part": part, "store": store, **found}), flush=True)

    tests.postgres._QUICK.update(_LASTING)
    with tempfile.TemporaryDirectory(dir=given.on) as folder, tests.postgres.PostgresServer.start() as server:
        say("fleet", "", fleet(given.seconds))
        for store in ("file", "postgresql"):
            with server.database() as address:
                path = _home(Path(folder) / store, address if store == "postgresql" else "")
                say("claims", store, claims(path, given.seconds, server))
                say("claims of one", store, claims(path, given.seconds, server, 1))
                say("queue", store, queue(path, given.tasks))
                say("claims behind the queue", store, claims(path, given.seconds, server))
                say("evolutions", store, evolutions(path, given.evolutions))


if __name__ == "__main__":
    main()
