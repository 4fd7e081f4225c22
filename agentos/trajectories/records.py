"""Reads JSON records from files of any size, one at a time: JSON lines, one array, or one document.

A record that cannot be read is yielded as a fault, and reading goes on where that is possible:
after a broken line with the next line; what follows a broken element of an array is lost.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from agentos.errors import UserError
from agentos.identity import Json

RECORD_MAX = 64 << 20  # bytes of one record: what is held in memory at a time
DEPTH_MAX = 100
_CHUNK = 1 << 16
_LINES = (".jsonl", ".ndjson")
_DEEP = f"nested more than {DEPTH_MAX} levels deep"
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8, as `surrogateescape` shows them
_SPACE = re.compile(r"[ \t\r\n]*")


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


def files_of(given: Path) -> list[Path]:
    """The file itself, or all JSON files below a directory, sorted. Raises UserError for neither."""
    if given.is_file():
        return [given]
    found = sorted(path for path in given.rglob("*.json*") if path.suffix in (".json", *_LINES))
    if not found:
        what = "holds no .json or .jsonl file" if given.is_dir() else "is no file"
        raise UserError(f"'{given}' {what}; name files with records to import")
    return found


def read_records(path: Path) -> Iterator[Record]:
    """The file's records in order. Raises OSError when it cannot be read."""
    with path.open("rb") as file:
        head = file.peek(_CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
        if path.suffix in _LINES:
            yield from _lines(file, path.name)
        elif head.startswith(b"["):
            yield from _elements(file, path.name)
        elif _first_line_is_whole(file):
            yield from _lines(file, path.name)
        else:
            yield _parsed(path.name, 1, file.read(RECORD_MAX + 1))


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
    """The value of a JSON text. Raises ValueError, also for NaN and for what is nested too deeply."""
    try:
        return _shallow(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError(_DEEP) from None


def _shallow(value: Json) -> Json:
    if _deeper(value, DEPTH_MAX):
        raise ValueError(_DEEP)
    return value


def _record(name: str, number: int, value: Json) -> Record:
    if not isinstance(value, dict):
        return Record(name, number, fault=f"it must be an object, not {_kind(value)}")
    return Record(name, number, value)


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
    decoder = json.JSONDecoder(parse_constant=_refuse)
    while True:
        try:
            value, end = decoder.raw_decode(window.text, window.at)
        except RecursionError:
            raise ValueError(_DEEP) from None
        except json.JSONDecodeError:
            # cut by the window, or broken: only the end of the file tells
            if len(window.text) - window.at > RECORD_MAX:
                raise ValueError(f"or larger than {RECORD_MAX >> 20} MB") from None
            if not window.grow():
                raise
            continue
        foreign = _ESCAPED.search(window.text, window.at, end)
        window.at = end
        if foreign:
            return Record(name, number, fault="it is not UTF-8")
        return _record(name, number, _shallow(value))
