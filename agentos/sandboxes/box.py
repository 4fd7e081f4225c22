"""One open box on the host: its channel, its clock, and its end.

Both sandboxes give out this: what they differ in is how the first process came to be, and what
has to be taken away after it (``Group``).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol

from agentos.ports import BoxUsage
from agentos.sandboxes import cgroups
from agentos.wire import Channel

_GONE_S = 10.0


class Group(Protocol):
    """What holds and counts the processes of a box."""

    @property
    def places(self) -> tuple[Path, ...]:
        """Its directories among the control groups."""
        ...

    def used(self) -> cgroups.Used:
        """What was used; called when every process is gone, before ``remove``."""
        ...

    def remove(self) -> None:
        """Take it away; never raises for 'gone'."""
        ...


class Box:
    """One single-use sandbox; the Box port. Any thread may close it."""

    def __init__(self, channel: Channel, pidfd: int, pid: int, group: Group | None, began: float) -> None:
        self.channel = channel
        self.pid = pid  # of its first process, on the host
        self._pidfd = pidfd
        self.group = group
        self._began = began
        self._clock: threading.Timer | None = None
        self._usage: BoxUsage | None = None
        self._lock = threading.Lock()

    def kill_after(self, seconds: float) -> None:
        """The last resort: dead by then, whether or not anybody reads the channel."""
        self._clock = threading.Timer(seconds, self._kill)
        self._clock.daemon = True
        self._clock.start()

    def close(self) -> BoxUsage:
        """Kill everything inside, wait until it is gone; idempotent, never raises for 'gone'."""
        with self._lock:
            if self._usage is not None:
                return self._usage
            if self._clock is not None:
                self._clock.cancel()
            alone = _used_by(self.pid) if self.group is None and not self._gone(0) else cgroups.Used()
            self._signal()
            self._gone(_GONE_S)
            self.channel.close()
            used = self.group.used() if self.group is not None else alone
            if self.group is not None:
                self.group.remove()
            os.close(self._pidfd)
            self._pidfd = -1
            wall_s = time.monotonic() - self._began
            self._usage = BoxUsage(wall_s, used.cpu_s, used.memory_peak_bytes / (1 << 20), used.oom)
            return self._usage

    def __enter__(self) -> Box:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _kill(self) -> None:
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


def _used_by(pid: int) -> cgroups.Used:
    """Without a cgroup: the first process and the children it has waited for. A lower bound."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return cgroups.Used()
    ticks = sum(int(fields[number]) for number in range(11, 15))
    peak = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)
    return cgroups.Used(ticks / os.sysconf("SC_CLK_TCK"), peak << 10)
