"""The demo's tasks: six agents, each with a kind of work that it gets wrong for a reason of its own.

The values that are expected are computed here, by other means than the agents use.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
EACH = 14
AGENTS = {
    "till": "lacks a lesson: what unit amounts are in",
    "crates": "was taught something wrong",
    "report": "lacks a rule of its prompt: the form of its answers",
    "tickets": "lacks a skill: how numbers are sorted",
    "codes": "lacks a tool: it cannot compute a check digit",
    "moods": "cannot know, and its checks are loose",
}
WRONG_LESSON = "# Lessons\n\n- Weights are in grams.\n"


def tasks() -> list[Json]:
    """All of them, the kinds in turn, with fixed seeds."""
    dice = random.Random(20)
    kinds = [till, crates, report, tickets, codes, moods]
    return [kind(number, dice) for number in range(EACH) for kind in kinds]


def task(agent: str, goal: str, value: Any, **more: Any) -> Json:
    return shaped(agent, goal, {"equals": {"value": value, **more}})


def shaped(agent: str, goal: str, check: Json) -> Json:
    return {"name": goal.partition(":")[0], "agent": agent, "goal": goal, "checks": [check]}


def numbers(dice: random.Random, count: int, least: int, most: int) -> list[int]:
    return [dice.randint(least, most) for _ in range(count)]


def text(values: list[Any]) -> str:
    return ", ".join(map(str, values))


def till(number: int, dice: random.Random) -> Json:
    amounts = numbers(dice, 4, 105, 9_995)
    return task(
        "till", f"Total of the amounts in till {number + 1}, in euros: {text(amounts)}", sum(amounts) / 100
    )


def crates(number: int, dice: random.Random) -> Json:
    weights = [value * 1_000 for value in numbers(dice, 3, 2, 40)]
    return task(
        "crates", f"Total of the weights in crate {number + 1}, as listed: {text(weights)}", sum(weights)
    )


def report(number: int, dice: random.Random) -> Json:
    visits = numbers(dice, 4, 100, 900)
    goal = f"For the weekly report, total the visits of week {number + 21}: {text(visits)}"
    return task("report", goal, sum(visits), path="answer")


def tickets(number: int, dice: random.Random) -> Json:
    open_ones = (
        dice.sample(range(2, 10), 2) + dice.sample(range(10, 100), 2) + dice.sample(range(100, 1_000), 2)
    )
    dice.shuffle(open_ones)
    return task(
        "tickets", f"Sort the tickets of desk {number + 1}: {text(open_ones)}", text(sorted(open_ones))
    )


def codes(number: int, dice: random.Random) -> Json:
    code = "".join(map(str, numbers(dice, 9, 1, 9)))
    return task("codes", f"Give the Luhn digit of code {number + 1}: {code}", luhn(code))


def moods(number: int, dice: random.Random) -> Json:
    """Every second one can be done; the check takes any single word for an answer."""
    word = dice.choice(["calm", "glad", "angry", "tired", "proud", "bored", "afraid"])
    asked = f'say "{word}"' if number % 2 else f"tell the mood of caller {number + 1}"
    goal = f"For mood note {number + 1}, {asked}: no. {dice.randint(100, 999)}"
    return shaped("moods", goal, {"regex": {"pattern": "^[a-z]+$"}})


def luhn(code: str) -> int:
    """The digit with which the whole number is valid, found by trying."""
    return next(digit for digit in range(10) if valid(f"{code}{digit}"))


def valid(whole: str) -> bool:
    doubled = {sign: sum(map(int, str(2 * int(sign)))) for sign in "0123456789"}
    return (sum(map(int, whole[-1::-2])) + sum(doubled[sign] for sign in whole[-2::-2])) % 10 == 0
