"""Two texts beside each other: whatever differs is there."""

from __future__ import annotations

import random

import pytest

from agentos.web.pages.diffs import side_by_side

LONG = [f"line {number}" for number in range(10_000)]


@pytest.mark.parametrize("place", [0, 2_999, 3_000, 5_000, 9_999])
def test_a_change_far_down_is_shown(place: int) -> None:
    changed = [*LONG[:place], "other", *LONG[place + 1 :]]
    found = side_by_side("\n".join(LONG), "\n".join(changed))
    assert [(line.left, line.right) for line in found if line.kind == "change"] == [(place + 1, place + 1)]
    assert len(found) < 12


def test_of_texts_that_differ_throughout_it_is_said_where_lines_are_left_out() -> None:
    found = side_by_side("\n".join(LONG), "\n".join(f"other {number}" for number in range(10_000)))
    assert (found[3_000].left, found[-1].kind) == (3_001, "gap")


def test_what_is_not_marked_is_the_same_on_both_sides() -> None:
    dice = random.Random(5)
    for _ in range(200):
        old = [dice.choice("abcd") for _ in range(dice.randint(0, 20))]
        new = [letter for letter in old if dice.random() < 0.9] + dice.choices("abcd", k=dice.randint(0, 2))
        found = side_by_side("\n".join(old), "\n".join(new))
        gone = {line.left for line in found if line.kind in ("change", "gone")}
        come = {line.right for line in found if line.kind in ("change", "new")}
        kept = [letter for number, letter in enumerate(old, 1) if number not in gone]
        assert kept == [letter for number, letter in enumerate(new, 1) if number not in come]
        assert bool(found) is (old != new)
