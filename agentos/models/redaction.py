"""Keeps secrets out of everything that is stored, shown to a model, or given to a sandbox."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from agentos.domain import Json
from agentos.home import Home
from agentos.models.secrets import read_keys, values

if TYPE_CHECKING:
    from agentos.settings import Settings


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


def _encoded(value: str) -> Iterator[str]:
    """As it stands in URLs and hex, and within base64, wherever in the encoded text it begins."""
    data = value.encode("utf-8", "surrogatepass")
    yield from {data.decode("latin-1")} - {value}  # how a header is read that holds UTF-8
    quoted = {form(data, safe=safe) for form in (quote, quote_plus) for safe in ("", "/")}
    small = {re.sub("%..", lambda found: found[0].lower(), text) for text in quoted}
    yield from quoted | small | {data.hex(), data.hex().upper()}
    for before in range(3):
        text = base64.b64encode(b"\0" * before + data).decode()
        after = (before + len(data)) % 3  # bytes of the last group: what follows decides its last letter
        inner = text[(0, 2, 3)[before] : len(text) - (0, 3, 2)[after]]
        if len(inner) >= _SHORTEST:
            yield inner
            yield inner.translate(str.maketrans("+/", "-_"))


class Redactor:
    """Replaces secrets by ``[redacted:NAME]``. Safe from many threads; costs little where there are none."""

    def __init__(self, secrets: Collection[tuple[str, str]]) -> None:
        self._name_of: dict[str, str] = {}
        for name, value in sorted(secrets):
            # also as it stands within JSON text, such as the arguments of a tool call
            for spelt in (
                value,
                json.dumps(value)[1:-1],
                json.dumps(value, ensure_ascii=False)[1:-1],
                *_encoded(value),
            ):
                self._name_of.setdefault(spelt, name)
        literal = sorted(self._name_of, key=len, reverse=True)
        shapes = [f"(?P<{name.replace('-', '_')}>{shape})" for name, shape in _PATTERNS.items()]
        known = [f"(?P<known>{'|'.join(map(re.escape, literal))})"] if literal else []
        self._pattern = re.compile("|".join([*known, *shapes]))
        self._marks = (*_MARKS, *literal)
        # one with quotes has as many spellings as JSON lies within JSON, so no text is passed over
        self._odd = any(json.dumps(value)[1:-1] != value for _, value in secrets)

    def text(self, text: str) -> str:
        """The text without secrets; itself where there are none."""
        return self._pattern.sub(self._name, text) if self._suspect(text) else text

    def _suspect(self, text: str) -> bool:
        for mark in self._marks:  # noqa: SIM110 - a generator takes three times as long, and this is asked of every value
            if mark in text:
                return True
        return False

    def _name(self, found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        return f"[redacted:{self._name_of[found[0]] if kind == 'known' else kind.replace('_', '-')}]"

    def value(self, value: Json) -> Json:
        """The JSON value without secrets in any text or key; itself where there are none."""
        clean = not self._odd and not self._suspect(_as_text(value))
        return value if clean else self._clean(value)

    def _clean(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        return value
