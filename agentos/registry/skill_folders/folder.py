"""Reading a folder that anybody may be writing to: plain files only, nothing followed, all bounded."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from agentos.domain import RESOURCE_NAME, Kind, ResourceId, dataclass, digest
from agentos.programs import LOCK_FILE
from agentos.registry.git import reading
from agentos.registry.git.repository import EMPTY_TREE, Repository
from agentos.registry.store import Registry
from agentos.resources import plain_name
from agentos.resources.documents import DEPTH_MAX, FILE_MAX, FILES_MAX, NAME_MAX, RESOURCE_MAX

FOLDERS = "refs/agentos/folders/"  # below it lies what was taken in from each watched folder
_SETTLED_NS = 2_000_000_000  # since its last change, until the times of a file tell one state from the next
_FAULTS_MAX = 8  # of one folder, which the first refuses; the wrong folder has thousands
_TOO_MUCH = f"it holds more than {FILES_MAX} files or {RESOURCE_MAX} bytes, which is the most allowed"
_DEEPEST = DEPTH_MAX - 3  # of a directory: kind, name and the file itself are levels too
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


@dataclass(slots=True)
class FolderContent:
    """Path within the folder -> content, one sentence for each fault, and one for each file left out."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    size: int = 0


_LEAVINGS = re.compile(
    r"\..*|__pycache__|node_modules|.*\.(pyc|orig|rej|tmp|bak|sw[a-p])|.*~|#.*#|Thumbs\.db"
)


def ignored(name: str) -> bool:
    """What never belongs to a skill: dot files (.git too), byte code, and what editors leave behind."""
    return _LEAVINGS.fullmatch(name) is not None


def signature(folder: Path) -> str:
    """Changes whenever a file in the folder does (names, types, sizes, times); reads no content."""
    if folder.is_symlink():
        return f"link {folder}"
    seen = hashlib.blake2b(digest_size=16)
    for count, (path, info) in enumerate(_walk(folder, "", 0)):
        seen.update(
            f"{path!a} {info.st_mode} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino}\n".encode()
        )
        if count > 4 * FILES_MAX:  # far too many anyway: refused when read
            break
    return seen.hexdigest()


def _walk(folder: Path, prefix: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if ignored(entry.name):
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield prefix + entry.name, info
        if stat.S_ISDIR(info.st_mode) and depth < DEPTH_MAX:
            yield from _walk(folder / entry.name, f"{prefix}{entry.name}/", depth + 1)


def read(folder: Path) -> FolderContent:
    """Everything in the folder. Directories are opened one below the other without following links,
    so that a link put in place meanwhile is met as a link."""
    content = FolderContent()
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        content.faults.append(f"it cannot be read: {error.strerror}")
        return content
    try:
        _read_directory(descriptor, "", content)
    finally:
        os.close(descriptor)
    if len(content.faults) >= _FAULTS_MAX:
        content.faults.append("what comes after these was not looked at")
    return content


def _read_directory(directory: int, prefix: str, content: FolderContent) -> None:
    if prefix.count("/") > _DEEPEST:
        content.left_out.append(
            f"{prefix!r} is left out: it lies too deep (at most {_DEEPEST} folders below the skill's own)"
        )
        return
    for name in sorted(os.listdir(directory)):
        if ignored(name):
            continue
        if _TOO_MUCH in content.faults or len(content.faults) >= _FAULTS_MAX:
            return
        if len(content.files) >= FILES_MAX or content.size > RESOURCE_MAX:
            content.faults.append(_TOO_MUCH)
            return
        path = prefix + name
        try:
            _read_entry(directory, name, path, content)
        except OSError as error:
            content.faults.append(f"{path!r} cannot be read: {error.strerror}")


def _read_entry(directory: int, name: str, path: str, content: FolderContent) -> None:
    mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    odd = [what for test, what in _KINDS if test(mode)]
    if odd:
        content.faults.append(f"{path!r} is {odd[0]}; only plain files and directories are allowed")
        return
    if not plain_name(name):
        content.left_out.append(f"{path!r} is left out: its name is not plain (ASCII, no leading dot)")
        return
    kind = os.O_DIRECTORY if stat.S_ISDIR(mode) else 0
    # O_NONBLOCK: a pipe put in its place since must not make us wait
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | kind
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        if kind:
            _read_directory(descriptor, path + "/", content)
            return
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            content.faults.append(f"{path!r} is not a plain file")
        elif info.st_size > FILE_MAX:
            content.left_out.append(
                f"{path!r} is left out: {info.st_size} bytes, at most {FILE_MAX} are allowed"
            )
        else:
            content.files[path] = _read_all(descriptor)
            content.size += len(content.files[path])
    finally:
        os.close(descriptor)


def _read_all(descriptor: int) -> bytes:
    data = b""
    while len(data) <= FILE_MAX and (part := os.read(descriptor, 1 << 16)):
        data += part
    return data


# Letters that are no letter with a mark, so that they went without a trace: Größe was called "groe".
_SPELT = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h"}
)


def skill_name(folder: str) -> str:
    """What a skill is called whose folder is called so: lower-case letters and digits, single hyphens."""
    if RESOURCE_NAME.fullmatch(folder):
        return folder[:NAME_MAX].strip("-")
    return _plain(folder.lower().translate(_SPELT))


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:NAME_MAX].strip("-")


def name_in(repository: Repository, path: Path) -> str:
    """What the skill of a watched folder is called: ``skill_name``, but one that 0.4.0 took in keeps its name.

    Under another one it would begin anew, without what was learnt, and the old one be retired.
    """
    name, earlier = skill_name(path.name), _plain(path.name)
    if earlier in ("", name) or path.with_name(earlier).exists():
        return name
    return earlier if repository.resolve(folder_prefix(path.parent) + earlier) else name


def folders_by_skill(repository: Repository, folders: Iterable[Path]) -> dict[str, Path]:
    """Skill's name -> its folder; of several that would be one, that which is called just so."""
    found: dict[str, Path] = {}
    names = {path: name_in(repository, path) for path in folders}
    for path in sorted(names, key=lambda path: (path.name != names[path], path.name)):
        found.setdefault(names[path], path)
    return found


def folders_in(place: Path) -> list[Path] | None:
    """What may be skills there; None when it cannot be read. Plain files beside them are nobody's skill."""
    try:
        with os.scandir(place) as entries:
            return [place / entry.name for entry in entries if not _passed_over(entry)]
    except OSError:
        return None


def is_folder(path: Path) -> bool:
    """Whether it may be a skill, by itself."""
    try:
        return not ignored(path.name) and not stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _passed_over(entry: os.DirEntry[str]) -> bool:
    try:
        return ignored(entry.name) or stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
    except OSError:  # it went meanwhile
        return True


def folder_prefix(place: Path) -> str:
    """Below it lie the references of what was taken in from a watched folder."""
    return f"{FOLDERS}{digest(str(place))[:16]}/"


# --- Which way a skills folder and the registry differ: against what was taken in from the folder last


ADOPTED = "adopt.folders"  # memo in the ledger: what `agentos adopt` was told


class DifferenceSide(StrEnum):
    """Which side has what the other has not."""

    REGISTRY = "registry"  # learnt or edited here since; the folder has the old text
    FOLDER = "folder"  # changed there since, and not taken in (yet, or refused)
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class FolderDifference:
    """One skill of a folder. ``ours`` and ``theirs``: its files here and there, by path in the skill."""

    skill: ResourceId
    folder: Path
    ahead: DifferenceSide
    ours: Mapping[str, bytes]
    theirs: Mapping[str, bytes]
    digest: str  # of the skill in the registry


# Folder -> the digest of the skill that it was found to be, the stamp of what lies in it then, and the paths of that:
# what need not be read again.
KnownFolders = dict[str, tuple[str, str, tuple[str, ...]]]


def _stamp(folder: str, paths: Iterable[str]) -> tuple[str, int]:
    """Changes whenever these do, or one comes or goes in a directory among them; and when the last one did, in ns.

    A directory need not be read for it, which takes longer than all else that is done with a folder.
    """
    try:
        found = [os.lstat(f"{folder}/{path}" if path else folder) for path in paths]
        seen = [(of.st_mode, of.st_size, of.st_mtime_ns, of.st_ctime_ns, of.st_ino) for of in found]
    except OSError:
        return "", 0
    newest = max(changed for _, _, _, changed, _ in seen)
    return hashlib.blake2b(repr(seen).encode(), digest_size=16).hexdigest(), newest


def folder_differences(
    registry: Registry, places: Sequence[Path], known: KnownFolders | None = None
) -> Iterator[FolderDifference]:
    """Of every folder below ``places`` that was taken in and is not what the registry has.

    Folders in ``known`` are not read again while nothing in them changes; others are added to it.
    """
    known = {} if known is None else known
    stable = registry.stable()
    digests = {item.name: own for item, own in registry.digests(stable).items() if item.kind is Kind.SKILL}
    for place in places:
        named: Mapping[str, Path] = {}
        for name, taken in registry.repository.below(folder_prefix(place)).items():
            digest, folder = digests.get(name, ""), f"{place}/{name}"
            # called otherwise than the skill, or gone
            if folder not in known and not os.path.isdir(folder):
                named = named or folders_by_skill(registry.repository, folders_in(place) or ())
                folder = str(named.get(name, folder))
            kept, stamp, paths = known.get(folder, ("", "", ()))
            if digest and taken == digest == kept and stamp == _stamp(folder, paths)[0]:
                continue
            found = _difference(registry, digest, Path(folder), taken, known)
            if found is not None:
                yield found


def _difference(
    registry: Registry, digest: str, folder: Path, taken: str, known: KnownFolders
) -> FolderDifference | None:
    paths = ("", *(path for path, _ in _walk(folder, "", 0)))
    stamp, changed_ns = _stamp(str(folder), paths)
    content = read(folder)
    if not digest or not content.files:
        return None  # retired, or the disk is away
    if taken == digest and reading.holds(registry.repository, digest, content.files):
        # one that changed just now may change again within the tick of the clock, and look as it does now
        if stamp and changed_ns < time.time_ns() - _SETTLED_NS:
            known[str(folder)] = (digest, stamp, paths)
        return None
    skill = ResourceId(Kind.SKILL, name_in(registry.repository, folder))
    ours = _files(registry, digest, content.files)
    base = ours if taken == digest else _files(registry, taken, content.files)
    if ours == content.files:
        return None
    ahead = DifferenceSide.REGISTRY if content.files == base else DifferenceSide.BOTH
    if ours == base:
        ahead = DifferenceSide.FOLDER
    return FolderDifference(skill, folder, ahead, ours, content.files, digest)


def _files(registry: Registry, digest: str, there: Mapping[str, bytes]) -> dict[str, bytes]:
    """The lock beside a skill is the registry's own, unless the folder has one."""
    found = dict(registry.repository.files(digest, ""))
    if LOCK_FILE not in there:
        found.pop(LOCK_FILE, None)
    return found


def same_files(registry: Registry, digest: str, there: Mapping[str, bytes]) -> bool:
    """Whether a version of a skill (its digest, "" where it was retired) is what the folder holds."""
    return bool(digest) and _files(registry, digest, there) == there


def taken_in(registry: Registry, difference: FolderDifference) -> None:
    """Note that the folder now holds what the registry has: nothing is taken in from it for that."""
    repository = registry.repository
    ref = folder_prefix(difference.folder.parent) + difference.skill.name
    with repository.lock():
        tree = repository.write_tree(EMPTY_TREE, dict(difference.ours))
        repository.move(ref, tree, expected=repository.resolve(ref))
