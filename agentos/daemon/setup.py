"""A fresh home, and tasks taken in: what commands do without a daemon."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from agentos.daemon.offline import offline_context
from agentos.daemon.standing_checks import with_accepted
from agentos.domain import InputFile, Task, TaskState, new_id, share_of
from agentos.durable import write_whole
from agentos.errors import Invalid, UserError
from agentos.evolver.promote.consent import make_key
from agentos.evolver.promote.promotion import vouch
from agentos.home import Home, made_folder
from agentos.ledger.postgres.address import address_of, has_ledger, require_ledger
from agentos.ledger.store import Ledger
from agentos.records.evolution import BEGAN_WITH
from agentos.registry.store import Registry
from agentos.settings import claim_uid, first_settings, load_settings, settings_text
from agentos.shipped import seed_files
from agentos.sources import is_glob, read_bounded, read_sources
from agentos.taskfile import Draft

_SKILLS_README = """\
Drop a skill here: a folder with a SKILL.md (agentskills.io) and, if it brings tools, tools/*.py.
The daemon notices it within two seconds, checks it, and takes it into the registry as a version.
`agentos status` tells when a folder was refused, and why. Removing a folder retires its skill.
"""


def init_home(home: Home) -> bool:
    """Make the home, or complete one; whether anything was missing. Safe to repeat.

    Raises UserError for a directory that holds something else, and for settings that cannot be read.
    """
    root = home.root
    if root.exists() and not root.is_dir():
        raise UserError(f"{root} is a file; expected a directory for the home, or none")
    ours = home.settings.exists() or home.registry.exists() or home.ledger.exists()
    if root.is_dir() and not ours and any(root.iterdir()):
        raise UserError(
            f"{root} is not empty and is no agentos home; give another place with --home or AGENTOS_HOME"
        )
    parts = (home.settings, home.registry, home.consent_key)
    fresh = not all(part.exists() for part in (*parts, *home.folders)) or not has_ledger(home.ledger)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{root} cannot be made ({error.strerror}); give another place with --home or AGENTOS_HOME"
        ) from None
    if not home.settings.exists():  # first, so that an interrupted init knows its own
        text = first_settings(claim_uid(root) if os.geteuid() == 0 else None)
        if address := address_of(home.ledger):  # of a variable, which the next shell may not have
            text = f"database = {json.dumps(address)}\n{text}"
        write_whole(home.settings, text.encode())
    elif os.geteuid() == 0:
        fresh |= _give_uid(home)
    for folder in home.folders:
        made_folder(folder)
    if not (home.skills / "README.txt").exists():
        write_whole(home.skills / "README.txt", _SKILLS_README.encode())
    registry = Registry.init(home.registry, seed_files())
    with closing(Ledger(home.ledger)) as ledger:
        head = ledger.head()
    make_key(home.consent_key)
    # a registry that was copied here may bring a pointer, and this ledger does not know what it rests on
    if registry.last_good() is None or not head.count:
        _vouch_for(home, registry)
    return fresh


def _give_uid(home: Home) -> bool:
    """As root, without which no box is made: where a person wrote the settings; whether they had none."""
    text = settings_text(home.settings)
    if "run_uid" in tomllib.loads(text):
        return False
    write_whole(home.settings, f"run_uid = {claim_uid(home.root)}\n{text}".encode())
    return True


def _vouch_for(home: Home, registry: Registry) -> None:
    """What a release ships was probed when it was made: the first runs need not wait for that."""
    with offline_context(home) as parts:
        main = registry.stable()
        vouch(parts, main, BEGAN_WITH)
        registry.mark_good(main)


def add_tasks(home: Home, drafts: Sequence[Draft]) -> list[Task]:
    """Take the input files into the blobs and queue the tasks, all or none; durable when the call returns.

    Raises Invalid, having queued nothing, when an input cannot be read or is larger than its task's workspace.
    """
    faults = [fault for draft in drafts for fault in (*_unreadable(draft), *_too_large(draft))]
    if faults:
        raise Invalid("inputs", faults[:50])
    hold_out = load_settings(home.settings).hold_out
    require_ledger(home.ledger)
    with closing(Ledger(home.ledger)) as ledger:
        tasks = []
        for draft in drafts:
            task = draft.task(new_id("task"), _inputs(ledger, draft), datetime.now(UTC))
            tasks.append(with_accepted(ledger, task))
        ledger.add_tasks(
            [
                (
                    task,
                    share_of(task.key, hold_out),
                    TaskState.SCHEDULED if task.recurs else TaskState.QUEUED,
                )
                for task in tasks
            ]
        )
        return tasks


def _unreadable(draft: Draft) -> Iterator[str]:
    for path in draft.files.values():
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # a pipe by now would hold us up
        except OSError as error:
            yield f"{path} cannot be read: {error.strerror}"


def _too_large(draft: Draft) -> list[str]:
    size = sum(path.stat().st_size for path in draft.files.values() if path.exists())
    if size <= draft.limits.workspace_mb << 20:
        return []
    return [
        f"the inputs of '{draft.name}' have {size:,} bytes, its workspace {draft.limits.workspace_mb} MB; "
        "raise limits.workspace_mb"
    ]


def _inputs(ledger: Ledger, draft: Draft) -> Sequence[InputFile]:
    """What the draft reads now; live inputs are read when it runs."""
    room = draft.limits.workspace_mb << 20
    single = [_taken(ledger, name, path, room) for name, path in draft.files.items()]
    found = read_sources(draft.trees, ledger.blobs.put, max_bytes=room, since={}, given=single)
    none = [
        source.path
        for source, count in zip(draft.trees, found.counts, strict=True)
        if not count and is_glob(source.path)
    ]
    if none:
        raise Invalid("inputs", [f"{path} matches no file" for path in none])
    return found.inputs


def _taken(ledger: Ledger, name: str, path: Path, room: int) -> InputFile:
    """Whoever may write the folder may have put something else there since it was looked at."""
    try:
        content = read_bounded(path, room, "an input")
    except OSError as error:
        raise Invalid("inputs", [f"{path} cannot be read: {error.strerror}"]) from None
    except UserError as error:
        raise Invalid("inputs", [str(error)]) from None
    return InputFile(name, ledger.blobs.put(content), len(content))
