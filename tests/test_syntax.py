"""Parsing from many threads at once, which breaks ``ast.parse`` itself on CPython 3.11."""

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentos.syntax import UNKNOWN, fold, functions, marked, parse, parse_expression

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


def test_a_match_with_truth_values_is_marked_as_any_other() -> None:
    source = "def f(x):\n    match x:\n        case True:\n            return 1\n        case None:\n            return lambda: 2\n"
    assert [label for _, label in functions(parse(source), "a.py")] == ["a.py:1:f", "a.py:6:f.<lambda>@19"]
    assert "__entered__('a.py:1:f')" in ast.unparse(marked(parse(source), "a.py"))


@pytest.mark.parametrize(
    "costly",
    [
        "round(5, -10000000)",
        "'{:{}}'.format(1, 99999999)",
        "'{0:{1}{1}{1}}'.format(1, 999)",
        "'{0:{1[0]}}'.format(1, (99999999,))",
    ],
)
def test_what_costs_is_not_folded(costly: str) -> None:
    assert fold(parse_expression(costly), {}) is UNKNOWN


@pytest.mark.parametrize(
    ("cheap", "value"), [("round(2.345, 1)", 2.3), ("round(2.5)", 2), ("'{:>{}}{{'.format(7, 3)", "  7{")]
)
def test_what_costs_nothing_is(cheap: str, value: object) -> None:
    assert fold(parse_expression(cheap), {}) == value
