"""When a cron line is due, by the clock of a time zone, across its changes.

A line whose minute or hour is ``*`` or a step of it means every so often, and goes by the time that passes. Any
other means a time of day: an hour that the clock leaves out runs when as much time has passed, and one that it
repeats runs once, as with the cron of Unix.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone; None is this machine's, also for a name that this machine does not know (any more)."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None


def local(moment: datetime, name: str) -> datetime:
    """The moment by the clock of a time zone; "" is this machine's."""
    return moment.astimezone(zone_of(name))


def due_before(cron: str, zone: str, now: datetime) -> datetime | None:
    """The newest time, not after ``now``, at which the line was due; in UTC."""
    return _search(cron, zone, now, forward=False)


def due_after(cron: str, zone: str, now: datetime) -> datetime | None:
    """The next time after ``now``; in UTC, None when there is none."""
    return _search(cron, zone, now, forward=True)


def _search(cron: str, zone: str, now: datetime, *, forward: bool) -> datetime | None:
    wall = local(now, zone)
    every = any(field.startswith("*") for field in cron.split()[:2])
    offset = timezone(wall.utcoffset() or timedelta())
    # croniter answers strictly before or after; a moment later, so that "now" itself counts as due
    start = wall.replace(tzinfo=None) if forward else wall.replace(tzinfo=None) + timedelta(milliseconds=1)
    if not every:  # a time of day may come again, or have been skipped, near a change of the clock
        start += timedelta(hours=-3 if forward else 3)
    times = croniter(cron, start)
    for _ in range(10_000):
        try:
            naive: datetime = times.get_next(datetime) if forward else times.get_prev(datetime)
        except CroniterBadDateError:
            return None
        found = (naive.replace(tzinfo=offset) if every else _moment(naive, zone)).astimezone(UTC)
        if found > now if forward else found <= now:
            return found
    return None


def _moment(naive: datetime, zone: str) -> datetime:
    """The first moment at which the clock shows this; where it never does, as much later as it was put on."""
    place = zone_of(zone)
    return naive.replace(tzinfo=place) if place else naive.astimezone()
