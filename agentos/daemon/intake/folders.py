"""Takes in what people drop into skills folders or push to the registry, and remembers refusals."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from watchfiles import Change, watch

from agentos.daemon.intake.adopting import give_all_back, session_folders, watched_folders
from agentos.daemon.intake.sessions import SessionLogs
from agentos.domain import Json
from agentos.registry.skill_folders.give_back import GiveBackResult
from agentos.registry.skill_folders.skills_folder import FolderOutcome, SkillsFolders

if TYPE_CHECKING:
    from agentos.daemon.service import Service

# memos in the ledger, shown by `agentos status`: folder -> faults, folder -> files that are not in the skill, and how
# many folders are still to be taken in
REFUSED, LEFT_OUT, WAITING = "skills.refused", "skills.left_out", "skills.waiting"
_SETTLE_S = 1.0
_LOOK_S = 60.0  # between looks at everything: a network drive tells of nothing, and a queue can overflow
_SHARE = 0.01  # of a core that looking at everything may take, at most
_MANY = 20  # skills of one scan: more are one entry of the audit log
_FEW = 5  # files of a folder that are told as left out
_FRESH_S = 5.0  # until a watch that was just begun is relied on

_GIVE_S = 60.0

log = structlog.get_logger("agentos.folders")


class FolderWatch:
    """What changed in the folders, as the operating system tells it. Its thread ends with it."""

    def __init__(self, places: Sequence[Path]) -> None:
        self.places = places
        self._news = _News([], 0.0)

    def changed(self, now: float) -> set[Path] | None:
        """The folders of skills that changed since the last call; None when that is not known."""
        there = [place for place in self.places if place.is_dir()]
        if there != self._news.places or self._news.stale:
            self._news.stop.set()
            self._news = _News(there, now)
            weakref.finalize(self, self._news.stop.set)
            threading.Thread(target=_listen, args=(self._news,), name="skills", daemon=True).start()
        found = self._news.taken()
        return None if self._news.failed or now < self._news.since + _FRESH_S else found


class _News:
    """Between the thread that listens and the one that asks."""

    def __init__(self, places: list[Path], since: float) -> None:
        self.places, self.since, self.failed = places, since, False
        self.stale = False  # one of them was put in the place of what is watched
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._changed: set[Path] = set()

    def add(self, name: str) -> None:
        """A file or directory of this name changed."""
        for place in self.places:
            if name.startswith(f"{place}/"):
                with self._lock:
                    self._changed.add(place / name.removeprefix(f"{place}/").partition("/")[0])

    def taken(self) -> set[Path]:
        """What was added since the last call."""
        with self._lock:
            found, self._changed = self._changed, set()
        return found


def _listen(news: _News) -> None:
    options: Any = {"watch_filter": None, "step": 200, "debounce": 600, "raise_interrupt": False}
    try:
        for changes in watch(*news.places, stop_event=news.stop, **options):
            for change, name in changes:
                news.add(name)
                news.stale |= change is Change.deleted and Path(name) in news.places
    except (OSError, RuntimeError) as error:  # more folders than the kernel watches, mostly
        news.failed = True
        log.warning("skills folders are polled, not watched", error=str(error))


def _few(files: Sequence[str]) -> list[str]:
    more = len(files) - _FEW
    return [*files[:_FEW], *([f"and {more} more"] if more > 0 else [])]


class Folders:
    """Scanned by the daemon's housekeeping; not thread-safe."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._folders = SkillsFolders(service.registry, self._watched(), service.load, settle_s=_SETTLE_S)
        self._watch = FolderWatch(self._folders.watched)
        self._look_at = 0.0  # everything, on the monotonic clock
        self._given = ("", 0.0)  # for which state of the registry, and when, adopted folders were looked at
        self._sessions = SessionLogs(service.ledger, service.registry, service.settings.hold_out)
        self._refused: dict[str, list[str]] = {}
        self._noted: dict[str, Json] = {}
        self._note()

    def scan(self) -> None:
        """One look; a folder that is still being copied is taken at a later one."""
        if (watched := self._watched()) != self._folders.watched:
            self._folders.watched = self._watch.places = watched
            self._look_at = 0.0
        try:
            self._tell(self._outcomes(time.monotonic()))
        finally:
            self._note()
        self._give_back()
        self._sessions.look(session_folders(self._service.ledger), time.monotonic(), time.time())
        # last: one that cannot be taken in holds up nothing else
        for push in self._service.registry.take_in_pushes(self._service.load):
            log.info("push", outcome=str(push))

    def _note(self) -> None:
        """What a person should know of the folders, where it is something else than before."""
        self._refused = {path: faults for path, faults in self._refused.items() if self._is_there(path)}
        left_out = {str(path): _few(files) for path, files in self._folders.left_out.items() if files}
        memos: dict[str, Json] = {
            REFUSED: dict(self._refused),
            LEFT_OUT: {path: told for path, told in left_out.items() if self._is_there(path)},
            WAITING: self._folders.waiting,
        }
        for key, value in memos.items():
            if key not in self._noted or value != self._noted[key]:
                self._service.ledger.set_kv(key, value)
                self._noted[key] = value

    def _is_there(self, path: str) -> bool:
        return Path(path).parent in self._folders.watched and os.path.lexists(path)

    def _watched(self) -> list[Path]:
        service = self._service
        return [
            Path(os.path.abspath(path))
            for path in watched_folders(service.home, service.settings, service.ledger)
        ]

    def _give_back(self) -> None:
        """When the registry moved, and every minute: what is not committed there may be by now."""
        service, now = self._service, time.monotonic()
        tree, looked = self._given
        if service.registry.stable().tree == tree and now - looked < _GIVE_S:
            return
        self._given = (service.registry.stable().tree, now)
        for difference, given in give_all_back(
            service.home, service.settings, service.ledger, service.registry
        ):
            if isinstance(given, GiveBackResult):
                log.info("skill given back", skill=difference.skill.name, way=given.way, where=given.where)
            else:
                log.warning("skill not given back", skill=difference.skill.name, why=given)

    def _outcomes(self, now: float) -> list[FolderOutcome]:
        changed = self._watch.changed(now)
        if now < self._look_at:
            return self._folders.scan(now, changed or ())
        began = time.thread_time()
        outcomes = self._folders.scan(now)
        least = (time.thread_time() - began) / _SHARE
        self._look_at = now + max(least, 0.0 if changed is None else _LOOK_S)
        return outcomes

    def _tell(self, outcomes: Sequence[FolderOutcome]) -> None:
        for folder in self._folders.looked:  # also one that holds again what was taken in
            self._refused.pop(str(folder), None)
        for outcome in outcomes:
            path = str(outcome.folder)
            if outcome.action == "refused":
                self._refused[path] = list(outcome.faults)
                log.warning("skill refused", folder=path, faults=list(outcome.faults))
                continue
            log.info("skill " + outcome.action, skill=outcome.name, version=outcome.version)
            for warning in outcome.warnings:
                log.warning("skill", folder=path, warning=warning)
        for action in ("imported", "merged", "retired"):
            self._audit(action, [outcome for outcome in outcomes if outcome.action == action])

    def _audit(self, action: str, outcomes: Sequence[FolderOutcome]) -> None:
        """An entry for each, or one for many."""
        if len(outcomes) > _MANY:
            versions = {outcome.name: outcome.version for outcome in outcomes}
            self._service.ledger.note(f"skill.{action}", f"{len(outcomes)} skills", {"skills": versions})
            return
        for outcome in outcomes:
            detail = {"folder": str(outcome.folder), "version": outcome.version}
            self._service.ledger.note(f"skill.{action}", f"skill/{outcome.name}", detail)
