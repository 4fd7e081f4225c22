"""One sandbox for the whole session: its template costs most of a second, a box some milliseconds."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.sandboxes import cgroups
from agentos.sandboxes.box import WorkerBox
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.docker.engine import DockerEngine
from agentos.sandboxes.docker.image import build_from_host
from agentos.sandboxes.docker.profile import pod_profile
from agentos.sandboxes.docker.sandbox import Docker
from agentos.sandboxes.kubernetes.sandbox import Kubernetes
from agentos.sandboxes.plainfiles import write_tar
from agentos.settings import KubernetesSettings
from tests.sandboxes.fake_cluster import FakeCluster, fake_cluster

Make = Callable[..., Bubblewrap]

# Walls that a test takes down to see its attack succeed: the worker's own code is changed inside, before any box is made.
WALLS = {
    "seccomp": "template._filter_system_calls = lambda program: None",
    "namespaces": "template._OWN_TID = None; template._unshare = template._hide_groups = lambda: None; template._mount = lambda request: None",
    "cgroup-names": "template._hide_groups = lambda: None",
    "rlimits": "template._limit = lambda request: None",
    "cgroups": "",
    # No walls, but how a box is made.
    "clone": "template._OWN_TID = None",
    "namespace-kinds": "template._FRESH |= 0x800",  # a signal table shared with what shares no memory: invalid
}
# The same of a pod, which is a container with a network and the node's mounts before the worker sees to it.
POD_WALLS = {
    "seccomp": WALLS["seccomp"],
    "network": "template._FRESH &= ~0x40000000; template._loopback = lambda: None",
    "sealing": "template._seal = lambda: None",
}


def unwalled(place: Path, wall: str) -> Path:
    """A directory with ``guest_without.py``: the guest, in a box without that wall."""
    text = f"from agentos.worker import template\nfrom guest import serve\n{WALLS[wall]}\n"
    (place / "guest_without.py").write_text(text)
    place.chmod(0o755)
    return place


class WeakBubblewrap(Bubblewrap):
    """Is used without being probed, and says so as its level."""

    def start(self) -> None:
        self.level = "weak"


@pytest.fixture(scope="session")
def run_uid() -> int | None:
    return 61321 if os.geteuid() == 0 else None


@pytest.fixture(scope="session")
def inside() -> Path:
    """The programs that run in a box."""
    return Path(__file__).parent / "inside"


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory, run_uid: int | None, inside: Path) -> Make:
    """A sandbox of the test's own, perhaps without one of its walls."""

    def make(wall: str = "", home: Path | None = None, kind: type[Bubblewrap] | None = None) -> Bubblewrap:
        home = home or tmp_path_factory.mktemp("home")
        if not wall:
            return Bubblewrap(home, run_uid, entry="guest:serve", extra=(inside,))
        places = (inside, unwalled(tmp_path_factory.mktemp("unwalled"), wall))
        made = (kind or WeakBubblewrap)(home, run_uid, entry="guest_without:serve", extra=places)
        if wall == "cgroups":
            made.find_groups = cgroups.Cgroups  # type: ignore[method-assign]
        return made

    return make


@pytest.fixture(scope="session")
def sandbox(make: Make) -> Iterator[Bubblewrap]:
    """Probed and open. Skips where bubblewrap cannot work, unless it was demanded."""
    with make() as made:
        try:
            made.start()
        except Unavailable as error:
            if "bubblewrap" in os.environ.get("AGENTOS_REQUIRE", ""):
                raise
            pytest.skip(str(error))
        yield made


@pytest.fixture(scope="session")
def worker_sandbox(tmp_path_factory: pytest.TempPathFactory, run_uid: int | None) -> Iterator[Bubblewrap]:
    """With the real worker inside, in place of the guest."""
    with Bubblewrap(tmp_path_factory.mktemp("home"), run_uid) as made:
        yield made


@pytest.fixture(scope="session")
def weakened(make: Make) -> Iterator[Callable[[str], Bubblewrap]]:
    """The sandbox without that one wall; each is made once."""
    made: dict[str, Bubblewrap] = {}

    def weakened(wall: str) -> Bubblewrap:
        if wall not in made:
            made[wall] = make(wall)
        return made[wall]

    yield weakened
    for sandbox in made.values():
        sandbox.close()


@pytest.fixture(scope="session")
def small() -> Limits:
    return Limits(wall_s=30, memory_mb=64, workspace_mb=8, processes=24)


@pytest.fixture(scope="session")
def docker_image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Built from the host where it is not there yet; by one of several test processes."""
    with (tmp_path_factory.getbasetemp().parent / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        engine = DockerEngine()
        try:
            return build_from_host(engine)
        finally:
            engine.close()


@pytest.fixture(scope="session")
def make_docker(
    tmp_path_factory: pytest.TempPathFactory, docker_image: str, inside: Path
) -> Callable[..., Docker]:
    """A container sandbox of the test's own, perhaps without some of its walls."""

    def make(*weak: str, home: Path | None = None, ready: int = 0) -> Docker:
        places, entry = (inside,), "guest:serve"
        if "seccomp" in weak:  # the engine's profile, and the worker's own filter
            places, entry = (
                (inside, unwalled(tmp_path_factory.mktemp("unwalled"), "seccomp")),
                "guest_without:serve",
            )
        place = home or tmp_path_factory.mktemp("home")
        made = Docker(place, entry=entry, extra=places, ready=ready, image=docker_image)
        made.weak = frozenset(weak)
        return made

    return make


@pytest.fixture(scope="session")
def docker_sandbox(make_docker: Callable[..., Docker]) -> Iterator[Docker]:
    """Probed and open, with a pool."""
    with make_docker(ready=2) as made:
        made.start()
        yield made


@pytest.fixture(scope="session")
def pod_image(tmp_path_factory: pytest.TempPathFactory, docker_image: str, inside: Path) -> str:
    """The image with the programs of the tests beside the worker, and with guests that lack a wall."""
    files = {f"inside/{path.name}": path.read_bytes() for path in inside.glob("*.py")}
    for wall in POD_WALLS:
        text = f"from agentos.worker import template\nfrom guest import serve\n{POD_WALLS[wall]}\n"
        files[f"inside/guest_without_{wall}.py"] = text.encode()
        files[f"inside/selfcheck_without_{wall}.py"] = text.replace(
            "guest ", "agentos.worker.selfcheck "
        ).encode()
    files["Dockerfile"] = f"FROM {docker_image}\nCOPY inside /opt/agentos\n".encode()
    name = f"agentos-sandbox-tests:{hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]}"
    with (tmp_path_factory.getbasetemp().parent / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        engine = DockerEngine()
        try:
            if not engine.api.images(name):
                context = io.BytesIO(write_tar(files))
                list(engine.api.build(fileobj=context, custom_context=True, tag=name, rm=True, decode=True))
        finally:
            engine.close()
    return name


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCluster]:
    """With one node, which has the profile that pods name."""
    with fake_cluster(tmp_path_factory.mktemp("cluster"), {"agentos/box.json": pod_profile()}) as made:
        yield made


@pytest.fixture(scope="session")
def make_pods(
    tmp_path_factory: pytest.TempPathFactory, cluster: FakeCluster, pod_image: str
) -> Iterator[Callable[..., Kubernetes]]:
    """A sandbox of the test's own."""

    def make(home: Path | None = None, entry: str = "guest:serve", **fields: Any) -> Kubernetes:
        patience = {name: fields.pop(name) for name in ("timeout_s", "start_s") if name in fields}
        settings = KubernetesSettings.model_validate({"image": pod_image} | fields)
        home = home or tmp_path_factory.mktemp("home")
        return Kubernetes(home, settings=settings, entry=entry, **patience)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(cluster.kubeconfig()))
        yield make


@pytest.fixture(scope="session")
def pods_sandbox(make_pods: Callable[..., Kubernetes]) -> Iterator[Kubernetes]:
    """Probed and open."""
    with make_pods() as made:
        made.start()
        yield made


_HERE = [
    pytest.param("sandbox", marks=pytest.mark.sandbox, id="bubblewrap"),
    pytest.param("docker_sandbox", marks=pytest.mark.docker, id="docker"),
]
# A pod's control groups are its node's: nobody here can look into them, and what they count needs their version 2.
ON_THIS_MACHINE = pytest.mark.parametrize("each_sandbox", _HERE, indirect=True)


@pytest.fixture(
    scope="session", params=[*_HERE, pytest.param("pods_sandbox", marks=pytest.mark.docker, id="kubernetes")]
)
def each_sandbox(request: pytest.FixtureRequest) -> Bubblewrap | Docker | Kubernetes:
    """The same programs in every sandbox there is."""
    made: Bubblewrap | Docker | Kubernetes = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def box(each_sandbox: Bubblewrap | Docker | Kubernetes, small: Limits) -> Iterator[WorkerBox]:
    # As agents get it; Kubernetes keeps none ready, so imports that no test needs would be waited for.
    with each_sandbox.open(small, light=isinstance(each_sandbox, Kubernetes)) as made:
        yield made


class AttackBroke(AssertionError):
    """The attack program itself failed: that proves nothing."""


@pytest.fixture(scope="session")
def run() -> Callable[..., Any]:
    """``run(box, "module:function", *args)`` inside the box; the result."""

    def run(box: WorkerBox, what: str, *arguments: object) -> Any:
        box.channel.send({"do": what, "args": list(arguments)})
        head = box.channel.receive(deadline=time.monotonic() + 30).head
        if "raised" in head:
            raise AttackBroke(head["at"])
        return head["result"]

    return run
