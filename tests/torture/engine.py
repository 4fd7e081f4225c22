"""A container engine that is restarted while tasks run in its containers, by SIGTERM or killed, now and then with the daemon.

The engine is one of the torture's own, so that no container of anybody else ends. It needs root, ``dockerd`` and containerd.

    python -m tests.torture.engine --kills 20
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentos.domain import Check
from agentos.errors import Unavailable
from agentos.sandboxes.docker.engine import DockerEngine, answering
from agentos.sandboxes.docker.image import build_from_host
from tests.torture.storm import Round, World, _alive, _comes, world

_START_S = 60.0


class Engine:
    """dockerd below ``place``: without a network, and with images as plain folders."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._runtime = self._begun(
            "containerd",
            "--root",
            place / "images",
            "--state",
            place / "state",
            "--address",
            place / "runtime",
        )
        self._until((place / "runtime").exists)
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        place = self._place
        self._process = self._begun(
            "dockerd", "--data-root", place / "data", "--exec-root", place / "exec", "--pidfile", place / "pid",
            "--containerd", place / "runtime", "--host", f"unix://{place}/docker.sock", "--storage-driver", "vfs",
            "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
        )  # fmt: skip
        self._until(self._answers)

    def _begun(self, *words: str | Path) -> subprocess.Popen[bytes]:
        with (self._place / "log").open("ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)

    def _until(self, condition: Callable[[], bool]) -> None:
        if not _comes(condition, _START_S):
            raise RuntimeError((self._place / "log").read_text()[-2000:])

    def _answers(self) -> bool:
        engine = DockerEngine()
        try:
            with answering():
                return bool(engine.api.ping())
        except Unavailable:
            return False
        finally:
            engine.close()

    def stop(self, by: signal.Signals) -> None:
        """SIGTERM ends its containers with it; killed, it leaves them to the next start, which ends them."""
        self._process.send_signal(by)
        self._process.wait(60)
        for name in ("pid", "docker.sock"):
            (self._place / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Both processes are gone."""
        self.stop(signal.SIGTERM)
        self._runtime.terminate()
        self._runtime.wait(60)
        # dockerd mounts its folder onto itself
        subprocess.run(["umount", self._place / "data"], stderr=subprocess.DEVNULL, check=False)


@dataclass
class Restarts(Round):
    """One home whose engine goes and comes."""

    engine: Engine | None = None
    pid: int = 0

    def work(self, kill: int) -> None:
        """Tasks that are short, so that containers are being made, greeted, at work and removed at once."""
        tasks = [
            self._task("double", Check("equals", {"value": 2 * n, "path": "n"}), n=n)
            for n in range(kill, kill + 3)
        ]
        self._add(tasks)
        self.scene.expected |= {task.id: {"n": 2 * task.call.args["n"]} for task in tasks if task.call}

    def strike(self, number: int) -> None:
        """The engine goes at a moment that the dice choose, and comes back."""
        assert self.engine is not None
        if not self.pid or not _alive(self.pid):
            self._daemon()
            self._until_ready()
        time.sleep(self.dice.uniform(0.0, 2.0))  # the moment, not a wait
        by = self.dice.choice([signal.SIGKILL, signal.SIGTERM])
        self.engine.stop(by)
        self.killed[f"engine, {by.name}"] += 1
        time.sleep(self.dice.uniform(0.0, 1.5))  # as above
        if self.dice.random() < 0.25:
            self._kill_daemon("daemon, without an engine")
        self.engine.start()

    def rest(self) -> list[str]:
        """As a round's, after the daemon that saw the last restart."""
        if _alive(self.pid):
            self._kill_daemon("daemon, at the end")
        return super().rest()


def one_home(around: World, engine: Engine, kills: int, seed: int) -> Restarts:
    """So many restarts of the engine of one home, which then comes to rest."""
    made = Restarts(around, 1, random.Random(seed), engine=engine)
    for number in range(kills):
        made.work(number)
        made.strike(number)
    made.rest()
    return made


def main() -> int:
    """1 when an invariant was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if os.geteuid() or not all(map(shutil.which, ("dockerd", "containerd"))):
        print("no restarts of a container engine: they need root, dockerd and containerd")
        return 0
    place = Path(tempfile.mkdtemp(prefix="torture-"))
    os.environ["DOCKER_HOST"] = f"unix://{place}/docker.sock"
    engine = Engine(place)
    try:
        own = DockerEngine()
        build_from_host(own)
        own.close()
        with world(place) as around:
            settings = around.template.settings
            settings.write_text('sandbox = "docker"\n' + settings.read_text())
            done = one_home(around, engine, given.kills, given.seed)
    finally:
        engine.close()
    print(json.dumps({"kills": done.killed, "tasks": len(done.scene.expected), "breaches": done.faults}))
    if not done.faults:
        shutil.rmtree(place, ignore_errors=True)
    return bool(done.faults)


if __name__ == "__main__":
    sys.exit(main())
