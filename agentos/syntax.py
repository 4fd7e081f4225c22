"""Syntax trees, made by one thread at a time.

CPython 3.11 counts the depth of a tree in a place that all threads share while it turns its own tree
into Python objects: two threads in ``ast.parse`` can end with "SystemError: AST constructor recursion
depth mismatch". The kernel parses from many threads, so all of it parses here.
"""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator
from typing import TypeVar

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str) -> ast.Module:
    """As ``ast.parse``: raises SyntaxError, ValueError (a null byte), RecursionError or MemoryError.

    Warnings about doubtful escapes and comparisons are the author's business and are not shown.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """As ``ast.parse(mode="eval")``: the expression itself; raises as ``parse``."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, mode="eval").body


# --- Which functions of a source were entered: their labels, and marks that note each entry ------
# The worker marks every source of a resource that it loads, in every run alike, so what was entered is known
# without tracing and nothing inside can tell a trial by it. The kernel finds the same labels in the text. A
# generator expression belongs to the function around it. Readable inside the sandbox: standard library only.


MARK = "__entered__"  # the name that marks call; no edit may name it, as any new name with two underscores
LABEL_MAX = 400

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
N = TypeVar("N", bound=ast.AST)


def functions(tree: ast.Module, path: str) -> Iterator[tuple[Function, str]]:
    """Every function and lambda of the file with its label, ``path:line:qualified name``."""
    yield from _below(tree, path, "")


def first_line(node: Function) -> int:
    """Where it begins: at its first decorator, as a code object says."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(item.lineno for item in decorators)])


def marked(tree: ast.Module, path: str) -> ast.Module:
    """The tree, changed: each function calls ``MARK`` with its label before it does anything."""
    for node, label in list(functions(tree, path)):
        body = node.body if isinstance(node, ast.Lambda) else node.body[0]
        call = _at(
            body, ast.Call(_at(body, ast.Name(MARK, ast.Load())), [_at(body, ast.Constant(label))], [])
        )
        if isinstance(node, ast.Lambda):
            node.body = _at(body, ast.BoolOp(ast.Or(), [call, node.body]))  # a mark gives None
        else:
            node.body.insert(1 if _is_text(node.body[0]) else 0, _at(body, ast.Expr(call)))
    return tree


def _below(node: ast.AST, path: str, around: str) -> Iterator[tuple[Function, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
            at = f"@{child.col_offset}" if isinstance(child, ast.Lambda) else ""
            yield child, f"{path}:{first_line(child)}:{around}{name}{at}"[:LABEL_MAX]
            yield from _below(child, path, f"{around}{name}.")
        else:
            inside = f"{around}{child.name}." if isinstance(child, ast.ClassDef) else around
            yield from _below(child, path, inside)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _at(place: ast.AST, node: N) -> N:
    return ast.copy_location(node, place)
