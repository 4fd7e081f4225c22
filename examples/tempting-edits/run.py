"""Six edits that make the failing tasks pass and should not be promoted, handed to the real loop.

    python examples/tempting-edits/run.py [--home FOLDER] [--strict]

No model and no network. A fresh home gets six skills with a fault each and a proposer that answers their failures
with the edits in `site/tempting_edits.py`. What becomes of each is shown as the program tells it: nothing
here knows how it should end. With --strict the exit code is 1 when one of them was promoted without a
person, or never came to a decision.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from scenes import Scene, scenes, write_tasks

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "demo"))

from driving import LIVE, Agentos, Json, command, wait_for, watch  # noqa: E402

ROOT = HERE.parents[1]
RATES = {"/CHF": b"1.05", "/USD": b"0.92"}

# The shipped search has no time, so that the edits are the tempting ones. None has to wait for work that comes after
# it, as by the shipped policy all would: what is shown here is what the other gates tell.
POLICY = """\
[judge]
fresh_tasks = 0
[propose]
budget_s = 0.001
"""
REFUSED = {"rejected", "no_improvement", "cannot_fix", "not_reproducible", "circuit_broken"}
ENDS = {
    "probation": "PROMOTED",
    "promoted": "PROMOTED",
    "rolled_back": "promoted and taken back",
    "awaiting_consent": "a person is asked",
    "held": "held for a person",
}


class Bank(BaseHTTPRequestHandler):
    """The outside world: tells an exchange rate."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(RATES[self.path])

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def bank() -> Iterator[str]:
    """A service on loopback; its host and port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bank)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def daemon(agentos: Agentos, host: str) -> Iterator[None]:
    """A fresh home with a daemon that finds the proposer and may ask the bank."""
    path = os.pathsep.join(filter(None, [str(HERE / "site"), os.environ.get("PYTHONPATH", "")]))
    os.environ.update({"PYTHONPATH": path, "AGENTOS_EGRESS": f'["{host}"]'})
    agentos("init")
    (agentos.home / "policy.toml").write_text(POLICY)
    agentos("daemon", "start")
    try:
        yield
    finally:
        agentos("daemon", "stop", "--now")


def drop_skills(agentos: Agentos) -> None:
    """Copy the skills into the watched folder and wait until all are in the registry."""
    names = {path.name for path in (HERE / "skills").iterdir()}
    for name in names:
        shutil.copytree(
            HERE / "skills" / name, agentos.home / "skills" / name, ignore=shutil.ignore_patterns("__*")
        )
    listing = [
        "git",
        "--git-dir",
        str(agentos.home / "registry.git"),
        "ls-tree",
        "--name-only",
        "main:skill",
    ]

    def arrived() -> bool:
        return names <= set(subprocess.run(listing, capture_output=True, text=True).stdout.split())

    wait_for("the skills to be taken into the registry", arrived)


def submit(agentos: Agentos, played: list[Scene], folder: Path) -> dict[str, str]:
    """Queue the tasks of all scenes; the scene's skill by task id."""
    return {
        id: scene.skill
        for scene in played
        for id in agentos.json("task", "add", str(write_tasks(scene, folder)))
    }


def finish(agentos: Agentos, ids: dict[str, str]) -> int:
    """Wait until the tasks are done; how many passed."""
    ended: dict[str, str] = {}

    def done() -> bool:
        for run in agentos.json("run", "list", "--limit", str(2 * len(ids))):
            if run["task_id"] in ids and run["outcome"]:
                ended[run["task_id"]] = run["outcome"]["result"]
        return len(ended) == len(ids)

    wait_for("the tasks to be done", done)
    return list(ended.values()).count("passed")


def by_skill(agentos: Agentos, evolutions: list[Json], skills: dict[str, str]) -> dict[str, list[Json]]:
    """Evolutions by the skill of the tasks that they rest on: one that ends early names no resource."""
    found: dict[str, list[Json]] = {}
    for item in evolutions:
        (first, *_) = agentos.json("evolution", "show", item["id"])["evidence"]["task_ids"]
        found.setdefault(skills[first], []).append(item)
    return found


def end_of(evolutions: list[Json]) -> tuple[str, str, bool]:
    """How a scene ended: in a word, the program's reason, and whether the edit was kept out.

    Where its failures were taken up more than once, what went furthest counts.
    """
    if not evolutions:
        return "nothing was tried", "its failures opened no evolution", False
    furthest = (LIVE, {"rolled_back"}, {"awaiting_consent"}, {"held"}, REFUSED)
    for states in furthest:
        found = [item for item in evolutions if item["state"] in states]
        if found:
            state, reason = found[-1]["state"], found[-1]["reason"]
            return ENDS.get(state, f"refused ({state})"), reason, states not in (LIVE, {"rolled_back"})
    return f"undecided ({evolutions[-1]['state']})", evolutions[-1]["reason"], False


def demo(console: Console, folder: Path) -> list[str]:
    """The whole example; one sentence for each edit that was neither refused nor asked for."""
    began = time.monotonic()
    agentos = Agentos(folder / "home")
    with bank() as host, daemon(agentos, host):
        played = scenes(f"http://{host}")
        drop_skills(agentos)
        skills = submit(agentos, played, folder / "tasks")
        passed = finish(agentos, skills)
        console.print(
            f"{len(played)} skills, {len(skills)} tasks, {passed} of them passed. What comes of it:"
        )
        evolutions = by_skill(agentos, watch(agentos, console, leave=False), skills)
    table = Table(
        "the tempting edit", "what it would do", "its end", "why, as the program says", show_lines=True
    )
    wrong = []
    for scene in played:
        end, why, well = end_of(evolutions.get(scene.skill, []))
        table.add_row(scene.edit, scene.harm, Text(end, style="green" if well else "red"), Text(why))
        if not well:
            wrong.append(f"a refusal of this ({end}): {scene.edit}")
    console.print(table)
    console.print(f"Done in {time.monotonic() - began:.0f} s.")
    return wrong


if __name__ == "__main__":
    sys.exit(command("Show what becomes of tempting edits.", ROOT / ".demo-tempting", demo))
