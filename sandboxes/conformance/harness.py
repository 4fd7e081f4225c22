"""What the conformance suite (agentos/sandboxes/conformance.py) has done inside a sandbox.

Loaded as a harness: the task's goal names the function, whose result is the answer. Each function
only acts and reports; what should have come of it is decided outside.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

PLACES = ("/ws", "/tmp", "/snapshot", "/dev/shm")  # noqa: S108 - the sandbox's own


def run(sdk: Any) -> None:
    sdk.finish(globals()[sdk.task.goal](sdk))


def read_everything(sdk: Any) -> dict[str, str]:
    """Digest of each file in the workspace, by its name."""
    files = [path for path in Path().rglob("*") if path.is_file()]
    return {path.as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_files(sdk: Any) -> str:
    big = bytes(range(256)) * (10 << 12)
    Path("deep/er").mkdir(parents=True)
    Path("deep/er/größe – 規模.bin").write_bytes(b"\xff\x00\xfe")
    Path("empty").write_bytes(b"")
    Path("big.bin").write_bytes(big)
    return hashlib.sha256(big).hexdigest()


def leave_traps(sdk: Any) -> str:
    Path("plain.txt").write_text("plain")
    os.symlink("/etc/passwd", "link")
    os.symlink("/", "root")
    os.mkfifo("fifo")
    with contextlib.suppress(OSError):
        socket.socket(socket.AF_UNIX).bind("socket")
    for name in (b"new\nline", b"escape\x1b[31m", b"not-utf-8-\xff"):
        with open(name, "wb") as file:
            file.write(b"x")
    Path(".git").mkdir()
    Path(".git/config").write_text("[core]\nfsmonitor = touch /tmp/pwned")
    return "left"


def call_in_turn(sdk: Any) -> list[dict[str, Any]]:
    """Each behaviour of the tool after the other, and a plain call last."""
    seen = []
    before = sdk.call_tool("behave", {"how": "list_processes"})
    seen.append({"how": "before", "output": before.output["said"] if before.ok else ""})
    for behaviour in ("talk", "read_stdin", "hang", "die", "daemonise", "eat", "fork", "list_processes"):
        result = sdk.call_tool("behave", {"how": behaviour})
        seen.append(
            {
                "how": behaviour,
                "fault": result.fault.type if result.fault else "",
                "output": result.output["said"] if result.ok else "",
                "stdout": result.stdout.size,
            }
        )
    return seen


def fill_disk(sdk: Any) -> list[int]:
    """Bytes that fit into the workspace, then files."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    written = made = 0
    with contextlib.suppress(OSError):
        for number in range(1024):
            with open(f"fill{number}", "wb", buffering=0) as file:
                written += file.write(bytes(1 << 20))
    for path in Path().glob("fill*"):
        path.unlink()
    with contextlib.suppress(OSError):
        for number in range(20_000):
            os.close(os.open(f"inode{number}", os.O_CREAT | os.O_WRONLY))
            made += 1
    for path in Path().glob("inode*"):
        path.unlink()
    return [written, made]


def leave_a_mark(sdk: Any) -> str:
    for place in PLACES:
        Path(place, "mark").write_text("mark")
    return "left"


def find_a_mark(sdk: Any) -> list[str]:
    return [place for place in PLACES if Path(place, "mark").exists()]


def look_around(sdk: Any) -> dict[str, Any]:
    return {
        "environment": sorted(os.environ),
        "cwd": os.getcwd(),
        "encoding": "ä".encode().decode(),
        "time": time.time(),
        "zone": time.tzname[0],
        "python": os.popen("python3 -c 'import json; print(json.dumps(1))'").read().strip(),  # noqa: S605
        "shell": os.popen("echo one two | wc -w").read().strip(),  # noqa: S605
    }


def burn(sdk: Any) -> str:
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    return "burnt"


def sleep_for_ever(sdk: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
    sdk.step("asleep")
    while True:
        time.sleep(600)


def vanish(sdk: Any) -> None:
    os._exit(7)


def babble(sdk: Any) -> None:
    """Bytes that are no frame, on the kernel's own socket."""
    os.write(4, b"\xff" * 64)
    time.sleep(600)
