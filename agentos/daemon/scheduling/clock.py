"""When a cron line is due, by the clock of a time zone, across its changes.

A line whose minute or hour is ``*`` or a step of it means every so often, and is due whenever the clock shows it:
not within an hour that is left out, and twice within one that is repeated. Any other means a time of day: an hour that the clock leaves out runs when as much time has passed, and one that it
repeats runs once, as with the cron of Unix.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

_MOMENT = timedelta(milliseconds=1)
_EACH_HOUR = {"@hourly": "0 * * * *"}  # the one short form that goes by the running clock
_CHANGE = timedelta(hours=3)  # more than clocks are put on or back by
_CHANGES_MAX = 1_000  # of a clock, beyond which nothing is looked for


def zone_of(name: str | ZoneInfo) -> ZoneInfo | None:
    """The time zone; None is this machine's, also for a name that this machine does not know (any more)."""
    if isinstance(name, ZoneInfo):
        return name
    if name:
        with suppress(KeyError, ValueError, OSError):
            return ZoneInfo(name)
    time.tzset()  # the machine may be in another zone by now than when this process began
    return None


def local(moment: datetime, name: str | ZoneInfo) -> datetime:
    """The moment by the clock of a time zone; "" is this machine's."""
    return moment.astimezone(zone_of(name))


def zone_of_process(pid: int) -> ZoneInfo | None:
    """The time zone in which a process of this machine began; None where that cannot be told."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        name = next((line[3:].decode().lstrip(":") for line in variables if line.startswith(b"TZ=")), "")
        if name:
            return ZoneInfo(name)
        with open("/etc/localtime", "rb") as file:
            return ZoneInfo.from_file(file)
    except (KeyError, ValueError, OSError):
        return None


def due_before(cron: str, zone: str | ZoneInfo, now: datetime) -> datetime | None:
    """The newest time, not after ``now``, at which the line was due; in UTC."""
    return _search(cron, zone, now, forward=False)


def due_after(cron: str, zone: str | ZoneInfo, now: datetime) -> datetime | None:
    """The next time after ``now``; in UTC, None when there is none."""
    return _search(cron, zone, now, forward=True)


def _search(cron: str, zone: str | ZoneInfo, now: datetime, *, forward: bool) -> datetime | None:
    cron = _EACH_HOUR.get(cron.strip().lower(), cron)
    if any(field.startswith("*") for field in cron.split()[:2]):
        return _by_running_clock(cron, zone, now, forward=forward)
    # a time of day may come again, or have been skipped, near a change of the clock
    start = local(now, zone).replace(tzinfo=None) + (-_CHANGE if forward else _CHANGE)
    times = croniter(cron, start)
    nearest: datetime | None = None
    for _ in range(10_000):
        naive = _next(times, forward=forward)
        if naive is None:
            break
        found = _moment(naive, zone).astimezone(UTC)
        if nearest is not None and abs(found - nearest) > _CHANGE:
            break
        if found > now if forward else found <= now:
            # one that the clock leaves out may run after the next one that it shows
            nearest = found if nearest is None else (min if forward else max)(nearest, found)
            if _offset(found - _CHANGE, zone) == _offset(found + _CHANGE, zone):
                break
    return nearest


def _by_running_clock(cron: str, zone: str | ZoneInfo, now: datetime, *, forward: bool) -> datetime | None:
    """Searched between two changes of the clock, then beyond the nearest of them: each has an offset of its own."""
    offset = _offset(now, zone)
    # croniter answers strictly before or after; a moment later, so that "now" itself counts as due
    start = now.astimezone(offset).replace(tzinfo=None) + (timedelta() if forward else _MOMENT)
    for _ in range(_CHANGES_MAX):
        naive = _next(croniter(cron, start), forward=forward)
        if naive is None:
            return None
        found = naive.replace(tzinfo=offset).astimezone(UTC)
        if _offset(found, zone) == offset:
            return found
        change = _change(zone, *sorted((now, found)))
        now = change if forward else change - timedelta(seconds=1)
        offset = _offset(now, zone)
        start = change.astimezone(offset).replace(tzinfo=None) - (_MOMENT if forward else timedelta())
    return None


def _next(times: croniter, *, forward: bool) -> datetime | None:
    try:
        naive: datetime = times.get_next(datetime) if forward else times.get_prev(datetime)
    except CroniterBadDateError:
        return None
    return naive


def _offset(moment: datetime, zone: str | ZoneInfo) -> timezone:
    return timezone(local(moment, zone).utcoffset() or timedelta())


def _change(zone: str | ZoneInfo, early: datetime, late: datetime) -> datetime:
    """The first second of another offset than the early one's; the late one has another."""
    before, low, high = _offset(early, zone), int(early.timestamp()), int(late.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(datetime.fromtimestamp(middle, UTC), zone) == before:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


def _moment(naive: datetime, zone: str | ZoneInfo) -> datetime:
    """The first moment at which the clock shows this; where it never does, as much later as it was put on."""
    place = zone_of(zone)
    return naive.replace(tzinfo=place) if place else naive.astimezone()
