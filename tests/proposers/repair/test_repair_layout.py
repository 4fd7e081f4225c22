"""Edits of statements fit into the file, however that is laid out: tabs, semicolons, one line, CRLF, decorators."""

import ast

import pytest

from agentos.proposers.repair.operators.idioms.flow import begun_inside, cases, caught, farther
from agentos.proposers.repair.operators.rewrites import rewritten
from agentos.proposers.repair.operators.statements import deletions, guards, insertions, moves, returns
from agentos.proposers.repair.reading.clues import Clues, TextFactors
from agentos.proposers.repair.site import FileFacts, library_text, sites
from agentos.proposers.repair.source import CodeEdit, Program, Splice

PLAIN = """\
def f(a, b):
    for c in a:
        b += c
        if c:
            b = 1
        else:
            b -= 1
        b += 2
    return b
"""
BESIDE = """\
def f(a, b):
    a = 1; b = 2  # both
    if a: b = 3
    else: a = 4
    return b
"""
DECORATED = """\
def f(a, b):
    @a
    class c:
        pass
    @a
    async def d():
        pass
    return b
"""
LOOP = """\
    for d in a:
        b += d
        c += b  # two
"""
MOVED = f"""\
def f(a, b):
    c = 1  # one
{LOOP}    return c
"""


def made_by_statements(source: str) -> set[str]:
    """All that the operators on statements make of it, as syntax trees."""
    program = Program(source)
    nothing, found = TextFactors(Clues(program), frozenset()), set[str]()
    for site in sites(FileFacts(program)):
        edits: list[CodeEdit] = []
        for operator in (deletions, moves, farther, insertions, caught, rewritten):
            edits += operator(site)
        for family in guards(site, nothing):
            edits += [edit for edit, _ in zip(family.edits, range(3), strict=False)]
        for text in filter(None, map(program.apply, edits)):
            found.add(ast.dump(ast.parse(text)))
    return found


def _by_tabs(source: str) -> str:
    return "".join(line.replace("    ", "\t") for line in source.splitlines(keepends=True))


@pytest.mark.slow
@pytest.mark.parametrize("source", [PLAIN, BESIDE, DECORATED, MOVED])
def test_layout_decides_on_no_edit(source: str) -> None:
    plain = made_by_statements(source)
    for other in (_by_tabs(source), source.replace("\n", "\r\n"), source.removesuffix("\n")):
        assert made_by_statements(other) == plain


def _made(source: str, operator: str) -> list[str]:
    """What one operator makes of it."""
    program = Program(source)
    by_name = {
        each.__name__: each for each in (insertions, moves, farther, deletions, returns, caught, begun_inside)
    }
    edits = [edit for site in sites(FileFacts(program)) for edit in by_name[operator](site)]
    return [text for edit in edits if (text := program.apply(edit)) is not None]


@pytest.mark.parametrize(
    ("source", "operator", "old", "new"),
    [
        (
            "def f(a):\n\tif a:\n\t\ta = 1\n\telse:\n\t\ta = 2\n",
            "insertions",
            "\ta = 2",
            "\ta = 2\n\t\ta += 1",
        ),
        ("def f(a):\n    if a: a = 1\n    return a\n", "insertions", "a = 1", "a = 1; a += 1"),
        ("def f(a):\n    b = 1; a = b\n    return a\n", "insertions", "; a = b", "; a += 1; a = b"),
        (
            "def f(a):\n    b = 1\n    @a\n    class c: pass\n    a = 2\n    return a\n",
            "farther",
            "    @a\n    class c: pass\n    a = 2\n",
            "    a = 2\n    @a\n    class c: pass\n",
        ),
        (MOVED.replace("\n", "\r\n"), "moves", "        c += b  # two\r\n", "    c += b  # two\r\n"),
        (MOVED, "farther", "    c = 1  # one\n" + LOOP, LOOP + "    c = 1  # one\n"),
        (
            MOVED,
            "begun_inside",
            "    c = 1  # one\n    for d in a:\n",
            "    for d in a:\n        c = 1  # one\n",
        ),
        ("def f(a):\n    b = a\n    return a", "deletions", "    return a", ""),
    ],
)
def test_a_statement_is_put_where_it_fits(source: str, operator: str, old: str, new: str) -> None:
    made = _made(source, operator)
    assert source.replace(old, new) in made
    assert all(text.count("#") == source.count("#") for text in made)


def test_rounds_are_left_in_loops_only_and_ends_of_functions_in_functions() -> None:
    source = "try:\n    a = 1\nexcept OSError:\n    pass\ndef f(b):\n    try:\n        b = 1\n    except ValueError:\n        return b\n"
    for operator in ("insertions", "caught"):
        for text in _made(source, operator):
            compile(text, "edit", "exec")
    looped = "def f(b):\n    while b:\n        b = 1\n    else:\n        b = 2\n"
    assert looped.replace("b = 1", "b = 1\n        break") in _made(looped, "insertions")
    assert looped.replace("b = 2", "b = 2\n        break") not in _made(looped, "insertions")


def test_a_returned_value_is_an_edit_of_the_value_alone() -> None:
    program = Program("def f(a, b):\n    return a + 1  # why\n")
    edits = [edit for site in sites(FileFacts(program)) for edit in returns(site)]
    assert {program.data[e.splices[0].start : e.splices[0].end] for e in edits} == {b"a + 1"}


def test_the_same_statement_behind_one_and_before_the_next_is_one_program() -> None:
    program = Program("def f(a, b):\n    if a:\n        a = 1\n    elif b:\n        a = 2\n\n    return a\n")
    facts = FileFacts(program)
    by_tree: dict[str, set[tuple[int, str]]] = {}
    for edit in (edit for site in sites(facts) for edit in insertions(site)):
        if made := program.change(edit):
            by_tree.setdefault(ast.dump(ast.parse(made[0])), set()).add(made[1])
    assert all(len(keys) == 1 for keys in by_tree.values())


def test_an_import_stands_above_decorators() -> None:
    program = Program("@staticmethod\ndef f(a):\n    return a\n")
    site, imports = next(iter(sites(FileFacts(program)))), {}  # type: ignore[var-annotated]
    assert library_text(site, "re", "sub", imports) == "re.sub"
    assert imports["import re"].start == 0


def test_one_statement_for_one_is_told_by_that_statement_alone() -> None:
    program = Program("def f(a):\n    b = a\n    if a:\n        return b\n    elif b:\n        return a\n")
    whole = program.replace(program.nodes(ast.Assign)[0], "b += a")
    sign = Splice(program.data.index(b" = "), program.data.index(b" = ") + 3, " += ", expression=False)
    made = [program.change(CodeEdit((splice,), "test")) for splice in (whole, sign)]
    assert made[0] == made[1] is not None
    start = program.data.index(b"if a")
    other = [
        Splice(start, start, "el", expression=False),
        Splice(start, start + 2, "while", expression=False),
    ]
    changes = [program.change(CodeEdit((splice,), "test")) for splice in other]
    assert changes == [None, None]  # ``elif`` without ``if``


def test_texts_that_differ_by_their_blanks_alone_stay_apart() -> None:
    texts = ("'''one\n  two'''", "'''one\n    two'''")
    source = f"def f(a):\n    b = {texts[0]}\n    c = {texts[1]}\n    return b + c\n"
    program = Program(source)
    nothing = TextFactors(Clues(program), frozenset())
    edits = [
        next(f.edits)
        for site in sites(FileFacts(program))
        for f in guards(site, nothing)
        if f.operator == "guard"
    ]
    edits += [edit for site in sites(FileFacts(program)) for edit in moves(site)]
    made = [program.apply(edit) or "" for edit in edits]
    assert len(made) == 5
    assert all(text in each for each in made for text in texts)


def test_a_case_that_moves_takes_its_comments_along() -> None:
    first, second = (
        "        case int():\n            b = 1\n",
        "        # of truth\n        case bool():\n            b = 2  # two\n",
    )
    rest = "        case _:\n            pass\n    return b\n"
    program = Program(f"def f(a, b):\n    match a:\n{first}{second}{rest}")
    made = [program.apply(edit) for site in sites(FileFacts(program)) for edit in cases(site)]
    assert made == [f"def f(a, b):\n    match a:\n{second}{first}{rest}"]
