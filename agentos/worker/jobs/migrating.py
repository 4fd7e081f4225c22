"""The job ``migrate``: bring memories from one form to another with what a harness brings for that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from agentos.messages import MigrateDone, MigrateJob
from agentos.wire import Channel
from agentos.worker import children, files
from agentos.worker.children import ChildLimits
from agentos.worker.faults import Failed, NotPlain, encode, fault, fault_of, load_fault
from agentos.worker.paths import WorkerPlace
from agentos.worker.tools import toolfile
from agentos.worker.tools.bundle_importer import BundleFiles
from agentos.worker.tools.toolhost import result_of


def migrate(channel: Channel, job: MigrateJob, blobs: tuple[bytes, ...], place: WorkerPlace) -> None:
    """Call ``migrate(memories)`` in a child; answer with what it returned, or with its fault."""
    count = len(job.files)
    files.write(place.snapshot, job.files, blobs[:count])
    held = BundleFiles(place.snapshot, dict(zip(job.files, blobs[:count], strict=True)))
    texts = [blob.decode() for blob in blobs[count:]]
    memories = dict(zip(job.memories, texts, strict=True))
    allowance = ChildLimits(job.wall_s, job.memory_mb, job.output_bytes)
    ended = children.run(_work(held, job, memories), allowance, alone=place.alone)
    result = result_of(ended, job.path, allowance)
    channel.send(MigrateDone(output=result.output, fault=result.fault).model_dump())


def _work(held: BundleFiles, job: MigrateJob, memories: Mapping[str, str]) -> Callable[[], bytes]:
    root, path = held.root, job.path

    def work() -> bytes:
        try:
            held.offer(path.rpartition("/")[0])  # it may import what lies beside it
            space: dict[str, object] = {"__name__": "agentos_migrate", "__file__": str(root / path)}
            exec(toolfile.compiled(held.text(path), path, root), space)  # noqa: S102
        except BaseException as error:  # noqa: BLE001 - the harness' own error, sent on as data
            children.spare_memory()
            return _told(load_fault(error, root, path).model_dump())
        try:
            migrate = space.get("migrate")
            if not callable(migrate):
                message = f"{path}: it does not define 'def migrate(memories)'"
                raise Failed(fault("load", message, path=path))
            return b'{"output":' + encode(migrate(dict(memories)), job.output_bytes) + b"}"
        except NotPlain as error:
            return _told(fault(error.type, f"what it returned: {error}", path=path).model_dump())
        except BaseException as error:  # noqa: BLE001 - the harness' own error, sent on as data
            children.spare_memory()
            return _told(fault_of(error, root, path).model_dump())

    return work


def _told(found: Mapping[str, str]) -> bytes:
    return json.dumps({"fault": found}).encode()
