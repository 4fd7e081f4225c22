"""``SKILL.md`` as people write it: what its front matter says, read as leniently as other loaders do.

Knows nothing of the kernel: the harness reads skills with it inside a sandbox.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

FRONT_MATTER_MAX = 64 << 10  # characters
DESCRIPTION_MAX = 1_024
_HEAD = 20_000  # characters of a body in which a description is looked for

_FENCED = re.compile(r"\s*---[ \t]*\r?\n(.*?)(?:^|\r?\n)---[ \t]*(?:\r?\n|$)", re.DOTALL | re.MULTILINE)
_OPEN = re.compile(r"\s*---[ \t]*\r?\n(.*?)(?:\r?\n[ \t]*\r?\n|\r?\n(?=#)|$)", re.DOTALL)
_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_FENCE = re.compile(r"(```|~~~).*?(\1|\Z)|<!--.*?(-->|\Z)", re.DOTALL)
_MARKS = re.compile(r"[*_`]{1,3}|!?\[([^\]]*)\]\([^)]*\)")
_WORDS = re.compile(r"[^\s,(]+(?:\([^)]*\))?")
_SHELLS = {"bash", "shell", "sh", "execute", "exec", "terminal", "python", "run_script", "run_command", "*"}


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """``values`` as they stand there, ``description`` at most 1,024 characters, ``warnings`` what was assumed.

    ``tools`` are the words of ``allowed-tools``, None where it says nothing.
    """

    values: Mapping[str, Any]
    description: str
    body: str
    tools: tuple[str, ...] | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def runs_scripts(self) -> bool:
        """Whether ``allowed-tools`` lets the skill's scripts run: it is absent, or names a shell."""
        return self.tools is None or any(tool.partition("(")[0].lower() in _SHELLS for tool in self.tools)


def read(text: str) -> FrontMatter:
    """Front matter and body of the text of a ``SKILL.md``. Raises ValueError when there is nothing to read."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ValueError("it is empty")
    warnings: list[str] = []
    front, body = _apart(text, warnings)
    values = _values(front, warnings)
    description = _description(values, body, warnings)
    if not description:
        raise ValueError("it has no 'description' and no text to take one from")
    return FrontMatter(values, description, body, _tools(values, warnings), warnings)


def _apart(text: str, warnings: list[str]) -> tuple[str, str]:
    if match := _FENCED.match(text):
        front, body = match[1], text[match.end() :]
    elif match := _OPEN.match(text):
        warnings.append("the front matter has no end; its first paragraph was taken for it")
        front, body = match[1], text[match.end() :]
    else:
        warnings.append("there is no front matter between two lines '---'")
        front, body = "", text
    if len(front) > FRONT_MATTER_MAX:
        raise ValueError(f"its front matter has more than {FRONT_MATTER_MAX} characters")
    return front, body


def _values(front: str, warnings: list[str]) -> dict[str, Any]:
    values, said = _parsed(front)
    warnings += said
    return dict(values)


@lru_cache(maxsize=32)  # an evolution reads the same few skills some ten times
def _parsed(front: str) -> tuple[Mapping[str, Any], Sequence[str]]:
    import yaml

    warnings: list[str] = []
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(front, yaml.CSafeLoader)):
            raise ValueError("it uses YAML aliases")
        node = yaml.compose(front, yaml.CSafeLoader)
        value = yaml.load(front, yaml.CSafeLoader)
        if value is not None and not isinstance(value, dict):
            raise ValueError("it is no keys and values")
    # a tag whose text is none of its kind (!!bool x) raises what its constructor happens to
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        why = (str(error).splitlines() or ["unknown"])[0]
        warnings.append(f"the front matter is not YAML ({why}); it was read line by line")
        return _by_line(front), warnings
    keys = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    warnings += [
        f"'{key}' stands there twice; the last one counts" for key in sorted({*keys}) if keys.count(key) > 1
    ]
    return {str(key): item for key, item in (value or {}).items()}, warnings


def _by_line(front: str) -> dict[str, Any]:
    """``key: rest of the line``, with the indented lines below; those that are keys again become a mapping."""
    lines: dict[str, list[str]] = {}
    key = ""
    for line in front.splitlines():
        if match := _KEY.fullmatch(line.rstrip()):
            key = match[1]
            lines[key] = [match[2] or ""]
        elif key and line[:1] in (" ", "\t", ""):
            lines[key].append(line)
    found: dict[str, Any] = {}
    for key, (first, *rest) in lines.items():
        inner = _by_line(textwrap.dedent("\n".join(rest))) if rest and not first.strip() else {}
        head = "" if first.strip() in (">", "|", ">-", "|-", ">+", "|+") else first
        items = [line.strip() for line in rest if line.strip()]
        if items and not first.strip() and all(item.startswith("- ") for item in items):
            found[key] = [_unquoted(item[2:].strip()) for item in items]
        else:
            found[key] = inner or _unquoted(" ".join(" ".join([head, *rest]).split()))
    return found


def _unquoted(text: str) -> str:
    """Without the marks around all of it; one that only begins or only ends it belongs to the words."""
    around = text[:1]
    return text[1:-1] if len(text) > 1 and around in "\"'" and text[-1] == around else text


def _description(values: Mapping[str, Any], body: str, warnings: list[str]) -> str:
    said = values.get("description")
    text = "" if said is None or isinstance(said, dict) else said
    if not isinstance(text, str):
        text = " ".join(map(str, text)) if isinstance(text, list) else str(text)
        warnings.append("'description' is no text; it was taken as one")
    if not text.strip():
        text = _first_paragraph(body) or str(values.get("name") or "")
        if text:
            warnings.append("there is no 'description'; the first paragraph was taken for it")
    if len(text) > DESCRIPTION_MAX:
        warnings.append(f"'description' has {len(text)} characters; the first {DESCRIPTION_MAX} count")
        text = text[:DESCRIPTION_MAX]
    return text


def _first_paragraph(body: str) -> str:
    body = body[:_HEAD]
    paragraphs = re.split(r"\n[ \t\r]*\n", _FENCE.sub("", body))
    lines = [
        [line for line in part.splitlines() if not re.match(r"\s*([#=>|-]|\d+\.)", line)]
        for part in paragraphs
    ]
    for told in lines:
        if text := " ".join(_MARKS.sub(r"\1", " ".join(told)).split()):
            return text[:DESCRIPTION_MAX]
    heading = re.search(r"^#+[ \t]*(\S.*)$", body, re.MULTILINE)
    return heading[1].strip() if heading else ""


def _tools(values: Mapping[str, Any], warnings: list[str]) -> tuple[str, ...] | None:
    said = values.get("allowed-tools", values.get("allowed_tools"))
    if said is None:
        return None
    if isinstance(said, str):
        return tuple(_WORDS.findall(said.strip("[]")))
    if isinstance(said, list):
        return tuple(str(tool) for tool in said)
    warnings.append("'allowed-tools' is neither a text nor a list; it was passed over")
    return None
