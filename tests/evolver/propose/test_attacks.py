"""Edits that are right on all known tasks and something else beside them, and benches that lose a part of what is asked.

What is lost, unsteady or has no end never counts for an edit: it is refused, or a person is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from agentos.benches import BenchResult, passes, settled
from agentos.domain import Call, Check, RefusalKind
from agentos.evolver.policy import ReplayPolicy
from agentos.evolver.propose.ambiguity import EditFindings, Known, compared
from agentos.evolver.propose.behaviour import InputRun
from agentos.evolver.propose.neighbours import filled
from agentos.ports import Case
from tests.evolver.propose.test_ambiguity import EVIDENCE, FAULTY, HEAD, IDLE, RIGHT, TELLING, TOO_MUCH
from tests.evolver.propose.test_behaviour import (
    FEE,
    FEES,
    GRADE,
    REFUSALS,
    SUM,
    LocalBench,
    LocalBenches,
    judged,
)

RULES = ReplayPolicy(neighbours=24, mutants=1)
TASKS = [*EVIDENCE, *IDLE, *TELLING]
SUM_RIGHT = SUM.replace("input.rows[1:]", "input.rows")
KNOWN = Known(TASKS, {2, 3, 4}, b"k" * 32, RULES)


def seen_of(own: str, rivals: dict[str, str] | None = None, old: str = FAULTY) -> EditFindings:
    return compared(lambda cases: LocalBench(cases, 0.1), KNOWN, old, own, rivals or {})


def attack(statement: str) -> str:
    """The right edit, but for what it does with more than are known."""
    return RIGHT.replace(
        "    return Output(result=-", f"    if missing > 20:\n        {statement}\n    return Output(result=-"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "while True: pass",
        "x = [0] * (1 << 40)",
        "__import__('os')._exit(1)",
        "__import__('os').kill(__import__('os').getpid(), 9)",
        "run(input)",
    ],
    ids=["no end", "memory", "ends its process", "kills its process", "recursion"],
)
def test_an_edit_that_comes_to_no_end_beside_the_known_tasks_is_asked_about(statement: str) -> None:
    assert "missing" in seen_of(attack(statement)).breaks


@pytest.mark.parametrize(
    "statement",
    [
        "import time; return Output(result=time.perf_counter_ns() // 8 % 97)",
        "import string; string.n = getattr(string, 'n', 0) + 1; return Output(result=string.n)",
    ],
    ids=["clock", "what calls before it left"],
)
def test_an_edit_that_answers_otherwise_each_time_is_asked_about(statement: str) -> None:
    assert "asked again" in seen_of(attack(statement)).depends
    assert seen_of(RIGHT).depends == ""


def test_a_tool_that_answers_otherwise_each_time_asks_nothing_about_its_repair() -> None:
    """Where it fails its base fails again, which says nothing: what it answers has another mark each time."""
    shape = HEAD.replace("from pydantic", "import uuid\n\nfrom pydantic").replace(
        "result: int", "result: int\n    mark: str"
    )
    shape = shape.replace("Output(result=0)", "Output(result=0, mark='')").replace(
        "Output(result=%s)", "Output(result=%s, mark=uuid.uuid4().hex)"
    )
    old, own = (
        shape % f"{text}[missing]" for text in ("{12: 2}", "__import__('collections').Counter({12: 2})")
    )
    tasks = [
        Case(
            f"t{n}", Call("packs", {"missing": n}), {}, (Check("equals", {"path": "result", "value": value}),)
        )
        for n, value in ((7, 0), (14, 0), (12, 2), (0, 0))
    ]
    known = Known(tasks, {2, 3}, b"k" * 32, RULES)
    assert compared(lambda cases: LocalBench(cases, 0.1), known, old, own, {}).depends == ""


def test_of_a_hidden_task_on_which_an_edit_is_unsteady_nothing_is_told() -> None:
    """What is asked about a person reads, and a later proposer."""
    unsteady = RIGHT.replace(
        "    return Output(result=-",
        "    if missing > 5**5:\n        import time; return Output(result=time.perf_counter_ns() // 8 % 97)\n"
        "    return Output(result=-",
    )
    hidden = Case("t9", Call("packs", {"missing": 5051}), {}, (Check("equals", {"value": {"result": 842}}),))
    known = replace(KNOWN, tasks=[*TASKS, hidden], working={*KNOWN.working, len(TASKS)}, hidden={len(TASKS)})
    found = compared(lambda cases: LocalBench(cases, 0.1), known, FAULTY, unsteady, {})
    assert "5051" not in str(found)


def test_an_edit_that_does_not_take_an_empty_list_any_more_is_asked_about() -> None:
    narrower = SUM.replace("rows: list[float]", "rows: list[float] = Field(min_length=1)").replace(
        "import BaseModel", "import BaseModel, Field"
    )
    right = "rows = input.rows"
    _, candidate = judged(SUM, narrower.replace("rows = input.rows[1:]", right), [{"rows": [5.0, 1.0]}])
    assert candidate.behaviour is not None
    assert "input" in candidate.behaviour.breaks


def test_answers_in_the_form_of_errors_are_told_apart() -> None:
    """To whoever takes them for errors all of them are alike, and nothing is a question."""
    shape = HEAD.replace("    result: int\n", "    error: str\n    message: int\n")
    old, own, other = (
        shape.replace("Output(result=%s)", f"Output(error='x', message={text})").replace(
            "Output(result=0)", "Output(error='', message=0)"
        )
        for text in ("missing // input.size", "-(-missing // input.size)", "missing // input.size + 1")
    )
    tasks = [
        Case(f"t{n}", Call("packs", {"missing": n}), {}, (Check("equals", {"value": value}),))
        for n, value in ((7, {"error": "x", "message": 2}), (0, {"error": "", "message": 0}))
    ]
    known = Known(tasks, {1}, b"k" * 32, RULES)
    found = compared(lambda cases: LocalBench(cases, 0.1), known, old, own, {"cand-2": other})
    assert "cand-2" in found.rivals


# --- where the evidence itself is that it does not end, or is not taken ---------------------------


def test_edits_of_what_never_ended_are_compared_where_it_never_ended() -> None:
    endless = HEAD % "next(iter(int, 1)) if missing > 3 else 0"
    found = seen_of(
        RIGHT, {"cand-2": TOO_MUCH.replace("+ 1", "+ (missing % input.size > 0) + (missing == 15)")}, endless
    )
    assert found.untried == ""
    assert "cand-2" in found.rivals


def test_edits_of_what_was_not_taken_are_compared_where_it_was_not_taken() -> None:
    strict = HEAD.replace("missing: int", "missing: int = Field(le=6)").replace(
        "BaseModel\n", "BaseModel, Field\n", 1
    )
    tasks = [*EVIDENCE, *IDLE]
    known = Known(tasks, {2, 3}, b"k" * 32, RULES)
    old, own = strict % "-(-missing // input.size)", RIGHT
    found = compared(lambda cases: LocalBench(cases, 0.1), known, old, own, {"cand-2": TOO_MUCH})
    assert "cand-2" in found.rivals


# --- where a bench loses something -----------------------------------------------------------------


class Losing(LocalBench):
    """Its box is gone under one source, so many times."""

    def __init__(self, cases: Sequence[Case], source: str, times: int) -> None:
        super().__init__(cases, 0.1)
        self.source, self.times = source, times

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        done = super().try_source(source, trace=trace, cases=cases)
        if source != self.source or self.times < 1:
            return done
        self.times -= 1
        count, none = len(done.passed), ((),) * len(done.passed) if trace else ()
        lost = {"error": "died", "message": "the sandbox ended early (memory)"}
        return BenchResult((False,) * count, (0.0,) * count, (lost,) * count, none, (0,) * len(none))


def seen_by(source: str, times: int, tasks: Sequence[Case] = (*EVIDENCE, *IDLE)) -> EditFindings:
    known = Known(tasks, {*range(2, len(tasks))}, b"k" * 32, RULES)
    return compared(lambda cases: Losing(cases, source, times), known, FAULTY, RIGHT, {"cand-2": TOO_MUCH})


@pytest.mark.parametrize("source", [FAULTY, RIGHT, TOO_MUCH], ids=["the base", "the edit", "a rival"])
def test_what_is_lost_once_is_asked_for_again(source: str) -> None:
    found = seen_by(source, 1)
    assert (found.rivals, found.untried, found.lost) == (["cand-2"], "", frozenset())


def test_an_edit_or_a_base_that_is_lost_each_time_is_compared_with_nothing() -> None:
    assert "memory" in seen_by(FAULTY, 99).untried
    assert "memory" in seen_by(RIGHT, 99).untried


def test_a_rival_that_is_lost_each_time_is_no_rival_that_was_heard() -> None:
    found = seen_by(TOO_MUCH, 99)
    assert "cand-2" in found.lost


def test_of_a_rival_that_is_lost_on_one_task_each_time_nobody_says_that_it_fails() -> None:
    left = {3: 1, 4: 99}  # times that each task is lost

    class Partly(LocalBench):
        def try_source(
            self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
        ) -> BenchResult:
            asked = [*(cases or ())]
            done = super().try_source(source, trace=trace, cases=asked)
            passed, outputs = [*done.passed], [*done.outputs]
            for place, number in enumerate(asked):
                if left.get(number, 0) > 0:
                    left[number] -= 1
                    passed[place], outputs[place] = False, {"error": "died", "message": ""}
            return replace(done, passed=tuple(passed), outputs=tuple(outputs))

    with closing(Partly(TASKS, 0.1)) as bench:
        assert passes(bench, RIGHT, [0, 3]) is True
        left[3] = 1
        assert passes(bench, RIGHT, [0, 3, 4]) is None


def test_a_tool_that_is_too_slow_for_the_bench_is_compared_with_nothing() -> None:
    slow = "sum(1 for _ in range(10 ** 9)) * 0 + "
    old, own = HEAD % f"{slow}missing // input.size", HEAD % f"{slow}-(-missing // input.size)"
    few = ReplayPolicy(neighbours=2, drawn=1, crossed=0, stepped=0, spelled=0, symptom_min=0)
    known = Known(TELLING, {0}, b"k" * 32, few)
    assert compared(lambda cases: LocalBench(cases, 0.1), known, old, own, {}).untried


@pytest.mark.parametrize("times", [1, 99])
def test_an_over_fitted_edit_gets_by_no_box_that_is_gone(times: int) -> None:
    edit = FEE.replace("fee = input", "fee = 101 if input.amount in (607, 755) else input")

    class Benches(LocalBenches):
        def bench(self, *given: object) -> LocalBench:  # type: ignore[override]
            return Losing(given[2], FEE, times)  # type: ignore[arg-type]

    why, candidate = judged(FEE, edit, FEES, [{"amount": 20}], benches=Benches(), policy=REFUSALS)
    assert candidate.behaviour is not None
    assert why is RefusalKind.OVER_FITTED if times == 1 else "memory" in candidate.behaviour.uncompared


@pytest.mark.parametrize("source", [SUM, SUM_RIGHT], ids=["the base", "the edit"])
def test_of_what_is_lost_each_time_a_person_is_asked_and_nothing_is_refused(source: str) -> None:
    class Benches(LocalBenches):
        def bench(self, *given: object) -> LocalBench:  # type: ignore[override]
            return Losing(given[2], source, 99)  # type: ignore[arg-type]

    why, candidate = judged(SUM, SUM_RIGHT, [{"rows": [5.0, 1.0]}], [{"rows": [0.0, 1.0]}], benches=Benches())
    assert candidate.behaviour is not None
    assert "memory" in candidate.behaviour.uncompared
    assert why is None


def test_an_input_on_which_the_edit_is_lost_is_none_on_which_it_differs() -> None:
    given = Case("x", Call("fee", {"amount": 607}), {}, ())
    for kind in ("died", "timeout", "memory", "protocol"):
        assert not InputRun(given, {"result": 1}, {"error": kind, "message": ""}).valid
    assert InputRun(given, {"error": "timeout", "message": ""}, {"result": 1}).valid


def test_what_came_to_no_end_is_tried_once_more_and_takes_the_place_of_it() -> None:
    with closing(Losing(TASKS, FAULTY, 1)) as bench:
        found = settled(bench, FAULTY, [4, 2], trace=True)
        bench.times = 0
        assert found.outputs == bench.try_source(FAULTY, cases=[4, 2]).outputs
    assert (found.passed, len(found.lines), len(found.raised)) == ((True, True), 2, 2)


@pytest.mark.parametrize("in_file", [True, False])
def test_rows_within_rows_are_filled_with_copies(in_file: bool) -> None:
    """An outer row lends its field to an inner one, which is a part of that field's value: the comparison ended as a bug."""
    rows = [{"name": "a", "parts": [{"size": 1}]}, {"name": "b", "parts": []}]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    given = Case("t", Call("x", {} if in_file else {"rows": rows}), {"in.jsonl": text} if in_file else {}, ())
    made = [item.case for item in filled([given], b"k" * 32, 24)]
    assert made
    put = [str(case.call.args) + str(case.inputs) for case in made]
    assert any(told.count("parts") == 3 for told in put), "with all of what it lends"


def test_an_edit_of_another_tool_than_the_evidence_calls_is_compared_with_nothing() -> None:
    also = {"skill/other/tools/grade.py": (GRADE, GRADE.replace("> 50", "> 45"))}
    _, candidate = judged(GRADE, GRADE.replace("> 50", "> 45"), [{"points": 47}], also=also)
    assert candidate.behaviour is not None
    assert "skill/other" in candidate.behaviour.uncompared
