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
from typing import Any, TypeVar

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str) -> ast.Module:
    """As ``ast.parse``: raises SyntaxError, also for what is nested too deeply, or ValueError (a null byte).

    Warnings about doubtful escapes and comparisons are the author's business and are not shown.
    """
    tree: ast.Module = _parsed(source, "exec")
    return tree


def parse_expression(source: str) -> ast.expr:
    """As ``ast.parse(mode="eval")``: the expression itself; raises as ``parse``."""
    tree: ast.Expression = _parsed(source, "eval")
    return tree.body


def _parsed(source: str, mode: str) -> Any:
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, mode=mode)
    except (RecursionError, MemoryError):  # the parser's own stack: the machine has memory left
        raise SyntaxError("it is nested too deeply") from None


# --- Which functions of a source were entered: their labels, and marks that note each entry ------
# The worker marks every source of a resource that it loads, in every run alike, so what was entered is known
# without tracing and nothing inside can tell a trial by it. The kernel finds the same labels in the text. A
# generator expression belongs to the function around it. Readable inside the sandbox: standard library only.


MARK = "__entered__"  # the name that marks call; no edit may name it, as any new name with two underscores
LABEL_MAX = 400

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
N = TypeVar("N", bound=ast.AST)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Values of a tree's fields, and nodes, below which no function is.
_WITHOUT = {type(None), str, int, ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue}
_WITHOUT |= {ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Load, ast.Store, ast.Del}
_WITHOUT |= {*ast.operator.__subclasses__(), *ast.cmpop.__subclasses__(), *ast.unaryop.__subclasses__()}
_WITHOUT |= {*ast.boolop.__subclasses__()}


def functions(tree: ast.Module, path: str) -> Iterator[tuple[Function, str]]:
    """Every function and lambda of the file with its label, ``path:line:qualified name``; the outer before the inner.

    Done for each source in each run, so what cannot hold a function is passed over, and nothing is called for a node.
    """
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            at = f"@{node.col_offset}" if isinstance(node, ast.Lambda) else ""
            yield node, f"{path}:{first_line(node)}:{around}{name}{at}"[:LABEL_MAX]
            around = f"{around}{name}."
        elif isinstance(node, ast.ClassDef):
            around = f"{around}{node.name}."
        own = vars(node)
        for field in reversed(node._fields):
            inside: Any = own.get(field)
            if isinstance(inside, list):
                waiting += [(each, around) for each in reversed(inside) if each.__class__ not in _WITHOUT]
            elif inside.__class__ not in _WITHOUT:
                waiting.append((inside, around))


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


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _at(place: ast.AST, node: N) -> N:
    return ast.copy_location(node, place)
