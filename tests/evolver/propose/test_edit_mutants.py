"""Mutants of what an edit newly writes, and what an edit takes away; and ways around both that are closed."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from agentos.evolver.propose import edit_mutants
from agentos.evolver.propose.edit_mutants import (
    _spelled_out,
    bounds,
    decided,
    left_out,
    loosened,
    mutants,
    taken_otherwise,
)
from agentos.evolver.propose.moot_mutants import written_nodes

OLD = """import re

MARK = re.compile(r"^(?:re|aw):")


def run(rows, limit):
    found = []
    for row in rows:
        if row > 10 and row not in found:
            found.append(row)
    return sum(row for row in found if row < limit)
"""


def changed(*pairs: tuple[str, str]) -> str:
    text = OLD
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("new", "others"),
    [
        ((("sum(row for row in found if row < limit)", "len(found) // 2"),), {"1 for 2", "3 for 2"}),
        ((("row > 10", "row >= 10"),), set()),  # its only mutant is the base
        ((("row > 10", "row > 12"),), {"11 for 12", "13 for 12"}),  # and the bound beside it was there
        (
            (("    return", "    if limit <= 0:\n        return 0\n    return"),),
            {"< for <=", "-1 for 0", "1 for 0"},
        ),
        ((("found.append(row)", "found.append(row * 1.5)"),), {"1.35 for 1.5", "1.6500000000000001 for 1.5"}),
        ((("row > 10 and", "row > 10 or"),), set()),
        ((("found = []", "found = list()"),), set()),
    ],
)
def test_only_what_is_newly_written_has_mutants(new: tuple[tuple[str, str], ...], others: set[str]) -> None:
    found = mutants(OLD, changed(*new), 32)
    numbers_and_bounds = {name for name in found if re.search(r"with (-?\d|[<>]=?|and|or)\S* for \S+$", name)}
    assert {name.removeprefix("the same edit with ") for name in numbers_and_bounds} == others
    assert all(source not in (OLD, changed(*new)) for source in found.values())


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        ("row - 1 > 10", {"instead >= for > in line 9", "instead <= for < in line 11"}),
        ("row > 10 + 1", {"instead >= for > in line 9", "instead <= for < in line 11"}),
        ("row >= 10", set()),  # the other side itself
        ("row > 11", set()),
        ("row > 10 * 1", set()),
    ],
)
def test_one_more_or_less_is_held_against_the_bounds_of_the_base(new: str, wanted: set[str]) -> None:
    edit = changed(("row > 10", new))
    found = {name: source for name, source in mutants(OLD, edit, 8).items() if name.startswith("instead")}
    assert {name for name in found if ", name " not in name} == wanted
    assert all(new not in source for source in found.values())


def test_the_bound_itself_is_not_its_own_rival_and_none_is_made_where_none_are_asked_for() -> None:
    old = "from bisect import bisect_left\n\n\ndef run(a, b):\n    return bisect_left(a, b)\n"
    edit = old.replace("(a, b)\n", "(a, b + 1)\n")
    (name, source) = list(mutants(old, edit, 8).items())[-1]
    assert name == "instead bisect_right for bisect_left"
    assert source == old.replace("bisect_left", "bisect_right")
    assert mutants(old, edit, 0) == {}
    assert bounds(old, source, 8) == {}
    assert bounds("def f(:", "def f(): 1", 8) == {}


DISTANT = """def run(near, far):
    gap = far - near
    return f"cousins {far - 1:>{near}}" + str(gap)
"""


def _answers(source: str) -> list[object]:
    names: dict[str, Any] = {}
    exec(source, names)
    try:
        return [names["run"](near, far) for near, far in ((2, 5), (3, 4), (7, 7))]
    except UnboundLocalError:
        return []


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        (("far - 1:", "far - 1 - 1:"), ("far - 1:", "near - 1:")),  # within an f-string
        (("far - 1:", "far - 1 + -1:"), ("far - 1:", "near - 1:")),
        (("str(gap)", "str(gap + 1)"), ("str(gap)", "str(far)")),
        (("far - near", "far - near - 1"), ("far - near", "far - far")),
    ],
)
def test_one_more_or_less_is_held_against_another_name(new: tuple[str, str], wanted: tuple[str, str]) -> None:
    found = mutants(DISTANT, DISTANT.replace(*new), 32)
    named = [_answers(source) for name, source in found.items() if ", name " in name]
    assert _answers(DISTANT.replace(*wanted)) in named


@pytest.mark.parametrize(
    ("new", "word"), [(("far - 1:", "far - 2:"), "3 for 2"), (("far - 1:", "abs(far):"), "far for abs(far)")]
)
def test_what_is_written_within_an_f_string_has_mutants_too(new: tuple[str, str], word: str) -> None:
    assert f"the same edit with {word}" in mutants(DISTANT, DISTANT.replace(*new), 32)


@pytest.mark.parametrize(
    "text",
    [
        'f"{a!r:>{b}} {c:.2f}%{{}}" "é" f"{c}"',
        'f"{a=} {b!s}"',
        "f'''{a}\né {b}''' + f'{c}'",
        'f""',
        'f"{ {1: a}[1] }"',
        "f'{d[\"k\"]}\\n'",
    ],
)
def test_an_f_string_spelled_out_says_the_same(text: str) -> None:
    source = f"é = 0; answer = {text}\n"
    out = _spelled_out(source, "")
    assert out != source
    assert not any(isinstance(node, ast.JoinedStr) for node in ast.walk(ast.parse(out)))
    assert _spelled_out(source, source) == source
    given = {"a": "x", "b": 9, "c": 2.25, "d": {"k": 1}}
    told: list[dict[str, Any]] = [dict(given), dict(given)]
    exec(source, told[0])
    exec(out, told[1])
    assert told[0]["answer"] == told[1]["answer"]


def test_there_are_at_most_as_many_as_are_asked_for_and_none_of_what_is_no_python() -> None:
    edit = changed(("return sum", "return 1 + 2 + 3 + 4 + sum"))
    assert [len(mutants(OLD, edit, most)) for most in (0, 3, 8)] == [0, 3, 8]
    assert mutants("def f(:", "def f(): 1", 8) == {}
    assert mutants(OLD, "def f(:", 8) == {}


@pytest.mark.parametrize(
    "new",
    [
        [('"^(?:re', '"(?:re')],
        [('"^(?:re|aw):"', '"(?:re|aw|wg):\\s*"')],  # with something else in the pattern
        [("row > 10 and row not in found", "row > 10")],
        [("row > 10 and row not in found", "row > 10 and True")],  # a constant is no condition
        [(" if row < limit", "")],
        [(" if row < limit", " if 1")],
        [("        if row > 10 and row not in found:\n            found", "        found")],
    ],
)
def test_what_is_taken_away_and_not_replaced_is_said(new: list[tuple[str, str]]) -> None:
    assert loosened(OLD, changed(*new))


@pytest.mark.parametrize(
    "new",
    [
        [('"^(?:re|aw):"', '"^(?:(?:re|aw):)+"')],
        [('"^(?:re|aw):"', '"\\A(?:re|aw):"')],  # another anchor
        [("row > 10 and row not in found", "row not in found and row > 10")],
        [("row > 10 and row not in found", "row > 10 or row not in found")],
        [("row not in found", "row in found")],
        [("row > 10", "row >= 10")],
        [("if row < limit", "if row < limit and row")],
        [
            ("sum(row for row in found if row < limit)", "sum(found[:limit])"),
            ("found = []", "if limit:\n        pass\n    found = []"),
        ],
        [("found = []", "found = set()")],
    ],
)
def test_what_moves_or_is_replaced_is_not_taken_away(new: list[tuple[str, str]]) -> None:
    assert not loosened(OLD, changed(*new))


def test_of_what_is_no_python_nothing_is_said() -> None:
    assert loosened("def f(:", OLD) == loosened(OLD, "def f(:") == ""


TEXTS = """def run(rows):
    total = 0
    for row in rows:
        if row == "train" or "bus":
            total += 1
    return total
"""


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ('row in "train/bus"', "row in ('train', 'bus')"),
        ('row not in {"hotel", "meal"}', "(row in ('bus', 'train'))"),
        ('row in ["hotel"]', "(row not in ('bus', 'train'))"),
        ('row in ("train", "bus")', ""),  # named before
        ('"@" in row', ""),
    ],
)
def test_texts_that_are_compared_are_taken_otherwise(test: str, wanted: str) -> None:
    found = taken_otherwise(TEXTS, TEXTS.replace('row == "train" or "bus"', test))
    assert [source.split("if ")[1].split(":")[0] for source in found.values()] == [wanted] * bool(wanted)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("total += 1", 'rows[0] = ""', "rows[0] = object()"),
        (
            "total += 1",
            'row = row.replace(",", ";")\n            row = row.replace(";", ".")',
            "row = row.replace(\",\", '\\ue000')\n            row = row.replace('\\ue000', \".\")",
        ),
        (
            "return total",
            "past = {row: 1 for row in rows}\n    return sum(past.values())",
            "past = {row: 1 for row in rows}; past_all = [1 for row in rows]\n    return sum(past_all)",
        ),
    ],
)
def test_a_mark_and_a_table_that_drops_doubles_are_taken_otherwise(old: str, new: str, wanted: str) -> None:
    found = taken_otherwise(TEXTS, TEXTS.replace(old, new))
    assert TEXTS.replace(old, wanted) in found.values()


def test_words_are_left_out_for_what_goes_by_parts_of_texts() -> None:
    assert left_out(TEXTS, TEXTS.replace("total += 1", 'rows[0] = ""')) == [""]
    assert left_out(TEXTS, TEXTS.replace('row == "train" or "bus"', 'row in "train/bus"')) == [""]
    assert left_out(TEXTS, TEXTS.replace("total += 1", "rows[0] = None")) == []


def test_a_number_of_a_conversion_has_no_neighbours() -> None:
    found = mutants(OLD, changed(("found.append(row)", "found.append(row % (24 * 60))")), 32)
    assert not any(name.endswith(("for 24", "for 60")) for name in found)
    found = mutants(OLD, changed(("found.append(row)", "found.append(row % (24 * 61))")), 32)
    assert any(name.endswith("for 61") for name in found)


@pytest.mark.parametrize(("test", "others"), [("< 0", ["1"]), (">= 0", ["1"]), ("> 0", ["-1", "1"])])
def test_who_asks_for_a_sign_means_no_number_below_nought(test: str, others: list[str]) -> None:
    found = mutants(OLD, changed(("row > 10 and", f"row {test} and")), 32)
    assert [other for other in ("-1", "1") if f"the same edit with {other} for 0" in found] == others


def test_a_condition_that_is_taken_away_is_decided_both_ways() -> None:
    new = changed(("row > 10 and row not in found", "row > 10"))
    told = [re.search("if (.*):", text) for text in decided(OLD, new)]
    assert [each[1] for each in told if each] == ["row > 10 and True", "row > 10 and False"]
    assert decided(OLD, OLD) == decided("def f(:", OLD) == []


def test_what_is_taken_away_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both texts are parsed for it: once for each new node would take minutes."""
    calls: list[int] = []

    def counted(old: str, new: str) -> Any:
        calls.append(1)
        return written_nodes(old, new)

    monkeypatch.setattr(edit_mutants, "written_nodes", counted)
    lines = "".join(f"    found.append(max(limit, {number}))\n" for number in range(10))
    assert taken_otherwise(OLD, changed(("    return sum", lines + "    return sum"))) == {}
    assert len(calls) < 5


READING = """import re

WORD = re.compile(r"<(.+)>")


def run(text, count):
    for tag in text.split(","):
        tag = tag.strip()
    return WORD.findall(text), tag, count
"""


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        (("text), tag, count", "text), tag, count or 1"), "count if count is not None else 1"),
        (("    return", "    if not count:\n        return 0\n    return"), "if (count is None):"),
        (("(.+)", r"(\w+)"), "WORD = re.compile('<(.+?)>')"),
        (("<(.+)", r"<\b(.+)"), "<(?![!#%&*;])(.+)"),
        (("tag.strip()", 're.sub(r"[^a-z]", "", tag)'), r"re.sub('\\s',"),
        (("tag.strip()", r're.sub(r"\W+", "", tag)'), r"re.sub('\\s+',"),
        (("tag, count", "tag, tag[:3] == text[:3]"), "(tag == text)"),
        (("tag, count", "tag, count.setdefault(tag, 1)"), "(count.__setitem__(tag, 1), count[tag])[1]"),
        (("tag, count", "tag, tag in text"), "tag in text.replace(',', ' ').replace(';', ' ').split()"),
    ],
)
def test_nothing_a_match_and_what_is_taken_out_are_taken_otherwise(new: tuple[str, str], wanted: str) -> None:
    assert new[0] in READING
    assert any(wanted in source for source in taken_otherwise(READING, READING.replace(*new)).values())


@pytest.mark.parametrize(
    "new",
    [
        ("tag, count", "tag, count > 1 or 1"),  # a comparison is never None
        ("tag, count", 'tag, "-" in text'),  # a sign is no word
        ("tag, count", "tag, count.get(tag, 1)"),
        ("tag, count", "tag, tag[:] == text"),
        ("(.+)", "(.+?)"),  # the shortest match itself
        ("tag.strip()", 're.sub(r"[^a-z]", " ", tag)'),  # nothing is taken out
        ("tag.strip()", r're.sub(r"\s", "", tag)'),
    ],
)
def test_what_cannot_be_taken_otherwise_is_not(new: tuple[str, str]) -> None:
    assert new[0] in READING
    assert taken_otherwise(READING, READING.replace(*new)) == {}


BRANCHES = """def days(part):
    if part == "*":
        low, high = 0, 6
    elif "-" in part:
        low, high = map(int, part.split("-"))
    else:
        low = high = int(part)
    return list(range(low, high + 1))
"""


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("high = int(part)", "high = int(part) % 7", ["low", "high"]),
        ("= 0, 6", "= 0, 7", []),  # another value, and none that is treated
        ("return list(", "return sorted(", []),  # behind all branches already
    ],
)
def test_what_one_branch_newly_treats_is_held_against_all_branches(
    old: str, new: str, names: list[str]
) -> None:
    found = [
        text
        for words, text in taken_otherwise(BRANCHES, BRANCHES.replace(old, new)).items()
        if "branch" in words
    ]
    more = "".join(f"    {name} = {name} % 7\n" for name in names)
    wanted = BRANCHES.replace(old, new).replace("    return", f"{more}    return").rstrip("\n")
    assert found == ([wanted] if names else [])
