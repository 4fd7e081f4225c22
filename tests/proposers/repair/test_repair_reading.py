"""What is read off a failure, and the edits that are never made whatever passes."""

import time

import pytest

from agentos.benches import BenchResult
from agentos.domain import Json
from agentos.proposers.repair.places import edits_of, stocks, suspicion
from agentos.proposers.repair.prior import in_turn
from agentos.proposers.repair.reading.clues import Clues
from agentos.proposers.repair.reading.failures import clues_of_difference, clues_of_error, read_failures
from agentos.proposers.repair.scope import given_names, idle_names
from agentos.proposers.repair.site import FileFacts
from agentos.proposers.repair.source import CodeEdit, Program, Splice


def rank(source: str, mended: str, clues: Clues) -> int:
    """How many edits are tried before the one that mends."""
    program = Program(source)
    lines = tuple(range(1, source.count("\n") + 1))
    places = suspicion(program, [lines], [])
    for number, each in enumerate(in_turn(stocks(FileFacts(program), places, clues), {})):
        if program.apply(each.edit) == mended:
            return number
    raise AssertionError("the edit that mends is not made")


def failed(output: Json, raised: int = 0) -> BenchResult:
    return BenchResult((False,), (0.0,), (output,), ((1, 2, 3),), (raised,))


@pytest.mark.parametrize(
    ("body", "mended", "error", "line"),
    [
        ("return a[b]", "return a.get(b, 0)", ("KeyError", "'x'"), 2),
        (
            "for x in a:\n        b += x\n    return b",
            "for x in (a or []):\n        b += x\n    return b",
            ("TypeError", "'NoneType' object is not iterable"),
            2,
        ),
        ("c = a + 1\n    return c / int(b)", "c = a + 1\n    return c / int(b.replace(',', ''))",
         ("ValueError", "invalid literal for int() with base 10: '1,000'"), 3),
        ("return max(a)", "return max(a, default=0)", ("ValueError", "max() arg is an empty sequence"), 2),
    ],
)  # fmt: skip
def test_an_exception_brings_its_repair_forward(
    case, body: str, mended: str, error: tuple[str, str], line: int
) -> None:  # type: ignore[no-untyped-def]  # fixture
    source, wanted = (f"def f(a, b):\n    {text}\n" for text in (body, mended))
    program = Program(source)
    output = {"error": error[0], "message": error[1]}
    clues = read_failures([case("t", 1, a=1)], [0], failed(output, line), program)
    assert rank(source, wanted, clues) < rank(source, wanted, Clues(program)) / 2


@pytest.mark.parametrize(
    ("body", "mended", "want", "got"),
    [
        ("return a", "return sorted(a)", [1, 2, 3], [3, 1, 2]),
        ("return a", "return a.strip()", "x y", " x y\n"),
        ("return a", "return a.lower()", "abc", "aBc"),
        ("return a / b", "return round(a / b, 2)", 0.33, 0.3333),
    ],
)
def test_the_difference_brings_its_repair_forward(
    case, body: str, mended: str, want: Json, got: Json
) -> None:  # type: ignore[no-untyped-def]  # fixture
    source, wanted = (f"def f(a, b):\n    {text}\n" for text in (body, mended))
    program = Program(source)
    clues = read_failures([case("t", want, a=1)], [0], failed(got), program)
    assert rank(source, wanted, clues) < rank(source, wanted, Clues(program)) / 1.5


def test_an_expected_value_never_becomes_part_of_an_edit(case) -> None:  # type: ignore[no-untyped-def]  # fixture
    source = "def f(a, b):\n    c = a + b\n    return c * 3\n"
    program = Program(source)
    given = [case("t-77", 4711, a=1), case("t-78", "zebra", a=2)]
    tried = BenchResult((False, False), (0.0, 0.0), (12, "zebrO"), ((2, 3), (2, 3)), (0, 0))
    clues = read_failures(given, [0, 1], tried, program)
    places = suspicion(program, [(2, 3)], [])
    for each in in_turn(stocks(FileFacts(program, given_names(given)), places, clues), {}):
        text = " ".join(splice.text for splice in each.edit.splices)
        assert not any(told in text for told in ("4711", "zebra", "zebrO", "t-77")), text


def test_what_names_an_input_file_is_no_ingredient(case) -> None:  # type: ignore[no-untyped-def]  # fixture
    source = (
        "class Input:\n    path: str\n    top: int\n\n\ndef run(input: Input):\n"
        "    rows = open(input.path).read()\n    return rows[: input.top]\n"
    )
    program = Program(source)
    given = [case("t", "x", path="run-7.csv", top=3, inputs={"run-7.csv": b"a,b\n1,2\n"})]
    clues = read_failures(given, [0], failed("y"), program)
    made = [edit for edit, _ in edits_of(FileFacts(program)) if "len(input.path)" in edit.splices[0].text]
    assert made, "without the rule such edits are made"
    assert not any(clues.allows(edit) for edit in made)
    assert not clues.allows(at(program, "input.top", "input.path"))


def test_a_short_name_of_an_input_file_is_no_ingredient_either() -> None:
    program = Program("def f(p):\n    return split(p), p[1:]\n")
    clues = Clues(program, identifying=frozenset({"p"}))
    assert not clues.allows(at(program, "split", "p"))
    assert clues.allows(at(program, "p[1:]", "p[2:]"))


def test_numbers_too_long_for_a_float_say_nothing() -> None:
    assert [*clues_of_difference(10**400, 10**399), *clues_of_difference(1, float("inf"))] == []


@pytest.mark.parametrize("key", ["' name'", "'name '", "'\\ufeffname'"])
def test_a_key_with_blanks_speaks_for_cleaning(key: str) -> None:
    assert any({"strip", "sig"} <= clue.tokens for clue in clues_of_error("KeyError", key, 1))


def test_the_clock_is_not_read() -> None:
    program = Program("def f(a):\n    return parse(a)\n")
    assert not Clues(program).allows(at(program, "parse(a)", "date.today()"))
    assert Clues(program).allows(at(program, "parse(a)", "a.time()"))


RAISING = "def f(a):\n    if a < 0:\n        raise ValueError('negative')\n    return a\n"


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("raise ValueError('negative')", "pass", False),
        ("raise ValueError('negative')", "if a:\n            raise ValueError('negative')", False),
        ("a < 0", "False", False),
        ("a < 0", "a < -1", True),
        ("a < 0", "a > 0", True),
    ],
)
def test_the_raise_that_is_the_evidence_is_not_hushed(case, old: str, new: str, allowed: bool) -> None:  # type: ignore[no-untyped-def]  # fixture
    program = Program(RAISING)
    error = {"error": "ValueError", "message": "negative"}
    clues = read_failures([case("t", 1, a=-1)], [0], failed(error, 3), program)
    assert clues.allows(at(program, old, new)) is allowed


def test_no_way_leads_around_the_raise_that_is_the_evidence(case) -> None:  # type: ignore[no-untyped-def]  # fixture
    program = Program(RAISING)
    clues = read_failures([case("t", 1, a=-1)], [0], failed({"error": "E", "message": "x"}, 3), program)
    before_raise = program.data.index(b"raise")
    assert not clues.allows(
        CodeEdit((Splice(before_raise, before_raise, "return a\n        ", expression=False),), "x")
    )
    before_test = program.data.index(b"if a < 0")
    around = "if a < 0:\n        return a\n    "
    assert not clues.allows(CodeEdit((Splice(before_test, before_test, around, expression=False),), "x"))


def test_names_of_fields_are_taken_from_what_failing_calls_were_given(case) -> None:  # type: ignore[no-untyped-def]  # fixture
    given = given_names(
        [
            case("t1", path="a.csv", inputs={"a.csv": b"full name;amount\nann;3\n"}),
            case("t2", path="b.json", inputs={"b.json": b'[{"unit": "kg"}]'}),
            case("t3", rows=[{"height": 3}]),
        ]
    )
    assert set(given.fields) == {"full name", "amount", "unit", "height"}
    assert given.identifying == {"path"}


def test_what_nothing_reads_is_told() -> None:
    source = "LIMIT = 3\nUSED = 4\n\n\ndef f(a, b):\n    c = a\n    return USED + a\n"
    assert idle_names(Program(source)) == {"LIMIT", "b", "c"}


@pytest.mark.slow
def test_a_long_file_is_begun_at_once_and_only_where_failing_calls_went() -> None:
    functions = [
        f"def f{n}(a, b):\n    c = a + {n}\n    if c > b:\n        c = b\n    return c\n" for n in range(1000)
    ]
    source = "\n\n".join(functions)
    program = Program(source)
    first = source[: source.index("def f500(")].count("\n") + 1
    began = time.process_time()
    places = suspicion(program, [tuple(range(first + 1, first + 5))], [])
    order = in_turn(stocks(FileFacts(program), places, Clues(program)), {})
    edits = [next(order) for _ in range(200)]
    assert time.process_time() - began < 6
    lines = {program.line_of(each.edit.splices[0].start) for each in edits}
    assert lines <= set(range(first + 1, first + 6))


def at(program: Program, old: str, new: str) -> CodeEdit:
    start = program.data.index(old.encode())
    return CodeEdit((Splice(start, start + len(old.encode()), new),), "test")
