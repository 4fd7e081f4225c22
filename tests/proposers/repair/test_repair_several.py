"""Edits of several places of a function: each family makes its own, and not where it would change nothing or too much."""

import ast

import pytest
from local_bench import LocalBenches

from agentos.evolver.policy import Policy
from agentos.proposers.repair import RepairProposer
from agentos.proposers.repair.operators.idioms.several import SEVERAL
from agentos.proposers.repair.operators.rewrites import rewritten
from agentos.proposers.repair.prior import kind_of_edit
from agentos.proposers.repair.scope import GivenNames, given_names
from agentos.proposers.repair.site import FileFacts, sites
from agentos.proposers.repair.source import CodeEdit, Program

GIVEN = GivenNames(signs="-")


def made(source: str) -> list[CodeEdit]:
    facts = FileFacts(Program(source), GIVEN)
    operators = (*SEVERAL, rewritten)
    return [edit for site in sites(facts) for operator in operators for edit in operator(site)]


def indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.splitlines())


# the body of f(a, b: str), and what it is after one edit
FAMILIES = {
    "one for each": (
        "last = None\nfor key, level in a:\n    if last is not None:\n        b.append(level - last)\n    last = level\nreturn b",
        "last = {}\nfor key, level in a:\n    last.setdefault(key, None)\n    if last[key] is not None:\n"
        "        b.append(level - last[key])\n    last[key] = level\nreturn b",
    ),
    "summed up of all": (
        "most = 0\nfor key, level in a:\n    most += level\nreturn most",
        "most = {}\nfor key, level in a:\n    most.setdefault(key, 0)\n    most[key] += level\nreturn sum(most.values())",
    ),
    "a mark for no number": (
        "a.sum += int(b)\na.all[b] = int(b)",
        "if b == '-':\n    return\na.sum += int(b)\na.all[b] = int(b)",
    ),
    "a mark in a row": (
        "for x in a:\n    c = float(x)\n    b.append(c)\nreturn b",
        "for x in a:\n    if x == '-':\n        continue\n    c = float(x)\n    b.append(c)\nreturn b",
    ),
    "over midnight": (
        "return a[0] <= b < a[1]",
        "return a[0] <= b < a[1] if a[0] <= a[1] else b >= a[0] or b < a[1]",
    ),
    "overlaps": (
        "c = sorted(a)\nreturn c",
        "c = []\nfor low, high in sorted(a):\n    if c and low <= c[-1][1]:\n        c[-1] = (c[-1][0], max(high, c[-1][1]))\n"
        "    else:\n        c.append((low, high))\nreturn c",
    ),
    "both ways": ("c = {}\nc[a, b] = 1\nreturn c", "c = {}\nc[a, b] = 1\nc[b, a] = 1\nreturn c"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_makes_its_edit(name: str) -> None:
    body, mended = (f"import re\n\n\ndef f(a, b: str):\n{indented(text)}" for text in FAMILIES[name])
    program = Program(body)
    texts = [text for edit in made(body) if (text := program.apply(edit)) is not None]
    assert ast.dump(ast.parse(mended)) in {ast.dump(ast.parse(text)) for text in texts}


# whole files, and what stands in them after one edit
FILES = {
    "asks itself": (
        "def f(a: str) -> int:\n    return int(a)\n",
        "def f(a: str) -> int:\n    if '+' in a:\n        return sum(f(part) for part in a.split('+'))\n    return int(a)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_family_makes_its_edit_of_a_file(name: str) -> None:
    source, mended = FILES[name]
    program = Program(source)
    texts = [text for edit in made(source) if (text := program.apply(edit)) is not None]
    assert ast.dump(ast.parse(mended)) in {ast.dump(ast.parse(text)) for text in texts}


# where a family has nothing to do
LEFT_ALONE = {
    "nothing is kept between rounds": ("state by key", "c = None\nfor key, x in a:\n    g(key, x)\nreturn c"),
    "the key is known after the state": (
        "state by key",
        "c = 0\nfor x in a:\n    c += 1\n    key, d = x.split()\n    b.append(c)\nreturn b",
    ),
    "within a template": ("state by key", "c = 0\nfor key in a:\n    c += 1\n    b.append(f'{c}')\nreturn b"),
    "of which nothing is known": ("asks itself", "return a"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_a_family_leaves_the_rest_alone(name: str) -> None:
    operator, body = LEFT_ALONE[name]
    parameter = "b: str" if operator != "asks itself" else "b"
    assert not [
        e for e in made(f"import re\n\n\ndef f(a, {parameter}):\n{indented(body)}") if e.operator == operator
    ]


def test_fields_are_also_the_attributes_of_xml(case) -> None:  # type: ignore[no-untyped-def]  # fixture
    report = b'<?xml version="1.0"?>\n<suite tests="3" errors=\'1\'>\n<case time-s="2"/> a = b</suite>'
    found = given_names([case("t1", file="report", inputs={"report": report})]).fields
    assert found == ("version", "tests", "errors", "time-s")


@pytest.mark.slow
def test_a_fault_of_three_places_is_mended(case, brief) -> None:  # type: ignore[no-untyped-def]  # fixture
    source = (
        "def probe(rows):\n    last = None\n    gaps = []\n    for row in rows:\n        name, at = row[0], row[1]\n"
        "        if last is not None:\n            gaps.append(at - last)\n        last = at\n    return gaps\n"
    )
    failing = [
        case("t1", [4, 6], rows=[["a", 1], ["b", 2], ["a", 5], ["b", 8]]),
        case("t2", [5], rows=[["a", 3], ["b", 4], ["a", 8]]),
        case("t3", [], rows=[["x", 3], ["y", 9]]),
    ]
    working = [
        (case("t4", [3, 6], rows=[["a", 1], ["a", 4], ["a", 10]]), [3, 6]),
        (case("t5", [], rows=[["q", 1]]), []),
    ]
    benches = LocalBenches()
    found = list(RepairProposer(benches, 1).propose(brief(source, failing, working)))
    assert found
    assert len(found[0].predicted_fixes) == len(failing)
    assert "setdefault" in next(iter(found[0].files.values()))
    assert all(
        0 < each.prior < Policy().replay.prior_min for each in found if "several places" in each.operator
    )
    assert "several places" in found[0].operator, "a person is asked about it"


@pytest.mark.parametrize("name", [*FAMILIES, *FILES])
def test_no_edit_of_a_family_goes_by_another_kind(name: str) -> None:
    """By its kind a person is asked about it: a family that the table of kinds does not know would get around that."""
    source = (
        FILES[name][0]
        if name in FILES
        else f"import re\n\n\ndef f(a, b: str):\n{indented(FAMILIES[name][0])}"
    )
    program = Program(source)
    places = list(sites(FileFacts(program, GIVEN)))
    edits = [edit for site in places for family in SEVERAL for edit in family(site)]
    assert {kind_of_edit(program, edit) for edit in edits} <= {"several places"}
