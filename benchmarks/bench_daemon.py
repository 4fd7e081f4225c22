"""The kernel's own cost: per task, per step, from queue to start, an idle daemon, and starting a command.

python benchmarks/bench_daemon.py [--tasks N] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentos.daemon.control.daemon_lock import daemon_info, start_daemon, stop_daemon
from agentos.daemon.engine import Engine
from agentos.daemon.process import set_up_logs
from agentos.daemon.run.tasks import StopSignal, TaskRunner
from agentos.daemon.service import service
from agentos.daemon.setup import init_home
from agentos.daemon.tick import Tick
from agentos.domain import (
    Call,
    Check,
    Effect,
    InputFile,
    Limits,
    Outcome,
    Result,
    Share,
    Snapshot,
    Step,
    Task,
    digest,
    new_id,
)
from agentos.home import Home
from agentos.ports import Attempt, Plan
from agentos.settings import load_settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMMANDS = (
    "--help",
    "status",
    "task list",
    "run list",
    "evolution list",
    "registry list",
    "registry show agent/default",
)


def report(what: str, value: str, beside: str = "", remarks: str = "") -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


TEXT = b"three small words\n"
CHECK = Check("equals", {"value": 3, "path": "words"})


def make_task(checks: tuple[Check, ...] = ()) -> Task:
    return Task(
        id=new_id("task"),
        name="bench",
        goal="count",
        call=Call("word_count", {"path": "text.txt"}),
        inputs=(InputFile("text.txt", digest(TEXT), len(TEXT)),),
        agent="default",
        limits=Limits(wall_s=30.0),
        effects=(Effect.READ,),
        checks=checks,
        schedule=None,
        created_at=NOW,
    )


class Instant:
    """Stands where boxes are: does nothing but make steps."""

    name = "none"
    level = "none"

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def place(self, task: Task, snapshot: Snapshot) -> Instant:
        return self

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None],
        plan: Plan | None = None,
    ) -> Attempt:
        for index in range(self.steps):
            on_step(Step(run_id, index, "act", {"tool": "x"}, {"ok": True, "output": 3}, None, NOW, 1.0))
        return Attempt(Outcome(Result.PASSED, 1.0, ""), 3, "", (), ("tool/word-count",), "none", "none")

    def cancel(self, run_id: str) -> None: ...


class Loop:
    """The daemon's loop in a thread of this process."""

    def __init__(self, home: Home, parts: Any) -> None:
        self.ended: dict[str, float] = {}
        self.tick = Tick(parts)
        self.tick.engine = Engine(home.engine, parts.bodies(), self._end)
        self.tick.engine.launch()
        self.going = True
        gc.freeze()  # as `agentos daemon run` does: looking through all that is imported takes a tenth of a second
        self.thread = threading.Thread(target=self.tick.run, args=(lambda: self.going,))
        self.thread.start()

    def _end(self, kind: str, subject: str) -> None:
        self.ended[subject] = time.perf_counter()
        self.tick.ended(kind, subject)

    def close(self) -> None:
        self.going = False
        self.thread.join()
        self.tick.engine.close()

    def wait(self, tasks: list[Task]) -> float:
        """Seconds until all of them have ended."""
        began = time.perf_counter()
        while not all(task.id in self.ended for task in tasks):
            time.sleep(0.001)
        return time.perf_counter() - began


def batch(loop: Loop, ledger: Any, tasks: list[Task]) -> tuple[float, float]:
    """Wall and CPU of this process in ms for each task, one after another; without this thread, which looks on."""
    for task in tasks:
        ledger.add_task(task, Share.OPEN)
    cpu = time.process_time() - time.thread_time()
    wall = loop.wait(tasks)
    return wall / len(tasks) * 1e3, (time.process_time() - time.thread_time() - cpu) / len(tasks) * 1e3


def in_process(count: int, *, profile: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        init_home(home)
        set_up_logs(home.logs / "daemon.log", "info", 10, console=False)
        settings = load_settings(home.settings).model_copy(update={"parallel": 1, "evolve": "manual"})
        with service(home, settings) as parts:
            parts.ledger.blobs.put(TEXT)
            costs: dict[int, tuple[float, float]] = {}
            for steps in (0, 20):
                runner = TaskRunner(parts.ledger, parts.registry, Instant(steps), StopSignal())  # type: ignore[arg-type]
                loop = Loop(home, replace(parts, tasks=runner))
                batch(loop, parts.ledger, [make_task() for _ in range(5)])
                costs[steps] = batch(loop, parts.ledger, [make_task() for _ in range(count)])
                loop.close()
            wall, cpu = costs[0]
            report(
                "a task through queue, engine and ledger, no box",
                f"{wall:.1f} ms",
                f"{cpu:.1f} ms CPU",
                f"n={count}",
            )
            per_step = [(costs[20][which] - costs[0][which]) / 20 for which in (0, 1)]
            report(
                "each step recorded", f"{per_step[0]:.2f} ms", f"{per_step[1]:.2f} ms CPU", f"n={20 * count}"
            )
            parts.sandbox.start()
            loop = Loop(home, parts)
            latencies(loop, parts.ledger)
            profiler = cProfile.Profile()
            for name, checks in (
                ("no check", ()),
                ("one check", (CHECK,)),
            ):
                tasks = [make_task(checks) for _ in range(count)]
                wall, cpu = batch(loop, parts.ledger, tasks)
                runs = [parts.ledger.runs(task.id)[0] for task in tasks]
                inside = statistics.median(
                    sum(step.duration_ms for step in parts.ledger.steps(run.id)) for run in runs
                )
                report(
                    f"a task in a box, one tool call, {name}",
                    f"{wall:.1f} ms",
                    f"{inside:.1f} ms of it in the worker's steps",
                    f"n={count}, {cpu:.1f} ms CPU in the kernel",
                )
            if profile:
                hot(profiler, parts, loop, count)
            loop.close()
            parts.sandbox.close()


def hot(profiler: cProfile.Profile, parts: Any, loop: Loop, count: int) -> None:
    """Where the kernel's CPU goes in one attempt."""
    tasks = [make_task((CHECK,)) for _ in range(count)]
    loop.tick.draining = True
    for task in tasks:
        parts.ledger.add_task(task, Share.OPEN)
    profiler.enable()
    for task in tasks:
        parts.tasks.attempt(task.id, NOW)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(35)


def latencies(loop: Loop, ledger: Any) -> None:
    """From a task queued by another process' connection to its run's beginning, on an idle loop."""
    found = []
    for _ in range(20):
        time.sleep(0.06)
        task = make_task()
        queued = datetime.now(UTC)
        ledger.add_task(task, Share.OPEN)
        loop.wait([task])
        found.append((ledger.runs(task.id)[0].started_at - queued).total_seconds() * 1e3)
    report(
        "from queued to begun, idle daemon",
        f"{statistics.median(found):.0f} ms",
        "polls every 50 ms",
        f"n={len(found)}, max {max(found):.0f} ms",
    )


def idle() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        init_home(home)
        began = time.perf_counter()
        start_daemon(home)
        report(
            "agentos daemon start, until ready", f"{time.perf_counter() - began:.2f} s", "", "sandbox probed"
        )
        info = daemon_info(home)
        assert info is not None
        time.sleep(3)
        before = cpu_s(info.pid)
        time.sleep(10)
        used = (cpu_s(info.pid) - before) / 10
        status = Path(f"/proc/{info.pid}/status").read_text()
        rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        report("idle daemon", f"{used:.1%} of a core", f"{rss / 1024:.0f} MB", "10 s")
        stop_daemon(home, at_once=True)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def starts() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        init_home(home)
        environment = os.environ | {"AGENTOS_HOME": str(home.root)}
        program = str(Path(sys.executable).with_name("agentos"))
        plain = start_ms([sys.executable, "-c", "pass"], environment)
        for command in COMMANDS:
            took = start_ms([program, *command.split()], environment)
            report(f"agentos {command}", f"{took:.0f} ms", f"{took / plain:.1f} x `python -c pass`", "n=9")


def start_ms(command: list[str], environment: dict[str, str]) -> float:
    found = []
    for _ in range(10):
        began = time.perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        found.append((time.perf_counter() - began) * 1e3)
    return statistics.median(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    in_process(given.tasks, profile=given.profile)
    if not given.profile:
        idle()
        starts()


if __name__ == "__main__":
    main()
