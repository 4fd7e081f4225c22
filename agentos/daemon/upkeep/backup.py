"""One file that holds a home as it stood at one moment, made while the daemon works; and a home made from it.

The file is a tar (compressed when its name ends in ``.gz`` or ``.tgz``). Order makes it consistent without stopping
anybody: databases are copied by SQLite, the engine's first, then the ledger (out of PostgreSQL, row by row), then the registry, then blobs. So the ledger
may be ahead of the engine, and the registry ahead of the ledger, as after a crash, which the daemon's start settles; a
blob is written before the row that names it. ``manifest.json``, last, has the size and SHA-256 of each member.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from agentos import __version__
from agentos.daemon.control.daemon_lock import DaemonLock
from agentos.daemon.upkeep.auditing import AuditReport, verify_home
from agentos.daemon.upkeep.moving import refuse_variables, stand_alone
from agentos.domain import dataclass
from agentos.durable import flush_folder
from agentos.errors import Invalid, NotFound, Unavailable, UserError
from agentos.home import Home, made_folder
from agentos.ledger.audit import AuditHead, HeadFile, contains, newest, text_of
from agentos.ledger.blobs import BlobStore
from agentos.ledger.connect import open_ledger
from agentos.ledger.moving import copy_database, copy_to_file, is_database
from agentos.ledger.postgres.address import address_of
from agentos.registry.check import broken_references, references
from agentos.registry.git import environment
from agentos.registry.git.repository import MAIN, Repository
from agentos.sandboxes.owner import Owner

FORMAT = 1
MANIFEST = "manifest.json"
_BUNDLE = "registry.bundle"
# made anew, or stored otherwise
_LEFT_OUT = {"run", "logs", "registry.git", "blobs", "index.db", "audit.head"}
_LEAVINGS = re.compile(r"-(wal|shm|journal)$|\.(lock|new)$|\.before-")
_CHUNK = 1 << 20
_SPOOLED = 8 << 20  # bytes of a file that somebody may write to, held in memory
_READINGS = 5  # of such a file, until it is given up
_AGAIN = ("", *(f"-{number}" for number in range(2, 1_000)))  # for what happens again within a second
_SAID = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """What a backup holds: ``files`` maps a member's name to its size in bytes and SHA-256."""

    made_at: str
    version: str
    head: str
    files: dict[str, tuple[int, str]]
    left_out: tuple[str, ...] = ()  # references of the registry that lead to nothing; said where it is made


def back_up(
    home: Home, target: Path, *, replace: bool = False, say: _SAID = lambda _: None
) -> BackupManifest:
    """Write the backup and read it again to the end; the daemon may go on meanwhile.

    Raises UserError for a target that is there or lies in the home, Unavailable when the disk is full or a part of the
    home cannot be read. A backup is whole under its name or is not there.
    """
    target = target.absolute()
    if not home.is_there:
        raise NotFound(f"there is no home at {home.root}; name it by --home")
    if target.exists() and not replace:
        raise UserError(f"{target} is there already; give another name, or --force to replace it")
    if target.parent.resolve().is_relative_to(home.root.resolve()):
        raise UserError(f"{target} lies in the home itself; a backup belongs on another disk")
    if not target.parent.is_dir():
        raise NotFound(f"there is no folder {target.parent}")
    try:
        with _aside(target.parent, ".agentos-backup-", home.root) as aside:
            part = aside / "backup.part"
            with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
                made = _write(home, file, target.name, aside, say)
                file.flush()
                os.fsync(file.fileno())
            say("reading it again")
            verify_backup(part)
            part.rename(target)
            flush_folder(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(f"the backup could not be made: {error}") from error
    return made


@contextmanager
def _aside(place: Path, prefix: str, root: Path) -> Iterator[Path]:
    """A folder that is gone at the end; what processes that were killed left there for the home goes before.

    Its name has the process in it, so that a folder of one that still works is never taken for a leaving.
    """
    here = Owner.here(root)
    for left in place.iterdir():
        owner = Owner.parse(left.name.removeprefix(prefix).partition(".")[0])
        if (
            left.name.startswith(prefix)
            and owner is not None
            and owner.home == here.home
            and not owner.alive()
        ):
            shutil.rmtree(left, ignore_errors=True)
    folder = place / f"{prefix}{here}.{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(home: Home, file: IO[bytes], name: str, aside: Path, say: _SAID) -> BackupManifest:
    is_packed = name.endswith((".gz", ".tgz"))
    packed: dict[str, Any] = {"mode": "w:gz", "compresslevel": 1} if is_packed else {"mode": "w"}
    with tarfile.open(fileobj=file, **packed) as tar:
        archive = _Archive(tar, aside)
        there = sorted(path for path in home.root.iterdir() if path.name not in _LEFT_OUT)
        own = [path for path in there if not _LEAVINGS.search(path.name)]
        address = address_of(home.ledger)
        elsewhere = (home.ledger, home.engine) if address else ()
        databases = [
            path for path in own if is_database(path, home.ledger, home.engine) and path not in elsewhere
        ]
        kept = HeadFile(home.root / "audit.head").read()
        for path in sorted(databases, key=home.ledger.__eq__):  # the ledger last
            say(f"copying {path.name} ({path.stat().st_size >> 20} MB)")
            archive.file(path.name, copy_database(path, aside))
        if address:
            say("copying the ledger out of PostgreSQL")
            copy_to_file(home.ledger, address, aside / home.ledger.name)
            archive.file(home.ledger.name, aside / home.ledger.name)
        head = _head(kept, aside / home.ledger.name)
        if kept is not None:
            archive.text("audit.head", text_of(head) + "\n")
        say("packing the registry")
        archive.file(_BUNDLE, _bundle(home, aside, archive.left_out))
        _add_blobs(archive, BlobStore(home.blobs), home, say)
        for path in own:
            if not is_database(path, home.ledger, home.engine):
                for found in _plain_files(path):
                    archive.changing(str(found.relative_to(home.root)), found)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        made = BackupManifest(now, __version__, str(head), archive.files, tuple(archive.left_out))
        document = {"format": FORMAT, "made_at": made.made_at, "version": made.version, "head": made.head}
        archive.text(MANIFEST, json.dumps({**document, "files": made.files}))
    return made


class _Archive:
    """Members as they are written, with their digests."""

    def __init__(self, tar: tarfile.TarFile, aside: Path) -> None:
        self._tar = tar
        self._aside = aside
        self.files: dict[str, tuple[int, str]] = {}
        self.left_out: list[str] = []

    def text(self, name: str, text: str) -> None:
        self.data(name, text.encode())

    def data(self, name: str, data: bytes) -> None:
        """Content that lies in memory."""
        self._add(name, io.BytesIO(data), len(data), 0o600)

    def file(self, name: str, path: Path) -> None:
        """One that nobody changes once it is there."""
        # pruned since the folder was listed
        with suppress(FileNotFoundError), open(_opened(path), "rb") as file:
            found = os.fstat(file.fileno())
            self._add(name, file, found.st_size, found.st_mode & 0o700)

    def changing(self, name: str, path: Path) -> None:
        """One that its owner may write to at this moment: as long as it was when it was opened, or read again.

        Where it changed meanwhile that much of it has to read the same once more: what is cut and written again
        beside a reader may show neither the old nor the new.
        """
        for _ in range(_READINGS):
            with tempfile.SpooledTemporaryFile(_SPOOLED, dir=str(self._aside)) as copy:
                try:
                    with open(_opened(path), "rb") as file:
                        found = os.fstat(file.fileno())
                        reading = _Digested(file, found.st_size)
                        while data := reading.read(_CHUNK):
                            copy.write(data)
                        if _changed(found, os.stat(path, follow_symlinks=False)) and (
                            _digest(path, found.st_size) != reading.sha256.digest()
                        ):
                            continue
                except FileNotFoundError:  # replaced by its owner, or removed, since the folder was listed
                    return
                except _CutShort:
                    continue
                copy.seek(0)
                self._add(name, copy, found.st_size, found.st_mode & 0o700)
                return
        raise Unavailable(f"{path} changes whenever it is read: try again when nobody writes to it")

    def _add(self, name: str, file: IO[bytes], size: int, mode: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = size, mode, 0
        reading = _Digested(file, size)
        self._tar.addfile(info, reading)  # type: ignore[arg-type]
        self.files[name] = (size, reading.sha256.hexdigest())


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _changed(before: os.stat_result, now: os.stat_result) -> bool:
    known = ("st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
    return any(getattr(before, of) != getattr(now, of) for of in known)


def _digest(path: Path, size: int) -> bytes:
    """SHA-256 of the first ``size`` bytes. Raises FileNotFoundError, _CutShort."""
    with open(_opened(path), "rb") as file:
        reading = _Digested(file, size)
        while reading.read(_CHUNK):
            pass
        return reading.sha256.digest()


class _CutShort(OSError):
    """A file has become shorter while it was read."""


class _Digested:
    """A file that is read once, and exactly ``size`` bytes of it, though it may grow. Raises _CutShort."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left, self.sha256 = file, size, hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left)) if self._left else b""
        if self._left and not data:
            raise _CutShort(f"{getattr(self._file, 'name', 'a file')} became shorter while it was read")
        self._left -= len(data)
        self.sha256.update(data)
        return data


def _head(kept: AuditHead | None, ledger: Path) -> AuditHead:
    """What ``audit.head`` has to say of the copied ledger. ``kept`` was read before it was copied.

    A head that the copy does not contain, or none, stays as it is: the restored home must say what this one says.
    """
    with closing(sqlite3.connect(f"{ledger.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return newest(connection) if kept is None or contains(connection, kept) else kept


def _bundle(home: Home, aside: Path, left_out: list[str]) -> Path:
    """The registry. Git may overlook a reference that somebody packs while it lists them, ``main`` too: what the
    bundle has is held against those that stood before and after it.

    References that lead to nothing go into ``left_out``: git packs nothing beside one of them.
    """
    path, repository = aside / _BUNDLE, Repository(home.registry)
    for _ in range(_READINGS):
        before, broken = references(repository), set[str]()
        done = repository.run("bundle", "create", "--quiet", str(path), "--all")
        if done.returncode:
            broken = broken_references(repository)
            without = [f"--exclude={name}" for name in sorted(broken - {MAIN})]
            done = repository.run("bundle", "create", "--quiet", str(path), *without, "--all")
        if done.returncode:
            raise Unavailable(f"the registry could not be packed: {done.stderr.strip()[:500]}")
        taken = repository.run("bundle", "list-heads", str(path)).stdout.splitlines()
        if {line.partition(" ")[2] for line in taken} >= (before & references(repository) - broken) | {MAIN}:
            left_out += sorted(broken)
            return path
    raise Unavailable("the registry's references changed all the while; try again when git is not packing it")


def _add_blobs(archive: _Archive, store: BlobStore, home: Home, say: _SAID) -> None:
    """All of them, wherever they lie: a backup needs nobody's server to be read."""
    for number, info in enumerate(store.everywhere(), 1):
        place = f"{home.blobs.name}/{info.name[:2]}/{info.name[2:]}"
        path = home.root / place
        if path.exists():
            archive.file(place, path)
        else:
            with suppress(NotFound):  # pruned since it was listed
                archive.data(place, store.get(info.name))
        if number % 1_000 == 0:
            say(f"{number} blobs")


def _plain_files(path: Path) -> Iterator[Path]:
    """The file, or those in the folder; links and devices are nobody's backup."""
    if path.is_symlink():
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        for root, folders, names in os.walk(path):
            folders.sort()
            found = (Path(root, name) for name in sorted(names))
            yield from (file for file in found if file.is_file() and not file.is_symlink())


# --- reading one ------------------------------------------------------------------------------


def verify_backup(path: Path, into: Path | None = None, say: _SAID = lambda _: None) -> BackupManifest:
    """Hold every member against the manifest, writing each below ``into`` if given.

    Raises Invalid for a file that is no whole backup, NotFound and Unavailable for one that cannot be read.
    """
    seen: dict[str, tuple[int, str]] = {}
    document: Any = None
    try:
        with tarfile.open(path, "r:*") as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is None or not _harmless(member.name) or member.name in seen:
                    raise Invalid(str(path), [f"{member.name[:200]!r} does not belong into a backup"])
                if member.name == MANIFEST:
                    document = json.loads(stream.read())
                    continue
                seen[member.name] = (member.size, _taken(stream, into and into / member.name, member.mode))
                if len(seen) % 1_000 == 0:
                    say(f"{len(seen)} files")
    except FileNotFoundError:
        raise NotFound(f"there is no backup {path}") from None
    except (tarfile.TarError, zlib.error, EOFError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise Unavailable(f"the backup {path} cannot be read or unpacked: {error.strerror}") from error
        # of several lines the first says it: tarfile tells of all packers that it tried
        raise Invalid(str(path), [f"it is no whole backup ({str(error).partition(':')[0]})"]) from None
    return _agreed(path, document, seen)


def _agreed(path: Path, document: Any, seen: dict[str, tuple[int, str]]) -> BackupManifest:
    if not isinstance(document, dict) or not isinstance(document.get("files"), dict):
        raise Invalid(str(path), ["it has no manifest: it is no backup, or it was cut off"])
    if document.get("format") != FORMAT:
        raise Invalid(str(path), [f"its format is {document.get('format')}; this program reads {FORMAT}"])
    try:
        wanted = {name: (size, sha256) for name, (size, sha256) in document["files"].items()}
        made_at, version, head = (str(document[key]) for key in ("made_at", "version", "head"))
    except (KeyError, TypeError, ValueError):
        raise Invalid(str(path), ["its manifest is not one that this program wrote"]) from None
    different = sorted(name for name in wanted.keys() | seen.keys() if wanted.get(name) != seen.get(name))
    if different:
        raise Invalid(str(path), [f"{name} is not what the manifest says" for name in different[:10]])
    return BackupManifest(made_at, version, head, wanted)


def _harmless(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\0" not in name


def _taken(stream: IO[bytes], target: Path | None, mode: int) -> str:
    """The digest of what is read to the end, and written to ``target``."""
    sha256 = hashlib.sha256()
    if target is not None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    where, made = (os.devnull, 0) if target is None else (target, os.O_CREAT | os.O_EXCL)
    with open(os.open(where, os.O_WRONLY | made, 0o600 | mode & 0o700), "wb") as out:
        while data := stream.read(_CHUNK):
            sha256.update(data)
            out.write(data)
    return sha256.hexdigest()


def restore(
    home: Home, source: Path, *, replace: bool = False, say: _SAID = lambda _: None
) -> tuple[AuditReport, Path | None]:
    """Make the home from a backup; what its audit says, and where the home that stood there lies now.

    Everything is unpacked and checked beside it first, so a backup that is damaged changes nothing. Raises UserError
    when a home is there and ``replace`` is not given or a variable names another ledger, Busy while its daemon runs, and what ``verify_backup`` raises.
    """
    refuse_variables("AGENTOS_DATABASE", "AGENTOS_BLOBS")
    root = home.root
    if root.exists() and not root.is_dir():
        raise UserError(f"{root} is no folder; --home names another place")
    there = root.exists() and any(root.iterdir())
    if there and not replace:
        raise UserError(f"{root} is not empty; --replace moves it aside, --home names another place")
    lock = DaemonLock(home) if there and home.is_there else None
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        with _aside(root.parent, f".{root.name}-restored-", root) as fresh:
            audited = _unpacked(fresh, source, say)
            return audited, _put(fresh, root, there)
    except sqlite3.Error as error:
        raise Invalid(str(source), [f"a database in it cannot be read: {error}"]) from error
    except OSError as error:  # no place for it, no right to it, or the home is a disk's own folder
        raise Unavailable(f"the home {root} could not be made: {error}") from error
    finally:
        if lock is not None:
            lock.release()


def _unpacked(fresh: Path, source: Path, say: _SAID) -> AuditReport:
    """The home from the backup, whole and on disk; what its audit says."""
    made = verify_backup(source, fresh, say)
    say("checking what was unpacked")
    new = Home(fresh)
    stand_alone(new)
    for folder in new.folders:
        made_folder(folder)
    for name in made.files:
        if "/" not in name and is_database(fresh / name, new.ledger, new.engine):
            _check_database(fresh / name)
    if new.ledger.exists():
        open_ledger(new.ledger, "").close()  # one of an older release is brought up to date first
    _unbundle(new)
    audited = verify_home(new)
    os.sync()
    return audited


def _put(fresh: Path, root: Path, there: bool) -> Path | None:
    """Move it to its place; what stood there is moved aside, never removed."""
    old = None
    if there:
        names = (f"{root.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S}{again}" for again in _AGAIN)
        old = next(place for name in names if not (place := root.with_name(name)).exists())
        root.rename(old)
    elif root.exists():
        root.rmdir()
    fresh.rename(root)
    flush_folder(root.parent)
    return old


def _check_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        said = connection.execute("PRAGMA quick_check").fetchone()[0]
        if said != "ok":
            raise Invalid(path.name, [str(said)[:500]])


def _unbundle(home: Home) -> None:
    """The registry, made from its bundle: objects first, then all references at once."""
    bundle = home.root / _BUNDLE
    repository = Repository.create(home.registry)
    listed = repository.run("bundle", "list-heads", str(bundle))
    taken = repository.run("bundle", "unbundle", str(bundle))
    lines = [line.split(" ", 1) for line in listed.stdout.splitlines()]
    moves = "".join(f"create {name} {commit}\n" for commit, name in lines if name.startswith("refs/"))
    done = subprocess.run(
        ["git", f"--git-dir={home.registry}", "update-ref", "--stdin"],
        input=moves,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode or taken.returncode or done.returncode:
        raise Invalid(_BUNDLE, [(taken.stderr or listed.stderr or done.stderr).strip()[:500]])
    bundle.unlink()
