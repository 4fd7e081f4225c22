"""Every kind of fault that the proposer promises to reach: the repaired text is among the edits."""

import ast

import pytest

from agentos.proposers.repair.operators.conditions import conditions_for
from agentos.proposers.repair.places import edits_of
from agentos.proposers.repair.site import FileFacts, sites
from agentos.proposers.repair.source import Program
from tests.proposers.repair.test_repair_idioms import letters, made_like

FAULTS = {
    "comparison": ("if a < b:\n    return a\nreturn b", "a < b", "a <= b"),
    "membership, swapped": ("return a in b", "a in b", "b in a"),
    "arithmetic": ("return a + b", "a + b", "a - b"),
    "operands": ("return a % b", "a % b", "b % a"),
    "boolean": ("return a > 1 and b > 1", "and", "or"),
    "grouping": ("return a == 1 and b < 1 or b > 31", "b < 1 or b > 31", "(b < 1 or b > 31)"),
    "a sign at which texts are cut": (
        'c, d, e = a.partition("/")\nif not c:\n    return b',
        "not c",
        "not c or '/' in e",
    ),
    "negation": ("if a:\n    return b", "if a", "if not a"),
    "constant": ("return a * 24", "24", "25"),
    "string": ("return ' '.join(a)", "' '", "''"),
    "off by one, range": ("return [i for i in range(a)]", "range(a)", "range(a + 1)"),
    "counted from the other end": ("return a[0] + b", "[0]", "[-2]"),
    "within a period of the file": ("b.add(a)\nreturn (a + 1) % 7", "add(a)", "add(a % 7)"),
    "all alike": ("return (a, b)", "(a, b)", "(int(a), int(b))"),
    "the first ones alike": ("return (a, b, True)", "(a, b", "(a.lower(), b.lower()"),
    "deeper by the function itself": ("return {**a, **b}", "{**a, **b}", "f(a, b)"),
    "off by one, slice": ("return a[:b]", "[:b]", "[:b + 1]"),
    "argument order": ("return pow(a, b)", "a, b", "b, a"),
    "name": ("c = a\nreturn b", "return b", "return c"),
    "element": ("for i in range(3):\n    b = a[i]\n    if b != i:\n        return b", "!= i", "!= a[i]"),
    "method": ("return a.lower()", "lower", "upper"),
    "function": ("return min(a)", "min", "max"),
    "missing call": ("return a - b", "a - b", "abs(a - b)"),
    "superfluous call": ("return sorted(a)", "sorted(a)", "a"),
    "method dropped": ("return a.replace('x', 'y')", "a.replace('x', 'y')", "a"),
    "strip": ("return a == b", "a == b", "a.strip() == b"),
    "keyword": ("return sorted(a)", "sorted(a)", "sorted(a, reverse=True)"),
    "lookup": ("return a[b]", "a[b]", "a.get(b, 0)"),
    "superfluous operand": ("return a > 1 and b > 1", "a > 1 and b > 1", "a > 1"),
    "superfluous operand beside brackets": ("return a and (b or 1) and 2", " and 2", ""),
    "boolean beside a choice": ("return (a if b else 1) and b > 1", ") and", ") or"),
    "operands with brackets": ("return (a or 0) - b", "(a or 0) - b", "b - (a or 0)"),
    "off by one, bits": ("return a & b", "a & b", "(a & b) + 1"),
    "missing operand": ("return a > 1 and b > 1", "b > 1", "b > 1 and a"),
    "filter": ("return [x for x in a]", "in a]", "in a if x]"),
    "filter behind brackets": ("return [x for x in (a or b)]", "b)]", "b) if x > 0]"),
    "another sign": ("if a:\n    b = 1\nreturn a + 2", "a + 2", "-(a + 2) if a else a + 2"),
    "variable of its own": ("return [lambda: (c) for c in a]", "lambda: (c)", "lambda c=c: (c)"),
    "statement too many": ("b = 1\na += 1\nreturn a", "    a += 1\n", ""),
    "statement missing": ("while a:\n    b += 1\nreturn b", "b += 1", "b += 1\n        a -= 1"),
    "guard": ("b.append(a)\nreturn b", "b.append(a)", "if a:\n        b.append(a)"),
    "early return": ("return a[0]", "return a[0]", "if not a:\n        return None\n    return a[0]"),
    "default": ("return a + 1", "a + 1", "(a or 0) + 1"),
    "membership, swapped with brackets": ("return b in (a or {})", "b in (a or {})", "(a or {}) in b"),
    "membership without blanks": ("if a=='x':\n    return b", "a=='x'", "a in 'x'"),
    "bounds with brackets": ("return (a or 0) < b < 9", "(a or 0) < b < 9", "(a or 0) <= b <= 9"),
    "one of, with brackets": (
        "return b == 'y', (a or b) == 'x'",
        "(a or b) == 'x'",
        "(a or b) in ('x', 'y')",
    ),
    "true by itself, with brackets": (
        "return (a or b) == 1 or 2",
        "(a or b) == 1 or 2",
        "(a or b) in (1, 2)",
    ),
    "lookup by two": ("return a[b, 1]", "a[b, 1]", "a.get((b, 1))"),
    "slice of brackets": ("return (a + b)[1:2]", "[1:2]", "[2:1]"),
    "call of brackets": ("return (a or b)(1)", "(1)", "()"),
    "operand behind a name": ("if c := a.get(b):\n    return c", "c := a.get(b)", "(c := a.get(b)) and b"),
    "another value of brackets": (
        "if b:\n    a = 1\nreturn b or 1",
        "b or 1",
        "(b or 1) + 1 if b else b or 1",
    ),
    "step over lines": ("a += (b +\n    1)\nreturn a", "+=", "-="),
    "power of a sign": ("return a ** -b", "a ** -b", "(-b) ** a"),
    "method of brackets": ("return str((a + b).lower())", "(a + b).lower())", "a + b).lower()"),
    "bound of a difference with brackets": (
        "if a[(b or 0) - 1]:\n    return b",
        "a[",
        "(b or 0) >= 1 and a[",
    ),
    "sort key of a sum": ("return sorted(a, key=lambda c: c[0] + c[1])", "c[0] + c[1]", "-(c[0] + c[1])"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_repair_is_among_the_edits(name: str) -> None:
    body, old, new = FAULTS[name]
    head, source = "def f(a, b):\n", "".join(f"    {line}\n" for line in body.splitlines())
    assert _missing(head + source, head + source.replace(old, new, 1)) == []


PAGE = """\
def f(a, b):
    if a:
        page = '''one

            two
        three'''
        b.append(page)
    page = f'''{a}
  of'''
    return b
"""


@pytest.mark.slow
def test_no_text_changes_by_how_far_a_statement_is_indented() -> None:
    program = Program(PAGE)
    texts = {*_texts_over_lines(PAGE)}
    made = {program.apply(edit): edit.operator for edit, _ in edits_of(FileFacts(program))}
    indented = {"guard", "condition dropped", "caught"}
    assert indented <= {*made.values()}
    for source, operator in made.items():
        assert operator not in indented or texts >= {*_texts_over_lines(source or "")}, source


def _texts_over_lines(source: str) -> list[str]:
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [node.value for node in nodes if isinstance(node.value, str) and "\n" in node.value]


# as black breaks them, when the names are long
BROKEN_OVER_LINES = """\
def f(a, b):
    c = b
    if (
        a
        > b  # too long for one line
    ):
        return a
    while c and (
        b
        < a
    ):
        b += 1
    return c if f"{a} of {b}" == f"{b}" else b
"""


def test_a_comparison_over_several_lines_is_edited_and_reused_as_any_other() -> None:
    wanted = [
        BROKEN_OVER_LINES.replace("> b", ">= b"),
        BROKEN_OVER_LINES.replace("> b", "> c"),
        BROKEN_OVER_LINES.replace("< a\n    )", "< a\n    ) and (a > b)"),
        BROKEN_OVER_LINES.replace("< a\n    )", "< a\n    ) and (a > c)"),
    ]
    assert _missing(BROKEN_OVER_LINES, *wanted) == []


def test_truth_values_are_exchanged_together() -> None:
    source = "def f(a):\n    for x in a:\n        if x:\n            return True\n    return False\n"
    wanted = source.replace("True", "?").replace("False", "True").replace("?", "False")
    assert _missing(source, wanted) == []


def test_a_return_moves_out_of_its_loop() -> None:
    source = "def f(a):\n    b = 0\n    for x in a:\n        b += x\n        return b\n"
    wanted = "def f(a):\n    b = 0\n    for x in a:\n        b += x\n    return b\n"
    assert _missing(source, wanted) == []


def test_fields_of_the_input_are_names_in_scope() -> None:
    source = (
        "class Input:\n    path: str\n    column: str\n\n\n"
        "def run(input: Input):\n    rows = read(input.path)\n    return rows[input.path]\n"
    )
    assert _missing(source, source.replace("rows[input.path]", "rows[input.column]")) == []


METHODS = """\
import html


class Box:
    size: int

    def __init__(self, names, size):
        self.names = []
        self.size = size

    def full(self, name):
        return name and len(self.names) > 3

    def first(self, text):
        return html.escape(text.split("=")[0])

    def last(self, text):
        return text.split("=")[1]
"""


def test_a_method_knows_the_fields_of_its_object() -> None:
    assert (
        _missing(
            METHODS, METHODS.replace("> 3", "> self.size"), METHODS.replace("return name", "return self.size")
        )
        == []
    )
    program = Program(METHODS)
    site = next(each for each in sites(FileFacts(program)) if isinstance(each.node, ast.Return))
    kinds = {name: kind for name, kind in site.scope.kinds.items() if name.startswith("self")}
    assert kinds == {"self": "record", "self.size": "int", "self.names": "list"}


def test_an_object_is_no_condition() -> None:
    program = Program(METHODS)
    conditions = [c for site in sites(FileFacts(program)) for c in conditions_for(site)]
    assert not {"self", "not self", "self > 0", "self == name"}.intersection(conditions)


def test_what_a_method_sets_with_its_type_is_set_again() -> None:
    typed = METHODS.replace("self.names = []", "self.names: list[str] = []")
    line = "        return html.escape("
    assert _missing(typed, typed.replace(line, f"        self.names = []\n{line}")) == []


def test_a_slip_in_two_functions_is_mended_in_both() -> None:
    both = METHODS.replace('split("=")', 'split("=", 1)')
    assert _missing(METHODS, both) == []


def test_a_function_of_a_library_that_the_file_calls_is_put_around_another_value() -> None:
    escaped = METHODS.replace('text.split("=")[1]', 'html.escape(text.split("=")[1])')
    assert _missing(METHODS, escaped) == []


GREATEST = """\
def f(a, b):
    level = 0
    for need in a:
        if need:
            level = b[need] + 1
    return level
"""
SO_FAR = """\
def f(a, b):
    far = {a: 1}
    places = [a]
    for place in places:
        if far[place] > 9:
            continue
        for other, step in b[place]:
            far[other] = step
            places.append(other)
    return far
"""
BEGINNINGS = """\
def f(a, b):
    for part in b:
        if not a.startswith(part):
            continue
        return part
"""


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        (GREATEST, "b[need] + 1", "max(level, b[need] + 1)"),
        (SO_FAR, "= step", "= step * far[place]"),
        (BEGINNINGS, "not a.startswith(part)", "not part or not a.startswith(part)"),
    ],
)
def test_what_a_loop_keeps_and_an_empty_beginning_come_before_their_like(
    source: str, old: str, new: str
) -> None:
    """The last round is taken for the greatest one or the total, an empty text for the beginning of each."""
    weights = {}
    program = Program(source)
    for edit, _ in edits_of(FileFacts(program)):
        weights.setdefault((edit.operator, program.apply(edit)), edit.weight)
    ((operator, weight),) = ((k[0], w) for k, w in weights.items() if k[1] == source.replace(old, new, 1))
    like = [w for (other, text), w in weights.items() if other == operator and text != source]
    assert sum(w >= weight for w in like) <= 3


def test_names_are_known_however_they_are_bound() -> None:
    source = "def f(*rest, a, **more):\n    while part := a[0]:\n        return part\nLIMIT: int = 3\n"
    program = Program(source)
    site = next(each for each in sites(FileFacts(program)) if isinstance(each.node, ast.Return))
    assert set(site.variables()) == {"rest", "a", "more", "part", "LIMIT"}
    assert [site.scope.kinds[name] for name in ("rest", "more", "LIMIT")] == ["tuple", "dict", "int"]


def test_parts_of_a_text_are_texts_and_numbers_that_are_read_of_them_are_numbers() -> None:
    body = "a, b = t.split()\nc, *d = t.split()\n(e, f), g = t\nh, i = map(int, t.split(':'))\nfor j in t.splitlines():\n    pass\nfor k, m in t.split():\n    pass"
    source = "def f(t):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    program = Program(source)
    kinds = FileFacts(program).scope(program.functions[0]).kinds
    told = {name: kind for name, kind in kinds.items() if kind}
    assert told == {"a": "str", "b": "str", "c": "str", "h": "int", "i": "int", "j": "str"}


def _missing(source: str, *wanted: str) -> list[str]:
    """Those that no edit makes, however it is written."""
    shapes = {ast.dump(ast.parse(text)): text for text in wanted}
    signs = {letters(text) for text in wanted}
    program = Program(source)
    for edit, _ in edits_of(FileFacts(program)):
        if (text := made_like(program, edit, signs)) is not None:
            shapes.pop(ast.dump(ast.parse(text)), None)
        if not shapes:
            break
    return [*shapes.values()]


@pytest.mark.parametrize(
    "body",
    [
        "return a @ b @ (a @ b), len(a @ b)",
        f"return a % {'9' * 400} < 1e999",
        "for c in enumerate(iterable=a):\n    c.pop()",
        "for c in range():\n    c.pop()",
        "place = index = position = at_place = 1\nfor c in a:\n    b.append(a.index(c))",
    ],
)
def test_odd_code_ends_no_search(body: str) -> None:
    source = "def f(a, b):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    assert len(list(edits_of(FileFacts(Program(source))))) > 50


def test_numbers_of_docstrings_come_in_the_same_order_in_each_process() -> None:
    numbers = ["7", "13", "24", "30", "52", "60", "90", "360"]
    source = f'def f(a):\n    """{" ".join(reversed(numbers))}"""\n    return a * 5000\n'
    edits = [edit for edit, _ in edits_of(FileFacts(Program(source))) if edit.operator == "constant"]
    texts = [edit.splices[0].text for edit in edits]
    assert [text for text in texts if text in numbers] == sorted(numbers)
