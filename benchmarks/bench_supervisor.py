"""What the supervisor costs a step, and what it saves and loses in runs of scripted agents.

    python benchmarks/bench_supervisor.py [--rounds N] [--json FILE]
    python benchmarks/bench_supervisor.py --recorded [--data PATH]

Real runs in real boxes: agents that work (long, in batches, with polling, with a bad start) and agents that are lost
(the same call, a cycle, ever other arguments, nothing new, refusals, failing calls, no end). They are halved by a hash of
their task. Norms are fitted on the tune half (thresholds were set before any run); the report half is only counted: first held
against the record, then run once more under the supervisor, where half of the agents heed its message.

``--recorded``: the 116 runs of tau-bench's airline agent, of whose making nobody here had a part. Four folds by a hash of
the task: each run is held against norms of the other three. Their tokens are not on record; a quarter of the characters
that a call is sent stands for them.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_signals import DATA, items

from agentos.daemon.requests.enforcement import SupervisorPlan
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.daemon.setup import init_home
from agentos.domain import Check, Effect, Limits, Run, Share, Step, Task, digest, new_id
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.settings import load_settings
from agentos.supervisor.norms import PastNorms, PastRun, fit
from agentos.supervisor.watching import CHECKPOINTS, NODE, RunWatch, SupervisorCheck
from agentos.supervisor.worth import step_cost, worth_on

STEPS = 80
SIDE_BY_SIDE = 6
KINDS = {
    "short": 5,
    "long": 5,
    "batch": 3,
    "polls": 3,
    "bad-start": 3,
    "same": 2,
    "cycle": 2,
    "varied": 2,
    "stuck": 2,
    "refused": 1,
    "failing": 3,
    "endless": 2,
}  # and how many of each in a round
ACTS = {
    SupervisorCheck.LOOP: "stop",
    SupervisorCheck.NO_PROGRESS: "stop",
    SupervisorCheck.REFUSALS: "stop",
    SupervisorCheck.COST: "stop",
    SupervisorCheck.HOPELESS: "stop",
}

TOOL = '''
"""A stand-in for what agents call."""
from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "%(name)s", "description": "%(name)s", "effects": %(effects)s, "dependencies": []}


class Input(BaseModel):
    text: str = ""
    n: int = 0


class Output(BaseModel):
    text: str


def run(input: Input) -> Output:
    %(body)s
'''
TOOLS = {
    "read_record": (
        '["read"]',
        'if input.n >= 1000: raise KeyError(input.n)\n    return Output(text=f"record {input.n * 7919 % 100003}")',
    ),
    "search_index": ('["read"]', 'return Output(text="no hits")'),
    "save_note": ('["write"]', 'Path(input.text).write_text("x"); return Output(text="saved")'),
    "job_status": (
        '["write"]',
        'place = Path("polls"); n = len(place.read_text()) if place.exists() else 0\n'
        '    place.write_text("x" * (n + 1)); return Output(text="done" if n >= input.n else "running")',
    ),
    "send_mail": ('["external"]', 'return Output(text="sent")'),
}
HARNESS = """
import random


def run(sdk):
    kind, seed, heeds = sdk.task.goal.split()
    dice = random.Random(int(seed))
    count = 0

    def call(tool, n=0, text=""):
        result = sdk.call_tool(tool, {"n": n, "text": text})
        if result.fault and result.fault.message.startswith("supervisor: ") and heeds == "heeds":
            raise StopIteration
        return result

    try:
        sdk.finish(globals()[kind.replace("-", "_")](call, dice))
    except StopIteration:  # told that it is lost, it begins anew, and does the work
        sdk.finish(short(call, dice) if kind in RECOVER else "given up")


RECOVER = ("same", "cycle", "varied")


def short(call, dice):
    for n in range(dice.randint(5, 15)):
        call("read_record", dice.randint(0, 999))
    return "done"


def long(call, dice):
    for n in range(dice.randint(30, 60)):
        if dice.random() < 0.2:
            call("save_note", text=f"note-{n}")
        else:
            call("read_record", dice.randint(0, 1050))
    return "done"


def batch(call, dice):
    for n in range(dice.randint(12, 40)):
        call("save_note", text=f"part-{n}")
    return "done"


def polls(call, dice):
    most = dice.randint(2, 14)
    while (call("job_status", most).output or {}).get("text") != "done":
        pass
    return short(call, dice)


def bad_start(call, dice):
    for n in range(dice.randint(3, 9)):
        call("read_record", dice.randint(1000, 9999))
    return short(call, dice)


def same(call, dice):
    short(call, dice)
    while True:
        call("read_record", 5)


def cycle(call, dice):
    short(call, dice)
    pattern = [dice.randint(0, 999) for _ in range(dice.randint(2, 3))]
    while True:
        for n in pattern:
            call("read_record", n)


def varied(call, dice):
    n = 0
    while True:
        call("search_index", text=f"invoice {n}")
        n += 1


def stuck(call, dice):
    known = [dice.randint(0, 999) for _ in range(12)]
    while True:
        call("read_record", dice.choice(known))


def refused(call, dice):
    n = 0
    while True:
        call("send_mail", n)
        n += 1


def failing(call, dice):
    while True:
        call("read_record", dice.randint(0, 999) if dice.random() < 0.15 else dice.randint(1000, 99999))


def endless(call, dice):
    while True:
        call("read_record", dice.randint(0, 999))
"""


def files() -> dict[str, bytes]:
    found = {
        "agent/scripted/resource.toml": 'description = "A scripted agent"\nharness = "scripted"\n',
        "harness/scripted/resource.toml": 'description = "Its script"\n',
        "harness/scripted/harness.py": HARNESS,
    }
    for name, (effects, body) in TOOLS.items():
        place = f"tool/{name.replace('_', '-')}"
        found[f"{place}/resource.toml"] = f'description = "{name}"\n'
        found[f"{place}/tool.py"] = TOOL % {"name": name, "effects": effects, "body": body}
    return {path: text.encode() for path, text in found.items()}


class World:
    """A registry with the scripted agents, and boxes to run them in."""

    def __init__(self, root: Path) -> None:
        home = Home(root)
        init_home(home)
        self.registry = Registry(home.registry)
        self.registry.commit(files(), "Scripted agents", "edit")
        self.blobs = BlobStore(home.blobs)
        self.sandbox = Bubblewrap(root, load_settings(root / "agentos.toml").run_uid)
        self.sandbox.start()

    def run(self, task: Task, supervised: SupervisorPlan | None = None) -> PastRun:
        serving = RunServices(supervised=lambda task, snapshot: supervised)
        executor = BoxExecutor(self.registry, self.blobs, self.sandbox, serving=serving)
        snapshot = self.registry.stable()
        began = datetime.now(UTC)
        done = executor.execute(task, snapshot, run_id := new_id("run"))
        run = Run(
            run_id, task.id, task.key, Share.OPEN, 1, snapshot, "bubblewrap", "", began, outcome=done.outcome
        )
        return PastRun(run, task.agent, done.steps)


def task_of(kind: str, seed: int) -> Task:
    heeds = "heeds" if int(digest(["heeds", kind, seed])[:8], 16) % 2 else "ignores"
    return Task(
        id=f"task-{digest([kind, seed])[:12]}",
        name=kind,
        goal=f"{kind} {seed} {heeds}",
        call=None,
        agent="scripted",
        inputs=(),
        limits=Limits(steps=STEPS, wall_s=60.0),
        effects=(Effect.READ, Effect.WRITE),
        checks=(Check("equals", {"value": "done"}),),
        schedule=None,
        created_at=datetime.now(UTC),
    )


def is_tune(task: Task) -> bool:
    return int(digest(["half", task.id])[:8], 16) % 2 == 0


def cost(runs: Sequence[PastRun]) -> float:
    return sum(step_cost(step) for one in runs for step in one.steps if step.node != NODE)


def passed(runs: Sequence[PastRun]) -> int:
    return sum(one.passed for one in runs)


def per_step_us(runs: Sequence[PastRun], norms: PastNorms) -> list[float]:
    took = []
    for one in runs:
        watch = RunWatch(norms.of(one.run.task_key, one.agent))
        for step in one.steps:
            began = time.perf_counter()
            watch.saw(step)
            watch.take()
            took.append((time.perf_counter() - began) * 1e6)
    return took


def measure(world: World, rounds: int) -> Mapping[str, Any]:
    tasks = [
        task_of(kind, number * 100 + place)
        for number in range(rounds)
        for kind, count in KINDS.items()
        for place in range(count)
    ]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        recorded = dict(zip([task.id for task in tasks], pool.map(world.run, tasks), strict=True))
    tune = [recorded[task.id] for task in tasks if is_tune(task)]
    report_tasks = [task for task in tasks if not is_tune(task)]
    report = [recorded[task.id] for task in report_tasks]
    norms = fit(tune)
    halves = {"tune": worth_on(tune, norms, 0.02, 0.0), "report": worth_on(report, norms, 0.02, 0.0)}
    off = {SupervisorCheck(one.check): one.why for one in halves["tune"] if not one.acts}

    def supervised(task: Task) -> PastRun:
        return world.run(task, SupervisorPlan(norms.of(task.key, task.agent), ACTS, off=off))

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        live = list(pool.map(supervised, report_tasks))
    kept = dict(zip([task.id for task in report_tasks], live, strict=True))
    lost = Counter(
        task.name for task in report_tasks if recorded[task.id].passed and not kept[task.id].passed
    )
    took = sorted(per_step_us(report, norms))
    return {
        "runs": {"tune": len(tune), "report": len(report)},
        "recorded": {
            half: [{name: getattr(one, name) for name in one.__slots__} for one in found]
            for half, found in halves.items()
        },
        "hopeless": {str(place): known for place, known in norms.hopeless.items()},
        "live": {
            "cost_saved": 1 - cost(live) / cost(report),
            "passed_before": passed(report),
            "passed_with": passed(live),
            "lost": dict(lost),
            "off": {check.value: why for check, why in off.items()},
        },
        "us_per_step": {"median": statistics.median(took), "p99": took[int(0.99 * len(took))]},
    }


def recorded_runs(data: Path) -> list[PastRun]:
    found = []
    for item in items(data):
        sent, steps = 0, list[Step]()
        for step in item.steps if item.source == "tau-bench" else ():
            said = len(json.dumps(step.observation, default=str)) // 4
            if step.node == "model" and isinstance(step.observation, dict):
                usage = {"input_tokens": sent, "output_tokens": said}
                step = replace(step, observation={**step.observation, "usage": usage})
            sent += said
            steps.append(step)
        if steps:
            found.append(PastRun(item.run, "tau-bench", tuple(steps)))
    return found


def tell_starts(runs: Sequence[PastRun]) -> None:
    """How many of the runs that came to a checkpoint passed, and of those with any trouble there."""
    seen: dict[int, Counter[str]] = {place: Counter() for place in CHECKPOINTS}
    for one in runs:
        watch = RunWatch()
        for step in one.steps:
            before = watch.moves
            watch.saw(step)
            if watch.moves != before and (row := seen.get(watch.moves)) is not None:
                row.update(["runs"] + ["passed"] * one.passed)
                if watch.trouble():
                    row.update(["troubled"] + ["troubled, passed"] * one.passed)
    for place, row in seen.items():
        print(f"after {place} calls: {dict(row)}")


def tell_recorded(data: Path, folds: int = 4, deals: int = 10) -> None:
    """The table of what each check would have saved and lost, over several deals of the tasks into folds."""
    runs = recorded_runs(data)
    found: dict[str, Counter[str]] = {}
    for deal in range(deals):
        by_fold: dict[int, list[PastRun]] = {fold: [] for fold in range(folds)}
        for one in runs:
            by_fold[int(digest([deal, one.run.task_key])[:8], 16) % folds].append(one)
        for fold, own in by_fold.items():
            others = [one for other, past in by_fold.items() if other != fold for one in past]
            for worth in worth_on(own, fit(others), 0.02, 0.0):
                row = found.setdefault(worth.check, Counter())
                row["fired"] += worth.fired
                row["lost"] += worth.lost
                row["saved"] += worth.saved * cost(own) / cost(runs)  # type: ignore[assignment]
    tell_starts(runs)
    print(f"{len(runs)} runs, {passed(runs)} passed; means of {deals} deals")
    for check, row in found.items():
        print(
            f"| {check} | {row['fired'] / deals:.1f} | {row['saved'] / deals:.1%} | {row['lost'] / deals:.1f} of {passed(runs)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=12, help=f"of {sum(KINDS.values())} runs each")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    if given.recorded:
        tell_recorded(given.data)
        return
    with tempfile.TemporaryDirectory(prefix="bench-supervisor-") as folder:
        found = measure(World(Path(folder) / "home"), given.rounds)
    print(f"{platform.machine()}, Python {platform.python_version()}; runs: {found['runs']}")
    for half, rows in found["recorded"].items():
        print(f"\n{half} half, held against the record")
        for row in rows:
            print(
                f"  {row['check']:<12} would stop {row['fired']:>3} of {row['runs']}, saves {row['saved']:.1%}, "
                f"loses {row['lost']} of {row['passed']} successes  {row['why']}"
            )
    live, took = found["live"], found["us_per_step"]
    print(
        f"\nreport half, run under it: {live['cost_saved']:.1%} of the cost saved, {live['passed_before']} passed "
        f"without it, {live['passed_with']} with it; lost: {live['lost'] or 'none'}; off: {live['off'] or 'none'}"
    )
    print(f"hopeless at: {found['hopeless']}")
    print(f"a step: {took['median']:.1f} µs, p99 {took['p99']:.1f} µs")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
