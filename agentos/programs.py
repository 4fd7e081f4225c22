"""Programs in the registry: a tool in any language (``tool.json``) and the scripts of skills.

Which paths are some, what they need, and what in their files grants or bounds something.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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


# --- Grants and bounds in data and scripts: an edit has to leave them as they are -----------------


# Keys that grant or bound something, wherever they stand; of a program's document only the command may change at all.
KEPT_KEYS = frozenset(
    {
        "effects", "timeout_s", "timeout", "memory_mb", "memory", "dependencies", "secrets", "mcp", "idempotent", "env",
        "environment", "egress", "permissions", "allow", "allowed-tools", "evolvable", "limits", "wall_s", "checks",
    }
)  # fmt: skip
# Lines of a script that set limits, grants or the environment, end it, or run what stands nowhere else.
_KEPT_LINE = re.compile(
    r"""^\s*(?:\w+=(?:"[^"]*"|'[^']*'|\$\w+|[^\s"'$]\S*)\s+\S|(?:PATH|HOME|IFS|LC_\w+|LANG|LD_\w+|PYTHON\w*|BASH_ENV|ENV)=)"""
    r"|(?<![\w$./-])(?:ulimit|timeout|nice|umask|ch(?:mod|own|grp|root)|sudo|su|export|unset|set|shopt|trap|exit|return|kill|"
    r"source|eval|exec|env|xargs|rm|mv|cp|ln|dd|mkdir|tee|curl|wget|nc|ssh|python3?|perl|bash|sh)(?![\w-])"
    r"|^\s*\.\s|<\("
)
_LEADS_OUT = re.compile(r"(?<![0-9&])>")  # into a file; within quotes it compares
_IN_QUOTES = re.compile(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*\"""")
_WORD = re.compile(r"[A-Za-z_][\w./-]*")


def is_kept_line(line: str) -> bool:
    """Whether an edit has to leave this line of a script as it is."""
    return bool(_KEPT_LINE.search(line) or _LEADS_OUT.search(_IN_QUOTES.sub("", line)))


def widened(path: str, old: str, new: str) -> str:
    """How an edit of data or of a script loosens what the tool may do or is held to, "" where it does not."""
    name = path.rpartition("/")[2]
    if name == "tool.json":
        return _document_widened(old, new)
    if path.endswith((".sh", ".bash")):
        return _script_widened(old, new)
    before, after = (Counter(_kept_entries(text)) for text in (old, new))
    changed = sorted((before - after) + (after - before))
    return f"it changes {changed[0]}, which grants or bounds something" if changed else ""


def _document_widened(old: str, new: str) -> str:
    try:
        before, after = json.loads(old), json.loads(new)
        first = before["command"][0] == after["command"][0] and len(before["command"]) == len(
            after["command"]
        )
    except (ValueError, RecursionError, KeyError, IndexError, TypeError):
        return "its document cannot be read"
    others = sorted(key for key in {*before, *after} - {"command"} if before.get(key) != after.get(key))
    if others:
        return f"it changes {others[0]} of the document; only the command may change"
    return "" if first else "it starts another program"


def _script_widened(old: str, new: str) -> str:
    before, after = (Counter(filter(is_kept_line, text.splitlines())) for text in (old, new))
    if lines := sorted((before - after) + (after - before)):
        return (
            f"it changes the line {lines[0].strip()[:80]!r}, which sets a limit, a grant or the environment"
        )
    known = {*_WORD.findall(old), *HARMLESS}
    words = [word for line in new.splitlines() for word in _WORD.findall(re.sub(r"(?<!\w)-\w+", "", line))]
    quoted = {word for text in re.findall(r"'[^'\n]*'", new) for word in _WORD.findall(text)}
    unknown = sorted(set(words) - known - quoted)
    if unknown:
        return f"it runs or names {unknown[0]}, which the script does not"
    opened = [len(re.findall(r"`|\$\(|[<>]\(|(?<!&)&(?!&)", text)) for text in (old, new)]
    return "it starts a command within another one" if opened[1] > opened[0] else ""


HARMLESS = ("sort", "uniq", "head", "tail", "grep", "true")  # what a search may put into a pipe


def _kept_entries(text: str) -> Iterator[str]:
    """Lines, and what stands on one line, in which such a key is set."""
    for found in re.finditer(r"""(?<![\w-])([\w-]+)["']?\s*[:=]\s*([^,}\n]*)""", text):
        if found[1] in KEPT_KEYS:
            yield f"{found[1]}: {found[2].strip()}"
    for found in re.finditer(r"^[ \t]*\[+([\w.-]+)\]+", text, re.MULTILINE):
        if KEPT_KEYS & {*found[1].split(".")}:
            yield found[1]
