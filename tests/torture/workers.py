"""Workers, the control process and the connections between them, killed, stopped and cut while tasks run on three workers.

Every task must come to its end with the right answer, once, and what it asks of the outside be asked at most once. Where
libfaketime is installed one worker's clock is ten minutes ahead; as root, the disk of a worker's notes fills up.

    python -m tests.torture.workers --faults 40
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agentos.daemon.control import tokens
from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.control.workers import cluster_view
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.auditing import verify_home
from agentos.domain import Call, Check, Effect, Limits, Result, Share, Task, TaskState, new_id
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.reaper import leftovers
from tests.command_server import Command, command_server
from tests.loopback import held_port

LOST_S = 5
_DOUBT = "may or may not have happened"
_LONG_S = 60.0
_CLOCK = sorted(map(str, Path("/usr/lib").glob("*/faketime/libfaketime.so.1")))
_AHEAD = "three"  # whose clock is ten minutes ahead
_ROOM = 256 << 10  # bytes of a worker's notes, where that can be arranged
_KIT = Path(__file__).parent.parent / "daemon" / "kit"
_OUTSIDE = '''"""Tells the outside its number, once."""

import time

from pydantic import BaseModel

from agentos.worker.egress import fetch

TOOL = {"name": "tell", "description": "Tells the outside its number.", "effects": ["external"]}


class Input(BaseModel):
    n: int
    url: str


class Output(BaseModel):
    n: int


def run(input: Input) -> Output:
    time.sleep(0.2)
    fetch(f"{input.url}/{input.n}", method="POST", body=b"")
    time.sleep(0.4)
    return Output(n=2 * input.n)
'''


class _Site(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.told[self.path] += 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


class Wire:
    """A relay between workers and the control process, which can be cut and held up."""

    def __init__(self, to: int) -> None:
        self._to, self._pairs, self._held = to, set[socket.socket](), 0
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Every connection breaks."""
        for end in list(self._pairs):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def hold(self, seconds: float) -> None:
        """Nothing gets through, and nobody is told."""
        self._held += 1
        time.sleep(seconds)  # how long the network is away
        self._held -= 1

    def close(self) -> None:
        self._door.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._door.accept()
                try:
                    other = socket.create_connection(("127.0.0.1", self._to), 5)
                    other.settimeout(None)  # a box may be silent for as long as its run
                except OSError:
                    one.close()
                    continue
                for source, sink in ((one, other), (other, one)):
                    self._pairs.add(source)
                    threading.Thread(target=self._move, args=(source, sink), daemon=True).start()

    def _move(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                while self._held:
                    time.sleep(0.05)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._pairs.discard(source)
        source.close()


@dataclass
class Cluster:
    """A home whose daemon listens, and workers that join it over ``wire``; each in a process of its own."""

    place: Path
    home: Home
    port: int
    wire: Wire
    told: Counter[str] = field(default_factory=Counter)
    url: str = ""
    daemon: Command | None = None
    workers: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    wires: dict[str, Wire] = field(default_factory=dict)
    ahead: bool = False  # whether a worker's clock is

    def start_daemon(self) -> None:
        _forget(self.daemon)
        self.daemon = command_server().start("daemon", "run", "--quiet", env=self._environment, quiet=True)
        comes(self._ready, "the daemon is ready", 120)

    def start_worker(self, name: str, boxes: int = 4, *labels: str) -> None:
        if name not in self.texts:
            self.texts[name] = tokens.add(
                self.home, name, tokens.TokenRole.WORKER.scopes, 1, datetime.now(UTC)
            )[1]
        more = [word for label in labels for word in ("--label", label)]
        wire = self.wires.get(name, self.wire)
        words = ["worker", "--join", f"http://127.0.0.1:{wire.port}", "--boxes", str(boxes), *more]
        words += ["--state", str(self.state(name))]
        environment = self._environment | {
            "AGENTOS_WORKER_TOKEN": self.texts[name],
            "AGENTOS_HOME": str(self.no_home),
        }
        _forget(self.workers.get(name))
        if self.ahead and name == _AHEAD:
            environment |= {"LD_PRELOAD": _CLOCK[0], "FAKETIME": "+10m", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            command = [sys.executable, "-m", "agentos", *words]
            self.workers[name] = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        else:
            self.workers[name] = command_server().start(*words, env=environment, quiet=True)

    @property
    def no_home(self) -> Path:
        """What workers take for a home, though they need none: it holds a folder for reports of bugs, and stays so."""
        found = self.place / "no-home"
        (found / "logs").mkdir(parents=True, exist_ok=True)
        return found

    def strays(self) -> list[str]:
        """What workers left in it. As root they could have made any folder, and a report would lie where nobody looks."""
        found = sorted(path for path in self.no_home.rglob("*") if path != self.no_home / "logs")
        return [
            f"{path.relative_to(self.no_home)}: {path.read_text(errors='replace')[-2000:] if path.is_file() else ''}"
            for path in found
        ]

    def state(self, name: str) -> Path:
        """Where a worker keeps its notes."""
        return self.place / "state" / name

    def fill(self, name: str, seconds: float) -> None:
        """No room on the disk of its notes; only where that is one of its own."""
        filling = self.state(name) / "filling"
        with suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        time.sleep(seconds)  # how long there is no room
        filling.unlink(missing_ok=True)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "AGENTOS_HOME": str(self.home.root)}

    def _ready(self) -> bool:
        info = daemon_info(self.home)
        assert self.daemon is not None
        if self.daemon.poll() is not None and self.daemon.stderr is not None:
            raise RuntimeError(self.daemon.stderr.read().decode())
        return info is not None and info.pid == self.daemon.pid and info.ready

    def there(self) -> set[str]:
        """Names of the workers that are joined and get work."""
        return {one.name for one in cluster_view(self.home).workers if one.state == "works"}

    def close(self) -> None:
        for process in [*self.workers.values(), *([self.daemon] if self.daemon else [])]:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(60)
            _forget(process)
        for wire in (self.wire, *self.wires.values()):
            wire.close()


def _forget(process: Command | None) -> None:
    if process is not None and process.stderr is not None:
        process.stderr.close()


def comes(holds: Callable[[], object], what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


@contextmanager
def cluster(place: Path, *, here: int = 0, settings: str = "") -> Iterator[Cluster]:
    """A home with the test kit and a tool that tells the outside; nothing is started yet."""
    home = Home(place / "home")
    init_home(home)
    site = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    site.told = Counter()  # type: ignore[attr-defined]
    threading.Thread(target=site.serve_forever, daemon=True).start()
    held = ExitStack()
    port = held.enter_context(held_port())
    with home.settings.open("a") as file:
        file.write(
            f'egress = ["127.0.0.1:{site.server_port}"]\nevolve = "manual"\n{settings}\n[workers]\n'
            f'listen = "127.0.0.1:{port}"\nhere = {here}\nlost_s = {LOST_S}\n'
        )
    files = {
        f"skill/test-kit/{path.relative_to(_KIT).as_posix()}": path.read_bytes()
        for path in _KIT.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files["tool/tell/tool.py"] = _OUTSIDE.encode()
    files["tool/tell/resource.toml"] = b'description = "Tells the outside its number."\n'
    Registry(home.registry).commit(files, "The test kit, and a tool with an outside effect", "edit")
    made = Cluster(place, home, port, Wire(port), site.told, f"http://127.0.0.1:{site.server_port}")  # type: ignore[attr-defined]
    try:
        yield made
    finally:
        made.close()
        site.shutdown()
        site.server_close()
        held.close()


def task_of(made: Cluster, number: int, tool: str, **args: Any) -> Task:
    effects = (Effect.PURE, Effect.READ, Effect.WRITE, Effect.EXTERNAL)
    return Task(
        id=new_id("task"), name=f"{tool} {number}", goal=tool, call=Call(tool, {"n": number} | args), inputs=(),
        agent="default", limits=Limits(wall_s=60.0), effects=effects, checks=(Check("equals", {"value": args.get("want", 2 * number), "path": "n"}),),
        schedule=None, created_at=datetime.now(UTC),
    )  # fmt: skip


@dataclass
class Done:
    """What a torture came to."""

    faults: Counter[str]
    tasks: int
    runs: int
    lost_runs: int
    told_twice: int
    in_doubt: int  # the call was begun and its result lost: it is not tried again, and the task says so
    wrong: list[str]
    seconds: float


def torture(made: Cluster, faults: int, seed: int) -> Done:
    """So many faults over tasks that keep three workers busy; then all of it must come right."""
    dice, began, struck = random.Random(seed), time.monotonic(), Counter[str]()
    names = ["one", "two", "three"]
    kinds = ["worker killed", "worker stopped", "worker paused", "cut", "network away", "control killed"]
    kinds += ["all cut", "network long away"]
    made.ahead = bool(_CLOCK)
    made.wires = {name: Wire(made.port) for name in names}
    with ExitStack() as mounted:
        if os.geteuid() == 0:
            for name in names:
                mounted.enter_context(_small_disk(made.state(name)))
            kinds.append("disk full")
        return _tortured(made, faults, dice, began, struck, names, kinds)


@contextmanager
def _small_disk(place: Path) -> Iterator[None]:
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def _tortured(
    made: Cluster, faults: int, dice: random.Random, began: float, struck: Counter[str],
    names: list[str], kinds: list[str],
) -> Done:  # fmt: skip
    made.start_daemon()
    for name in names:
        made.start_worker(name)
    comes(lambda: made.there() == set(names), "all workers are joined", 120)
    added: dict[str, int] = {}
    with closing(Ledger(made.home.ledger)) as ledger:
        for fault in range(faults):
            for _ in range(dice.randrange(3, 8)):
                number = len(added) + 1
                made_task = (
                    task_of(made, number, "tell", url=made.url)
                    if number % 2
                    else task_of(made, number, "double")
                )
                ledger.add_task(made_task, Share.OPEN, TaskState.QUEUED)
                added[made_task.id] = number
            time.sleep(dice.uniform(0.0, 1.0))  # the moment, not a wait
            what = dice.choice(kinds)
            _strike(made, what, dice.choice(names), dice)
            struck[what] += 1
            print(f"{fault + 1}/{faults} {what}", file=sys.stderr)
    comes(lambda: made.there() == set(names), "all workers are back", 180)
    with closing(Reader(made.home.ledger)) as reader:
        comes(
            lambda: not any(reader.tasks(state) for state in (TaskState.QUEUED, TaskState.RUNNING)),
            "all tasks are done",
            300,
        )
        return _counted(made, reader, added, struck, began)


def _strike(made: Cluster, what: str, name: str, dice: random.Random) -> None:
    worker = made.workers[name]
    if what == "worker killed":
        worker.kill()
        worker.wait(60)
        made.start_worker(name)
    elif what in ("worker stopped", "worker paused"):
        worker.send_signal(signal.SIGSTOP)
        time.sleep(
            dice.uniform(LOST_S + 2, LOST_S + 4) if what == "worker stopped" else dice.uniform(0.2, 2.0)
        )
        worker.send_signal(signal.SIGCONT)
    elif what == "cut":
        made.wires[name].cut()
    elif what == "all cut":
        for wire in made.wires.values():
            wire.cut()
    elif what == "network away":
        made.wires[name].hold(dice.choice([1.0, LOST_S + 3.0]))
    elif what == "network long away":  # the others go on meanwhile, and what strikes them
        threading.Thread(target=made.wires[name].hold, args=(_LONG_S,), daemon=True).start()
    elif what == "disk full":
        made.fill(name, dice.uniform(0.5, 3.0))
    else:
        assert made.daemon is not None
        made.daemon.kill()
        made.daemon.wait(60)
        made.start_daemon()


def _counted(
    made: Cluster, reader: Reader, added: dict[str, int], struck: Counter[str], began: float
) -> Done:
    wrong, runs, lost, doubts = list[str](), 0, 0, 0
    for task_id, number in added.items():
        tried = reader.runs(task_id)
        runs += len(tried)
        ended = [run for run in tried if run.outcome and run.outcome.result is not Result.INFRA]
        lost += len(tried) - len(ended)
        if len(ended) == 1 and number % 2 and ended[0].outcome and _DOUBT in ended[0].outcome.reason:
            doubts += 1
        elif len(ended) != 1 or ended[0].outcome is None or ended[0].outcome.result is not Result.PASSED:
            said = [run.outcome.reason if run.outcome else "open" for run in tried]
            wrong.append(f"{number}: {len(ended)} runs of it count; {said}")
        elif ended[0].host not in made.workers:
            wrong.append(f"{number}: it ran on {ended[0].host!r}")
    wrong += verify_home(made.home).faults
    twice = sum(count > 1 for count in made.told.values())
    for name, worker in made.workers.items():
        worker.send_signal(signal.SIGTERM)
        if worker.wait(60):
            wrong.append(f"the worker {name} ended with {worker.returncode}")
        with suppress(TimeoutError):  # what it had dies with it, which takes the kernel a moment
            comes(lambda name=name: not leftovers(made.state(name)), "nothing is left", 10)
        wrong += [f"left by {name}: {one.what}" for one in leftovers(made.state(name))]
    wrong += [f"a worker wrote {stray}" for stray in made.strays()]
    return Done(struck, len(added), runs, lost, twice, doubts, wrong, time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="workers-"))
    try:
        with cluster(place) as made:
            done = torture(made, given.faults, given.seed)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(done.__dict__, indent=2))
    sys.exit(bool(done.wrong or done.told_twice))


if __name__ == "__main__":
    main()
