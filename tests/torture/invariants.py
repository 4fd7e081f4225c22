"""What holds of a home whatever was killed, once it has come to rest: no daemon runs, nothing is queued.

Each invariant is a function that yields a sentence for each breach; ``breaches`` asks all of them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from agentos.daemon.upkeep.auditing import verify_home
from agentos.daemon.upkeep.doctor import _OURS, examine
from agentos.domain import (
    RUNNING_STATES,
    Delivery,
    DeliveryState,
    Evidence,
    Evolution,
    EvolutionState,
    Probe,
    Result,
    Run,
    TaskState,
    Trial,
)
from agentos.evolver.promote.promotion import driving_sha256
from agentos.home import Home
from agentos.ledger.listing import newest_open_runs
from agentos.ledger.reading import Reader
from agentos.registry.git import environment
from agentos.registry.store import Registry
from tests.daemon.swapping import Waiting, mixed

MADE = (EvolutionState.PROBATION, EvolutionState.PROMOTED)
ENDS = (*MADE, EvolutionState.STALE, EvolutionState.ROLLED_BACK)


@dataclass
class Scene:
    """A home, and what was done to it and by it as those saw it who stand outside."""

    home: Home
    # task id -> right answer, of those that must pass
    expected: dict[str, object] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)  # ids of tasks that were added together
    asked: list[Waiting] = field(default_factory=list)  # promotions that a person approved
    # task id -> number and turns, where a model is asked
    works: dict[str, tuple[str, int]] = field(default_factory=dict)
    delivers: dict[str, Path] = field(default_factory=dict)  # task id -> its folder
    posts: Counter[str] = field(default_factory=Counter)  # what a site saw, by path
    paid: Callable[[], int] = lambda: 0  # calls that the model's provider charged
    scratch: Path | None = None  # the folder for temporary files


def breaches(scene: Scene) -> list[str]:
    """Every breach of every invariant, with its name before it."""
    return [f"{name}: {why}" for name, look in INVARIANTS.items() for why in look(scene)]


# --- tasks --------------------------------------------------------------------------------------


def no_task_lost(scene: Scene) -> Iterator[str]:
    """Each task that was added is there and done, or a schedule."""
    reader = Reader(scene.home.ledger)
    known = {view.task.id: view.state for view in reader.tasks()}
    for task_id in {*scene.expected, *scene.works}:
        if known.get(task_id) is not TaskState.DONE:
            yield f"{task_id} is {known.get(task_id, 'gone')}"
    for task_id, state in known.items():
        if state in (TaskState.QUEUED, TaskState.RUNNING):
            yield f"{task_id} is {state}"


def each_counts_once(scene: Scene) -> Iterator[str]:
    """A task that is done has exactly one run that counts, with the right answer; all others are ``infra``."""
    reader = Reader(scene.home.ledger)
    for view in reader.tasks(TaskState.DONE):
        runs = reader.runs(view.task.id)
        counted = counting(runs)
        if len(counted) != 1:
            yield f"{view.task.id} has {len(counted)} runs that count: {[run.outcome for run in runs]}"
        elif view.task.id in scene.expected and (
            counted[0].outcome is None
            or counted[0].outcome.result is not Result.PASSED
            or counted[0].answer != scene.expected[view.task.id]
        ):
            yield f"{view.task.id} ended {counted[0].outcome} with {counted[0].answer}"


def counting(runs: Sequence[Run]) -> list[Run]:
    """Those that ended and were not lost."""
    return [run for run in runs if run.outcome and run.outcome.result is not Result.INFRA]


def attempts_are_whole(scene: Scene) -> Iterator[str]:
    """Attempts are numbered without gaps, and none is left open."""
    reader = Reader(scene.home.ledger)
    for view in reader.tasks():
        numbers = sorted(run.attempt for run in reader.runs(view.task.id))
        if numbers != [*range(1, len(numbers) + 1)]:
            yield f"{view.task.id} has the attempts {numbers}"
    yield from (f"{run.id} is open" for run in newest_open_runs(reader, 100))


def lists_are_whole(scene: Scene) -> Iterator[str]:
    """Of tasks that were added together all are there, or none."""
    known = {view.task.id for view in Reader(scene.home.ledger).tasks()}
    for batch in scene.batches:
        if 0 < len(known & {*batch}) < len(batch):
            yield f"{len(known & {*batch})} of {len(batch)} tasks of a list"


# --- what happens outside -----------------------------------------------------------------------


def acts_once(scene: Scene) -> Iterator[str]:
    """Nothing that a run does outside is done twice."""
    yield from (f"{path} was posted {count} times" for path, count in scene.posts.items() if count > 1)


def delivers_once(scene: Scene) -> Iterator[str]:
    """Each delivery has ended, lies there once, and its command ran at most once."""
    for item in Reader(scene.home.ledger).find(Delivery):
        if item.state is DeliveryState.PENDING:
            yield f"{item.id} is still to be done"
        elif item.state is DeliveryState.FAILED and not item.command_began:
            yield f"{item.id} failed: {item.reason}"
    for task_id, folder in scene.delivers.items():
        files = [path.name for path in folder.glob("*") if path.name != "ran"]
        if len(files) != 1:
            yield f"{task_id} delivered {files}"
        ran = (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else []
        if len(ran) > 1:
            yield f"the command of {task_id} ran {len(ran)} times"


def pays_once(scene: Scene) -> Iterator[str]:
    """Each model call, also of trials and probes, is on record as the provider charged it, and is over."""
    if not scene.works:
        return
    with closing(sqlite3.connect(scene.home.calls)) as record:
        calls = record.execute("SELECT state, served_from FROM calls").fetchall()
    states = Counter(state for state, _ in calls)
    if not states.keys() <= {"done", "moved"}:
        yield f"model calls ended {dict(states)}"
    asked = sum(state == "done" and not served_from for state, served_from in calls)
    if asked != scene.paid():
        yield f"{asked} model calls are on record and {scene.paid()} were paid"


def goes_on_from_its_record(scene: Scene) -> Iterator[str]:
    """Whatever one attempt saw, all that came after it saw the same, and the last one left all files."""
    reader = Reader(scene.home.ledger)
    for task_id, (number, turns) in scene.works.items():
        runs = reader.runs(task_id)
        if runs:
            yield from ended_wrong(reader, runs, number, turns)


def ended_wrong(reader: Reader, runs: Sequence[Run], number: str, turns: int) -> Iterator[str]:
    """What is different in a ``[work NUMBER TURNS]`` from one that nobody disturbed. ``runs``: newest first."""
    newest, *lost = runs
    if newest.outcome is None or newest.outcome.result is not Result.PASSED:
        yield f"{newest.id} ended {newest.outcome}"
        return
    if not {run.outcome.result for run in lost if run.outcome} <= {Result.INFRA}:
        yield f"{newest.task_id} has runs that count beside the newest"
    if (newest.answer["number"], newest.answer["turns"]) != (number, turns):
        yield f"{newest.id} answered {newest.answer}"
    if {file.path for file in newest.outputs} != {f"{number}-{turn}" for turn in range(turns)}:
        yield f"{newest.id} left {[file.path for file in newest.outputs]}"
    first: dict[str, str] = {}
    for run in [*lost[::-1], newest]:
        for step in reader.steps(run.id):
            if step.node == "act" and step.fault is None and step.action["tool"] == "look":
                key, output = json.dumps(step.action["args"]), step.observation["output"]["text"]
                if first.setdefault(key, output) != output:
                    yield f"{run.id} saw something else than the attempt before it"


# --- evolutions ---------------------------------------------------------------------------------


def no_half_promotion(scene: Scene) -> Iterator[str]:
    """Each promotion that the ledger calls made is one commit on ``main``, each other is none."""
    commits = _messages(scene.home)
    for evolution in Reader(scene.home.ledger).find(Evolution):
        count = sum(f"\nEvolution: {evolution.id}\n" in message + "\n" for message in commits)
        made = evolution.state in MADE or bool(evolution.state is EvolutionState.ROLLED_BACK and count)
        if count != made:
            yield f"{evolution.id} is {evolution.state} and has {count} commits"


def _messages(home: Home) -> list[str]:
    registry = Registry(home.registry)
    return [str(commit.message) for commit in registry.repository.git.walk(registry.stable().commit)]


def no_evolution_is_stuck(scene: Scene) -> Iterator[str]:
    """None is under way, and none was cut down by an error of the machinery."""
    for evolution in Reader(scene.home.ledger).find(Evolution):
        if evolution.state in RUNNING_STATES or evolution.state is EvolutionState.CANCELLED:
            yield f"{evolution.id} is {evolution.state}: {evolution.reason}"


def no_trial_twice(scene: Scene) -> Iterator[str]:
    """A trial is on record once, and evidence is sealed once for a batch of runs."""
    reader = Reader(scene.home.ledger)
    for evolution in reader.find(Evolution):
        trials = reader.find(Trial, evolution_id=evolution.id)
        keys = Counter(
            (
                item.candidate_id,
                item.task_id,
                item.set,
                item.arm,
                item.repeat,
                item.number,
                item.snapshot.commit,
                item.look,
            )
            for item in trials
        )
        yield from (f"{evolution.id} has {count} trials {key}" for key, count in keys.items() if count > 1)
    sealed = Counter(item.sha256 for item in reader.find(Evidence))
    yield from (
        f"evidence {sha256[:12]} was sealed {count} times" for sha256, count in sealed.items() if count > 1
    )


def served_only_what_passed(scene: Scene) -> Iterator[str]:
    """``last-good`` is a snapshot that passed its probe, at any moment."""
    registry = Registry(scene.home.registry)
    good = registry.last_good()
    probed = {probe.driving_sha256 for probe in Reader(scene.home.ledger).find(Probe) if probe.passed}
    if good is not None and driving_sha256(registry, good) not in probed:
        yield f"{good.commit[:12]} is served and passed no probe"


def no_run_is_mixed(scene: Scene) -> Iterator[str]:
    """A run is driven by one harness, which had passed its probe."""
    yield from filter(None, (mixed(scene.home, run) for run in Reader(scene.home.ledger).runs()))


# --- stores -------------------------------------------------------------------------------------


def all_agrees(scene: Scene) -> Iterator[str]:
    """The chain is whole; rows, entries, blobs and ``main`` agree; verdicts and consents are computed again."""
    yield from Reader(scene.home.ledger).verify()
    yield from verify_home(scene.home).faults


def databases_are_whole(scene: Scene) -> Iterator[str]:
    """SQLite finds nothing in any of them."""
    for path in scene.home.root.glob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            if (said := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
                yield f"{path.name}: {said}"


def registry_is_whole(scene: Scene) -> Iterator[str]:
    """Git and the registry's own check find nothing, and nothing had to be repaired."""
    report = Registry(scene.home.registry).check()
    yield from report.faults
    if report.repaired:
        yield f"{report.repaired} tags were missing"
    done = _fsck(scene.home)
    yield from (line for line in done if line)


def _fsck(home: Home) -> list[str]:
    done = subprocess.run(
        ["git", f"--git-dir={home.registry}", "fsck", "--no-dangling", "--no-progress"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


def nothing_is_left(scene: Scene) -> Iterator[str]:
    """No box, control group, half-written or temporary file, and no process of this home."""
    found = (finding.what for finding in examine(scene.home, fix=False, full=True))
    # a daemon clears them after an hour
    yield from (what for what in found if "half-written blob" not in what)
    if scene.scratch is not None:
        # doctor clears those
        left = (path.name for path in scene.scratch.glob("*") if not _OURS.match(path.name))
        yield from (f"a temporary file is left: {name}" for name in left)
    for pid in (name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(scene.home.root) in words and "pytest" not in words and "torture" not in words:
            yield f"process {pid} is left: {words[:200]}"


INVARIANTS: Mapping[str, Callable[[Scene], Iterator[str]]] = {
    look.__name__: look
    for look in (
        no_task_lost,
        each_counts_once,
        attempts_are_whole,
        lists_are_whole,
        acts_once,
        delivers_once,
        pays_once,
        goes_on_from_its_record,
        no_half_promotion,
        no_evolution_is_stuck,
        no_trial_twice,
        served_only_what_passed,
        no_run_is_mixed,
        all_agrees,
        databases_are_whole,
        registry_is_whole,
        nothing_is_left,
    )
}
