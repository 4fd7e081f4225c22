"""A cluster for tests: the API over real HTTP and WebSockets, and one node that makes each pod a real container.

What a node's kubelet and its runtime make of a pod's description stands in ``container_of``: what they would mount,
mask and set in the environment too, whatever a box may wish. The pod gets a network, as it would where a policy is
not enforced. The API refuses what Pod Security calls less than restricted, and can be told to fail (``Faults``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentos.sandboxes.docker.engine import DockerEngine, docker

NAMESPACE, TOKEN = "agentos-boxes", "token-of-the-daemon"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
PIDS = 1024  # what the kubelet grants any pod
_CLUSTER_VARIABLES = ["KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_PORT=tcp://10.96.0.1:443"]
_SOCKET = "/var/run/docker.sock"
LABEL = "agentos.tests.cluster"


@dataclass
class Faults:
    """What goes wrong, until it is taken away."""

    # to the next requests, status and headers
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    every: int = 0  # status of every answer
    silent_s: float = 0.0  # before any answer
    torn: bool = False  # answers end in the middle
    quota: int = -1  # pods that there may be
    no_node: bool = False
    refuse_attach: int = 0
    only: str = ""  # the method that these are for; any
    pod_status: dict[str, Any] | None = None  # what every pod says of itself


class Pod:
    """One object, and the container behind it."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.name = body["metadata"]["name"]
        self.container = ""
        self.waiting: dict[str, str] | None = {"reason": "ContainerCreating"}
        self.deleted = ""
        self.status: dict[str, Any] = {}  # said over what is found
        self.started: datetime | None = None


class FakeCluster:
    """``url`` is where it listens; ``profiles`` are the node's seccomp profiles by path."""

    def __init__(self, place: Path, profiles: dict[str, dict[str, Any]]) -> None:
        self.place, self.profiles = place, profiles
        self.id = secrets.token_hex(6)
        self.faults = Faults()
        self.pods: dict[str, Pod] = {}
        self.used: set[tuple[str, str]] = set()  # resource and verb, as a Role names them
        self.attached: list[asyncio.Task[Any]] = []
        self.engine = DockerEngine()
        self._lock = threading.Lock()
        place.mkdir(parents=True, exist_ok=True)
        routes = [
            Route(PODS, self._create, methods=["POST"]),
            Route(PODS, self._list, methods=["GET"]),
            Route(PODS + "/{name}", self._get, methods=["GET"]),
            Route(PODS + "/{name}", self._delete, methods=["DELETE"]),
            WebSocketRoute(PODS + "/{name}/attach", self._attach),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            port=0,
            log_level="critical",
            lifespan="off",
            ws="websockets-sansio",
            ws_ping_interval=None,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < until
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def kubeconfig(self, token: str = TOKEN) -> Path:
        """Written anew, with one context."""
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "here", "user": "daemon"}}],
            "clusters": [{"name": "here", "cluster": {"server": self.url}}],
            "users": [{"name": "daemon", "user": {"token": token}}],
        }
        path = self.place / "kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def containers(self) -> list[dict[str, Any]]:
        """Those that there are of this cluster's pods."""
        found: list[dict[str, Any]] = self.engine.api.containers(
            all=True, filters={"label": f"{LABEL}={self.id}"}
        )
        return found

    def close(self) -> None:
        until(lambda: not self.pods, 5)
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(20)
        for left in self.containers():
            with contextlib.suppress(docker.errors.APIError):  # it is on its way
                self.engine.api.remove_container(left["Id"], force=True)
        self.engine.close()

    # --- the API

    async def _faulty(self, request: Request) -> Response | None:
        faults = self.faults
        verb = {"POST": "create", "DELETE": "delete"}.get(request.method, "get")
        self.used.add(("pods", "list" if verb == "get" and not request.path_params else verb))
        if faults.only not in ("", request.method):
            return None
        if faults.silent_s:
            await asyncio.sleep(faults.silent_s)
        if faults.torn:
            return _torn()
        if faults.every:
            return _status(faults.every, "it was told to fail")
        if faults.answers:
            code, headers = faults.answers.pop(0)
            return _status(code, "it was told to fail", headers=headers)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _status(401, "Unauthorized")
        return None

    async def _create(self, request: Request) -> Response:
        if (fault := await self._faulty(request)) is not None:
            return fault
        body = await request.json()
        name = body["metadata"]["name"]
        if why := less_than_restricted(body["spec"]):
            return _status(
                403, f'pods "{name}" is forbidden: violates PodSecurity "restricted": {why}', "Forbidden"
            )
        with self._lock:
            if name in self.pods:
                return _status(409, f'pods "{name}" already exists', "AlreadyExists")
            if 0 <= self.faults.quota <= len(self.pods):
                return _status(403, f'pods "{name}" is forbidden: exceeded quota: boxes', "Forbidden")
            pod = self.pods[name] = Pod(body)
        if not self.faults.no_node:
            threading.Thread(target=self._realise, args=(pod,), daemon=True).start()
        return JSONResponse(self._shown(pod), 201)

    async def _list(self, request: Request) -> Response:
        if (fault := await self._faulty(request)) is not None:
            return fault
        key, _, value = request.query_params.get("labelSelector", "").partition("=")
        found = [
            pod for pod in self.pods.values() if pod.body["metadata"].get("labels", {}).get(key) == value
        ]
        return JSONResponse({"kind": "PodList", "items": [self._shown(pod) for pod in found]})

    async def _get(self, request: Request) -> Response:
        if (fault := await self._faulty(request)) is not None:
            return fault
        pod = self.pods.get(request.path_params["name"])
        if pod is None:
            return _status(404, "not found", "NotFound")
        return JSONResponse(await run_in_threadpool(self._shown, pod))

    async def _delete(self, request: Request) -> Response:
        if (fault := await self._faulty(request)) is not None:
            return fault
        body = await request.body()
        pod = self.pods.get(request.path_params["name"])
        if pod is None:
            return _status(404, "not found", "NotFound")
        if not pod.deleted:
            pod.deleted = datetime.now(UTC).isoformat()
            grace_s = float((json.loads(body) if body else {}).get("gracePeriodSeconds", 30))
            threading.Thread(target=self.end, args=(pod, grace_s), daemon=True).start()
        return JSONResponse(await run_in_threadpool(self._shown, pod))

    async def _attach(self, socket: WebSocket) -> None:
        pod = self.pods.get(socket.path_params["name"])
        self.used.add(("pods/attach", "get"))
        offered = socket.scope.get("subprotocols", [])
        if self.faults.refuse_attach or pod is None or not pod.container:
            code = self.faults.refuse_attach or 404
            await socket.send_denial_response(_status(code, "no attaching"))
            return
        assert socket.headers["authorization"] == f"Bearer {TOKEN}"
        await socket.accept(
            subprotocol=next(it for it in ("v5.channel.k8s.io", "v4.channel.k8s.io") if it in offered)
        )
        task = asyncio.current_task()
        assert task is not None
        self.attached.append(task)
        try:
            await _bridge(socket, pod.container)
        finally:
            self.attached.remove(task)

    def cut_streams(self) -> None:
        """Every stream breaks off, as where a proxy in between is restarted."""
        for task in list(self.attached):
            task.get_loop().call_soon_threadsafe(task.cancel)

    # --- the node

    def _realise(self, pod: Pod) -> None:
        api = self.engine.api
        try:
            request = container_of(pod.body, self.place, self.profiles) | {"Labels": {LABEL: self.id}}
            made = api.create_container_from_config(request, pod.name)["Id"]
            pod.container = made
            api.start(made)
            pod.started = datetime.now(UTC)
            pod.waiting = None
        except docker.errors.ImageNotFound as error:
            pod.waiting = {"reason": "ErrImagePull", "message": str(error.explanation)}
        except (docker.errors.DockerException, OSError, KeyError, AssertionError) as error:
            pod.waiting = {"reason": "CreateContainerError", "message": str(error)}
        if pod.container and pod.deleted:
            self.end(pod, 0)
            return
        timer = threading.Timer(
            pod.body["spec"]["activeDeadlineSeconds"], self.evict, (pod, "DeadlineExceeded")
        )
        timer.daemon = True
        timer.start()

    def end(self, pod: Pod, grace_s: float) -> None:
        """As a kubelet does: a word, its time, and then the end; the object goes last."""
        with contextlib.suppress(docker.errors.DockerException, OSError):
            if pod.container:
                self._stop(pod, grace_s)
                self.engine.api.remove_container(pod.container, force=True, v=True)
        self.pods.pop(pod.name, None)

    def evict(
        self, pod: Pod, reason: str = "Evicted", message: str = "The node was low on resource: memory."
    ) -> None:
        """The container ends, and the object stays to say why."""
        if pod.name in self.pods:
            pod.status = {"phase": "Failed", "reason": reason, "message": message}
            with contextlib.suppress(docker.errors.DockerException, OSError):
                self._stop(pod, 0)

    def _stop(self, pod: Pod, grace_s: float) -> None:
        api = self.engine.api
        with contextlib.suppress(docker.errors.APIError):
            api.kill(pod.container, "SIGTERM")
        until = time.monotonic() + grace_s
        while time.monotonic() < until and api.inspect_container(pod.container)["State"]["Running"]:
            time.sleep(0.05)
        with contextlib.suppress(docker.errors.APIError):
            api.kill(pod.container, "SIGKILL")

    def _shown(self, pod: Pod) -> dict[str, Any]:
        metadata = pod.body["metadata"] | ({"deletionTimestamp": pod.deleted} if pod.deleted else {})
        return pod.body | {
            "metadata": metadata,
            "status": self._found(pod) | (self.faults.pod_status or pod.status),
        }

    def _found(self, pod: Pod) -> dict[str, Any]:
        if self.faults.no_node:
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/3 nodes",
            }
            return {"phase": "Pending", "conditions": [condition]}
        if pod.waiting is not None:
            return {
                "phase": "Pending",
                "containerStatuses": [{"name": "box", "state": {"waiting": pod.waiting}}],
            }
        try:
            found = self.engine.api.inspect_container(pod.container)
        except docker.errors.APIError:
            return {"phase": "Succeeded"}
        image = f"registry.example.org/agentos-sandbox@{found['Image']}"
        state = found["State"]
        if state["Running"]:
            return {
                "phase": "Running",
                "containerStatuses": [{"name": "box", "imageID": image, "state": {"running": {}}}],
            }
        # By SIGKILL, which nobody sends but a cluster that removes the pod, and the kernel where memory is out: not
        # every engine tells of that, as a node does.
        oom = state["OOMKilled"] or state["ExitCode"] == 137
        ended = {"exitCode": state["ExitCode"], "reason": "OOMKilled" if oom else "Error"}
        return {
            "phase": "Failed" if state["ExitCode"] else "Succeeded",
            "containerStatuses": [{"name": "box", "imageID": image, "state": {"terminated": ended}}],
        }


def _status(code: int, message: str, reason: str = "", headers: dict[str, str] | None = None) -> JSONResponse:
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": reason}
    return JSONResponse(body, code, headers)


def _torn() -> Response:
    async def half() -> Any:
        yield b'{"kind": "Po'
        raise ConnectionAbortedError

    return StreamingResponse(half(), headers={"Content-Length": "5000", "Content-Type": "application/json"})


# --- What a node makes of a pod -----------------------------------------------------------------


def container_of(body: dict[str, Any], place: Path, profiles: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The engine's request for the pod's container, as kubelet and containerd would make one."""
    spec = body["spec"]
    (container,) = spec["containers"]
    security, within = spec["securityContext"], container["securityContext"]
    most = container["resources"]["limits"]
    memory = _megabytes(most["memory"]) << 20
    end = place / f"{body['metadata']['name']}.end"  # the termination message, a file of the node's
    end.touch()
    end.chmod(0o666)
    profile = security["seccompProfile"]
    seccomp = (
        [f"seccomp={json.dumps(profiles[profile['localhostProfile']])}"]
        if profile["type"] == "Localhost"
        else []
    )
    assert profile["type"] != "Unconfined"
    return {
        "Image": container["image"],
        "Cmd": container["command"],
        "Entrypoint": [],
        "User": f"{security['runAsUser']}:{security['runAsGroup']}",
        "Env": list(_CLUSTER_VARIABLES),
        "Hostname": spec["hostname"],
        "OpenStdin": container["stdin"],
        "StdinOnce": container["stdinOnce"],
        "Tty": container["tty"],
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": {
            "NetworkMode": "bridge",
            "ReadonlyRootfs": within["readOnlyRootFilesystem"],
            "Dns": spec["dnsConfig"]["nameservers"],
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "Binds": [f"{end}:{container['terminationMessagePath']}"],
            "LogConfig": {"Type": "none"},
            "SecurityOpt": [
                *(["no-new-privileges:true"] if not within["allowPrivilegeEscalation"] else []),
                *seccomp,
            ],
            "CapDrop": within["capabilities"]["drop"],
            "Memory": memory,
            "MemorySwap": memory,
            "NanoCpus": int(most["cpu"].removesuffix("m")) * 1_000_000,
            "PidsLimit": PIDS,
        },
    }


def _megabytes(text: str) -> int:
    assert text.endswith("Mi")
    return int(text.removesuffix("Mi"))


def less_than_restricted(spec: dict[str, Any]) -> str:
    """Why Pod Security's profile "restricted" refuses it (Kubernetes 1.32), "" where it does not."""
    refusals: list[tuple[bool, str]] = [
        (any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")), "host namespaces"),
        (
            any(
                set(it) - {"name", "emptyDir", "configMap", "secret", "projected"}
                for it in spec.get("volumes", [])
            ),
            "volumes",
        ),
        (not spec.get("securityContext", {}).get("runAsNonRoot"), "runAsNonRoot != true"),
        (spec.get("securityContext", {}).get("runAsUser") == 0, "runAsUser=0"),
        (
            spec.get("securityContext", {}).get("seccompProfile", {}).get("type")
            not in ("RuntimeDefault", "Localhost"),
            "seccompProfile",
        ),
        (
            spec.get("securityContext", {}).get("appArmorProfile", {}).get("type") == "Unconfined",
            "appArmorProfile",
        ),
        (bool(spec.get("securityContext", {}).get("sysctls")), "sysctls"),
    ]
    for it in spec["containers"]:
        own = it.get("securityContext", {})
        refusals += [
            (own.get("privileged", False), "privileged"),
            (own.get("allowPrivilegeEscalation") is not False, "allowPrivilegeEscalation != false"),
            ("ALL" not in own.get("capabilities", {}).get("drop", []), "unrestricted capabilities"),
            (bool(set(own.get("capabilities", {}).get("add", [])) - {"NET_BIND_SERVICE"}), "capabilities"),
            (bool(own.get("procMount", "Default") != "Default"), "procMount"),
            (any("hostPort" in port for port in it.get("ports", [])), "hostPort"),
        ]
    return ", ".join(why for refused, why in refusals if refused)


# --- A container's streams as channels of the API's protocol ------------------------------------


async def _bridge(socket: WebSocket, container: str) -> None:
    reader, writer = await asyncio.open_unix_connection(_SOCKET)
    query = "stream=1&stdin=1&stdout=1&stderr=1"
    writer.write(
        f"POST /v1.41/containers/{container}/attach?{query} HTTP/1.1\r\nHost: node\r\n"
        "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 101 " in head.partition(b"\r\n")[0], head

    async def inward() -> None:
        try:
            while True:
                data = await socket.receive_bytes()
                assert data[0] == 0, "only standard input goes in"
                writer.write(data[1:])
                await writer.drain()
        except (WebSocketDisconnect, RuntimeError, OSError):
            return

    async def outward() -> None:
        while True:
            try:
                kind, size = struct.unpack(">BxxxI", await reader.readexactly(8))
                data = await reader.readexactly(size)
            except (asyncio.IncompleteReadError, OSError):
                await socket.send_bytes(
                    b"\x03" + json.dumps({"kind": "Status", "status": "Success"}).encode()
                )
                return
            await socket.send_bytes(bytes([kind]) + data)

    tasks = [asyncio.create_task(inward()), asyncio.create_task(outward())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[1].done():
            with contextlib.suppress(RuntimeError):
                await socket.close(1000)
    finally:
        for task in tasks:
            task.cancel()
        writer.close()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def fake_cluster(place: Path, profiles: dict[str, dict[str, Any]]) -> Iterator[FakeCluster]:
    made = FakeCluster(place, profiles)
    try:
        yield made
    finally:
        made.close()


def until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
