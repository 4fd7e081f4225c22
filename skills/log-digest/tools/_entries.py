"""Splits a log into entries: a date at the start of a line begins one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ISO = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?"
    r"(?:\s?(Z|[+-](?:0\d|1[0-4]):?[0-5]\d)(?!\w))?\]?[\s:,|-]*"
)
SYSLOG = re.compile(r"([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)\s+")
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
WORDS = "trace|debug|info|notice|warn|warning|error|err|critical|crit|fatal|alert|emerg"
# In capitals, in brackets, or before a colon: in running text the same word is no level.
LEVEL = re.compile(rf"\b({WORDS.upper()})\b|(?i:[\[<(]({WORDS})[\])>])|(?i:\b({WORDS}):)")
NAMES = {
    "trace": "debug", "notice": "info", "warn": "warning", "err": "error", "crit": "critical",
    "fatal": "critical", "alert": "critical", "emerg": "critical",
}  # fmt: skip


@dataclass
class Entry:
    """One entry; ``level`` is "" where the line names none. ``more`` counts continued lines."""

    time: datetime
    level: str
    message: str
    more: int = 0


def entries(path: str, year: int) -> Iterator[Entry]:
    """The entries in order; lines before the first date are skipped."""
    last = None
    with Path(path).open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            found = entry(line.rstrip("\r\n"), year)
            if found is None:
                if last is not None:
                    last.more += 1
                continue
            if last is not None:
                yield last
            last = found
    if last is not None:
        yield last


def entry(line: str, year: int) -> Entry | None:
    """The entry that this line begins, None if it begins none."""
    time, rest = iso(line) or syslog(line, year) or (None, "")
    if time is None:
        return None
    # A level stands near the front; later in the line the word is part of the message.
    level = LEVEL.search(rest[:60])
    if level is None:
        return Entry(time, "", rest)
    name = level[level.lastindex or 0].lower()
    return Entry(time, NAMES.get(name, name), rest[level.end() :].lstrip(" :]-|>"))


def iso(line: str) -> tuple[datetime, str] | None:
    """The date and the rest of a line that begins with an ISO date, in UTC where it has no offset."""
    found = ISO.match(line)
    if found is None:
        return None
    fraction = (found[2] or "0").ljust(6, "0")[:6]
    offset = "+00:00" if found[3] in (None, "Z") else found[3]
    try:
        time = datetime.fromisoformat(f"{found[1]}.{fraction}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time, line[found.end() :]


def syslog(line: str, year: int) -> tuple[datetime, str] | None:
    """The same for a line that begins with month, day and time."""
    found = SYSLOG.match(line)
    if found is None or found[1] not in MONTHS:
        return None
    month, day = MONTHS.index(found[1]) + 1, int(found[2])
    hour, minute, second = int(found[3]), int(found[4]), int(found[5])
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC), line[found.end() :]
    except ValueError:
        return None
