"""Which registry paths are programs: a tool in any language (``tool.json``) and the scripts of skills."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MANIFEST = "tool.json"
LOCK_FILE = "wheels.lock"  # what a tool's wheels are, beside it
SCRIPT_EFFECTS = ("read", "write")  # nothing says more exactly what a script does

# What starts a file that does not say it itself; the first that the sandbox has.
INTERPRETERS: Mapping[str, tuple[str, ...]] = {
    ".py": ("python3",),
    ".sh": ("bash", "sh"),
    ".bash": ("bash",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    ".rb": ("ruby",),
    ".pl": ("perl",),
    ".lua": ("lua",),
    ".php": ("php",),
    ".r": ("Rscript",),
    ".awk": ("awk",),
}
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][^;#]*?)\s*(?:;.*|\s#.*)?$")
_METADATA = re.compile(r"^# /// script[ \t]*\n((?:#(?: .*)?\n)+?)# ///[ \t]*$", re.MULTILINE)


def is_manifest(path: str) -> bool:
    """Whether the registry path is a ``tool.json`` in a tool's place."""
    match path.split("/"):
        case ["tool", _, file]:
            return file == MANIFEST
        case ["skill", _, "tools", folder, file]:
            return file == MANIFEST and not folder.startswith("_")
    return False


def is_script(path: str) -> bool:
    """Whether the registry path is a program that a skill brings beside its tools."""
    parts = path.split("/")
    if (
        len(parts) < 3
        or parts[0] != "skill"
        or parts[2] == "tools"
        or any(part.startswith(".") for part in parts)
    ):
        return False
    suffix = PurePosixPath(parts[-1]).suffix.lower()
    return suffix in INTERPRETERS or (not suffix and "scripts" in parts[2:-1])


def script_of(reference: str, paths: Iterable[str]) -> str:
    """The registry path of the script that ``skill/scripts/x.py`` means, "" when it means none of ``paths``."""
    path = f"skill/{reference}"
    return path if is_script(path) and path in paths else ""


def requirements(files: Mapping[str, bytes]) -> set[str]:
    """What the scripts among a skill's files need: its ``requirements.txt`` and inline metadata (PEP 723).

    Plain names and versions; options, addresses and markers are left out.
    """
    found: set[str] = set()
    for path, content in files.items():
        name = path.rpartition("/")[2]
        if not path.startswith("skill/"):
            continue
        if name == "requirements.txt":
            found |= {match[1] for line in _text(content).splitlines() if (match := _REQUIREMENT.match(line))}
        elif is_script(path) and name.endswith(".py") and (block := _METADATA.search(_text(content))):
            toml = "\n".join(line[2:] for line in block[1].splitlines())
            found |= _dependencies(toml)
    return found


def _dependencies(toml: str) -> set[str]:
    try:
        listed = tomllib.loads(toml).get("dependencies", [])
    except ValueError:
        return set()
    texts = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    return {match[1] for text in texts if (match := _REQUIREMENT.match(text))}


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").replace("\r\n", "\n")
