"""The cluster's API, as far as boxes need it: pods made, looked at, attached to and deleted.

Whatever goes wrong between here and a running pod is a ``ClusterFault`` of a kind: the machinery's, never a run's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import yaml

from agentos.errors import ErrorKind, Unavailable, UserError, missing_extra
from agentos.sandboxes.box import read_some, write_all

try:
    import httpx
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
    from websockets.typing import Subprotocol

except ModuleNotFoundError:
    raise Unavailable(
        missing_extra("kubernetes", "The sandbox in pods"), kind=ErrorKind.NOT_INSTALLED
    ) from None

Kind = Literal[
    "away",  # nobody answers
    "slow",  # not in time
    "cut",  # the answer or the stream broke off
    "busy",  # 429, also after waiting
    "server",  # 5xx, also after waiting
    "refused",  # 401, 403, 422: who asks, or for what
    "quota",  # of the namespace
    "image",  # cannot be had, or is another one
    "start",  # the container did not begin
    "unscheduled",  # no node took it
    "evicted",  # the node or the cluster ended it
    "deadline",  # it outlived its pod's
    "deleted",  # by somebody else
    "stays",  # it was to end, and did not
]
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLUGIN_S = 30.0
_EARLY = timedelta(seconds=60)  # before it ends a token is asked for anew
_TRIES, _PAUSE_S, _PAUSE_MAX_S = 4, 0.25, 3.0
_PASSING = {429, 500, 502, 503, 504}
_PROTOCOLS = [Subprotocol("v5.channel.k8s.io"), Subprotocol("v4.channel.k8s.io")]
_STDIN, _STDOUT, _STDERR, _STATUS = range(4)  # the first byte of each message
_CHUNK = 32 << 10  # of standard input in one message
_TOLD = 2000  # last bytes of standard error that are kept


class ClusterFault(Unavailable):
    """The machinery failed, as ``kind`` says."""

    def __init__(self, kind: Kind, detail: str) -> None:
        self.kind = kind
        self.detail = detail[:500]
        super().__init__(f"kubernetes, {kind}: {self.detail}")


class Cluster:
    """One namespace of one cluster. Thread-safe; constructing connects to nothing."""

    def __init__(self, access: Access, timeout_s: float = 10.0) -> None:
        self.url, self.namespace = access.url, access.namespace
        self._access = access
        self._timeout_s = timeout_s
        self._http = httpx.Client(
            base_url=access.url,
            verify=access.trust if access.trust is not None else True,
            timeout=timeout_s,
            limits=httpx.Limits(max_connections=64, keepalive_expiry=20),
            follow_redirects=False,
        )
        self._pods = f"/api/v1/namespaces/{access.namespace}/pods"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
        self._thread.start()

    def create(self, pod: dict[str, Any]) -> None:
        """Raises ClusterFault. A name that is there is this very pod: the answer to the first try was lost."""
        status, answer = self._ask("POST", self._pods, pod)
        if status == 409 and answer.get("reason") == "AlreadyExists":
            return
        _well(status, answer)

    def pod(self, name: str) -> dict[str, Any] | None:
        """As it is now; None when there is none. Raises ClusterFault."""
        status, answer = self._ask("GET", f"{self._pods}/{name}")
        return None if status == 404 else _well(status, answer)

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Those with these labels. Raises ClusterFault."""
        status, answer = self._ask("GET", self._pods, labelSelector=selector)
        found: list[dict[str, Any]] = _well(status, answer).get("items") or []
        return found

    def delete(self, name: str) -> None:
        """Ask for its end; a second is the least that a node waits for. Raises ClusterFault."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 1}
        status, answer = self._ask("DELETE", f"{self._pods}/{name}", options)
        if status != 404:
            _well(status, answer)

    def attach(
        self, name: str, container: str, reads: int, writes: int, ended: Callable[[bool], None]
    ) -> Attached:
        """Carry bytes between these descriptors, of which it has copies, and the container's input and output.

        ``ended`` is told before the copies are closed, and whether the stream came to its own end. Raises ClusterFault.
        """
        query = f"container={container}&stdin=true&stdout=true&stderr=true"
        url = f"{self._access.url}{self._pods}/{name}/attach?{query}".replace("http", "ws", 1)
        dial = self._dial(url)  # first: who may not ask leaves no descriptors behind
        attached = Attached(self._loop, reads, writes, ended)
        begun = asyncio.run_coroutine_threadsafe(attached.begin(dial), self._loop)
        try:
            begun.result(self._timeout_s + 5)
        except InvalidStatus as error:
            body = error.response.body or b""
            _well(error.response.status_code, {"message": bytes(body).decode(errors="replace")})
            raise ClusterFault("cut", f"attaching: {error}") from None
        except (TimeoutError, OSError, InvalidHandshake, InvalidURI, CancelledError) as error:
            begun.cancel()
            attached.hang_up()
            kind: Kind = "slow" if isinstance(error, TimeoutError) else "cut"
            raise ClusterFault(kind, f"attaching: {error or type(error).__name__}") from None
        return attached

    def close(self) -> None:
        """End the streams that are left and the connections."""
        with suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()
        self._http.close()

    def _dial(self, url: str) -> connect:
        return connect(
            url, subprotocols=_PROTOCOLS, additional_headers=self._headers(), ssl=self._access.trust, compression=None,
            max_size=1 << 20, max_queue=8, open_timeout=self._timeout_s, close_timeout=1.0, ping_interval=None,
            user_agent_header=None,
        )  # fmt: skip

    def _headers(self) -> dict[str, str]:
        try:
            return self._access.headers()
        except (UserError, OSError, UnicodeDecodeError) as error:
            raise ClusterFault("refused", str(error)) from None

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, **query: str
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer. What passes is waited for a few times; each call may be made twice."""
        if self._http.is_closed:  # a box's clock may outlive its sandbox
            raise ClusterFault("away", "the sandbox is closed")
        pause = _PAUSE_S
        for left in reversed(range(_TRIES)):
            try:
                answer = self._http.request(method, path, json=body, params=query, headers=self._headers())
            except httpx.TimeoutException as error:
                raise ClusterFault(
                    "slow", f"no answer within {self._timeout_s:g} s ({type(error).__name__})"
                ) from None
            except httpx.TransportError as error:
                if left:
                    time.sleep(pause)
                    pause = min(2 * pause, _PAUSE_MAX_S)
                    continue
                kind: Kind = "away" if isinstance(error, httpx.ConnectError) else "cut"
                raise ClusterFault(kind, f"{error or type(error).__name__}") from None
            if answer.status_code not in _PASSING or not left:
                return answer.status_code, _document(answer)
            with suppress(ValueError):
                pause = max(pause, float(answer.headers.get("Retry-After", "0")))
            time.sleep(min(pause, _PAUSE_MAX_S))
            pause *= 2
        raise AssertionError("the loop returns or raises")


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    if answer.is_success:
        raise ClusterFault("cut", "the answer is no JSON object")
    return {"message": answer.text[:300]}


def _well(status: int, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, if it is none of failure. Raises ClusterFault."""
    if status < 300:
        return answer
    told = f"{status}: {answer.get('message') or answer.get('reason') or 'no reason given'}"
    if status == 403 and "exceeded quota" in told:  # the API has no other sign of it
        raise ClusterFault("quota", told)
    if status == 429:
        raise ClusterFault("busy", told)
    raise ClusterFault("server" if status >= 500 else "refused", told)


# --- What a pod says of itself --------------------------------------------------------------------


def container_status(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Of its one container; empty before there is one."""
    found = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return dict(found[0])


def disruption(pod: Mapping[str, Any] | None) -> str:
    """Why the cluster ended it, as the condition for disruptions has it."""
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    found = [it for it in conditions if it.get("type") == "DisruptionTarget" and it.get("status") == "True"]
    return reason_of(found[0]) if found else ""


def pod_fault(pod: Mapping[str, Any]) -> ClusterFault | None:
    """Whether the pod, rather than its container, failed. It keeps a reason only then."""
    status = pod.get("status") or {}
    if why := disruption(pod):
        return ClusterFault("evicted", why)
    if status.get("phase") != "Failed" or not status.get("reason"):
        return None
    kind: Kind = "deadline" if status["reason"] == "DeadlineExceeded" else "evicted"
    return ClusterFault(kind, reason_of(status))


def unscheduled(pod: Mapping[str, Any]) -> str:
    """Why no node takes it, "" where one does."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    found = [it for it in conditions if it.get("type") == "PodScheduled" and it.get("status") == "False"]
    return reason_of(found[0]) if found else ""


def reason_of(state: Mapping[str, Any]) -> str:
    """Its reason and message."""
    code = f" (exit code {state['exitCode']})" if "exitCode" in state else ""
    return f"{state.get('reason', '')}{code}: {state.get('message', '')}".strip(": ")


# --- A container's standard input and output ----------------------------------------------------


class Attached:
    """One stream; what it carries belongs to the loop's thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, reads: int, writes: int, ended: Callable[[bool], None]
    ) -> None:
        self._loop, self._ended = loop, ended
        self._reads, self._writes = os.dup(reads), os.dup(writes)
        self._carrying: asyncio.Task[None] | None = None
        self.told = b""  # the end of what came on standard error
        self.over: Future[None] = Future()

    async def begin(self, dial: connect) -> None:
        """Connect, and go on in a task of its own. Raises what ``connect`` does."""
        connection: ClientConnection | None = None
        try:
            connection = await dial
        finally:
            if connection is None:
                self._close()
        self._carrying = asyncio.create_task(self._carry(connection))
        self._carrying.add_done_callback(lambda _: self._close())

    def hang_up(self) -> None:
        """From any thread: soon nobody carries anything."""

        def end() -> None:
            if self._carrying is not None:
                self._carrying.cancel()

        with suppress(RuntimeError):  # the loop has ended, and the stream with it
            self._loop.call_soon_threadsafe(end)

    async def _carry(self, connection: ClientConnection) -> None:
        out = asyncio.create_task(self._out(connection))
        whole = False
        try:
            async for data in connection:
                if not isinstance(data, bytes) or not data:
                    break  # no message of the protocol
                whole = whole or _is_end(data)
                if data[0] == _STDOUT:
                    await write_all(self._writes, data[1:])
                elif data[0] == _STDERR:
                    self.told = (self.told + data[1:])[-_TOLD:]
        except ConnectionClosed:
            pass
        finally:
            out.cancel()
            with suppress(asyncio.CancelledError, ConnectionClosed):
                await out
            self._ended(whole)
            connection.transport.abort()

    def _close(self) -> None:
        for descriptor in (self._reads, self._writes):
            os.close(descriptor)
        self.over.set_result(None)

    async def _out(self, connection: ClientConnection) -> None:
        """What the kernel sends, until it closes its end."""
        while data := await read_some(self._reads):
            for start in range(0, len(data), _CHUNK):
                await connection.send(bytes([_STDIN]) + data[start : start + _CHUNK])


def _is_end(data: bytes) -> bool:
    """Whether the other end says that it sent all there was."""
    try:
        return data[0] == _STATUS and json.loads(data[1:])["status"] == "Success"
    except (ValueError, KeyError, TypeError):
        return False


async def _end_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- Who asks, read as kubectl reads it: a token, a token's file, a certificate, or a program that prints a token
# (client.authentication.k8s.io/v1)


@dataclass(slots=True)
class Access:
    """``url`` and ``namespace`` of the cluster, and what proves who asks. Thread-safe."""

    url: str
    namespace: str
    trust: ssl.SSLContext | None
    token: str = ""
    token_file: Path | None = None
    plugin: Mapping[str, Any] | None = None
    _until: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def headers(self) -> dict[str, str]:
        """With a token that stands now. Raises UserError where the program that makes them does not."""
        if self.token_file is not None:  # the kubelet writes a new one each hour
            return _bearer(self.token_file.read_text().strip())
        with self._lock:
            if self.plugin is not None and (self._until is None or datetime.now(UTC) > self._until):
                self.token, self._until = _asked(self.plugin, self.url)
            return _bearer(self.token)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def find_access(context: str, namespace: str) -> Access:
    """That context of the kubeconfig, "" for the current one. Raises UserError."""
    if not context and (_ACCOUNT / "token").exists():
        host, port = (
            os.environ.get("KUBERNETES_SERVICE_HOST", ""),
            os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
        )
        if host:
            trust = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
            return Access(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", namespace, trust,
                          token_file=_ACCOUNT / "token")  # fmt: skip
    path = Path(os.path.expanduser(os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or "~/.kube/config"))
    try:
        return _of(yaml.safe_load(path.read_text(encoding="utf-8")), context, namespace, path.parent)
    except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise UserError(
            f"The cluster is not known ({path}: {why}): name a kubeconfig in the variable KUBECONFIG, and its "
            "context in the table [kubernetes] of agentos.toml."
        ) from None


def _of(config: Mapping[str, Any] | None, context: str, namespace: str, folder: Path) -> Access:
    if not config:
        raise ValueError("it is empty")
    chosen = _named(config, "contexts", context or config.get("current-context", ""))["context"]
    cluster = _named(config, "clusters", chosen["cluster"])["cluster"]
    user = _named(config, "users", chosen["user"]).get("user") or {}
    token_file = folder / user["tokenFile"] if "tokenFile" in user else None
    url = str(cluster["server"]).rstrip("/")
    return Access(
        url,
        namespace,
        _trust(cluster, user, folder) if url.startswith("https") else None,
        str(user.get("token", "")),
        token_file,
        user.get("exec"),
    )


def _named(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for one in config.get(kind) or ():
        if one["name"] == name:
            found: Mapping[str, Any] = one
            return found
    raise ValueError(f"there is no {name!r} among its {kind}")


def _trust(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> ssl.SSLContext:
    """Its own authority where one is named. A cluster that nobody vouches for is refused."""
    if cluster.get("insecure-skip-tls-verify"):
        raise ValueError("insecure-skip-tls-verify: name the authority of the cluster instead")
    authority = _content(cluster, "certificate-authority", folder)
    trust = ssl.create_default_context(cadata=authority.decode() if authority else None)
    certificate, key = (_content(user, f"client-{kind}", folder) for kind in ("certificate", "key"))
    if certificate and key:
        # mode 0600; ssl reads files only
        with tempfile.NamedTemporaryFile(prefix="agentos-", suffix=".pem") as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            trust.load_cert_chain(file.name)
    return trust


def _content(table: Mapping[str, Any], name: str, folder: Path) -> bytes:
    if f"{name}-data" in table:
        return base64.b64decode(table[f"{name}-data"])
    return (folder / table[name]).read_bytes() if name in table else b""


def _asked(plugin: Mapping[str, Any], url: str) -> tuple[str, datetime | None]:
    """What the program of the kubeconfig prints: a token, and when to ask anew."""
    command: Any = plugin.get("command")
    try:
        asked = {
            "apiVersion": str(plugin["apiVersion"]),
            "kind": "ExecCredential",
            "spec": {"interactive": False, "cluster": {"server": url}},
        }
        variables = {one["name"]: one["value"] for one in plugin.get("env") or ()}
        done = subprocess.run(
            [command, *(plugin.get("args") or ())],
            env=os.environ | variables | {"KUBERNETES_EXEC_INFO": json.dumps(asked)},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_PLUGIN_S, check=True,
        )  # fmt: skip
        status = json.loads(done.stdout)["status"]
        token = str(status["token"])
        ends = status.get("expirationTimestamp")
        if not ends:
            return token, datetime.max.replace(tzinfo=UTC)
        until = datetime.fromisoformat(ends)
        return token, (until if until.tzinfo else until.replace(tzinfo=UTC)) - _EARLY
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError, OverflowError) as error:
        told = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()[-300:]
        raise UserError(
            f"The kubeconfig's program {command!r} gave no token ({told or f'{type(error).__name__}: {error}'})."
        ) from None
