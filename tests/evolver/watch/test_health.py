"""What the page on the loop's health says, from what is on record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from agentos.domain import (
    Diagnosis,
    Evidence,
    Evolution,
    EvolutionState,
    Feedback,
    Fingerprint,
    Layer,
    Rating,
    Snapshot,
)
from agentos.evolver.watch.health import (
    PERIODS,
    EvolutionCost,
    ResourceCounts,
    duration,
    library,
    mended,
    series,
    words,
)

NOW = datetime(2026, 11, 1, tzinfo=UTC)
BASE = Snapshot("c" * 40, "t" * 40)
PRINT = Fingerprint("f" * 16, "tool/x", "exception", "x")


def after(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def evolution(name: str) -> Evolution:
    diagnosis = Diagnosis(Layer.TOOL, "tool/x", "tool/x/tool.py", "why")
    return Evolution(name, f"evd-{name}", PRINT.id, EvolutionState.PROMOTED, BASE, diagnosis=diagnosis)


def evidence(name: str, *runs: str) -> Evidence:
    return Evidence(f"evd-{name}", PRINT, runs, ("task",), NOW, "")


def test_a_fix_has_a_latency_and_perhaps_a_recurrence() -> None:
    (found,) = mended(
        [evolution("a"), evolution("never promoted")],
        [evidence("a", "run-1", "run-2")],
        {("a", "probation"): after(3), ("a", "promoted"): after(4)},
        [("run-2", PRINT.id, after(1)), ("run-1", PRINT.id, after(0)), ("run-9", PRINT.id, after(8))],
    )
    assert (found.took_s, found.lasted_s) == (3 * 3600, 5 * 3600)
    assert found.resource == "tool/x"


def test_what_fails_after_a_roll_back_is_no_recurrence_of_the_fix() -> None:
    (found,) = mended(
        [evolution("a")],
        [evidence("a", "run-1")],
        {("a", "probation"): after(3), ("a", "rolled_back"): after(5)},
        [("run-1", PRINT.id, after(0)), ("run-9", PRINT.id, after(6))],
    )
    assert found.recurred_at is None
    assert found.rolled_back_at == after(5)


def test_the_clock_of_a_second_fix_starts_with_the_failure_that_came_again() -> None:
    first, second = mended(
        [evolution("b"), evolution("a")],
        [evidence("a", "run-1"), evidence("b", "run-1", "run-2")],
        {("a", "probation"): after(2), ("b", "probation"): after(9)},
        [("run-1", PRINT.id, after(0)), ("run-2", PRINT.id, after(8))],
    )
    assert (first.evolution_id, second.evolution_id) == ("a", "b")
    assert first.recurred_at == after(8)
    assert second.took_s == 3600


@pytest.mark.parametrize("span_h", [0.01, 1, 30, 24 * 20, 24 * 400, 24 * 4000])
def test_a_series_counts_everything_once_whatever_its_length(span_h: float) -> None:
    came_to = {(f"evo-{number}", "probation"): after(span_h * number / 99) for number in range(100)}
    came_to |= {("evo-3", "rolled_back"): after(span_h), ("evo-x", "held"): NOW, ("evo-y", "cannot_fix"): NOW}
    came_to[("evo-6", "replaying")] = NOW - timedelta(days=9)
    periods, step = series(came_to, after(span_h))
    assert 1 <= len(periods) <= PERIODS + 1
    assert sum(item.promoted for item in periods) == 99  # one of them was taken back
    assert sum(item.rolled_back for item in periods) == 1
    assert sum(item.held + item.fruitless for item in periods) == 2
    assert periods[0].start == NOW
    assert all(later.start - item.start == step for item, later in pairwise(periods))


def test_without_evolutions_there_is_no_series() -> None:
    assert series({}, NOW)[0] == ()


def test_the_library_tells_what_was_made_here_and_whether_anybody_used_it() -> None:
    found = library(
        ["tool/a", "tool/b", "tool/c", "memory/m"],
        ["tool/a", "tool/gone"],
        ["tool/a", "tool/b", "tool/retired"],
    )
    assert found == (ResourceCounts("memory", 0, 1, 0), ResourceCounts("tool", 1, 2, 1))
    assert (found[0].ratio, found[1].ratio, ResourceCounts("agent", 3, 0, 0).ratio) == (0.0, 0.5, None)


def test_what_came_to_nothing_is_part_of_the_price() -> None:
    price = EvolutionCost(usd=3.0, trials=90, cpu_s=12.0, fixes=3)
    assert price.each(price.trials) == 30
    assert EvolutionCost(1.0, 2, 3.0, 0).each(1.0) is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (9.0, "9.0 s"),
        (90, "90 s"),
        (600, "10 min"),
        (86_400, "24 h"),
        (1e6, "12 d"),
    ],
)
def test_durations(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def word(name: str, rating: Rating, hours: float, run: str = "", who: str = "person:ada(1)") -> Feedback:
    return Feedback(f"feedback-{name}", run or f"run-of-{name}", "key", rating, "", (), who, after(hours))


def test_a_word_is_right_by_its_fix_and_wrong_by_what_was_measured_or_said_later() -> None:
    gone = replace(evolution("b"), state=EvolutionState.NOT_REPRODUCIBLE)
    said = [
        word("a", Rating.BAD, 0),
        word("b", Rating.BAD, 1),
        word("c", Rating.BAD, 2, "run-c"),
        word("d", Rating.GOOD, 2, "run-c"),  # of one correction
        word("e", Rating.GOOD, 3, "run-e"),
        word("f", Rating.BAD, 4, "run-e"),
        word("g", Rating.GOOD, 4, who="person:bob(2)"),
    ]
    ada, bob = words(said, [evidence("a", "run-a"), evidence("b", "run-b")], [evolution("a"), gone])
    assert (ada.good, ada.bad, ada.right, ada.wrong) == (2, 4, 1, 2)
    assert ada.share == pytest.approx(1 / 3)
    assert (bob.principal, bob.share) == ("person:bob(2)", None)
