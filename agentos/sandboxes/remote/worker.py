"""The worker: a process that joins a control process and opens boxes for it, in the sandbox of its own host.

It has no ledger, no registry, no keys and no secrets: what a run needs comes over the channel of its box, and goes with
it. When the connection breaks, its boxes are killed first, and then it dials again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import random
import resource
import signal
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from agentos import __version__
from agentos.domain import Limits
from agentos.durable import write_whole
from agentos.errors import AgentOSError, Unavailable, UserError, to_type
from agentos.ports import Box, Sandbox
from agentos.sandboxes.box import CHUNK
from agentos.sandboxes.choice import Choice
from agentos.sandboxes.reaper import leftovers, reap
from agentos.sandboxes.remote.protocol import (
    BEAT_S,
    BOX,
    FROM_CONTROL,
    JOIN,
    KEY_HEADER,
    REFUSED,
    Allowance,
    Beat,
    BoxEnded,
    BoxRefused,
    CloseBox,
    Hello,
    OpenBox,
    PeerError,
    bytes_in,
    bytes_out,
    messages,
)

_AGAIN_S = (0.5, 1.0, 2.0, 5.0, 10.0)  # between two tries to join; the last one on and on
_DIAL_S = 10.0
# beyond twice as many as it says: the daemon spreads by them, this is against one that does not
_SPARE_BOXES = 8
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CANNOT_JOIN = {
    "labels": "--label takes at most 20 labels, each of up to 63 lower-case letters, digits and the signs . = _ -, "
    "such as zone=a",
    "boxes": "--boxes takes a number from 1 to 1024",
    "memory_mb": f"--memory-mb takes a number from 1 to {1 << 30}",
}

log = logging.getLogger("agentos.worker")


@dataclass(frozen=True, slots=True)
class Joining:
    """Where a worker joins, and as what. ``authorities``: a file of certificates to trust beside the machine's own."""

    url: str
    token: str
    boxes: int
    memory_mb: int
    labels: tuple[str, ...] = ()
    authorities: str = ""
    lost_s: float = 10.0

    @property
    def address(self) -> str:
        """As a WebSocket's. Raises UserError for what would send the token in the clear, or is no address."""
        told = f"--join takes an address such as https://control.example.org:8421; found {self.url[:100]!r}"
        try:
            found = urlsplit(self.url)
            _ = found.port  # one that is none raises only now
        except ValueError:
            raise UserError(told) from None
        if (
            found.scheme not in ("http", "https")
            or not found.hostname
            or found.path.strip("/")
            or found.query
        ):
            raise UserError(told)
        if found.scheme == "http" and found.hostname not in _LOOPBACK:
            raise UserError(
                f"To {found.hostname} the token would go in the clear: use https://, and `workers.certificate` there "
                "(docs/use/cluster.md)"
            )
        return f"ws{found.scheme.removeprefix('http')}://{found.netloc}"


class BoxWorker:
    """Joins, and holds boxes, until ``stop``. One event loop."""

    def __init__(self, sandbox: Sandbox, joining: Joining, tell: Callable[[str], None]) -> None:
        self._sandbox, self._joining, self._tell = sandbox, joining, tell
        self._address = joining.address
        self._most = 2 * joining.boxes + _SPARE_BOXES
        self._boxes: dict[
            str, tuple[Box, asyncio.Event]
        ] = {}  # each with what says that its end was asked for
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._told = ""

    def stop(self) -> None:
        """On the loop's thread: end after hanging up."""
        self._stop.set()

    async def run(self) -> None:
        """Until ``stop``. Raises UserError where to try again would change nothing."""
        self._hello()  # what is wrong with it is told before anybody is dialled
        tries = 0
        while not self._stop.is_set():
            began = time.monotonic()
            work = asyncio.create_task(self._join())
            stop = asyncio.create_task(self._stop.wait())
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            work.cancel()
            try:
                why = await work
            except asyncio.CancelledError:
                return
            if why != self._told:
                self._tell(f"{why}; trying again")
                self._told = why
            tries = 0 if time.monotonic() - began > 30 else tries + 1
            pause_s = _AGAIN_S[min(tries, len(_AGAIN_S) - 1)]
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause_s * random.uniform(0.5, 1.0))  # noqa: S311

    async def _join(self) -> str:
        """One connection, to its end, and why that came. All boxes of it are gone then."""
        try:
            async with self._dial(JOIN) as connection:
                return await self._serve(connection)
        except InvalidStatus as error:
            if error.response.status_code in (401, 403):
                raise UserError(
                    "The token was refused: it is unknown, revoked, expired, or no worker's. "
                    "On the control process' host ",
                    to_type("agentos token add NAME --role worker"),
                    " makes one.",
                ) from None
            return f"the control process answers {error.response.status_code}"
        except (OSError, InvalidHandshake, InvalidURI, TimeoutError, ConnectionClosed) as error:
            return f"the control process cannot be reached at {self._joining.url} ({error or type(error).__name__})"
        finally:
            await self._end_all()

    def _dial(self, path: str, key: str = "") -> connect:
        headers = {"Authorization": f"Bearer {self._joining.token}"} | ({KEY_HEADER: key} if key else {})
        context = None
        if self._address.startswith("wss"):
            context = ssl.create_default_context()
            if self._joining.authorities:
                context.load_verify_locations(self._joining.authorities)
        proxy: Literal[True] | None = None if urlsplit(self._address).hostname in _LOOPBACK else True
        return connect(
            self._address + path, additional_headers=headers, ssl=context, compression=None, max_size=CHUNK,
            max_queue=8, open_timeout=_DIAL_S, close_timeout=30.0 if key else 1.0, ping_interval=None, proxy=proxy,
            user_agent_header=None,
        )  # fmt: skip

    async def _serve(self, connection: ClientConnection) -> str:
        await connection.send(self._hello().model_dump_json())
        heard = [time.monotonic()]
        beat = self._task(self._beat(connection, heard))
        try:
            async for word in messages(connection, FROM_CONTROL, Allowance(self._joining.boxes)):
                if self._told or not heard[1:]:
                    self._tell(f"joined {self._joining.url}")
                    self._told = ""
                heard[:] = [time.monotonic(), 1.0]
                if isinstance(word, OpenBox):
                    self._task(self._hold(connection, word))
                elif isinstance(word, CloseBox) and word.key in self._boxes:
                    self._boxes[word.key][1].set()
        except PeerError as error:
            return f"the control process broke the protocol: {error}"
        finally:
            beat.cancel()
        if connection.close_code == REFUSED:
            return f"the control process refuses this worker: {connection.close_reason}"
        return "the connection to the control process ended"

    def _hello(self) -> Hello:
        """Raises UserError for a label or a number that no control process takes."""
        try:
            return Hello(
                program=__version__,
                sandbox=self._sandbox.name,
                level=self._sandbox.level,
                image=self._sandbox.image,
                machine=platform.machine(),
                host=socket.gethostname()[:200],
                cores=os.cpu_count() or 1,
                memory_mb=self._joining.memory_mb,
                boxes=self._joining.boxes,
                labels=self._joining.labels,
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise UserError(
                _CANNOT_JOIN.get(str(first["loc"][0])) or f"This worker cannot join: {error}"
            ) from None

    async def _beat(self, connection: ClientConnection, heard: list[float]) -> None:
        """Say that it is there; hang up where the other end is silent."""
        while time.monotonic() - heard[0] < self._joining.lost_s:
            await connection.send(Beat(load=os.getloadavg()[0], free_mb=free_mb()).model_dump_json())
            await asyncio.sleep(BEAT_S)
        connection.transport.abort()

    async def _hold(self, connection: ClientConnection, asked: OpenBox) -> None:
        """One box: open it, dial, carry its bytes, say what it used."""
        try:
            box = await self._opened(asked)
        # The last two: no thread left, a limit that is none.
        except (AgentOSError, OSError, RuntimeError, ValueError) as error:
            why = f"{error or type(error).__name__}"[:2000]
            await connection.send(BoxRefused(key=asked.key, why=why).model_dump_json())
            return
        asked_to_end = asyncio.Event()
        self._boxes[asked.key] = box, asked_to_end
        ends: list[int] = []
        cut = True
        try:
            ends += map(os.dup, box.channel.descriptors())
            async with self._dial(BOX, asked.key) as link:
                cut = not await _carried(link, ends[0], ends[1], asked_to_end)
        except (OSError, InvalidHandshake, TimeoutError, ConnectionClosed, PeerError) as error:
            log.warning("the box of %s lost its connection: %s", asked.run, error or type(error).__name__)
        finally:
            for descriptor in ends:
                os.close(descriptor)
            self._boxes.pop(asked.key, None)
            used = await asyncio.shield(asyncio.to_thread(box.close))
        ended = BoxEnded(
            key=asked.key, wall_s=used.wall_s, cpu_s=used.cpu_s, memory_peak_mb=used.memory_peak_mb,
            oom=used.oom, cut=cut,
        )  # fmt: skip
        await connection.send(ended.model_dump_json())

    async def _opened(self, asked: OpenBox) -> Box:
        """A box, made on a thread. Where nobody waits for it any more it is closed as soon as it is there."""
        if len(self._tasks) - 1 > self._most:  # one of them is the beat
            raise Unavailable(f"{self._most} boxes are open or being opened here")
        limits = Limits(**asked.limits.model_dump())
        opening = asyncio.get_running_loop().run_in_executor(
            None, lambda: self._sandbox.open(limits, light=asked.light, run=asked.run)
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(AgentOSError, OSError):
                box = await opening
                await asyncio.to_thread(box.close)
            raise

    async def _end_all(self) -> None:
        """No box outlives the connection that it was asked for on."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for box, _ in list(self._boxes.values()):
            await asyncio.to_thread(box.close)
        self._boxes.clear()

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        async def guarded() -> None:
            with suppress(ConnectionClosed):
                await work

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _carried(link: ClientConnection, reads: int, writes: int, asked: asyncio.Event) -> bool:
    """Carry a box's bytes. Whether it came to the box's end, or was ``asked`` to end, before the connection broke."""
    out = asyncio.create_task(bytes_out(reads, link))
    into = asyncio.create_task(bytes_in(link, writes))
    closed, end = asyncio.create_task(link.wait_closed()), asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({out, closed, end}, return_when=asyncio.FIRST_COMPLETED)
        if not end.done() and (not out.done() or out.exception() is not None):
            return False
        await link.close()
        return link.close_code == 1000  # else it broke before all of it was there
    finally:
        for task in (out, into, closed, end):
            task.cancel()
        await asyncio.gather(out, into, closed, end, return_exceptions=True)


def free_mb() -> int:
    """Memory that the host could still give."""
    try:
        with open("/proc/meminfo") as file:
            return next((int(line.split()[1]) >> 10 for line in file if line.startswith("MemAvailable:")), 0)
    except OSError:
        return 0


def total_mb() -> int:
    """The host's memory."""
    return (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) >> 20


# --- The process --------------------------------------------------------------------------------


def be_a_worker(joining: Joining, sandbox: str, state: Path, tell: Callable[[str], None]) -> None:
    """Until SIGTERM or Ctrl-C. ``state`` labels what a kill could leave, which the next start removes.

    Raises UserError for what cannot join, Unavailable without a sandbox.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:  # a box takes a dozen
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    for leftover in leftovers(state):
        reap([leftover])
    run_uid = _run_uid(state) if os.geteuid() == 0 else None
    with closing(Choice(state, run_uid, sandbox)) as choice:
        box_worker = BoxWorker(choice.choose(), joining, tell)
        asyncio.run(_until_told(box_worker, joining.boxes))


async def _until_told(worker: BoxWorker, boxes: int) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(2 * boxes + _SPARE_BOXES, thread_name_prefix="box"))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, worker.stop)
    await worker.run()


def _run_uid(state: Path) -> int:
    """As root: the user id that boxes run as, the same at each start."""
    from agentos.settings import claim_uid

    kept = state / "run_uid"
    with suppress(FileNotFoundError, ValueError):  # the latter: written half, on a disk that was full
        return int(kept.read_text())
    uid = claim_uid(state)
    write_whole(kept, str(uid).encode())
    return uid
