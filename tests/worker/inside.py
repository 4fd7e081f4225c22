"""Forks workers that are warm: ``serve`` in plain processes, without the sandbox around them."""

import gc
import importlib.util
import os
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from types import CodeType

name, _, path = os.environ.get("TRIED_MUTANT", "").partition("=")
if name:  # scripts/mutants.py
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])

gc.disable()  # as in the template, for as long as modules are imported

from agentos.wire import Channel  # noqa: E402
from agentos.worker import (  # noqa: E402
    job,
    template,
    warm,  # noqa: F401 - what a box's template has imported as well
)
from agentos.worker.tools import entered  # noqa: E402

HARNESS = Path(__file__).parents[2] / "registry" / "harness" / "default"
entered.know({f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.py")}, "/snapshot")
KNOWN = {key: entered._KNOWN.pop(key) for key in [*entered._KNOWN]}


def lying_at(code: CodeType, filename: str) -> CodeType:
    inner = (lying_at(each, filename) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=filename, co_consts=tuple(inner))


PLACES: dict[str, str] = {}


def serve(channel: Channel) -> None:
    job.serve(channel, **PLACES)


def work(descriptor: int, status: int, workspace: str, snapshot: str) -> None:
    said = "good"
    os.write(status, f"{os.getpid()}\n".encode())
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for (
            content,
            _,
            path,
        ), code in KNOWN.items():  # a box has them at one place, each worker here at its own
            entered._KNOWN[content, f"{snapshot}/{path}", path] = lying_at(code, f"{snapshot}/{path}")
        PLACES.update(workspace=workspace, snapshot=snapshot)
        template.call(f"{__name__}:serve", Channel(socket.socket(fileno=descriptor)))
        assert threading.active_count() == 1
    except BaseException:  # noqa: BLE001 - the test shows it
        said = traceback.format_exc()
    os.write(status, said.encode())
    os._exit(0)


gc.collect()
gc.freeze()  # also as in the template: a collection in a worker must not touch, and so copy, what it inherited
gc.enable()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
server = socket.socket(fileno=int(sys.argv[1]))
while True:
    request, descriptors, _, _ = socket.recv_fds(server, 4096, 2)
    if not request:
        break
    if os.fork() == 0:
        server.close()
        work(*descriptors, *request.decode().split("\n"))
    for descriptor in descriptors:
        os.close(descriptor)
