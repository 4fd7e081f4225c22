"""What a version number stands for: trailers in commits, one annotated tag for each version.

A commit on ``main`` names the versions it makes in its trailers, so its tags follow from the
commit alone: a kill between the two leaves nothing to guess, ``record`` writes what is missing.
``refs/agentos/latest/KIND/NAME`` points at the tag of the newest version (a retired one too), and
each tag names its parent version, so a resource's lineage is read without listing any references.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import pygit2
from pygit2.enums import SortMode

from agentos.domain import ResourceId, Version
from agentos.errors import Unavailable
from agentos.registry.git.packs import ObjectPack
from agentos.registry.git.reading import digest, resources
from agentos.registry.git.repository import EMAIL, MAIN, Repository
from agentos.resources import parse_id

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
    digests = {found: str(tree) for found, tree in resources(repository, commit.tree_id)}
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
    walker = repository.git.walk(tip, SortMode.NONE)
    walker.simplify_first_parent()
    try:
        yield from walker
    except (KeyError, pygit2.GitError) as error:
        raise Unavailable(f"The registry's history is missing a commit: {error}") from None
