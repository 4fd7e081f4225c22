"""Reads JSON records from files of any size, one at a time: JSON lines, one array, one document, zipped logs.

A record that cannot be read is yielded as a fault, and reading goes on where that is possible: after a
broken line with the next line; what follows a syntax error within an array is lost. A file that is one run
(a session log, spans, a list of messages) is one record: {"log": its format, "lines": its records}.
"""

from __future__ import annotations

import codecs
import io
import json
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import NoReturn

from agentos.domain import Json
from agentos.errors import ErrorKind, UserError
from agentos.sources import FOLDER_DEPTH_MAX

RECORD_MAX = 64 << 20  # bytes of one record: what is held in memory at a time
DEPTH_MAX = 100
_CHUNK = 1 << 16
_LINES = (".jsonl", ".ndjson")
_ZIPPED = ".eval"
_NAMES = (".json", ".traj", _ZIPPED, *_LINES)
_FIRST = 5  # records that are looked at to tell what a file is
_CODEX = {"session_meta", "response_item", "event_msg", "turn_context"}
# Codex before 2025-09
_ITEMS = {"message", "reasoning", "function_call", "local_shell_call", "custom_tool_call"}
_DEEP = f"nested more than {DEPTH_MAX} levels deep"
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, as `surrogateescape` shows them
_SPACE = re.compile(r"[ \t\r\n]*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be half of a pair
_TOKEN = re.compile(r'["\[\]{}]')
_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}]+")


@dataclass(frozen=True, slots=True)
class Record:
    """One record, or ``fault``: why there is none. ``number`` is its line, or its place in the array."""

    file: str
    number: int
    value: Json = None
    fault: str = ""

    @property
    def place(self) -> str:
        """Where it stands, for a person."""
        return f"{self.file}:{self.number}"


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files with records, and how many others were passed over, by why."""

    files: list[Path]
    passed_over: Counter[str] = field(default_factory=Counter)


def files_of(given: Path) -> FoundFiles:
    """The file itself, or all files of known names below a directory, sorted. Raises UserError for neither."""
    if given.is_file():
        return FoundFiles([given])
    if not given.is_dir():
        what = "is neither a file nor a folder" if os.path.lexists(given) else "is no file"
        raise UserError(f"'{given}' {what}; name files with records to import", kind=ErrorKind.UNREADABLE)
    found = FoundFiles([])
    for folder, below, names in os.walk(given):
        if below and len(Path(folder).relative_to(given).parts) >= FOLDER_DEPTH_MAX:
            below.clear()
            found.passed_over[f"more than {FOLDER_DEPTH_MAX} folders deep"] += 1
        for name in sorted(names):
            path = Path(folder, name)
            if not name.endswith(_NAMES):
                found.passed_over[f"not named {', '.join(_NAMES)}"] += 1
            elif why := _unreadable(path):
                found.passed_over[why] += 1
            else:
                found.files.append(path)
    if not found.files:
        raise UserError(
            f"'{given}' holds no {', '.join(_NAMES)} file; name files with records to import",
            kind=ErrorKind.UNREADABLE,
        )
    found.files.sort()
    return found


def _unreadable(path: Path) -> str:
    """Why a file is not to be opened: reading a pipe could wait for ever."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return "links to nowhere"
    return "" if stat.S_ISREG(mode) else "pipes, sockets and devices"


def read_records(path: Path, log: str = "") -> Iterator[Record]:
    """The file's records in order; of a session log, one record. ``log``: it is one of this format.

    A file that cannot be read is one record with a fault.
    """
    try:
        with path.open("rb") as file:
            if path.suffix == _ZIPPED or file.peek(4)[:4] == b"PK\x03\x04":
                yield from _zipped(file, path.name)
                return
            records = chain.from_iterable(map(_samples, _records(file, path)))
            first = list(islice(records, _FIRST))
            log = log or _log_of(first)
            if log:
                yield from _gathered(chain(first, records), path, log)
            else:
                yield from chain(first, records)
    except OSError as error:
        yield Record(path.name, 1, fault=f"it cannot be read: {error.strerror or error}")


def _samples(record: Record) -> Iterator[Record]:
    """Each sample of a log of inspect_ai by itself, as in its zipped form: one that is broken costs no other."""
    log = record.value
    if record.fault or not (isinstance(log.get("eval"), dict) and isinstance(log.get("samples"), list)):
        yield record
        return
    for number, sample in enumerate(log["samples"], start=1):
        yield Record(record.file, number, {"eval": log["eval"], "samples": [sample]})


def _records(file: io.BufferedReader, path: Path) -> Iterator[Record]:
    head = file.peek(_CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
    if path.suffix in _LINES:
        yield from _lines(file, path.name)
    elif head.startswith(b"["):
        yield from _elements(file, path.name)
    elif _first_line_is_whole(file):
        yield from _lines(file, path.name)
    else:
        yield _parsed(path.name, 1, file.read(RECORD_MAX + 1))


def _log_of(first: Sequence[Record]) -> str:
    """The format of a file that is one run, told by its first records; "" for a file of many."""
    values = [record.value for record in first if not record.fault]
    if not values:
        return ""
    if all("resourceSpans" in value for value in values):
        return "otel"
    if all(isinstance(value.get("role"), str) and "content" in value for value in values):
        return "messages"
    types = [kind if isinstance(kind := value.get("type"), str) else "" for value in values]
    if any(kind in _CODEX and "payload" in value for kind, value in zip(types, values, strict=True)):
        return "codex"
    if {"id", "timestamp"} <= values[0].keys() and not _ITEMS.isdisjoint(types[1:]):
        return "codex"
    typed = [value for kind, value in zip(types, values, strict=True) if kind]
    if any("sessionId" in value or "leafUuid" in value or "isSnapshotUpdate" in value for value in typed):
        return "claude-code"
    return ""


def _gathered(records: Iterator[Record], path: Path, log: str) -> Iterator[Record]:
    """The file as one record, after its broken lines; spans of a file that is too large go one by one."""
    if path.stat().st_size > RECORD_MAX:
        if log == "otel":
            yield from records
        else:
            yield Record(path.name, 1, fault=f"it is one log of more than {RECORD_MAX >> 20} MB")
        return
    lines = []
    for record in records:
        if record.fault:
            yield record
        else:
            lines.append(record.value)
    yield Record(path.name, 1, {"log": log, "lines": lines})


def _zipped(file: io.BufferedReader, name: str) -> Iterator[Record]:
    """A log of inspect_ai as a zip file: each sample a record with the log's header."""
    try:
        archive = zipfile.ZipFile(file)
        names = [
            item for item in archive.namelist() if item.startswith("samples/") and item.endswith(".json")
        ]
        header = _member(archive, "header.json", name, 0) if "header.json" in archive.namelist() else None
        about = header.value.get("eval") if header and not header.fault else None
        for number, item in enumerate(names, start=1):
            record = _member(archive, item, name, number)
            whole = {"eval": about if isinstance(about, dict) else {}, "samples": [record.value]}
            yield record if record.fault else Record(name, number, whole)
        if not names:
            yield Record(name, 1, fault="it is a zip file without samples of inspect_ai")
    # The second is zipfile's word for a version of the format that it does not know.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        yield Record(name, 1, fault=f"it is no zip file that can be read ({error})")


def _member(archive: zipfile.ZipFile, item: str, name: str, number: int) -> Record:
    try:
        with archive.open(item) as opened:
            return _parsed(name, number, opened.read(RECORD_MAX + 1))
    except NotImplementedError:
        hint = "`inspect log convert --to json` writes it in a form that can be read here"
        return Record(
            name, number, fault=f"{item} is compressed in a way that this Python does not know; {hint}"
        )
    except (zipfile.BadZipFile, RuntimeError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        return Record(name, number, fault=f"{item} is damaged ({error})")


def _first_line_is_whole(file: io.BufferedReader) -> bool:
    """Is it JSON lines under another name?"""
    first = file.readline(RECORD_MAX)
    more = bool(file.peek(1))
    file.seek(0)
    return more and not _parsed("", 1, first).fault


def _lines(file: io.BufferedReader, name: str) -> Iterator[Record]:
    number = 0
    while line := file.readline(RECORD_MAX + 1):
        number += 1
        whole = len(line) <= RECORD_MAX
        if line.strip():
            yield _parsed(name, number, line)
        while not whole and not line.endswith(b"\n"):
            line = file.readline(_CHUNK)
            whole = not line


def _parsed(name: str, number: int, data: bytes) -> Record:
    if len(data) > RECORD_MAX:
        return Record(name, number, fault=f"it is larger than {RECORD_MAX >> 20} MB")
    try:
        value = plain_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Record(name, number, fault=f"it is not UTF-8 (byte {error.start})")
    except ValueError as error:
        return Record(name, number, fault=f"it is not JSON ({error})")
    return _record(name, number, value)


def plain_json(text: str) -> Json:
    """The value of a JSON text. Raises ValueError, also for NaN, numbers without bound, half characters and
    what is nested too deeply."""
    try:
        return _sound(json.loads(text, parse_constant=_refuse, parse_float=_finite), text)
    except RecursionError:
        raise ValueError(_DEEP) from None


def _sound(value: Json, text: str) -> Json:
    if _deeper(value, DEPTH_MAX):
        raise ValueError(_DEEP)
    if _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half of a character (a lone surrogate)") from None
    return value


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text:.20} is too large for a number")
    return number


def _record(name: str, number: int, value: Json) -> Record:
    if _is_message_list(value):
        return Record(name, number, {"log": "messages", "lines": value})
    if not isinstance(value, dict):
        return Record(name, number, fault=f"it must be an object, not {_kind(value)}")
    return Record(name, number, value)


def _is_message_list(value: Json) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and isinstance(item.get("role"), str) for item in value)
    )


def _kind(value: Json) -> str:
    return {list: "an array", str: "a text", type(None): "null"}.get(type(value), "a number or a truth value")


def _deeper(value: Json, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(item, levels - 1) for item in inner)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


class _Window:
    """The part of a text that is being looked at; what was read is forgotten."""

    def __init__(self, file: io.BufferedReader) -> None:
        self.text = ""
        self.at = 0
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")  # told apart by element

    def grow(self) -> bool:
        """Read on, doubling what is in view, so that a long element costs linear time."""
        data = self._file.read(max(_CHUNK, len(self.text) - self.at))
        self.text = self.text[self.at :] + self._decode.decode(data, final=not data)
        self.at = 0
        return bool(data)

    def next(self) -> str:
        """The next character that is no white space, "" at the end."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.grow():
                return ""


def _elements(file: io.BufferedReader, name: str) -> Iterator[Record]:
    window = _Window(file)
    number = 0
    try:
        window.next()
        window.at += 1
        while (character := window.next()) != "]":
            number += 1
            if number > 1:
                if character != ",":
                    raise ValueError("expected ',' or ']'")
                window.at += 1
                window.next()
            yield _element(window, name, number)
    except ValueError as error:
        yield Record(name, max(number, 1), fault=f"it is not JSON ({error}); what follows it is lost")


def _element(window: _Window, name: str, number: int) -> Record:
    """The element at hand. Raises ValueError for a syntax error, after which nothing can be read."""
    decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
    while True:
        try:
            value, end = decoder.raw_decode(window.text, window.at)
        except RecursionError:
            return _passed_over(window, name, number, f"it is not JSON ({_DEEP})")
        except json.JSONDecodeError:
            # cut by the window, or broken: only the end of the file tells
            if len(window.text) - window.at > RECORD_MAX:
                raise ValueError(f"or larger than {RECORD_MAX >> 20} MB") from None
            if not window.grow():
                raise
            continue
        except ValueError as error:  # a number that is none
            return _passed_over(window, name, number, f"it is not JSON ({error})")
        if end == len(window.text) and not isinstance(value, dict | list) and window.grow():
            continue  # a number may go on
        text, window.at = window.text[window.at : end], end
        if _ESCAPED.search(text):
            return Record(name, number, fault="it is not UTF-8")
        try:
            return _record(name, number, _sound(value, text))
        except ValueError as error:
            return Record(name, number, fault=f"it is not JSON ({error})")


def _passed_over(window: _Window, name: str, number: int, why: str) -> Record:
    """Step over an element that no parser takes, by its brackets alone."""
    depth = 0
    while True:
        pattern = _TOKEN if depth else _SCALAR if window.next() not in "[{" else _TOKEN
        found = pattern.search(window.text, window.at)
        if found is not None and found[0] == '"':
            found = _TEXT.match(window.text, found.start())
        if found is None:
            if len(window.text) - window.at > RECORD_MAX or not window.grow():
                raise ValueError(why)
            continue
        window.at = found.end()
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return Record(name, number, fault=why)
