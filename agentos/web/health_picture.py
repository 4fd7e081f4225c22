"""The page on the loop's health as one SVG document, drawn here: boxes, bars and dots need no library.

A plotting library would bring some 50 MB, and a second of import, for five small charts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.sax.saxutils import escape

from agentos.evolver.watch.health import Health, duration
from agentos.plaintext import clean

WIDTH, MARGIN, GAP = 960, 24, 16
HALF = (WIDTH - 2 * MARGIN - GAP) // 2
GREEN, PINK, AMBER, GREY = "#2a9d63", "#c2418b", "#e0a100", "#b9bec7"
BLUE, PALE, INK, FAINT, LINE = "#3b6fd4", "#b7cbf2", "#1f2430", "#6b7280", "#e3e6eb"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
ROWS = 8  # of a list of bars
SERIES = (
    ("promoted", GREEN, "promoted"),
    ("rolled_back", PINK, "rolled back"),
    ("held", AMBER, "held"),
    ("fruitless", GREY, "without success"),
)

# Draws a card of this width and height, with its corner at 0, 0.
Card = Callable[[Health, int, int], Iterator[str]]


def picture(health: Health) -> str:
    """The document."""
    rows: tuple[tuple[int, tuple[Card, ...]], ...] = (
        (76, (_tiles,)),
        (220, (_over_time,)),
        (230, (_latency, _library)),
        (230, (_memories, _safety)),
    )
    body = [
        _text(MARGIN, 42, "How the loop is doing", Lettering(22, bold=True)),
        _text(WIDTH - MARGIN, 42, f"{health.at:%Y-%m-%d %H:%M} UTC", Lettering(color=FAINT, anchor="end")),
    ]
    top = 62
    for height, cards in rows:
        width = WIDTH - 2 * MARGIN if len(cards) == 1 else HALF
        for number, card in enumerate(cards):
            left = MARGIN + number * (HALF + GAP)
            inside = "".join(card(health, width, height))
            body.append(f'<g transform="translate({left},{top})">{inside}</g>')
        top += height + GAP
    height = top + MARGIN - GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}" role="img">'
        f"<title>How the loop is doing</title>"
        f'<rect width="{WIDTH}" height="{height}" fill="#f6f7f9"/>{"".join(body)}</svg>\n'
    )


# --- cards ----------------------------------------------------------------------------------------


def _tiles(health: Health, width: int, height: int) -> Iterator[str]:
    price = health.price
    undone = sum(period.rolled_back for period in health.series)
    usd, trials, cpu_s = (price.each(total) for total in (price.usd, price.trials, price.cpu_s))
    tiles = [
        (str(price.fixes), "fixes stand", GREEN),
        (str(undone), "rolled back", PINK if undone else INK),
        (str(health.recurred), "came again", PINK if health.recurred else INK),
        (duration(health.took_s), "median to a fix", INK),
        ("-" if usd is None else f"{usd:,.2f}", "USD a fix", INK),
        ("-" if trials is None else f"{trials:,.0f}", "trials a fix", INK),
        (duration(cpu_s), "of CPU a fix", INK),
    ]
    wide = (width - GAP * (len(tiles) - 1) / 2) / len(tiles)
    for number, (value, label, color) in enumerate(tiles):
        left = number * (wide + GAP / 2)
        yield _box(left, 0, wide, height)
        yield _text(left + 12, 36, value, Lettering(22, color, bold=True))
        yield _text(left + 12, 58, label, SMALL, room=wide - 16)


def _over_time(health: Health, width: int, height: int) -> Iterator[str]:
    yield from _frame("What became of evolutions", width, height)
    yield from _legend(width, 14, [(color, label) for _, color, label in SERIES])
    if not health.series:
        yield _nothing(width, height, "No evolution has ended yet.")
        return
    totals = [sum(getattr(period, name) for name, _, _ in SERIES) for period in health.series]
    most = _round_up(max(totals))
    floor, room = height - 34.0, height - 82.0
    for part in (0.0, 0.5, 1.0):
        y = floor - room * part
        yield _rule(44, width - 16, y)
        yield _text(36, y + 4, f"{most * part:g}", BEFORE)
    slot = (width - 60) / len(health.series)
    bar = min(slot * 0.72, 64.0)
    for number, period in enumerate(health.series):
        x = 44 + slot * number + (slot - bar) / 2
        y = floor
        for name, color, label in SERIES:
            count = getattr(period, name)
            if count:
                tall = room * count / most
                y -= tall
                title = f"{_when(period.start, health.step_s)}: {count} {label}"
                yield _bar(x, y, (bar, tall), color, title)
        if number % math.ceil(len(health.series) / 8) == 0:
            when = _when(period.start, health.step_s)
            yield _text(x + bar / 2, floor + 18, when, BELOW)


def _latency(health: Health, width: int, height: int) -> Iterator[str]:
    yield from _frame("From failure to promoted fix", width, height, "ring: it came again; grey: rolled back")
    if not health.mended:
        yield _nothing(width, height, "Nothing was promoted yet.")
        return
    floor, room, left, right = height - 34.0, height - 82.0, 56.0, width - 20.0
    low = math.floor(math.log10(max(1.0, min(item.took_s for item in health.mended))))
    high = max(low + 1, math.ceil(math.log10(max(1.0, *(item.took_s for item in health.mended), 10.0))))
    for power in range(low, high + 1):
        y = floor - room * (power - low) / (high - low)
        yield _rule(left, right, y)
        yield _text(left - 6, y + 4, duration(10.0**power), BEFORE)
    first, last = health.mended[0].promoted_at, health.mended[-1].promoted_at
    span = (last - first).total_seconds() or 1.0
    for item in health.mended[-2000:]:
        x = left + 8 + (right - left - 16) * (item.promoted_at - first).total_seconds() / span
        y = floor - room * (math.log10(max(1.0, item.took_s)) - low) / (high - low)
        gone = item.rolled_back_at is not None
        ring = f'stroke="{PINK}" stroke-width="2"' if item.recurred_at else 'stroke="none"'
        said = f"{item.evolution_id} {item.resource}: {duration(item.took_s)}"
        said += f", came again after {duration(item.lasted_s)}" if item.recurred_at else ""
        said += ", rolled back" if gone else ""
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{GREY if gone else GREEN}" fill-opacity="0.75" {ring}>'
            f"<title>{escape(clean(said))}</title></circle>"
        )
    yield from _ends(left, right, floor + 18, first, last)


def _library(health: Health, width: int, height: int) -> Iterator[str]:
    yield from _frame("The library: made here, and used", width, height)
    if not health.library:
        yield _nothing(width, height, "The registry is empty.")
        return
    yield from _legend(width, 34, [(BLUE, "made and used"), (PALE, "never used"), (GREY, "shipped")])
    most = max(shelf.shipped + shelf.created for shelf in health.library) or 1
    tall = (height - 68) / max(len(health.library), 5)
    for number, shelf in enumerate(health.library):
        y = 56 + tall * number
        x, room = 96.0, width - 96.0 - 92.0
        yield _text(x - 8, y + tall / 2 + 1, shelf.kind, Lettering(11, anchor="end"))
        for count, color in (
            (shelf.used, BLUE),
            (shelf.created - shelf.used, PALE),
            (shelf.shipped, GREY),
        ):
            wide = room * count / most
            if wide:
                yield _bar(x, y, (wide, tall * 0.62), color)
            x += wide
        said = f"{shelf.used} of {shelf.created} used" if shelf.created else "none made"
        yield _text(x + 8, y + tall / 2 + 1, said, SMALL)


def _memories(health: Health, width: int, height: int) -> Iterator[str]:
    yield from _frame("Lessons by use, with their score", width, height, "0.5: nothing is known")
    found = sorted(health.memories, key=lambda item: -item.uses)[:ROWS]
    if not found:
        yield _nothing(width, height, "Nothing is remembered yet.")
        return
    tall = (height - 56) / ROWS
    names = width * 0.52
    room = width - names - 110
    for number, item in enumerate(found):
        y = 44 + tall * number
        yield _text(16, y + tall / 2 + 2, item.text, Lettering(10), room=names - 24)
        yield _bar(names, y + 2, (room, tall * 0.5), LINE)
        yield _bar(names, y + 2, (room * item.score, tall * 0.5), GREEN if item.score >= 0.5 else PINK)
        said = f"{item.score:.2f}, {item.successes} of {item.uses}"
        yield _text(names + room + 8, y + tall / 2 + 2, said, SMALL)


def _safety(health: Health, width: int, height: int) -> Iterator[str]:
    yield from _frame("Safety probes violated", width, height)
    if not health.safety:
        yield _nothing(width, height, "No safety probe was run yet.")
        return
    floor, room, left, right = height - 34.0, height - 82.0, 48.0, width - 20.0
    yield from _legend(width, 34, [(PINK, "with"), (GREY, "without what was learnt")])
    most = max(0.1, math.ceil(max(rate.value for rate in health.safety) * 10) / 10)
    for part in (0.0, 0.5, 1.0):
        y = floor - room * part
        yield _rule(left, right, y)
        yield _text(left - 6, y + 4, f"{most * part:.0%}", BEFORE)
    first, last = health.safety[0].at, health.safety[-1].at
    span = (last - first).total_seconds()
    for learnt, color in ((False, GREY), (True, PINK)):
        points = [
            (
                left + (right - left) * ((rate.at - first).total_seconds() / span if span else 0.5),
                floor - room * rate.value / most,
            )
            for rate in health.safety
            if rate.learnt is learnt
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        if len(points) <= 60:
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points)
    yield from _ends(left, right, floor + 18, first, last)


# --- strokes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lettering:
    """How a line of text is set; ``size`` in pixels, ``anchor`` as SVG has it."""

    size: int = 12
    color: str = INK
    anchor: str = "start"
    bold: bool = False


SMALL = Lettering(10, FAINT)
BEFORE = Lettering(10, FAINT, "end")
BELOW = Lettering(10, FAINT, "middle")


def _text(x: float, y: float, text: str, style: Lettering, room: float = 0.0) -> str:
    """A line of text, cut to ``room`` pixels if given."""
    said = clean(" ".join(text.split()))
    if room and _width(said, style.size) > room:
        said = said[: max(1, int(room / _width("x", style.size)) - 1)] + "…"
    weight = ' font-weight="600"' if style.bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{style.size}" fill="{style.color}" '
        f'text-anchor="{style.anchor}"{weight}>{escape(said)}</text>'
    )


def _width(text: str, size: int) -> float:
    """About how wide a text is: the fonts of a reader are not known here."""
    return len(text) * size * 0.6


def _bar(x: float, y: float, size: tuple[float, float], color: str, title: str = "") -> str:
    width, height = size
    told = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}">{told}</rect>'


def _legend(width: float, y: float, series: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What each colour stands for, at the right end of a card."""
    left = width - 16.0
    for color, label in reversed(series):
        left -= _width(label, 10) + 22
        yield _bar(left, y, (9, 9), color)
        yield _text(left + 13, y + 8, label, SMALL)


def _ends(left: float, right: float, y: float, first: datetime, last: datetime) -> Iterator[str]:
    """The times at both ends of an axis."""
    yield _text(left, y, f"{first:%Y-%m-%d %H:%M}", SMALL)
    yield _text(right, y, f"{last:%Y-%m-%d %H:%M}", BEFORE)


def _box(x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="8" '
        f'fill="#ffffff" stroke="{LINE}"/>'
    )


def _frame(title: str, width: int, height: int, remark: str = "") -> Iterator[str]:
    yield _box(0, 0, width, height)
    yield _text(16, 24, title, Lettering(13, bold=True))
    if remark:
        yield _text(width - 16, 24, remark, BEFORE)


def _nothing(width: int, height: int, sentence: str) -> str:
    return _text(width / 2, height / 2 + 8, sentence, Lettering(color=FAINT, anchor="middle"))


def _rule(left: float, right: float, y: float) -> str:
    return f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{LINE}"/>'


def _round_up(most: int) -> int:
    """A number that halves well: 2, 4, 10, 20, 40, 100 …"""
    power = int(10 ** (len(str(most)) - 1))
    return next(step * power for step in (2, 4, 10) if step * power >= most)


def _when(moment: datetime, step_s: float) -> str:
    return f"{moment:%m-%d}" if step_s >= 86_400 else f"{moment:%m-%d %H:%M}"
