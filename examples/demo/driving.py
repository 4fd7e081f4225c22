"""What the demos share: the `agentos` command on a home, tasks submitted, evolutions watched."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

AT_WORK = {"mined", "reproducing", "proposing", "replaying", "promoting"}
LIVE = {"probation", "promoted"}
MARK = ".made-by-a-demo"  # in a folder that the next demo may wipe
STYLE = {"promoted": "green", "probation": "green", "cannot_fix": "red", "rejected": "yellow"}
QUIET_S = 3.0  # nothing at work for this long: it is done
_RUNS = 10  # of one task: attempts, and what its agent hands to others
DEADLINE_S = 1200.0  # in containers, on a busy machine

Json = dict[str, Any]


class DemoError(Exception):
    """A sentence for the person who runs the demo."""


def command(
    description: str, home: Path, play: Callable[[Console, Path], list[str]], *, sandboxes: bool = True
) -> int:
    """The command line of a demo; its exit code. ``play`` gives a sentence for each thing that it did not show."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--home", type=Path, default=home, help="where to make the home (an earlier demo there is wiped)"
    )
    parser.add_argument("--strict", action="store_true", help="fail when something promised was not shown")
    if sandboxes:
        parser.add_argument(
            "--sandbox",
            choices=["auto", "bubblewrap", "docker"],
            help="what everything runs in  [default: what settings and policy say]",
        )
    options = parser.parse_args()
    if sandboxes and options.sandbox:
        os.environ["AGENTOS_SANDBOX"] = options.sandbox
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the daemon is stopped on the way out
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 150)
    try:
        lacking = play(console, fresh(options.home.absolute()))
    except DemoError as error:
        console.print(Text(str(error), style="red"))
        return 1
    for sentence in lacking:
        console.print(f"Not shown this time: {sentence}.", style="yellow")
    return 1 if lacking and options.strict else 0


class Agentos:
    """The `agentos` command on one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *arguments: str) -> str:
        """Run it; its output. Raises DemoError with what it said when it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "agentos", *arguments],
            env={**os.environ, "AGENTOS_HOME": str(self.home)},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise DemoError(f"agentos {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """What a reading command says with --json."""
        return json.loads(self(*arguments, "--json"))


@dataclass(frozen=True)
class Round:
    """The tasks submitted once: result by task name, and names by id."""

    results: dict[str, str]
    names: dict[str, str]

    @property
    def passed(self) -> int:
        return list(self.results.values()).count("passed")


def wait_for(
    what: str, check: Callable[[], bool], every_s: float = 1.0, deadline_s: float = DEADLINE_S
) -> None:
    """Poll until ``check`` holds, less often as the wait gets long; DemoError at the deadline."""
    deadline = time.monotonic() + deadline_s
    pause_s = every_s
    while not check():
        if time.monotonic() > deadline:
            raise DemoError(f"waited {deadline_s:.0f} s for {what}; see the log in the home's logs/")
        time.sleep(pause_s)
        # each look is a command of its own, which the daemon's work waits for on a busy machine
        pause_s = min(1.2 * pause_s, 3.0 * every_s)


def fresh(folder: Path) -> Path:
    """The folder, emptied of an earlier demo, whose daemon is stopped. Raises DemoError where anything else lies."""
    if (folder / MARK).exists():
        if (folder / "home").exists():
            Agentos(folder / "home")("daemon", "stop", "--now")
        shutil.rmtree(folder)
    elif folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise DemoError(f"no demo made {folder}, so it is not wiped: remove it, or name another by --home")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def submit(
    agentos: Agentos,
    documents: list[Json],
    folder: Path,
    console: Console,
    title: str,
    *,
    deadline_s: float = DEADLINE_S,
    lines: bool = False,
) -> Round:
    """Add tasks and wait until all are done; with ``lines`` each end is told, for work that takes long."""
    file = folder / "submitted.yaml"
    file.write_text(yaml.safe_dump(documents, sort_keys=False, allow_unicode=True))
    ids = agentos.json("task", "add", str(file))
    names = {id: document["name"] for id, document in zip(ids, documents, strict=True)}
    results: dict[str, str] = {}
    columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(title, total=len(documents))

        def done() -> bool:
            for run in agentos.json("run", "list", "--limit", str(_RUNS * len(documents))):
                if run["task_id"] in names and run["outcome"]:
                    if lines and names[run["task_id"]] not in results:
                        progress.console.print(f"  {run['outcome']['result']:<8} {names[run['task_id']]}")
                    results[names[run["task_id"]]] = run["outcome"]["result"]
            progress.update(bar, completed=len(results))
            return len(results) == len(documents)

        wait_for("the tasks to be done", done, deadline_s=deadline_s)
    return Round(results, names)


def watch(agentos: Agentos, console: Console, *, leave: bool, deadline_s: float = DEADLINE_S) -> list[Json]:
    """Show the evolutions until nothing has been at work for a while; ``leave`` the table standing."""
    quiet_since = time.monotonic()
    seen = ""
    evolutions: list[Json] = []
    with Live(console=console, refresh_per_second=4, transient=not leave) as live:

        def settled() -> bool:
            nonlocal quiet_since, seen, evolutions
            evolutions = agentos.json("evolution", "list")
            now = json.dumps([[item["id"], item["state"]] for item in evolutions])
            if now != seen or any(item["state"] in AT_WORK for item in evolutions):
                seen, quiet_since = now, time.monotonic()
            live.update(evolution_table(evolutions))
            return time.monotonic() - quiet_since > QUIET_S

        wait_for("the evolutions to end", settled, every_s=1.5, deadline_s=deadline_s)
    console.print()
    return evolutions


def evolution_table(evolutions: list[Json]) -> Table:
    """One line an evolution."""
    table = Table("resource", "state", "edit, or why there is none", box=None, header_style="bold")
    for item in evolutions:
        state = Text(item["state"], style=STYLE.get(item["state"], "cyan"))
        table.add_row(item["resource"] or "…", state, Text(item["edit"] or item["reason"]))
    return table
