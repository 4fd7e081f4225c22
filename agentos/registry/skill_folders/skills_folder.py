"""Folders that people drop skills into: each becomes ``skill/NAME``, and goes when the folder goes.

``refs/agentos/folders/FOLDER/NAME`` is the tree that was taken in last: the folder is imported
when its content differs from that, so what was learnt since stays while the folder does not
change, and is merged with it when it does. All folders of a scan become one commit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2

from agentos.domain import Kind, ResourceId, dataclass
from agentos.errors import Invalid, Unavailable
from agentos.programs import LOCK_FILE
from agentos.registry.git.versions import ObjectPack
from agentos.registry.skill_folders import folder as folders
from agentos.registry.skill_folders.folder import FOLDERS, folder_prefix, name_in
from agentos.registry.store import Registry
from agentos.registry.wheels import unlocked
from agentos.registry.writing import CommitInfo, Load, advance, as_change, merge, trial
from agentos.resources import Examination, examine, name_fault
from agentos.resources.documents import MAIN_FILE

if TYPE_CHECKING:
    from agentos.messages import ToolCard


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


_MANY = 20  # references: more are written together
_HELD_BYTES = 64 << 20  # of content that waits for being written
_PATIENCE_S = 10.0  # until what was tried so far is written: hundreds may come at once


@dataclass(slots=True)
class _Seen:
    signature: str
    since: float
    settled: bool = False  # taken in or refused as it is now
    against: str | None = None  # refused because of this digest of ours: look again when it changes


@dataclass(slots=True)
class _Arrival:
    """A folder that is to be taken in: ``result`` is what the skill becomes, ``theirs`` what the folder holds."""

    path: Path
    skill: ResourceId
    seen: _Seen
    ours: str
    theirs: str
    result: str
    merged: bool
    warnings: tuple[str, ...]
    tools: tuple[ToolCard, ...]


class SkillsFolders:
    """Watches folders by scanning. Not thread-safe: one caller, the daemon's tick."""

    def __init__(
        self,
        registry: Registry,
        watched: Sequence[Path],
        load: Load | None,
        *,
        settle_s: float = 0.3,
        batch: int = 1_000,
    ) -> None:
        self.registry = registry
        self.watched = [Path(os.path.abspath(path)) for path in watched]
        self.load = load
        self.settle_s = settle_s
        self.patience_s = _PATIENCE_S
        self.batch = batch  # folders that one scan takes in: the writer's lock is held meanwhile
        self.looked: set[Path] = set()  # what the last scan read: what was said of these is over
        self.left_out: dict[Path, tuple[str, ...]] = {}  # a sentence for each file that is not in the skill
        self._seen: dict[Path, _Seen] = {}
        self._waiting: set[Path] = set()  # not quiet yet, or beyond the batch
        self._taken: set[tuple[str, str]] | None = None  # of this scan: names and trees, wherever they lay
        self._names: dict[Path, dict[str, Path]] = {}  # of this scan: place -> skill's name -> its folder

    def scan(self, now: float, changed: Collection[Path] | None = None) -> list[FolderOutcome]:
        """Take in what is new or changed and has been quiet for ``settle_s`` seconds.

        ``now`` is on any monotonic clock. Looks at everything (an ``lstat`` for each file), or, where the
        caller knows, at the folders that ``changed`` and those that still wait.
        """
        self._names.clear()
        self.looked.clear()
        self._taken = None
        outcomes: list[FolderOutcome] = []
        try:
            self._scan(now, changed, outcomes)
        except Unavailable:  # what waits for it is tried again, and told then
            if not outcomes:
                raise
        return outcomes

    def _scan(self, now: float, changed: Collection[Path] | None, outcomes: list[FolderOutcome]) -> None:
        ready: list[tuple[Path, folders.FolderContent]] = []
        size = count = 0
        try:
            for path in self._everything() if changed is None else self._these(changed):
                if count == self.batch:
                    self._waiting.add(path)
                elif (content := self._look(path, now)) is not None:
                    ready.append((path, content))
                    size, count = size + content.size, count + 1
                if size > _HELD_BYTES:
                    self._take_in(ready, now, outcomes)
                    ready, size = [], 0
            self._take_in(ready, now, outcomes)
        finally:  # what lies there may go though nothing can come
            for place in self.watched:
                if changed is None or any(path.parent == place for path in changed):
                    outcomes += self._retire_missing(place)

    @property
    def waiting(self) -> int:
        """How many folders are still to be taken in."""
        return len(self._waiting)

    def _everything(self) -> list[Path]:
        found = [path for place in self.watched for path in sorted(folders.folders_in(place) or ())]
        self._waiting.intersection_update(found)
        for known in (self._seen, self.left_out):
            for path in known.keys() - set(found):
                known.pop(path)
        return found

    def _these(self, changed: Collection[Path]) -> list[Path]:
        against = {path for path, seen in self._seen.items() if seen.against is not None}
        wanted = {*changed, *self._waiting, *against}
        here = sorted(path for path in wanted if path.parent in self.watched and folders.is_folder(path))
        self._waiting.intersection_update(here)
        return here

    def _look(self, path: Path, now: float) -> folders.FolderContent | None:
        """What is in the folder, if it is to be taken in now."""
        signature = folders.signature(path)
        seen = self._seen.get(path)
        self._waiting.add(path)
        if seen is None or seen.signature != signature:
            self._seen[path] = _Seen(signature, now)
            return None
        if seen.settled and (seen.against is None or seen.against == self._ours(self._name(path))):
            self._waiting.discard(path)
            return None
        if now - seen.since < self.settle_s:
            return None
        content = folders.read(path)
        if folders.signature(path) != signature:
            self._seen[path] = _Seen("", now)  # it changed under our hands
            return None
        self._waiting.discard(path)
        self.looked.add(path)
        seen.settled, seen.against = True, None
        self.left_out[path] = tuple(content.left_out)
        return content

    def _take_in(
        self,
        ready: Sequence[tuple[Path, folders.FolderContent]],
        now: float,
        outcomes: list[FolderOutcome],
    ) -> None:
        """Adds what became of each, also of those that were refused before something was away. Raises Unavailable."""
        if not ready:
            return
        arrivals: dict[ResourceId, _Arrival] = {}
        away: Unavailable | None = None
        pack = ObjectPack(self.registry.repository)
        digests = self.registry.digests(self.registry.stable())
        began = time.perf_counter()
        for path, content in ready:
            if time.perf_counter() - began > self.patience_s:  # each may start a box for its tools
                self._wait(path, now)
                continue
            try:
                found = self._examine(path, content, digests, pack)
            except Unavailable as error:  # no sandbox to try the tools in, a full disk: try again later
                self._wait(path, now)
                away = error
                continue
            if isinstance(found, FolderOutcome):
                outcomes.append(found)
            elif found is not None and arrivals.setdefault(found.skill, found) is not found:
                self._wait(path, now)  # of two watched places
        try:
            pack.write()
            outcomes += self._commit([*arrivals.values()], now)
        except Unavailable:
            for arrival in arrivals.values():
                self._wait(arrival.path, now)
            raise
        if away is not None:
            raise away

    def _wait(self, path: Path, now: float) -> None:
        self._seen[path].settled, self._seen[path].since = False, now
        self._waiting.add(path)

    def _examine(
        self, path: Path, content: folders.FolderContent, digests: Mapping[ResourceId, str], pack: ObjectPack
    ) -> _Arrival | FolderOutcome | None:
        """What the folder is to become; None when that is what the skill is already."""
        name = self._name(path)
        if fault := name_fault(name) or self._rival(path, name):
            return _refused(path, [fault])
        if path.is_symlink():
            return _refused(path, ["it is a symbolic link; put the folder itself there"])
        if content.faults:
            return _refused(path, content.faults)
        skill, files = ResourceId(Kind.SKILL, name), _with_main_file(content)
        found = examine(skill, {f"{skill}/{file}": data for file, data in files.items()})
        warnings = (*content.left_out, *found.warnings)
        if found.faults:
            return _refused(path, found.faults, warnings)
        mine = ObjectPack(self.registry.repository)
        theirs = str(mine.add_folder(files))
        taken = str(self.registry.repository.resolve(ref := folder_prefix(path.parent) + name) or "")
        if taken == theirs:
            return None
        if not taken and self._was_taken(name, theirs):
            with self.registry.repository.lock():
                self._note({ref: theirs})
            return None
        pack.add_all(mine)
        ours = digests.get(skill, "")
        if not taken and ours and ours != theirs:
            self._seen[path].against = ours
            fault = (
                f"the registry has another {skill} already; rename the folder (and 'name' in SKILL.md), "
                f"or replace that one: `agentos registry edit {skill} --file {path}`"
            )
            return _refused(path, [fault], warnings)
        result = theirs
        if ours and ours not in (taken, theirs):
            pack.write()
            merged = merge(self.registry.repository, taken, ours, theirs)
            if merged.conflicts:
                self._seen[path].against = ours
                conflicts = [f"{conflict} (folder and learnt version)" for conflict in merged.conflicts]
                hint = (
                    f"see `agentos registry log {skill}`; revert the learnt version, put it into the folder, or take the "
                    f"folder's for good: `agentos registry edit {skill} --file {path}`"
                )
                return _refused(path, [*conflicts, hint], warnings)
            result = merged.digest
        return self._tried(
            _Arrival(path, skill, self._seen[path], ours, theirs, result, False, warnings, ()), files, pack
        )

    def _was_taken(self, name: str, theirs: str) -> bool:
        """Whether the same folder was taken in at another path: it was moved, as those of a moved or restored home."""
        if self._taken is None:
            refs = self.registry.repository.below(FOLDERS)
            self._taken = {(ref.rpartition("/")[2], tree) for ref, tree in refs.items()}
        return (name, theirs) in self._taken

    def _tried(
        self, arrival: _Arrival, files: Mapping[str, bytes], pack: ObjectPack
    ) -> _Arrival | FolderOutcome:
        """With its lock renewed and its tools loaded. Raises Unavailable."""
        skill, repository = arrival.skill, self.registry.repository
        whole = {f"{skill}/{file}": data for file, data in files.items()}
        if arrival.result != arrival.theirs:
            own = repository.files(arrival.result, "")
            without_lock = {file: data for file, data in own.items() if file != LOCK_FILE}
            arrival.merged = str(ObjectPack(repository).add_folder(without_lock)) != arrival.theirs
            whole = {f"{skill}/{file}": data for file, data in own.items()}
        try:
            locks = self.registry.wheels.renewed(str(skill), whole)
        except Invalid as error:
            return _refused(arrival.path, error.faults)
        if locks:
            whole = {path: data for path, data in {**whole, **locks}.items() if data is not None}
            own = {path.removeprefix(f"{skill}/"): data for path, data in whole.items()}
            arrival.result = str(pack.add_folder(own))
        cards, faults = trial(skill, whole, self.load)
        if faults:
            return _refused(arrival.path, faults)
        arrival.tools = tuple(cards)
        arrival.warnings += tuple(unlocked(whole))
        return arrival

    def _commit(self, arrivals: Sequence[_Arrival], now: float) -> list[FolderOutcome]:
        if not arrivals:
            return []
        try:
            current = self._write(arrivals, now)
        except Invalid as error:
            if len(arrivals) == 1:
                return [_refused(arrivals[0].path, error.faults)]
            return [outcome for arrival in arrivals for outcome in self._commit([arrival], now)]
        return [self._outcome(arrival) for arrival in current if arrival.result != arrival.ours]

    def _write(self, arrivals: Sequence[_Arrival], now: float) -> list[_Arrival]:
        """One commit; those that were written meanwhile by somebody else wait for the next scan."""
        repository = self.registry.repository
        with repository.lock():
            main = self.registry.stable()
            digests = self.registry.digests(main)
            current = []
            for arrival in arrivals:
                if digests.get(arrival.skill, "") == arrival.ours:
                    current.append(arrival)
                else:
                    self._wait(arrival.path, now)
            tree = repository.write_tree(main.tree, {str(it.skill): as_change(it.result) for it in current})
            changed = [it.skill for it in current if it.result != it.ours]
            what = str(changed[0]) if len(changed) == 1 else f"{len(changed)} skills"
            how = "Merge" if changed and all(it.merged for it in current) else "Import"
            about = CommitInfo(f"{how} {what} from the skills folder", "import", self.registry.clock())
            advance(repository, main, tree, changed, about)
            self._note({folder_prefix(it.path.parent) + it.skill.name: it.theirs for it in current})
        return current

    def _note(self, taken: Mapping[str, str]) -> None:
        """What each folder held when it was taken in ("": it is gone). Needs the lock."""
        repository = self.registry.repository
        if len(taken) > _MANY:
            repository.write_refs(
                {ref: pygit2.Oid(hex=theirs) if theirs else None for ref, theirs in taken.items()}
            )
            return
        for ref, theirs in taken.items():
            if theirs:
                repository.move(ref, repository.tree(theirs).id, expected=repository.resolve(ref))
            else:
                repository.drop(ref)

    def _outcome(self, arrival: _Arrival) -> FolderOutcome:
        return FolderOutcome(
            arrival.path,
            arrival.skill.name,
            "merged" if arrival.merged else "imported",
            self._number(arrival.skill),
            warnings=arrival.warnings,
            tools=arrival.tools,
        )

    def _retire_missing(self, place: Path) -> list[FolderOutcome]:
        here = self._named(place)
        if here is None:
            return []  # an unmounted disk is no reason to retire everything
        repository = self.registry.repository
        gone = [name for name in repository.below(folder_prefix(place)) if name not in here]
        if not gone:
            return []
        others = [other for other in self.watched if other != place]
        seen = [path for path in self._seen if path.parent == place and self._name(path) in gone]
        with repository.lock():
            main = self.registry.stable()
            digests = self.registry.digests(main)
            retired = [
                skill
                for name in gone
                if (skill := ResourceId(Kind.SKILL, name)) in digests
                and not any(repository.resolve(folder_prefix(other) + name) for other in others)
            ]
            if retired:
                tree = repository.write_tree(main.tree, {str(skill): None for skill in retired})
                what = str(retired[0]) if len(retired) == 1 else f"{len(retired)} skills"
                folder = "its folder was" if len(retired) == 1 else "their folders were"
                about = CommitInfo(f"Retire {what}: {folder} removed", "retire", self.registry.clock())
                advance(repository, main, tree, retired, about)
            self._note({folder_prefix(place) + name: "" for name in gone})
        for path in seen:
            del self._seen[path]
            self.left_out.pop(path, None)
            self._waiting.discard(path)
        return [FolderOutcome(place / it.name, it.name, "retired", self._number(it)) for it in retired]

    def _number(self, skill: ResourceId) -> str:
        version = self.registry.latest(skill)
        return version.number if version else ""

    def _rival(self, path: Path, name: str) -> str:
        owner = (self._named(path.parent) or {}).get(name, path)
        return (
            ""
            if owner == path
            else f"{owner.name!r} beside it becomes skill/{name} already; rename one of them"
        )

    def _named(self, place: Path) -> Mapping[str, Path] | None:
        """Skill's name -> its folder, of all that lie there; None when that cannot be read."""
        if place not in self._names:
            found = folders.folders_in(place)
            if found is None:
                return None
            self._names[place] = folders.folders_by_skill(self.registry.repository, found)
        return self._names[place]

    def _name(self, path: Path) -> str:
        return name_in(self.registry.repository, path)

    def _ours(self, name: str) -> str:
        return self.registry.digests(self.registry.stable()).get(ResourceId(Kind.SKILL, name), "")


def main_file_of(names: Iterable[str]) -> str:
    """The one that is ``SKILL.md``, however its name is written; "" when none is."""
    main = MAIN_FILE[Kind.SKILL]
    found = [name for name in names if name.lower() == main.lower()]
    return main if main in found else found[0] if len(found) == 1 else ""


def examine_folder(name: str, path: Path) -> Examination:
    """What taking in the folder as the skill ``name`` would say of it, without its tools being loaded."""
    content = folders.read(path)
    files = {f"skill/{name}/{file}": data for file, data in _with_main_file(content).items()}
    found = examine(ResourceId(Kind.SKILL, name), files)
    why = content.left_out if found.faults else ()  # what is missing may be what was too large
    return Examination(found.resource, (*content.faults, *found.faults, *why), found.warnings)


def _with_main_file(content: folders.FolderContent) -> dict[str, bytes]:
    main, found = MAIN_FILE[Kind.SKILL], main_file_of(content.files)
    if found in ("", main):
        return content.files
    content.left_out.append(f"{found} was taken for {main}")
    return {(main if name == found else name): data for name, data in content.files.items()}


def _refused(path: Path, faults: Sequence[str], warnings: Sequence[str] = ()) -> FolderOutcome:
    return FolderOutcome(path, path.name, "refused", faults=tuple(faults), warnings=tuple(warnings))
