"""The job ``load``: does every tool load, and what does it say of itself?"""

from __future__ import annotations

from agentos.messages import LoadDone, LoadJob, ToolCard
from agentos.wire import Channel
from agentos.worker import children, files
from agentos.worker.children import ChildLimits
from agentos.worker.paths import WorkerPlace
from agentos.worker.tools.bundle_importer import BundleFiles
from agentos.worker.tools.toolhost import card_work, result_of

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
