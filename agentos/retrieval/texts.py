"""What of a resource can be found by, and how text becomes words.

An entry is what is ranked: a tool, a skill, or one lesson of a memory.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentos import frontmatter
from agentos.domain import Kind, ResourceId
from agentos.programs import is_manifest
from agentos.resources import examine, is_tool_file, tool_name
from agentos.resources.documents import MAIN_FILE
from agentos.syntax import tree_of

SEARCHED = (Kind.TOOL, Kind.SKILL, Kind.MEMORY)

_BODY = 60_000  # characters of a body that count
_TOOLS = 4_000  # of what its tools say
_LESSONS = 2_000  # of one memory
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HEADINGS = 60  # of one skill
_HEADING = re.compile(r"^#{1,4}[ \t]+(\S.*)$", re.MULTILINE)
_CODE = re.compile(r"^(```|~~~).*?(^\1|\Z)", re.DOTALL | re.MULTILINE)
_LESSON_ID = re.compile(r"<!--\s*m-[0-9a-f]{8}\s*-->\s*$")  # no word of a lesson
_BULLET = re.compile(r"^\s*([-*+]|\d+[.)])\s+")

# Words that stand in any goal and say nothing of what it is about.
_STOPS = """
a about after all also an and any are as at be been before being but by can could did do does doing done
each every for from get give given had has have having he her here his how i if in into is it its just let
like make may me might more most must my need needs no not of off on once one only or other our out over
own please same shall she should show so some such tell than that the their them then there these they
this those through to too under until up us use used using very want was we were what when where which
while who whom whose why will with within without would you your
"""
STOP_WORDS = frozenset(_STOPS.split())


@dataclass(frozen=True, slots=True)
class IndexedText:
    """The columns that are searched, by what a match in them is worth. Of the body only counts what stands in it."""

    name: str
    description: str
    headings: str  # or names, descriptions and parameters of tools, or what a memory is about
    body: str = ""

    @property
    def whole(self) -> str:
        """One text, as a model of meaning reads it. Bodies made it find less, and cost three times as much."""
        return f"{self.name.replace('-', ' ')}: {self.description} {self.headings}".strip()


def entries(resource: ResourceId, files: Mapping[str, bytes]) -> list[IndexedText]:
    """What the resource can be found by, never empty; a resource that breaks its rules by its name."""
    reading = examine(resource, files).resource
    description = reading.description if reading else ""
    if resource.kind is Kind.MEMORY:
        return [IndexedText(resource.name, text, description) for text in lessons(files, resource) or [""]]
    tools = " ".join(_tools_text(files))[:_TOOLS]
    if resource.kind is not Kind.SKILL:
        return [IndexedText(resource.name, description, tools)]
    try:
        body = frontmatter.read(_main_text(files, resource)).body
    except ValueError:
        body = ""
    found = [match[1] for match in _HEADING.finditer(_CODE.sub("", body))]
    return [IndexedText(resource.name, description, f"{' '.join(found[:_HEADINGS])} {tools}", body[:_BODY])]


def lessons(files: Mapping[str, bytes], memory: ResourceId) -> list[str]:
    """The lessons of a memory in their order, as ``evolver/memory/lessons.py`` tells them apart.

    One a line, indented lines right below continue it. Headings and empty lines are none.
    """
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(_main_text(files, memory).splitlines()):
        if not line.strip() or line.startswith("#"):
            continue
        goes_on = found and line[0] in " \t" and not _BULLET.match(line)
        if goes_on and found[-1][0] + len(found[-1][1]) == number:
            found[-1][1].append(line)
        else:
            found.append((number, [line]))
    texts = (" ".join(_LESSON_ID.sub("", line).strip() for line in lines) for _, lines in found)
    return [_BULLET.sub("", text).strip() for text in texts][:_LESSONS]


def words(text: str) -> list[str]:
    """Lower-case words in their order; ``snake_case``, ``kebab-case`` and ``camelCase`` taken apart."""
    return [part.lower() for word in _WORD.findall(text) for part in _HUMP.split(word)]


def telling_words(text: str) -> list[str]:
    """The words that say what the text is about; all of them where it has no other."""
    found = words(text)
    return [word for word in found if word not in STOP_WORDS] or found


def _main_text(files: Mapping[str, bytes], resource: ResourceId) -> str:
    return files.get(f"{resource}/{MAIN_FILE[resource.kind]}", b"").decode("utf-8", "replace")


def _tools_text(files: Mapping[str, bytes]) -> Iterator[str]:
    """Name, description and parameters of each tool file; a file that is no Python says nothing."""
    for path in sorted(filter(is_tool_file, files)):
        if is_manifest(path):
            yield from _of_manifest(files[path])
            continue
        tree = tree_of(files[path])
        if tree is None:
            continue
        yield tool_name(path)
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TOOL":
                yield from _described(node.value)
            elif isinstance(node, ast.ClassDef) and node.name in ("Input", "Output"):
                yield from _fields(node)


def _of_manifest(content: bytes) -> Iterator[str]:
    try:
        says = json.loads(content)
        yield from (str(says.get("name", "")), str(says.get("description", "")))
        for name, field in says.get("input_schema", {}).get("properties", {}).items():
            yield from (str(name), str(field.get("description", "")))
    except (ValueError, AttributeError, RecursionError):
        return


def _fields(model: ast.ClassDef) -> Iterator[str]:
    for item in model.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id
            if isinstance(item.value, ast.Call):
                for keyword in item.value.keywords:
                    if keyword.arg == "description":
                        yield from _literal(keyword.value)


def _described(card: ast.expr) -> Iterator[str]:
    if isinstance(card, ast.Dict):
        for key, value in zip(card.keys, card.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "description":
                yield from _literal(value)


def _literal(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
