"""Skills as people really write them: each common break of a ``SKILL.md`` is loaded, with what was assumed.

The kinds of breaks are those that reports on public collections of skills name; every word here is our own. Each is
made in several skills, of another length, language and subject: over four hundred folders. Refused is only what
cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentos.registry.skill_folders.folder import skill_name
from agentos.registry.skill_folders.skills_folder import examine_folder


@dataclass(frozen=True)
class Head:
    """One skill, as it would be written without a break."""

    name: str
    description: str
    body: str


HEADS = (
    Head("invoice-totals", "Adds up invoices. Use when the user asks for totals.", "# Totals\n\nAdd them up.\n"),
    Head("k8s-rollback", "Takes a deployment back to the release before.", "# Rollback\n\n```bash\nkubectl rollout undo\n```\n"),
    Head("pdf-forms", "Fills forms in PDF files (AcroForm), and reads them.", "Run `scripts/fill.py`.\n\n---\n\n## Notes\n"),
    Head("sql-review", "Reviews SQL for indexes that are missing, N+1 queries and locks.", "# SQL\n\n1. Read the plan.\n2. Say what is slow.\n"),
    Head("meeting-notes", "Fasst Besprechungen zusammen, für alle, die fehlten.", "# Notizen\n\nKurz, mit Aufgaben für jeden.\n"),
    Head("translate-ja", "日本語の文書を英語に訳す。", "# 翻訳\n\n一文ずつ訳す。\n"),
    Head("log-digest", "Counts ERROR lines by cause; the most frequent comes first.", "| cause | count |\n|---|---|\n| disk | 3 |\n"),
    Head("release-notes", "Writes release notes 🚀 from the commits since the last tag", "<!-- generated -->\n\n# Release notes\n\nGroup by area.\n"),
    Head("x", "Does one thing.", "# X\n\nOne thing.\n"),
    Head("data-quality-checks-for-tables", "Looks for empty columns, duplicate keys and dates in the future in CSV, Parquet and SQLite tables. Use it before any report is written.", "# Checks\n\nSay what was looked at.\n" * 20),
)  # fmt: skip


@dataclass(frozen=True)
class Break:
    """A way to write it. ``text`` makes the file; ``said`` is in one of the warnings, "" where nothing is wrong.

    ``described`` makes the description that counts; ``folder`` the folder's name.
    """

    text: Callable[[Head], str | bytes]
    said: str = ""
    described: Callable[[Head], str] = lambda head: head.description
    folder: Callable[[Head], str] = lambda head: head.name
    file: str = "SKILL.md"


def front(head: Head, *more: str, name: str | None = None, description: str | None = None) -> str:
    """Front matter of these lines, and the body."""
    quoted = '"' + head.description.replace('"', '\\"') + '"'
    lines = [f"name: {head.name if name is None else name}", f"description: {description or quoted}", *more]
    return "---\n" + "\n".join(lines) + "\n---\n\n" + head.body


def with_colon(head: Head) -> str:
    return f"Use when: {head.description}"


BREAKS = {
    "as it should be": Break(front),
    # what was refused once: a quarter of all
    "number in metadata": Break(lambda head: front(head, "metadata:", "  version: 1.2"), "taken as texts"),
    "list in metadata": Break(lambda head: front(head, "metadata:", "  tags: [a, b]"), "taken as texts"),
    "mapping in metadata": Break(
        lambda head: front(head, "metadata:", "  host: {os: [linux], emoji: 📄}"), "taken as texts"
    ),
    "date and flag in metadata": Break(
        lambda head: front(head, "metadata:", "  updated: 2025-11-02", "  beta: yes"), "taken as texts"
    ),
    "metadata is a text": Break(lambda head: front(head, "metadata: none"), "'metadata' is no keys"),
    "another name": Break(lambda head: front(head, name="something-else"), "as its folder is"),
    "a title as name": Break(lambda head: front(head, name="Some Thing Else"), "as its folder is"),
    "upper-case name": Break(lambda head: front(head, name=head.name.upper() + "Y"), "as its folder is"),
    "underscores in the name": Break(lambda head: front(head, name=f"my_{head.name}"), "as its folder is"),
    "name of other letters": Break(lambda head: front(head, name="技能"), "as its folder is"),
    "name is a number": Break(lambda head: front(head, name="42"), "as its folder is"),
    "empty name": Break(lambda head: front(head, name=""), "there is no 'name'"),
    "no name": Break(
        lambda head: f'---\ndescription: "{head.description}"\n---\n{head.body}', "there is no 'name'"
    ),
    "colon without quotes": Break(
        lambda head: front(head, description=with_colon(head)), "is not YAML", with_colon
    ),
    "keywords after an empty line": Break(
        lambda head: front(head, description=f"{head.description}\n\n  Keywords: a, b"),
        "is not YAML",
        lambda head: f"{head.description} Keywords: a, b",
    ),
    "quote that does not end": Break(
        lambda head: front(head, description=f'"{head.description}'), "is not YAML"
    ),
    "begins with a backtick": Break(
        lambda head: front(head, description=f"`{head.name}` {head.description}"),
        "is not YAML",
        lambda head: f"`{head.name}` {head.description}",
    ),
    "begins with an at sign": Break(
        lambda head: front(head, description=f"@{head.name} {head.description}"),
        "is not YAML",
        lambda head: f"@{head.name} {head.description}",
    ),
    "hint that is two lists": Break(lambda head: front(head, "argument-hint: [a] [b]"), "is not YAML"),
    "tabs": Break(lambda head: front(head, "metadata:", "\tauthor: ada"), "is not YAML"),
    # ends, marks and fences
    "ends of lines of Windows": Break(lambda head: front(head).replace("\n", "\r\n")),
    "byte order mark": Break(lambda head: "\ufeff" + front(head)),
    "both": Break(lambda head: "\ufeff" + front(head).replace("\n", "\r\n")),
    "empty lines before": Break(lambda head: "\n\n" + front(head)),
    "spaces behind the marks": Break(lambda head: front(head).replace("---\n", "---  \n", 2)),
    "no end of the front matter": Break(
        lambda head: front(head).replace("\n---\n\n", "\n\n", 1), "the front matter "
    ),
    "no front matter": Break(
        lambda head: f"# {head.name}\n\n{head.description}\n\n{head.body}", "no front matter"
    ),
    "in a code fence": Break(
        lambda head: f"```yaml\n{front(head)}\n```\n\n{head.description}\n", "no front matter", lambda head: ""
    ),
    "rules in the body": Break(lambda head: front(head) + "\n---\n\nMore.\n\n---\n"),
    # keys
    "key twice": Break(lambda head: front(head, f"name: {head.name}"), "stands there twice"),
    "other keys": Break(
        lambda head: front(head, "version: 1.0.0", "author: ada", "user-invocable: true"),
        "unknown key 'version'",
    ),
    "model and context": Break(lambda head: front(head, "model: big", "context: fork"), "unknown key 'model'"),
    "license and compatibility": Break(
        lambda head: front(head, "license: MIT", "compatibility: needs Node 18 or later")
    ),
    "tools by commas": Break(lambda head: front(head, "allowed-tools: Read, Grep, Bash(git *)")),
    "tools as a list": Break(lambda head: front(head, "allowed-tools:", "  - Read", "  - Bash(npm run *)")),
    "tools as keys": Break(lambda head: front(head, "allowed-tools:", "  Read: true"), "'allowed-tools'"),
    # descriptions
    "folded": Break(lambda head: front(head, description=f">\n  {head.description}")),
    "literal, several lines": Break(lambda head: front(head, description=f"|\n  {head.description}\n  More.")),
    "very long": Break(
        lambda head: front(head, description='"' + "word " * 1_000 + '"'),
        "has 5000 characters",
        lambda head: ("word " * 205)[:1_024],
    ),
    "a list": Break(
        lambda head: front(head, description="[one, two]"), "is no text", lambda head: "one two"
    ),
    "none, but a text": Break(
        lambda head: f"---\nname: {head.name}\n---\n\n# H\n\n{head.description}\n", "no 'description'"
    ),
    "placeholder": Break(
        lambda head: front(head, description="{{ description }}"), "", lambda head: ""
    ),
    # folders and files
    "folder in capitals": Break(front, "as its folder is", folder=lambda head: f"My_{head.name}"),
    "folder with spaces": Break(front, "as its folder is", folder=lambda head: f"My {head.name}"),
    "file in small letters": Break(front, file="skill.md"),
    "file of mixed letters": Break(front, file="Skill.md"),
}  # fmt: skip

CASES = [(kind, head) for kind in BREAKS for head in HEADS]
# Nothing can be made of these.
REFUSED = {
    "empty": b"",
    "nothing but spaces": b" \n\n",
    "nothing between the marks or after": b"---\n---\n",
    "Latin-1": "---\nname: a\ndescription: für alle\n---\n".encode("latin-1"),
    "UTF-16": "---\nname: a\ndescription: x\n---\n".encode("utf-16"),
    "a picture": bytes(range(256)),
}


def put(place: Path, name: str, file: str, text: str | bytes) -> Path:
    folder = place / name
    folder.mkdir(parents=True)
    (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.mark.parametrize("kind", BREAKS)
def test_each_common_break_is_loaded_and_said(kind: str, tmp_path: Path) -> None:
    case = BREAKS[kind]
    for head in HEADS:
        folder = put(tmp_path, case.folder(head), case.file, case.text(head))
        found = examine_folder(skill_name(folder.name), folder)
        assert found.resource is not None, (head.name, found.faults)
        wanted = " ".join(case.described(head).split())
        assert wanted in " ".join(found.resource.description.split()), (head.name, found.resource.description)
        assert found.resource.description.strip()
        assert found.resource.evolvable
        if case.said:
            assert any(case.said in warning for warning in found.warnings), (head.name, found.warnings)
        else:
            assert kind == "placeholder" or not found.warnings, (head.name, found.warnings)


@pytest.mark.parametrize("kind", REFUSED)
def test_only_what_cannot_be_read_is_refused(kind: str, tmp_path: Path) -> None:
    folder = put(tmp_path, "a", "SKILL.md", REFUSED[kind])
    found = examine_folder("a", folder)
    assert (found.resource, len(found.faults)) == (None, 1)


def broken_heads(place: Path) -> Iterator[Path]:
    for number, (kind, head) in enumerate(CASES):
        case = BREAKS[kind]
        yield put(place / str(number), case.folder(head), case.file, case.text(head))


def test_the_corpus_is_large_and_all_of_it_is_loaded(tmp_path: Path) -> None:
    folders = [*broken_heads(tmp_path)]
    refused = [
        folder for folder in folders if examine_folder(skill_name(folder.name), folder).resource is None
    ]
    assert len(folders) >= 400
    assert not refused


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("Größe", "grosse"),
        ("Smørrebrød", "smorrebrod"),
        ("Naïve Plan", "naive-plan"),
        ("already-fine", "already-fine"),
        ("стол", ""),
    ],
)
def test_a_skill_is_called_as_its_folder_in_plain_letters(folder: str, name: str) -> None:
    """A letter that is none with a mark once went without a trace: skill/groe."""
    assert skill_name(folder) == name
