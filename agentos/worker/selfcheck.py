"""What a box can see and do, as found out from inside: the sandbox's probe judges it outside.

Runs in place of a job, under the very walls a job gets. It only reports; it decides nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentos.wire import Channel

_IO_URING_SETUP = 425
_VSOCK, _NETLINK = 40, 16
_CHUNK = 1 << 16


def serve(channel: Channel) -> None:
    """Answer one frame of canaries with the findings, leave a stray process behind, and wait.

    What may take long is named in a frame of its own before it is tried: a box that falls silent shows at what.
    """
    canary = channel.receive().head
    findings: dict[str, Any] = {
        "status": _status(),
        "environment": sorted(os.environ),
        "control_groups": _control_groups(),
        "processes": [name for name in os.listdir("/proc") if name.isdigit()],
        "writable": _writable_mounts(),
        "network": _network(),
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
        "reached": {
            "host file": _succeeds(lambda: Path(canary["file"]).read_bytes()),
            "loopback": _succeeds(lambda: socket.create_connection(("127.0.0.1", canary["port"]), 1).close()),
            "abstract socket": _succeeds(lambda: _connect("\0" + canary["abstract"])),
            "vsock": _succeeds(lambda: socket.socket(_VSOCK, socket.SOCK_STREAM).close()),
            "netlink": _succeeds(lambda: socket.socket(_NETLINK, socket.SOCK_RAW).close()),
            "io_uring": _system_call(_IO_URING_SETUP),
            "core_pattern": _succeeds(
                lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
            ),
            "/usr": _succeeds(lambda: os.close(os.open("/usr/agentos-probe", os.O_WRONLY | os.O_CREAT))),
            "/": _succeeds(lambda: os.mkdir("/agentos-probe")),
        },
    }
    slow: dict[str, Callable[[], int]] = {
        "disk": lambda: _fill(Path("disk"), canary["workspace_bytes"] * 2),
        "forks": lambda: _forks(canary["processes"] * 2),
        "one_process": lambda: _hog([canary["memory_bytes"] * 2]),
        "together": lambda: _hog([canary["memory_bytes"] * 3 // 4] * canary["hogs"]),
    }
    for name, attempt in slow.items():
        # where the whole box pays for too much memory, this is its last word
        channel.send({"at": name, "found": findings} if name == "together" else {"at": name})
        findings[name] = attempt()
    _leave_a_stray()
    channel.send(findings)
    signal.pause()


def _control_groups() -> list[str]:
    """Where it is among them, as far as it can see."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return sorted({line.split(":", 2)[2] for line in lines})


def _network() -> list[str]:
    """Every interface but the loopback, and every route out, of the box's own network."""
    table = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    routes = [f"a route by {fields[0]}" for fields in table]
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    return [*sorted({line.split(":")[0].strip() for line in lines} - {"lo"}), *routes]


def _status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _writable_mounts() -> list[str]:
    """Mount points that accept this user's files. A device bound over a file is a mount, but no place."""
    found: dict[str, bool] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        found[fields[4]] = "rw" in fields[5].split(",")  # the last mount on a point is the one seen
    return sorted(place for place, writable in found.items() if writable and _is_open(place))


def _is_open(place: str) -> bool:
    return os.path.isdir(place) and os.access(place, os.W_OK)


def _succeeds(attempt: Any) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(address)


def _system_call(number: int) -> bool:
    """Whether the kernel looks at the call at all: any answer but a refusal means that it does."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(number, 0, None) >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)


def _fill(path: Path, size: int) -> int:
    """Bytes written before the disk said no."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the file-size limit, too, is to be an error here
    written = 0
    chunk = bytes(_CHUNK)
    with contextlib.suppress(OSError):
        for part in range(4):  # several files: the limit on one file is not the limit on all
            with open(f"{path}{part}", "wb", buffering=0) as file:
                while written < size * (part + 1) // 4:
                    written += file.write(chunk)
    with contextlib.suppress(OSError):
        for part in range(4):
            os.unlink(f"{path}{part}")
    return written


def _forks(wanted: int) -> int:
    """How many children could live at once."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for _ in range(wanted):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
    return _end(children)


def _hog(sizes: list[int]) -> int:
    """How many children could hold that much memory at once; none is tried after one that could not."""
    children: list[int] = []
    for size in sizes:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _hold(writer, size)
        os.close(writer)
        holds = os.read(reader, 1)
        os.close(reader)
        if not holds:
            os.waitpid(child, 0)
            break
        children.append(child)  # a later one may still cost its life
    return _end(children)


def _hold(writer: int, size: int) -> None:
    """In a child: write to every page, say so, and stay."""
    try:
        held = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # a kernel may have no large pages, which save it time
            held.madvise(mmap.MADV_HUGEPAGE)
        held[:: mmap.PAGESIZE] = b"1" * -(-size // mmap.PAGESIZE)
        os.write(writer, b"1")
        time.sleep(60)
    finally:
        os._exit(0)


def _end(children: list[int]) -> int:
    """Kill them all; how many were alive until then."""
    alive = 0
    for child in children:
        ended, _ = os.waitpid(child, os.WNOHANG)
        if not ended:
            alive += 1
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return alive


def _leave_a_stray() -> None:
    """A process that has left its session and ignores SIGTERM: it must die with the box."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        os._exit(0)
