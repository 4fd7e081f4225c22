"""How failing answers look, and edits that take that away where it was shown and nowhere else.

The tools really run, in the bench without a sandbox.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.domain import Call, Check, Json
from agentos.evolver.policy import ReplayPolicy
from agentos.evolver.propose.ambiguity import EditExamination, Known
from agentos.evolver.propose.neighbours import neighbours, stepped, usual
from agentos.evolver.propose.symptoms import noise, symptoms
from agentos.ports import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from local_bench import LocalBench

SOURCE = '''"""Seconds since the beginning of a log without dates."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "elapsed", "description": "Works.", "effects": ["read"]}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    elapsed: list[int]


def run(input: Input) -> Output:
    clocks = [line.split(":") for line in Path(input.path).read_text().split()]
    found = []
    days = 0
    for hours, minutes in clocks:
        now = int(hours) * 60 + int(minutes)
        found.append(now)
    return Output(elapsed=[now - found[0] for now in found])
'''
FOLDED = SOURCE.replace("[now - found[0] for", "[(now - found[0]) % 1440 for")
CLIPPED = SOURCE.replace("[now - found[0] for", "[max(now - found[0], 0) for")
COUNTED = SOURCE.replace(
    "        found.append(now)\n",
    "        days += bool(found) and now + days * 1440 < found[-1]\n        found.append(now + days * 1440)\n",
)


def case(number: int, clocks: str, wanted: list[int]) -> Case:
    check = Check("equals", {"value": {"elapsed": wanted}})
    return Case(
        f"task-{number}",
        Call("elapsed", {"path": "log.txt"}),
        {"log.txt": clocks.replace(" ", "\n").encode()},
        (check,),
    )


TASKS = [
    case(1, "23:50 00:20", [0, 30]),
    case(2, "22:00 23:00 01:00", [0, 60, 180]),
    case(3, "10:00 10:05 12:00", [0, 5, 120]),
    case(4, "06:00 06:01", [0, 1]),
    case(5, "01:00 04:00 09:00", [0, 180, 480]),
]


def unmended(own: str, key: bytes = b"k" * 32, hidden: frozenset[int] = frozenset(), least: int = 3) -> str:
    rules = ReplayPolicy(symptom_min=least, mutants=0)  # nothing is asked of what has no effect
    known = Known(TASKS, {2, 3, 4}, key, rules, hidden=hidden)
    drawn = stepped(TASKS, key, rules.stepped) + neighbours(TASKS, SOURCE, key, 4 * rules.neighbours)
    drawn = usual(drawn, TASKS)
    bench = LocalBench([*TASKS, *(item.case for item in drawn)], 0.5)
    try:
        return EditExamination(bench, known, drawn, [], SOURCE, own).findings({}).unmended
    finally:
        bench.close()


@pytest.mark.parametrize("key", [b"a" * 32, b"b" * 32, b"c" * 32])
@pytest.mark.slow
def test_an_edit_that_mends_one_midnight_and_not_two_is_found_out(key: bytes) -> None:
    assert "elapsed[] is not in ascending order" in unmended(FOLDED, key)
    assert unmended(COUNTED, key) == ""


@pytest.mark.slow
def test_what_only_hidden_tasks_show_is_told_to_nobody() -> None:
    assert unmended(FOLDED, hidden=frozenset({0, 1})) == ""
    assert unmended(FOLDED, hidden=frozenset({0})) != ""


@pytest.mark.slow
def test_it_can_be_turned_off_and_wants_as_many_right_answers_as_the_policy_says() -> None:
    assert unmended(FOLDED, least=0) == ""
    assert unmended(FOLDED, least=6) == ""


def test_an_edit_that_passes_too_little_to_say_what_is_right_is_asked_no_question() -> None:
    assert unmended(CLIPPED, least=5) == ""


def says(right: Sequence[Json], wrong: Sequence[Json], least: int = 2) -> list[str]:
    return [item.says for item in symptoms(right, wrong, least)]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ([{"n": 1}, {"n": 0}], [{"n": -1}], ["n is negative"]),
        ([{"a": {"x": 1}}, {"a": {"x": 0}}], [{"a": {"y": -1}}], ["a{} is negative"]),
        ([{"l": [1, 2]}, {"l": [2, 2]}], [{"l": [3, 2]}], ["l[] is not in ascending order"]),
        ([{"l": ["b", "a"]}] * 2, [{"l": ["b", "b"]}], ["l[] has an entry twice"]),
        ([{"l": [[2], [1]]}] * 2, [{"l": [[2], [2]]}], ["l[] has an entry twice"]),
        ([{"t": "a"}, {"t": "b"}], [{"t": "a "}], ["t has blanks at its ends"]),
        (
            [{"p": [1, 2], "s": 3}, {"p": [4, 0.5], "s": 4.5}],
            [{"p": [1, 2], "s": 4}],
            ["p[] does not add up to s"],
        ),
        ([{"l": [2, 1]}, {"l": [9, 3]}], [{"l": [1, 3]}], ["l[] is not in descending order"]),
    ],
)
def test_a_symptom_is_what_failing_answers_lack_and_all_right_ones_have(
    right: list[Json], wrong: list[Json], said: list[str]
) -> None:
    assert says(right, wrong) == said


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ([{"n": 1}, {"n": -2}], [{"n": -1}]),  # right ones may be negative
        ([{"n": 1}], [{"n": -1}]),  # one right answer says nothing
        ([{"l": [1]}, {"l": []}], [{"l": [2, 1]}]),  # nor do lists that cannot be out of order
        ([{"n": 1}, {"n": 2}], [{"n": 3}]),  # wrong, and no property says how
        ([{"a": {"x": 1, "y": 2}}] * 2, [{"a": {"x": 2, "y": 1}}]),  # a table has no order
        ([{"b": True}] * 2, [{"b": False}]),
        ([{"l": [1, "a"]}] * 2, [{"l": ["a", 1]}]),
        ([3, None], ["x"]),
        ([{"l": [1.5, 10**400], "n": 1}] * 2, [{"l": [1.5, 10**400], "n": 2}]),  # beyond all floats
    ],
)
def test_what_right_answers_do_not_promise_is_no_symptom(right: list[Json], wrong: list[Json]) -> None:
    assert says(right, wrong) == []


def test_an_answer_that_says_nothing_of_it_has_no_symptom() -> None:
    (found,) = symptoms([{"n": 1}, {"n": 2}], [{"n": -1}], 2)
    assert [found.holds(answer) for answer in ({"n": 4}, {"n": -4}, {}, "text")] == [True, False, None, None]
    assert replace(found, says="else").holds({"n": -4}) is False


@pytest.mark.parametrize(
    ("answer", "noisy"),
    [
        (30.770000000000003, True),
        (-0.30000000000000004, True),
        (1.23456789012e-05, False),
        (1e-16, False),
        (2.5, False),
    ],
)
def test_the_digits_of_a_float_are_counted_without_its_power(answer: float, noisy: bool) -> None:
    assert bool(noise({"a": [answer]})) is noisy


@pytest.mark.slow
def test_a_table_with_many_keys_is_looked_through_soon() -> None:
    """Each key is a place, and each place may be what each other one adds up to."""
    right: Json = {"words": {f"w{number}": number for number in range(800)}, "sizes": [1, 2], "total": 3}
    wrong: Json = {"words": {"w1": -1}, "sizes": [1, 2], "total": 4}
    found = [item.says for item in symptoms([right] * 8, [wrong], 3)]
    assert found == ["words{} is negative", "words.w1 is negative", "sizes[] does not add up to total"]


def test_of_a_key_that_too_few_right_answers_have_nothing_is_known() -> None:
    right: list[Json] = [{"n": 1, "words": {f"w{number}": 1}} for number in range(3)]
    assert [item.says for item in symptoms(right, [{"n": 1, "words": {"w0": -1}}], 2)] == [
        "words{} is negative"
    ]
