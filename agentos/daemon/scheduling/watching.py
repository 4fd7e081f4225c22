"""Watched folders: each file that arrives starts a copy of the task, once for each path and content.

A file counts as complete when nothing about it changed for ``settle_s``, so one that is still being copied is
not taken in half. What was dealt with is remembered by what tells a change; that a copy is queued once is safe
without that memory too, because its id is made of path and content. The notifier only saves looking often: what
it cannot see (a network's file system) is found by looking seldom.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog
import watchfiles

from agentos.daemon.scheduling.schedules import LATE, copy_of, start_copy
from agentos.domain import Call, InputFile, Json, Task, Watch, digest, share_of
from agentos.errors import Invalid
from agentos.ledger.reading import TaskView
from agentos.ledger.schedules import arrivals, has_task, set_arrivals, skip
from agentos.ledger.store import Ledger
from agentos.sources import SourceFile, fits_workspace, walk

LOOK_S = 10.0  # between looks that nothing asked for
# Names under which programs write what is not complete.
PARTIAL = ("*.part", "*.partial", "*.crdownload", "*.download", "*.tmp", "*.swp", "*~", "~$*")
PARTIAL_BELOW = tuple(f"{above}{name}" for name in PARTIAL for above in ("", "**/"))

log = structlog.get_logger("agentos.watching")


@dataclass(frozen=True, slots=True)
class ArrivingFile:
    """A file that may still be growing: what it looked like, and since when (monotonic seconds)."""

    signature: str
    since: float


class FolderWatcher:
    """Looks into the folders of all watching tasks. ``look`` is called by one thread at a time."""

    def __init__(self, ledger: Ledger, hold_out: float) -> None:
        self._ledger = ledger
        self._hold_out = hold_out
        self._pending: dict[tuple[str, str], ArrivingFile] = {}
        self._looked: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()  # of which it is known why they were not taken
        self._notifier = FolderNotifier()

    def look(self, views: Sequence[TaskView], now: float) -> list[str]:
        """Queue a copy for each file that arrived and is complete; their ids. ``now`` is monotonic."""
        watched = [(view, view.task.trigger.watch) for view in views if view.task.trigger]
        self._forget({view.task.id for view in views})
        folders = {
            watch.folder: "/" in watch.pattern or "**" in watch.pattern for _, watch in watched if watch
        }
        stirred = self._notifier.stirred(set(folders), below=any(folders.values()))
        queued: list[str] = []
        for view, watch in watched:
            if watch is None:
                continue
            # what could not be read is looked at seldom
            waits = any(key[0] == view.task.id for key in self._pending.keys() - self._told)
            since = now - self._looked.get(view.task.id, -LOOK_S)
            if watch.folder in stirred or waits or since >= LOOK_S:
                self._looked[view.task.id] = now
                queued += self._look_into(view, watch, now)
        return queued

    def close(self) -> None:
        """End the notifier."""
        self._notifier.close()

    def _look_into(self, view: TaskView, watch: Watch, now: float) -> list[str]:
        task, known = view.task, arrivals(self._ledger, view.task.id)
        left_out: list[str] = []
        queued: list[str] = []
        there: set[str] = set()
        seen: dict[str, str] = {}
        added = _added(task)
        try:
            for entry in walk(watch.folder, watch.pattern, PARTIAL_BELOW, left_out):
                there.add(entry.name)
                if not fits_workspace(entry.name):  # nor can the ledger hold each such name
                    self._tell_once(task.id, entry.name, "its name cannot stand in a workspace")
                    continue
                signature = signature_of(entry.facts)
                if known.get(entry.name) == signature:
                    continue
                if not self._is_complete(task.id, entry, signature, watch, now):
                    continue
                old = datetime.fromtimestamp(entry.facts.st_ctime, UTC) < added
                if not (old and not watch.existing and entry.name not in known):
                    taken = self._take(view, entry)
                    if taken is None:
                        continue
                    queued += taken
                seen[entry.name] = signature
        except OSError as error:
            skip(self._ledger, task.id, f"{watch.folder} cannot be read: {error.strerror}", datetime.now(UTC))
            return queued
        except Invalid as error:
            skip(self._ledger, task.id, str(error), datetime.now(UTC))
            return queued
        finally:
            set_arrivals(self._ledger, task.id, seen)
        for key in [key for key in self._pending if key[0] == task.id and key[1] not in there]:
            del self._pending[key]
        self._told = {key for key in self._told if key[0] != task.id or key[1] in there}
        set_arrivals(self._ledger, task.id, {}, known.keys() - there)
        return queued

    def _forget(self, there: set[str]) -> None:
        """What is known of schedules that are paused or gone."""
        self._pending = {key: known for key, known in self._pending.items() if key[0] in there}
        self._looked = {name: at for name, at in self._looked.items() if name in there}
        self._told = {key for key in self._told if key[0] in there}

    def _tell_once(self, schedule_id: str, name: str, why: str) -> None:
        if (schedule_id, name) not in self._told:
            self._told.add((schedule_id, name))
            skip(self._ledger, schedule_id, f"{name!a} was not taken: {why}", datetime.now(UTC))

    def _is_complete(
        self, schedule_id: str, entry: SourceFile, signature: str, watch: Watch, now: float
    ) -> bool:
        """Whether it looked like this for long enough."""
        pending = self._pending.get((schedule_id, entry.name))
        if pending is None or pending.signature != signature:
            self._pending[schedule_id, entry.name] = ArrivingFile(signature, now)
            return False
        if now - pending.since < watch.settle_s:
            return False
        del self._pending[schedule_id, entry.name]
        return True

    def _take(self, view: TaskView, entry: SourceFile) -> list[str] | None:
        """Queue the copy for a file, unless this content came by this path before; None: look again later."""
        task = view.task
        limit = task.limits.workspace_mb << 20
        if entry.facts.st_size > limit:
            why = f"it has {entry.facts.st_size:,} bytes, the workspace {limit:,}; raise limits.workspace_mb"
            skip(self._ledger, task.id, f"{entry.name!a} was not taken: {why}", datetime.now(UTC))
            return []
        try:
            with open(entry.open(), "rb") as file:
                if signature_of(os.fstat(file.fileno())) != signature_of(entry.facts):
                    return None
                content = file.read(entry.facts.st_size)
                # begun anew by its writer meanwhile: neither the old nor the new
                if signature_of(os.fstat(file.fileno())) != signature_of(entry.facts):
                    return None
        except FileNotFoundError:
            return None
        except OSError as error:
            # A share that was away, or a right that is given later: neither changes the file.
            self._tell_once(task.id, entry.name, f"it cannot be read: {error.strerror}")
            return None
        self._told.discard((task.id, entry.name))
        sha256 = self._ledger.blobs.put(content)
        copy_id = f"{task.id}-{digest([entry.name, sha256])[:12]}"
        if has_task(self._ledger, copy_id):
            return []
        arrived = InputFile(entry.name, sha256, len(content))
        others = tuple(one for one in task.inputs if one.path != arrived.path)
        given = for_file(replace(task, inputs=(*others, arrived)), entry.name)
        share = share_of(given.key, self._hold_out)
        copy = copy_of(given, copy_id, datetime.now(UTC))
        start_copy(self._ledger, copy, share, self._hold_out, even_if_empty=True)
        log.info("file arrived", schedule=task.id, file=entry.name, task=copy_id)
        return [copy_id]


def _added(task: Task) -> datetime:
    """When it was added; before all, where a clock was ahead: what lay there then is known by now."""
    ahead = task.created_at > datetime.now(UTC) + LATE
    return datetime.min.replace(tzinfo=UTC) if ahead else task.created_at


def signature_of(facts: os.stat_result) -> str:
    """What tells that a file changed without reading it."""
    return f"{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ino}"


def for_file(task: Task, name: str) -> Task:
    """The task with ``{file}`` in its goal and its arguments replaced by the path of the file that arrived."""
    call = Call(task.call.tool, _with(task.call.args, name)) if task.call else None
    return replace(
        task,
        name=f"{task.name}: {name}"[:200],
        goal=task.goal.replace("{file}", name),
        call=call,
    )


def _with(value: Json, name: str) -> Json:
    if isinstance(value, str):
        return value.replace("{file}", name)
    if isinstance(value, dict):
        return {key: _with(inner, name) for key, inner in value.items()}
    return [_with(inner, name) for inner in value] if isinstance(value, list) else value


class FolderNotifier:
    """Tells which folders something happened in; where it cannot, it says nothing."""

    def __init__(self) -> None:
        self._folders: set[str] = set()
        self._below = True
        self._stirred: set[str] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def stirred(self, folders: set[str], *, below: bool = True) -> set[str]:
        """Those of ``folders`` in which (``below``: or deeper) something happened since the last call."""
        there = {folder for folder in folders if os.path.isdir(folder)}
        if (there, below) != (self._folders, self._below):
            self._below = below
            self._begin(there)
            return there
        with self._lock:
            found, self._stirred = self._stirred, set()
        return found

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def _begin(self, folders: set[str]) -> None:
        self.close()
        self._folders, self._stirred = folders, set()
        if folders:
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._listen,
                args=(sorted(folders), self._below, self._stop),
                name="watching",
                daemon=True,
            )
            self._thread.start()

    def _listen(self, folders: Sequence[str], below: bool, stop: threading.Event) -> None:
        real = {os.path.realpath(folder): folder for folder in folders}
        try:
            for changes in watchfiles.watch(
                *folders,
                stop_event=stop,
                recursive=below,
                watch_filter=None,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                paths = [path for _, path in changes]
                with self._lock:
                    self._stirred |= {
                        folder
                        for where, folder in real.items()
                        if any(path.startswith((f"{where}/", f"{folder}/")) for path in paths)
                    }
        except (OSError, RuntimeError) as error:  # too many watches, a folder that is gone: looking goes on
            log.warning("watching by looking only", why=str(error))
