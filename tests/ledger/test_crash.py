"""Killed at any moment, the ledger is whole: what was reported as done is there, and nothing is half there."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from agentos.domain import TaskState
from agentos.ledger.listing import newest_open_runs
from agentos.ledger.store import Ledger

KILLS = 20

# Imports once, then forks a writer per request: the parent can kill many without paying for imports.
WRITER = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from agentos.domain import *
from agentos.ledger.store import Ledger

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PRINT = Fingerprint("f" * 16, "tool/a", "exception", "?")

def write(turn):
    ledger = Ledger(Path(sys.argv[1]))
    for number in range(10_000):
        name = f"{turn}-{number}"
        task = Task(f"task-{name}", "n", "g", None, (), "default", Limits(), (), (), None, NOW)
        ledger.add_task(task, Share.OPEN)
        run = Run(f"run-{name}", task.id, task.key, Share.OPEN, 1, Snapshot("c", "t"), "f", "n", NOW)
        ledger.begin_run(run)
        for index in range(3):
            big = "x" * (20_000 if index == 2 else 100) + name
            ledger.append_step(Step(run.id, index, "act", {}, big, None, NOW, 1.0))
        ledger.finish_run(run.id, Outcome(Result.FAILED, 0.0, "no"), RunEnd(name, resources=("tool/a",)))
        # as the miner does: what a killed writer finished but did not mine is caught up with
        batch = ledger.runs_after(ledger.read("mine"), 100)
        sightings = [Sighting(found.id, found.task_id, found.task_key, PRINT, NOW) for _, found in batch]
        ledger.advance("mine", batch[-1][0], sightings)
        os.write(1, f"{run.id}\\n".encode())

for turn in sys.stdin:
    child = os.fork()
    if child == 0:
        write(turn.strip())
    os.write(2, f"{child}\\n".encode())
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


def test_twenty_kills_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    chance = random.Random(7)
    done: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as parent:
        assert parent.stdin and parent.stdout and parent.stderr  # noqa: PT018 - the three pipes above
        for turn in range(KILLS):
            parent.stdin.write(f"{turn}\n")
            writer = int(parent.stderr.readline())
            for _ in range(chance.randrange(4)):  # so many runs first, then any moment of the next
                done.append(parent.stdout.readline().strip())
            spin = chance.randrange(200_000)
            while spin:
                spin -= 1
            os.kill(writer, signal.SIGKILL)
            while (line := parent.stdout.readline().strip()) != "dead":
                done.append(line)
        parent.stdin.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    check(Ledger(path), done)


def check(ledger: Ledger, done: list[str]) -> None:
    assert done
    assert ledger.verify() == []
    finished = ledger.runs_after(0, 100_000)
    assert [seq for seq, _ in finished] == list(range(1, len(finished) + 1))
    assert {run.id for _, run in finished} >= set(done)
    assert ledger.head().count == len(finished)  # an audit entry for each end, none without
    for _, run in finished:
        steps = ledger.steps(run.id)
        assert [step.index for step in steps] == [0, 1, 2]
        assert ledger.blobs.expand(steps[2].observation).endswith(run.id.removeprefix("run-"))
        assert ledger.task_view(run.task_id).state is TaskState.DONE
    for run in newest_open_runs(ledger, 100):
        assert ledger.task_view(run.task_id).state is TaskState.RUNNING
    assert len([*ledger.runs_using("tool/a", 10**6)]) == 1  # equal work each time
    seen = ledger.read("mine")
    sightings = ledger._rows("SELECT count(*) FROM sighting")
    assert sightings == [(len([run for seq, run in finished if seq <= seen]),)]
    ledger.blobs.sweep(older_than_s=0)
    ledger.close()
