"""One forked child at a time: output capped, time and memory limited, nothing left of it after.

The caller must have a single thread. In a sandbox the worker is process 1 of its own namespace, so
that ``alone`` may end every other process at once; elsewhere (tests) the descendants are looked up.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import math
import os
import resource
import selectors
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn, TextIO, cast

_HEAD = struct.Struct(">Q")
_SLACK = 64 << 10  # what a result may carry beside the output itself
# with which ends what was given no further process: it would be taken for a fault of the tool
NO_PROCESS = 75
_SPARE = 32 << 20  # above the memory limit, to say that it was reached
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child may use."""

    wall_s: float
    memory_mb: int
    output_bytes: int  # its result, and each of its streams
    kept_bytes: int = 4096  # of a stream's head, and again of its tail


@dataclass(frozen=True, slots=True)
class Clip:
    """A stream's beginning and end; ``tail`` is empty when ``head`` is all of it."""

    head: str = ""
    tail: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended. ``code`` is the exit status of ``exit``, the signal of ``signal``."""

    how: Literal["result", "exit", "signal", "timeout", "limit"]
    code: int
    result: bytes
    stdout: Clip
    stderr: Clip
    duration_ms: float


def adopt_orphans() -> None:
    """Grandchildren whose parent ends become ours, so that none outlives a sweep."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(work: Callable[[], bytes], allowance: ChildLimits, *, alone: bool) -> ChildEnd:
    """Run ``work`` in a child and give back the bytes it returned. Needs ``adopt_orphans()``."""
    started = time.monotonic()
    pipes = [os.pipe() for _ in range(3)]
    pid = os.fork()
    if pid == 0:
        _be_the_child(work, allowance, [write for _, write in pipes])
    for _, write in pipes:
        os.close(write)
    streams = [_Stream(read, allowance) for read, _ in pipes]
    try:
        how, code = _watch(pid, streams, allowance, started + allowance.wall_s)
    finally:
        sweep(alone=alone)
        for read, _ in pipes:
            os.close(read)
    return ChildEnd(
        how,
        code,
        bytes(streams[2].data[_HEAD.size :]),
        streams[0].clip(),
        streams[1].clip(),
        (time.monotonic() - started) * 1000,
    )


def sweep(*, alone: bool) -> None:
    """Kill every process below this one and wait until the last is gone."""
    while True:
        if alone:
            # Signals all but process 1 and the caller in one go: a fork bomb cannot outrun it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            for pid in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def lacks_process(error: OSError) -> bool:
    """Whether the machine, or the limit of the box, gives no further process."""
    return error.errno in (errno.EAGAIN, errno.ENOMEM)


def allowed(kind: int, wanted: int) -> int:
    """A limit that this process can set: not above the hard one, which it cannot raise."""
    _, hard = resource.getrlimit(kind)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def memory_limits(memory_mb: int) -> None:
    """Let this process grow by 7/8 of that: it shall see MemoryError before the box is killed."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = now + (memory_mb << 20) * 7 // 8
    ceiling = allowed(resource.RLIMIT_AS, most + _SPARE)
    resource.setrlimit(resource.RLIMIT_AS, (min(most, ceiling), ceiling))


def spare_memory() -> None:
    """After MemoryError: room to say so."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def only_descriptors(*kept: int) -> list[int]:
    """Close every descriptor but ``kept``, which become 3, 4, …; 0 to 2 become /dev/null."""
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for descriptor in kept]
    null = os.open(os.devnull, os.O_RDWR)
    for target in range(3):
        os.dup2(null, target)
    for target, descriptor in enumerate(high, 3):
        os.dup2(descriptor, target)
    os.closerange(3 + len(high), os.sysconf("SC_OPEN_MAX"))
    return list(range(3, 3 + len(high)))


def _be_the_child(work: Callable[[], bytes], allowance: ChildLimits, writers: list[int]) -> NoReturn:
    code = 70  # of our own bug: the parent shows what it finds on stderr
    try:
        os.setsid()
        result, out, err = only_descriptors(writers[2], *writers[:2])
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        os.set_inheritable(result, False)  # what the child starts, or becomes, has no say in its result
        sys.stdin, sys.stdout, sys.stderr = _text(0, "r"), _text(1, "w"), _text(2, "w")
        resource.setrlimit(
            resource.RLIMIT_CPU, (allowed(resource.RLIMIT_CPU, math.ceil(allowance.wall_s) + 2),) * 2
        )
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        memory_limits(allowance.memory_mb)
        data = work()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the tool may have closed or replaced it
                stream.flush()
        with open(result, "wb", buffering=0) as file:
            view = memoryview(_HEAD.pack(len(data)) + data)
            while view:
                view = view[file.write(view) :]
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


def _text(descriptor: int, mode: str) -> TextIO:
    return cast(TextIO, open(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False))


class _Stream:
    """A pipe's reading end: all of it for the result, head and tail for what was printed."""

    def __init__(self, descriptor: int, allowance: ChildLimits) -> None:
        self.descriptor = descriptor
        self.size = 0
        self.data = bytearray()
        self._kept = allowance.kept_bytes
        self._tail = bytearray()
        self._most = allowance.output_bytes
        os.set_blocking(descriptor, False)

    def read(self, *, whole: bool) -> int:
        """Take what is there: how many bytes, 0 at the end of the stream, -1 when it is empty."""
        try:
            chunk = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return -1
        self.size += len(chunk)
        if whole:
            self.data += chunk
        else:
            taken = min(len(chunk), self._kept - len(self.data))
            self.data += chunk[:taken]
            self._tail += chunk[taken:]
            del self._tail[: -self._kept]
        return len(chunk)

    def too_large(self, *, whole: bool) -> bool:
        return self.size > self._most + (_SLACK if whole else 0)

    def complete(self) -> bool:
        """Whether the whole result has arrived."""
        if len(self.data) < _HEAD.size:
            return False
        (length,) = _HEAD.unpack_from(self.data)
        return len(self.data) >= _HEAD.size + int(length)

    def clip(self) -> Clip:
        if self.size <= len(self.data) + len(self._tail):
            return Clip((self.data + self._tail).decode("utf-8", "replace"), "", self.size)
        return Clip(self.data.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace"), self.size)


def _watch(
    pid: int, streams: list[_Stream], allowance: ChildLimits, deadline: float
) -> tuple[Literal["result", "exit", "signal", "timeout", "limit"], int]:
    result = streams[2]
    pidfd = os.pidfd_open(pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(pidfd, selectors.EVENT_READ)
            for stream in streams:
                selector.register(stream.descriptor, selectors.EVENT_READ, stream)
            while True:
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                for key, _ in ready:
                    if key.data is not None and key.data.read(whole=key.data is result) == 0:
                        selector.unregister(key.fd)
                exited = any(key.fd == pidfd for key, _ in ready)
                if exited:
                    _drain(streams, result)
                if any(stream.too_large(whole=stream is result) for stream in streams):
                    return "limit", 0
                if result.complete():
                    _drain(streams[:2], result)
                    return "result", 0
                if exited:
                    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    return ("signal", -code) if code < 0 else ("exit", code)
                if time.monotonic() >= deadline:
                    return "timeout", 0
    finally:
        os.close(pidfd)


def _drain(streams: list[_Stream], result: _Stream) -> None:
    """What was written before the end and still lies in the pipes (a pipe holds 1 MiB at most)."""
    for stream in streams:
        for _ in range(16):
            if stream.read(whole=stream is result) <= 0:
                break


def _children() -> list[int]:
    me = os.getpid()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == me:
                    found.append(int(entry))
    return found
