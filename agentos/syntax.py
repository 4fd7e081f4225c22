"""Syntax trees, made by one thread at a time.

CPython 3.11 counts the depth of a tree in a place that all threads share while it turns its own tree
into Python objects: two threads in ``ast.parse`` can end with "SystemError: AST constructor recursion
depth mismatch". The kernel parses from many threads, so all of it parses here.
"""

from __future__ import annotations

import ast
import threading
import warnings

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
