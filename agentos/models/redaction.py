"""Keeps secrets out of everything that is stored, shown to a model, or given to a sandbox."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote, quote_plus

from agentos.domain import Json
from agentos.errors import AgentOSError
from agentos.home import Home
from agentos.models.secrets import read_keys, values

if TYPE_CHECKING:
    from agentos.settings import Settings


T = TypeVar("T")
_SHORTEST = 8  # a shorter value would be found in innocent text
_SECRET_NAME = re.compile(r"(_API_KEY|_TOKEN|_SECRET|_ACCESS_KEY|_PASSWORD)$", re.IGNORECASE)

# What well-known keys look like. Each pattern is found in JSON text as well as in what it stands for.
_PATTERNS: Mapping[str, str] = {
    "private-key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    "aws-key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "github-token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
    "gitlab-token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "slack-token": r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    # not within much base64, before and behind, where a slash and such letters stand by chance
    "google-key": r"\bAIza(?:(?<![A-Za-z0-9+/]{60}AIza)[A-Za-z0-9_-]{35}|[A-Za-z0-9_-]{35}(?![A-Za-z0-9+/=]))",
    "api-key": r"\bsk-[A-Za-z0-9_-]{16,}",
    # from the beginning of a word alone: else a text of nothing but beginnings takes quadratic time
    "jwt": r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    "bearer": r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{20,}=*",
}

# One of these stands in every text that a pattern matches; looking for them is twenty times faster.
_MARKS = (
    *("-----BEGIN ", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    *("xox", "AIza", "sk-", "eyJ", "earer "),
)

_SHAPES = re.compile("|".join(f"(?P<{name.replace('-', '_')}>{shape})" for name, shape in _PATTERNS.items()))
_BEHIND = frozenset({"earer "})  # marks that stand before what is looked for; all others begin it

_as_text = json.JSONEncoder(ensure_ascii=False).encode  # made once: json.dumps makes one each time


def known_secrets(
    environ: Mapping[str, str], keys: Mapping[str, str], named: Collection[str]
) -> list[tuple[str, str]]:
    """Name and value of every secret of a home: the ``keys`` of its file, the variables that its
    providers name, and those whose names say it. A name may come twice, with two values."""
    found = [(name, value) for name, value in environ.items() if name in named or _SECRET_NAME.search(name)]
    return [(name, value) for name, value in (*found, *keys.items()) if len(value) >= _SHORTEST]


def redactor_of(home: Home, settings: Settings) -> Redactor:
    """Knows every secret of the home. Raises UserError when others may read its file of keys."""
    named = {provider.key_env for provider in settings.providers.values()}
    return Redactor([*known_secrets(os.environ, read_keys(home.keys), named), *values(home)])


# --- how programs write a value within other text ------------------------------------------------
# Letters and digits stand for themselves in all of it; the signs between them do not, and libraries differ in which of
# them they encode. So each sign is looked for in all its forms, and a run of letters tells where to look at all.

_RUN = re.compile(r"[A-Za-z0-9]+")
_URLSAFE = str.maketrans("+/", "-_")
_LEAST_RUN = 4  # a shorter one stands in too many texts: then whole spellings are looked for
# Bounds, so that no text of nothing but backslashes or percent signs takes quadratic time.
_BACKSLASHES = r"\\{1,16}"  # JSON within JSON doubles them each time
_PERCENT = r"%(?:25){0,3}"  # what was quoted is quoted again where an address stands within an address
_ENTITIES = {'"': "quot", "'": "apos", "<": "lt", ">": "gt", "&": "amp"}
_ESCAPES = {"\n": "n", "\r": "r", "\t": "t"}
_QUOTES = {"'": r"""'"'"'|'\\''""", '"': '""'}  # a shell's text is ended and begun again


def _run(value: str) -> str:
    """The longest run of letters and digits, "" where none is long enough to look for."""
    run = max(_RUN.findall(value), key=len, default="")
    return run if len(run) >= _LEAST_RUN else ""


def _written(value: str) -> str:
    """A pattern of the value as it stands in URLs, JSON, HTML, shell, SQL, patterns and quoted-printable mail."""
    return "".join(map(_sign, re.findall(r"\\+|'+|\"+|[^\\'\"]", value)))


def _sign(sign: str) -> str:
    """One character, or a run of backslashes or quotes, which one by one would match in too many ways."""
    if _RUN.fullmatch(sign):
        return sign
    one, count = sign[0], f"{{{len(sign)}}}"
    data = one.encode("utf-8", "surrogatepass")
    units = re.findall("....", one.encode("utf-16-be", "surrogatepass").hex())
    number = rf"#(?:0{{0,4}}{ord(one)}|x0{{0,4}}{ord(one):x})"
    ways = [
        "".join(rf"(?:{_PERCENT}|=|{_BACKSLASHES}x){byte:02x}" for byte in data),
        "".join(rf"{_BACKSLASHES}u{unit}" for unit in units),
        rf"&(?:amp;){{0,3}}(?:{'|'.join(filter(None, [number, _ENTITIES.get(one)]))});",
    ]
    if ord(one) in range(128, 256):
        ways.append(rf"(?:{_PERCENT}|{_BACKSLASHES}x){ord(one):02x}")
    coded = f"(?i:{'|'.join(ways)}){count}"
    if one == "\\":
        return rf"(?:\\{{{len(sign)},{16 * len(sign)}}}|{coded})"
    if one in _QUOTES:
        doubled = rf"(?:\\{{0,16}}{one}){{{len(sign)},{2 * len(sign)}}}"  # in SQL, YAML and CSV
        return f"(?:(?:{_QUOTES[one]}){count}|{doubled}|{coded})"
    if one in _ESCAPES:
        ways.append(f"{_BACKSLASHES}{_ESCAPES[one]}")
    as_latin = re.escape(data.decode("latin-1"))  # so is read a header that holds UTF-8
    plain = rf"\\{{0,16}}(?:{re.escape(one)}|{as_latin}{'|[+]' if one == ' ' else ''})"
    return f"(?:{plain}|(?i:{'|'.join(ways)}))"


def _within_base64(value: str) -> Iterator[str]:
    """What stays the same in the base64 of any text with the value in it; by where in a group of three bytes it begins."""
    data = value.encode("utf-8", "surrogatepass")
    for before in range(3):
        text = base64.b64encode(b"\0" * before + data).decode()
        after = (before + len(data)) % 3  # bytes of the last group: what follows decides its last letter
        inner = text[(0, 2, 3)[before] : len(text) - (0, 3, 2)[after]]
        if len(inner) >= _SHORTEST:
            yield inner


def _spellings(value: str) -> Iterator[tuple[str, str]]:
    """Patterns, each with a text that stands in whatever it matches."""
    data = value.encode("utf-8", "surrogatepass")
    yield from ((text, text) for text in (data.hex(), data.hex().upper()))
    for inner in _within_base64(value):
        if run := _run(inner):
            # either alphabet, also quoted for a URL
            letters = {"+": f"(?:[+-]|{_PERCENT}2[Bb])", "/": rf"(?:\\?/|_|{_PERCENT}2[Ff])"}
            yield "".join(letters.get(letter, letter) for letter in inner), run
        else:
            yield from ((re.escape(text), text) for text in (inner, inner.translate(_URLSAFE)))
    if run := _run(value):
        yield _written(value), run
    else:
        yield from ((re.escape(text), text) for text in _whole(value))


def _whole(value: str) -> set[str]:
    """The value and its usual spellings, where it has no run of letters to look for."""
    data = value.encode("utf-8", "surrogatepass")
    quoted = {form(data, safe=safe) for form in (quote, quote_plus) for safe in ("", "/")}
    small = {re.sub("%..", lambda found: found[0].lower(), text) for text in quoted}
    json_texts = {json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False)}
    marked = {escape(value, quote=both) for both in (True, False)}
    shell = {value.replace("'", ended) for ended in ("""'"'"'""", r"'\''")}
    return {value, data.decode("latin-1")} | json_texts | quoted | small | marked | shell


def _without_shapes(text: str) -> str:
    """The text without what looks like a key.

    The pattern is tried where a mark stands: to try it at each letter takes 0.15 s for a megabyte of base64, in
    which marks stand by chance.
    """
    starts = {found for mark in _MARKS for found in _starts(mark, text)}
    parts, end = list[str](), 0
    for start in sorted(starts):
        if start >= end and (found := _SHAPES.match(text, start)):
            parts += [text[end:start], f"[redacted:{(found.lastgroup or '').replace('_', '-')}]"]
            end = found.end()
    return "".join([*parts, text[end:]])


def _starts(mark: str, text: str) -> Iterator[int]:
    """Where a match of the mark's pattern can begin."""
    place = text.find(mark)
    while place >= 0:
        yield place + (len(mark) if mark in _BEHIND else 0)
        place = text.find(mark, place + 1)


class Redactor:
    """Replaces secrets by ``[redacted:NAME]``. Safe from many threads; costs little where there are none."""

    def __init__(self, secrets: Collection[tuple[str, str]]) -> None:
        # the longest first: of two that begin alike it is the one meant
        ordered = sorted(secrets, key=lambda pair: (-len(pair[1]), pair))
        self._known = [
            (mark, pattern, f"[redacted:{name}]")
            for name, value in ordered
            for pattern, mark in _spellings(value)
        ]
        self._marks = (*_MARKS, *dict.fromkeys(mark for mark, _, _ in self._known))
        # one that JSON writes in another way has as many spellings as JSON lies within JSON: no text is passed over
        self._odd = any(_as_text(mark)[1:-1] != mark for mark in self._marks)

    def text(self, text: str) -> str:
        """The text without secrets; itself where there are none."""
        if not self._suspect(text, self._marks):
            return text
        for mark, pattern, instead in self._known:
            # one pattern of all would be tried at each letter, this one is found by its beginning
            if mark in text:
                text = re.sub(pattern, lambda _, instead=instead: instead, text)  # type: ignore[misc]
        return _without_shapes(text)

    @staticmethod
    def _suspect(text: str, marks: Collection[str]) -> bool:
        for mark in marks:  # noqa: SIM110 - a generator takes three times as long, and this is asked of every value
            if mark in text:
                return True
        return False

    def value(self, value: Json) -> Json:
        """The JSON value without secrets in any text or key; itself where there are none."""
        clean = not self._odd and not self._suspect(_as_text(value), self._marks)
        return value if clean else self._clean(value)

    def _clean(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        return value


# --- What the settings say of models now -------------------------------------------------------


class LiveConfig(Generic[T]):
    """What ``agentos.toml`` and ``keys.toml`` say of models now: a daemon that runs need not be restarted for a model.

    Looks at both files whenever it is asked; reads them when they changed. All other settings are those of its start.
    What cannot be read changes nothing, and is ``told`` once. Thread-safe.
    """

    def __init__(
        self, home: Home, settings: Settings, setup_of: Callable[[Settings], T], told: Callable[[str], None]
    ) -> None:
        """``setup_of`` gives what the gateway has to know. Raises UserError when others may read the file of keys."""
        self._home = home
        self._setup_of = setup_of
        self._told = told
        # as text: this is looked at several times in each run
        self._paths = [str(path) for path in (home.settings, home.keys, home.secrets)]
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._take(settings)

    def model(self) -> str:
        """The setting ``model``."""
        self._look()
        return self._settings.model

    def setup(self) -> T:
        """What the gateway has to know; the same object until something changed."""
        self._look()
        return self._setup

    def redact(self, value: Json) -> Json:
        """The value without any secret of the home."""
        self._look()
        return self._redactor.value(value)

    def _look(self) -> None:
        with self._lock:
            stamps = self._stamps()
            if stamps == self._seen:
                return
            from agentos.settings import load_settings  # slow to import, and most who redact read none

            try:
                self._take(load_settings(self._home.settings))
            except AgentOSError as error:
                self._told(str(error))
            self._seen = stamps  # not where the machine cannot read them: then the next one looks again

    def _take(self, settings: Settings) -> None:
        self._redactor = redactor_of(self._home, settings)
        self._settings = settings
        self._setup = self._setup_of(settings)

    def _stamps(self) -> Sequence[tuple[int, ...]]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> tuple[int, ...]:
    try:
        about = os.stat(path)
    except OSError:
        return ()
    return about.st_ino, about.st_mtime_ns, about.st_size
