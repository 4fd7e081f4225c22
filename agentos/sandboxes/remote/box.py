"""A worker that is there, as the control process holds it, and the boxes that are open on it.

A box's channel is two pipes, as that of a box on this machine; what carries them over is here. A box is over once,
as its worker said or because that is gone, and from then on nothing of it is taken.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from agentos.domain import Limits
from agentos.errors import HostAway
from agentos.ports import BoxUsage
from agentos.sandboxes.box import answer_bounds, box_limits, pipes
from agentos.sandboxes.remote.protocol import (
    BEAT_S,
    Beat,
    BoxEnded,
    BoxRefused,
    CloseBox,
    Hello,
    OpenBox,
    PeerError,
    WireLimits,
    bytes_in,
    bytes_out,
)

_OPEN_S, _CLOSE_S = 60.0, 15.0


@dataclass(frozen=True, slots=True)
class Admission:
    """Whom a token lets in. ``name`` is the worker's, ``id`` of this very token."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker that is there, as it was a moment ago. ``unwanted``: why it gets no work."""

    name: str
    address: str
    since: datetime
    hello: Hello
    load: float
    free_mb: int
    silent_s: float
    memory_mb: int  # that its boxes may take
    runs: tuple[tuple[str, str], ...] = ()  # what its open boxes are for, and since when
    unwanted: str = ""


class RemoteBox:
    """One box of a worker; the Box port. Any thread may close it."""

    def __init__(self, worker: WorkerLink, limits: Limits, run: str) -> None:
        self.channel, (self._reads, self._writes) = pipes()
        self.channel.bound(*answer_bounds(limits))
        for descriptor in (self._reads, self._writes):
            os.set_blocking(descriptor, False)
        self.key = secrets.token_urlsafe(32)
        self.run = run
        self.memory_mb = limits.memory_mb + limits.workspace_mb
        self.since = datetime.now(UTC)
        self.opened: Future[None] = Future()
        self._began = time.monotonic()
        self._worker = worker
        self._ended: Future[BoxUsage] = Future()
        self._lock = threading.Lock()
        self._link: asyncio.Task[None] | None = None
        self._connection: ServerConnection | None = None
        self._clock: asyncio.TimerHandle | None = None

    def close(self) -> BoxUsage:
        """See ``ports.Box``. Of a box whose worker is gone it says so, in ``BoxUsage.lost``."""
        self.channel.close()
        if not self._ended.done():
            self._worker.ask_to_close(self)
            with suppress(TimeoutError):
                self._ended.result(_CLOSE_S)
            self.finish(
                lost=f"the worker {self._worker.name} did not say within {_CLOSE_S:g} s that it is gone"
            )
        return self._ended.result()

    def __enter__(self) -> RemoteBox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def finish(self, said: BoxEnded | None = None, lost: str = "") -> None:
        """It is over, once: as the worker said, or because that is gone. From then on nothing of it is taken."""
        with self._lock:
            if self._ended.done():
                return
            if said is None or said.cut:
                lost = lost or f"the connection of a box on the worker {self._worker.name} broke"
                self._ended.set_result(BoxUsage(time.monotonic() - self._began, 0.0, 0.0, False, lost))
            else:
                self._ended.set_result(BoxUsage(said.wall_s, said.cpu_s, said.memory_peak_mb, said.oom))
        with suppress(InvalidStateError):  # it was there
            self.opened.set_exception(HostAway(lost or "the box ended before it was there"))
        self._worker.forget(self, cut=bool(lost) or self._link is None)

    # on the loop's thread

    def ended(self, said: BoxEnded) -> None:
        """The worker says that it is gone. It hangs up first: what it could still send would outlive the box."""
        if said.cut or self._connection is None or self._connection.state is not State.OPEN:
            self.finish(said)
        else:
            self.finish(lost=f"the worker {self._worker.name} ended a box and kept its connection")

    def limit(self, seconds: float) -> None:
        """The last resort, also against a worker that does not end it: its channel is closed by then."""
        if not self._ended.done():
            self._clock = self._worker.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        late = f"a box on the worker {self._worker.name} outlived its limit"
        self._worker.send(CloseBox(key=self.key))
        self._clock = self._worker.loop.call_later(_CLOSE_S, lambda: self.finish(lost=late))

    def over(self, *, cut: bool) -> None:
        """It is over; ``cut``: what still comes over its connection is not taken."""
        if self._clock is not None:
            self._clock.cancel()
        if cut:
            self.let_go()

    async def carry(self, connection: ServerConnection) -> None:
        """Move its bytes until either end is gone."""
        self._link, self._connection = asyncio.current_task(), connection
        out = asyncio.create_task(bytes_out(self._reads, connection))
        try:
            if not self.opened.done():
                self.opened.set_result(None)
            await bytes_in(connection, self._writes)
            if connection.close_code != 1000:
                self.finish(lost=f"the connection of a box on the worker {self._worker.name} broke")
        except PeerError as error:
            self.finish(lost=f"the worker {self._worker.name} broke the protocol: {error}")
        finally:
            out.cancel()
            with suppress(asyncio.CancelledError, ConnectionClosed):
                await out
            self.hang_up()

    def let_go(self) -> None:
        """Nobody carries its bytes any more."""
        if self._link is not None:
            self._link.cancel()
        else:
            self.hang_up()

    def hang_up(self) -> None:
        """Whoever reads its channel sees the end."""
        for descriptor in (self._reads, self._writes):
            if descriptor >= 0:
                os.close(descriptor)
        self._reads = self._writes = -1


class WorkerLink:
    """A worker that is there. Its connection belongs to the loop's thread; ``lock`` guards the rest."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: ServerConnection,
        admission: Admission,
        hello: Hello,
    ) -> None:
        self.loop, self.connection, self.admission, self.hello = loop, connection, admission, hello
        self.name = admission.name
        self.address = ":".join(map(str, (connection.remote_address or ("", 0))[:2]))
        self.since = datetime.now(UTC)
        self.heard = time.monotonic()
        self.beat = Beat()
        self.lock = threading.Lock()
        self.boxes: dict[str, RemoteBox] = {}
        self.is_gone = ""

    def open(self, limits: Limits, *, light: bool, run: str) -> RemoteBox:
        """From any thread but the loop's. Raises HostAway."""
        box = RemoteBox(self, limits, run)
        with self.lock:
            gone = self.is_gone
            if not gone:
                self.boxes[box.key] = box
        if gone:
            box.channel.close()
            box.finish(lost=gone)
            raise HostAway(gone)
        asked = OpenBox(
            key=box.key,
            limits=WireLimits(**{name: getattr(limits, name) for name in WireLimits.model_fields}),
            light=light,
            run=run[:200],
        )
        self._say(asked)
        why = f"the worker {self.name} opened no box within {_OPEN_S:g} s"
        try:
            box.opened.result(_OPEN_S)
        except TimeoutError:
            box.finish(lost=why)
            box.channel.close()
            raise HostAway(why) from None
        except HostAway:
            box.channel.close()
            raise
        with suppress(RuntimeError):  # the loop has ended, and the box with it
            self.loop.call_soon_threadsafe(box.limit, limits.wall_s + box_limits().grace_s + BEAT_S)
        return box

    def ask_to_close(self, box: RemoteBox) -> None:
        """From any thread."""
        self._say(CloseBox(key=box.key))

    def forget(self, box: RemoteBox, *, cut: bool) -> None:
        """The box is over; ``cut``: what still comes over its connection is not taken."""
        with self.lock:
            self.boxes.pop(box.key, None)
        with suppress(RuntimeError):  # the loop has ended, and with it all that was carried
            self.loop.call_soon_threadsafe(lambda: box.over(cut=cut))

    def give_up(self, why: str) -> None:
        """On the loop's thread: from now on it is not there."""
        with self.lock:
            self.is_gone = self.is_gone or why
            boxes = list(self.boxes.values())
        for box in boxes:
            box.finish(lost=why)

    def state(self, unwanted: str) -> WorkerState:
        """As it is now."""
        with self.lock:
            boxes = list(self.boxes.values())
        return WorkerState(
            self.name,
            self.address,
            self.since,
            self.hello,
            self.beat.load,
            self.beat.free_mb,
            time.monotonic() - self.heard,
            sum(box.memory_mb for box in boxes),
            tuple((box.run, box.since.isoformat(timespec="seconds")) for box in boxes),
            unwanted,
        )

    def _say(self, message: OpenBox | CloseBox) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.send, message)

    def send(self, message: OpenBox | CloseBox) -> None:
        """On the loop's thread."""
        task = self.loop.create_task(sent(self.connection, message.model_dump_json()))
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


_TASKS: set[asyncio.Task[bool]] = set()  # the loop itself holds them weakly


async def sent(connection: ServerConnection, text: str, within_s: float | None = None) -> bool:
    """Whether the connection took it in that time; of one that is closed nobody needs to know."""
    with suppress(ConnectionClosed):
        try:
            async with asyncio.timeout(within_s):
                await connection.send(text)
        except TimeoutError:
            return False
    return True


def take(worker: WorkerLink, word: Hello | Beat | BoxRefused | BoxEnded) -> None:
    """Raises PeerError for a second hello. A box that is not its own, or over, is passed over."""
    if isinstance(word, Beat):
        worker.beat = word
    elif isinstance(word, Hello):
        raise PeerError("a second hello")
    elif (box := worker.boxes.get(word.key)) is not None:
        if isinstance(word, BoxRefused):
            box.finish(lost=f"the worker {worker.name} could not open a box: {word.why}")
        else:
            box.ended(word)
