"""What is proposed as a check: it held in all good runs, and the check that is made of it says the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentos import checks
from agentos.daemon.standing_checks import Invariant, invariants
from agentos.domain import Json
from agentos.worker.jobs.grading import snippet

BILLS = [
    {"total": 7, "parts": [3, 4], "count": 2, "rows": [{"net": 2}, {"net": 5}], "note": "a"},
    {"total": 5, "parts": [5], "count": 1, "rows": [{"net": 1}], "note": "b"},
    {"total": 9, "parts": [1, 8], "count": 2, "rows": [{"net": 0.5}, {"net": 9}], "note": "c"},
]


def why(found: Invariant, answer: Json) -> str:
    if found.check.kind == "python":
        return snippet(found.check.spec["code"], answer, Path())
    return checks.judge(checks.parse(found.check.kind, found.check.spec), answer, Path())


def test_what_held_is_found_and_every_check_passes_what_it_was_read_off() -> None:
    found = invariants(BILLS)
    said = {item.says for item in found}
    assert {
        "total was always the sum of parts",
        "total was always >= each of rows.*.net",
        "count was always the number of parts",
        "total was always >= count",
        "note was never empty",
    } <= said
    assert not any(checks.faults(item.check.kind, item.check.spec) for item in found)
    assert [why(item, bill) for item in found for bill in BILLS] == [""] * len(found) * len(BILLS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"total": 8}, "total was always the sum of parts"),
        ({"count": 3}, "count was always the number of parts"),
        ({"rows": [{"net": 70}]}, "total was always >= each of rows.*.net"),
        ({"note": ""}, "note was never empty"),
        ({"total": "7"}, "the answer is of type object with total, parts, count, rows, note"),
    ],
)
def test_each_check_fails_what_breaks_it(change: dict[str, Any], says: str) -> None:
    (found,) = [item for item in invariants(BILLS) if item.says == says]
    assert why(found, BILLS[0] | change)


@pytest.mark.parametrize("answers", [[], BILLS[:2], [BILLS[0]] * 5, [None, 1, "a"], [True, False, True]])
def test_too_little_or_nothing_in_common_proposes_no_more_than_a_type(answers: list[Json]) -> None:
    assert {item.check.kind for item in invariants(answers)} <= {"json_schema"}


def test_names_of_keys_are_no_code() -> None:
    key = "'];raise SystemExit;['"
    found = invariants([{key: number, "b": number + 1} for number in range(3)])
    assert found
    assert not any(why(item, {key: 1, "b": 5}) for item in found)
