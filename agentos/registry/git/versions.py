"""What a version number stands for: trailers in commits, one annotated tag for each version.

A commit on ``main`` names the versions it makes in its trailers, so its tags follow from the
commit alone: a kill between the two leaves nothing to guess, ``record`` writes what is missing.
``refs/agentos/latest/KIND/NAME`` points at the tag of the newest version (a retired one too), and
each tag names its parent version, so a resource's lineage is read without listing any references.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import SortMode

from agentos.domain import ResourceId, Version, dataclass
from agentos.errors import Unavailable
from agentos.registry.git import NO_GIT, environment
from agentos.registry.git.reading import digest
from agentos.registry.git.repository import EMAIL, MAIN, Repository
from agentos.resources import parse_id

if TYPE_CHECKING:
    import git


LATEST = "refs/agentos/latest/"
FIRST = "1.0.0"
_MANY = 20  # versions of one commit: more are written together
_TRAILER = re.compile(r"([A-Z][A-Za-z-]*): (.*)")
_UNSEEN = ("Cc", "Cs", "Zl", "Zp")  # categories: control, surrogate, other ends of lines
_MINOR = ("edit", "import", "upgrade", "retire", "seed")


# --- trailers ---------------------------------------------------------------------------------


def message(text: str, trailers: Iterable[tuple[str, str]]) -> str:
    """``text`` and, as a last paragraph that only we write, one line for each trailer.

    Without control characters: an edit may be called anything, and the log is read by marks of that kind.
    """
    text = "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in _UNSEEN)
    subject, _, body = text.strip().partition("\n")
    parts = [" ".join(subject.split()) or "Change", body.strip()]
    lines = [f"{key}: {' '.join(value.split())}" for key, value in trailers]
    return "\n\n".join([*(part for part in parts if part), "\n".join(lines)]) + "\n"


def trailers(text: str) -> dict[str, list[str]]:
    """The trailers of the last paragraph, and of no other: the rest may be anybody's words."""
    found: dict[str, list[str]] = {}
    for line in text.rstrip().rpartition("\n\n")[2].splitlines():
        if match := _TRAILER.fullmatch(line):
            found.setdefault(match[1], []).append(match[2])
    return found


def said(commit: pygit2.Commit) -> dict[str, list[str]]:
    """The trailers of a commit that this program made; in anybody else's they say nothing."""
    return trailers(commit.message) if commit.committer.email == EMAIL else {}


def first(found: Mapping[str, list[str]], key: str) -> str | None:
    """The first value of a trailer."""
    return found[key][0] if key in found else None


# --- numbers ----------------------------------------------------------------------------------


def order(number: str) -> tuple[int, ...]:
    """Sort key of a version number."""
    return tuple(int(part) for part in number.split("."))


def next_number(previous: str | None, origin: str) -> str:
    """A person's or a release's change is a minor step, the program's own a patch."""
    if previous is None:
        return FIRST
    major, minor, patch = order(previous)
    return f"{major}.{minor + 1}.0" if origin in _MINOR else f"{major}.{minor}.{patch + 1}"


def plan(repository: Repository, touched: Iterable[ResourceId], origin: str) -> list[tuple[str, str]]:
    """The trailers that name the versions which a commit touching these resources makes."""
    lines: list[tuple[str, str]] = []
    for resource in sorted(touched):
        last = latest(repository, resource)
        lines.append(("Version", f"{resource}@{next_number(last.number if last else None, origin)}"))
        if last:
            lines.append(("Parent-Version", f"{resource}@{last.number}"))
    return lines


def versions_of(commit: pygit2.Commit) -> list[tuple[ResourceId, str, str | None]]:
    """(resource, number, parent's number) of each version that the commit made."""
    found = said(commit)
    parents = dict(value.rsplit("@", 1) for value in found.get("Parent-Version", []))
    made = [value.rsplit("@", 1) for value in found.get("Version", [])]
    return [(parse_id(name), number, parents.get(name)) for name, number in made]


# --- tags -------------------------------------------------------------------------------------


def record(repository: Repository, commit: pygit2.Commit) -> int:
    """Write the tags that the commit's trailers ask for and that are missing; how many. Needs the lock."""
    found = said(commit)
    kept = [(key, value) for key in ("Origin", "Evolution") for value in found.get(key, [])]
    made = versions_of(commit)
    write = _write_many if len(made) > _MANY else _write_each
    return write(repository, commit, made, kept)


_Made = list[tuple[ResourceId, str, str | None]]
_Kept = list[tuple[str, str]]


def _write_each(repository: Repository, commit: pygit2.Commit, made: _Made, kept: _Kept) -> int:
    written = 0
    for resource, number, parent in made:
        tag = repository.resolve(f"refs/tags/{resource}@{number}")
        if tag is None:
            text = _tag_text(commit, digest(repository, commit.tree_id, resource), parent, kept)
            when = datetime.fromtimestamp(commit.commit_time, UTC)
            tag = repository.tag(f"{resource}@{number}", commit.id, when, text)
            written += 1
        _point(repository, resource, number, tag)
    return written


def _write_many(repository: Repository, commit: pygit2.Commit, made: _Made, kept: _Kept) -> int:
    """As ``_write_each``, with one pack and one file of references."""
    pack = ObjectPack(repository)
    digests = {found: str(tree) for found, tree in repository.resources(commit.tree_id)}
    refs: dict[str, pygit2.Oid | None] = {}
    tagger = f"agentos <{EMAIL}> {commit.commit_time} +0000"
    for resource, number, parent in made:
        ref, pointer = f"refs/tags/{resource}@{number}", f"{LATEST}{resource}"
        tag, present = repository.resolve(ref), repository.resolve(pointer)
        if tag is None:
            text = _tag_text(commit, digests.get(resource, ""), parent, kept)
            head = f"object {commit.id}\ntype commit\ntag {resource}@{number}\ntagger {tagger}\n\n"
            tag = refs[ref] = pack.add("tag", (head + text).encode())
        if present is None or order(_version(repository, resource, present).number) < order(number):
            refs[pointer] = tag
    if not refs:
        return 0
    pack.write()
    repository.write_refs(refs)
    return sum(ref.startswith("refs/tags/") for ref in refs)


def _tag_text(commit: pygit2.Commit, content: str, parent: str | None, kept: _Kept) -> str:
    lines = [("Digest", content or "none"), *kept]
    lines += [("Parent-Version", parent)] if parent else []
    return message(commit.message.partition("\n")[0], lines)


def _point(repository: Repository, resource: ResourceId, number: str, tag: pygit2.Oid) -> None:
    ref = f"{LATEST}{resource}"
    present = repository.resolve(ref)
    if present is None or order(_version(repository, resource, present).number) < order(number):
        repository.move(ref, tag, expected=present)


def latest(repository: Repository, resource: ResourceId) -> Version | None:
    """The newest version, a retired one included; None when there never was one."""
    tag = repository.resolve(f"{LATEST}{resource}")
    return _version(repository, resource, tag) if tag else None


def get(repository: Repository, resource: ResourceId, number: str) -> Version | None:
    """The version of this number."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", number):
        return None
    tag = repository.resolve(f"refs/tags/{resource}@{number}")
    return _version(repository, resource, tag) if tag else None


def lineage(repository: Repository, resource: ResourceId) -> list[Version]:
    """All versions, newest first."""
    found: list[Version] = []
    version = latest(repository, resource)
    while version:
        found.append(version)
        version = get(repository, resource, version.parent) if version.parent else None
    return found


def _version(repository: Repository, resource: ResourceId, tag_id: pygit2.Oid) -> Version:
    try:
        tag = repository.git[tag_id]
    except (KeyError, pygit2.GitError) as error:
        raise Unavailable(f"The tag {tag_id} of {resource} is missing or corrupt: {error}") from None
    if not isinstance(tag, pygit2.Tag):
        raise Unavailable(f"The version tag of {resource} is no annotated tag: {tag_id}")
    text = tag.message or ""
    found = trailers(text)
    content = first(found, "Digest") or "none"
    return Version(
        resource=resource,
        number=(tag.name or "").rpartition("@")[2],
        commit=str(tag.target),
        digest="" if content == "none" else content,
        parent=first(found, "Parent-Version"),
        reason=text.partition("\n")[0],
        created_at=datetime.fromtimestamp(tag.tagger.time if tag.tagger else 0, UTC),
        origin=first(found, "Origin") or "",
        evolution=first(found, "Evolution"),
    )


# --- the line of main -------------------------------------------------------------------------


def line(repository: Repository) -> Iterator[pygit2.Commit]:
    """The commits of ``main``, newest first, without what merges brought in from the side."""
    tip = repository.resolve(MAIN)
    if tip is None:
        return
    try:
        walker = repository.git.walk(tip, SortMode.NONE)
        walker.simplify_first_parent()
        yield from walker
    except (KeyError, pygit2.GitError) as error:
        raise Unavailable(f"The registry's history is missing a commit: {error}") from None


# --- Reading the history for people: log and diff, through GitPython, closed after each use ------
# GitPython never writes here (measured: its index commits lose work under concurrency), and its
# git subprocess gets the same clean environment as our own.


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit on ``main``. ``versions`` are the texts ``kind/name@number`` that it made."""

    commit: str
    at: datetime
    author: str
    origin: str
    subject: str
    versions: tuple[str, ...]
    trailers: tuple[tuple[str, str], ...]


def log(repository: Repository, limit: int, path: str = "") -> list[HistoryEntry]:
    """The newest commits of ``main`` that touched ``path`` ("" is all), newest first."""
    # a commit holds anything but NUL, also one that somebody made by git itself
    form = "%H%x00%ct%x00%an%x00%B"
    arguments = ["-z", "--first-parent", f"--max-count={limit}", f"--format={form}", MAIN, "--"]
    with _open(repository) as reader:
        fields = reader.git.log(*arguments, *([path] if path else [])).split("\0")
    return [_entry(*record) for record in zip(*(fields[at::4] for at in range(4)), strict=False)]


def diff(repository: Repository, old: str, new: str, path: str = "") -> str:
    """The unified diff between two commits or trees, below ``path`` ("" is all)."""
    arguments = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", old, new, "--"]
    with _open(repository) as reader:
        text: str = reader.git.diff(*arguments, *([path] if path else []), strip_newline_in_stdout=False)
        return text


def _entry(commit: str, when: str, author: str, text: str) -> HistoryEntry:
    found = trailers(text)
    own = {"Origin", "Version", "Parent-Version"}
    return HistoryEntry(
        commit=commit,
        at=datetime.fromtimestamp(int(when), UTC),
        author=author,
        origin=first(found, "Origin") or "",
        subject=text.partition("\n")[0],
        versions=tuple(found.get("Version", [])),
        trailers=tuple((key, value) for key, values in found.items() if key not in own for value in values),
    )


@contextmanager
def _open(repository: Repository) -> Iterator[git.Repo]:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        del os.environ[key]  # GitPython can add to the environment of its git, not take away
    import git

    try:
        reader = git.Repo(repository.path)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise Unavailable(f"The registry cannot be read: {error}") from None
    try:
        reader.git.update_environment(**environment())
        yield reader
    except git.GitCommandError as error:
        raise Unavailable(f"The registry's history cannot be read: {error.stderr.strip()}") from None
    finally:
        reader.close()


# --- Many git objects written at once: one pack and one flush to disk, where a file each would take minutes
# Nothing is there until ``write`` has returned; git itself checks and indexes the pack.


_TYPES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}


class ObjectPack:
    """Objects that are to be written; adding one again is nothing."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._objects: dict[bytes, tuple[int, bytes]] = {}
        self.size = 0  # bytes

    def add(self, kind: str, content: bytes) -> pygit2.Oid:
        """The object's id. ``kind`` is blob, tree, commit or tag."""
        head = b"%s %d\0" % (kind.encode(), len(content))
        name = hashlib.sha1(head + content, usedforsecurity=False).digest()
        if name not in self._objects:
            self._objects[name] = _TYPES[kind], content
            self.size += len(content)
        return pygit2.Oid(raw=name)

    def add_folder(self, files: Mapping[str, bytes]) -> pygit2.Oid:
        """The id of the tree of these files (path -> content)."""
        below: dict[str, dict[str, bytes]] = {}
        entries: list[tuple[bytes, bytes]] = []
        for path, content in files.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = content
            else:
                raw = name.encode()
                entries.append((raw, b"100644 %s\0%s" % (raw, self.add("blob", content).raw)))
        for name, inner in below.items():
            raw = name.encode()  # git sorts a directory as if its name ended in a slash
            entries.append((raw + b"/", b"40000 %s\0%s" % (raw, self.add_folder(inner).raw)))
        return self.add("tree", b"".join(entry for _, entry in sorted(entries)))

    def add_all(self, other: ObjectPack) -> None:
        """What is in the other as well."""
        self._objects |= other._objects
        self.size += other.size

    def write(self) -> None:
        """Make them durable, and start again with none. Raises Unavailable."""
        if not self._objects:
            return
        parts = [_head(kind, len(data)) + zlib.compress(data, 1) for kind, data in self._objects.values()]
        content = b"PACK" + (2).to_bytes(4) + len(parts).to_bytes(4) + b"".join(parts)
        content += hashlib.sha1(content, usedforsecurity=False).digest()
        try:
            done = subprocess.run(
                ["git", f"--git-dir={self._repository.path}", "index-pack", "--stdin"],
                env=environment(),
                cwd=self._repository.path,
                input=content,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            if error.filename != "git":
                raise
            raise Unavailable(NO_GIT) from None
        if done.returncode:
            raise self._repository.unwritten(OSError(done.stderr.decode(errors="replace").strip()))
        self._objects.clear()
        self.size = 0


def _head(kind: int, size: int) -> bytes:
    """Type and size as a pack states them: 4 bits of size, then 7 a byte."""
    found = bytearray()
    byte, size = kind << 4 | size & 15, size >> 4
    while size:
        found.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    found.append(byte)
    return bytes(found)
