"""What the skills of a run say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentos import frontmatter
from agentos.programs import is_script
from agentos.worker.tools.bundle_importer import BundleFiles


@dataclass(frozen=True, slots=True)
class SkillCard:
    """``files`` lie below its folder, SKILL.md first; ``scripts`` are those of them that may run.

    ``folder`` is where they lie in the sandbox.
    """

    name: str
    description: str
    folder: str
    files: tuple[str, ...]
    scripts: tuple[str, ...]


def skills_of(held: BundleFiles, paths: Sequence[str]) -> list[SkillCard]:
    """A card of each skill that has a SKILL.md, in the order of the paths."""
    found = []
    for path in paths:
        if path.count("/") != 2 or not (path.startswith("skill/") and path.endswith("/SKILL.md")):
            continue
        name = path.split("/")[1]
        inside = [
            other.removeprefix(f"skill/{name}/") for other in paths if other.startswith(f"skill/{name}/")
        ]
        files = ["SKILL.md", *(file for file in inside if file != "SKILL.md")]
        description, runs = "", True
        try:
            front = frontmatter.read(held.text(path))
            description, runs = " ".join(front.description.split()), front.runs_scripts
        except ValueError:  # it is there all the same
            pass
        scripts = [file for file in files if runs and is_script(f"skill/{name}/{file}")]
        found.append(
            SkillCard(name, description, str(held.root / "skill" / name), tuple(files), tuple(scripts))
        )
    return found
