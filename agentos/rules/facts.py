"""What rules see of an event: the text of it made plain, the hosts and paths in it.

``text`` is for patterns that refuse: letters that look alike are folded, what is hidden or quoted is uncovered, and
what is written in base64, hexadecimal or percent signs stands there decoded as well. ``hosts`` is for lists that
allow, so nothing is folded in it: a look-alike of an allowed host is another host.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import posixpath
import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from agentos.domain import Json
from agentos.rules.predicate import PredicateError, pattern

TEXT_MAX = 1 << 20  # characters that are looked at; more cannot be judged
LIST_MAX = 1_000  # entries of one list, where a predicate walks lists
NAMES_MAX = 200  # hosts and paths of one event
_WORDS_MAX = 100  # of an argument vector
_DECODED_MAX = 200  # pieces that are decoded

# Letters of other scripts that cannot be told from Latin ones on a screen (Unicode TR 39, the common ones).
_ALIKE = str.maketrans(
    "асеорхуіјѕԁһӏոսհցАВЕКМНОРСТХУІЈЅαορνιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ‐‑‒–—−⁄∕․·",
    "aceopxyijsdhlnuhgABEKMHOPCTXYIJSaopviABEZHIKMNOPTYX------//..",
)
_HIDDEN = frozenset({"Cf", "Cc", "Mn"})  # Unicode's categories of what is not seen
_CONTROLS = {code: None for code in (*range(32), 127) if chr(code) not in "\n\t"}
_BASE64 = r"[A-Za-z0-9+/_-]{8,}={0,2}"
_HEX = r"(?:0x)?((?:[0-9A-Fa-f]{2}){6,})"
_ESCAPED = r"(?:\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[0-3][0-7]{2})+"
_QUOTES = str.maketrans("", "", "'\"`\\^")
_BRACES = re.compile(r"\{(\w+(?:,[^\s,{}]+)+)\}")  # what a shell makes words of
_URL = r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://([^\s/?#'\"<>|\\]+)"
_PATH = r"(?:^|[\s'\"=:(,;|&<>`\[@])((?:~|\.{1,2})?/[^\s'\"`;|&<>()$*?{}]*|[\w.-]+(?:/[\w.-]+)+)"


def call_arguments(text: object) -> Mapping[str, Json]:
    """The arguments of a call in a model's reply; as one text where they are no table."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"arguments": str(text)}


def called(call: object) -> tuple[str, Mapping[str, Json]]:
    """Name and arguments of a call in a model's reply; what is none that we know is one of no name."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        function = {"arguments": str(call)}
    return str(function.get("name", "")), call_arguments(function.get("arguments"))


def plain(value: Json) -> str:
    """Every text and number in the value, a line each, names of fields included. Raises PredicateError."""
    found: list[str] = []
    size = 0
    for text in _leaves(value):
        size += len(text) + 1
        if size > TEXT_MAX:
            raise PredicateError(f"the call holds more than {TEXT_MAX:,} characters, which no rule looks at")
        found.append(text)
    return "\n".join(found)


def uncovered(text: str) -> str:
    """The text folded, and below it what it hides. Raises PredicateError."""
    folded = _folded(text)
    lines = [folded]
    for _ in range(2):  # what was encoded twice
        deeper = [_folded(piece) for piece in _decoded(lines[-1])]
        if not deeper:
            break
        lines.append("\n".join(deeper))
    for line in list(lines):
        bare = _bare(line)
        if bare != line:
            lines.append(bare)
    return "\n".join(lines)


def _bare(line: str) -> str:
    """The line as a shell reads it: without quotes, blanks for what stands for blanks."""
    bare = line.translate(_QUOTES)
    if "$" in bare:
        for sign in ("${IFS}", "$IFS"):
            bare = bare.replace(sign, " ")
        bare = bare.replace("$@", "").replace("$*", "")
    return _BRACES.sub(lambda match: match[1].replace(",", " "), bare) if "{" in bare else bare


def hosts(text: str, most: int = NAMES_MAX) -> list[str]:
    """The hosts of all URLs, in lower case and as DNS has them, in the order found. Raises PredicateError for more."""
    found: dict[str, None] = {}
    for match in pattern(_URL).finditer(text) if "://" in text else ():
        host = _host(match.group(1))
        if host:
            found[host] = None
        if len(found) > most:
            raise PredicateError(f"the call names more than {most} hosts")
    return list(found)


def paths(text: str, most: int = NAMES_MAX) -> list[str]:
    """What reads like a path, without its detours (a/../b is b), in the order found. Raises PredicateError for more."""
    found: dict[str, None] = {}
    for match in pattern(_PATH).finditer(pattern(_URL).sub(" ", text)):
        found[posixpath.normpath(match.group(1)).replace("//", "/")] = None
        if len(found) > most:
            raise PredicateError(f"the call names more than {most} paths")
    return list(found)


def longest_list(value: Json) -> int:
    """Entries of the longest list or table in it."""
    most, open_ = 0, [value]
    while open_:
        item = open_.pop()
        if isinstance(item, Mapping):
            most = max(most, len(item))
            open_.extend(item.values())
        elif isinstance(item, list | tuple):
            most = max(most, len(item))
            open_.extend(item)
    return most


def given(value: Json) -> Json:
    """The value as the predicate language can take it: no lone surrogates, no whole numbers beyond 64 bits."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        return float(value) if abs(value) < 1 << 1000 else float("inf")
    if isinstance(value, Mapping):
        return {given(str(key)): given(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [given(item) for item in value]
    return value


def _leaves(value: Json, depth: int = 0) -> Iterator[str]:
    if depth > 100:
        raise PredicateError("the call is nested more than 100 deep, which no rule looks at")
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _leaves(item, depth + 1)
    elif isinstance(value, list | tuple):
        if 1 < len(value) <= _WORDS_MAX and all(isinstance(item, str) for item in value):
            yield " ".join(value)  # an argument vector reads as the command that it is
        for item in value:
            yield from _leaves(item, depth + 1)
    elif value is not None and not isinstance(value, bool):
        yield str(value)[:400]


def _folded(text: str) -> str:
    if text.isascii():
        return text.translate(_CONTROLS)
    text = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode())
    hidden = {
        ord(letter): None for letter in set(text) - {"\n", "\t"} if unicodedata.category(letter) in _HIDDEN
    }
    return text.translate({**_ALIKE, **hidden})


def _decoded(text: str) -> Iterator[str]:
    if "%" in text and (found := unquote(text, errors="replace")) != text:
        yield found
    if "\\" in text and (found := pattern(_ESCAPED).sub(_unescaped, text)) != text:
        yield found
    for match in islice(pattern(_HEX).finditer(text), _DECODED_MAX):
        yield from _readable(binascii.unhexlify(match.group(1)))
    for match in islice(pattern(_BASE64).finditer(text), _DECODED_MAX):
        body = match.group(0).rstrip("=").replace("-", "+").replace("_", "/")
        try:
            yield from _readable(base64.b64decode(body + "=" * (-len(body) % 4)))
        except (binascii.Error, ValueError):
            continue


def _unescaped(match: Any) -> str:
    return codecs.decode(match.group(0).encode(), "unicode_escape")


def _readable(data: bytes) -> Iterator[str]:
    """The bytes as text, unpacked where they are packed; nothing where they are no text."""
    if data[:2] in (b"\x1f\x8b", b"\x78\x9c", b"\x78\xda"):
        try:
            data = zlib.decompressobj(47).decompress(data, 1 << 16)
        except zlib.error:
            return
    for encoding in ("utf-8", "utf-16-le"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        shown = sum(letter.isprintable() or letter in "\n\t\r" for letter in text)
        if text and shown >= 0.95 * len(text) and (encoding == "utf-8" or text.isascii()):
            yield text
            return


def _host(place: str) -> str:
    name = place.rpartition("@")[2]
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    name = unquote(name).strip(".").lower()
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name
