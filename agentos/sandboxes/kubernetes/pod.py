"""One pod from its description to its end: asked for, awaited, met over its stream, judged, taken away.

A pod's description has walls of the node (no privileges, no capabilities, a read-only root, limits), and no words for
others: a network without any way out, file systems that hold so many files, a number of processes. Those the worker
builds inside, before it takes a job (``template.leave_the_pod``).
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import math
import os
import secrets
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agentos.domain import Limits
from agentos.errors import ErrorKind, Unavailable
from agentos.ports import BoxUsage
from agentos.sandboxes import seccomp
from agentos.sandboxes.box import (
    BoxLimits,
    answer_bounds,
    box_limits,
    file_systems_and_limits,
    pipes,
    worker_environment,
)
from agentos.sandboxes.docker import image_host
from agentos.sandboxes.docker.profile import (
    BOX_LABEL,
    HOME_LABEL,
    KERNEL,
    OWNER_LABEL,
    SITE,
    WORKER_MB,
)
from agentos.sandboxes.kubernetes.cluster import (
    Attached,
    Cluster,
    ClusterFault,
    container_status,
    disruption,
    pod_fault,
    reason_of,
    unscheduled,
)
from agentos.sandboxes.owner import Owner
from agentos.sandboxes.seccomp import call_list
from agentos.settings import KubernetesSettings
from agentos.wire import FrameError, WireClosed, WireLate

CONTAINER = "box"
RUN_NOTE = "agentos.run"  # an annotation: for which run the pod was made; nothing inside can read it
_UID = 65534
_BOOT = (
    "import sys; sys.path += {path!r}; from agentos.worker.container_init import main_of_pod; main_of_pod()"
)
_LIGHT, _WHOLE = ("agentos.worker.job",), ("agentos.worker.warm",)
START_S, _GONE_S, _TOLD_S = 60.0, 10.0, 3.0
_LOOK_S, _LOOK_MAX_S = 0.05, 0.5
_STDERR_MAX = 300
_LOG_MB = 64  # what the node may keep of a box's standard output, which it logs
_IMAGE = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_NO_START = {
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "CrashLoopBackOff",
    "ContainerCannotRun",
}  # fmt: skip


def describe(kind: PodKind, settings: KubernetesSettings, extras: BoxLimits) -> dict[str, Any]:
    """A pod's ``spec``: within what Pod Security calls restricted, and of the node nothing."""
    files_mb = kind.limits.workspace_mb + extras.tmp_mb + extras.snapshot_mb + extras.shm_mb
    most = {
        "cpu": f"{round(extras.cpus * 1000)}m",
        "memory": f"{kind.limits.memory_mb + files_mb + WORKER_MB}Mi",
        "ephemeral-storage": f"{_LOG_MB}Mi",
    }
    path = [KERNEL, SITE]
    variables = [f"{name}={value}" for name, value in worker_environment(path).items()]
    security: dict[str, Any] = {
        "runAsNonRoot": True,
        "runAsUser": _UID,
        "runAsGroup": _UID,
        "seccompProfile": {"type": "Localhost", "localhostProfile": settings.seccomp},
    }
    if settings.apparmor:
        security["appArmorProfile"] = {"type": "Localhost", "localhostProfile": settings.apparmor}
    container = {
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        # the node adds variables that tell of the cluster; nothing inside may have them
        "command": ["/usr/bin/env", "-i", *variables, "/usr/local/bin/python3", "-I", "-S", "-c", _BOOT.format(path=path)],
        "stdin": True,
        "stdinOnce": True,
        "tty": False,
        "terminationMessagePath": "/ws/.end",  # a file of the node's, which the box's own /ws lies over
        "resources": {"limits": most, "requests": most},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }  # fmt: skip
    return {
        "containers": [container],
        "securityContext": security,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": math.ceil(kind.limits.wall_s + extras.grace_s + 2 * START_S),
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostNetwork": False,
        "hostPID": False,
        "hostIPC": False,
        "shareProcessNamespace": False,
        "hostname": "sandbox",
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "nodeSelector": {"kubernetes.io/os": "linux"},
    }


@dataclass(frozen=True, slots=True)
class PodKind:
    """What a box is to be, and for which run."""

    limits: Limits
    entry: str
    light: bool
    run: str = ""

    def start(self, token: str, extras: BoxLimits) -> dict[str, Any]:
        """The first frame to the worker (``agentos/worker/container_init.py``)."""
        return {
            "token": token,
            "warm": [*(_LIGHT if self.light else _WHOLE), self.entry.partition(":")[0]],
            "entry": self.entry,
            "request": file_systems_and_limits(self.limits, extras),
            "seccomp": seccomp.assemble(call_list()).hex(),
        }


class PodBox:
    """One box; the Box port. Any thread may close it."""

    group = None  # nobody counts what it uses

    def __init__(self, pods: Pods, name: str, kind: PodKind, began: float) -> None:
        self.name = name
        self.run = kind.run
        self._pods = pods
        self._began = began
        self.channel, (self._reads, self._writes) = pipes()
        self.channel.bound(*answer_bounds(kind.limits))
        for descriptor in (self._reads, self._writes):
            os.set_blocking(descriptor, False)
        self._attached: Attached | None = None
        self._clock: threading.Timer | None = None
        self._usage: BoxUsage | None = None
        self._lock = threading.Lock()
        self._asked = False  # to end, by us
        self._cut: bool | None = None  # how its stream ended, if it did before that
        self.fault: ClusterFault | None = None  # why its end says nothing of its job

    def attach(self) -> None:
        """Raises ClusterFault."""
        try:
            self._attached = self._pods.cluster.attach(
                self.name, CONTAINER, self._reads, self._writes, self._stream_ended
            )
        finally:  # it has its own
            self._let_go()

    def greet(self, start: Mapping[str, Any], limits: Limits) -> None:
        """Have the worker begin, lock itself in, and start the clock. Raises ClusterFault."""
        self.kill_after(limits.wall_s, self._pods.extras.grace_s + START_S)
        until = time.monotonic() + START_S
        try:
            self.channel.send(dict(start), deadline=until)
            head = self.channel.receive(deadline=until).head
            if not hmac.compare_digest(str(head.get("hello", "")).encode(), str(start["token"]).encode()):
                raise FrameError(str(head.get("error", "it showed a token that is not its own")))
            if head.get("worker") != _worker_digest():
                self.close()
                raise ClusterFault(
                    "image", "it holds the worker of another version of agentos: build and push it anew"
                )
            self.channel.send({"go": True}, deadline=until)
            head = self.channel.receive(deadline=until).head
            if "locked" not in head:
                raise FrameError(f"it could not lock itself in: {head.get('error', 'it said nothing')}")
        except (WireClosed, WireLate, FrameError) as error:
            raise self._no_start(error) from None
        self.kill_after(limits.wall_s, self._pods.extras.grace_s)

    def kill_after(self, wall_s: float, grace_s: float = 0.0) -> None:
        """The last resort: its channel closed by then, and its end asked for, whether or not anybody reads there."""
        if self._clock is not None:
            self._clock.cancel()
        self._clock = threading.Timer(wall_s + grace_s, self._kill)
        self._clock.daemon = True
        self._clock.start()

    def close(self) -> BoxUsage:
        """See ``ports.Box``. Where its end is the cluster's doing, or cannot be seen, it says so in ``lost``."""
        with self._lock:
            if self._usage is not None:
                return self._usage
            if self._clock is not None:
                self._clock.cancel()
            cut = None if self._asked else self._cut
            self._asked = True
            self.channel.close()
            if self._attached is not None:
                self._attached.hang_up()
            oom = False
            try:
                oom = cut is not None and self._pods.judge(self.name, cut=cut)
            except ClusterFault as fault:
                self.fault = fault
            try:
                self._pods.end(self.name)
            except ClusterFault as fault:
                self.fault = self.fault or fault
            lost = str(self.fault or "")
            self._usage = BoxUsage(time.monotonic() - self._began, 0.0, 0.0, oom, lost)
            return self._usage

    def __enter__(self) -> PodBox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _no_start(self, error: Exception) -> ClusterFault:
        """Close it: why it did not begin, as far as anybody tells."""
        if self._attached is not None and isinstance(error, WireClosed):
            with suppress(TimeoutError):
                self._attached.over.result(1)
        told = (self._attached.told if self._attached is not None else b"").decode(errors="replace").strip()
        self.close()
        why = f"{error or type(error).__name__} {told[-_STDERR_MAX:]}".strip()
        return self.fault or ClusterFault("slow" if isinstance(error, WireLate) else "start", why)

    def _kill(self) -> None:
        self._asked = True
        self.channel.close()
        if self._attached is not None:
            self._attached.hang_up()
        with suppress(ClusterFault):  # its pod's own deadline comes
            self._pods.cluster.delete(self.name)

    def _stream_ended(self, whole: bool) -> None:
        """On the loop's thread. Whoever reads its channel sees the end after this is known."""
        self._cut = not whole

    def _let_go(self) -> None:
        for descriptor in (self._reads, self._writes):
            if descriptor >= 0:
                os.close(descriptor)
        self._reads = self._writes = -1


class Pods:
    """The pods of one home: made, looked at, ended. Thread-safe."""

    def __init__(self, cluster: Cluster, settings: KubernetesSettings, owner: Owner, start_s: float) -> None:
        self.cluster = cluster
        self.start_s = start_s
        self.settings = settings
        self.extras = box_limits()
        self.image = ""  # by content, as the first pod had it
        self._owner = owner
        self._here: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    def open(self, kind: PodKind) -> PodBox:
        """A box that is locked in and waits for its job. Raises ClusterFault."""
        began = time.monotonic()
        token = secrets.token_hex(16)
        name = f"agentos-{self._owner.home}-{token}"
        labels = {HOME_LABEL: self._owner.home, OWNER_LABEL: str(self._owner), BOX_LABEL: token}
        metadata = {"name": name, "labels": labels, "annotations": {RUN_NOTE: kind.run[:200]}}
        spec = describe(kind, self.settings, self.extras)
        with self._lock:
            if self._closed:
                raise Unavailable("the sandbox is closed", kind=ErrorKind.CLOSED)
            self._here.add(name)
        try:
            self.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            self._await(name, began + self.start_s)
            box = PodBox(self, name, kind, began)
        except (ClusterFault, OSError):  # also where no descriptor is left
            self._forget(name)
            raise
        try:
            box.attach()
        except (ClusterFault, OSError):
            box.close()
            raise
        box.greet(kind.start(token, self.extras), kind.limits)
        return box

    def judge(self, name: str, *, cut: bool) -> bool:
        """Of a box whose stream ended before it was asked to: whether it ran out of memory, and so ended.

        Raises ClusterFault where its end is none of its own.
        """
        until = time.monotonic() + _TOLD_S
        while True:
            pod = self.cluster.pod(name)
            if pod is None or "deletionTimestamp" in pod["metadata"]:
                raise ClusterFault("deleted", disruption(pod) or "its pod was deleted by somebody else")
            if fault := pod_fault(pod):
                raise fault
            if ended := container_status(pod).get("state", {}).get("terminated"):
                if ended.get("reason") == "OOMKilled":
                    return True
                if cut:
                    raise ClusterFault("cut", "its stream broke off before all of it was there")
                return False
            if time.monotonic() > until:
                raise ClusterFault("cut", "its stream broke off while it ran")
            time.sleep(_LOOK_S * 2)

    def end(self, name: str) -> None:
        """Delete it and wait until nothing of it runs. Raises ClusterFault; it is tried again at the end."""
        self.cluster.delete(name)
        until, pause = time.monotonic() + _GONE_S, _LOOK_S
        while (pod := self.cluster.pod(name)) is not None and "terminated" not in container_status(pod).get(
            "state", {}
        ):
            if time.monotonic() > until:
                raise ClusterFault("stays", f"the node did not say within {_GONE_S:g} s that {name} is gone")
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_MAX_S)
        with self._lock:
            self._here.discard(name)

    def close(self) -> None:
        """End all that are there, in use or not."""
        with self._lock:
            self._closed = True
            left = list(self._here)
        for name in left:
            with suppress(ClusterFault):  # what stays has its deadline, and goes at the next start
                self.cluster.delete(name)
        for name in left:
            with suppress(ClusterFault):
                self.end(name)

    def _await(self, name: str, until: float) -> None:
        """Until its container runs. Raises ClusterFault with why it does not."""
        pause = _LOOK_S
        while True:
            pod = self.cluster.pod(name)
            if pod is None or "deletionTimestamp" in pod["metadata"]:
                raise ClusterFault("deleted", disruption(pod) or "its pod was deleted before it ran")
            if fault := pod_fault(pod):
                raise fault
            container = container_status(pod)
            state = container.get("state", {})
            if "running" in state:
                self._must_be_the_same(str(container.get("imageID", "")))
                return
            if "terminated" in state:
                raise ClusterFault("start", f"it ended before it began: {reason_of(state['terminated'])}")
            waiting = state.get("waiting", {})
            if waiting.get("reason") in _IMAGE | _NO_START:
                raise ClusterFault("image" if waiting["reason"] in _IMAGE else "start", reason_of(waiting))
            if time.monotonic() > until:
                why = unscheduled(pod)
                raise ClusterFault(
                    "unscheduled" if why else "slow", why or f"no container within {self.start_s:g} s"
                )
            time.sleep(pause)
            pause = min(1.5 * pause, _LOOK_MAX_S)

    def _must_be_the_same(self, image: str) -> None:
        """Boxes of two images are not compared, and a tag may move."""
        digest = image.rpartition("sha256:")[2][:16]
        with self._lock:
            self.image = self.image or digest
        if not digest or digest != self.image:
            raise ClusterFault(
                "image", f"a pod got the image {image!r}, the one that was probed is {self.image}"
            )

    def _forget(self, name: str) -> None:
        """One that did not come to be: it may be there all the same."""
        with suppress(ClusterFault):
            self.cluster.delete(name)
            with self._lock:
                self._here.discard(name)


@functools.cache
def _worker_digest() -> str:
    """Of the worker's modules, as an image of this very installation has them."""
    total = hashlib.sha256()
    for name, content in sorted(image_host.worker().items()):
        total.update(f"{name}\0".encode() + content)
    return total.hexdigest()
