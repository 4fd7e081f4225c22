"""What a skill's ``SKILL.md`` says of it: refused only where it cannot be read, else what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentos import frontmatter
from agentos.domain import Json
from agentos.frontmatter import FrontMatter
from agentos.resources.documents import ReadingNotes

_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_EVOLVABLE_KEY = "agentos-evolvable"
_LINES_MAX = 500


def examine_skill(name: str, content: bytes, notes: ReadingNotes) -> tuple[str, dict[str, Json]]:
    """Description and settings of the skill whose folder is called ``name``; faults go to ``notes``."""
    try:
        front = frontmatter.read(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        notes.faults.append(f"SKILL.md is not UTF-8 text (byte {error.start})")
        return "", {}
    except ValueError as error:
        notes.faults.append(f"SKILL.md: {error}")
        return "", {}
    said: list[str] = [*front.warnings]
    _examine_name(name, front, said)
    metadata = _metadata(front.values, said)
    unknown = [key for key in front.values if key not in _KEYS]
    said += [f"unknown key '{key}' (put your own under 'metadata')" for key in unknown]
    if front.body.count("\n") > _LINES_MAX:
        said.append(f"the body has more than {_LINES_MAX} lines; move detail to references/")
    notes.warnings += [f"SKILL.md: {warning}" for warning in said]
    tools = None if front.tools is None else list(front.tools)
    return front.description, {"evolvable": _evolvable(metadata, notes), "allowed_tools": tools}


def _examine_name(name: str, front: FrontMatter, said: list[str]) -> None:
    own = front.values.get("name")
    if own is None:
        said.append(f"there is no 'name'; it is called '{name}' as its folder is")
    elif own != name:
        said.append(f"'name' is '{own}', but it is called '{name}' as its folder is")


def _metadata(values: Mapping[str, Any], said: list[str]) -> Mapping[str, Any]:
    metadata = values.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        said.append("'metadata' is no keys and values; it was passed over")
    elif metadata and not all(isinstance(part, str) for pair in metadata.items() for part in pair):
        said.append("values of 'metadata' that are no texts were taken as texts")
    return metadata if isinstance(metadata, dict) else {}


def _evolvable(metadata: Mapping[str, Any], notes: ReadingNotes) -> bool:
    """What cannot be read as yes keeps every evolution away."""
    value = str(metadata.get(_EVOLVABLE_KEY, "true")).strip().lower()
    if value not in ("true", "false"):
        notes.warnings.append(
            f'SKILL.md: \'metadata.{_EVOLVABLE_KEY}\' is not "true" or "false"; it does not evolve'
        )
    return value == "true"
