import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from agentos import shipped
from agentos.errors import Invalid
from agentos.evolver.propose.input_variation import generate
from agentos.proposers.repair.places import suspicion
from agentos.proposers.repair.prior import (
    AT_HAND,
    EditStock,
    RankedEdit,
    WeightedEdit,
    in_turn,
    kind_of_edit,
    ranked,
    read_prior,
    totals,
    weighed,
)
from agentos.proposers.repair.ranking import drops_a_computation, hypotheses, oddities, turns_a_condition
from agentos.proposers.repair.search import Plausible
from agentos.proposers.repair.source import CodeEdit, Family, Program, Splice
from tests.refusals import raises

SOURCE = "def f(a, b):\n    c = a < b + 1\n    return a\n"


def edit(old: str, new: str, operator: str = "test", weight: float = 1.0) -> CodeEdit:
    start = SOURCE.index(old)
    return CodeEdit((Splice(start, start + len(old), new),), operator, weight)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("<", "<=", "comparison operator"),
        ("+", "-", "arithmetic operator"),
        ("1", "2", "constant"),
        ("return a", "return b", "name/keyword"),
        ("b + 1", "b", "drop tokens<=3"),
        ("a < b + 1", "a < b + 1 - 1", "insert +-1"),
        ("b + 1", "abs(b + 1)", "insert tokens<=3"),
        ("a < b + 1", "a < b + 1 and c > 3", "insert tokens>3"),
    ],
)
def test_the_kind_is_read_off_the_tokens(old: str, new: str, kind: str) -> None:
    assert kind_of_edit(Program(SOURCE), edit(old, new)) == kind


def test_a_kinds_share_is_divided_among_its_edits_by_weight_and_suspicion() -> None:
    edits = [(edit("<", "<="), 1.0), (edit("<", ">"), 3.0), (edit("return a", "return b"), 1.0)]
    known = EditStock(weighed(Program(SOURCE), edits, {2: 1.0, 3: 1.0}))
    order = ranked(known, {"comparison operator": 60, "name/keyword": 40})
    assert [(r.edit.splices[0].text, round(r.probability, 2)) for r in order] == [
        (">", 0.45),
        ("return b", 0.4),
        ("<=", 0.15),
    ]


def test_shares_can_be_divided_among_the_edits_of_several_files() -> None:
    here = EditStock(weighed(Program(SOURCE), [(edit("<", "<="), 1.0)], {2: 1.0}))
    there = EditStock(weighed(Program(SOURCE), [(edit("<", ">"), 3.0)], {2: 1.0}))
    shared = totals([here, there])
    found = [next(ranked(edits, {"comparison operator": 60}, shared)).probability for edits in (here, there)]
    assert found == [0.25, 0.75]


@pytest.mark.slow
def test_a_stretch_waits_while_enough_is_at_hand_however_many_edits_were_made_in_between() -> None:
    begun, change = [], edit("<", "<=")

    def stretches() -> Iterator[EditStock]:
        for number in range(9):
            begun.append(number)
            guards = Family("guard", 1.0, 1.0, iter([replace(change, operator="guard")] * 2 * AT_HAND))
            plain = [WeightedEdit(change, "comparison operator", 1e-9)] * (AT_HAND // 2)
            yield EditStock(plain, [(guards, 1.0)], 0.1, 1.0)

    order = in_turn(stretches(), {})
    list(islice(order, 4 * AT_HAND + 1))
    assert begun == [0, 1]


def test_lines_that_only_failing_calls_run_are_the_most_suspicious() -> None:
    found = suspicion(Program(SOURCE), failing=[(2, 3)], passing=[(3,), (3,)])
    assert found[2] == 1.0
    assert found[3] < 0.6


def test_cases_that_no_failing_call_runs_are_not_suspicious() -> None:
    source = "def f(a):\n    match a:\n        case 1:\n            return 2\n        case _:\n            return 3\n"
    found = suspicion(Program(source), failing=[(1, 2, 3, 5, 6)], passing=[])
    assert sorted(found) == [1, 2, 3, 5, 6]


def test_a_decorated_function_is_as_suspicious_as_its_call() -> None:
    source = "@cache\n@cache\ndef f(\n    a,\n    b=1,\n):\n    return a\n"
    assert suspicion(Program(source), failing=[(1, 7)], passing=[]) == dict.fromkeys(range(1, 8), 1.0)


def test_only_what_runs_of_a_coroutine_is_suspicious() -> None:
    source = "async def f(a):\n    if a:\n        return 1\n    return 2\n"
    found = suspicion(Program(source), failing=[(2, 4)], passing=[(2, 3)])
    assert found[4] == 1.0
    assert 3 not in found


@pytest.mark.parametrize("word", ["def", "async def"])
def test_the_head_of_a_function_is_as_suspicious_as_its_first_statement(word: str) -> None:
    """A box tells the lines of statements that ran, and a default is wrong where its function begins."""
    source = f'{word} f(\n    a=1,\n):\n    """What."""\n    a += 1\n    return a\n'
    found = suspicion(Program(source), failing=[(5, 6)], passing=[(5, 6)])
    assert found[1] == found[2] == found[5] > 0


def test_what_a_class_holds_runs_on_import_and_its_methods_when_they_are_called() -> None:
    source = "class A:\n    rate = 3\n\n    class B:\n        most = 4\n\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"
    found = suspicion(Program(source), failing=[(8,)], passing=[])
    assert {line for line, much in found.items() if 0 < much < 1} == {2, 5}
    assert found[8] == 1.0
    assert 11 not in found


def test_the_shipped_table_is_readable() -> None:
    assert read_prior(shipped.folder("evolver") / "edit_prior.toml")["comparison operator"] == 165


def test_a_broken_table_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "edit_prior.toml"
    path.write_text("kinds = 3")
    with raises(Invalid, names=["edit_prior"]):
        read_prior(path)


def plausible(text: str, probability: float, outputs: tuple[object, ...]) -> Plausible:
    made = edit("return a", text)
    source = SOURCE.replace("return a", text)
    return Plausible(RankedEdit(made, "test", probability), source, (True,), outputs)


def test_what_many_edits_agree_on_wins_over_a_lone_likelier_one() -> None:
    found = [
        plausible("return -a", 0.30, (1, 2)),
        plausible("return b", 0.25, (3, 4)),
        plausible("return c", 0.25, (3, 4)),
    ]
    best = hypotheses(Program(SOURCE), (0, 0), found)[0]
    assert best.best.outputs == (3, 4)
    assert best.edits == 2


def test_new_crashes_count_against_an_edit() -> None:
    broken = {"error": "TypeError", "message": ""}
    found = [plausible("return -a", 0.5, (broken, broken)), plausible("return b", 0.3, (3, 4))]
    assert hypotheses(Program(SOURCE), (0, 0), found)[0].best.source.endswith("return b\n")


@pytest.mark.parametrize("text", ["a == a", "x - x", "x * 1", "a < b > c", "f(a, a)", "b if True else c"])
def test_what_nobody_writes_is_odd(text: str) -> None:
    assert oddities(ast.parse(text)) == 1


def test_generated_inputs_are_new_distinct_and_the_same_each_time(case) -> None:  # type: ignore[no-untyped-def]  # fixture
    cases = [case("t1", text="a,b", rows=[1, 2, 3], path="x.csv", inputs={"x.csv": b"1,2\n3,4\n"})]
    made = generate(cases, 30)
    assert made == generate(cases, 30)
    assert len({repr((c.call.args, c.inputs)) for c in made}) == 30
    assert all(c.call.args["path"] == "x.csv" for c in made), "the name of an input file stays"
    assert any(c.inputs["x.csv"] != b"1,2\n3,4\n" for c in made)
    assert not any(c.checks for c in made)


@pytest.mark.slow
def test_large_files_are_varied_only_as_often_as_there_is_room(case) -> None:  # type: ignore[no-untyped-def]  # fixture
    cases = [case("t1", path="x.csv", inputs={"x.csv": b"1,2\n" * 1_000_000})]
    assert len(generate(cases, 30)) <= 3


def test_what_leaves_fewer_of_the_evidences_exceptions_comes_first_with_its_own_share() -> None:
    failing = {"error": "KeyError", "message": "x"}
    likely = Plausible(RankedEdit(edit("<", "<="), "", 0.9), SOURCE, (True,), (failing, failing, failing, 1))
    whole = Plausible(RankedEdit(edit("b + 1", "b"), "", 0.1), SOURCE, (True,), (1, 2, 3, 1))
    found = hypotheses(
        Program(SOURCE), (failing, failing, failing, 1), [likely, whole], frozenset({"KeyError"})
    )
    assert [each.best for each in found] == [whole, likely]
    assert found[0].share == pytest.approx(0.1), "so that the other is known to be a rival"


@pytest.mark.parametrize(
    ("old", "new", "turned"),
    [
        ("a == b", "a != b", True), ("a < b", "a >= b", True), ("a", "not a", True), ("not a", "a", True),
        ("a in b", "a not in b", True), ("a < b", "a <= b", False), ("a == b", "a == c", False),
        ("a == b and c", "a != b and not c", False), ("a == b", "a != c", False), ("f(a)", "f(a, b)", False),
    ],
)  # fmt: skip
def test_a_condition_that_became_its_opposite_is_told(old: str, new: str, turned: bool) -> None:
    one, other = (f"def f(a, b, c):\n    if {test}:\n        return 1\n" for test in (old, new))
    assert turns_a_condition(one, other) is turned


@pytest.mark.parametrize(
    ("old", "new", "dropped"),
    [
        ("abs(a)", "a", True), ("a.strip()", "a", True), ("a + b", "a", True), ("a + b", "b", True),
        ("a and b and c", "a and c", True), ("a and b", "a", True), ("max(a + b, c)", "max(a, c)", True),
        ("abs(a)", "abs(b)", False), ("a + b", "a - b", False), ("a", "abs(a)", False), ("a + b", "c", False),
        ("f(a)", "g(a)", False), ("f(a, b)", "f(a)", False), ("abs(a) + b", "a + c", False),
        ("a[0].isdigit()", "a", True), ("len(a.split(b))", "a", True), ("a[0].isdigit()", "c", False), ("a[0]", "a", False),
        ("a[0]", "0", True), ("int(a['b'])", "int('b')", True), ("a['b']", "'c'", False),
        ("not f(a, b)", "a", True), ("not f(a, b)", "f(a, b)", False), ("not a", "a", False),
    ],
)  # fmt: skip
def test_a_computation_that_is_left_out_is_told(old: str, new: str, dropped: bool) -> None:
    one, other = (f"def f(a, b, c):\n    return {value}\n" for value in (old, new))
    assert drops_a_computation(one, other) is dropped


def test_what_leaves_a_computation_out_or_turns_a_condition_comes_behind_what_is_as_likely() -> None:
    def made(old: str, new: str, probability: float, outputs: tuple[int, ...]) -> Plausible:
        return Plausible(
            RankedEdit(edit(old, new), "", probability), SOURCE.replace(old, new), (True,), outputs
        )

    dropped, turned = made("b + 1", "b", 0.4, (1, 2)), made("<", ">=", 0.4, (3, 4))
    other = made("1", "2", 0.2, (5, 6))
    found = hypotheses(Program(SOURCE), (0, 0), [dropped, turned, other])
    assert found[0].best is other
    assert found[0].share == pytest.approx(0.2 / (0.2 + 2 * 0.08))
    alike = hypotheses(
        Program(SOURCE), (0, 0), [replace(each, outputs=(5, 6)) for each in (dropped, turned, other)]
    )
    assert [each.best.source for each in alike] == [other.source], "of one behaviour, too"
    likely = hypotheses(
        Program(SOURCE), (0, 0), [made("b + 1", "b", 0.9, (1, 2)), made("1", "2", 0.1, (5, 6))]
    )
    assert likely[0].best.source == dropped.source, "it is behind, and not out of reach"


def test_where_no_input_tells_how_much_changes_all_is_taken_to() -> None:
    failing = {"error": "KeyError", "message": "x"}
    left_out = Plausible(RankedEdit(edit("b + 1", "b"), "", 0.1), SOURCE, (True,), (1, 1))
    for old, changed in (((failing, failing), 1.0), ((1, failing), 0.0), ((2, 1), 0.5)):
        (found,) = hypotheses(Program(SOURCE), old, [left_out])
        assert found.changed == changed
    (found,) = hypotheses(Program(SOURCE), (), [replace(left_out, outputs=())])
    assert found.changed == 1.0


@pytest.mark.parametrize(
    ("new", "dropped"),
    [
        ("    c = b\n", True),
        ("    a = a + 1\n    c = b\n    a = 2\n", False),
        ("    a = 2\n    c = b\n", False),
    ],
)
def test_a_statement_that_is_left_out_is_told(new: str, dropped: bool) -> None:
    old = "    a = a + 1\n    c = b\n"
    one, other = (f"def f(a, b, c):\n{body}    return a\n" for body in (old, new))
    assert drops_a_computation(one, other) is dropped
