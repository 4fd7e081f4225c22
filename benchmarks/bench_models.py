"""Runs that think, through everything: daemon, box, channel, gateway, litellm, a scripted model's server.

python benchmarks/bench_models.py [--runs N] [--together N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentos.daemon.control.daemon_lock import daemon_info, start_daemon, stop_daemon
from agentos.daemon.setup import init_home
from agentos.domain import Effect, Limits, Result, Share, Task, TaskState, new_id
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import ModelServer, call, say
from agentos.testing.modelserver.replies import ServerReply

TICK = os.sysconf("SC_CLK_TCK")
TOOL = b'''"""Doubles."""
from pydantic import BaseModel
TOOL = {"name": "double", "description": "Doubles a number", "effects": ["pure"]}
class Input(BaseModel):
    n: int
class Output(BaseModel):
    n: int
def run(input: Input) -> Output:
    return Output(n=2 * input.n)
'''
FILES = {
    "tool/double/tool.py": TOOL,
    "tool/double/resource.toml": b'description = "Doubles a number"\n',
    "agent/doubler/resource.toml": b'description = "Doubles"\ntools = ["double"]\nskills = []\n',
    "model/scripted/resource.toml": b'description = "x"\nmodel = "openai/scripted"\nprovider = "local"\n',
}


def report(what: str, value: str, beside: str = "", remarks: str = "") -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


class Server:
    """The model: as many turns as the goal says, each after a pause; how many it had in flight at most."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.due: list[float] = []  # when each call under way will be answered
        self.most = 0

    def __call__(self, request: Any, number: int) -> ServerReply:
        now = time.monotonic()
        self.due = [due for due in self.due if due > now] + [now + self.delay_s]
        self.most = max(self.most, len(self.due))
        turns = int(str(request["messages"][1]["content"]).split("turns=")[1].split()[0])
        done = sum(bool(one.get("tool_calls")) for one in request["messages"])
        if done < turns:
            return replace(call("double", {"n": done}), delay_s=self.delay_s)
        return say("done", delay_s=self.delay_s)


def task_of(turns: int) -> Task:
    goal = f"double turns={turns} {new_id('work')}"
    return Task(
        id=new_id("task"),
        name=goal,
        goal=goal,
        call=None,
        inputs=(),
        agent="doubler",
        limits=Limits(wall_s=120.0, steps=200),
        effects=(Effect.PURE,),
        checks=(),
        schedule=None,
        created_at=datetime.now(UTC),
    )


def cpu_s(pid: int) -> float:
    """What a process used so far, all its threads together."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICK


def gateway_of(daemon: int) -> int:
    """The daemon's gateway."""
    for threads in Path(f"/proc/{daemon}/task").glob("*/children"):
        for child in threads.read_text().split():
            if b"agentos.gateway" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    raise LookupError("no gateway runs")


def done(ledger: Ledger, tasks: Sequence[Task]) -> float:
    """Queue the tasks and wait; seconds until all have passed."""
    began = time.monotonic()
    for task in tasks:
        ledger.add_task(task, Share.OPEN)
    left = {task.id for task in tasks}
    while left:
        time.sleep(0.02)
        left -= {task_id for task_id in left if ledger.task_view(task_id).state is TaskState.DONE}
    took = time.monotonic() - began
    for task in tasks:
        outcome = ledger.runs(task.id)[0].outcome
        assert outcome is not None
        assert outcome.result is Result.PASSED, outcome
    return took


def one_after_another(ledger: Ledger, daemon: int, turns: int, runs: int) -> None:
    """CPU of every process that has a share in a run, beside the model's time."""
    gateway = gateway_of(daemon)
    inside, outside, through, steps, walls = [], [], [], 0, []
    for _ in range(runs):
        before = cpu_s(daemon), cpu_s(gateway)
        task = task_of(turns)
        walls.append(done(ledger, [task]))
        run = ledger.runs(task.id)[0]
        assert run.outcome is not None
        steps = len(ledger.steps(run.id))
        inside.append(run.outcome.cost.cpu_s)
        outside.append(cpu_s(daemon) - before[0])
        through.append(cpu_s(gateway) - before[1])
    parts = [statistics.median(part) * 1e3 for part in (inside, outside, through)]
    report(
        f"CPU of a run with {turns + 1} model calls, {turns} tool calls",
        f"{sum(parts):.0f} ms",
        f"{sum(parts) / steps * 20:.0f} ms for 20 of its {steps} steps",
        f"box {parts[0]:.0f}, daemon {parts[1]:.0f}, gateway {parts[2]:.0f} ms; median of {runs}; "
        f"{statistics.median(walls):.2f} s until it was seen to end",
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--together", type=int, default=64)
    given = parser.parse_args()
    server = Server(0.0)
    with tempfile.TemporaryDirectory() as place, ModelServer(server) as model:
        home = Home(Path(place) / "home")
        init_home(home)
        Registry(home.registry).commit(FILES, "What the benchmark needs", "edit")
        with home.settings.open("a") as file:
            file.write(f'\nmodel = "scripted"\nparallel = {given.together}\n')
            file.write(f'[providers.local]\napi_base = "{model.base_url}"\n')
        ledger = Ledger(home.ledger)
        start_daemon(home)
        info = daemon_info(home)
        assert info is not None
        try:
            first = done(ledger, [task_of(1)])
            report(
                "the first run with a model", f"{first:.1f} s", "", "starts the gateway: litellm is imported"
            )
            done(ledger, [task_of(3)])
            one_after_another(ledger, info.pid, 6, given.runs)
            one_after_another(ledger, info.pid, 19, given.runs)
            server.delay_s, server.most = 1.0, 0
            turns = 4
            took = done(ledger, [task_of(turns) for _ in range(given.together)])
            report(
                f"{given.together} runs at once, {turns + 1} model calls of 1 s each",
                f"{took:.1f} s",
                f"{turns + 1:.1f} s of the model's",
                f"at most {server.most} calls in flight; {given.together * (turns + 1) / took:.0f} calls/s; "
                f"{os.cpu_count()} cores",
            )
        finally:
            stop_daemon(home, at_once=True)
            ledger.close()


if __name__ == "__main__":
    main()
