"""The files of a bundle, held in memory from before any of its code runs.

What lies in the snapshot's directory belongs to the user that tools run as, so one call could rewrite
what the next one loads. Code and texts are therefore taken from here; only what a tool itself opens
beside its file comes from the directory.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from agentos import frontmatter
from agentos.programs import is_script
from agentos.syntax import MARK
from agentos.worker.tools.entered import _ENTERED, compiled, loading


class BundleFiles:
    """Registry path -> content; ``root`` is where the same files lie for those who open them."""

    def __init__(self, root: Path, files: Mapping[str, bytes]) -> None:
        self.root = root
        self._files = files

    def text(self, path: str) -> str:
        """The text of the file. Raises FileNotFoundError, or UnicodeDecodeError."""
        if path not in self._files:
            raise FileNotFoundError(f"{path} is not in the bundle")
        return self._files[path].decode("utf-8")

    def any_below(self, prefix: str) -> bool:
        """Whether a file of the bundle lies there."""
        return any(path.startswith(prefix) for path in self._files)

    def below(self, prefix: str) -> list[str]:
        """The paths of the bundle that lie there."""
        return [path for path in self._files if path.startswith(prefix)]

    def offer(self, folder: str) -> None:
        """Let imports find the modules in this folder of the bundle by name, after everything else."""
        if not any(isinstance(finder, _Finder) and finder.folder == folder for finder in sys.meta_path):
            sys.meta_path.append(_Finder(self, folder))

    def content(self, path: str) -> bytes | None:
        """The file's bytes, None when there is none."""
        return self._files.get(path)


class _Finder(MetaPathFinder):
    def __init__(self, held: BundleFiles, folder: str) -> None:
        self.folder = folder
        self._held = held

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        place = f"{self.folder}/{fullname.replace('.', '/')}"
        for file, inside in ((f"{place}/__init__.py", [f"{self._held.root}/{place}"]), (f"{place}.py", None)):
            content = self._held.content(file)
            if content is not None:
                name = f"{self._held.root}/{file}"
                loader = _Loader(name, content, file)
                return spec_from_file_location(
                    fullname, name, loader=loader, submodule_search_locations=inside
                )
        return None


class _Loader(SourceLoader):
    """Without ``path_stats`` no compiled file is looked for, so none can be planted."""

    def __init__(self, filename: str, content: bytes, path: str) -> None:
        self._filename = filename
        self._content = content
        self._path = path

    def get_code(self, fullname: str) -> CodeType:
        return compiled(self._content, self._filename, self._path)

    def exec_module(self, module: ModuleType) -> None:
        with loading():
            super().exec_module(module)

    def get_filename(self, fullname: str) -> str:
        return self._filename

    def get_data(self, path: str | bytes) -> bytes:
        if path != self._filename:
            raise FileNotFoundError(path)
        return self._content


# --- What the skills of a run say of themselves --------------------------------------------------


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


setattr(builtins, MARK, _ENTERED.add)
