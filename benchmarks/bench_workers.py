"""Throughput of tasks that sleep (a second, or ``--sleep``): one worker against three, with 8, 16 and 32 boxes each.

All of it runs on this machine, so the processors are shared: what is measured is what the control process, the
connections and the boxes cost, not what more machines give. ``python -m benchmarks.bench_workers``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentos.domain import Result, Share, TaskState
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.torture.workers import Cluster, cluster, comes, task_of


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[number]) for number in range(11, 15)) / os.sysconf("SC_CLK_TCK")


def measure(made: Cluster, workers: int, boxes: int, rounds: int, sleep_s: int = 1) -> dict[str, Any]:
    """So many tasks as fill all boxes so often; tasks a second from the first begin to the last end."""
    names = [f"w{boxes}-{workers}-{number}" for number in range(workers)]
    for name in names:
        made.start_worker(name, boxes)
    comes(lambda: made.there() == set(names), "all workers are joined", 120)
    tasks = [
        replace(task_of(made, sleep_s, "sleeper"), checks=(), name=f"sleep {number}")
        for number in range(workers * boxes * rounds)
    ]
    assert made.daemon is not None
    before = _cpu_s(made.daemon.pid)
    with closing(Ledger(made.home.ledger)) as ledger:
        for task in tasks:
            ledger.add_task(task, Share.OPEN, TaskState.QUEUED)
    with closing(Reader(made.home.ledger)) as reader:
        comes(
            lambda: not any(reader.tasks(state) for state in (TaskState.QUEUED, TaskState.RUNNING)),
            "done",
            600,
        )
        runs = [run for task in tasks for run in reader.runs(task.id)]
    ends = [run.finished_at for run in runs if run.finished_at]
    span_s = (max(ends) - min(run.started_at for run in runs)).total_seconds()
    found = {
        "workers": workers,
        "boxes": boxes,
        "tasks": len(tasks),
        "passed": sum(bool(run.outcome and run.outcome.result is Result.PASSED) for run in runs),
        "seconds": round(span_s, 2),
        "tasks_per_s": round(len(tasks) / span_s, 2),
        "ideal_per_s": workers * boxes / sleep_s,
        "box_cpu_ms_per_task": round(
            1000 * sum(run.outcome.cost.cpu_s for run in runs if run.outcome) / len(runs), 1
        ),
        "control_cpu_ms_per_task": round(1000 * (_cpu_s(made.daemon.pid) - before) / len(tasks), 1),
        "run_median_s": sorted(
            (run.finished_at - run.started_at).total_seconds() for run in runs if run.finished_at
        )[len(runs) // 2],
        "by_worker": {name: sum(run.host == name for run in runs) for name in names},
    }
    for name in names:
        made.workers.pop(name).kill()
    comes(lambda: not made.there(), "they are gone", 60)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boxes", type=int, nargs="*", default=[2, 4, 8, 16, 32])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sleep", type=int, default=1)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="bench-workers-"))
    try:
        with cluster(place) as made:
            made.start_daemon()
            for boxes in given.boxes:
                for workers in (1, 3):
                    print(json.dumps(measure(made, workers, boxes, given.rounds, given.sleep)), flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
