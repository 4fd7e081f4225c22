"""Rounds of kills over a home that works: tasks, schedules, models, deliveries, evolutions, promotions, backups.

A round begins with a fresh home, kills so many times, lets the home come to rest and asks all invariants. Half of the
kills aim at a kill point, the others roll dice: a moment, and what is to die (daemon, gateway, a box, the template).

    python -m tests.torture.storm --kills 1000 --log FILE
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.offline import offline_context
from agentos.daemon.setup import init_home
from agentos.domain import (
    RUNNING_STATES,
    Call,
    Check,
    Delivery,
    DeliveryState,
    Destination,
    Effect,
    Evolution,
    EvolutionState,
    Limits,
    Share,
    Task,
    TaskState,
    new_id,
)
from agentos.errors import AgentOSError
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import ModelServer
from tests.daemon.swapping import as_if_evolved, edit, has_an_engine, signed, source, waiting
from tests.daemon.test_side_by_side import PAIRS, SOURCE
from tests.daemon.thinking_world import (
    KEY,
    KEY_ENV,
    boxes_of,
    free_task,
    furnish,
    gateway_of,
    kill,
    scripted,
    site,
)
from tests.torture.invariants import ENDS, Scene, breaches, served_only_what_passed
from tests.torture.kill_points import BACKUP, DAEMON, PRUNE, RESTORE, KillPoint, Nursery

TURNS = 3
POLICY = "[mine]\nmax_wait_s = 3.0\n[propose]\nbudget_s = 5.0\n[judge]\nfresh_tasks = 0\n"
_PATIENCE_S = 12.0  # until a kill point is reached; then the kill is one of a moment
_CALM_S = 4.0
_DAEMONS = 3
_REST_S = 200.0  # until a home that nobody disturbs has to have come to rest
_KIT = Path(__file__).parents[1] / "daemon" / "kit"
_PURE = (Effect.PURE, Effect.READ, Effect.WRITE)


@dataclass
class World:
    """What outlives a round: a home to copy, the model, a site, and the processes that bear children."""

    place: Path
    template: Home
    server: ModelServer
    posts: Counter[str]
    daemons: Nursery
    commands: Nursery


@contextmanager
def world(place: Path, policy: str = POLICY) -> Iterator[World]:
    """Servers, and a home that knows them, below ``place``."""
    os.environ[KEY_ENV] = KEY
    calm = random.Random(1)
    with ModelServer(scripted(delay=lambda: calm.uniform(0.0, 0.2))) as server, site() as outside:
        home = Home(place / "template")
        init_home(home)
        furnish(home, server.base_url, f"127.0.0.1:{outside.server_port}", settings="parallel = 3")
        files = {
            f"skill/test-kit/{path.relative_to(_KIT).as_posix()}": path.read_bytes()
            for path in _KIT.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        files["skill/exam-one/tools/one.py"] = SOURCE.replace("NAME", "one").encode()
        files["skill/exam-one/SKILL.md"] = b"---\nname: exam-one\ndescription: Grades.\n---\n"
        registry = Registry(home.registry)
        registry.commit(files, "The test kit, and a skill with an honest fault", "edit")
        (home.root / "policy.toml").write_text(policy)
        scratch = place / "scratch"
        scratch.mkdir()
        nurseries = [Nursery(TMPDIR=str(scratch)) for _ in range(2)]
        try:
            yield World(place, home, server, outside.seen, *nurseries)  # type: ignore[attr-defined]
        finally:
            for nursery in nurseries:
                nursery.close()


@dataclass
class Round:
    """One home and its storm."""

    world: World
    number: int
    dice: random.Random
    scene: Scene = field(init=False)
    killed: Counter[str] = field(default_factory=Counter)  # by stage
    backups: list[Path] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        root = self.world.place / f"home-{self.number}"
        shutil.copytree(self.world.template.root, root, symlinks=True)
        before = self.world.server.paid
        self.scene = Scene(
            Home(root),
            paid=lambda: self.world.server.paid - before,
            posts=self.world.posts,
            scratch=self.world.place / "scratch",
        )
        self.ledger = Ledger(self.home.ledger)
        self.schedule = replace(self._task("double", n=0), schedule="* * * * * */7")
        self.ledger.add_task(self.schedule, Share.OPEN, TaskState.SCHEDULED)

    @property
    def home(self) -> Home:
        return self.scene.home

    # --- what the home has to do ----------------------------------------------------------------

    def _task(self, tool: str, *checks: Check, **args: Any) -> Task:
        return Task(new_id("task"), f"{tool} {args}", f"call {tool}", Call(tool, args), (), "default",
                    Limits(wall_s=60.0), _PURE, checks, None, datetime.now(UTC))  # fmt: skip

    def work(self, kill: int) -> None:
        """More to do, of each kind."""
        double = [
            self._task("double", Check("equals", {"value": 2 * n, "path": "n"}), n=n)
            for n in (kill, kill + 1)
        ]
        if kill % 3 == 0:
            folder = self.world.place / "out" / double[0].id
            folder.mkdir(parents=True)
            say = Destination(command=("/bin/sh", "-c", f"echo once >> '{folder}/ran'"))
            double[0] = replace(double[0], deliver=(Destination(folder=str(folder)), say))
            self.scene.delivers[double[0].id] = folder
        self._add(double)
        self.scene.expected |= {task.id: {"n": 2 * task.call.args["n"]} for task in double if task.call}
        if kill % 4 == 1:
            number = f"{self.number}x{kill}"
            task = free_task(f"[work {number} {TURNS}]", limits=Limits(wall_s=600.0))
            self._add([task])
            self.scene.works[task.id] = (number, TURNS)
        if kill % 10 == 2:
            graded = [(p, n, "pass" if p >= n else "fail") for p, n in PAIRS]
            self._add([
                self._task("exam-one/one", Check("equals", {"value": right, "path": "grade"}), points=p, needed=n)
                for p, n, right in graded
            ])  # fmt: skip
        if kill % 6 == 4 and all(item.state(self.home).state in ENDS for item in self.scene.asked):
            self._promotion(kill)
        if kill % 9 == 8:
            registry = Registry(self.home.registry)
            edit(self.home, signed(source(registry), f"person-{kill}"))

    def _add(self, tasks: list[Task]) -> None:
        self.ledger.add_tasks([(task, Share.OPEN, TaskState.QUEUED) for task in tasks])
        self.scene.batches.append([task.id for task in tasks])

    def _promotion(self, kill: int) -> None:
        """A person approves another harness, which was measured good."""
        if not has_an_engine(self.home):
            return
        text = signed(source(Registry(self.home.registry)), f"promoted-{kill}")
        first = next(iter(self.scene.expected))
        item = waiting(self.home, self.ledger, text, [first], judged=True)
        as_if_evolved(self.home, item.evolution.id)
        with suppress(AgentOSError):  # it went stale at once, and awaits nothing any more
            item.approve(self.home)
            self.scene.asked.append(item)

    # --- kills ----------------------------------------------------------------------------------

    def strike(self, number: int) -> None:
        """One kill."""
        kinds = (
            self._aimed,
            self._aimed,
            self._aimed,
            self._at_a_moment,
            self._of_a_helper,
            self._of_a_command,
        )
        self.dice.choice(kinds)()
        self.faults += served_only_what_passed(self.scene)

    def _aimed(self) -> None:
        point = self.dice.choice(DAEMON)
        self._daemon(point)
        self._until_ready()  # or dead
        if self._died(_PATIENCE_S):
            self.killed[point.stage] += 1
        else:
            self._kill_daemon("daemon, not at its point")

    def _at_a_moment(self) -> None:
        self._daemon()
        if self.dice.random() < 0.7:
            self._until_ready()
        time.sleep(self.dice.uniform(0.0, 2.0))  # the moment of the kill, not a wait
        if self.dice.random() < 0.2:
            os.kill(self.pid, signal.SIGTERM)
            time.sleep(self.dice.uniform(0.0, 0.3))
        self._kill_daemon("daemon, at a moment")

    def _of_a_helper(self) -> None:
        """A gateway, a box or the template dies, and the daemon lives on; then it is killed too."""
        self._daemon()
        self._until_ready()
        for _ in range(3):
            time.sleep(self.dice.uniform(0.1, 1.0))  # as above
            name, victim = self.dice.choice(self._helpers() or [("", 0)])
            if victim:
                kill(victim)
                self.killed[name] += 1
        self._kill_daemon("daemon, at a moment")

    def _helpers(self) -> list[tuple[str, int]]:
        gateway = gateway_of(self.pid)
        found = [("gateway", gateway)] if gateway else []
        sandbox, boxes = boxes_of(self.pid)
        if sandbox is not None:
            found.append(("template", sandbox))
        return found + [("box", pid) for pid in boxes]

    def _of_a_command(self) -> None:
        """A backup, a restore or a prune dies beside a daemon at work."""
        self._daemon()
        target = self.world.place / f"backup-{self.number}.tar"
        work, points, args = self.dice.choice(
            [
                ("backup", BACKUP, (self.home.root, target)),
                ("prune", PRUNE, (self.home.root,)),
                ("restore", RESTORE, (self.world.place / f"again-{self.number}" / "home", target)),
            ]
        )
        if work == "restore" and not target.exists():
            work, points, args = "backup", BACKUP, (self.home.root, target)
        self.world.commands.start(work, *args, point=self.dice.choice(points), dice=self.dice)
        code = self.world.commands.wait()
        if code == -signal.SIGKILL:
            self.killed[work] += 1
        elif code:
            self.faults.append(f"{work} ended with {code}")
        if target.exists() and target not in self.backups:
            self.backups.append(target)
        self._kill_daemon("daemon, at a moment")

    def _daemon(self, point: KillPoint | None = None) -> None:
        self.pid = self.world.daemons.start("daemon", self.home.root, point=point, dice=self.dice)

    def _died(self, seconds: float) -> bool:
        return _comes(lambda: not _alive(self.pid), seconds) and self.world.daemons.wait() == -signal.SIGKILL

    def _until_ready(self) -> None:
        if not _comes(self._ready, 60.0):
            self.faults.append("a daemon was not ready after 60 s")

    def _ready(self) -> bool:
        info = daemon_info(self.home)
        return not _alive(self.pid) or (info is not None and info.pid == self.pid and info.ready)

    def _kill_daemon(self, stage: str) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        code = self.world.daemons.wait()
        if code == -signal.SIGKILL:
            self.killed[stage] += 1
        elif code:
            self.faults.append(f"a daemon ended with {code}")

    # --- the end --------------------------------------------------------------------------------

    def rest(self) -> list[str]:
        """Nobody disturbs it until it has nothing to do; every breach that is found then."""
        self.ledger.set_task_state(self.schedule.id, (TaskState.SCHEDULED,), TaskState.CANCELLED)
        for _ in range(_DAEMONS):  # a probe that a busy machine made late is tried again by the next daemon
            self._daemon()
            self._until_ready()
            _comes(self._quiet, _REST_S)
            left = self._under_way()
            os.kill(self.pid, signal.SIGTERM)
            if not _comes(lambda: not _alive(self.pid), 60.0):
                self.faults.append("a daemon did not drain")
                os.kill(self.pid, signal.SIGKILL)
            self.world.daemons.wait()
            if not left:
                break
        else:
            self.faults.append(f"it did not come to rest: {left}")
        self.faults += breaches(self.scene)
        for target in self.backups:
            self._restored(target)
        self.ledger.close()
        return self.faults

    def _quiet(self) -> bool:
        """Nothing is under way, nor begins soon after: what was mined last may open an evolution."""
        return not self._under_way() and not _comes(lambda: bool(self._under_way()), _CALM_S)

    def _under_way(self) -> str:
        reader, registry = Reader(self.home.ledger), Registry(self.home.registry)
        if open_tasks := [*reader.tasks(TaskState.QUEUED), *reader.tasks(TaskState.RUNNING)]:
            return f"{len(open_tasks)} tasks"
        evolutions = [item for state in RUNNING_STATES for item in reader.find(Evolution, state=state)]
        waits = [
            item
            for item in self.scene.asked
            if item.state(self.home).state is EvolutionState.AWAITING_CONSENT
        ]
        if evolutions or waits:
            return f"evolutions {[(item.id, item.state.value) for item in evolutions]}, {len(waits)} approved"
        if reader.find(Delivery, state=DeliveryState.PENDING.value):
            return "deliveries"
        return "" if registry.last_good() == registry.stable() else "main is not served"

    def _restored(self, target: Path) -> None:
        root = self.world.place / f"restored-{self.number}"
        self.world.commands.start("restore", root, target)
        if code := self.world.commands.wait():
            self.faults.append(f"a whole backup could not be restored: exit code {code}")
            return
        with offline_context(Home(root)):
            pass
        shutil.rmtree(root)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _comes(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def one_round(around: World, number: int, kills: int, seed: int) -> Round:
    """A home that was killed so often, and what is wrong with it afterwards in ``faults``."""
    made = Round(around, number, random.Random(seed))
    for kill_number in range(kills):
        made.work(kill_number)
        made.strike(kill_number)
    made.rest()
    return made


def main() -> int:
    """Rounds until so many kills; a line of JSON for each on the log. 1 when an invariant was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--round", type=int, default=30, help="kills of one home")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--log", type=Path, default=Path("torture.jsonl"))
    parser.add_argument("--place", type=Path, default=None, help="homes with a breach are kept here")
    given = parser.parse_args()
    place = given.place or Path(tempfile.mkdtemp(prefix="torture-"))
    place.mkdir(exist_ok=True)
    killed: Counter[str] = Counter()
    number = broken = tasks = evolutions = 0
    with world(place) as around:
        while killed.total() < given.kills:
            number += 1
            began = time.monotonic()
            done = one_round(around, number, given.round, given.seed + number)
            reader = Reader(done.home.ledger)
            ends = Counter(item.state.value for item in reader.find(Evolution))
            line: dict[str, object] = {
                "round": number,
                "seed": given.seed + number,
                "seconds": round(time.monotonic() - began),
                "kills": done.killed,
                "tasks": len(reader.tasks()),
                "runs": len(reader.runs()),
                "evolutions": ends,
                "faults": done.faults,
            }
            reader.close()
            with given.log.open("a") as log:
                log.write(json.dumps(line) + "\n")
            killed += done.killed
            tasks += int(str(line["tasks"]))
            evolutions += ends.total()
            broken += bool(done.faults)
            print(
                f"{killed.total()} kills, {tasks} tasks, {evolutions} evolutions, {broken} rounds with a breach",
                flush=True,
            )
            for fault in done.faults:
                print(f"  {fault}", flush=True)
            if not done.faults:
                shutil.rmtree(done.home.root)
    print(json.dumps(killed), flush=True)
    if not broken:
        shutil.rmtree(place)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
