"""Places in the product at which a process kills itself, and children that do so.

A point is a function of the product, killed with SIGKILL before or after its n-th call; nothing of what the
function does is replaced. A name that is gone fails loudly: aims are renamed with what they aim at.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class KillPoint:
    """``target`` is module:function or module:Class.method; ``saying``: only calls whose arguments say that."""

    stage: str
    target: str
    saying: str = ""
    most: int = 1  # the call is one of the first so many


_LEDGER = "agentos.ledger.store:Ledger"
_REGISTRY = "agentos.registry.store:Registry"

# Of the daemon, by the stage that they are in.
DAEMON = (
    KillPoint("start", "agentos.daemon.engine:Engine.launch"),
    KillPoint("start", "agentos.daemon.control.daemon_lock:DaemonLock.ready"),
    KillPoint("start", "agentos.daemon.tick:Tick.resume"),
    KillPoint("run", f"{_LEDGER}.begin_run", most=4),
    KillPoint("run", f"{_LEDGER}.append_step", most=12),
    KillPoint("run", "agentos.daemon.run.tasks:HeldSteps.add", most=12),
    KillPoint("run", f"{_LEDGER}.finish_run", most=4),
    KillPoint("run", "agentos.ledger.blobs:BlobStore.put", most=20),
    KillPoint("run", "os:fsync", most=60),
    KillPoint("run", "os:rename", most=20),
    KillPoint("gateway", "agentos.gateway.client:GatewaySession.complete", most=3),
    KillPoint("egress", "agentos.daemon.requests.egress:Egress.answer", most=3),
    KillPoint("schedule", "agentos.daemon.scheduling.schedules:start_copy"),
    KillPoint("schedule", "agentos.daemon.scheduling.schedules:_remember", most=2),
    KillPoint("delivery", "agentos.daemon.run.delivery:Deliverer._attempt", most=2),
    KillPoint("mining", f"{_LEDGER}.advance", most=2),
    KillPoint("evidence", f"{_LEDGER}.note", saying="evidence.sealed"),
    KillPoint("reproduce", f"{_LEDGER}.put", saying="REPRODUCING"),
    KillPoint("propose", f"{_REGISTRY}.add_candidate", most=2),
    KillPoint("replay", f"{_LEDGER}.put", saying="Trial(", most=16),
    KillPoint("replay", f"{_LEDGER}.put", saying="REPLAYING"),
    KillPoint("verdict", f"{_LEDGER}.note", saying="verdict"),
    KillPoint("promotion", f"{_LEDGER}.put", saying="PROMOTING"),
    KillPoint("promotion", f"{_REGISTRY}.promote"),
    KillPoint("promotion", "agentos.registry.git.repository:Repository.move", most=4),
    KillPoint("promotion", f"{_LEDGER}.note", saying="evolution.probation"),
    KillPoint("swap", "agentos.evolver.promote.probing:probe"),
    KillPoint("swap", f"{_LEDGER}.put", saying="Probe("),
    KillPoint("swap", f"{_REGISTRY}.mark_good"),
    KillPoint("upkeep", f"{_LEDGER}.pack_trials"),
    KillPoint("upkeep", f"{_REGISTRY}.maintain"),
)

# Of commands beside it.
BACKUP = (
    KillPoint("backup", "agentos.daemon.upkeep.backup:copy_database", most=3),
    KillPoint("backup", "agentos.daemon.upkeep.backup:_bundle"),
    KillPoint("backup", "agentos.daemon.upkeep.backup:_Archive._add", most=60),
    KillPoint("backup", "agentos.daemon.upkeep.backup:verify_backup"),
    KillPoint("backup", "os:fsync", most=2),
)
RESTORE = (
    KillPoint("restore", "agentos.daemon.upkeep.backup:_taken", most=60),
    KillPoint("restore", "agentos.daemon.upkeep.backup:_unbundle"),
    KillPoint("restore", "agentos.daemon.upkeep.backup:verify_home"),
    KillPoint("restore", "agentos.daemon.upkeep.backup:_put"),
)
PRUNE = (
    KillPoint("prune", f"{_LEDGER}.prune", most=2),
    KillPoint("prune", f"{_LEDGER}.note", saying="retention"),
    KillPoint("prune", "agentos.ledger.blobs:BlobStore.remove", most=20),
)
MIGRATE = (
    KillPoint("migration", "agentos.ledger.connect:_keep_copy"),
    KillPoint("migration", "alembic.operations.base:Operations.execute", most=6),
    KillPoint("migration", "alembic.command:upgrade"),
    KillPoint("migration", "os:rename"),
)
# Between failing runs and a promotion, without a daemon.
EVOLVE = (
    *(
        KillPoint("run", f"{_LEDGER}.{name}", most=14)
        for name in ("add_task", "begin_run", "append_step", "finish_run")
    ),
    *(
        point
        for point in DAEMON
        if point.stage in ("mining", "evidence", "reproduce", "propose", "replay", "verdict", "promotion")
    ),
    KillPoint("replay", f"{_LEDGER}.put", saying="Trial(", most=60),
    KillPoint("verdict", f"{_LEDGER}.put", saying="Verdict("),
    KillPoint("consent", f"{_LEDGER}.note", saying="consent"),
    KillPoint("promotion", "agentos.registry.writing:advance"),
    KillPoint("promotion", "agentos.evolver.promote.promotion:attest_replay"),
    KillPoint("promotion", "os:fsync", most=80),
    KillPoint("promotion", "os:rename", most=30),
)
ALL = (*DAEMON, *EVOLVE, *BACKUP, *RESTORE, *PRUNE, *MIGRATE)


def arm(point: Mapping[str, Any], nth: int, *, after: bool) -> None:
    """Kill this process before or after the nth call of the point."""
    owner, name = find(str(point["target"]))
    original = getattr(owner, name)
    left, lock = [nth], threading.Lock()

    def deadly(*args: Any, **more: Any) -> Any:
        with lock:
            left[0] -= not point["saying"] or any(str(point["saying"]) in repr(value)[:400] for value in args)
            strikes = left[0] == 0
            left[0] -= strikes
        if strikes and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = original(*args, **more)
        if strikes:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, deadly)
    if not isinstance(owner, type):  # whoever imported the function has it under a name of its own
        for module in [*sys.modules.values()]:
            for known, value in [*getattr(module, "__dict__", {}).items()]:
                if value is original and known != "original":
                    setattr(module, known, deadly)


def find(target: str) -> tuple[Any, str]:
    """Whose attribute the point is, and its name. Raises AttributeError and ImportError."""
    module, _, path = target.partition(":")
    owner: Any = importlib.import_module(module)
    *above, name = path.split(".")
    for part in above:
        owner = getattr(owner, part)
    getattr(owner, name)
    return owner, name


# --- children -----------------------------------------------------------------------------------


def _daemon(root: str) -> None:
    from agentos.daemon.process import run_daemon
    from agentos.daemon.run import tasks
    from agentos.home import Home

    # a few tasks meet many kills here: they would be given up after three
    tasks.MAX_ATTEMPTS = tasks.MAX_DEATHS = 1_000
    run_daemon(Home(Path(root)), console=False)


def _backup(root: str, target: str) -> None:
    from agentos.daemon.upkeep.backup import back_up
    from agentos.home import Home

    back_up(Home(Path(root)), Path(target), replace=True)


def _restore(root: str, source: str) -> None:
    from agentos.daemon.upkeep.backup import restore
    from agentos.home import Home

    restore(Home(Path(root)), Path(source), replace=True)


def _prune(root: str) -> None:
    from datetime import UTC, datetime, timedelta

    from agentos.daemon.upkeep.retention import prune
    from agentos.home import Home
    from agentos.ledger import retention
    from agentos.settings import Retention

    retention.NEWEST_OF_EACH = 2
    prune(Home(Path(root)), datetime.now(UTC) + timedelta(days=400), Retention(days=1, gb=0), apply=True)


def _evolve(root: str) -> None:
    """Everything between failing runs and a promotion, or what is left of it."""
    from agentos.daemon.offline import offline_context
    from agentos.domain import RUNNING_STATES, Evolution, Share
    from agentos.evolver.cycle import evolve
    from agentos.evolver.find.mining import mine
    from agentos.evolver.find.triage import triage
    from agentos.home import Home
    from agentos.registry.store import Registry
    from agentos.testing import Undurable
    from tests.cli.evolved_home import live, run_all, tool_script, without_boxes

    home = Home(Path(root))
    registry = Registry(home.registry)
    with offline_context(home) as parts:
        parts = without_boxes(parts, registry)
        if not parts.records.find(Evolution):
            run_all(parts, registry)
        mine(parts)
        triage(parts)
        for evolution in parts.records.find(Evolution):
            if evolution.state in RUNNING_STATES:
                evolve(parts, evolution.id, Undurable())
        live(parts.records, parts.snapshots.stable(), tool_script(registry), 50, 99, Share.OPEN)


def _migrate(ledger: str) -> None:
    from agentos.ledger.store import Ledger

    if (old := Path(ledger)).exists():
        Ledger(old).close()
        for name in ("-wal", "-shm"):
            old.with_name(f"ledger.db{name}").unlink(missing_ok=True)
        old.rename(old.with_name("ledger.db"))


WORK: Mapping[str, Callable[..., None]] = {
    "daemon": _daemon,
    "backup": _backup,
    "restore": _restore,
    "prune": _prune,
    "evolve": _evolve,
    "migrate": _migrate,
}


_NEEDED = (
    "alembic.command",
    "alembic.operations.base",
    "agentos.daemon.upkeep.backup",
    "agentos.daemon.process",
    "agentos.daemon.upkeep.retention",
    "tests.cli.evolved_home",
)


def _serve() -> None:
    """Imports once and forks a child for each line: most of a start is importing, and the rest is to be killed."""
    for name in _NEEDED:
        importlib.import_module(name)
    print("born", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setsid()
            try:
                if order["point"]:
                    arm(order["point"], order["nth"], after=order["after"])
                WORK[order["work"]](*order["args"])
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 - said to whoever waits
                print(f"{order['work']}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


class Nursery:
    """Bears children that work on a home, one at a time."""

    def __init__(self, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from tests.torture.kill_points import _serve; _serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | environment,
        )
        self._code: int | None = 0
        assert self._line() == "born"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(
        self, work: str, *args: object, point: KillPoint | None = None, dice: random.Random | None = None
    ) -> int:
        """The child's pid. With a point it kills itself there, at a call and on a side that the dice choose."""
        dice = dice or random.Random()
        order = {
            "work": work,
            "args": [str(arg) for arg in args],
            "point": asdict(point) if point else None,
            "nth": dice.randint(1, point.most) if point else 0,
            "after": dice.random() < 0.5,
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        self._code = None
        return int(self._line())

    def wait(self) -> int:
        """Until the child is gone; its exit code, -9 if it was killed."""
        if self._code is None:
            self._code = int(self._line())
        return self._code

    def close(self) -> None:
        """No child may live."""
        self.process.communicate()
