"""Changing what runs are driven by, under load: how long it takes, and what runs feel of it.

python benchmarks/bench_swap.py [--swaps N]

A daemon works off a steady stream of small tasks while edits of its harness are approved, one after
another. Each edit signs its steps, so that each run tells which harness drove it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

# evolutions at hand are made as the tests make them
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agentos.daemon.control.daemon_lock import start_daemon, stop_daemon
from agentos.daemon.setup import init_home
from agentos.domain import Call, EvolutionState, InputFile, Limits, Probe, Run, Share, Task, digest, new_id
from agentos.evolver.promote.promotion import driving_sha256
from agentos.home import Home
from agentos.ledger.listing import newest_open_runs
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.daemon.swapping import mixed, signed, source, waiting

TEXT = b"three small words\n"
EVERY_S = 0.2  # a task: less than two cores can do
BEFORE_S = 5.0


def report(what: str, value: str, beside: str = "", remarks: str = "") -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def until(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"after {seconds:.0f} s still not: {what}")
        time.sleep(0.02)


class Stream:
    """Queues a task every now and then until it is stopped."""

    def __init__(self, ledger: Ledger) -> None:
        self.tasks: list[Task] = []
        self._ledger = ledger
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._feed)
        self._thread.start()

    def _feed(self) -> None:
        while not self._stop.wait(EVERY_S):
            task = Task(
                id=new_id("task"),
                name="bench",
                goal=f"count {len(self.tasks)}",
                call=Call("word_count", {"path": "text.txt"}),
                inputs=(InputFile("text.txt", digest(TEXT), len(TEXT)),),
                agent="default",
                limits=Limits(wall_s=30.0),
                effects=(),
                checks=(),
                schedule=None,
                created_at=datetime.now(UTC),
            )
            self._ledger.add_task(task, Share.OPEN)
            self.tasks.append(task)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def swap(home: Home, ledger: Ledger, mark: str) -> tuple[datetime, datetime]:
    """When consent was given, and when the promotion was recorded."""
    made = waiting(home, ledger, signed(source(Registry(home.registry)), mark))
    given = datetime.now(UTC)
    made.approve(home)
    until(lambda: made.state(home).state is EvolutionState.PROBATION, f"{mark} is promoted")
    ended = made.state(home).ended_at
    assert ended is not None
    return given, ended


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--swaps", type=int, default=5)
    count = options.parse_args().swaps
    with tempfile.TemporaryDirectory(prefix="bench-swap-") as place:
        home = Home(Path(place) / "home")
        init_home(home)
        ledger = Ledger(home.ledger)
        ledger.blobs.put(TEXT)
        start_daemon(home)
        stream = Stream(ledger)
        try:
            time.sleep(BEFORE_S)
            swaps = [swap(home, ledger, str(number)) for number in range(count)]
            time.sleep(1.0)
        finally:
            stream.stop()
        reader = Reader(home.ledger)
        until(lambda: reader.runs(stream.tasks[-1].id), "the last task has run")
        until(lambda: not newest_open_runs(reader, 1), "all have ended")
        stop_daemon(home, at_once=False)
        tell(home, ledger, stream.tasks, swaps)
        ledger.close()


def tell(home: Home, ledger: Ledger, tasks: list[Task], swaps: list[tuple[datetime, datetime]]) -> None:
    """The result lines."""
    runs = {task.id: ledger.runs(task.id) for task in tasks}
    first: list[Run] = [found[-1] for found in runs.values()]
    registry = Registry(home.registry)
    probes = [probe for probe in ledger.find(Probe) if probe.passes]
    seconds = [
        (min(run.started_at for run in first if _driven(registry, run) == probe.driving_sha256) - given)
        for probe, (given, _) in zip(probes, swaps, strict=True)
    ]
    report(
        "from consent to the first run on the new harness",
        f"{statistics.median(item.total_seconds() for item in seconds):.1f} s",
        f"{statistics.median(probe.seconds for probe in probes):.1f} s of it the probe",
        f"longest {max(seconds).total_seconds():.1f} s; n={len(swaps)}; a task every {EVERY_S} s",
    )
    waits = {
        run.id: (run.started_at - task.created_at).total_seconds()
        for task, run in zip(tasks, first, strict=True)
    }
    quiet = [waits[run.id] for run in first if run.started_at < swaps[0][0]]
    during = [
        waits[run.id] for run in first if any(given <= run.started_at <= ended for given, ended in swaps)
    ]
    usual = max(quiet)
    report(
        "runs that waited longer while it was changed",
        f"{sum(wait > usual for wait in during)} of {len(during)}",
        f"longest wait before: {usual * 1000:.0f} ms of {len(quiet)} runs",
        f"longest while changing: {max(during) * 1000:.0f} ms",
    )
    report(
        "wait of a run, from queued to started",
        f"{statistics.median(during) * 1000:.0f} ms while changing",
        f"{statistics.median(quiet) * 1000:.0f} ms before",
    )
    lost = sum(len(found) > 1 or found[-1].outcome is None for found in runs.values())
    odd = sum(bool(mixed(home, run)) for run in first)
    report("runs lost, runs of mixed or unprobed harnesses", f"{lost}, {odd}", "", f"n={len(tasks)}")


def _driven(registry: Registry, run: Run) -> str:
    return driving_sha256(registry, run.snapshot)


if __name__ == "__main__":
    main()
