"""Process 1 of a container: one box, made ahead of its job, used once.

The engine has built the outer walls before this starts. It imports what the job will need, says
hello with the token it was given, and waits. When the kernel hands the box over it locks itself in
(``template.lock_in``) and only then lets the entry run.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from agentos.wire import Channel, WireClosed, WireLate
from agentos.worker import template


def main(place: str) -> None:
    """``place`` holds ``start.json`` and the kernel's ``socket``; both are gone after the hello."""
    start = json.loads(Path(place, "start.json").read_bytes())
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(f"{place}/socket")
        _, pipes, _, _ = socket.recv_fds(sock, 1, 2)
    if len(pipes) != 2:
        return  # the kernel has lost interest
    reader, writer = template.keep(pipes)
    with contextlib.suppress(WireClosed):
        _serve(Channel((reader, writer)), start)


def main_of_pod() -> None:
    """As ``main`` where no descriptor can be handed in: the channel is standard input and output.

    The first frame is what ``start.json`` holds there.
    """
    reader, writer = template.keep([os.dup(0), os.dup(1)])
    channel = Channel((reader, writer))
    with contextlib.suppress(WireClosed, WireLate):
        _serve(channel, channel.receive(deadline=time.monotonic() + template.GO_S).head)


def _digest() -> str:
    """Of the modules that are here: an image that came from elsewhere may be of another version."""
    place = Path(__file__).parent.parent.parent
    total = hashlib.sha256()
    for path in sorted(place.glob("agentos/**/*.py"), key=str):
        total.update(f"{path.relative_to(place)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _serve(channel: Channel, start: dict[str, Any]) -> None:
    try:
        gc.disable()  # as in the template
        for module in start["warm"]:
            importlib.import_module(module)
        gc.collect()
        gc.freeze()  # what was imported stays; collections during the job need not look at it
        gc.enable()
        channel.send({"hello": start["token"], "worker": _digest()})
        channel.receive()  # the hand-over; the job comes after the answer
        os.environ.pop("HOSTNAME", None)  # the engine's, not ours
        if "tmpfs" in start["request"]:
            template.leave_the_pod(start["request"])
        template.lock_in(start["request"], bytes.fromhex(start["seccomp"]))
        channel.send({"locked": os.getpid()})
    except (OSError, ImportError) as error:
        channel.send({"error": f"{type(error).__name__}: {error}"})
        return
    template.call(start["entry"], channel)
