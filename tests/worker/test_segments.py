"""Code of pieces does what code of the whole file does, and only the piece that differs is compiled."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from agentos.worker.jobs.segments import FieldClass, Piece, Segments, run

SOURCE = '''"""What it is for."""

from __future__ import annotations

import functools

LIMIT = 3
SEEN = []


def noted(function):
    SEEN.append(function.__name__)
    return functools.wraps(function)(lambda *args: function(*args) + 1)


@noted
def twice(n: "int") -> Missing:
    """A function's docstring."""
    return n * 2


TABLE = {"twice": twice}
"""A text that says something of the table."""


class Shape:
    sides = LIMIT

    def area(self, scale=LIMIT):
        def inner():
            return scale * self.sides

        return inner()


ANSWER = (twice(2), Shape().area(), sorted(TABLE), list(SEEN), __doc__)
'''


def ran(codes: list[Piece]) -> object:
    space: dict[str, Any] = {"__name__": "x"}
    run(codes, space)
    kept = {name: value for name, value in space.items() if isinstance(value, int | str | tuple | list)}
    return kept, space["Shape"]().area(5), space["twice"].__doc__, space["__doc__"]


def whole(source: str) -> list[Piece]:
    return [compile(source, "x.py", "exec", dont_inherit=True)]


EDITS = [
    ("n * 2", "n * 3"),
    ("LIMIT = 3", "LIMIT = 4"),
    ("sides = LIMIT", "sides = LIMIT + 1"),
    ("scale=LIMIT", "scale=LIMIT - 1"),
    ("@noted\n", ""),
    ("+ 1)", "+ 2)"),
    ("\n\nTABLE", "\n\nLIMIT = 9\n\n\nTABLE"),
    ("    return n * 2\n", "    if n > 1:\n        return n\n    return n * 2\n"),
    ("import functools\n", "import functools\nimport math\n"),
    ("What it is", "What was it"),
    ("__doc__)\n", "__doc__)\nMORE = 1\n"),
    ("@noted", "LIMIT = 7\n\n\n@noted"),
    ("ANSWER", "'another text'\nANSWER"),
]


@pytest.mark.parametrize(("old", "new"), EDITS)
def test_pieces_do_what_the_whole_does(old: str, new: str) -> None:
    edited = SOURCE.replace(old, new, 1)
    assert edited != SOURCE
    segments = Segments(SOURCE, "x.py")
    assert ran(segments.codes(edited)) == ran(whole(edited))
    assert ran(segments.codes(SOURCE)) == ran(whole(SOURCE))


def test_lines_of_the_edited_piece_are_those_of_the_file() -> None:
    edited = SOURCE.replace("n * 2", "n // 0")
    with pytest.raises(ZeroDivisionError) as error:
        ran(Segments(SOURCE, "x.py").codes(edited))
    assert edited[: edited.index("n // 0")].count("\n") == error.traceback[-1].lineno  # counted from 0


def test_only_the_piece_that_differs_is_compiled() -> None:
    many = "\n\n".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(300))
    segments = Segments(many, "x.py")
    before = segments.codes(many)
    after = segments.codes(many.replace("x + 150", "x - 150"))
    assert len(before) == 300
    assert [number for number in range(300) if before[number] is not after[number]] == [150]


@pytest.mark.parametrize("bad", ["def twice(:", "@noted\n\n\n", '"""', "x = (", "    indented = 1"])
def test_what_cannot_be_compiled_is_refused_as_the_whole_is(bad: str) -> None:
    edited = SOURCE.replace("def twice", f"{bad}\ndef twice")
    segments = Segments(SOURCE, "x.py")
    try:
        expected = ran(whole(edited))
    except SyntaxError:
        with pytest.raises(SyntaxError):
            segments.codes(edited)
    else:
        assert ran(segments.codes(edited)) == expected


def test_what_is_put_before_an_import_from_the_future_is_refused() -> None:
    source = '"""Doc."""\n\nfrom __future__ import annotations\n\nx = 1\n'
    segments = Segments(source, "x.py")
    with pytest.raises(SyntaxError):
        segments.codes(source.replace('"""Doc."""\n', '"""Doc."""\n\n\ndef f(): pass\n'))


@pytest.mark.parametrize(
    "odd", ["", "x = 1", "x = 1; y = 2\r\nz = 3\r\n", "x = '\u2028'\n\n\ndef f(): pass\ny = 2"]
)
def test_odd_files(odd: str) -> None:
    spaces = []
    for codes in (Segments(odd, "x.py").codes(odd + "\nend = 1\n"), whole(odd + "\nend = 1\n")):
        space: dict[str, object] = {}
        run(codes, space)
        spaces.append({name for name in space if name != "__builtins__"})
    assert spaces[0] == spaces[1]


FIELDS = """from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import BaseModel, Field

SEEN = []


class Row(BaseModel):
    \"\"\"One of them.\"\"\"

    when: date
    kind: Literal["in", "out"] = "in"


class Input(BaseModel):
    rows: list[Row] = Field(default_factory=list)
    names: list[str] = []


class Counted(Input):
    model_config = {"extra": "forbid"}
    seen: int = len(SEEN)


def run(input):
    SEEN.append(1)
    return len(input.rows)
"""


def module(codes: list[Piece]) -> dict[str, Any]:
    """Run in a fresh one, where annotations are looked up."""
    made = types.ModuleType("x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "x", made)
        run(codes, made.__dict__)
    return made.__dict__


def test_a_class_of_fields_alone_is_made_once() -> None:
    segments = Segments(FIELDS, "x.py")
    first, second = module(segments.codes(FIELDS)), module(segments.codes(FIELDS))
    assert first["Row"] is second["Row"]
    assert first["Input"] is second["Input"]
    assert first["Counted"] is not second["Counted"]  # it is made with what is the tool's own
    assert first["SEEN"] is not second["SEEN"]
    counted = second["Counted"](rows=[{"when": "2026-01-02"}])
    assert isinstance(counted.rows[0], second["Row"])
    # behind an edit nothing is shared, for it may say what these classes are made of
    third = module(segments.codes(FIELDS.replace("SEEN.append", "SEEN.insert")))
    assert third["Input"] is first["Input"]
    fourth = module(segments.codes(FIELDS.replace('= "in"', '= "out"')))
    assert fourth["Input"] is not first["Input"]
    assert fourth["Input"](rows=[{"when": "2026-01-02"}]).rows[0].kind == "out"


def test_a_class_that_somebody_changed_is_made_again() -> None:
    codes = Segments(FIELDS, "x.py").codes(FIELDS)
    first = module(codes)
    first["Row"].kept = 1
    first["Input"](names=["a"]).names.append("b")  # fields are copied
    second = module(codes)
    assert second["Row"] is not first["Row"]
    assert second["Input"] is not first["Input"]  # it has rows
    assert isinstance(second["Input"](rows=[{"when": "2026-01-02"}]).rows[0], second["Row"])
    assert second["Input"]().names == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    kind:", "    def area(self): return SEEN\n\n    kind:"),
        ("when: date", "when: 'Missing' = None"),
        ("when: date", "when: date = SEEN"),
        ("when: date", "when: Other"),
        ("from datetime", "from helper"),
        ("SEEN = []", "SEEN = date = []"),
        ("BaseModel, Field", "BaseModel as Field, Field as BaseModel"),
        ("class Row(BaseModel)", "@print\nclass Row(BaseModel)"),
        ("class Row(BaseModel)", "class Row(Shape)"),
        ("class Row(BaseModel)", "class Row(BaseModel, metaclass=meta())"),
        ("when: date", "when: date = max([n for n in SEEN])"),
        ("when: date", "when: date = date.today()"),
        ("SEEN.append(1)", "global Row"),
    ],
)
def test_what_could_be_another_each_time_is_made_each_time(old: str, new: str) -> None:
    source = FIELDS.replace(old, new, 1)
    assert source != FIELDS
    kinds = {piece.name for piece in Segments(source, "x.py").codes(source) if isinstance(piece, FieldClass)}
    assert kinds.isdisjoint({"Row", "Input"})
