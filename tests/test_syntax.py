"""Parsing from many threads at once, which breaks ``ast.parse`` itself on CPython 3.11."""

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentos.syntax import parse, parse_expression

SOURCE = "\n".join(f"def f{n}(a, b):\n    return [x + {n} for x in (a if a else b)]" for n in range(40))


def test_threads_parse_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda _: parse(SOURCE), range(64)))
    assert {ast.dump(tree) for tree in trees} == {ast.dump(trees[0])}


def test_what_is_no_python_raises_as_ever_and_warns_of_nothing() -> None:
    assert isinstance(parse_expression("a + 1"), ast.BinOp)
    parse("x = '\\d'; y = 1 is 1")
    for broken in ("def", "x = (", "\0"):
        with pytest.raises((SyntaxError, ValueError)):
            parse(broken)
