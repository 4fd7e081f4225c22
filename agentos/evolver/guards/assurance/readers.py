"""Does an edit change anything that a model reads, or only what a tool computes?"""

from __future__ import annotations

import ast

from agentos.domain import Candidate
from agentos.ports import Snapshots
from agentos.resources import is_tool_file
from agentos.syntax import parse


def is_read(snapshots: Snapshots, candidate: Candidate) -> bool:
    """Whether an agent's model may be told something else: all but the bodies of a tool's functions is text to it."""
    if candidate.migration is not None:
        return True
    for path, text in candidate.edit.files.items():
        before = snapshots.files(candidate.base, path).get(path)
        if not is_tool_file(path) or before is None:
            return True
        if _told(before.decode("utf-8", "replace")) != _told(text):
            return True
    return False


def _told(source: str) -> list[str]:
    """The statements of a tool's file of which its card is made: all that define no function, bodies left out."""
    try:
        module = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [source]
    kept = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
        kept.append(ast.dump(node))
    return kept
