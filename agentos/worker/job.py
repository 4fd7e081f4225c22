"""The entry of a sandbox's worker: one job frame comes in, its frames go out.

Importing this module imports what every job needs; ``warm.py``, what only a harness does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentos.messages import (
    GradeJob,
    LoadDone,
    LoadJob,
    McpJob,
    MigrateDone,
    MigrateJob,
    RunJob,
    SearchJob,
    ToolCard,
)
from agentos.wire import Channel, WireClosed
from agentos.worker import children, files
from agentos.worker.children import ChildLimits
from agentos.worker.faults import Failed, FaultsOf, NotPlain, encode, fault, load_fault
from agentos.worker.files import WorkerPlace
from agentos.worker.jobs.grading import grade
from agentos.worker.jobs.mcp_server import serve_calls
from agentos.worker.jobs.running import run
from agentos.worker.jobs.searching import search
from agentos.worker.tools import toolfile
from agentos.worker.tools.bundle_importer import BundleFiles
from agentos.worker.tools.toolhost import card_work, result_of

# --- The job ``load``: does every tool load, and what does it say of itself? ---------------------


_MEMORY_MB = 256
_CARD_BYTES = 256 << 10


def load(channel: Channel, job: LoadJob, blobs: tuple[bytes, ...], place: WorkerPlace) -> None:
    """Load each tool in a child of its own; answer with the cards, and a sentence for each fault."""
    files.write(place.snapshot, job.files, blobs)
    held = BundleFiles(place.snapshot, dict(zip(job.files, blobs, strict=True)))
    allowance = ChildLimits(job.wall_s, _MEMORY_MB, _CARD_BYTES)
    cards: list[ToolCard] = []
    faults: list[str] = []
    for path in job.tools:
        ended = children.run(card_work(held, path), allowance, alone=place.alone)
        result = result_of(ended, path, allowance)
        if result.fault is None:
            cards.append(ToolCard.model_validate(result.output))
        else:
            faults.append(f"{path}: {result.fault.message.removeprefix(f'{path}: ')}")
    channel.send(LoadDone(tools=cards, faults=faults).model_dump())


# --- The job ``migrate``: bring memories from one form to another with what a harness brings for that


def migrate(channel: Channel, job: MigrateJob, blobs: tuple[bytes, ...], place: WorkerPlace) -> None:
    """Call ``migrate(memories)`` in a child; answer with what it returned, or with its fault."""
    count = len(job.files)
    files.write(place.snapshot, job.files, blobs[:count])
    held = BundleFiles(place.snapshot, dict(zip(job.files, blobs[:count], strict=True)))
    texts = [blob.decode() for blob in blobs[count:]]
    memories = dict(zip(job.memories, texts, strict=True))
    allowance = ChildLimits(job.wall_s, job.memory_mb, job.output_bytes)
    ended = children.run(_migration(held, job, memories), allowance, alone=place.alone)
    result = result_of(ended, job.path, allowance)
    channel.send(MigrateDone(output=result.output, fault=result.fault).model_dump())


def _migration(held: BundleFiles, job: MigrateJob, memories: Mapping[str, str]) -> Callable[[], bytes]:
    root, path = held.root, job.path

    def work() -> bytes:
        space: dict[str, object] = {"__name__": "agentos_migrate", "__file__": str(root / path)}
        try:
            with FaultsOf(root, path, load_fault):
                held.offer(path.rpartition("/")[0])  # it may import what lies beside it
                exec(toolfile.compiled(held.text(path), path, root), space)  # noqa: S102
            with FaultsOf(root, path, passes=(NotPlain,)):
                migrate = space.get("migrate")
                if not callable(migrate):
                    message = f"{path}: it does not define 'def migrate(memories)'"
                    raise Failed(fault("load", message, path=path))
                return b'{"output":' + encode(migrate(dict(memories)), job.output_bytes) + b"}"
        except NotPlain as error:
            return _told(fault(error.type, f"what it returned: {error}", path=path).model_dump())
        except Failed as error:
            return _told(error.fault.model_dump())

    return work


def _told(found: Mapping[str, str]) -> bytes:
    return json.dumps({"fault": found}).encode()


# --- the entry -----------------------------------------------------------------------------------

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

    ``workspace`` and ``snapshot`` are fresh, empty directories. Call with a single thread, by ``template.call``, which
    sends on what it raises.
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
    except OSError as error:
        if not children.lacks_process(error):
            raise
        return  # as if it was killed: nothing of the job is to blame
