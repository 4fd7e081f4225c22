"""The control process' side: where workers join, which of them there are, and boxes that they hold.

All connections live in one thread's event loop; the daemon's threads ask from outside. A worker is known by its
token, and is there as long as its own connection is: when that breaks, falls silent, or its token no longer stands, it
is given up, its boxes with it. What comes afterwards comes over connections that are closed (fencing).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from agentos import __version__
from agentos.domain import Limits
from agentos.errors import HomeBusy, HostAway
from agentos.sandboxes.box import CHUNK
from agentos.sandboxes.remote import protocol
from agentos.sandboxes.remote.box import Admission, RemoteBox, WorkerLink, WorkerState, sent, take
from agentos.sandboxes.remote.protocol import (
    BEAT_S,
    BOX,
    FROM_WORKER,
    JOIN,
    Beat,
    Hello,
    PeerError,
)

LOST_S = 10.0  # without a word, after which a worker is given up
_HELLO_S = 10.0
_CONNECTIONS_MAX = 2048  # of all peers, let in or not
_FAILED_RATE, _FAILED_BURST = 1.0, 20.0  # requests a second without a token that stands
_BEATS_LOST = 3  # beats that could not be sent, after which it is given up

log = logging.getLogger("agentos.workers")
_library = logging.getLogger("agentos.workers.connections")
_library.setLevel(logging.CRITICAL)  # it tells of each connection, and whoever knocks could fill the log


@dataclass(frozen=True, slots=True)
class Door:
    """Where workers join, and who may: ``admit`` tells by the token's text, ``stands`` whether it still does.

    ``unwanted`` says why a worker gets no work, "" where it does; it is asked at each word of the worker.
    """

    address: str
    port: int
    admit: Callable[[str], Admission | None]
    stands: Callable[[Admission], bool]
    unwanted: Callable[[Admission, Hello], str] = lambda admission, hello: ""
    certificate: Path | None = None
    key: Path | None = None
    lost_s: float = LOST_S


class _Counted(ServerConnection):
    """``admission``: whom its token let in."""

    admission: Admission | None = None


class _Knocking(socket.socket):
    """A connection, from before any handshake until it is closed."""

    counted_by: _Threshold | None = None

    def _real_close(self) -> None:
        if self.counted_by is not None:
            self.counted_by.now -= 1
            self.counted_by = None
        super()._real_close()  # type: ignore[misc]


class _Threshold(socket.socket):
    """The socket that listens: it takes in so many connections at a time, also such that say nothing yet."""

    now = 0

    def accept(self) -> tuple[socket.socket, Any]:
        found, address = super().accept()
        if self.now >= _CONNECTIONS_MAX:
            found.close()
            raise ConnectionAbortedError("too many connections")  # the loop goes on to listen
        self.now += 1
        knocking = _Knocking(fileno=found.detach())
        knocking.counted_by = self
        return knocking, address


def _listening(address: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    with socket.create_server((address, port), family=family) as made:
        return _Threshold(fileno=made.detach())


@dataclass
class _Failures:
    """A token bucket for all that come without a token that stands."""

    left: float = _FAILED_BURST
    at: float = field(default_factory=time.monotonic)

    def too_many(self) -> bool:
        now = time.monotonic()
        self.left, self.at = min(_FAILED_BURST, self.left + (now - self.at) * _FAILED_RATE), now
        self.left -= 1
        if self.left < 0:
            self.left = 0.0
            return True
        return False


class Fleet:
    """The workers of a home. Thread-safe; ``start`` listens."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._workers: dict[str, WorkerLink] = {}
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="workers", daemon=True)
        self._listening: Future[int] = Future()
        self._stop: asyncio.Event = asyncio.Event()
        self._failures = _Failures()

    def start(self) -> int:
        """Listen; the port. Raises HomeBusy where it cannot be had, or the certificate is none."""
        self._thread.start()
        return self._listening.result(30)

    def close(self) -> None:
        """Hang up on all; idempotent."""
        if self._thread.is_alive():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def states(self) -> tuple[WorkerState, ...]:
        """All that are there, by name."""
        with self._lock:
            workers = sorted(self._workers.values(), key=lambda one: one.name)
        return tuple(one.state(self._door.unwanted(one.admission, one.hello)) for one in workers)

    def open(self, name: str, limits: Limits, *, light: bool, run: str) -> RemoteBox:
        """A box there. Raises HostAway."""
        with self._lock:
            worker = self._workers.get(name)
        if worker is None:
            raise HostAway(f"the worker {name} is not there any more")
        return worker.open(limits, light=light, run=run)

    # --- on the loop's thread -----------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except (OSError, ssl.SSLError) as error:
            if not self._listening.done():
                where = f"{self._door.address}:{self._door.port}"
                self._listening.set_exception(HomeBusy(f"Workers cannot join at {where}: {error}."))
        finally:
            for worker in list(self._workers.values()):
                worker.give_up("the control process ends")
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self) -> None:
        context = None
        if self._door.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(self._door.certificate, self._door.key)
        async with serve(
            self._handle, sock=_listening(self._door.address, self._door.port), ssl=context, compression=None, server_header=None,
            process_request=self._examine, create_connection=_Counted, max_size=CHUNK, max_queue=8,
            open_timeout=_HELLO_S, close_timeout=1.0, ping_interval=None, logger=_library,
            ssl_handshake_timeout=_HELLO_S if context else None,  # whoever knocks and says nothing
        ) as server:  # fmt: skip
            self._listening.set_result(next(iter(server.sockets)).getsockname()[1])
            await self._stop.wait()

    def _admitted(self, connection: ServerConnection) -> Admission | None:
        request = connection.request
        given = request.headers.get_all("Authorization") if request else []
        kind, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        return self._door.admit(text.strip()) if kind.lower() == "bearer" else None

    def _examine(self, connection: ServerConnection, request: Request) -> Response | None:
        """Before anything is exchanged: the token, and for a box its key."""
        admission = self._admitted(connection)
        if admission is None:
            if self._failures.too_many():
                return connection.respond(HTTPStatus.TOO_MANY_REQUESTS, "Too many without a token.\n")
            log.warning("a worker was refused, from %s: no token that stands", connection.remote_address)
            return connection.respond(
                HTTPStatus.UNAUTHORIZED, "The token is unknown, revoked, expired, or no worker's.\n"
            )
        assert isinstance(connection, _Counted)
        connection.admission = admission
        if request.path == JOIN:
            return None
        worker = self._workers.get(admission.name)
        box = worker.boxes.get(request.headers.get(protocol.KEY_HEADER, "")) if worker else None
        if request.path != BOX or box is None or box.opened.done():
            return connection.respond(HTTPStatus.NOT_FOUND, "There is no such box.\n")
        return None

    async def _handle(self, connection: ServerConnection) -> None:
        assert isinstance(connection, _Counted)
        admission = connection.admission
        if admission is None or connection.request is None:
            return
        if connection.request.path == BOX:
            worker = self._workers.get(admission.name)
            box = (
                worker.boxes.get(connection.request.headers.get(protocol.KEY_HEADER, "")) if worker else None
            )
            if box is not None and not box.opened.done():
                with suppress(asyncio.CancelledError):  # it was given up
                    await box.carry(connection)
            connection.transport.abort()
            return
        await self._keep(connection, admission)

    async def _keep(self, connection: ServerConnection, admission: Admission) -> None:
        """One worker, from its first word to its end."""
        allowance = protocol.Allowance()
        words = protocol.messages(connection, FROM_WORKER, allowance)
        try:
            hello = await asyncio.wait_for(anext(words), _HELLO_S)
        except (TimeoutError, StopAsyncIteration, PeerError):
            return
        why = self._refusal(admission, hello)
        if why or not isinstance(hello, Hello):
            log.warning("a worker was refused: %s (%s)", admission.name, why)
            await connection.close(protocol.REFUSED, why[:120])
            return
        allowance.grow(hello.boxes)
        worker = WorkerLink(self._loop, connection, admission, hello)
        with self._lock:
            self._workers[worker.name] = worker
        log.info("a worker joined: %s, from %s", worker.name, worker.address)
        watch = asyncio.create_task(self._watch(worker))
        why = "its connection ended"
        try:
            async for word in words:
                worker.heard = time.monotonic()
                take(worker, word)
        except PeerError as error:
            why = f"it broke the protocol: {error}"
        finally:
            watch.cancel()
            with self._lock:
                if self._workers.get(worker.name) is worker:
                    del self._workers[worker.name]
            worker.give_up(f"the worker {worker.name} was lost: {worker.is_gone or why}")
            connection.transport.abort()
            log.warning("a worker is gone: %s (%s)", worker.name, worker.is_gone or why)

    def _refusal(self, admission: Admission, hello: object) -> str:
        if not isinstance(hello, Hello):
            return "its first word is no hello"
        if hello.program != __version__:
            return f"it is agentos {hello.program}, and this is {__version__}"
        if (there := self._workers.get(admission.name)) is not None:
            return f"its token is in use, from {there.address}: each worker has a token of its own"
        return ""

    async def _watch(self, worker: WorkerLink) -> None:
        """Say that this end is there; give the worker up where it is silent, takes nothing, or may no more.

        No word of the worker, and none that it fails to read, may hold this up: it is what cuts it off.
        """
        untaken = 0
        while True:
            taken = await sent(worker.connection, Beat().model_dump_json(), BEAT_S)
            untaken = 0 if taken else untaken + 1
            if time.monotonic() - worker.heard > self._door.lost_s:
                worker.is_gone = f"nothing was heard of it for {self._door.lost_s:g} s"
            elif untaken >= _BEATS_LOST:
                worker.is_gone = "it takes nothing that it is told"
            elif not await self._stands(worker.admission):
                worker.is_gone = "its token was revoked or has expired"
            if worker.is_gone:
                worker.connection.transport.abort()
                return
            await asyncio.sleep(BEAT_S)

    async def _stands(self, admission: Admission) -> bool:
        """What cannot be found out at this moment is asked again with the next beat."""
        try:
            return await asyncio.to_thread(self._door.stands, admission)
        except OSError as error:
            log.warning("whether the token of %s stands cannot be read: %s", admission.name, error)
            return True
