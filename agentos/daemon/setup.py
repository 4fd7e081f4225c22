"""A fresh home, and tasks taken in: what commands do without a daemon."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from agentos.daemon.offline import desk
from agentos.domain import InputFile, Task, TaskState, new_id, share_of
from agentos.errors import Invalid, UserError
from agentos.evolver.promote.consent import make_key
from agentos.evolver.promote.probing import vouch
from agentos.home import Home
from agentos.ledger.connect import require_ledger
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.settings import first_settings, free_uid, load_settings
from agentos.shipped import seed_files
from agentos.taskfile import Draft

_SKILLS_README = """\
Drop a skill here: a folder with a SKILL.md (agentskills.io) and, if it brings tools, tools/*.py.
The daemon notices it within two seconds, checks it, and takes it into the registry as a version.
`agentos status` tells when a folder was refused, and why. Removing a folder retires its skill.
"""


def init_home(home: Home) -> bool:
    """Make the home, or complete one; whether anything was missing. Safe to repeat.

    Raises UserError for a directory that holds something else.
    """
    root = home.root
    if root.exists() and not root.is_dir():
        raise UserError(f"{root} is a file; expected a directory for the home, or none")
    ours = home.settings.exists() or home.registry.exists() or home.ledger.exists()
    if root.is_dir() and not ours and any(root.iterdir()):
        raise UserError(
            f"{root} is not empty and is no agentos home; give another place with --home or AGENTOS_HOME"
        )
    parts = (home.settings, home.ledger, home.registry, home.consent_key)
    folders = (home.run, home.logs, home.blobs, home.skills)
    fresh = not all(part.exists() for part in (*parts, *folders))
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not home.settings.exists():  # first, so that an interrupted init knows its own
        _write(home.settings, first_settings(free_uid() if os.geteuid() == 0 else None))
    for folder in folders:
        folder.mkdir(mode=0o700, exist_ok=True)
    if not (home.skills / "README.txt").exists():
        _write(home.skills / "README.txt", _SKILLS_README)
    registry = Registry.init(home.registry, seed_files())
    Ledger(home.ledger).close()
    make_key(home.consent_key)
    if registry.last_good() is None:
        _vouch_for(home, registry)
    return fresh


def _vouch_for(home: Home, registry: Registry) -> None:
    """What a release ships was probed when it was made: the first runs need not wait for that."""
    with desk(home) as parts:
        main = registry.stable()
        vouch(parts, main, "it is what the home began with")
        registry.mark_good(main)


def _write(path: Path, text: str) -> None:
    aside = path.with_name(path.name + ".new")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)


def add_tasks(home: Home, drafts: Sequence[Draft]) -> list[Task]:
    """Take the input files into the blobs and queue the tasks; durable when the call returns.

    Raises Invalid when an input is larger than its task's workspace.
    """
    faults = [fault for draft in drafts for fault in _too_large(draft)]
    if faults:
        raise Invalid("inputs", faults)
    hold_out = load_settings(home.settings).hold_out
    require_ledger(home.ledger)
    ledger = Ledger(home.ledger)
    try:
        tasks = []
        for draft in drafts:
            inputs = [_taken(ledger, name, path) for name, path in draft.files.items()]
            task = draft.task(new_id("task"), inputs, datetime.now(UTC))
            state = TaskState.SCHEDULED if task.schedule else TaskState.QUEUED
            ledger.add_task(task, share_of(task.key, hold_out), state)
            tasks.append(task)
        return tasks
    finally:
        ledger.close()


def _too_large(draft: Draft) -> list[str]:
    size = sum(path.stat().st_size for path in draft.files.values())
    if size <= draft.limits.workspace_mb << 20:
        return []
    return [
        f"the inputs of '{draft.name}' have {size:,} bytes, its workspace {draft.limits.workspace_mb} MB; "
        "raise limits.workspace_mb"
    ]


def _taken(ledger: Ledger, name: str, path: Path) -> InputFile:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Invalid("inputs", [f"{path} cannot be read: {error.strerror}"]) from None
    return InputFile(name, ledger.blobs.put(content), len(content))
