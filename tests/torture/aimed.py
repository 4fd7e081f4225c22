"""Kills at every kind of point between failing runs and a promotion, and of a backup, restore, prune and migration.

No boxes: runs are made in the process itself, so that a kill costs a fraction of a second. Ledger, registry, blobs,
consent and judge are the real ones. A case is a home that is killed until it has come to its end all the same.

    python -m tests.torture.aimed --kills 1000
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from alembic import command
from alembic.config import Config

from agentos.daemon.setup import init_home
from agentos.home import Home
from agentos.ledger.connect import _engine
from agentos.registry.store import Registry
from tests.cli.evolved_home import commit_fault, evolve_home
from tests.torture.invariants import Scene, breaches
from tests.torture.kill_points import BACKUP, EVOLVE, MIGRATE, PRUNE, RESTORE, KillPoint, Nursery

OLD = "0006"  # the revision that ledgers are brought up from


@dataclass
class Aims:
    """Homes to copy, a process that bears children, and what came of the kills."""

    place: Path
    nursery: Nursery
    dice: random.Random
    killed: Counter[str] = field(default_factory=Counter)  # by stage
    hit: Counter[str] = field(default_factory=Counter)  # by target and side
    faults: list[str] = field(default_factory=list)
    cases: int = 0

    @classmethod
    def prepared(cls, place: Path, seed: int) -> Aims:
        """With a home before an evolution, and one after it, below ``place``."""
        before, after = Home(place / "before"), Home(place / "after")
        init_home(before)
        shutil.copytree(before.root, after.root, symlinks=True)
        commit_fault(Registry(before.registry))
        evolve_home(after)
        return cls(place, Nursery(), random.Random(seed))

    def case(self, number: int) -> None:
        """Evolve, back up, restore, prune and migrate one home, killed again and again meanwhile."""
        root = self.place / f"home-{number}"
        shutil.copytree(self.place / "before", root, symlinks=True)
        scene = Scene(Home(root))
        self.cases += 1
        self._until_done("evolve", EVOLVE, 6, root)
        backup, again = self.place / "backups" / "home.tar", self.place / "again" / "home"
        for folder in (backup.parent, again.parent):
            folder.mkdir(exist_ok=True)
        self._until_done("backup", BACKUP, 2, root, backup)
        self._until_done("restore", RESTORE, 2, again, backup)
        self._said(number, Scene(Home(again)))
        self._until_done("prune", PRUNE, 2, root)
        self._until_done("migrate", MIGRATE, 3, _as_of_old(root))
        self._said(number, scene)
        left = [path.name for folder in (backup.parent, again.parent) for path in folder.iterdir()]
        old = [name for name in left if name.startswith("home.before-")]
        if strange := {*left} - {*old, "home", "home.tar"}:
            self.faults.append(f"case {number}: left beside a backup and a restored home: {sorted(strange)}")
        for folder in (root, backup.parent, again.parent):
            shutil.rmtree(folder)

    def _said(self, number: int, scene: Scene) -> None:
        self.faults += [f"case {number}: {fault}" for fault in breaches(scene)]

    def _until_done(self, work: str, points: Sequence[KillPoint], kills: int, *args: object) -> None:
        """Do it, killed so often at points that the dice choose, early ones first; the last time nobody kills."""
        for which in sorted(self.dice.choices(range(len(points)), k=kills)):
            point = points[which]
            self.nursery.start(work, *args, point=point, dice=self.dice)
            code = self.nursery.wait()
            if code == -signal.SIGKILL:
                self.killed[point.stage] += 1
                self.hit[point.target.partition(":")[2] + (f" {point.saying}" if point.saying else "")] += 1
            elif code:
                self.faults.append(f"{work} ended with {code} on the way to {point}")
        self.nursery.start(work, *args)
        if code := self.nursery.wait():
            self.faults.append(f"{work} ended with {code} after kills")


def _as_of_old(root: Path) -> Path:
    """The home's ledger as a program of old would have made it; rows that it knew no table for stay away."""
    new, old = root / "ledger.db", root / "old.db"
    engine = _engine(old)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "agentos.ledger:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, OLD)
    engine.dispose()
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("ATTACH ? AS newer", (str(new),))
        names = "SELECT name FROM {}.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        tables = {name for (name,) in connection.execute(names.format("main"))} - {"alembic_version"}
        for table in sorted(tables & {name for (name,) in connection.execute(names.format("newer"))}):
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM newer.{table}")
    return old


def main() -> int:
    """Cases until so many kills; 1 when an invariant was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="torture-aimed-"))
    aims = Aims.prepared(place, given.seed)
    told = 0
    while aims.killed.total() < given.kills:
        aims.case(aims.cases)
        if aims.cases % 10 == 0 or len(aims.faults) > told:
            print(
                f"{aims.killed.total()} kills in {aims.cases} homes, {len(aims.faults)} breaches", flush=True
            )
            print("".join(f"  {fault}\n" for fault in aims.faults[told:]), end="", flush=True)
            told = len(aims.faults)
    aims.nursery.close()
    print(json.dumps({"kills": aims.killed, "at": aims.hit, "breaches": aims.faults}), flush=True)
    shutil.rmtree(place)
    return bool(aims.faults)


if __name__ == "__main__":
    sys.exit(main())
