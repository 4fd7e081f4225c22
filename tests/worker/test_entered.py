"""Which functions a call entered is noted in every run, and what a load enters is not."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentos.syntax import MARK, functions, marked
from agentos.worker.children import ChildLimits
from agentos.worker.tools import entered, toolfile
from agentos.worker.tools.bundle_importer import BundleFiles
from agentos.worker.tools.toolhost import ToolHost, ToolResult

PATH = "tool/fees/tool.py"
SOURCE = '''"""Fees."""
from __future__ import annotations
import functools
from pydantic import BaseModel
TOOL = {"name": "fees", "description": "for a test", "effects": ["pure"]}
class Input(BaseModel):
    n: int
class Output(BaseModel):
    n: int
def _table():
    """At load only."""
    return [1, 2, 3]
TABLE = _table()
def twice(f):
    @functools.wraps(f)
    def inner(n):
        return f(n) * 2
    return inner
@twice
def fee(n):
    return sum(sorted((row for row in TABLE if row > n), key=lambda row: -row))
def late(n):
    import _rates
    return _rates.rate(n)
def never():
    return 1
async def waits():
    return 2
def numbers():
    yield 1
def run(input: Input) -> Output:
    if input.n > 100:
        raise ValueError("too large")
    if input.n < 0:
        list(numbers())
        return Output(n=late(input.n))
    return Output(n=fee(input.n))
'''
HELPER = "def made():\n    return 5\nRATE = made()\ndef rate(n):\n    return RATE\n"


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], ToolResult]]:
    texts = {PATH: SOURCE, "tool/fees/_rates.py": HELPER}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    held = BundleFiles(tmp_path, {path: text.encode() for path, text in texts.items()})
    host = ToolHost(held, tmp_path, ChildLimits(10, 512, 1 << 20), alone=False)
    yield lambda n: host.call(PATH, {"n": n})
    host.close()


def names(result: ToolResult) -> list[str]:
    return [label.rpartition(":")[2] for label in result.entered]


def test_a_call_says_which_functions_it_entered(called: Callable[[int], ToolResult]) -> None:
    result = called(1)
    assert result.output == {"n": 10}
    assert set(names(result)) == {"run", "twice.inner", "fee", "fee.<lambda>@61"}
    assert f"{PATH}:19:fee" in result.entered  # a function begins at its decorator


def test_what_is_entered_while_a_module_is_loaded_does_not_count(
    called: Callable[[int], ToolResult],
) -> None:
    """Also where the module is loaded in the middle of the call."""
    result = called(-1)
    assert result.output == {"n": 5}
    assert set(names(result)) == {"run", "late", "numbers", "rate"}


def test_a_call_that_fails_says_it_too(called: Callable[[int], ToolResult]) -> None:
    result = called(101)
    assert result.fault is not None
    assert result.fault.type == "ValueError"
    assert names(result) == ["run"]


def test_marked_code_does_what_it_did_and_errors_name_the_same_lines() -> None:
    source = 'def f(x):\n    """Doc."""\n    return 1 / x\ng = lambda x: x or "none"\nclass C:\n    def m(self): return f(0)\n'
    space: dict[str, Any] = {MARK: lambda label: None}
    exec(compile(marked(ast.parse(source), PATH), PATH, "exec"), space)
    assert space["f"].__doc__ == "Doc."
    assert space["f"](2) == 0.5
    assert (space["g"](0), space["g"](3)) == ("none", 3)
    with pytest.raises(ZeroDivisionError) as caught:
        space["C"]().m()
    assert [entry.lineno for entry in caught.traceback][1:] == [5, 2]
    assert [label for _, label in functions(ast.parse(source), PATH)] == [
        f"{PATH}:1:f",
        f"{PATH}:4:<lambda>@4",
        f"{PATH}:6:C.m",
    ]


def test_a_source_too_deep_to_walk_runs_unmarked(tmp_path: Path) -> None:
    deep = "x = " + "-" * 400 + "1\n"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        code = entered.compiled(deep, "deep.py", PATH)
    finally:
        sys.setrecursionlimit(limit)
    space: dict[str, Any] = {}
    exec(code, space)
    assert space["x"] == 1


def test_a_tool_speaks_for_its_own_resource_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lying = SOURCE.replace(
        "return Output(n=fee(input.n))", f'{MARK}("tool/other/tool.py:1:run"); return Output(n=1)'
    )
    (tmp_path / "tool/fees").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    host = ToolHost(
        BundleFiles(tmp_path, {PATH: lying.encode()}), tmp_path, ChildLimits(10, 512, 1 << 20), alone=False
    )
    try:
        assert names(host.call(PATH, {"n": 1})) == ["run"]
    finally:
        host.close()


def test_the_search_for_a_repair_is_not_marked() -> None:
    assert MARK not in toolfile.compiled("def f(): return 1\n", PATH, Path("/nowhere")).co_consts[0].co_names


def test_code_that_was_compiled_before_is_that_of_the_very_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entered, "_KNOWN", {})
    source = "def run():\n    return 1\n"
    before = entered.compiled(source.encode(), "/snapshot/a/b.py", "a/b.py")
    entered.know({"a/b.py": source}, "/snapshot")
    after = entered.compiled(source.encode(), "/snapshot/a/b.py", "a/b.py")
    assert after == before  # the same names, constants, lines and marks
    assert after.co_filename == before.co_filename
    assert entered.compiled(source.encode(), "/snapshot/a/b.py", "a/b.py") is after
    for other in (
        (source.encode() + b"#", "/snapshot/a/b.py", "a/b.py"),
        (source.encode(), "/elsewhere/a/b.py", "a/b.py"),
        (source.encode(), "/snapshot/a/b.py", "a/c.py"),
    ):
        assert entered.compiled(*other) is not after
