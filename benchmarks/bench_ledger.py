"""The ledger: writing steps and ends of runs, reading them back for mining, memory, first look.

python benchmarks/bench_ledger.py [--runs N] [--steps N] [--on FOLDER]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from agentos.domain import Fault, Limits, Outcome, Result, Run, RunEnd, Share, Snapshot, Step, Task
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger

NOW = datetime(2026, 1, 1, tzinfo=UTC)
USED = ("tool/column-sum", "agent/default", "harness/default")
FAULT = Fault("ValueError", "could not convert string to float: '1,5'", "tool.py:run", "tool/column-sum")


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def fsync_ms(folder: Path) -> float:
    """What the disk takes to flush one page: the floor of every durable write."""
    with open(folder / "flush", "wb") as file:

        def flush() -> None:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())

        return statistics.median(timed(flush) for _ in range(200))


def step(run_id: str, index: int) -> Step:
    """Of the size of a real tool call."""
    action = {"tool": "csv-report/column_sum", "args": {"path": "in.csv", "column": "amount"}}
    observation = {"output": {"sum": 12.5, "rows": 4, "skipped": []}, "text": "x" * 200}
    return Step(run_id, index, "act", action, observation, FAULT if index % 5 == 4 else None, NOW, 2.5)


def write(ledger: Ledger, runs: int, steps: int) -> dict[str, list[float]]:
    """Milliseconds of each call, by name."""
    took: dict[str, list[float]] = {"add_task": [], "begin_run": [], "append_step": [], "finish_run": []}
    for number in range(runs):
        task = Task(
            f"task-{number}", "n", f"goal {number % 50}", None, (), "default", Limits(), (), (), None, NOW
        )
        run = Run(
            f"run-{number}", task.id, task.key, Share.OPEN, 1, Snapshot("c" * 40, "t" * 40), "b", "l", NOW
        )
        end = Outcome(Result.FAILED, 0.0, "ValueError", FAULT)
        took["add_task"].append(timed(lambda task=task: ledger.add_task(task, Share.OPEN)))
        took["begin_run"].append(timed(lambda run=run: ledger.begin_run(run)))
        for index in range(steps):
            one = step(run.id, index)
            took["append_step"].append(timed(lambda one=one: ledger.append_step(one)))
        took["finish_run"].append(
            timed(lambda run=run, end=end: ledger.finish_run(run.id, end, RunEnd({"sum": 1}, resources=USED)))
        )
    return took


def scan(reader: Reader) -> int:
    """What a miner reads: all finished runs in batches, each with its task and steps."""
    cursor, count = 0, 0
    while batch := reader.runs_after(cursor, 500):
        for _, run in batch:
            reader.task(run.task_id)
            count += len(reader.steps(run.id))
        cursor = batch[-1][0]
    return count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--on", type=Path, help="folder on the disk to measure")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.on) as folder:
        path = Path(folder) / "ledger.db"
        fresh = timed(lambda: Ledger(path).close())
        ledger = Ledger(path)
        flush = fsync_ms(Path(folder))
        took = write(ledger, given.runs, given.steps)
        for name, values in took.items():
            middle = statistics.median(values)
            late = statistics.quantiles(values, n=100)[98]
            report(
                f"{name}, durable",
                f"{middle:.2f} ms",
                f"{middle / flush:.1f} x fsync of a page ({flush:.2f} ms)",
                f"p99 {late:.2f} ms, n={len(values)}",
            )
        one = step("run-0", 0)
        same = statistics.median(timed(lambda: ledger.blobs.shrink(one.observation)) for _ in range(1000))
        report("look whether a value is big", f"{same * 1e3:.0f} us", "", "per step, within append_step")
        scanning(path, given)
        first_look(path, fresh)
        took_ms = timed(lambda: ledger.verify())
        count = ledger.head().count
        report("audit verify", f"{count / took_ms * 1e3:,.0f} entries/s", "", f"n={count}")
        ledger.close()


def scanning(path: Path, given: argparse.Namespace) -> None:
    """Steps per second; and what ten passes more add to the process' memory."""
    reader = Reader(path)
    count = scan(reader)
    rates = [count / timed(lambda: scan(reader)) * 1e3 for _ in range(5)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10):
        scan(reader)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    what = f"{count} steps of {given.runs} runs, with their tasks"
    report("read all finished runs and steps", f"{statistics.median(rates):,.0f} steps/s", "", what)
    report("memory that ten such passes add", f"{grown / 1024:.1f} MB", "", f"{10 * count} steps read")


def first_look(path: Path, fresh_ms: float) -> None:
    """What a command pays that reads, beside Python itself."""
    program = "import sys, pathlib; from agentos.ledger.listing import Reader, counts; counts(Reader(pathlib.Path(sys.argv[1])))"
    looks = [
        timed(lambda: subprocess.run([sys.executable, "-c", program, str(path)], check=True))
        for _ in range(7)
    ]
    bare = [timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)) for _ in range(7)]
    look, python = statistics.median(looks), statistics.median(bare)
    report("start, open, count", f"{look:.0f} ms", f"{look / python:.1f} x `python -c pass`", "n=7")
    report("make a ledger, migrations included", f"{fresh_ms:.0f} ms", "", "n=1, first import of alembic")


if __name__ == "__main__":
    main()
