"""Containers: how they are asked for, made, handed over, pooled and taken away."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.messages import RunDone, StepFrame
from agentos.sandboxes.box import box_limits
from agentos.sandboxes.docker import image, image_host
from agentos.sandboxes.docker.container import ContainerMaker, End
from agentos.sandboxes.docker.engine import DockerEngine
from agentos.sandboxes.docker.image import build_from_host, find, images
from agentos.sandboxes.docker.profile import (
    HOME_LABEL,
    ContainerProfile,
    ProfileKind,
    all_but,
    seccomp_profile,
)
from agentos.sandboxes.docker.sandbox import ContainerPool, Docker
from agentos.sandboxes.owner import BOXES, Owner, home_id, notes
from agentos.sandboxes.reaper import leftovers, reap
from agentos.sandboxes.seccomp import CONDITIONAL, call_list
from agentos.wire import WireClosed

Run = Callable[..., Any]
MakeDocker = Callable[..., Docker]
LIMITS = Limits(wall_s=30, memory_mb=64, workspace_mb=8, processes=24)


@pytest.fixture
def engine() -> Iterator[DockerEngine]:
    made = DockerEngine()
    yield made
    made.close()


def containers(engine: DockerEngine, home: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.api.containers(
        all=True, filters={"label": f"{HOME_LABEL}={home_id(home)}"}
    )
    return found


# --- what is asked of the engine ----------------------------------------------------------------


def test_the_profile_allows_what_the_list_names_and_looks_closely_at_some() -> None:
    rules = seccomp_profile()["syscalls"]
    allowed = {name for rule in rules if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert allowed == call_list().names
    unconditional = {name for rule in rules if not rule.get("args") for name in rule["names"]}
    assert not unconditional & set(CONDITIONAL)


def test_all_but_some_numbers_is_exactly_that() -> None:
    refused = {0x5412, 0x541C}
    prefixes = list(all_but(refused))

    def allowed(number: int) -> bool:
        return any(number & mask == value for mask, value in prefixes)

    near = {number + step for number in refused for step in range(-20, 20)} | {0, 1, 0xFFFFFFFF}
    assert {number for number in near if not allowed(number)} == refused
    assert not allowed(0x5412 | 1 << 40), "the kernel looks at 32 bits only"


@pytest.mark.docker
def test_every_wall_is_asked_for(
    docker_sandbox: Docker, small: Limits, engine: DockerEngine, inside: Path
) -> None:
    with docker_sandbox.open(small) as box:
        found = engine.api.inspect_container(box.group.id)  # type: ignore[attr-defined]
    host, config = found["HostConfig"], found["Config"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"]) == ("none", True, ["ALL"])
    assert host["SecurityOpt"][0] == "no-new-privileges:true"
    assert json.loads(host["SecurityOpt"][1].removeprefix("seccomp=")) == seccomp_profile()
    assert host["Memory"] == host["MemorySwap"] > 0
    assert (host["PidsLimit"], host["NanoCpus"]) == (small.processes, int(box_limits().cpus * 1e9))
    assert host["LogConfig"]["Type"] == "none"
    assert not host["Privileged"]
    assert (config["User"], config["StopSignal"]) == ("65534:65534", "SIGKILL")
    assert {limit["Name"]: limit["Hard"] for limit in host["Ulimits"]}["core"] == 0
    assert all(mount["ReadOnly"] for mount in host["Mounts"])
    assert len(host["Mounts"]) == 2, "the socket's directory and the test's own programs"
    assert not host["Binds"]
    for options in host["Tmpfs"].values():
        assert {"nosuid", "nodev", "mode=0700"} <= set(options.split(","))
        assert "size=" in options
        assert "nr_inodes=" in options
    assert not config["Image"].endswith(":latest")


@pytest.mark.docker
def test_every_promise_holds(docker_sandbox: Docker) -> None:
    assert [claim for claim in docker_sandbox.examine() if not claim.held] == []
    assert (docker_sandbox.name, docker_sandbox.level) == ("docker", "container")


@pytest.mark.docker
@pytest.mark.parametrize(
    ("wall", "attack"),
    [
        ("seccomp", "keyrings"),
        ("seccomp", "exotic_calls"),
        ("user read-only", "write_anywhere"),
        ("network", "network"),
    ],
)
def test_without_its_wall_the_attack_succeeds(
    wall: str, attack: str, make_docker: MakeDocker, small: Limits, run: Run
) -> None:
    """The list is known to bite: a weaker container fails it, and never calls itself a container."""
    with make_docker(*wall.split()) as sandbox, sandbox.open(small) as box:
        assert sandbox.level == "weak"
        assert run(box, f"attacks:{attack}") != ""


# --- the image ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_image_is_named_by_its_content(tmp_path: Path) -> None:
    content = image_host.collect()
    assert content.digest() == image_host.collect().digest()
    name = next(name for name in content.files if name.endswith("json/decoder.py"))
    other = tmp_path / "decoder.py"
    other.write_bytes(content.files[name].read_bytes() + b"\n")
    assert replace(content, files={**content.files, name: other}).digest() != content.digest()


@pytest.mark.docker
def test_a_thread_that_ended_holds_no_connection_any_more(engine: DockerEngine) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    engine.version()
    before = opened()
    for _ in range(4):
        asking = threading.Thread(target=engine.version)
        asking.start()
        asking.join()
    assert opened() == before


@pytest.mark.docker
def test_building_again_builds_nothing(docker_image: str, engine: DockerEngine) -> None:
    before = engine.api.inspect_image(docker_image)["Id"]
    assert build_from_host(engine) == docker_image
    assert engine.api.inspect_image(docker_image)["Id"] == before
    assert find(engine) == docker_image
    ours = images(engine)
    assert {it.way for it in ours if it.current} >= {"host", "base"}
    assert not [it for it in ours if it.name.endswith(":latest")]


@pytest.mark.docker
def test_an_image_that_was_tagged_to_be_pushed_is_still_this_one(
    docker_image: str, engine: DockerEngine
) -> None:
    engine.api.tag(docker_image, "aaa.example.org/box", "1")  # the engine names this one first
    try:
        own = [it for it in images(engine) if it.id == engine.api.inspect_image(docker_image)["Id"]]
        assert [(it.name, it.current) for it in own] == [(docker_image, True)]
    finally:
        engine.api.remove_image("aaa.example.org/box:1")


def test_a_container_in_use_is_noted_with_its_run_until_it_is_gone(
    make_docker: MakeDocker, small: Limits, tmp_path: Path
) -> None:
    home = tmp_path / "a:b"  # a colon parts what is mounted from where
    with make_docker(home=home) as sandbox:
        with sandbox.open_entry(small, "guest:serve", run="run-7/../x"):
            [note] = [found for found in notes(home / BOXES) if found.runs]
            assert note.runs == ("run-7x",)
            assert leftovers(home) == []
        unclosed = sandbox.open_entry(small, "guest:serve", run="run-8")
    assert list((home / BOXES).iterdir()) == []
    unclosed.close()


# --- the meeting --------------------------------------------------------------------------------


@pytest.fixture
def maker(docker_image: str, tmp_path: Path, engine: DockerEngine) -> Iterator[Callable[..., ContainerMaker]]:
    ends: list[End] = []

    def make(boot: str = "") -> ContainerMaker:
        class Booted(ContainerProfile):
            def boot(self) -> str:
                return boot or super().boot()

        ends.append(End(engine, 1))
        walls = Booted(docker_image, box_limits(), (), frozenset())
        return ContainerMaker(ends[-1], walls, Owner.here(tmp_path), tmp_path)

    yield make
    for end in ends:
        end.close()
    assert containers(engine, tmp_path) == []


KIND = ProfileKind.of(LIMITS, "agentos.worker.job:serve", light=True)
SPEAK = (
    "import json, os, socket, struct, time; s = socket.socket(socket.AF_UNIX); s.connect('/run/agentos/socket'); "
    "pipes = socket.recv_fds(s, 1, 2)[1]; m = {message}; os.write(pipes[1], struct.pack('>I', len(m)) + m); "
    "time.sleep(60)"
)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("json.dumps({'hello': '0' * 64}).encode()", "token that is not its own"),
        ("json.dumps({'hello': None}).encode()", "token that is not its own"),
        ("b'no json'", "did not begin"),
        ("json.dumps({'error': 'it broke'}).encode()", "it broke"),
    ],
)
def test_who_does_not_know_the_token_is_not_let_in(
    message: str, why: str, maker: Callable[..., ContainerMaker]
) -> None:
    with pytest.raises(Unavailable, match=why):
        maker(SPEAK.format(message=message)).make(KIND)


@pytest.mark.docker
def test_a_container_that_ends_at_once_is_told(maker: Callable[..., ContainerMaker]) -> None:
    with pytest.raises(Unavailable, match="ended with code 3"):
        maker("raise SystemExit(3)").make(KIND)


@pytest.mark.docker
def test_a_container_that_ends_while_it_is_greeted_leaves_nothing_open(
    maker: Callable[..., ContainerMaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(pid: int) -> int:
        raise ProcessLookupError(pid)

    monkeypatch.setattr(os, "pidfd_open", gone)
    with pytest.raises(Unavailable, match="could not be reached"):
        maker().make(KIND)
    gc.collect()  # pytest fails this test if a socket goes unclosed


@pytest.mark.docker
def test_the_token_alone_is_not_enough(maker: Callable[..., ContainerMaker], tmp_path: Path) -> None:
    """A process of the host that has read the token, and comes before the container."""
    intruders: list[int] = []

    def intrude() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for place in tmp_path.glob("*/start.json"):
                try:
                    token = json.loads(place.read_text())["token"]
                except ValueError:  # it is just being written
                    continue
                os.chdir(place.parent)
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect("socket")
                    intruders.extend(socket.recv_fds(sock, 1, 2)[1])
                text = json.dumps({"hello": token}).encode()
                os.write(intruders[1], len(text).to_bytes(4, "big") + text)
                return
            time.sleep(0.001)

    before = Path.cwd()
    thread = threading.Thread(target=intrude)
    thread.start()
    try:
        with pytest.raises(Unavailable, match="not the container's"):
            maker("import time; time.sleep(60)").make(KIND)
    finally:
        thread.join()
        os.chdir(before)
        for descriptor in intruders:
            os.close(descriptor)


@pytest.mark.docker
def test_nobody_else_can_connect_once_the_container_did(
    make_docker: MakeDocker, small: Limits, tmp_path: Path, run: Run
) -> None:
    with make_docker(home=tmp_path) as sandbox, sandbox.open(small) as box:
        assert [
            place for place in (tmp_path / BOXES).iterdir() if place.is_dir()
        ] == []  # its note lies outside
        assert run(box, "os:listdir", "/run/agentos") == []


@pytest.mark.parametrize("claim", [{"run_id": "run-2"}, {"snapshot": "f" * 40}, {"index": 0}])
def test_a_worker_cannot_claim_to_be_another_run(claim: dict[str, Any]) -> None:
    """What a frame belongs to is known by the channel it came on; there is no field to lie in."""
    step = {"type": "step", "node": "act", "action": {}, "observation": {}, "duration_ms": 1}
    StepFrame.model_validate(step)
    with pytest.raises(ValidationError, match="extra"):
        StepFrame.model_validate(step | claim)
    with pytest.raises(ValidationError, match="extra"):
        RunDone.model_validate({"type": "done", "finished": "answered"} | claim)


# --- the pool -----------------------------------------------------------------------------------


class Thing:
    made = 0

    def __init__(self, kind: str) -> None:
        type(self).made += 1
        self.kind, self.dead, self.discarded = kind, False, False

    def usable(self) -> bool:
        return not self.dead

    def discard(self) -> None:
        self.discarded = True


def test_the_pool_gives_each_once_and_keeps_the_kinds_asked_for_most() -> None:
    things: list[Thing] = []

    def make(kind: str) -> Thing:
        things.append(Thing(kind))
        return things[-1]

    pool: ContainerPool[str, Thing] = ContainerPool(make, ready=2, kinds=2)
    taken = [pool.take(kind) for kind in "aabab"]
    assert [thing.kind for thing in taken] == list("aabab")
    assert len(set(map(id, taken))) == 5
    taken.append(pool.take("c"))  # once is not enough to drive another out
    pool.warm("a")
    assert [thing.kind for thing in things].count("c") == 1
    taken += [pool.take("c") for _ in range(3)]  # now it is asked for more than b
    pool.close()
    assert [thing.kind for thing in things].count("c") > 4
    assert [thing for thing in things if thing.discarded == (thing in taken)] == []


def test_the_pool_passes_over_the_dead_and_what_failed_before() -> None:
    answers: list[Thing | None] = [Thing("a"), Thing("a"), Thing("a"), None]
    dead = answers[1]
    assert dead is not None
    dead.dead = True

    def make(kind: str) -> Thing:
        answer = answers.pop(0) if answers else Thing(kind)
        if answer is None:
            raise Unavailable("the engine was away")
        return answer

    pool: ContainerPool[str, Thing] = ContainerPool(make, ready=1)
    pool.take("a")
    assert not pool.take("a").dead
    assert dead.discarded
    assert pool.take("a").usable()
    assert answers == []
    pool.close()


@pytest.mark.docker
def test_a_container_is_used_once(docker_sandbox: Docker, small: Limits) -> None:
    seen = set()
    for _ in range(3):
        with docker_sandbox.open(small) as box:
            seen.add(box.group.id)  # type: ignore[attr-defined]
    assert len(seen) == 3


@pytest.mark.docker
def test_a_pooled_container_that_died_is_passed_over(
    make_docker: MakeDocker, small: Limits, engine: DockerEngine, tmp_path: Path, run: Run
) -> None:
    with make_docker(home=tmp_path, ready=1) as sandbox:
        with sandbox.open(small) as box:
            first = box.group.id  # type: ignore[attr-defined]
        (next_one,) = running(engine, tmp_path, but=first)
        engine.api.kill(next_one, "SIGKILL")
        with sandbox.open(small) as box:
            assert run(box, "os:getpid") == 1


@pytest.mark.docker
def test_a_box_whose_run_cannot_be_noted_down_is_ended(
    make_docker: MakeDocker, small: Limits, engine: DockerEngine, tmp_path: Path, run: Run
) -> None:
    places, elsewhere = tmp_path / BOXES, tmp_path / "elsewhere"
    with make_docker(home=tmp_path, ready=1) as sandbox:
        with sandbox.open(small) as box:
            first = box.group.id  # type: ignore[attr-defined]
        running(engine, tmp_path, but=first)
        deadline = time.monotonic() + 60
        # the one that is to wait was not greeted yet
        while any(place.is_dir() for place in places.iterdir()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        places.rename(elsewhere)
        with pytest.raises(Unavailable):
            sandbox.open(small, run="run-1")
        gc.collect()  # pytest fails this test if a socket goes unclosed
        elsewhere.rename(places)
        with sandbox.open(small, run="run-1") as box:
            assert run(box, "os:getpid") == 1


def running(engine: DockerEngine, home: Path, *, but: str) -> list[str]:
    """The containers that the pool has started meanwhile."""
    deadline = time.monotonic() + 60
    rows: list[dict[str, Any]] = []
    while [row["State"] for row in rows] != ["running"]:
        rows = [row for row in containers(engine, home) if row["Id"] != but]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [row["Id"] for row in rows]


@pytest.mark.docker
def test_closing_leaves_nothing(
    make_docker: MakeDocker, small: Limits, engine: DockerEngine, tmp_path: Path
) -> None:
    sandbox = make_docker(home=tmp_path, ready=2)
    with ThreadPoolExecutor(3) as threads:
        boxes = list(threads.map(lambda _: sandbox.open(small), range(3)))
    for box in boxes:
        assert box.close() == box.close()
    sandbox.close()
    sandbox.close()
    assert containers(engine, tmp_path) == []
    assert leftovers(tmp_path) == []
    with pytest.raises(Unavailable, match="closed"):
        sandbox.open(small)


@pytest.mark.docker
def test_closing_the_sandbox_ends_its_boxes(
    make_docker: MakeDocker, small: Limits, engine: DockerEngine, tmp_path: Path
) -> None:
    sandbox = make_docker(home=tmp_path)
    box = sandbox.open(small)
    sandbox.close()
    with pytest.raises(WireClosed):
        box.channel.receive(deadline=time.monotonic() + 10)
    assert containers(engine, tmp_path) == []
    box.close()
    assert containers(engine, tmp_path) == []


# --- an engine that goes away -------------------------------------------------------------------


class Relay:
    """Stands between us and the engine, so that the engine can be away without ending it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: list[socket.socket] = []
        self.start()

    def start(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.path.unlink()
        for sock in self._open:
            sock.close() if sock.fileno() < 0 else sock.shutdown(socket.SHUT_RDWR)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect("/var/run/docker.sock")
            self._open += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    path = tmp_path_factory.mktemp("e") / "engine"
    made = Relay(path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    yield made
    if path.exists():
        made.stop()
    for sock in made._open:
        sock.close()


# When it cannot connect, the SDK (7.2) leaves the socket it made to the garbage collector.
away = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@away
@pytest.mark.docker
def test_an_engine_that_dies_makes_trials_infra_and_comes_back(
    relay: Relay, make_docker: MakeDocker, small: Limits, run: Run, tmp_path: Path
) -> None:
    with make_docker(home=tmp_path) as sandbox:
        box = sandbox.open(small)
        relay.stop()
        assert run(box, "os:getpid") == 1
        box.close()
        with pytest.raises(WireClosed):
            box.channel.receive(deadline=time.monotonic() + 5)
        with pytest.raises(Unavailable, match="engine does not answer"):
            sandbox.open(small)
        assert all(leftover.kind == "directory" for leftover in leftovers(tmp_path))
        relay.start()
        with sandbox.open(small) as other:
            assert run(other, "os:getpid") == 1
        found = DockerEngine()
        until = time.monotonic() + 60
        while box.group.id in [row["Id"] for row in containers(found, tmp_path)]:
            assert time.monotonic() < until, "what could not be removed then is removed beside the next one"
            time.sleep(0.05)
    assert containers(found, tmp_path) == []
    found.close()


@pytest.mark.docker
def test_the_connections_of_a_thread_end_with_it(engine: DockerEngine) -> None:
    """Each batch of trials has threads of its own: all of them stayed open until the daemon ended."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(engine.version).result()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with ThreadPoolExecutor(1) as threads:
            threads.submit(engine.version).result()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


@away
def test_an_engine_that_this_user_may_not_use_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as closed:
        closed.bind(str(tmp_path / "engine.sock"))
        closed.listen()
        (tmp_path / "engine.sock").chmod(0)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
        engine = DockerEngine(timeout_s=5)
        me = os.geteuid()
        try:
            os.seteuid(61321 if me == 0 else me)  # nothing is closed to root
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # the SDK leaves that socket open
                with pytest.raises(Unavailable, match=r"may not use .*type `sudo usermod -aG docker \S+`"):
                    engine.version()
                gc.collect()
        finally:
            os.seteuid(me)
            engine.close()


def test_an_engine_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 's'}")
        engine = DockerEngine(timeout_s=0.2)
        with pytest.raises(Unavailable, match="does not answer"):
            engine.version()
        engine.close()


@away
@pytest.mark.slow
def test_without_an_engine_one_is_told_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with Docker(tmp_path) as sandbox, pytest.raises(Unavailable, match=r"apt-get install docker\.io"):
        sandbox.open(LIMITS)
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    with Docker(tmp_path) as sandbox, pytest.raises(Unavailable, match="must run on this machine"):
        sandbox.open(LIMITS)


# --- after kill -9 ------------------------------------------------------------------------------

OWNERS = """
import os, sys, time
from pathlib import Path
from agentos.domain import Limits
from agentos.sandboxes.docker.sandbox import Docker
home, image, inside, count = sys.argv[1:]
for number in range(int(count)):
    if os.fork() == 0:
        sandbox = Docker(Path(home), entry="guest:serve", extra=(Path(inside),), ready=1, image=image, )
        print(os.getpid(), flush=True)
        while True:
            run = f"run-{os.getpid()}"
            box = sandbox.open_entry(Limits(processes=24, memory_mb=64), "guest:serve", light=True, run=run)
            box.channel.send({"do": "bombs:stray", "args": []})
            box.channel.receive()
    time.sleep(0.3)
time.sleep(600)
"""


def wait_for_a_run(place: Path, pid: int) -> None:
    """Until a container of that process is used for a run."""
    deadline = time.monotonic() + 60
    while not any(note.owner and note.owner.pid == pid and note.runs for note in notes(place)):
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.docker
@pytest.mark.slow
def test_twenty_killed_daemons_leave_nothing_that_the_reaper_does_not_find(
    docker_image: str, inside: Path, engine: DockerEngine, tmp_path: Path
) -> None:
    """Each is killed at another moment: before, while and after it makes containers; the last one with a run."""
    kills = 20
    owners = subprocess.Popen(
        [sys.executable, "-c", OWNERS, str(tmp_path), docker_image, str(inside), str(kills)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owners.stdout is not None
    for number in range(kills):
        pid = int(owners.stdout.readline())
        threading.Event().wait(0.07 * (number % 10))
        if number == kills - 1:
            wait_for_a_run(tmp_path / BOXES, pid)
        os.kill(pid, signal.SIGKILL)
    owners.kill()
    owners.wait()
    owners.stdout.close()
    found = leftovers(tmp_path)
    assert {leftover.kind for leftover in found} <= {"container", "directory", "note"}
    assert [leftover for leftover in found if leftover.kind == "container" and leftover.runs]
    assert [leftover for leftover in found if leftover.kind == "container"]
    deadline = time.monotonic() + 30
    while leftovers(tmp_path):  # the engine may still be at work for one that was killed
        reap(leftovers(tmp_path))
        assert time.monotonic() < deadline
    assert containers(engine, tmp_path) == []
    assert list((tmp_path / BOXES).iterdir()) == []


@pytest.mark.docker
def test_what_belongs_to_the_living_is_left_alone(
    make_docker: MakeDocker, small: Limits, tmp_path: Path, run: Run
) -> None:
    with make_docker(home=tmp_path) as sandbox, sandbox.open(small) as box:
        assert leftovers(tmp_path) == []
        assert run(box, "os:getpid") == 1


def test_the_dockerfile_copies_what_its_context_holds() -> None:
    context = image._context()
    lines = context["Dockerfile"].decode().splitlines()
    copied = [line.split()[1] for line in lines if line.startswith("COPY ")]
    assert copied == ["requirements.txt", "agentos"]
    assert all(name in context or any(path.startswith(f"{name}/") for path in context) for name in copied)
    inside = {path.split("/")[1] for path in context if path.startswith("agentos/")}
    visible = ("wire", "messages", "checks", "syntax", "frontmatter", "programs")
    assert inside == {"__init__.py", *(f"{name}.py" for name in visible), "worker"}
    pins = context["requirements.txt"].decode().split()
    assert [pin for pin in pins if pin.startswith(("langgraph==", "pydantic==", "jsonschema=="))]
    assert all("==" in pin for pin in pins)
    assert "USER 65534:65534" in lines
