"""An edit that leaves unread what its function is given is asked about; and ways around that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentos.evolver.policy import Policy
from agentos.evolver.propose.unread_names import unread
from agentos.evolver.verdict.doubts import doubts
from tests.evolver.propose.test_behaviour import FEE, REFUSALS, judged

OLD = '''"""A tool."""

from pydantic import BaseModel

TOOL = {"name": "sets", "description": "Works.", "effects": []}
LAST = 5


class Input(BaseModel):
    points: int
    number: int = 1


class Output(BaseModel):
    result: bool


def finished(points: int, number: int) -> bool:
    goal = 25
    return points >= goal


def beside(points: int) -> int:
    return points


def run(input: Input) -> Output:
    return Output(result=finished(input.points, input.number) and input.number <= LAST)
'''


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("goal = 25", "goal = 15", "the parameter number of finished"),
        ("    goal = 25\n", "", "the parameter number of finished"),  # by leaving something out
        ("points >= goal", "points >= 15", "the parameter number of finished"),
        ("goal = 25", "goal, number = 15, 0", "the parameter number of finished"),  # setting it reads nothing
        ("goal = 25", "goal = 15  # number", "the parameter number of finished"),
        ("goal = 25", "goal = 15 + len('number') * 0", "the parameter number of finished"),
        ("goal = 25", "goal = 15 if number == 5 else 25", ""),
        ("goal = 25", "goal = [lambda: number, 15][1]", ""),  # read by text: what the mutants are for
        ("return points\n", "return points + 1\n", ""),  # of another function than that with the fault
        (
            "result=finished(input.points, input.number) and input.number",
            "result=2",
            "the field points of Input",
        ),
        ("input.number <= LAST", "input.number <= 5", "the constant LAST"),
    ],
)
def test_what_an_edit_leaves_unread(old: str, new: str, said: str) -> None:
    assert unread(OLD, OLD.replace(old, new)).startswith(said)
    assert bool(unread(OLD, OLD.replace(old, new))) is bool(said)


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def f(self, state):\n        return 1\n",  # a method has to take what others pass
        "def f(_a):\n    for _ in [1]:\n        return 1\n",
        "def f():\n    total = 0\n    def g():\n        nonlocal total\n        total += 1\n    return g\n",
        "def f():\n    total = 0\n    def g():\n        return total\n    return g\n",
        "def f():\n    n = 0\n    for turn in range(3):\n        n += 1\n    return [n for part in 'ab']\n",
        "N = 0\ndef f():\n    global N\n    N = 1\n    return N\n",
        "def run(input):\n    return 1\n",
        "class Input:\n    a: int\ndef run(input):\n    return g(input)\ndef g(x):\n    return x\n",
        "class Input:\n    a: int\ndef run(input):\n    return input.model_dump()\n",
        "def f(a):\n    del a\n",
        "def f(:",
    ],
)
def test_what_is_unread_by_intent_or_read_elsewhere_is_no_sign(source: str) -> None:
    assert unread("", source) == ""


@pytest.mark.slow
def test_a_person_is_asked_about_it() -> None:
    old = FEE.replace(
        "def run(", "def fee(amount: int, days: int) -> int:\n    return amount // 10\n\n\ndef run("
    )
    edit = old.replace("// 10", "// 9")
    _, candidate = judged(old, edit, [{"amount": 607}], [{"amount": 30}], policy=REFUSALS)
    assert candidate.behaviour is not None
    assert candidate.behaviour.unread == "the parameter days of fee"
    without = replace(candidate, behaviour=replace(candidate.behaviour, unread=""))
    assert len(doubts(candidate, (), Policy())) == len(doubts(without, (), Policy())) + 1


ROWS = "LIMIT = 5\ndef f(rows{hint}, more):\n    rows += more\n    return {value}\n"


@pytest.mark.parametrize("hint", ["", ": list[int]", ": dict[str, int]"])
def test_what_is_filled_for_the_caller_is_not_unread(hint: str) -> None:
    old, new = (ROWS.format(hint=hint, value=value) for value in (1, 2))
    assert unread(old, new, helper=True) == ""


@pytest.mark.parametrize("hint", [": int", ": str", ": tuple"])
def test_what_adds_to_a_value_of_its_own_fills_nothing(hint: str) -> None:
    old, new = (ROWS.format(hint=hint, value=value) for value in (1, 2))
    assert unread(old, new, helper=True) == "the parameter rows of f"


def test_constants_of_a_helper_are_read_by_the_tool() -> None:
    old, new = "LIMIT = 5\ndef f():\n    return 1\n", "LIMIT = 5\ndef f():\n    return 2\n"
    assert unread(old, new) == "the constant LIMIT"
    assert unread(old, new, helper=True) == ""
