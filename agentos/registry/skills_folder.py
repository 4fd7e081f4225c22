"""Folders that people drop skills into: each becomes ``skill/NAME``, and goes when the folder goes.

``refs/agentos/folders/FOLDER/NAME`` is the tree that was taken in last: the folder is imported
when its content differs from that, so what was learnt since stays while the folder does not
change, and is merged with it when it does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentos.domain import Kind, ResourceId, digest
from agentos.errors import Invalid, Unavailable
from agentos.registry import folder as folders
from agentos.registry import reading
from agentos.registry.loading import Load, trial
from agentos.registry.merging import as_change, merge
from agentos.registry.repository import EMPTY_TREE
from agentos.registry.store import Registry
from agentos.registry.wheels import LOCK_FILE
from agentos.registry.writing import About, advance
from agentos.resources import examine, name_fault

if TYPE_CHECKING:
    from agentos.messages import ToolCard

FOLDERS = "refs/agentos/folders/"


@dataclass(frozen=True, slots=True)
class FolderOutcome:
    """What a scan did about one folder.

    ``action``: ``imported``, ``merged`` (with what was learnt here), ``retired`` or ``refused``
    (nothing was changed; ``faults`` says why).
    """

    folder: Path
    name: str
    action: str
    version: str = ""
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tools: tuple[ToolCard, ...] = ()


@dataclass(slots=True)
class _Seen:
    signature: str
    since: float
    settled: bool = False  # taken in or refused as it is now
    against: str | None = None  # refused because of this digest of ours: look again when it changes


class SkillsFolders:
    """Watches folders by scanning. Not thread-safe: one caller, the daemon's tick."""

    def __init__(
        self, registry: Registry, watched: Sequence[Path], load: Load | None, *, settle_s: float = 0.3
    ) -> None:
        self.registry = registry
        self.watched = [Path(os.path.abspath(path)) for path in watched]
        self.load = load
        self.settle_s = settle_s
        self._seen: dict[Path, _Seen] = {}

    def scan(self, now: float) -> list[FolderOutcome]:
        """Take in what is new or changed and has been quiet for ``settle_s`` seconds.

        ``now`` is on any monotonic clock. Costs an ``lstat`` for each file when nothing changed.
        """
        outcomes: list[FolderOutcome] = []
        for place in self.watched:
            try:
                names = sorted(entry.name for entry in os.scandir(place) if not _passed_over(entry))
            except OSError:
                continue  # an unmounted disk is no reason to retire everything
            for name in names:
                outcomes += self._look(place / name, now)
            outcomes += self._retire_missing(place, names)
        return outcomes

    def _look(self, path: Path, now: float) -> list[FolderOutcome]:
        signature = folders.signature(path)
        seen = self._seen.get(path)
        if seen is None or seen.signature != signature:
            self._seen[path] = _Seen(signature, now)
            return []
        if seen.settled and (seen.against is None or seen.against == self._ours(path.name)):
            return []
        if now - seen.since < self.settle_s:
            return []
        content = folders.read(path)
        if folders.signature(path) != signature:
            self._seen[path] = _Seen("", now)  # it changed under our hands
            return []
        seen.settled, seen.against = True, None
        try:
            return self._take_in(path, content, seen)
        except Unavailable:  # no sandbox to try the tools in, a full disk: try again later
            seen.settled, seen.since = False, now
            raise

    def _take_in(self, path: Path, content: folders.FolderContent, seen: _Seen) -> list[FolderOutcome]:
        name = path.name
        if fault := name_fault(name):
            return [self._refused(path, [fault])]
        if path.is_symlink():
            return [self._refused(path, ["it is a symbolic link; put the folder itself there"])]
        if content.faults:
            return [self._refused(path, content.faults)]
        skill = ResourceId(Kind.SKILL, name)
        reading_ = examine(skill, {f"{skill}/{file}": data for file, data in content.files.items()})
        if reading_.faults:
            return [self._refused(path, reading_.faults, reading_.warnings)]
        repository = self.registry.repository
        theirs = str(repository.write_tree(EMPTY_TREE, dict(content.files)))
        taken = repository.resolve(_ref(path))
        if str(taken) == theirs:
            return []
        ours = self._ours(name)
        if taken is None and ours and ours != theirs:
            seen.against = ours
            fault = (
                f"the registry has another {skill} already; rename the folder (and 'name' in SKILL.md), "
                f"or replace that one: agentos registry edit {skill} --file {path}"
            )
            return [self._refused(path, [fault], reading_.warnings)]
        merged = merge(repository, str(taken) if taken and ours else "", ours, theirs) if ours else None
        if merged and merged.conflicts:
            seen.against = ours
            conflicts = [f"{conflict} (folder and learnt version)" for conflict in merged.conflicts]
            hint = f"see agentos registry log {skill}; revert the learnt version or put it into the folder"
            return [self._refused(path, [*conflicts, hint], reading_.warnings)]
        return self._import(path, skill, (ours, merged.digest if merged else theirs, theirs), seen)

    def _import(
        self, path: Path, skill: ResourceId, digests: tuple[str, str, str], seen: _Seen
    ) -> list[FolderOutcome]:
        ours, result, theirs = digests
        repository = self.registry.repository
        files = {f"{skill}/{file}": data for file, data in reading.files(repository, result, "").items()}
        unlocked = repository.write_tree(result, {LOCK_FILE: None})  # the lock beside it is not learnt
        merged = theirs not in (result, str(unlocked))
        try:
            locks = self.registry.wheels.renewed(str(skill), files)
        except Invalid as error:
            return [self._refused(path, error.faults)]
        if locks:
            own = {name.removeprefix(f"{skill}/"): data for name, data in locks.items()}
            result = str(repository.write_tree(result, own))
            files = {f"{skill}/{file}": data for file, data in reading.files(repository, result, "").items()}
        cards, faults = trial(skill, files, self.load)
        if faults:
            return [self._refused(path, faults)]
        with repository.lock():
            main = self.registry.stable()
            if self._ours(path.name) != ours:
                seen.settled = False  # somebody wrote meanwhile: decide again at the next scan
                return []
            tree = repository.write_tree(main.tree, {str(skill): as_change(result)})
            how = "Merge" if merged else "Import"
            about = About(f"{how} {skill} from the skills folder", "import", self.registry.clock())
            advance(repository, main, tree, [skill] if result != ours else [], about)
            repository.move(_ref(path), repository.tree(theirs).id, expected=repository.resolve(_ref(path)))
        if result == ours:
            return []
        version = self.registry.latest(skill)
        return [
            FolderOutcome(
                path,
                path.name,
                "merged" if merged else "imported",
                version.number if version else "",
                warnings=examine(skill, files).warnings,
                tools=tuple(cards),
            )
        ]

    def _retire_missing(self, place: Path, names: Sequence[str]) -> list[FolderOutcome]:
        outcomes = []
        for name in self.registry.repository.below(_prefix(place)):
            if name in names:
                continue
            skill = ResourceId(Kind.SKILL, name)
            others = [other for other in self.watched if other != place]
            held = any(self.registry.repository.resolve(_prefix(other) + name) for other in others)
            retired = bool(self._ours(name)) and not held
            if retired:
                self.registry.retire(skill, "its folder was removed")
            with self.registry.repository.lock():
                self.registry.repository.drop(_prefix(place) + name)
            self._seen.pop(place / name, None)
            if retired:
                version = self.registry.latest(skill)
                outcomes.append(
                    FolderOutcome(place / name, name, "retired", version.number if version else "")
                )
        return outcomes

    def _refused(self, path: Path, faults: Sequence[str], warnings: Sequence[str] = ()) -> FolderOutcome:
        return FolderOutcome(path, path.name, "refused", faults=tuple(faults), warnings=tuple(warnings))

    def _ours(self, name: str) -> str:
        skill = ResourceId(Kind.SKILL, name)
        return reading.digest(self.registry.repository, self.registry.stable().tree, skill)


def _passed_over(entry: os.DirEntry[str]) -> bool:
    """Plain files beside the skills (a README) and dot files are nobody's skill."""
    return folders.ignored(entry.name) or stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)


def _prefix(place: Path) -> str:
    return f"{FOLDERS}{digest(str(place))[:16]}/"


def _ref(path: Path) -> str:
    return _prefix(path.parent) + path.name
