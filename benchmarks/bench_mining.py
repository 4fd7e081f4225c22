"""Mining and judging: steps read per second, memory against the number of runs, verdicts per second.

python benchmarks/bench_mining.py [--runs N] [--steps N]
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import statistics
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agentos.domain import (
    Arm,
    Call,
    Candidate,
    Cost,
    Edit,
    Fault,
    Layer,
    Limits,
    Manifest,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Task,
    Trial,
    TrialSet,
)
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.policy import Policy
from agentos.evolver.verdict.judge import judge
from agentos.ledger.store import Ledger
from agentos.shipped import folder
from agentos.testing import FakeExecutor, FakeRegistry, SerialReplayer, attempt

NOW = datetime.now(UTC)
BASE, TREE = Snapshot("base", "tree0"), Snapshot("cand", "tree1")


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def parts_on(ledger: Ledger) -> Dependencies:
    registry = FakeRegistry({"skill/x/SKILL.md": "x"})
    return Dependencies(
        snapshots=registry,
        candidates=registry,
        evolvable=registry,
        records=ledger,
        journal=ledger,
        cursor=ledger,
        audit=ledger,
        blobs=ledger.blobs,
        executor=FakeExecutor(lambda task, snapshot: attempt(passed=True)),
        replayer=SerialReplayer(),
        proposers={},
        policy=Policy(),
        taxonomy=load_taxonomy(folder("evolver") / "taxonomy.toml"),
        consent_key=bytes(32),
        now=lambda: datetime.now(UTC),
    )


def fill(ledger: Ledger, runs: range, steps: int) -> None:
    """Failing runs of ``steps`` steps each, every one with a fault at its end."""
    fault = Fault("KeyError", "'price'", "skill/x/tools/t.py:run", "skill/x")
    outcome = Outcome(Result.FAILED, 0.0, "KeyError: 'price'", fault, cost=Cost(0.1, 0.1))
    for number in runs:
        task = Task(
            f"task-{number}",
            "t",
            f"goal {number % 50}",
            Call("x/t", {}),
            (),
            "default",
            Limits(),
            (),
            (),
            None,
            NOW,
        )
        ledger.add_task(task, Share.OPEN)
        run = Run(f"run-{number}", task.id, task.key, Share.OPEN, 1, BASE, "b", "namespace", NOW)
        ledger.begin_run(run)
        ledger.finish_run(run.id, outcome, RunEnd(resources=("skill/x",)))
    with sqlite3.connect(ledger._path) as direct:
        direct.executemany(
            "INSERT INTO step (run_id, position, node, action, observation, fault, started_at, duration_ms) "
            "VALUES (?, ?, 'act', ?, '{\"ok\": true}', NULL, ?, 1.0)",
            (
                (f"run-{number}", index, f'{{"tool": "x/t", "args": {{"n": {index}}}}}', NOW.isoformat())
                for number in runs
                for index in range(steps)
            ),
        )


def memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def bench_mining(runs: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        ledger = Ledger(Path(place) / "ledger.db")
        parts = parts_on(ledger)
        rates, peaks = [], []
        for round_ in range(3):
            fill(ledger, range(round_ * runs, (round_ + 1) * runs), steps)
            began = time.process_time()
            assert mine(parts) == runs
            rates.append(runs * steps / (time.process_time() - began))
            peaks.append(memory_mb())
        report(
            "mine",
            f"{statistics.median(rates):,.0f} steps/s of CPU",
            f"{statistics.median(rates) / 50_000:.1f} x the target of 50,000",
            f"{runs} failing runs of {steps} steps a round, signals and sightings stored, 3 rounds",
        )
        report(
            "mine, memory",
            f"+{peaks[-1] - peaks[0]:.1f} MB",
            "flat is the target",
            "third round beside the first",
        )
        began = time.perf_counter()
        triage(parts)
        report("triage", f"{(time.perf_counter() - began) * 1e3:.0f} ms", "", f"{3 * runs} sightings")
        ledger.close()


def bench_judge() -> None:
    manifest = Manifest("e", "c", "e", ("skill/x/tools/t.py",), (), (), Layer.SKILL, "w")
    candidate = Candidate("cand-1", "evo-1", "repair", 1, manifest, Edit({}, "e", "o"), BASE, TREE)
    trials = []
    for number in range(34):
        kind = TrialSet.EVIDENCE if number < 8 else TrialSet.GUARD if number < 24 else TrialSet.HOLD_OUT
        for arm, snapshot in ((Arm.BASE, BASE), (Arm.CANDIDATE, TREE)):
            failed = kind is TrialSet.EVIDENCE and arm is Arm.BASE
            outcome = Outcome(Result.FAILED if failed else Result.PASSED, 1.0, "")
            owner = candidate.id if arm is Arm.CANDIDATE else ""
            for repeat in range(2):
                trials.append(
                    Trial(
                        f"{number}{arm}{repeat}",
                        "evo-1",
                        owner,
                        f"t{number}",
                        kind,
                        arm,
                        repeat,
                        snapshot,
                        outcome,
                        "",
                        "",
                        "",
                    )
                )
    times = []
    for _ in range(50):
        began = time.perf_counter()
        judge(candidate, [replace(trial) for trial in trials], Policy())
        times.append((time.perf_counter() - began) * 1e3)
    report(
        "judge", f"{statistics.median(times):.1f} ms", "", f"{len(trials)} trials, hashed and tabled, n=50"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    bench_mining(given.runs, given.steps)
    bench_judge()


if __name__ == "__main__":
    main()
