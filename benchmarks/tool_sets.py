"""The sets of faulty tools in `benchmarks/data/tools`: reading them, and writing them out for a home."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent / "data" / "tools"
SETS = (
    "develop",
    "report",
    "report2",
    "report3",
    "report4",
    "report5",
    "report6",
    "report7",
    "report8",
    "report9",
)
EDITS = ROOT.parent / "edits"  # labelled edits of one tool in each folder
SHOWN = 9  # the first tasks; the others are kept from the program

Case = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """One tool of a set."""

    folder: Path
    about: str
    fault: str
    edit: str
    tasks: list[Case]
    fresh: list[Case]
    state: bool

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def function(self) -> str:
        """The tool's own name within its skill."""
        return self.name.replace("-", "_")

    def files(self, version: str) -> dict[str, str]:
        """The Python files of ``version`` (right or faulty) by their names in the skill: the tool, then its helpers.

        A helper is ``_NAME.py``; ``faulty_NAME.py`` beside it is how it is where the fault is in there.
        """
        found = {f"{self.function}.py": self.folder / f"{version}.py"}
        for helper in sorted(self.folder.glob("_*.py")):
            other = self.folder / f"{version}{helper.name}"
            found[helper.name] = other if other.exists() else helper
        return {name: path.read_text(encoding="utf-8") for name, path in found.items()}

    @property
    def shown(self) -> list[Case]:
        return self.tasks[:SHOWN]

    @property
    def kept(self) -> list[Case]:
        return self.tasks[SHOWN:]


def folders(which: str) -> list[Path]:
    """The tools of a set, in the order of the alphabet."""
    return sorted(path.parent for path in (ROOT / which).glob("*/tool.json"))


def read(folder: Path) -> Tool:
    """The tool in a folder."""
    said = json.loads((folder / "tool.json").read_text(encoding="utf-8"))
    return Tool(
        folder,
        said["about"],
        said["fault"],
        said["edit"],
        said["tasks"],
        said["fresh"],
        said.get("state", False),
    )


@dataclass(frozen=True)
class Labelled:
    """An edit of a faulty tool, and whether it is right."""

    tool: Tool
    name: str
    kind: str
    why: str
    changed: tuple[str, str]  # the name in the skill of the file that it edits, and its new text
    wrong_on: Case | None  # arguments and files that show it

    @property
    def right(self) -> bool:
        return self.kind == "right"

    @property
    def files(self) -> dict[str, str]:
        """The tool's Python files with the edit, by their names in the skill: the tool, then its helpers."""
        return {**self.tool.files("faulty"), self.changed[0]: self.changed[1]}


def labelled(folder: Path) -> list[Labelled]:
    """The edits in a folder, of the tool that lies beside them or of the one with the folder's name in a set."""
    homes = [folder, *(path for which in reversed(SETS) for path in folders(which))]
    home = next(path for path in homes if path.name == folder.name and (path / "tool.json").exists())
    tool, found = read(home), []
    for edit in tomllib.loads((folder / "edits.toml").read_text(encoding="utf-8"))["edit"]:
        file = edit.get("file", f"{tool.function}.py")
        source = tool.files("faulty")[file]
        for old, new in edit["replace"]:
            if source.count(old) != 1:
                raise ValueError(f"{folder.name}, {edit['name']}: not once there: {old!r}")
            source = source.replace(old, new)
        shown = json.loads(edit["wrong_on"]) if "wrong_on" in edit else None
        found.append(Labelled(tool, edit["name"], edit["kind"], edit["why"], (file, source), shown))
    return found


def write_skill(tool: Tool, place: Path, version: str = "faulty") -> Path:
    """The skill's folder below ``place``. It says what the tool is for, and nothing of a fault."""
    folder = place / tool.name
    (folder / "tools").mkdir(parents=True)
    head = f"---\nname: {tool.name}\ndescription: {json.dumps(tool.about + '.')}\nlicense: Apache-2.0\n---\n"
    text = f"{head}\n# {tool.name}\n\n`{tool.function}`: {tool.about}.\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    for name, source in tool.files(version).items():
        (folder / "tools" / name).write_text(source, encoding="utf-8")
    return folder


def write_tasks(tool: Tool, tasks: list[Case], place: Path) -> Path:
    """A task file below ``place``, with its input files beside it."""
    documents = []
    for number, task in enumerate(tasks):
        inputs = []
        for position, (name, text) in enumerate(task["files"].items()):
            source = place / "inputs" / f"{number}-{position}"
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_bytes(text.encode())
            inputs.append({"path": str(source.relative_to(place)), "as": name})
        documents.append(
            {
                "name": task["name"],
                "goal": tool.about,
                "call": {"tool": f"{tool.name}/{tool.function}", "args": task["args"]},
                "inputs": inputs,
                "checks": task["checks"],
            }
        )
    place.mkdir(parents=True, exist_ok=True)
    file = place / "tasks.json"
    # JSON, because a key of digits such as 01827 is a text in every reading of it.
    file.write_text(json.dumps(documents, indent=1), encoding="utf-8")
    return file
