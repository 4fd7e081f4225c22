"""A home spread over hosts that are network namespaces of this machine, and faults of each and of the network between any two.

PostgreSQL, an S3 server, the control process, three workers and the outside have a namespace each, joined by a bridge
whose firewall drops what goes between two of them: neither end is told. Evolutions search, try and promote meanwhile. Needs
root, ip, nft, nsenter and setpriv; of S3 moto's server, with what it was given kept on disk.

    python -m tests.torture.partitions --faults 100 --seed 1
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentos.daemon.control import tokens
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.moving import move_blobs, move_home
from agentos.domain import RUNNING_STATES, Check, Evolution, Share, TaskState
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.daemon.test_side_by_side import PAIRS, SOURCE
from tests.postgres import PostgresServer, programs
from tests.s3 import KEYS
from tests.torture.hosts import BUCKET, HOSTS, S3_PORT, SITE_PORT, address
from tests.torture.invariants import INVARIANTS, Scene
from tests.torture.workers import (
    _AHEAD,
    _CLOCK,
    _KIT,
    _OUTSIDE,
    LOST_S,
    Cluster,
    Done,
    _counted,
    _small_disk,
    comes,
    task_of,
)

WORKERS = ("one", "two", "three")
_TALK = (*((name, "control") for name in WORKERS), ("control", "pg"), ("control", "s3"))
_PORT = 8421
_LONG_S, _EXAMS_MAX = 60.0, 5
_CLONE_NEWNET = 0x40000000
_LOOKED_AT = (
    "no_task_lost", "attempts_are_whole", "acts_once", "no_half_promotion", "no_evolution_is_stuck", "no_trial_twice",
    "served_only_what_passed", "all_agrees", "registry_is_whole", "nothing_is_left",
)  # fmt: skip
_POLICY = "[mine]\nsettle_s = 0.3\nmax_wait_s = 3.0\n[propose]\nbudget_s = 5.0\n[judge]\nfresh_tasks = 0\n"


def run(*words: str | Path) -> None:
    subprocess.run(words, check=True, capture_output=True)


class Net:
    """The hosts' namespaces and the bridge between them; this process moves into ``person``'s."""

    def __init__(self) -> None:
        self._name = f"ag{os.getpid()}"
        self._lock = threading.Lock()
        self._cuts: Counter[tuple[str, str]] = Counter()

    def ns(self, host: str) -> str:
        return f"{self._name}-{host}"

    address = staticmethod(address)

    def into(self, host: str) -> list[str]:
        """The words before a command that has it run there."""
        return ["nsenter", f"--net=/run/netns/{self.ns(host)}"]

    def __enter__(self) -> Net:
        bridge = self.ns("bridge")
        run("ip", "netns", "add", bridge)
        run("ip", "-n", bridge, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", bridge, "link", "set", "br0", "up")
        for host in HOSTS:
            ns = self.ns(host)
            run("ip", "netns", "add", ns)
            run(
                *("ip", "link", "add", "v0", "netns", ns, "type", "veth", "peer", "name"),
                *(f"to-{host}", "netns", bridge),
            )
            run("ip", "-n", bridge, "link", "set", f"to-{host}", "master", "br0", "up")
            run("ip", "-n", ns, "address", "add", f"{self.address(host)}/24", "dev", "v0")
            for device in ("lo", "v0"):
                run("ip", "-n", ns, "link", "set", device, "up")
        self._nft("add table bridge between")
        self._nft("add set bridge between away { type ipv4_addr . ipv4_addr; }")
        self._nft("add chain bridge between passing { type filter hook forward priority 0; }")
        self._nft("add rule bridge between passing ip saddr . ip daddr @away drop")
        with open(f"/run/netns/{self.ns('person')}") as mine:
            if ctypes.CDLL(None, use_errno=True).setns(mine.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        return self

    def __exit__(self, *_: object) -> None:
        for host in (*HOSTS, "bridge"):
            subprocess.run(["ip", "netns", "del", self.ns(host)], check=False)

    def _nft(self, command: str) -> None:
        run(*self.into("bridge"), "nft", command)

    def cut(self, one: str, other: str) -> None:
        """Nothing gets through between the two, and nobody is told."""
        self._cut(one, other, 1)

    def heal(self, one: str, other: str) -> None:
        """As many cuts of it as were made have to be healed."""
        self._cut(one, other, -1)

    def _cut(self, one: str, other: str, more: int) -> None:
        a, b = self.address(one), self.address(other)
        with self._lock:
            before = self._cuts[one, other]
            self._cuts[one, other] = before + more
            if (before == 0) != (before + more == 0):
                self._nft(
                    f"{'add' if more > 0 else 'delete'} element bridge between away {{ {a} . {b}, {b} . {a} }}"
                )

    def link(self, host: str, state: str) -> None:
        """``down``: its cable is out; ``up``."""
        run("ip", "-n", self.ns("bridge"), "link", "set", f"to-{host}", state)


class Postgres(PostgresServer):
    """A server that listens on its host's address, to be killed."""

    net: Net
    child: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def on(cls, net: Net) -> Iterator[Postgres]:
        folder = Path(tempfile.mkdtemp(prefix="agentos-pg-"))
        server = cls(folder)
        server.net = net
        try:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
            server.run("initdb", "-A", "trust", "-U", "agentos", "--no-sync", "-E", "UTF8", "--locale=C")
            with (folder / "data" / "pg_hba.conf").open("a") as file:
                file.write("host all all 10.77.0.0/24 trust\n")
            server.up()
            yield server
        finally:
            server.kill()
            shutil.rmtree(folder, ignore_errors=True)

    def up(self) -> None:
        place, nobody = programs(), pwd.getpwnam("nobody")
        assert place is not None
        words = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
        words += [str(place / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        words += ["-c", f"listen_addresses={self.net.address('pg')}", "-c", "max_connections=200"]

        def answers() -> bool:
            # what the killed one left is still ending
            if self.child is None or self.child.poll() is not None:
                with (self.folder / "log").open("ab") as log:
                    self.child = subprocess.Popen(
                        [*self.net.into("pg"), *words], stdout=log, stderr=log, cwd=self.folder
                    )
            ready = [
                "psql",
                "-U",
                "agentos",
                "-h",
                self.net.address("pg"),
                "-d",
                "postgres",
                "-c",
                "select 1",
            ]
            return subprocess.run(ready, check=False, capture_output=True).returncode == 0

        comes(answers, "PostgreSQL answers", 120)

    def kill(self) -> None:
        """As kill -9 of its first process: the others end by themselves."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


@dataclass
class Spread(Cluster):
    """The home, its stores and its workers, each on a host of its own."""

    net: Net = field(default_factory=Net)
    postgres: Postgres | None = None
    s3: subprocess.Popen[bytes] | None = None
    gone: set[str] = field(default_factory=set)  # workers that are cut off for ever
    ends: Counter[int] = field(default_factory=Counter)  # of the daemon by itself, by exit code
    keeping: Any = field(default_factory=threading.Lock)
    kept: bool = True

    def start_daemon(self) -> None:
        self._launch()
        threading.Thread(target=self._keep, daemon=True).start()
        comes(self._ready, "the daemon is ready", 180)

    def kill_daemon(self) -> None:
        with self.keeping:
            assert self.daemon is not None
            self.daemon.kill()
            self.daemon.wait(60)
            self._launch()

    def stop_daemon(self) -> int:
        """Its exit code after SIGTERM."""
        with self.keeping:
            self.kept = False
        assert self.daemon is not None
        self.daemon.send_signal(signal.SIGTERM)
        return self.daemon.wait(180)

    def _launch(self) -> None:
        words = ["-P", "-m", "agentos", "daemon", "run", "--quiet"]
        with (self.place / "daemon.log").open("ab") as log:
            self.daemon: Any = subprocess.Popen(
                [*self.net.into("control"), sys.executable, *words], env=self._environment, stderr=log
            )

    def _keep(self) -> None:
        """As a service manager: what ends is started again, also where there is no database to start on."""
        while self.kept:
            with self.keeping:
                if self.kept and self.daemon.poll() is not None:
                    self.ends[self.daemon.returncode] += 1
                    self._launch()
            time.sleep(1)

    def start_worker(self, name: str, boxes: int = 4, *labels: str) -> None:
        if name not in self.texts:
            self.texts[name] = tokens.add(
                self.home, name, tokens.TokenRole.WORKER.scopes, 1, datetime.now(UTC)
            )[1]
        words = ["-P", "-m", "agentos", "worker", "--join", f"https://{self.net.address('control')}:{_PORT}"]
        words += [
            "--boxes",
            str(boxes),
            "--ca",
            str(self.place / "cert.pem"),
            "--state",
            str(self.state(name)),
        ]
        environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        environment["HOME"] = str(self.place)
        environment |= {"AGENTOS_WORKER_TOKEN": self.texts[name], "AGENTOS_HOME": str(self.no_home)}
        if name == _AHEAD and _CLOCK:
            environment |= {"LD_PRELOAD": _CLOCK[0], "FAKETIME": "+10m", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        with (self.place / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                [*self.net.into(name), sys.executable, *words], env=environment, stdout=log, stderr=log
            )

    def start_s3(self) -> None:
        """The server on its host, with what it was given before."""
        words = ["-m", "tests.torture.hosts", "s3", str(self.place / "s3")]
        self.s3 = subprocess.Popen(
            [*self.net.into("s3"), sys.executable, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        self.kept = False
        for process in [*self.workers.values(), *([self.daemon] if self.daemon else [])]:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(60)


@contextmanager
def spread(place: Path) -> Iterator[Spread]:
    """Stores and the outside are up; daemon and workers not yet."""
    with ExitStack() as stack:
        net = stack.enter_context(Net())
        postgres = stack.enter_context(Postgres.on(net))
        home = Home(place / "home")
        made = Spread(place, home, _PORT, None, net=net, postgres=postgres)  # type: ignore[arg-type]
        made.url = f"http://{net.address('outside')}:{SITE_PORT}"
        os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://{net.address('s3')}:{S3_PORT}")
        os.environ["AGENTOS_HOME"] = str(home.root)
        words = [*net.into("outside"), sys.executable, "-m", "tests.torture.hosts", "outside"]
        outside = subprocess.Popen([*words, place / "told"])
        stack.callback(lambda: (outside.kill(), outside.wait()))
        made.start_s3()
        stack.callback(lambda: made.s3 and (made.s3.kill(), made.s3.wait()))
        _furnish(home, net, place)
        comes(lambda: _answers(net), "the S3 server answers", 120)
        postgres._sql("CREATE DATABASE agentos")
        move_home(home, f"postgresql://agentos@{net.address('pg')}/agentos?connect_timeout=10")
        move_blobs(home, f"s3://{BUCKET}/agentos")
        stack.callback(made.close)
        yield made


def _answers(net: Net) -> bool:
    import socket

    with suppress(OSError), socket.create_connection((net.address("s3"), S3_PORT), 1):
        return True
    return False


def _furnish(home: Home, net: Net, place: Path) -> None:
    init_home(home)
    name = net.address("control")
    run(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"),
        *("-addext", f"subjectAltName=IP:{name}", "-keyout", place / "key.pem", "-out", place / "cert.pem"),
    )
    with home.settings.open("a") as file:
        file.write(
            f'egress = ["{net.address("outside")}:{SITE_PORT}"]\n[workers]\nlisten = "{name}:{_PORT}"\nhere = 0\n'
            f'lost_s = {LOST_S}\ncertificate = "{place / "cert.pem"}"\nkey = "{place / "key.pem"}"\n'
        )
    (home.root / "policy.toml").write_text(_POLICY)
    files = {
        f"skill/test-kit/{path.relative_to(_KIT).as_posix()}": path.read_bytes()
        for path in _KIT.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files["tool/tell/tool.py"] = _OUTSIDE.encode()
    files["tool/tell/resource.toml"] = b'description = "Tells the outside its number."\n'
    for number in range(_EXAMS_MAX):
        skill = f"skill/exam-{number}"
        files[f"{skill}/tools/exam{number}.py"] = SOURCE.replace("NAME", f"exam{number}").encode()
        files[f"{skill}/SKILL.md"] = f"---\nname: exam-{number}\ndescription: Grades.\n---\n".encode()
    Registry(home.registry).commit(
        files, "The test kit, a tool that tells the outside, and honest faults", "edit"
    )


# --- The faults ---------------------------------------------------------------------------------


@dataclass
class Storm:
    """So many faults over tasks and evolutions; then all of it must come right."""

    made: Spread
    dice: random.Random
    struck: Counter[str] = field(default_factory=Counter)
    added: dict[str, int] = field(default_factory=dict)
    exams: int = _EXAMS_MAX
    shown: int = 0
    healing: list[threading.Thread] = field(default_factory=list)

    def play(self, faults: int, minutes: float, ledger: Ledger) -> None:
        until = time.monotonic() + 60 * minutes
        kinds = ["cut", "cut", "cut long", "link down", "worker killed", "worker stopped", "disk full"]
        kinds += ["control killed", "PostgreSQL killed", "S3 killed", "workers cut from each other"]
        for fault in range(faults):
            if time.monotonic() > until:
                break
            self.work(fault, faults, ledger)
            time.sleep(self.dice.uniform(0.0, 1.0))  # the moment, not a wait
            what = "cut for ever" if fault == 2 * faults // 3 else self.dice.choice(kinds)
            said = self.strike(what)
            self.struck[said] += 1
            print(f"{fault + 1}/{faults} {said}", file=sys.stderr, flush=True)
        for thread in self.healing:
            thread.join()

    def work(self, fault: int, faults: int, ledger: Ledger) -> None:
        """Tasks to do; now and then those that show an honest fault of a tool."""
        more = []
        for _ in range(self.dice.randrange(2, 6)):
            number = len(self.added) + 1
            task = (
                task_of(self.made, number, "tell", url=self.made.url)
                if number % 2
                else task_of(self.made, number, "double")
            )
            self.added[task.id] = number
            more.append(task)
        if self.shown < self.exams and fault >= self.shown * faults // (self.exams + 1):
            more += [self._exam(points, needed) for points, needed in PAIRS]
            self.shown += 1
        ledger.add_tasks([(task, Share.OPEN, TaskState.QUEUED) for task in more])

    def _exam(self, points: int, needed: int) -> Any:
        from dataclasses import replace

        from agentos.domain import Call

        task = task_of(self.made, points, "double")
        right = Check("equals", {"value": "pass" if points >= needed else "fail", "path": "grade"})
        call = Call(f"exam-{self.shown}/exam{self.shown}", {"points": points, "needed": needed})
        return replace(task, name=f"exam {self.shown} {points}/{needed}", call=call, checks=(right,))

    def strike(self, what: str) -> str:
        """One fault; what it was, in words that are counted."""
        name = self.dice.choice([worker for worker in WORKERS if worker not in self.made.gone])
        if what.startswith("cut"):
            return self._cut(what, name)
        if what == "link down":
            return self._cable(self.dice.choice([name, "control", "pg", "s3"]))
        if what in ("worker killed", "worker stopped", "disk full"):
            self._of_a_worker(what, name)
        elif what == "workers cut from each other":
            self._away(*self.dice.sample(WORKERS, 2), 1.0)
        else:
            self._of_a_server(what)
        return what

    def _cut(self, what: str, name: str) -> str:
        if what == "cut for ever":
            self.made.gone.add(name)
            self.made.net.cut(name, "control")
            return "cut between worker and control, for ever"
        one, other = self.dice.choice([pair for pair in _TALK if pair[0] not in self.made.gone])
        seconds = _LONG_S if what == "cut long" else self.dice.choice([1.0, LOST_S + 3.0])
        thread = threading.Thread(target=self._away, args=(one, other, seconds))
        self.healing.append(thread)
        thread.start()
        if seconds < _LONG_S:  # else the others go on meanwhile, and what strikes them
            thread.join()
        between = "worker and control" if other == "control" else f"control and {other}"
        return f"cut between {between}, {seconds:g} s"

    def _cable(self, host: str) -> str:
        self.made.net.link(host, "down")
        time.sleep(self.dice.choice([1.0, LOST_S + 2.0]))
        self.made.net.link(host, "up")
        return f"cable of {'a worker' if host in WORKERS else host} out"

    def _of_a_worker(self, what: str, name: str) -> None:
        worker = self.made.workers[name]
        if what == "worker killed":
            worker.kill()
            worker.wait(60)
            self.made.start_worker(name)
        elif what == "worker stopped":
            worker.send_signal(signal.SIGSTOP)
            time.sleep(self.dice.choice([1.0, LOST_S + 3.0]))
            worker.send_signal(signal.SIGCONT)
        else:
            self.made.fill(name, self.dice.uniform(0.5, 3.0))

    def _of_a_server(self, what: str) -> None:
        made, pause_s = self.made, self.dice.choice([0.0, 5.0])
        assert made.postgres is not None
        assert made.s3 is not None
        if what == "control killed":
            made.kill_daemon()
            time.sleep(pause_s)
        elif what == "PostgreSQL killed":
            made.postgres.kill()
            time.sleep(pause_s)  # for how long it is away
            made.postgres.up()
        else:
            made.s3.kill()
            made.s3.wait()
            time.sleep(pause_s)
            made.start_s3()

    def _away(self, one: str, other: str, seconds: float) -> None:
        self.made.net.cut(one, other)
        time.sleep(seconds)
        self.made.net.heal(one, other)

    def at_rest(self, reader: Reader) -> bool:
        open_tasks = any(reader.tasks(state) for state in (TaskState.QUEUED, TaskState.RUNNING))
        return not open_tasks and not any(reader.find(Evolution, state=state) for state in RUNNING_STATES)


def torture(made: Spread, faults: int, minutes: float, seed: int, exams: int) -> tuple[Done, Counter[str]]:
    """The storm and what it came to, with the ends of evolutions."""
    storm, began = Storm(made, random.Random(seed), exams=exams), time.monotonic()
    with ExitStack() as mounted:
        for name in WORKERS:
            mounted.enter_context(_small_disk(made.state(name)))
        made.start_daemon()
        for name in WORKERS:
            made.start_worker(name)
        comes(lambda: made.there() == set(WORKERS), "all workers are joined", 180)
        with closing(Ledger(made.home.ledger)) as ledger:
            storm.play(faults, minutes, ledger)
        back = set(WORKERS) - made.gone
        comes(lambda: back <= made.there(), "the workers are back", 240)
        with closing(Reader(made.home.ledger)) as reader:
            comes(
                lambda: storm.at_rest(reader) and not time.sleep(5) and storm.at_rest(reader),
                "all is done",
                600,
            )
            told = (made.place / "told").read_text().split() if (made.place / "told").exists() else []
            made.told = Counter(told)
            done = _counted(made, reader, storm.added, storm.struck, began)
            ends = Counter(item.state.value for item in reader.find(Evolution))
        if code := made.stop_daemon():
            done.wrong.append(f"the daemon ended with {code}")
        scene = Scene(made.home, posts=made.told)
        done.wrong += [f"{name}: {why}" for name in _LOOKED_AT for why in INVARIANTS[name](scene)]
    return done, ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--exams", type=int, default=_EXAMS_MAX, help="evolutions that are given cause for")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no fault follows")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="partitions-"))
    place.chmod(0o755)
    whole = False
    try:
        with spread(place) as made:
            done, ends = torture(made, given.faults, given.minutes, given.seed, min(given.exams, _EXAMS_MAX))
        whole = not (done.wrong or done.told_twice)
        print(json.dumps(done.__dict__ | {"evolutions": ends, "daemon_ended_by_itself": made.ends}, indent=2))
    finally:
        if whole:
            shutil.rmtree(place, ignore_errors=True)
        else:
            print(f"what is left of it is in {place}", file=sys.stderr)
    sys.exit(not whole)


if __name__ == "__main__":
    main()
