"""A run as plain files, for people and other programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from agentos.domain import Json
from agentos.errors import UserError
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader


def export_run(home: Home, fragment: str, folder: Path) -> int:
    """Write task, run, steps (big values whole) and ``files/`` into ``folder``; how many files."""
    reader = Reader(home.ledger)
    run = reader.run(reader.resolve("run", fragment))
    blobs = BlobStore(home.blobs)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty directory; name a new one")
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    steps = [
        asdict(step) | {"action": blobs.expand(step.action), "observation": blobs.expand(step.observation)}
        for step in reader.steps(run.id)
    ]
    _write(folder / "task.json", asdict(reader.task(run.task_id)))
    _write(folder / "run.json", asdict(run) | {"answer": blobs.expand(run.answer)})
    (folder / "steps.jsonl").write_text("".join(_text(step) + "\n" for step in steps))
    for file in run.outputs:
        # the paths were checked when they were read from the box: relative, printable, no ".."
        place = files / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(blobs.get(file.sha256))
    return 3 + len(run.outputs)


def _write(path: Path, value: Json) -> None:
    path.write_text(_text(value, indent=2) + "\n")


def _text(value: Json, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=_plain)


def _plain(item: object) -> str:
    return item.isoformat() if isinstance(item, datetime) else str(item)
