import pytest

from agentos.proposers.repair.site import FileFacts
from agentos.proposers.repair.source import CodeEdit, Program, Splice

SOURCE = '''"""Counts."""

TOOL = {"name": "probe"}


class Input:
    limit: int = 3


def run(x):
    y = x - 1  # keep me
    z = (y
         + 2) * 3
    return z
'''


def edit(program: Program, old: str, new: str) -> CodeEdit:
    start = program.data.index(old.encode())
    return CodeEdit((Splice(start, start + len(old.encode()), new),), "test")


def test_comments_and_layout_stay() -> None:
    program = Program(SOURCE)
    assert program.apply(edit(program, "x - 1", "x + 1")) == SOURCE.replace("x - 1", "x + 1")


def test_parentheses_come_only_where_they_are_needed() -> None:
    program = Program("def f(a, b):\n    return a * b\n")
    splice = Splice(program.data.rindex(b"b"), program.data.rindex(b"b") + 1, "b - 1")
    assert program.apply(CodeEdit((splice,), "test")) == "def f(a, b):\n    return a * (b - 1)\n"
    whole = Splice(program.data.index(b"a * b"), program.data.index(b"a * b") + 5, "a - b")
    assert program.apply(CodeEdit((whole,), "test")) == "def f(a, b):\n    return a - b\n"


def test_what_is_no_python_is_no_candidate() -> None:
    program = Program(SOURCE)
    assert program.apply(edit(program, "return z", "return return")) is None


def test_offsets_are_of_bytes_not_of_characters() -> None:
    program = Program("def f(a):\n    return 'größe' + a\n")
    node = next(n for n in FileFacts(program).nodes if getattr(n, "id", "") == "a")
    splice = program.replace(node, "a.strip()")  # type: ignore[arg-type]  # the node with an id is a Name
    assert program.apply(CodeEdit((splice,), "test")) == "def f(a):\n    return 'größe' + a.strip()\n"


def test_a_deleted_statement_takes_its_comment_along() -> None:
    program = Program(SOURCE)
    start, end = program.lines_span(program.tree.body[-1].body[0])  # type: ignore[attr-defined]  # a function
    assert program.data[start:end] == b"    y = x - 1  # keep me\n"


def test_the_contract_of_a_tool_is_no_place_to_edit() -> None:
    program = Program(SOURCE)
    lines = {node.lineno for node in FileFacts(program).nodes if hasattr(node, "lineno")}
    assert min(lines) == 10, "docstring, TOOL and Input must not be among the places"


def test_a_source_with_a_syntax_error_is_refused() -> None:
    with pytest.raises(SyntaxError):
        Program("def f(:\n")
