"""One open box on the host: its channel, its clock, its end, and the exchange of one job with what is in it.

Both sandboxes give out this: what they differ in is how the first process came to be, and what
has to be taken away after it (``Group``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agentos import shipped
from agentos.domain import Json, Limits
from agentos.errors import BoxDied, HostLost
from agentos.ports import Box, BoxUsage
from agentos.sandboxes import cgroups
from agentos.wire import Channel, FrameError, WireClosed, WireLate

if TYPE_CHECKING:
    from pydantic import BaseModel

_GONE_S = 10.0
_LOOK_S = 1.0  # between two looks at the clock while a box is open
_STILL_S = 6.0  # between two looks: this process did not run meanwhile
CHUNK = 128 << 10  # bytes of a channel that are carried at a time
_ANSWER_BLOBS = 1  # the archive of what a run leaves
_OPEN: set[WorkerBox] = set()  # of this process


class Group(Protocol):
    """What holds and counts the processes of a box."""

    @property
    def places(self) -> tuple[Path, ...]:
        """Its directories among the control groups."""
        ...

    def used(self) -> cgroups.GroupUsage:
        """What was used; called when every process is gone, before ``remove``."""
        ...

    def remove(self) -> None:
        """Take it away; never raises for 'gone'."""
        ...


@dataclass(frozen=True, slots=True)
class FirstProcess:
    """The first process of a box, on the host: what is inside dies with it."""

    pid: int
    pidfd: int  # the box's own: it closes it


class WorkerBox:
    """One single-use sandbox; the Box port. Any thread may close it."""

    def __init__(
        self, channel: Channel, process: FirstProcess, group: Group | None, began: float, run: str = ""
    ) -> None:
        self.channel = channel
        self.run = run  # what it was made for
        self.pid = process.pid
        self._pidfd = process.pidfd
        self.group = group
        self._began = began
        self._usage: BoxUsage | None = None
        self._lock = threading.Lock()
        self._over = float("inf")
        _OPEN.add(self)

    def kill_after(self, wall_s: float, grace_s: float = 0.0) -> None:
        """The last resort: dead by then, and its channel closed, whether or not anybody reads there."""
        self._over = time.monotonic() + wall_s + grace_s
        _DEADLINES.add(self, self._over)

    def beyond_s(self) -> float:
        """For how long it should have been gone; 0 while it may be there, and when it is gone."""
        return max(0.0, time.monotonic() - self._over) if self._usage is None else 0.0

    def close(self) -> BoxUsage:
        """Kill everything inside, wait until it is gone; idempotent, never raises for 'gone'."""
        with self._lock:
            if self._usage is not None:
                return self._usage
            _DEADLINES.remove(self)
            alone = _used_by(self.pid) if self.group is None and not self._gone(0) else cgroups.GroupUsage()
            self._signal()
            self._gone(_GONE_S)
            self.channel.close()
            used = self.group.used() if self.group is not None else alone
            if self.group is not None:
                self.group.remove()
            os.close(self._pidfd)
            self._pidfd = -1
            _OPEN.discard(self)
            wall_s = time.monotonic() - self._began
            self._usage = BoxUsage(wall_s, used.cpu_s, used.memory_peak_bytes / (1 << 20), used.oom)
            return self._usage

    def __enter__(self) -> WorkerBox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def kill(self) -> None:
        """Its channel first: not even a process that cannot be killed holds up whoever reads there."""
        self.channel.close()
        with self._lock:
            if self._usage is None:
                self._signal()

    def _signal(self) -> None:
        """Kill the first process of the pid namespace; the rest dies with it."""
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _gone(self, seconds: float) -> bool:
        """Whether the whole namespace has ended (its first process ends last)."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


class _Deadlines:
    """Kills boxes at their deadlines, on one thread for all of a process: a timer for each costs as much as its group."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[WorkerBox, float] = {}
        self._next = float("inf")
        self._looked = float("inf")  # when it last looked, while a box is open
        self._stood_still: deque[tuple[float, float]] = deque(maxlen=100)  # (until, seconds)
        self._thread: threading.Thread | None = None

    def add(self, box: WorkerBox, at: float) -> None:
        """Kill it then, on the clock of ``time.monotonic``."""
        with self._changed:
            self._due[box] = at
            self._looked = min(
                self._looked, time.monotonic()
            )  # the thread may be stopped before its first look
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="box-deadlines", daemon=True)
                self._thread.start()
            elif at < self._next:
                self._changed.notify()

    def remove(self, box: WorkerBox) -> None:
        """It is over by itself."""
        with self._changed:
            self._due.pop(box, None)

    def stood_still(self, since: float) -> float:
        """Seconds since then for which this process did not run, as when it, or its machine, was stopped."""
        with self._changed:
            lasting = time.monotonic() - self._looked
            past = sum(seconds for until, seconds in self._stood_still if until > since)
            return past + (lasting if lasting > _STILL_S else 0.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                if now - self._looked > _STILL_S:
                    self._stood_still.append((now, now - self._looked))
                    self._looked = now
                over = [box for box, at in self._due.items() if at <= now]
                for box in over:
                    del self._due[box]
                if not over:
                    self._next = min(self._due.values(), default=float("inf"))
                    self._looked = now if self._due else float("inf")
                    longest = _LOOK_S if self._due else threading.TIMEOUT_MAX
                    self._changed.wait(min(self._next - now, longest))
            for box in over:  # whoever closes one holds its lock, and wants ours
                _kill_aside(box)


def _kill_aside(box: WorkerBox) -> None:
    """On a thread of its own: one that is being closed meanwhile may keep it waiting."""
    try:
        threading.Thread(target=box.kill, name="box-over", daemon=True).start()
    except RuntimeError:  # no room for another thread
        box.kill()


_DEADLINES = _Deadlines()


def stood_still(since: float) -> float:
    """Seconds for which this process did not run since then, on the clock of ``time.monotonic``, while a box of it was open."""
    return _DEADLINES.stood_still(since)


def overdue(patience_s: float = 0.0) -> list[tuple[str, float]]:
    """Boxes of this process that are not gone ``patience_s`` after their limit and grace.

    What each was made for, and the seconds since then, the longest first.
    """
    found = [(box.run, late) for box in tuple(_OPEN) if (late := box.beyond_s()) > patience_s]
    return sorted(found, key=lambda one: -one[1])


def pipes() -> tuple[Channel, tuple[int, int]]:
    """A channel over two pipes, and the ends for the box: the one that it reads, the one that it writes."""
    reader, theirs = os.pipe2(os.O_CLOEXEC)
    try:
        ours, writer = os.pipe2(os.O_CLOEXEC)
    except OSError:
        os.close(reader)
        os.close(theirs)
        raise
    return Channel((reader, writer)), (ours, theirs)


def answer_bounds(limits: Limits) -> tuple[int, int]:
    """Bytes and number of the blobs that a box under these limits may send with one frame."""
    return (limits.workspace_mb + 8 << 20) + limits.output_bytes, _ANSWER_BLOBS


# --- What every box may use: the authored limits, and its task's ---------------------------------


@dataclass(frozen=True, slots=True)
class BoxLimits:
    """``limits.toml``: what every box gets beside the limits of its task."""

    tmp_mb: int
    snapshot_mb: int
    shm_mb: int
    inodes: int
    open_files: int
    signals: int
    cpus: float
    grace_s: float
    sysctls: dict[str, str]


def box_limits() -> BoxLimits:
    """The limits of every box."""
    return BoxLimits(**shipped.table("sandboxes", "limits.toml"))


def file_systems_and_limits(limits: Limits, extras: BoxLimits) -> dict[str, Any]:
    """What a worker that makes its own file systems is told of them, and of its processes' limits (``agentos/worker/template.py``)."""
    return {
        "tmpfs": {
            "/ws": limits.workspace_mb << 10,
            "/tmp": extras.tmp_mb << 10,  # noqa: S108 - the box's own
            "/snapshot": extras.snapshot_mb << 10,
            "/dev/shm": extras.shm_mb << 10,  # noqa: S108 - the box's own
        },
        "inodes": extras.inodes,
        "memory": limits.memory_mb << 20,
        "rlimits": {
            "CORE": 0,
            "MSGQUEUE": 0,
            "SIGPENDING": extras.signals,
            "NOFILE": extras.open_files,
            "NPROC": limits.processes,  # counted in the box's own user namespace
            "FSIZE": limits.workspace_mb << 20,
        },
    }


def _used_by(pid: int) -> cgroups.GroupUsage:
    """Without a cgroup: the first process and the children it has waited for. A lower bound."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return cgroups.GroupUsage()
    ticks = sum(int(fields[number]) for number in range(11, 15))
    peak = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)
    return cgroups.GroupUsage(ticks / os.sysconf("SC_CLK_TCK"), peak << 10)


# --- The ends of a box's pipes in an event loop, for who carries its bytes on --------------------


async def read_some(descriptor: int) -> bytes:
    """What there is, at most ``CHUNK``; b"" at the end, and when whoever had the other end is gone."""
    while True:
        try:
            return os.read(descriptor, CHUNK)
        except BlockingIOError:
            await _ready(descriptor, writing=False)
        except OSError:
            return b""


async def write_all(descriptor: int, data: bytes) -> bool:
    """Whether somebody still has the other end."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            await _ready(descriptor, writing=True)
        except OSError:
            return False
    return True


async def _ready(descriptor: int, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    watch, forget = (
        (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    )

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    watch(descriptor, tell)
    try:
        await ready
    finally:
        forget(descriptor)


def worker_environment(modules: Iterable[str], *programs: str) -> dict[str, str]:
    """All that the worker and its children see of an environment; ``programs`` are folders that are looked in first."""
    return {
        "PATH": ":".join((*programs, "/usr/local/bin:/usr/bin:/bin")),
        "PYTHONPATH": ":".join(modules),  # for programs that a job starts; the worker itself is isolated
        "PYTHONHASHSEED": "0",  # equal runs iterate over sets alike
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/tmp",  # noqa: S108 - the box's own
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "MALLOC_ARENA_MAX": "2",  # threads must not reserve address space that counts as memory
        "LANGSMITH_TRACING": "false",
    }


# --- One job in one box: sent, and each frame that comes back held against its type --------------


# How many times longer a value may be as the kernel writes it than it came: 1e15 as 1000000000000000.0, é as \\u00e9.
_GROWS = 8


class Exchange:
    """Talks to the worker in ``box``. ``BoxDied`` from any method means that the box is over, HostLost that its host is.

    What is at the other end may be hostile, so nothing here trusts it: each frame is validated,
    counted and measured, and there is one deadline for the whole exchange.
    """

    def __init__(self, box: Box, wall_s: float, bytes_max: int | None = None) -> None:
        self.weight = 0  # of the last message, in memory
        self._size = 0  # of the same, as it came
        self._left = bytes_max  # of all headers; None is no limit
        self._box = box
        self._deadline = time.monotonic() + wall_s

    def send(self, message: BaseModel, blobs: Sequence[bytes] = ()) -> None:
        """Send one frame."""
        try:
            self._box.channel.send(message.model_dump(), tuple(blobs), deadline=self._deadline)
        except WireLate:
            raise self._died("wall") from None
        except WireClosed as error:
            raise self._died("", str(error)) from None
        except FrameError as error:
            raise BoxDied("output", f"the job does not fit into a frame: {error}") from None

    def reply(self, message: BaseModel, patience_s: float) -> None:
        """Send an answer from another thread than the one that receives; raises Closed, Late, FrameError.

        The run's own deadline may pass meanwhile: whoever receives is told of it.
        """
        self._box.channel.send(message.model_dump(), deadline=time.monotonic() + patience_s)

    def receive(self, kinds: Mapping[str, type[BaseModel]]) -> tuple[BaseModel, tuple[bytes, ...]]:
        """The next frame: one of ``kinds`` by its ``type``, or a FaultFrame, which ends the job."""
        # here, since commands that only look for what boxes left need none of it: half a second of their start
        from pydantic import ValidationError

        from agentos.messages import FaultFrame

        try:
            frame = self._box.channel.receive(deadline=self._deadline)
        except WireLate:
            raise self._died("wall") from None
        except WireClosed as error:
            raise self._died("", str(error)) from None
        except FrameError as error:
            raise self._died("protocol", str(error)) from None
        self.weight, self._size = frame.weight, frame.size
        if self._left is not None:
            self._left -= frame.size
            if self._left < 0:
                raise self._died("output", "all its messages together")
        name = frame.head.get("type")
        kind = FaultFrame if name == "fault" else kinds.get(str(name))
        if kind is None:
            raise self._died("protocol", f"a frame of type {name!r:.60} was not expected")
        try:
            return kind.model_validate(frame.head), frame.blobs
        except ValidationError as error:
            found = error.errors()[0]
            place = ".".join(str(part) for part in found["loc"])
            raise self._died("protocol", f"a '{name}' frame breaks its rules at '{place}'") from None

    def extend(self, wall_s: float) -> None:
        """Give the next message this long: for boxes that serve many requests."""
        self._deadline = time.monotonic() + wall_s

    def measure(self, value: Json, limit: int, what: str) -> None:
        """Refuse a value of the last message that is larger than agreed."""
        if self._size * _GROWS <= limit:
            return
        try:
            size = len(json.dumps(value, allow_nan=False))
        except (ValueError, RecursionError):
            raise self._died("protocol", f"{what} is not JSON") from None
        if size > limit:
            raise self._died("output", f"{what} has {size:,} bytes, {limit:,} are allowed")

    def broken(self, detail: str) -> BoxDied | HostLost:
        """End the box, because what it sent may not be: the exception to raise."""
        return self._died("protocol", detail)

    def _died(self, cause: str, detail: str = "") -> BoxDied | HostLost:
        """End the box, and find the cause where only its usage knows. One of a lost host has none."""
        late = time.monotonic() >= self._deadline
        usage = self._box.close()
        if usage.lost and not cause:
            return HostLost(usage.lost)
        return BoxDied(cause or _cause(usage, late=late), detail)


def _cause(usage: BoxUsage, *, late: bool) -> str:
    if usage.oom:
        return "memory"
    return "wall" if late else "gone"
