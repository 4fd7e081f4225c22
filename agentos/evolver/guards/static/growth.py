"""Rules about size: an edit that grows much is reviewed by nobody, whatever the trials say."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentos.evolver.guards.static.static_eval import FileNames
from agentos.evolver.policy import Screen
from agentos.evolver.screen_rules import RuleHit

_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.BoolOp,
    ast.comprehension,
    ast.match_case,
)
_NESTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a set of files is."""

    statements: int
    branches: int
    nesting: int  # of the deepest function
    constants: int  # bytes in texts and numbers that are no docstrings


def size_of(readings: Sequence[FileNames]) -> Size:
    """All files together."""
    nodes = [node for reading in readings for node in ast.walk(reading.tree)]
    return Size(
        statements=sum(isinstance(node, ast.stmt) for node in nodes),
        branches=sum(isinstance(node, _BRANCHES) for node in nodes),
        nesting=max((_nesting(node) for node in nodes if isinstance(node, _FUNCTIONS)), default=0),
        constants=sum(
            len(repr(node.value))
            for reading in readings
            for node in ast.walk(reading.tree)
            if isinstance(node, ast.Constant) and not isinstance(reading.parents.get(node), ast.Expr)
        ),
    )


def _nesting(node: ast.AST) -> int:
    deepest = 0
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                # "elif" is an If in the orelse of an If, and no deeper to the reader
                chained = (
                    isinstance(node, ast.If)
                    and name == "orelse"
                    and isinstance(child, ast.If)
                    and len(value) == 1
                )
                deepest = max(deepest, _nesting(child) + (isinstance(child, _NESTS) and not chained))
    return deepest


def growth(before: Sequence[FileNames], after: Sequence[FileNames], screen: Screen) -> Iterator[RuleHit]:
    """Where the edit passes the policy's limits."""
    old, new = size_of(before), size_of(after)
    path = after[0].path if after else ""
    for name, most in (
        ("statements", screen.max_new_statements),
        ("branches", screen.max_new_branches),
        ("constants", screen.max_new_constants),
    ):
        more = getattr(new, name) - getattr(old, name)
        if more > most:
            unit = "characters of constants" if name == "constants" else name
            yield RuleHit("growth", path, 0, f"{more} more {unit}, at most {most} are allowed")
    if new.nesting > max(old.nesting, screen.max_nesting):
        why = f"blocks nested {new.nesting} deep, at most {screen.max_nesting} are allowed"
        yield RuleHit("growth", path, 0, why)
