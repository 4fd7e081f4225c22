"""Days that come again after some months."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date


def months_later(day: date, months: int) -> date:
    """The same day so many months later, or the last day of a month that is too short for it."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def occurrences(first: date, every: int, until: date) -> Iterator[date]:
    """The first day, and each day that is a multiple of ``every`` months later, up to ``until``."""
    passed = 0
    day = first
    while day <= until:
        yield day
        passed += every
        day = months_later(first, passed)
