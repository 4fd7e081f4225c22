"""Harnesses that try to stop the daemon, two at a time in a daemon with two slots: ordinary tasks go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.upkeep.doctor import examine
from agentos.domain import Limits, Result, Task
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.registry.store import Registry

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

HARNESS = '''
import contextlib, os, signal, socket, struct, time

def say(data):
    data = struct.pack(">I", len(data)) + data
    os.set_blocking(4, True)
    while data:
        data = data[os.write(4, data):]

def linger():
    """What hung a daemon's slot for good: a full socket that lingers, sent wherever something is listening."""
    listening = socket.create_server(("127.0.0.1", 0))
    full = socket.create_connection(listening.getsockname())
    with contextlib.suppress(OSError):
        full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 36000))
    full.setblocking(False)
    with contextlib.suppress(OSError):
        while True:
            full.send(bytes(65536))
    for number in range(3, 64):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as out:
            socket.send_fds(out, [b"\\0\\0\\0\\2{}"], [full.fileno()])
    wait()

def wait():
    for number in range(1, 65):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(600)

def lists():
    value = "[" + "[]," * 260000 + "0]"
    while True:
        say(('{"type":"step","node":"act","action":null,"duration_ms":0,"observation":' + value + "}").encode())

def blobs():
    while True:
        say(('{"type":"done","finished":"answered","blobs":[' + "0," * 3900000 + "0]}").encode())

def half():
    os.write(4, struct.pack(">I", 8 << 20) + b"{")
    wait()

def asks():
    number = 0
    while True:
        number += 1
        say(('{"type":"ask","id":%d,"what":"model","body":{"messages":"%s"}}' % (number, "x" * 1000000)).encode())

def run(sdk):
    globals()[sdk.task.goal]()
'''
WAYS = ("linger", "linger", "lists", "blobs", "half", "asks")


def test_ordinary_tasks_go_on_beside_harnesses_that_want_to_stop_the_daemon(
    daemon: Any,
    home: Home,
    add: Callable[[Task], Task],
    make_task: Callable[..., Task],
    all_done: Callable[..., None],
) -> None:
    Registry(home.registry).commit(
        {
            "harness/hostile/harness.py": HARNESS.encode(),
            "harness/hostile/resource.toml": b'description = "Hostile"\n',
            "agent/hostile/resource.toml": b'description = "Hostile"\nharness = "hostile"\n',
        },
        "A hostile harness",
        "edit",
    )
    daemon.environment = {
        "AGENTOS_PARALLEL": "2",
        "AGENTOS_EVOLVE": "manual",
        "AGENTOS_SANDBOX": "bubblewrap",
    }
    hostile = [
        add(
            replace(make_task("double", n=1, limits=Limits(wall_s=2.0)), call=None, goal=way, agent="hostile")
        )
        for way in WAYS
    ]
    ordinary = [add(make_task("double", n=n, expect=2 * n, limits=Limits(wall_s=60.0))) for n in range(4)]
    daemon.start()
    all_done(300)
    reader = Reader(home.ledger)
    for task in ordinary:
        (run,) = reader.runs(task.id)
        assert run.outcome is not None
        assert run.outcome.result is Result.PASSED
    for task in hostile:
        assert all(run.outcome and run.outcome.result is not Result.PASSED for run in reader.runs(task.id))
    info = daemon_info(home)
    assert info is not None
    assert info.overdue == ()
    assert [found.what for found in examine(home, fix=False, full=True)] == []
    status = Path(f"/proc/{info.pid}/status").read_text()
    peak_kb = int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])
    assert peak_kb < 500 << 10
