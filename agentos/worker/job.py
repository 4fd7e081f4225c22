"""The entry of a sandbox's worker: one job frame comes in, its frames go out.

Importing this module imports what every job needs; ``warm.py``, what only a harness does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentos.messages import FaultFrame, GradeJob, LoadJob, McpJob, MigrateJob, RunJob, SearchJob
from agentos.wire import Channel, WireClosed
from agentos.worker import children
from agentos.worker.faults import fault
from agentos.worker.jobs.grading import grade
from agentos.worker.jobs.loading import load
from agentos.worker.jobs.mcp_server import serve_calls
from agentos.worker.jobs.migrating import migrate
from agentos.worker.jobs.running import run
from agentos.worker.jobs.searching import search
from agentos.worker.paths import WorkerPlace

# langgraph looks for a tracing service, and its user's settings, in the environment.
QUIET = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "DO_NOT_TRACK": "1"}

_JOBS: Mapping[
    str, tuple[type[BaseModel], Callable[[Channel, Any, tuple[bytes, ...], WorkerPlace], None]]
] = {
    "run": (RunJob, run),
    "grade": (GradeJob, grade),
    "load": (LoadJob, load),
    "mcp": (McpJob, serve_calls),
    "migrate": (MigrateJob, migrate),
    "search": (SearchJob, search),
}


def serve(channel: Channel, *, workspace: str = "/ws", snapshot: str = "/snapshot") -> None:
    """Do the one job that comes over the channel, then return.

    ``workspace`` and ``snapshot`` are fresh, empty directories. Call with a single thread.
    """
    place = WorkerPlace(Path(workspace), Path(snapshot), alone=os.getpid() == 1)
    os.environ.update(QUIET)
    sys.dont_write_bytecode = True
    children.adopt_orphans()
    os.chdir(place.workspace)
    try:
        frame = channel.receive()
        kind, work = _JOBS[frame.head["job"]]
        work(channel, kind.model_validate(frame.head), frame.blobs, place)
    except WireClosed:
        return  # the kernel has lost interest
    except Exception as error:  # noqa: BLE001 - worker entry: whatever it is, the kernel must hear of it
        what = fault("worker", f"{type(error).__name__}: {error}")
        channel.send(FaultFrame(fault=what).model_dump())
