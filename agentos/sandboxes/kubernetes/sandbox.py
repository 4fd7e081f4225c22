"""The Kubernetes adapter of the Sandbox port: every box a pod of its own. See docs/use/kubernetes.md."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agentos.domain import Limits
from agentos.errors import ErrorKind, Unavailable, UserError, to_type
from agentos.sandboxes.docker.profile import (
    HOME_LABEL,
    OWNER_LABEL,
)
from agentos.sandboxes.kubernetes.cluster import Cluster, ClusterFault, find_access
from agentos.sandboxes.kubernetes.pod import RUN_NOTE, START_S, PodBox, PodKind, Pods
from agentos.sandboxes.owner import PODS, Leftover, Owner
from agentos.sandboxes.probe import Guarantee, probe, refusal
from agentos.settings import KubernetesSettings, load_settings

ENTRY = "agentos.worker.job:serve"


class Kubernetes:
    """Boxes in pods. ``entry`` as in ``Bubblewrap``; without ``settings`` those of the home are read.

    ``timeout_s`` is for an answer of the cluster, ``start_s`` for a pod to run.

    Constructing costs nothing and connects to nothing; the first ``open`` (or ``start``) does.
    """

    name = "kubernetes"
    reaches = "container"
    lacks = "a cluster does not count what a box used: costs in CPU and memory are told as 0"

    def __init__(
        self,
        home: Path,
        *,
        settings: KubernetesSettings | None = None,
        entry: str = ENTRY,
        timeout_s: float = 10.0,
        start_s: float = START_S,
    ) -> None:
        self.level = "unprobed"
        self._home = home
        self._settings = settings
        self._entry = entry
        self._timeout_s, self._start_s = timeout_s, start_s
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._pods: Pods | None = None
        self._closed = False

    @property
    def image(self) -> str:
        """A digest of the image's content, as the nodes have it. Raises Unavailable."""
        self.start()
        return self._working().image

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> PodBox:
        """A fresh box under these limits. Raises Unavailable."""
        self.start()
        return self._working().open(PodKind(limits, self._entry, light, run))

    def open_entry(self, limits: Limits, entry: str, *, light: bool = False) -> PodBox:
        """As ``open``, with another program inside, and not probed before."""
        return self._working().open(PodKind(limits, entry, light))

    def start(self) -> None:
        """Remove what killed daemons left and probe a box, unless that is done. Raises Unavailable."""
        with self._starting:
            if self.level != "unprobed":
                return
            working = self._working()
            _removed(working.cluster, _orphans(working.cluster, self._home))
            if why := refusal(self.examine()):
                self.close()
                raise Unavailable(f"kubernetes: {why}")
            self.level = self.reaches

    def examine(self) -> tuple[Guarantee, ...]:
        """Try every promise once; the claims say what held."""
        return probe(lambda limits, entry: self.open_entry(limits, entry, light=True), grouped=True)

    def close(self) -> None:
        """End every pod that was made; idempotent."""
        with self._lock:
            self._closed = True
            pods, self._pods = self._pods, None
        if pods is not None:
            pods.close()
            pods.cluster.close()

    def __enter__(self) -> Kubernetes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _working(self) -> Pods:
        with self._lock:
            if self._closed:
                raise Unavailable("the sandbox is closed", kind=ErrorKind.CLOSED)
            if self._pods is None:
                settings = self._settings or _settings_of(self._home)
                self._pods = Pods(
                    reached(settings, self._timeout_s), settings, _owner(self._home), self._start_s
                )
            return self._pods


def _settings_of(home: Path) -> KubernetesSettings:
    try:
        return load_settings(home / "agentos.toml").kubernetes
    except UserError as error:
        raise Unavailable(error) from None


def reached(settings: KubernetesSettings, timeout_s: float = 10.0) -> Cluster:
    """That of the settings; nothing is asked of it yet. Raises Unavailable with what to set up."""
    if not settings.image:
        raise Unavailable(
            "No image is named for pods: push the one that ",
            to_type("agentos sandbox build"),
            " makes to a registry that the "
            "nodes reach, and name it as `image` in the table [kubernetes] of agentos.toml.",
        )
    try:
        return Cluster(find_access(settings.context, settings.namespace), timeout_s)
    except UserError as error:
        raise Unavailable(error) from None


# --- What a killed daemon leaves: pods with the label of its home --------------------------------


def leftovers(home: Path) -> list[Leftover]:
    """Pods of this home whose daemon is no more. Raises Unavailable."""
    cluster = reached(_settings_of(home))
    try:
        return _orphans(cluster, home)
    finally:
        cluster.close()


def reap(found: Iterable[Leftover]) -> list[Leftover]:
    """Remove them; those that would not go."""
    left: list[Leftover] = []
    for home in {leftover.home for leftover in found}:
        mine = [leftover for leftover in found if leftover.home == home]
        try:
            cluster = reached(_settings_of(Path(home)))
        except Unavailable:
            left += mine
            continue
        try:
            left += _removed(cluster, mine)
        finally:
            cluster.close()
    return left


def _orphans(cluster: Cluster, home: Path) -> list[Leftover]:
    found = []
    for pod in cluster.pods(f"{HOME_LABEL}={_owner(home).home}"):
        metadata = pod["metadata"]
        label = (metadata.get("labels") or {}).get(OWNER_LABEL, "")
        owner = Owner.parse(label)
        if owner is None or not owner.alive():
            run = (metadata.get("annotations") or {}).get(RUN_NOTE, "")
            found.append(Leftover("pod", metadata["name"], label, (run,) if run else (), str(home)))
    return found


def _removed(cluster: Cluster, found: Iterable[Leftover]) -> list[Leftover]:
    left = []
    for leftover in found:
        try:
            cluster.delete(leftover.what)
        except ClusterFault:
            left.append(leftover)
    return left


def _owner(home: Path) -> Owner:
    """This process, under a random name of the home: homes of several machines share a cluster, and may lie at equal
    paths. Raises Unavailable.
    """
    path = home / PODS
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), path.open("x") as file:
            file.write(secrets.token_hex(6))
    try:
        found = replace(Owner.here(home), home=path.read_text().strip())
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{path} cannot be read: {error}") from None
    if Owner.parse(str(found)) is None:
        raise Unavailable(f"{path} is no name of a home: remove it, and the pods that kubectl still lists")
    return found
