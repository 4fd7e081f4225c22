"""Names that a file makes and does not use: what somebody meant to use is often what is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_CONTRACT = frozenset({"TOOL", "Input", "Output"})


def idle_names(tree: ast.Module) -> frozenset[str]:
    """Constants of the module, variables, parameters and fields of ``Input`` that nothing reads."""
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    read |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return (
        frozenset(name for name in _made(tree) if name not in read and not name.startswith("_")) - _CONTRACT
    )


def _made(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if not _is_field(tree, node):
                yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ClassDef) and node.name == "Input":
            yield from (
                f.target.id
                for f in node.body
                if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)
            )


def _is_field(tree: ast.Module, node: ast.Name) -> bool:
    """Whether the name is a field of a class at the top of the file."""
    return any(
        isinstance(statement, ast.AnnAssign) and statement.target is node
        for klass in tree.body
        if isinstance(klass, ast.ClassDef)
        for statement in klass.body
    )
