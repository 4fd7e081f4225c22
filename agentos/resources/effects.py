"""What a tool says that it does to the world, read in its source without running anything; and what grants or bounds it."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from agentos.domain import Effect, Snapshot, dataclass
from agentos.programs import SCRIPT_EFFECTS, is_manifest, is_script
from agentos.syntax import parse

if TYPE_CHECKING:
    from agentos.ports import Snapshots


@dataclass(frozen=True, slots=True)
class Effects:
    """What a tool's source declares of its effects."""

    effects: frozenset[str]
    idempotent: bool  # making the same call twice is as good as making it once


@lru_cache(maxsize=256)
def declared(path: str, source: bytes) -> Effects:
    """Read ``TOOL`` without running anything. What cannot be read counts as acting on the outside."""
    if is_script(path):
        return Effects(frozenset(SCRIPT_EFFECTS), False)
    cards = []
    try:
        if is_manifest(path):
            says = json.loads(source)
            return Effects(frozenset(map(str, says["effects"])), says.get("idempotent") is True)
        for node in parse(source.decode("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            named = any(isinstance(target, ast.Name) and target.id == "TOOL" for target in targets)
            if named and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                cards.append(ast.literal_eval(node.value))
        # A file that says it twice is held to all that it says.
        effects = frozenset(str(effect) for card in cards for effect in card["effects"])
        idempotent = bool(cards) and all(card.get("idempotent") is True for card in cards)
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError):
        effects, idempotent = frozenset(), False
    return Effects(effects or frozenset({Effect.EXTERNAL}), idempotent)


def recorded_effects(snapshots: Snapshots) -> Callable[[Snapshot, str], Sequence[str]]:
    """What a tool said that it does, as a run on the snapshot had it: sorted, () for a path that is not there.

    Each is read once. Raises Unavailable.
    """
    known: dict[tuple[str, str], Sequence[str]] = {}

    def effects(snapshot: Snapshot, path: str) -> Sequence[str]:
        key = (snapshot.tree, path)
        if key not in known:
            source = snapshots.files(snapshot, path).get(path) if path else None
            known[key] = sorted(declared(path, source).effects) if source is not None else ()
        return known[key]

    return effects


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
