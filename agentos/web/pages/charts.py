"""Small charts as SVG elements of a page: drawn here, coloured by the style sheet, so that they follow light and dark.

Only numbers and words of ours go into them; what others wrote is escaped by ``Markup.format`` all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from agentos.domain import Trial, TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.paired_tests import MeasuredSet, claims_of, complete_rounds, tally
from agentos.evolver.verdict.pairing import measured_sets

_WIDE, _TALL, _LEFT, _FOOT = 640, 220, 52, 26
_SPARK_WIDE, _SPARK_TALL = 140, 28


# --- How the sequential tests went, round by round. A verdict looks at the last round only; that it may look at any is
# what the tests are made for.

LEAST = math.log(1e-6)  # an e-value may be 0, of which there is no logarithm to be drawn


@dataclass(frozen=True, slots=True)
class RoundEvidence:
    """After a round: how many pairs there are, and the logarithms of the e-values for the edit and against it."""

    pairs: int
    log_for: float
    log_against: float


@dataclass(frozen=True, slots=True)
class TestCourse:
    """One set's test. It is over when ``log_for`` reaches ``needed_for``, or ``log_against`` ``needed_against``."""

    which: TrialSet
    tasks: int
    rounds: Sequence[RoundEvidence]  # from none to all that are complete
    needed_for: float
    needed_against: float


def progress_of(trials: Sequence[Trial], rules: Judge) -> list[TestCourse]:
    """Of each set with fresh pairs; nothing where every flip counts. ``trials``: as the candidate was judged by."""
    found = measured_sets(trials, rules)
    return [_progress(which, each, rules) for which, each in found.items() if each.tasks]


def _progress(which: TrialSet, measured: MeasuredSet, rules: Judge) -> TestCourse:
    shown, refuted = claims_of(which, measured.number, rules, measured.share)

    def rounds() -> Iterator[RoundEvidence]:
        for many in range(complete_rounds(measured.tasks) + 1):
            counts = tally({task: pairs[:many] for task, pairs in measured.tasks.items()})
            values = (max(claim.log_e(counts), LEAST) for claim in (shown, refuted))
            yield RoundEvidence(int(counts.pairs), *values)

    return TestCourse(which, len(measured.tasks), list(rounds()), shown.needed, refuted.needed)


# --- As pictures


def course_chart(course: TestCourse, title: str) -> Markup:
    """The e-values of a sequential test by the number of pairs: for the edit upwards, against it downwards.

    Dashed: what each has to reach. Beyond twice that a line is cut off.
    """
    for_most = max(course.needed_for, *(it.log_for for it in course.rounds))
    against_most = max(course.needed_against, *(it.log_against for it in course.rounds))
    top, bottom = min(for_most, 2 * course.needed_for), min(against_most, 2 * course.needed_against)
    pairs = max(1, course.rounds[-1].pairs)

    def x(count: int) -> float:
        return _LEFT + (_WIDE - _LEFT - 12) * count / pairs

    def y(value: float) -> float:
        room = _TALL - _FOOT - 14
        return 10 + room * (top - max(-bottom, min(top, value))) / (top + bottom)

    def line(name: str, values: Sequence[float]) -> Markup:
        points = " ".join(
            f"{x(it.pairs):.1f},{y(v):.1f}" for it, v in zip(course.rounds, values, strict=True)
        )
        last = Markup('<circle class="{}" cx="{}" cy="{}" r="3.5"/>').format(
            name, f"{x(course.rounds[-1].pairs):.1f}", f"{y(values[-1]):.1f}"
        )
        return Markup('<polyline class="{}" points="{}"/>').format(name, points) + last

    parts = [
        _level("bound good", y(course.needed_for), course.needed_for),
        _level("zero", y(0.0), 0.0),
        _level("bound bad", y(-course.needed_against), course.needed_against),
        line("for", [it.log_for for it in course.rounds]),
        line("against", [-it.log_against for it in course.rounds]),
    ]
    for count, anchor in ((0, "start"), (pairs, "end")):
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
                f"{x(count):.1f}", _TALL - 6, anchor, f"{count} pairs" if count else "0"
            )
        )
    return _chart(_TALL, title, parts)


def _level(name: str, y: float, log_e: float) -> Markup:
    """A line across the chart at an e-value, which stands beside it."""
    return Markup(
        '<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/><text x="{}" y="{}" text-anchor="end">e = {}</text>'
    ).format(
        name, _LEFT, _WIDE - 12, f"{y:.1f}", f"{y:.1f}", _LEFT - 6, f"{y + 4:.1f}", f"{math.exp(log_e):,.0f}"
    )


def _chart(tall: int, title: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="course" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    ).format(_WIDE, tall, title, title, Markup("").join(parts))


def course_title(course: TestCourse) -> str:
    """The same in words, for who does not see the chart."""
    last = course.rounds[-1]
    said = "nothing is shown yet"
    if last.log_for >= course.needed_for:
        said = "what it had to show is shown"
    elif last.log_against >= course.needed_against:
        said = "the opposite is shown"
    return (
        f"{last.pairs} pairs of {course.tasks} tasks: {said}. E-value for it {e_text(last.log_for)} of "
        f"{math.exp(course.needed_for):,.0f}, against it {e_text(last.log_against)} of {math.exp(course.needed_against):,.0f}."
    )


def watch_chart(points: Sequence[tuple[bool, float]], needed: float, title: str) -> Markup:
    """Live runs of a promotion as points, coloured by whether they passed, at the e-value of a fall after each."""
    top, bottom = min(max(needed, *(it for _, it in points)), 2 * needed), needed / 2
    room, tall = 120, 160

    def x(number: int) -> float:
        return _LEFT + (_WIDE - _LEFT - 12) * number / max(1, len(points))

    def y(value: float) -> float:
        return 10 + room * (top - max(-bottom, min(top, value))) / (top + bottom)

    parts = [_level("bound bad", y(needed), needed), _level("zero", y(0.0), 0.0)]
    line = [(0, 0.0), *((number, value) for number, (_, value) in enumerate(points, 1))]
    drawn = " ".join(f"{x(number):.1f},{y(value):.1f}" for number, value in line)
    parts.append(Markup('<polyline class="fortune" points="{}"/>').format(drawn))
    for number, (passed, value) in enumerate(points, 1):
        parts.append(
            Markup('<circle class="{}" cx="{}" cy="{}" r="4"/>').format(
                "for" if passed else "against", f"{x(number):.1f}", f"{y(value):.1f}"
            )
        )
    return _chart(tall, title, parts)


def watch_title(says: str, points: Sequence[tuple[bool, float]], needed: float) -> str:
    """The same in words."""
    last = e_text(points[-1][1])
    return (
        f"{says}: the e-value of a fall is {last}; at {math.exp(needed):,.0f} the promotion is rolled back."
    )


def e_text(log_e: float) -> str:
    """An e-value from its logarithm."""
    if log_e <= LEAST:
        return "0"
    return f"{math.exp(log_e):.2g}" if log_e < math.log(100) else f"{math.exp(min(log_e, 60)):,.0f}"


def sparkline(counts: Sequence[int], title: str) -> Markup:
    """Bars of equal width, the tallest as high as there is room."""
    most, wide = max([*counts, 1]), _SPARK_WIDE / max(1, len(counts))
    bars = Markup("").join(
        Markup('<rect x="{}" y="{}" width="{}" height="{}"/>').format(
            f"{number * wide:.1f}", f"{_SPARK_TALL - tall:.1f}", f"{max(1.0, wide - 1):.1f}", f"{tall:.1f}"
        )
        for number, count in enumerate(counts)
        if (tall := max(2.0, _SPARK_TALL * count / most) if count else 0.0)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    ).format(_SPARK_WIDE, _SPARK_TALL, title, title, bars)
