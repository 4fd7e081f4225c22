"""The bare git repository: objects, references and the one lock. The only module that writes git.

What it takes care of, so that nobody above has to: every object and reference is fsynced before a
write is reported; references move by compare-and-swap under one ``flock``; no hook, monitor, pager
or filter that a configuration file names is ever run; nothing is read from the user's or the
system's git configuration; inherited ``GIT_*`` variables have no effect.
"""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pygit2
from pygit2.enums import ConfigLevel, FileMode, ObjectType

from agentos.durable import flush_folder
from agentos.errors import Conflict, ErrorKind, NotFound, Unavailable, lacking, to_type
from agentos.records.identity import KINDS, RESOURCE_NAME, ResourceId, Snapshot
from agentos.registry.git import CONFIG, NO_GIT, environment

T = TypeVar("T")
G = TypeVar("G", pygit2.Commit, pygit2.Tree)

MAIN = "refs/heads/main"
EMAIL = "agentos@localhost"  # of what this program itself commits
WRITTEN = "refs/agentos/written"  # what this program wrote last
SHIPPED = "refs/agentos/shipped"  # what the newest release shipped that was taken in
_INIT = to_type("agentos init")
_ROOM = 1 << 20  # bytes that a write of some files may need
EMPTY_TREE = pygit2.Oid(hex="4b825dc642cb6eb9a060e54bf8d69288fbee4904")

# Plain git may push only there; everything else moves through this program alone.
INCOMING = "refs/heads/incoming/"
REFUSED = "refs/heads/refused/"

FILE_MODES = (FileMode.BLOB, FileMode.BLOB_EXECUTABLE)
_HIDDEN = ("refs", f"!{INCOMING.rstrip('/')}", f"!{REFUSED.rstrip('/')}")


def _settle_libgit2() -> None:
    pygit2.settings.enable_fsync_gitdir(True)
    # By default libgit2 keeps no tree above 4 KB: reading one of 10,000 resources took 0.9 ms
    # instead of 0.04, a commit twice as long.
    pygit2.settings.cache_object_limit(ObjectType.TREE, 2 << 20)
    # And no file at all: one that is not packed took 46 us to read, instead of 7, and an evolution reads some 40.
    pygit2.settings.cache_object_limit(ObjectType.BLOB, 64 << 10)
    pygit2.settings.cache_max_size(32 << 20)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.GLOBAL, ConfigLevel.XDG, ConfigLevel.PROGRAMDATA):
        pygit2.settings.search_path[level] = ""


_settle_libgit2()


class Repository:
    """One bare repository on disk. Safe from any thread: each has its own libgit2 handle."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._read: tuple[tuple[int, int, int], Mapping[bytes, bytes]] = ((0, 0, 0), {})

    @property
    def git(self) -> pygit2.Repository:
        """This thread's handle; raises NotFound when there is no repository."""
        handle: pygit2.Repository | None = getattr(self._local, "handle", None)
        if handle is None:
            try:
                handle = pygit2.Repository(str(self.path))
            except pygit2.GitError as error:
                if (self.path / "HEAD").exists():
                    raise Unavailable(f"The registry at {self.path} cannot be opened: {error}") from None
                raise NotFound(f"There is no registry at {self.path}. Try: ", _INIT) from None
            self._local.handle = handle
        return handle

    @classmethod
    def create(cls, path: Path) -> Repository:
        """Make the repository, or finish one whose making was interrupted; idempotent."""
        path.mkdir(parents=True, exist_ok=True)
        repository = cls(path)
        with repository.lock():
            for stale in path.glob("*.lock"):  # of an init that was killed; we hold the one that counts
                if stale.name != "agentos.lock":
                    stale.unlink(missing_ok=True)
            handle = pygit2.init_repository(str(path), bare=True, initial_head="main")
            for key, value in CONFIG.items():
                handle.config[key] = value
            have = [*handle.config.get_multivar("receive.hideRefs")]
            for pattern in _HIDDEN:
                if pattern not in have:
                    handle.config.set_multivar("receive.hideRefs", "^$", pattern)
        return repository

    # --- lock -----------------------------------------------------------------------------

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The writer's lock, between processes and between threads. Not re-entrant."""
        try:
            descriptor = os.open(self.path / "agentos.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            raise Unavailable(self.unwritable() or "The registry could not be locked; try again") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        except (OSError, pygit2.GitError) as error:  # a full disk, mostly
            raise self.unwritten(error) from error
        finally:
            os.close(descriptor)

    def unwritten(self, error: Exception) -> Unavailable:
        """What to say where a write failed: libgit2 tells of a full disk in the words of whatever failed before."""
        said = lacking(error)
        try:
            with tempfile.TemporaryFile(dir=self.path) as probe:
                os.posix_fallocate(probe.fileno(), 0, _ROOM)
        except OSError as found:
            error, said = found, lacking(found) or said
        is_full = bool(said) and getattr(error, "errno", None) not in (errno.EROFS, errno.EIO)
        kind = ErrorKind.FULL if is_full else ErrorKind.NOT_WRITTEN
        return Unavailable(f"The registry cannot be written: {said or error}", kind=kind)

    def unwritable(self) -> str:
        """Why nothing can be written here, "" where it can."""
        try:
            os.close(os.open(self.path / "agentos.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            return f"Nothing can be written in {self.path} ({error.strerror})"
        return ""

    # --- references -----------------------------------------------------------------------

    def resolve(self, ref: str, hops: int = 5) -> pygit2.Oid | None:
        """What a reference points at, None when it does not exist. Raises Unavailable, also after ``hops`` symbolic ones."""
        try:
            found = self.git.references.get(ref)
            target = found.target if found is not None else None
        except pygit2.GitError as error:
            raise _corrupt(ref, error) from None
        if target is None:
            return None
        if isinstance(target, pygit2.Oid):
            return target
        if not hops:
            raise _corrupt(ref, "it leads to itself")
        return self.resolve(target, hops - 1)

    def move(self, ref: str, to: pygit2.Oid, *, expected: pygit2.Oid | None) -> None:
        """Compare-and-swap; ``expected`` None means: it does not exist yet. Needs the lock.

        Raises Conflict when the reference is elsewhere.
        """
        try:
            self._freeing(ref, lambda: self._move(ref, to, expected))
        except pygit2.GitError as error:
            if self.resolve(ref) == expected:  # a full disk, not another writer
                raise self.unwritten(error) from None
            raise Conflict(f"{ref} moved while it was being written: {error}") from None

    def _freeing(self, ref: str, write: Callable[[], T]) -> T:
        """Do it; if a lock file is in the way, remove that and do it again.

        A writer that was killed leaves its lock file; we hold the lock, so it is nobody's.
        """
        try:
            return write()
        except OSError:
            (self.path / f"{ref}.lock").unlink(missing_ok=True)
            (self.path / "packed-refs.lock").unlink(missing_ok=True)
            return write()

    def _move(self, ref: str, to: pygit2.Oid, expected: pygit2.Oid | None) -> None:
        if expected is None:
            try:
                self.git.references.create(ref, to)
            except pygit2.AlreadyExistsError:
                raise Conflict(f"{ref} exists already") from None
            return
        found = self.git.references.get(ref)
        if found is None or found.target != expected:
            raise Conflict(f"{ref} is no longer at {expected}")
        if to != expected:
            found.set_target(to)

    def drop(self, ref: str) -> None:
        """Delete a reference; nothing when it does not exist. Needs the lock."""
        if self.git.references.get(ref) is not None:
            self._freeing(ref, lambda: self.git.references.delete(ref))

    def tag(self, name: str, commit: pygit2.Oid, when: datetime, message: str) -> pygit2.Oid:
        """Make an annotated tag that does not exist yet. Needs the lock."""
        return self._freeing(
            f"refs/tags/{name}",
            lambda: self.git.create_tag(name, commit, ObjectType.COMMIT, stamp(when), message),
        )

    def below(self, prefix: str) -> dict[str, str]:
        """Rest of the name -> target of the references below a prefix that ends in ``/``, sorted.

        Read off the files themselves, so that thousands of others need not be looked at one by one. Raises Unavailable.
        """
        found = self._packed_below(prefix)
        for name in self._loose_below(prefix):
            if target := self.resolve(prefix + name):
                found[name] = str(target)
        return dict(sorted(found.items()))

    def names_below(self, prefix: str) -> list[str]:
        """As ``below`` the names alone, also of references that cannot be read."""
        return sorted({*self._packed_below(prefix), *self._loose_below(prefix)})

    def _packed_below(self, prefix: str) -> dict[str, str]:
        start, cut = prefix.encode(), len(prefix.encode())
        return {
            os.fsdecode(ref[cut:]): value[:40].decode()  # a name is bytes to git, as a file's is
            for ref, value in self._packed().items()
            if ref.startswith(start)
        }

    def _loose_below(self, prefix: str) -> Iterator[str]:
        folder = self.path / prefix
        for path in folder.rglob("*"):
            if not path.name.endswith(".lock") and path.is_file():
                yield path.relative_to(folder).as_posix()

    def write_refs(self, refs: Mapping[str, pygit2.Oid | None]) -> None:
        """Set many references, or drop them (None), with one write. Needs the lock; no compare-and-swap.

        They go to ``packed-refs``, which is replaced whole; then what hides them there goes.
        """
        packed = dict(self._packed())
        for ref, target in refs.items():
            if target is None:
                packed.pop(ref.encode(), None)
                continue
            found = self.git[target]
            peeled = f"\n^{found.target}" if isinstance(found, pygit2.Tag) else ""
            packed[ref.encode()] = f"{target}{peeled}".encode()
        lines = [b"# pack-refs with: peeled fully-peeled sorted "]
        for name, value in sorted(packed.items()):
            first, _, peeled_line = value.partition(b"\n")
            lines += [first + b" " + name, *([peeled_line] if peeled_line else [])]
        replace_file(self.path / "packed-refs", b"\n".join(lines) + b"\n")
        for ref in refs:
            (self.path / ref).unlink(missing_ok=True)

    def _packed(self) -> Mapping[bytes, bytes]:
        """Name -> id, and on a second line what a tag stands for, of each reference in ``packed-refs``."""
        try:
            info = (self.path / "packed-refs").stat()
            key = (info.st_mtime_ns, info.st_size, info.st_ino)
            if self._read[0] != key:
                self._read = key, _parse_refs((self.path / "packed-refs").read_bytes())
        except FileNotFoundError:
            return {}
        return self._read[1]

    # --- git programs ---------------------------------------------------------------------

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a git program on this repository, with nothing inherited; never raises for its status.

        Raises Unavailable where there is no git.
        """
        try:
            return subprocess.run(
                ["git", f"--git-dir={self.path}", *arguments],
                env=environment(),
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except FileNotFoundError as error:
            if error.filename != "git":
                raise
            raise Unavailable(NO_GIT) from None

    # --- objects --------------------------------------------------------------------------

    def commit(self, id: str | pygit2.Oid) -> pygit2.Commit:
        """The commit; raises Unavailable when it is missing or corrupt."""
        return self._object(id, pygit2.Commit)

    def _object(self, id: str | pygit2.Oid, kind: type[G]) -> G:
        name = kind.__name__.lower()
        try:
            found = self.git[id]
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise Unavailable(f"The registry lacks or cannot read {name} {id}: {error}") from None
        if not isinstance(found, kind):
            raise Unavailable(f"{id} in the registry is no {name}")
        return found

    def snapshot(self, commit: pygit2.Oid | str) -> Snapshot:
        """The commit as a snapshot."""
        found = self.commit(commit)
        return Snapshot(str(found.id), str(found.tree_id))

    def tree(self, id: str | pygit2.Oid) -> pygit2.Tree:
        """The tree; raises Unavailable when it is missing or corrupt."""
        if id == EMPTY_TREE or id == str(EMPTY_TREE):
            self.git.TreeBuilder().write()
        return self._object(id, pygit2.Tree)

    def entry(self, root: str | pygit2.Oid, path: str) -> pygit2.Object | None:
        """What stands at ``path`` below the tree ``root``, None when nothing does."""
        tree, (*above, name) = self.tree(root), path.split("/")
        try:
            for part in above:
                found = tree[part]
                if found.type != ObjectType.TREE:
                    return None
                tree = self.tree(found.id)
            return tree[name]
        except KeyError:
            return None

    def blob(self, id: pygit2.Oid, path: str) -> bytes:
        """A file's content; raises Unavailable (naming path and object) when missing or corrupt."""
        try:
            kind, data = self.git.read(id)
        except (KeyError, pygit2.GitError) as error:
            raise _unreadable(id, path, error) from None
        if kind != ObjectType.BLOB:
            raise Unavailable(f"The registry's object {id} ({path}) is no file")
        return data

    def size(self, id: pygit2.Oid, path: str) -> int:
        """Bytes of a file, which is not read for it. Raises as ``blob``."""
        try:
            return int(self.git.odb.read_header(id)[1])
        except (KeyError, pygit2.GitError) as error:
            raise _unreadable(id, path, error) from None

    def walk(
        self, root: str | pygit2.Oid, prefix: str = "", levels: int = 64
    ) -> Iterator[tuple[str, pygit2.Object]]:
        """(path, entry) of everything below a tree that is not itself a tree, or is one that lies ``levels`` deep."""
        for entry in self.tree(root):
            path = prefix + (entry.name or "")
            if entry.filemode == FileMode.TREE and levels:
                yield from self.walk(entry.id, path + "/", levels - 1)
            else:
                yield path, entry

    # --- states: lookups in tree objects, never a checkout ---------------------------------

    def tip(self) -> Snapshot:
        """Where ``main`` stands."""
        found = self.resolve(MAIN)
        if found is None and self.lost():
            told = f"The registry at {self.path} has lost its branch main. "
            raise NotFound(told, _INIT, " brings it back", kind=ErrorKind.DAMAGED)
        if found is None:
            raise NotFound(f"The registry at {self.path} is empty. Try: ", _INIT)
        return self.snapshot(found)

    def lost(self) -> pygit2.Oid | None:
        """Where ``main`` belongs when it is missing, None in a registry that never had one."""
        return self.resolve(WRITTEN) if self.resolve(MAIN) is None else None

    def files(self, root: str | pygit2.Oid, prefix: str) -> dict[str, bytes]:
        """Path -> content of every regular file at or below ``prefix``; Unavailable when unreadable."""
        prefix = prefix.strip("/")
        found: pygit2.Object | None = self.entry(root, prefix) if prefix else self.tree(root)
        if found is None:
            return {}
        if not isinstance(found, pygit2.Tree):
            return {prefix: self.blob(found.id, prefix)} if found.filemode in FILE_MODES else {}
        start = prefix + "/" if prefix else ""
        return {
            path: self.blob(entry.id, path)
            for path, entry in self.walk(found.id, start)
            if entry.filemode in FILE_MODES
        }

    def resources(self, root: str | pygit2.Oid) -> Iterator[tuple[ResourceId, pygit2.Oid]]:
        """Every resource with its tree id, sorted by kind and name."""
        for kind in KINDS:
            folder = self.entry(root, kind)
            if isinstance(folder, pygit2.Tree):
                for entry in folder:
                    if entry.filemode == FileMode.TREE and RESOURCE_NAME.fullmatch(entry.name or ""):
                        yield ResourceId(kind, entry.name or ""), entry.id

    # --- writing -------------------------------------------------------------------------

    def write_tree(
        self, root: str | pygit2.Oid, changes: Mapping[str, pygit2.Oid | bytes | None]
    ) -> pygit2.Oid:
        """``root`` with the changes: path -> content, tree id, or None to remove.

        An emptied directory disappears. Costs one tree object for each directory on the way.
        """
        builder = self.git.TreeBuilder(self.tree(root))
        below: dict[str, dict[str, pygit2.Oid | bytes | None]] = {}
        for path, value in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = value
            elif value is None:
                if builder.get(name) is not None:
                    builder.remove(name)
            elif isinstance(value, bytes):
                builder.insert(name, self.git.create_blob(value), FileMode.BLOB)
            else:
                builder.insert(name, value, FileMode.TREE)
        for name, inner in below.items():
            old = builder.get(name)
            start = old.id if old is not None and old.filemode == FileMode.TREE else EMPTY_TREE
            new = self.write_tree(start, inner)
            if new != EMPTY_TREE:
                builder.insert(name, new, FileMode.TREE)
            elif old is not None:
                builder.remove(name)
        return builder.write()

    def write_commit(
        self, tree: pygit2.Oid, parents: list[pygit2.Oid], message: str, when: datetime, *, author: str = ""
    ) -> pygit2.Oid:
        """A commit object that no reference points at yet."""
        signature = stamp(when)
        by = stamp(when, author) if author else signature
        return self.git.create_commit(None, by, signature, message, tree, parents)


def _unreadable(id: pygit2.Oid, path: str, error: Exception) -> Unavailable:
    told = f"The registry's object {id} ({path}) is missing or corrupt: {error}. Try: "
    return Unavailable(told, to_type("agentos registry check"), kind=ErrorKind.DAMAGED)


def _corrupt(ref: str, why: object) -> Unavailable:
    return Unavailable(f"The registry's reference {ref} is corrupt: {why}", kind=ErrorKind.DAMAGED)


def _parse_refs(content: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    name = b""
    for line in content.splitlines():
        if line.startswith(b"^"):
            found[name] += b"\n" + line
        elif line[:1] not in (b"#", b""):
            target, _, name = line.partition(b" ")
            found[name] = target
    return found


def replace_file(path: Path, content: bytes) -> None:
    """Durable when it returns; a reader sees the old or the new."""
    aside = path.with_name(path.name + ".lock")  # as git itself does it: it waits, or gives up
    aside.unlink(missing_ok=True)
    with aside.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
    flush_folder(path.parent)


def stamp(when: datetime, name: str = "agentos") -> pygit2.Signature:
    """Who and when, for commits and tags; always UTC."""
    clean = "".join(c for c in name if c.isprintable() and c not in "<>") or "agentos"
    return pygit2.Signature(clean, EMAIL, int(when.timestamp()), 0)
