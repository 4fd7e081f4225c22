"""Edits that pass the same tasks are told apart by what else they answer, or a person is asked.

The tools really run, in the bench without a sandbox.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.benches import BenchResult
from agentos.domain import (
    Ambiguity,
    Behaviour,
    Call,
    Candidate,
    Check,
    Edit,
    Json,
    Layer,
    Manifest,
    RefusalKind,
    Snapshot,
)
from agentos.evolver.policy import Policy, ReplayPolicy
from agentos.evolver.propose.ambiguity import (
    EditExamination,
    EditFindings,
    Known,
    compared,
)
from agentos.evolver.propose.behaviour import edited_alone
from agentos.evolver.propose.edit_mutants import mutants
from agentos.evolver.propose.moot_mutants import edited_lines
from agentos.evolver.propose.neighbours import crossed, filled, levelled, neighbours, stepped, usual
from agentos.evolver.propose.symptoms import parted
from agentos.evolver.verdict.doubts import doubts
from agentos.ports import Case
from tests.evolver.propose.test_behaviour import GRADE, REFUSALS, TOOL, LostBenches, judged

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from local_bench import LocalBench

HEAD = '''"""A tool."""

from pydantic import BaseModel

TOOL = {"name": "packs", "description": "Works.", "effects": []}


class Input(BaseModel):
    missing: int
    size: int = 6


class Output(BaseModel):
    result: int


def run(input: Input) -> Output:
    missing = input.missing
    if missing <= 0:
        return Output(result=0)
    return Output(result=%s)
'''
FAULTY, RIGHT, TOO_MUCH, ALIKE, BROKEN = (
    HEAD % text
    for text in (
        "missing // input.size",
        "-(-missing // input.size)",
        "missing // input.size + 1",
        "(missing + input.size - 1) // input.size",
        "99",
    )
)


def case(number: int, wanted: Json, **args: Json) -> Case:
    return Case(f"task-{number}", Call("packs", args), {}, (Check("equals", {"value": {"result": wanted}}),))


EVIDENCE = [case(1, 2, missing=7), case(2, 3, missing=14)]
IDLE = [case(3, 0, missing=0), case(4, 0, missing=0, size=4)]  # working calls that never come to the line
TELLING = [case(5, 2, missing=12)]  # one that does, and that tells the edits apart


def found(own: str, rivals: dict[str, str], working: list[Case]) -> EditFindings:
    tasks = [*EVIDENCE, *working]
    known = Known(tasks, set(range(len(EVIDENCE), len(tasks))), b"k" * 32, ReplayPolicy(neighbours=24))
    drawn = usual(neighbours(tasks, FAULTY, known.key, 96, unsaid=True), tasks)
    bench = LocalBench([*tasks, *(item.case for item in drawn)], 0.5)
    try:
        return EditExamination(bench, known, drawn, [], FAULTY, own).findings(rivals)
    finally:
        bench.close()


def test_edits_that_differ_beside_all_tasks_are_a_question_with_both_answers() -> None:
    ambiguity = found(RIGHT, {"cand-2": TOO_MUCH}, IDLE).ambiguity
    assert ambiguity is not None
    assert (ambiguity.rivals, ambiguity.rival) == (1, "cand-2")
    assert ambiguity.answer != ambiguity.other
    assert "missing" in ambiguity.call


@pytest.mark.parametrize(
    ("rivals", "working"),
    [
        ({"cand-2": TOO_MUCH}, TELLING),  # a working call tells them apart
        ({"cand-2": ALIKE}, IDLE),  # written otherwise, and nothing else
        ({"cand-2": BROKEN}, IDLE),
        ({}, IDLE),
    ],
)
def test_no_question_where_tasks_or_answers_leave_none(rivals: dict[str, str], working: list[Case]) -> None:
    assert found(RIGHT, rivals, working).ambiguity is None


class CountingBench(LocalBench):
    """Knows how often each source was run on each case."""

    def __init__(self, cases: Sequence[Case], timeout_s: float) -> None:
        super().__init__(cases, timeout_s)
        self.runs: Counter[tuple[str, int]] = Counter()

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        self.runs.update((source, number) for number in cases or ())
        return super().try_source(source, trace=trace, cases=cases)


def test_an_edit_runs_once_on_each_input_for_all_questions() -> None:
    tasks = [*EVIDENCE, *IDLE]
    known = Known(tasks, {2, 3}, b"k" * 32, ReplayPolicy(mutants=1))
    drawn = usual(neighbours(tasks, FAULTY, known.key, 24, unsaid=True), tasks)
    bench = CountingBench([*tasks, *(item.case for item in drawn)], 0.5)
    with closing(bench):
        seen = EditExamination(bench, known, drawn, [], FAULTY, RIGHT).findings({"cand-2": TOO_MUCH})
    assert seen.ambiguity is not None
    made = {number: count for (source, number), count in bench.runs.items() if source == RIGHT}
    assert {*made} >= {*range(len(tasks), len(tasks) + len(drawn))}
    # and a few once more, for whether it does so again
    assert {made[len(tasks) + number] for number in range(len(drawn))} <= {1, 2}


def test_an_argument_that_no_task_gives_tells_edits_apart_too() -> None:
    own, other = RIGHT, RIGHT.replace("input.size)", "6)")
    ambiguity = found(own, {"cand-2": other}, IDLE).ambiguity
    assert ambiguity is not None
    assert ambiguity.call.startswith("size=")


def test_lines_that_no_working_call_runs_are_unguarded() -> None:
    assert found(RIGHT, {}, IDLE).unguarded is True
    assert found(RIGHT, {}, TELLING).unguarded is False
    assert found(RIGHT, {}, []).unguarded is None  # without any, other doubts speak


ENDLESS = FAULTY.replace("\ndef run(", "\ndef deep(n):\n    return deep(n)\n\n\ndef run(").replace(
    "missing // input.size", "deep(1) if missing > 40 else -(-missing // input.size)"
)


def test_nobody_means_what_has_no_end() -> None:
    assert found(RIGHT, {"cand-2": ENDLESS}, IDLE).ambiguity is None


UNBOUND = HEAD.replace(
    "    return Output(result=%s)",
    "    if missing < 16:\n        packs = %s\n    return Output(result=packs)",
)


def test_nobody_means_a_name_without_a_value() -> None:
    rival = UNBOUND % "-(-missing // input.size)"
    assert found(RIGHT, {"cand-2": rival}, IDLE).ambiguity is None
    # which hides no other rival, and nothing that the edit itself leaves without one
    both = found(RIGHT, {"cand-2": rival, "cand-3": TOO_MUCH}, IDLE)
    assert [*both.rivals] == ["cand-3"]
    asked = found(rival, {"cand-2": RIGHT}, IDLE).ambiguity
    assert asked is not None
    assert asked.answer.startswith("UnboundLocalError")
    # an error that says no is an answer that may be meant
    refusing = RIGHT.replace(
        "    return Output(result=-",
        "    if missing > 16:\n        raise ValueError('too many')\n    return Output(result=-",
    )
    assert found(RIGHT, {"cand-2": refusing}, IDLE).ambiguity is not None


def test_a_condition_that_working_calls_need_is_replaced_by_what_passes_them() -> None:
    shorter = RIGHT.replace("    if missing <= 0:\n        return Output(result=0)\n", "")
    known = [case(3, 0, missing=-3), case(5, 2, missing=12)]
    assert (
        found(
            shorter.replace("result=-(", "result=max(0, -(").replace("size))", "size)))"), {}, known
        ).loosened
        == ""
    )
    assert found(shorter, {}, [case(3, 0, missing=0), case(5, 2, missing=12)]).loosened


@pytest.mark.parametrize(
    ("edit", "broad"), [("input.missing + 1 or 1", True), ("max(input.missing, 1)", False)]
)
@pytest.mark.slow
def test_an_edit_that_changes_most_answers_next_to_guards_is_not_the_repair_of_a_slip(
    edit: str, broad: bool
) -> None:
    _, candidate = judged(
        HEAD.replace("packs", "grade") % "missing",
        HEAD.replace("packs", "grade").replace("if missing <= 0:", "if missing is None:") % edit,
        [{"missing": 0}],
        [{"missing": 30}, {"missing": 50}],
        policy=REFUSALS,
    )
    assert candidate.behaviour is not None
    assert candidate.behaviour.broad is broad


@pytest.mark.parametrize(
    ("edit", "broad"),
    [
        ("1 // (missing > 900)", True),  # it raises instead
        ("missing * 2 if missing > 3 else missing", True),
        ("float(missing)", False),  # the same to whoever reads it
    ],
)
@pytest.mark.slow
def test_most_answers_cannot_be_changed_in_another_way(edit: str, broad: bool) -> None:
    source = HEAD.replace("packs", "grade")
    guards: list[dict[str, Json]] = [{"missing": 30}, {"missing": 50}]
    _, candidate = judged(source % "missing", source % edit, [{"missing": 30}], guards, policy=REFUSALS)
    assert candidate.behaviour is not None
    assert candidate.behaviour.broad is broad


def rival(name: str, weight: float, text: str, path: str = TOOL, screened: str = "") -> Candidate:
    """Another candidate of the evolution that ``judged`` makes."""
    manifest = Manifest("evd", "", "", (path,), (), (), Layer.SKILL, "")
    edit = Edit({path: HEAD.replace("packs", "grade") % text}, "", "")
    nowhere = Snapshot("", "")
    return Candidate(name, "evo-1", "x", 2, manifest, edit, nowhere, nowhere, screened, weight=weight)


@pytest.mark.parametrize(
    ("path", "compared"),
    [
        ("skill/x/tools/pay.py", True),
        ("skill/x/tools/_rates.py", True),
        ("skill/x/tools/other.py", False),
        ("skill/x/_rates.py", False),
    ],
)
def test_an_edit_of_a_helper_module_is_compared_as_one_of_the_tool_is(path: str, compared: bool) -> None:
    assert bool(edited_alone([path], "skill/x/tools/pay.py")) is compared


def test_an_edit_for_work_without_checks_is_compared_with_nothing() -> None:
    text = HEAD.replace("packs", "grade")
    refused, candidate = judged(
        text % "missing // 6", text % "missing", [{"missing": 12}, {"missing": 30}], checked=False
    )
    assert refused is None
    assert candidate.behaviour is not None
    assert candidate.behaviour.ambiguity is None


OTHER, THIRD = "missing * 5", "missing + 1 if missing else 9"


@pytest.mark.parametrize(
    ("weight", "rivals", "asked"),
    [
        (0.8, [("cand-2", 0.2, OTHER)], True),  # just the share
        (0.8, [("cand-2", 0.19, OTHER)], False),
        # one behaviour, written twice
        (0.8, [("cand-2", 0.1, OTHER), ("cand-3", 0.1, f"{OTHER} + 0")], True),
        (0.8, [("cand-2", 0.1, OTHER), ("cand-3", 0.1, THIRD)], False),
        (0.8, [("cand-2", 0.0, OTHER)], True),  # its proposer says nothing of its weight
        (0.0, [("cand-2", 0.01, OTHER)], True),  # nor of the edit's own
        (0.8, [("cand-2", 0.8, OTHER, TOOL, "it imports os")], False),
        (0.8, [("cand-2", 0.8, OTHER, "skill/other/tools/grade.py")], False),
    ],
)
def test_no_rival_of_weight_is_left_unheard(
    weight: float, rivals: list[tuple[str, float, str]], asked: bool
) -> None:
    source = HEAD.replace("packs", "grade")
    _, candidate = judged(
        source % "missing",
        source % "missing + input.size",
        [{"missing": 30}],
        [{"missing": 0}],
        weight=weight,
        rivals=[rival(*each) for each in rivals],
        policy=replace(Policy(), replay=ReplayPolicy(mutants=0)),  # they pass here, too
    )
    assert candidate.behaviour is not None
    assert bool(candidate.behaviour.ambiguity) is asked


@pytest.mark.parametrize(
    ("weight", "rivals", "share"),
    [
        (0.4, [0.09, 0.09, 0.25], 0.482),  # each too light to be asked about, together likelier
        (0.4, [0.2], 0.667),
        (0.4, [], 1.0),  # what the rest of the belief was in passes no more
        (0.0001, [0.00002, 0.4], 0.00025),  # as little as that is not the 0 of what nobody weighed
        (0.0, [0.2], 0.0),
    ],
)
def test_rivals_that_are_no_question_still_share_in_the_belief(
    weight: float, rivals: list[float], share: float
) -> None:
    source = HEAD.replace("packs", "grade")
    standing = [
        rival(f"cand-{n}", each, f"missing + {n} * 0 + input.size") for n, each in enumerate(rivals, 2)
    ]
    _, candidate = judged(
        source % "missing",
        source % "missing + input.size",
        [{"missing": 30}],
        [{"missing": 0}],
        weight=weight,
        rivals=standing,
        policy=replace(Policy(), replay=ReplayPolicy(mutants=0)),
    )
    assert candidate.behaviour is not None
    assert (candidate.behaviour.ambiguity, candidate.behaviour.share) == (None, share)


FREE = HEAD % "missing * 3"


@pytest.mark.parametrize(
    ("pins", "asked"), [([], True), ([case(6, 57, missing=19), case(7, 0, missing=20)], False)]
)
def test_a_bound_that_no_task_tells_is_a_question(pins: list[Case], asked: bool) -> None:
    """From 20 on it is free: so says the edit, and tasks that are far from 20 do not contradict."""
    edit = FREE.replace("missing * 3", "0 if missing >= 20 else missing * 3")
    evidence = [case(1, 0, missing=40), case(2, 0, missing=70)]
    tasks = [*evidence, case(3, 15, missing=5), *pins]
    own = mutants(FREE, edit, 8)
    known = Known(tasks, set(range(2, len(tasks))), b"k" * 32, ReplayPolicy())
    sources = "\n".join((FREE, edit, *own.values()))
    drawn = usual(neighbours(tasks, sources, known.key, 192), tasks)
    bench = LocalBench([*tasks, *(item.case for item in drawn)], 0.5)
    try:
        ambiguity = EditExamination(bench, known, drawn, [], FREE, edit).findings(own).ambiguity
    finally:
        bench.close()
    assert bool(ambiguity) is asked
    if ambiguity is not None:
        assert ambiguity.rival.startswith("the same edit with ")


def test_a_question_shows_where_two_long_answers_part() -> None:
    same = {"list": list(range(100))}
    mine, other = parted({**same, "sum": 1}, {**same, "sum": 2})
    assert (mine, other) == ({"sum": 1}, {"sum": 2})
    assert parted({"error": "x", "message": "a"}, {"error": "x", "message": "b"})[0] == {
        "error": "x",
        "message": "a",
    }
    assert parted([1], {"a": 1}) == ([1], {"a": 1})


def test_numbers_are_stepped_where_they_stand_for_themselves() -> None:
    text = b"day;clock;price;id\n2026-03-01;12:30;4.50;007\nv1.2.3 of 9 pieces, -5 left\n"
    given = Case(
        "task-1", Call("packs", {"count": 3, "sure": True, "path": "a.csv", "rate": 0.5}), {"a.csv": text}, ()
    )
    made = stepped([given], b"k" * 32, 99)
    files = {item.case.inputs["a.csv"].decode() for item in made if item.along == "a.csv"}
    assert all("2026-03-01;12:30;" in each and "v1.2.3" in each for each in files)
    assert len(files) == 4  # 4.50, 007, 9 and -5
    assert sum(";00" in each for each in files) == 4
    args = [item.case.call.args for item in made if item.along != "a.csv"]
    assert {type(each["count"]) for each in args} == {int}
    assert {type(each["rate"]) for each in args} == {float}
    assert all(each["sure"] is True for each in args)
    assert len(stepped([given], b"k" * 32, 2)) == 2
    assert stepped([given], b"k" * 32, 99) == made
    assert stepped([], b"k" * 32, 9) == []


def test_a_number_meets_an_argument_or_a_default_where_a_bound_is() -> None:
    source = "class Input(BaseModel):\n    path: str\n    most: int\n    slow: int = 500\n"
    given = Case("task-1", Call("packs", {"path": "a.csv", "most": 40}), {"a.csv": b"x 7\ny 40\n"}, ())
    made = levelled([given], source, b"k" * 32, 99)
    assert {item.case.inputs["a.csv"] for item in made} == {
        b"x 40\ny 40\n",
        b"x 500\ny 40\n",
        b"x 7\ny 500\n",
    }
    assert all((item.along, item.case.call) == ("a.csv", given.call) for item in made)
    assert len(levelled([given], source, b"k" * 32, 2)) == 2
    assert levelled([], source, b"k" * 32, 9) == []


def test_an_object_gets_a_field_that_another_one_has() -> None:
    document, lines = b'{"rows": [{"a": 1}, {"b": 2}]}', b'{"a": 1}\n{"a": 2, "b": 3}\n'
    cases = [
        Case("task-1", Call("packs", {"rows": [{"a": 1}, {"a": 2, "gift": True}]}), {}, ()),
        Case("task-2", Call("packs", {"path": "a.json"}), {"a.json": document, "b.jsonl": lines}, ()),
    ]
    before = [dict(case.call.args) for case in cases]
    made = filled(cases, b"k" * 32, 99)
    [args] = [item.case.call.args for item in made if item.of == 0]
    assert args == {"rows": [{"a": 1, "gift": True}, {"a": 2, "gift": True}]}
    assert {item.case.inputs["a.json"] for item in made if item.along == "a.json"} == {
        b'{"rows": [{"a": 1, "b": 2}, {"b": 2}]}',
        b'{"rows": [{"a": 1}, {"b": 2, "a": 1}]}',
    }
    assert {item.case.inputs["b.jsonl"] for item in made if item.along == "b.jsonl"} == {
        b'{"a": 1, "b": 3}\n{"a": 2, "b": 3}\n'
    }
    assert [dict(case.call.args) for case in cases] == before
    assert len(filled(cases, b"k" * 32, 1)) == 1


def test_each_is_asked_of_a_person() -> None:
    edit = HEAD % "0"
    why, candidate = judged(
        HEAD.replace("packs", "grade") % "1",
        edit.replace("packs", "grade"),
        [{"missing": 1}],
        [{"missing": 3}],
        policy=REFUSALS,
    )
    assert not why
    question = Ambiguity(2, "missing=12 in {}", "2", "3", "cand-2")
    seen = Behaviour(1, 1, 0, 0, 0, 0)
    doubtful = [
        len(doubts(replace(candidate, behaviour=behaviour), (), Policy()))
        for behaviour in (
            None,
            seen,
            replace(seen, unguarded=True),
            replace(seen, broad=True),
            replace(seen, unmended="f(1)"),
            replace(seen, breaks="f([])"),
            replace(seen, loosened="the condition a"),
            replace(seen, unread="the parameter a of f"),
            replace(seen, share=0.49),
            replace(seen, share=0.5),
            replace(seen, ambiguity=question),
        )
    ]
    assert doubtful == [doubtful[0]] * 2 + [doubtful[0] + 1] * 7 + [doubtful[0], doubtful[0] + 1]
    low = replace(Policy(), replay=ReplayPolicy(share_min=0.0))
    assert len(doubts(replace(candidate, behaviour=replace(seen, share=0.1)), (), low)) == doubtful[0]
    told = doubts(replace(candidate, behaviour=replace(seen, ambiguity=question)), (), Policy())
    (asking,) = [each.reason for each in told if each.kind is RefusalKind.AMBIGUOUS]
    assert all(part in asking for part in ("2", "3", "missing=12"))


def test_the_edited_lines_are_those_of_whole_statements_and_around_what_is_new() -> None:
    old = "A = 1\n\n\ndef f(a):\n    b = (\n        a\n    )\n    if a:\n        b += 1\n    return b\n"
    assert edited_lines(old, old.replace("        a\n", "        -a\n")) == {5, 6, 7}
    assert edited_lines(old, old.replace("if a:", "if not a:")) == {8}
    assert edited_lines(old, old.replace("    return", "    b *= 2\n    return")) == {9, 10}
    assert edited_lines(old, old.replace("A = 1", "A = 2")) == set()
    assert edited_lines("def f(:", "def f():") == set()


def test_of_a_match_the_case_that_is_edited_has_to_run() -> None:
    old = (
        "def f(x):\n    match x:\n        case 1:\n            return 1\n"
        "        case 2 if (\n            x\n        ):\n            return 2\n    return 3\n"
    )
    assert edited_lines(old, old.replace("return 2", "return 4")) == {8}
    assert edited_lines(old, old.replace("case 2", "case 4")) == {5, 6}
    assert edited_lines(old, old.replace("match x", "match -x")) == {2}


CRASHES = HEAD % "missing // input.size"


def test_an_exception_that_is_left_where_two_tasks_are_crossed_is_said() -> None:
    """Division by zero is mended where something is missing, and not where nothing is."""
    source = CRASHES.replace("    if missing <= 0:", "    if missing <= 0 and 60 // input.size:")
    half = source.replace("return Output(result=missing //", "return Output(result=input.size and missing //")
    whole = half.replace("and 60 //", "and input.size and 60 //")
    tasks = [case(1, 0, missing=7, size=0), case(2, 0, missing=-3, size=6)]
    known = Known(tasks, {1}, b"k" * 32, ReplayPolicy(neighbours=8))
    drawn = crossed(tasks, known.working, 24)
    bench = LocalBench([*tasks, *(item.case for item in drawn)], 0.5)
    try:
        left, mended = (
            EditExamination(bench, known, drawn, [], source, own).findings({}) for own in (half, whole)
        )
    finally:
        bench.close()
    assert "missing=-3" in left.unmended
    assert mended.unmended == ""


ZONES = HEAD.replace("from pydantic", "from bisect import bisect_left\n\nfrom pydantic") % (
    "bisect_left([input.size * part / 100 for part in (50, 75)], missing)"
)


@pytest.mark.slow
def test_a_number_for_a_bound_is_asked_about_though_no_proposer_found_the_bound() -> None:
    """What is right for sizes that are a multiple of four is one too many for others."""
    edit, right = (
        ZONES.replace("input.size * part", "(input.size - 1) * part"),
        ZONES.replace("bisect_left", "bisect_right"),
    )
    bounds_met = [(50, 100, 1), (75, 100, 2), (60, 80, 2), (45, 60, 2)]
    below = [(10, 40, 0), (74, 100, 1), (59, 80, 1), (44, 60, 1), (29, 40, 1), (89, 120, 1), (119, 160, 1)]
    tasks = [
        case(number, wanted, missing=missing, size=size)
        for number, (missing, size, wanted) in enumerate(bounds_met + below)
    ]
    known = Known(tasks, set(range(len(bounds_met), len(tasks))), b"k" * 32, ReplayPolicy(neighbours=24))
    drawn = stepped(tasks, known.key, 48) + neighbours(tasks, ZONES, known.key, 96)
    bench = LocalBench([*tasks, *(item.case for item in drawn)], 0.5)
    try:
        asked = (
            EditExamination(bench, known, drawn, [], ZONES, edit).findings(mutants(ZONES, edit, 8)).ambiguity
        )
        calm = (
            EditExamination(bench, known, drawn, [], ZONES, right)
            .findings(mutants(ZONES, right, 8))
            .ambiguity
        )
    finally:
        bench.close()
    assert asked is not None
    assert asked.rival == "instead bisect_right for bisect_left"
    assert calm is None


RANKING = HEAD.replace("missing: int", "points: dict[str, int]").replace("result: int", "result: list[str]")
RANKING = (
    RANKING[: RANKING.index("    missing =")]
    + """    ordered = sorted(input.points.items(), key=lambda each: (each[1], each[0]), reverse=True)
    return Output(result=[f"{place}. {name}" for place, (name, _) in enumerate(ordered, start=1)])
"""
)


def test_places_in_the_order_of_texts_are_asked_about_though_all_tasks_are_short() -> None:
    """Ten come before two, which shows only from ten names on."""
    shared = RANKING.replace(
        "{place}. {name}", "{1 + sum(n > points for n in input.points.values())}. {name}"
    )
    shared = shared.replace(
        "(name, _) in enumerate(ordered, start=1)", "(name, points) in enumerate(ordered)"
    )
    wrong = shared.replace("[f", "sorted([f").replace("(ordered)])", "(ordered)]))")
    right = shared.replace("(each[1], each[0]), reverse=True", "(-each[1], each[0])")
    points = [("Ada", 3), ("Bo", 3), ("Cem", 2), ("Dot", 1)]
    tasks = [
        case(number, wanted, points=dict(points[first:end][::-1]))
        for number, (first, end, wanted) in enumerate(
            [
                (0, 2, ["1. Ada", "1. Bo"]), (0, 3, ["1. Ada", "1. Bo", "3. Cem"]),
                (1, 3, ["1. Bo", "2. Cem"]), (1, 4, ["1. Bo", "2. Cem", "3. Dot"]), (2, 4, ["1. Cem", "2. Dot"]),
            ]
        )
    ]  # fmt: skip
    known = Known(tasks, {2, 3, 4}, b"k" * 32, ReplayPolicy(neighbours=24))

    def rivals(own: str) -> list[str]:
        return [*compared(lambda cases: LocalBench(cases, 0.5), known, shared, own, {}).rivals]

    assert "the same edit with texts in the order of the numbers that they begin with" in rivals(wrong)
    assert rivals(right) == []


# --- where no box answers -----------------------------------------------------------------------


def test_an_edit_whose_base_could_not_be_tried_is_asked_about() -> None:
    """Nothing that was drawn could be answered, so nothing that was found says that there is no question."""
    policy = Policy(replay=replace(REFUSALS.replay, mutants=8))
    shown = [{"points": 50}]
    _, whole = judged(GRADE, GRADE.replace("> 50", ">= 50"), shown, policy=policy)
    _, lost = judged(GRADE, GRADE.replace("> 50", ">= 50"), shown, policy=policy, benches=LostBenches())
    assert whole.behaviour is not None
    assert lost.behaviour is not None
    assert (whole.behaviour.uncompared, TOOL in lost.behaviour.uncompared) == ("", True)


# --- with tasks that came after the edit --------------------------------------------------------


def among(own: str, rivals: dict[str, str], late: list[Case], key: bytes = b"k" * 32) -> EditFindings:
    """``late`` tasks fail on the base where they part, as 5 of 6 does, or pass."""
    tasks = [*EVIDENCE, *IDLE, *late]
    with closing(LocalBench(tasks, 0.5)) as bench:
        passed = bench.try_source(FAULTY).passed
    working = {number for number, good in enumerate(passed) if good}
    first = len(EVIDENCE) + len(IDLE)
    later = frozenset(range(first, len(tasks)))
    known = Known(tasks, working, key, ReplayPolicy(neighbours=24, mutants=1), later=later)
    return compared(lambda cases: LocalBench(cases, 0.5), known, FAULTY, own, rivals)


def test_a_rival_that_a_later_task_fails_is_no_question_any_more() -> None:
    assert among(RIGHT, {"cand-2": TOO_MUCH}, []).rivals == ["cand-2"]
    assert among(RIGHT, {"cand-2": TOO_MUCH}, [case(21, 4, missing=24)]).rivals == ()


@pytest.mark.parametrize("seed", range(3))
def test_later_tasks_that_a_rival_passes_end_no_question_by_another_draw(seed: int) -> None:
    """It differs from the edit for one number alone, which is among the inputs of the first time."""
    key = bytes([seed]) * 32
    first = among(RIGHT, {"cand-2": TOO_MUCH}, [], key).ambiguity
    assert first is not None
    numbers = (61, 67, 73, 79, 85, 91, 97, 103, 109, 115, 121, 127)
    late = [case(30 + number, -(-number // 6), missing=number) for number in numbers]
    again = among(RIGHT, {"cand-2": TOO_MUCH}, late, key)
    assert again.rivals == ["cand-2"]


@pytest.mark.parametrize(("count", "unguarded"), [(0, True), (1, True), (2, True), (3, False)])
def test_a_few_later_tasks_do_not_guard_what_nothing_known_guards(count: int, unguarded: bool) -> None:
    late = [case(21, 4, missing=24), case(22, 3, missing=18), case(23, 2, missing=12)]
    assert among(RIGHT, {}, late[:count]).unguarded is unguarded
