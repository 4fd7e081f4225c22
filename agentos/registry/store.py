"""The registry as the rest of the program sees it: one class over one bare git repository."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import FileMode

from agentos.domain import Kind, Refusal, ResourceId, Snapshot, Version
from agentos.errors import Conflict, ErrorKind, Invalid, Unavailable
from agentos.programs import LOCK_FILE, MANIFEST, is_script
from agentos.registry.git import reading, versions
from agentos.registry.git.repository import EMPTY_TREE, MAIN, SHIPPED, Repository
from agentos.registry.writing import CommitInfo, advance
from agentos.resources import is_tool_file, path_fault, resource_of, tool_path, unknown
from agentos.resources.documents import MAIN_FILE, PINS_FILE

if TYPE_CHECKING:  # `registry list` needs none of these; each is imported by the method that does
    from agentos.registry.check import Report
    from agentos.registry.promotion import Promotion, RevertPlan
    from agentos.registry.push_inbox import Push
    from agentos.registry.upgrade import Upgrade, UpgradeChoice
    from agentos.registry.wheels import Wheels
    from agentos.registry.writing import Load

LOCKS_KEPT = 5  # of each resource: a repair may put an earlier one back
LAST_GOOD = "refs/heads/last-good"
_READ_AGAIN = 32  # places of snapshots: an evolution reads each of a few some dozen times

_PINS_TEXT = b"""# Resources that no evolution may touch: "kind/name" = "reason".
# Written by: agentos registry pin, agentos registry unpin
[pinned]
"""


def utc_now() -> datetime:
    """The clock that a registry uses unless it is given another."""
    return datetime.now(UTC)


class Registry:
    """Implements the ports Snapshots, CandidateStore and Evolvable; safe from any thread."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = utc_now) -> None:
        self.repository = Repository(path)
        self.clock = clock
        self._tools: tuple[str, list[str], dict[str, str]] = ("", [], {})  # tree, paths, what names which
        self._tools_lock = Lock()
        self._read = lru_cache(maxsize=_READ_AGAIN)(self.repository.files)
        self._digests = lru_cache(maxsize=2)(self._digests_of)
        self._fixed = lru_cache(maxsize=_READ_AGAIN)(self._why_fixed)  # each stage of an evolution asks again

    @cached_property
    def wheels(self) -> Wheels:
        """The distributions that tools depend on, as they were locked."""
        from agentos.registry.wheels import Wheels, place

        return Wheels(place(self.repository.path))

    @classmethod
    def init(
        cls, path: Path, files: Mapping[str, bytes], *, clock: Callable[[], datetime] = utc_now
    ) -> Registry:
        """Make the repository and its seed commit; idempotent, finishes an interrupted one.

        A ``main`` that got lost is brought back to where it was.

        ``files`` is registry path -> content (``shipped.seed_files()``). Raises Invalid.
        """
        registry = cls(path, clock=clock)
        repository = Repository.create(path)
        if repository.resolve(MAIN) is not None:
            return registry
        faults = [fault for name in files if (fault := path_fault(name))]
        if faults:
            raise Invalid("The shipped content", faults)
        with repository.lock():
            if repository.resolve(MAIN) is not None:
                return registry
            if (lost := repository.lost()) is not None:
                repository.move(MAIN, lost, expected=None)
                return registry
            now = clock()
            content = repository.write_tree(EMPTY_TREE, dict(files))
            shipped = repository.write_commit(content, [], "Shipped content\n", now)
            repository.move(SHIPPED, shipped, expected=repository.resolve(SHIPPED))
            tree = repository.write_tree(content, {PINS_FILE: _PINS_TEXT})
            changed = [resource for resource, _ in repository.resources(tree)]
            advance(repository, None, tree, changed, CommitInfo("Seed the registry", "seed", now))
        return registry

    # --- ports.Snapshots ------------------------------------------------------------------

    def stable(self) -> Snapshot:
        """The snapshot that new runs get: the tip of ``main``."""
        return self.repository.tip()

    def files(self, snapshot: Snapshot, prefix: str) -> Mapping[str, bytes]:
        """Path -> content of every file at or below ``prefix``; raises Unavailable."""
        read = self._read if "/" in prefix else self._read.__wrapped__  # all of a kind may be large
        return dict(read(snapshot.tree, prefix))

    def names(self, snapshot: Snapshot) -> Sequence[ResourceId]:
        """Every resource in the snapshot, sorted."""
        return [*self._digests(snapshot.tree)]

    def digests(self, snapshot: Snapshot) -> Mapping[ResourceId, str]:
        """Every resource with its digest, sorted: three tree objects are read, no file."""
        return MappingProxyType(self._digests(snapshot.tree))

    def _digests_of(self, tree: str) -> dict[ResourceId, str]:
        return {found: str(own) for found, own in self.repository.resources(tree)}

    def tool_paths(self, snapshot: Snapshot) -> list[str]:
        """The registry paths of all tool files, by name alone (helpers that look like tools included)."""
        found = []
        for resource, tree in self.repository.resources(snapshot.tree):
            if resource.kind is Kind.TOOL:
                manifest = self.repository.entry(tree, MANIFEST) is not None
                found.append(f"{resource}/{MANIFEST if manifest else MAIN_FILE[Kind.TOOL]}")
            elif resource.kind is Kind.SKILL:
                folder = self.repository.entry(tree, "tools")
                for entry in folder if isinstance(folder, pygit2.Tree) else ():
                    path = f"{resource}/tools/{entry.name}"
                    found += [path, *([f"{path}/{MANIFEST}"] if _has_manifest(entry) else [])]
        return [path for path in found if is_tool_file(path)]

    def find_tool(self, snapshot: Snapshot, reference: str) -> str:
        """The registry path of the tool that a task calls ``reference``; see resources.tool_path."""
        if is_script(path := f"skill/{reference}") and self.repository.entry(snapshot.tree, path):
            return path
        with self._tools_lock:
            if self._tools[0] != snapshot.tree:
                self._tools = (snapshot.tree, self.tool_paths(snapshot), {})
            _, paths, known = self._tools
            if reference not in known:
                known[reference] = tool_path(reference, paths)
            return known[reference]

    # --- ports.CandidateStore -------------------------------------------------------------

    def add_candidate(self, candidate_id: str, base: Snapshot, files: Mapping[str, str]) -> Snapshot:
        """See ports.CandidateStore."""
        from agentos.registry import promotion

        return promotion.add_candidate(self.repository, candidate_id, base, files)

    def promote(
        self, base: Snapshot, candidate: Snapshot, trailers: Mapping[str, str], message: str
    ) -> Snapshot:
        """See ports.CandidateStore."""
        from agentos.registry import promotion

        about = CommitInfo(message, "evolution", self.clock(), trailers)
        return promotion.promote(self.repository, base, candidate, about)

    def revert_evolution(self, evolution_id: str, reason: str, origin: str) -> Snapshot:
        """See ports.CandidateStore; doing it again changes nothing."""
        from agentos.registry import promotion

        with self.repository.lock():
            plan = promotion.undo_evolution(self.repository, evolution_id)
            return promotion.carry_out(self.repository, plan, CommitInfo(reason, origin, self.clock()))

    # --- ports.Evolvable ------------------------------------------------------------------

    def why_fixed(self, resource: ResourceId) -> Refusal | None:
        """See ports.Evolvable."""
        return self._fixed(self.stable(), resource)

    def _why_fixed(self, main: Snapshot, resource: ResourceId) -> Refusal | None:
        from agentos.registry import promotion

        return promotion.why_fixed(self.repository, main, resource)

    def versions(self, resource: ResourceId) -> Sequence[Version]:
        """Newest first; empty when there never was such a resource."""
        return versions.lineage(self.repository, resource)

    def contents(self, resource: ResourceId) -> Iterator[tuple[Version, Mapping[str, bytes]]]:
        """Each version of the resource with its files, newest first; without those that retire it."""
        from agentos.registry import promotion

        return promotion.contents(self.repository, resource)

    def latest(self, resource: ResourceId) -> Version | None:
        """The newest version (a retired one has digest "")."""
        return versions.latest(self.repository, resource)

    def version(self, resource: ResourceId, number: str) -> Version | None:
        """The version of this number, None when there is none."""
        return versions.get(self.repository, resource, number)

    # --- what people do -------------------------------------------------------------------

    def commit(
        self,
        changes: Mapping[str, bytes | None],
        message: str,
        origin: str,
        *,
        base: Snapshot | None = None,
        author: str = "",
    ) -> Snapshot:
        """Write files (None deletes one) as new versions of the resources that they belong to.

        Raises Invalid when the result breaks a rule, and Conflict when ``base`` is given and a
        resource concerned has changed since. What tools depend on is resolved first (``wheels``),
        which may take pip a while. Durable when it returns.
        """
        faults = [fault for path in changes if (fault := path_fault(path))]
        if faults:
            raise Invalid("The change was refused", faults)
        concerned = sorted({found for path in changes if (found := resource_of(path))})
        changes = {**changes, **self._locks(concerned, changes)}
        with self.repository.lock():
            main = self.stable()
            if base is not None:
                self._unmoved(base, main, concerned)
            tree = self.repository.write_tree(main.tree, dict(changes))
            after = Snapshot(main.commit, str(tree))
            changed = [
                found for found in concerned if self._digest(after, found) != self._digest(main, found)
            ]
            about = CommitInfo(message, origin, self.clock(), author=author)
            return advance(self.repository, main, tree, changed, about)

    def retire(self, resource: ResourceId, reason: str) -> Snapshot:
        """Remove the resource from ``main``; its history stays. Raises NotFound."""
        with self.repository.lock():
            main = self.stable()
            if not self._digest(main, resource):
                raise unknown(resource, self.names(main))
            tree = self.repository.write_tree(main.tree, {str(resource): None})
            about = CommitInfo(f"Retire {resource}: {reason}", "retire", self.clock())
            return advance(self.repository, main, tree, [resource], about)

    def plan_undo(self, resource: ResourceId, number: str) -> RevertPlan:
        """What undoing one version would change; see promotion.undo_version."""
        from agentos.registry import promotion

        return promotion.undo_version(self.repository, resource, number)

    def plan_restore(self, resource: ResourceId, number: str) -> RevertPlan:
        """What going back to a version's content would change; see promotion.restore_version."""
        from agentos.registry import promotion

        return promotion.restore_version(self.repository, resource, number)

    def plan_undo_evolution(self, evolution_id: str) -> RevertPlan:
        """What undoing an evolution would change; see promotion.undo_evolution."""
        from agentos.registry import promotion

        return promotion.undo_evolution(self.repository, evolution_id)

    def revert(self, plan: RevertPlan, reason: str, *, author: str = "") -> Snapshot:
        """Carry out a plan; raises Conflict when the registry moved since it was made."""
        from agentos.registry import promotion

        with self.repository.lock():
            about = CommitInfo(reason, "revert", self.clock(), author=author)
            return promotion.carry_out(self.repository, plan, about)

    def pinned(self) -> Mapping[str, str]:
        """``kind/name`` -> reason."""
        return reading.pins(self.repository, self.stable())

    def pin(self, resource: ResourceId, reason: str) -> Snapshot:
        """No evolution touches the resource from now on. Raises NotFound."""
        if not self._digest(self.stable(), resource):
            raise unknown(resource, self.names(self.stable()))
        return self._set_pin(resource, reason)

    def unpin(self, resource: ResourceId) -> Snapshot:
        """Evolutions may touch it again; nothing happens when it was not pinned. Raises NotFound."""
        if str(resource) not in self.pinned() and not self.latest(resource):
            raise unknown(resource, self.names(self.stable()))
        return self._set_pin(resource, None)

    def _set_pin(self, resource: ResourceId, reason: str | None) -> Snapshot:
        with self.repository.lock():
            main = self.stable()
            text = self.repository.files(main.tree, PINS_FILE).get(PINS_FILE, _PINS_TEXT)
            tree = self.repository.write_tree(main.tree, {PINS_FILE: with_pin(text, resource, reason)})
            verb = "Unpin" if reason is None else "Pin"
            about = CommitInfo(f"{verb} {resource}" + (f": {reason}" if reason else ""), "pin", self.clock())
            return advance(self.repository, main, tree, [], about)

    # --- what comes from outside ----------------------------------------------------------

    def upgrade(
        self, files: Mapping[str, bytes], release: str, choice: UpgradeChoice | None = None
    ) -> Upgrade:
        """Merge what a release ships (``shipped.seed_files()``) with what was learnt here."""
        from agentos.registry.upgrade import UpgradeChoice, upgrade

        about = CommitInfo(f"Upgrade to what agentos {release} ships", "upgrade", self.clock())
        return upgrade(self.repository, files, choice or UpgradeChoice(), about)

    def take_in_pushes(self, load: Load | None) -> Sequence[Push]:
        """Merge or refuse what was pushed to ``incoming/``; costs one directory listing when nothing was."""
        from agentos.registry import push_inbox

        return push_inbox.take_in(
            self.repository, load, self.wheels, CommitInfo("Push", "edit", self.clock())
        )

    # --- pointers -------------------------------------------------------------------------

    def line(self) -> Iterator[Snapshot]:
        """What ``main`` was, newest first. Raises Unavailable."""
        for commit in versions.line(self.repository):
            yield Snapshot(str(commit.id), str(commit.tree_id))

    def promotions(self, since: str = "") -> Sequence[Promotion]:
        """What commits on ``main`` say of the evolutions that they promoted, newest first; none up to ``since``."""
        from agentos.registry import promotion

        return promotion.promotions(self.repository, since)

    def last_good(self) -> Snapshot | None:
        """The newest snapshot that is known to drive runs well; see daemon/evolve/serving_pointer.py, which moves it."""
        found = self.repository.resolve(LAST_GOOD)
        return self.repository.snapshot(found) if found else None

    def mark_good(self, snapshot: Snapshot) -> None:
        """Move ``last-good`` on, never back."""
        with self.repository.lock():
            commit = self.repository.commit(snapshot.commit).id
            present = self.repository.resolve(LAST_GOOD)
            if present is None or not self.repository.git.descendant_of(present, commit):
                self.repository.move(LAST_GOOD, commit, expected=present)

    def maintain(self, *, loose: int = 4_000) -> bool:
        """Pack objects and tags once there are about ``loose`` unpacked ones; whether it did.

        Looking costs one directory listing. Packing takes seconds in a large registry; readers go
        on meanwhile, writers wait. Raises Unavailable.
        """
        # names are hashes, so one directory of 256 is a fair sample; git estimates the same way
        sample = self.repository.path / "objects" / "17"
        if (len(os.listdir(sample)) if sample.is_dir() else 0) * 256 < loose:
            return False
        # What nothing names any more goes into a pack too, or it would be counted again each time.
        gc = ["-c", "gc.cruftPacks=true", "gc", "--quiet", "--prune=2.weeks.ago"]
        with self.repository.lock():
            for arguments in (["pack-refs"], gc):
                done = self.repository.run(*arguments)
                if done.returncode:
                    raise Unavailable(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
        return True

    def check(self) -> Report:
        """Look at every object, resource and version; see check.check."""
        from agentos.registry.check import check

        return check(self.repository)

    def tampered(self) -> list[str]:
        """What no program of ours makes; see check.tampered."""
        from agentos.registry.check import tampered

        return list(tampered(self.repository))

    def check_newest(self) -> Report:
        """Look at what is served and the newest commits alone; see check.check_newest."""
        from agentos.registry.check import check_newest

        return check_newest(self.repository)

    def repair(self) -> int:
        """Write version tags that a killed writer left out; how many were missing."""
        with self.repository.lock():
            return versions.record(self.repository, self.repository.commit(self.stable().commit))

    def wheels_of(self, files: Mapping[str, bytes]) -> Mapping[str, Mapping[str, bytes]]:
        """``kind/name`` -> the modules that the lock of each resource among ``files`` stands for.

        Raises Unavailable when a wheel is missing or altered.
        """
        # most runs have none, and what reads wheels is much to import
        return self.wheels.of(files) if any(path.endswith(f"/{LOCK_FILE}") for path in files) else {}

    def newest_locks(self, undecided: Sequence[Snapshot] = ()) -> set[bytes]:
        """The newest few locks of each resource that ``main`` has or had, and those that serve runs; of pushes none.

        And those of edits that are ``undecided``, of which some may be gone. Raises NotFound where ``main`` is lost.
        """
        found: dict[tuple[str, str], dict[str, bytes]] = {}
        seen: set[str] = set()
        serving = [snapshot for snapshot in (self.stable(), self.last_good()) if snapshot is not None]
        there = [snapshot for snapshot in undecided if snapshot.tree in self.repository.git]
        trees = [snapshot.tree for snapshot in (*serving, *there)]
        for tree in [*trees, *(snapshot.tree for snapshot in self.line())]:
            for kind, folder in _folders(self.repository, tree, seen):
                for resource, own in _folders(self.repository, folder, seen):
                    lock = self.repository.entry(own, LOCK_FILE)
                    if isinstance(lock, pygit2.Blob):
                        mine = found.setdefault((kind, resource), {})
                        if len(mine) < LOCKS_KEPT or tree in trees:
                            mine[str(lock.id)] = self.repository.blob(lock.id, LOCK_FILE)
        return {content for mine in found.values() for content in mine.values()}

    def _locks(
        self, concerned: Sequence[ResourceId], changes: Mapping[str, bytes | None]
    ) -> dict[str, bytes | None]:
        """What has to change beside these changes, so that each lock is that of its tools."""
        main = self.stable()
        found: dict[str, bytes | None] = {}
        for resource in concerned:
            after = {**reading.readable(self.repository, main.tree, str(resource)), **changes}
            mine = {path: data for path, data in after.items() if data is not None}
            own = {path: data for path, data in mine.items() if path.startswith(f"{resource}/")}
            found |= self.wheels.renewed(str(resource), own)
        return found

    def _unmoved(self, base: Snapshot, main: Snapshot, concerned: Sequence[ResourceId]) -> None:
        for resource in concerned:
            if self._digest(base, resource) != self._digest(main, resource):
                raise Conflict(
                    f"{resource} changed in the meantime; start again from its present content",
                    kind=ErrorKind.STALE,
                )

    def _digest(self, snapshot: Snapshot, resource: ResourceId) -> str:
        return reading.digest(self.repository, snapshot.tree, resource)


def _folders(repository: Repository, tree: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Name and tree of each folder in it that was not seen before."""
    for entry in repository.tree(tree):
        if entry.filemode == FileMode.TREE and str(entry.id) not in seen:
            seen.add(str(entry.id))
            yield entry.name or "", str(entry.id)


def with_pin(text: bytes, resource: ResourceId, reason: str | None) -> bytes:
    """registry.toml with the resource pinned (None: not pinned), everything else left as it was."""
    import tomlkit

    document = tomlkit.parse(text.decode())
    table = document.setdefault("pinned", tomlkit.table())
    if reason is None:
        table.pop(str(resource), None)
    else:
        table[str(resource)] = reason
    return tomlkit.dumps(document).encode()


def _has_manifest(folder: pygit2.Object) -> bool:
    return isinstance(folder, pygit2.Tree) and MANIFEST in folder
