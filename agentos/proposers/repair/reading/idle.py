"""Names that a file makes and does not use: what somebody meant to use is often what is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.source import Program

_CONTRACT = frozenset({"TOOL", "Input", "Output"})


def idle_names(program: Program) -> frozenset[str]:
    """Constants of the module, variables, parameters and fields of ``Input`` that nothing reads."""
    read = {n.id for n in program.nodes(ast.Name) if isinstance(n.ctx, ast.Load)}
    read |= {n.attr for n in program.nodes(ast.Attribute)}
    made = frozenset(_made(program))
    return frozenset(name for name in made if name not in read and not name.startswith("_")) - _CONTRACT


def _made(program: Program) -> Iterator[str]:
    classes = [node for node in program.tree.body if isinstance(node, ast.ClassDef)]
    fields = [(klass, field) for klass in classes for field in _fields(klass)]
    of_classes = {field for _, field in fields}
    yield from (n.id for n in program.nodes(ast.Name) if isinstance(n.ctx, ast.Store) and n not in of_classes)
    yield from (argument.arg for argument in program.nodes(ast.arg))
    yield from (field.id for klass, field in fields if klass.name == "Input")


def _fields(klass: ast.ClassDef) -> Iterator[ast.Name]:
    for statement in klass.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target
