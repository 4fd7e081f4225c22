"""Reads the files that a person named for a task: a file, the tree below a folder, or a glob.

Nothing is followed that leads elsewhere: below the folder that was named, folders are entered and files opened
by name within their open parent, never through a symbolic link. What is no plain file (a link, a device, a
fifo, a socket) is never opened; in a tree it is left out and told, named by itself it is an error. A name that
begins with a dot is found only by a pattern that says the dot.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from agentos.errors import ErrorKind, Invalid, UserError
from agentos.records.identity import InputFile
from agentos.records.tasks import InputSource

ENTRIES_MAX = 100_000  # looked at below one folder
FOLDER_DEPTH_MAX = 200  # folders in one another; os.fwalk takes a part of Python's stack for each
TOLD_MAX = 20  # of what was left out
_PLACE_MAX = 2_000  # bytes
_NAME_MAX = 255  # bytes of one name, as file systems have it
_WILD = re.compile(r"[*?\[]")
_SLACK_S = 0.02  # by which a file system's clock may lag

Keep = Callable[[bytes], str]


@dataclass(slots=True)
class SourceReading:
    """What was read, and one sentence for each thing that was left out."""

    files: dict[str, InputFile] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # of files, by source

    @property
    def inputs(self) -> tuple[InputFile, ...]:
        """Sorted by their place in the workspace."""
        return tuple(self.files[place] for place in sorted(self.files))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A plain file below a folder: how it is opened, and what it was when it was found."""

    name: str  # relative to the folder
    facts: os.stat_result
    open: Callable[[], int]


def is_glob(path: str) -> bool:
    """Whether it names files by a pattern."""
    return bool(_WILD.search(path))


def split_glob(path: str) -> tuple[str, str]:
    """The folder above a pattern, and the pattern below it. ``path`` is absolute."""
    parts = PurePosixPath(path).parts
    first = next(number for number, part in enumerate(parts) if _WILD.search(part))
    return str(PurePosixPath(*parts[:first])), "/".join(parts[first:])


def fits_workspace(place: str) -> bool:
    """Whether a file may stand there: relative, printable, inside, and of a length that an index of PostgreSQL holds."""
    pure = PurePosixPath(place)
    is_inside = bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts
    if not is_inside or not place.isprintable() or len(place.encode()) > _PLACE_MAX:
        return False
    return all(len(part.encode()) <= _NAME_MAX for part in pure.parts)


def read_bounded(file: Path, most: int, what: str) -> bytes:
    """The bytes of a file that a person named. Raises OSError, and UserError for a pipe, a device, or one too large."""
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise UserError(
                f"{file} is no regular file; give a file, or - for standard input where that may be.",
                kind=ErrorKind.UNREADABLE,
            )
        content = opened.read(most + 1)
    if len(content) > most:
        raise UserError(f"'{file}' is larger than the {most:,} bytes that {what} may have.")
    return content


def read_sources(
    sources: Sequence[InputSource],
    keep: Keep,
    *,
    max_bytes: int,
    since: Mapping[str, float],
    given: Sequence[InputFile] = (),
) -> SourceReading:
    """All files of the sources beside those that are ``given``; ``keep`` stores a content and names it.

    ``since`` maps a source's ``newer_than`` to a time (seconds since 1970); without one all files count.
    ``max_bytes`` is for all together. Raises Invalid, a sentence for each source that cannot be read.
    """
    reading = SourceReading({file.path: file for file in given})
    faults: list[str] = []
    for source in sources:
        try:
            count = _read(source, keep, reading, max_bytes, since.get(source.newer_than))
            reading.counts.append(count)
        except Invalid as error:
            faults += error.faults
        except OSError as error:
            faults.append(f"{error.filename or source.path} cannot be read: {error.strerror}")
    faults += collisions(reading.files)
    if faults:
        raise Invalid("inputs", faults)
    return reading


def _read(
    source: InputSource, keep: Keep, reading: SourceReading, max_bytes: int, since: float | None
) -> int:
    count = used = 0
    before = sum(file.size for file in reading.files.values())
    found = sum(1 for _ in _found_since(source, [], since))  # before any is stored, which takes longer
    if found > source.max_files:
        raise _fault(source, _too_many(found, source))
    for place, entry in _found_since(source, reading.left_out, since):
        count += 1
        if count > source.max_files:  # they became more meanwhile
            raise _fault(source, _too_many(count, source))
        if not fits_workspace(place):
            reading.left_out.append(f"{place!a} has a name that cannot stand in a workspace")
            continue
        if place in reading.files:
            raise _fault(source, f"another input stands in the workspace as '{place}' already; use 'as'")
        room = max_bytes - before - used
        if source.max_bytes:
            room = min(room, source.max_bytes - used)
        content = _content(entry, source, room)
        used += len(content)
        reading.files[place] = InputFile(place, keep(content), len(content))
    return count


def _too_many(found: int, source: InputSource) -> str:
    return f"{found:,} files are found where {source.max_files:,} may be; raise its max_files"


def _fault(source: InputSource, why: str) -> Invalid:
    return Invalid("inputs", [f"{source.path}: {why}"])


def _content(entry: SourceFile, source: InputSource, room: int) -> bytes:
    """What the file holds now; a file that grows meanwhile is read as far as it was when it was opened."""
    with open(entry.open(), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise _fault(source, f"{entry.name} is {_kind(facts.st_mode)}, and was a file a moment ago")
        if facts.st_size > room:
            raise _fault(
                source,
                f"{entry.name} has {facts.st_size:,} bytes where {max(room, 0):,} are left for the inputs of a run; "
                "raise limits.workspace_mb or its max_bytes, or exclude it",
            )
        return file.read(facts.st_size)


def _found_since(
    source: InputSource, left_out: list[str], since: float | None
) -> Iterator[tuple[str, SourceFile]]:
    """Those that changed since then, all without a time."""
    for place, entry in _found(source, left_out):
        if since is None or max(entry.facts.st_mtime, entry.facts.st_ctime) >= since - _SLACK_S:
            yield place, entry


def _found(source: InputSource, left_out: list[str]) -> Iterator[tuple[str, SourceFile]]:
    """Places in the workspace and what is to stand there."""
    path = source.path
    try:
        facts = os.stat(path)  # what a person names may be a link
    except FileNotFoundError:
        if not is_glob(path):
            raise _fault(source, "there is no such file or folder") from None
        folder, pattern = split_glob(path)
    else:
        if stat.S_ISREG(facts.st_mode):
            yield source.place, SourceFile(path, facts, lambda: os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            return
        if not stat.S_ISDIR(facts.st_mode):
            raise _fault(source, f"it is {_kind(facts.st_mode)}; expected a file, a folder or a glob")
        folder, pattern = path, "**"
    for entry in walk(folder, pattern, source.exclude, left_out):
        yield str(PurePosixPath(source.place, entry.name)), entry


def walk(
    folder: str, pattern: str, exclude: Sequence[str] = (), left_out: list[str] | None = None
) -> Iterator[SourceFile]:
    """The plain files below ``folder`` whose relative path matches, in the order of their names.

    An entry can be opened only until the next one is asked for. Raises OSError for a folder that cannot be
    read, Invalid when there is too much to look at.
    """
    matches = re.compile(regex(pattern)).fullmatch
    excluded = [re.compile(regex(glob)).fullmatch for glob in exclude]
    left_out = left_out if left_out is not None else []
    deep = len(pattern.split("/")) if "**" not in pattern else ENTRIES_MAX
    looked_at = 0
    top = os.path.realpath(folder)  # what a person names may be a link
    for root, folders, names, descriptor in os.fwalk(top, onerror=_raise, follow_symlinks=False):
        above = PurePosixPath(root).relative_to(top)
        looked_at += len(folders) + len(names)
        if looked_at > ENTRIES_MAX:
            raise Invalid("inputs", [f"{folder}: more than {ENTRIES_MAX:,} entries lie below it"])
        found = {name: _facts(name, descriptor) for name in sorted([*folders, *names])}
        folders[:] = [
            name
            for name, facts in found.items()
            if facts and stat.S_ISDIR(facts.st_mode) and len(above.parts) + 1 < deep
            if _may_hold(pattern, name) and not any(test(str(above / name)) for test in excluded)
        ]
        if folders and len(above.parts) >= FOLDER_DEPTH_MAX:
            folders.clear()
            if len(left_out) < TOLD_MAX:
                left_out.append(
                    f"what lies more than {FOLDER_DEPTH_MAX} folders deep, below {str(above)[:80]}…"
                )
        for name, facts in found.items():
            place = str(above / name)
            if not matches(place) or any(test(place) for test in excluded):
                continue
            if facts is None or stat.S_ISDIR(facts.st_mode):  # it went meanwhile, or is entered
                continue
            if stat.S_ISREG(facts.st_mode):
                yield SourceFile(place, facts, partial(_open_below, name, descriptor))
            elif len(left_out) < TOLD_MAX:
                left_out.append(f"{place} is {_kind(facts.st_mode)}")


def _raise(error: OSError) -> None:
    raise error


def _facts(name: str, descriptor: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _open_below(name: str, descriptor: int) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it became a symbolic link", name) from None
        raise


def _may_hold(pattern: str, name: str) -> bool:
    """Hidden folders are entered only for a pattern that names a dot."""
    return not name.startswith(".") or any(part.startswith(".") for part in pattern.split("/"))


def regex(pattern: str) -> str:
    """A glob over relative paths: ``**`` is any folders, ``*`` and ``?`` stay within a name."""
    parts = pattern.strip("/").split("/")
    found = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            found += r"(?:(?!\.)[^/]+/)*" + (r"(?!\.)[^/]+" if last else "")
        else:
            found += _name_regex(part) + ("" if last else "/")
    return found


def _name_regex(part: str) -> str:
    found = "" if part.startswith(".") else r"(?!\.)"
    place = 0
    while place < len(part):
        letter, place = part[place], place + 1
        end = part.find("]", place + 1) if letter == "[" else -1
        if letter == "*":
            found += "[^/]*"
        elif letter == "?":
            found += "[^/]"
        elif end > 0:
            inside = part[place:end].replace("\\", r"\\").replace("[", r"\[")
            negated = inside.startswith(("!", "^"))
            found += _letters(f"[^/{inside[1:]}]" if negated else f"[{inside}]")
            place = end + 1
        else:
            found += re.escape(letter)
    return found


def _letters(letters: str) -> str:
    """A class of letters; a range that is the wrong way round holds none, and is no error, as in a shell."""
    try:
        re.compile(letters)
    except re.error:
        return "[^/]" if letters.startswith("[^") else "(?!)"
    return letters


def collisions(places: Collection[str]) -> list[str]:
    """Files where other inputs need a folder."""
    return [
        f"the input '{above}' is a file, and '{place}' needs a folder of that name; use 'as'"
        for place in sorted(places)
        for above in map(str, PurePosixPath(place).parents)
        if above in places
    ]


def _kind(mode: int) -> str:
    tests = (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a fifo"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((text for test, text in tests if test(mode)), "a device")


def source_of(given: str, base: Path, place: str | None) -> InputSource:
    """What a person wrote, seen from ``base``: trees keep the path as it was written, if that lies below.

    A single file stands by its name alone.
    """
    path = Path(os.path.normpath(base.absolute() / os.path.expanduser(given)))
    if place is not None:
        place = str(PurePosixPath(place))
    else:
        written = PurePosixPath(os.path.normpath(given))
        outside = written.is_absolute() or ".." in written.parts or given.startswith("~")
        folder = PurePosixPath(path.name if not is_glob(str(path)) else Path(split_glob(str(path))[0]).name)
        if is_glob(str(path)) and not path.exists():
            within = PurePosixPath(*_before_wild(written.parts))
            place = str(folder if outside else within)
        else:
            place = str(folder if outside or not path.is_dir() else written)
    return InputSource(str(path), "" if place == "." else place)


def _before_wild(parts: Sequence[str]) -> Sequence[str]:
    first = next((number for number, part in enumerate(parts) if _WILD.search(part)), len(parts))
    return parts[:first]
