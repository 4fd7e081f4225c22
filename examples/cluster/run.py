"""One command: a home, its daemon, and three workers on this machine; tasks run on them, one worker is killed, all goes on.

    python examples/cluster/run.py [FOLDER]

Everything is made below FOLDER (a temporary folder by default) and ended at the end. See README.md.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKERS = ("one", "two", "three")
BOXES = 4
TASKS = 24
PATIENCE_S = 180.0
TOOL = '''"""Squares a number, slowly."""

import time

from pydantic import BaseModel

TOOL = {"name": "square", "description": "Squares a number, slowly.", "effects": ["pure"]}


class Input(BaseModel):
    n: int


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    time.sleep(1)
    return Output(n=input.n**2)
'''


class Hosts:
    """The daemon and the workers, each a process of its own."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self.place = place
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def agentos(self, *words: str) -> str:
        command = [sys.executable, "-P", "-m", "agentos", "--home", str(self.home), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def control(self) -> str:
        """Make the home, start its daemon; where workers join."""
        self.agentos("init")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with (self.home / "agentos.toml").open("a") as file:
            # no box is made by the daemon's own machine: what runs, runs on a worker
            file.write(f'\n[workers]\nlisten = "127.0.0.1:{port}"\nhere = 0\nlost_s = 5\n')
        skill = self.home / "skills" / "numbers"
        (skill / "tools").mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            "---\nname: numbers\ndescription: Works on numbers.\n---\n\n`square` squares.\n"
        )
        (skill / "tools" / "square.py").write_text(TOOL)
        self.agentos("daemon", "start")
        return f"http://127.0.0.1:{port}"

    def worker(self, name: str, url: str) -> None:
        """Join one, with a token of its own; it knows nothing of the home."""
        token = json.loads(self.agentos("token", "add", name, "--role", "worker", "--json"))["token"]
        words = ["worker", "--join", url, "--boxes", str(BOXES), "--state", str(self.place / name)]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.place), "AGENTOS_WORKER_TOKEN": token}
        with (self.place / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-P", "-m", "agentos", *words]
            self.workers[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def status(self) -> list[dict[str, Any]]:
        return list(json.loads(self.agentos("cluster", "status", "--json"))["workers"])

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > end:
                raise SystemExit(f"after {PATIENCE_S:.0f} s still not: {what}")
            time.sleep(0.3)

    def close(self) -> None:
        for worker in self.workers.values():
            worker.terminate()
            worker.wait()
        if (self.home / "agentos.toml").exists():
            self.agentos("daemon", "stop")


def tasks(hosts: Hosts, first: int) -> list[str]:
    """Queue tasks that take a second each; their names."""
    names = [f"square {number}" for number in range(first, first + TASKS)]
    for number, name in enumerate(names, first):
        file = hosts.place / "task.yaml"
        file.write_text(
            f"name: {name}\ngoal: Square it.\ncall: {{tool: numbers/square, args: {{n: {number}}}}}\n"
            f"checks:\n  - equals: {{value: {number**2}, path: n}}\n"
        )
        hosts.agentos("task", "add", str(file))
    return names


def ended(hosts: Hosts) -> list[dict[str, Any]]:
    """The runs that count."""
    runs = json.loads(hosts.agentos("run", "list", "--limit", "500", "--json"))
    return [run for run in runs if run["outcome"] and run["outcome"]["result"] != "infra"]


def play(hosts: Hosts) -> None:
    url = hosts.control()
    print(f"A daemon listens for workers at {url}.")
    for name in WORKERS:
        hosts.worker(name, url)
    hosts.until(lambda: [one["state"] for one in hosts.status()] == ["works"] * 3, "three workers are joined")
    hosts.until(lambda: "skill/numbers" in hosts.agentos("registry", "list"), "the skill is there")
    print(hosts.agentos("cluster", "status"))
    tasks(hosts, 1)
    hosts.until(lambda: any(one["runs"] for one in hosts.status()), "something runs")
    hosts.workers["two"].kill()
    hosts.workers["two"].wait()
    print("Tasks run; the worker two was killed. What ran there runs again elsewhere.")
    hosts.until(lambda: len(ended(hosts)) == TASKS, "all tasks are done")
    by: dict[str, int] = {}
    for run in ended(hosts):
        by[run["host"]] = by.get(run["host"], 0) + 1
    passed = sum(run["outcome"]["result"] == "passed" for run in ended(hosts))
    print(f"{passed} of {TASKS} tasks passed, by worker: {by}")
    print(hosts.agentos("cluster", "status"))
    if passed != TASKS:
        raise SystemExit(1)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cluster-") as temporary:
        place = Path(sys.argv[1] if len(sys.argv) > 1 else temporary).absolute()
        place.mkdir(parents=True, exist_ok=True)
        hosts = Hosts(place)
        try:
            play(hosts)
        finally:
            hosts.close()


if __name__ == "__main__":
    main()
