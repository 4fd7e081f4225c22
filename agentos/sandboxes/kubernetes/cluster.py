"""The cluster's API, as far as boxes need it: pods made, looked at, attached to and deleted.

Whatever goes wrong between here and a running pod is a ``ClusterFault`` of a kind: the machinery's, never a run's.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal

from agentos.errors import Unavailable, UserError, missing_extra
from agentos.sandboxes.kubernetes.access import Access

try:
    import httpx
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
    from websockets.typing import Subprotocol

    from agentos.sandboxes.remote.protocol import PeerError, bytes_in, bytes_out
except ModuleNotFoundError:
    raise Unavailable(missing_extra("kubernetes", "The sandbox in pods")) from None

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
_TRIES, _PAUSE_S, _PAUSE_MAX_S = 4, 0.25, 3.0
_PASSING = {429, 500, 502, 503, 504}
_PROTOCOLS = [Subprotocol("v5.channel.k8s.io"), Subprotocol("v4.channel.k8s.io")]
_STDIN, _STDOUT, _STDERR, _STATUS, _CLOSE = 0, 1, 2, 3, 255  # the first byte of each message
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
        """Carry bytes between these descriptors and the container's standard input and output, then close them.

        ``ended`` is told before that, and whether the stream came to its own end. Raises ClusterFault.
        """
        attached = Attached(self._loop, reads, writes, ended)
        query = f"container={container}&stdin=true&stdout=true&stderr=true"
        url = f"{self._access.url}{self._pods}/{name}/attach?{query}".replace("http", "ws", 1)
        begun = asyncio.run_coroutine_threadsafe(attached.begin(self._dial(url)), self._loop)
        try:
            begun.result(self._timeout_s + 5)
        except InvalidStatus as error:
            body = error.response.body or b""
            _well(error.response.status_code, {"message": bytes(body).decode(errors="replace")})
            raise ClusterFault("cut", f"attaching: {error}") from None
        except (TimeoutError, OSError, InvalidHandshake, InvalidURI) as error:
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
        except (UserError, OSError) as error:
            raise ClusterFault("refused", str(error)) from None

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, **query: str
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer. What passes is waited for a few times; each call may be made twice."""
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


# --- A container's standard input and output ----------------------------------------------------


class Attached:
    """One stream; what it carries belongs to the loop's thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, reads: int, writes: int, ended: Callable[[bool], None]
    ) -> None:
        self._loop, self._reads, self._writes, self._ended = loop, reads, writes, ended
        self._carrying: asyncio.Task[None] | None = None
        self.told = b""  # the end of what came on standard error
        self.over: Future[None] = Future()

    async def begin(self, dial: connect) -> None:
        """Connect, and go on in a task of its own. Raises what ``connect`` does."""
        connection = await dial
        self._carrying = asyncio.create_task(self._carry(connection))

    def hang_up(self) -> None:
        """From any thread: soon nobody carries anything."""

        def end() -> None:
            if self._carrying is not None:
                self._carrying.cancel()

        with suppress(RuntimeError):  # the loop has ended, and the stream with it
            self._loop.call_soon_threadsafe(end)

    async def _carry(self, connection: ClientConnection) -> None:
        stdio = _Stdio(connection)
        out = asyncio.create_task(bytes_out(self._reads, stdio))
        whole = False
        try:
            await bytes_in(stdio, self._writes)
            whole = stdio.status.get("status") is not None
        except PeerError:
            pass
        finally:
            out.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await out
            self.told = stdio.told
            self._ended(whole)
            connection.transport.abort()
            self.over.set_result(None)


class _Stdio:
    """The channels of the API's protocol as the one stream that ``bytes_in`` and ``bytes_out`` carry."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.told = b""
        self.status: dict[str, Any] = {}

    async def send(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            await self._connection.send(bytes([_STDIN]) + data[start : start + _CHUNK])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._connection:
            if not isinstance(data, bytes) or not data:
                raise PeerError("no message of the channel protocol")
            if data[0] == _STDOUT and data[1:]:
                yield data[1:]
            elif data[0] == _STDERR:
                self.told = (self.told + data[1:])[-_TOLD:]
            elif data[0] == _STATUS and data[1:]:
                with suppress(ValueError):
                    self.status = dict(json.loads(data[1:]))


async def _end_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
