"""Cron lines by the clock of a time zone: each time once, also where the clock is changed."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agentos.daemon.scheduling.clock import due_after, due_before, local

BERLIN = "Europe/Berlin"  # 2026: summer time from March 29, 02:00, to October 25, 03:00


def times(cron: str, start: datetime, hours: int, zone: str = BERLIN) -> list[datetime]:
    """All times that looking every five minutes finds, each once."""
    found: list[datetime] = []
    for minutes in range(0, hours * 60 + 1, 5):
        due = due_before(cron, zone, start + timedelta(minutes=minutes))
        if due is not None and due > start and due not in found:
            found.append(due)
    return found


def walls(found: list[datetime]) -> list[str]:
    return [f"{local(moment, BERLIN):%H:%M%z}" for moment in found]


def test_a_time_of_day_is_the_same_by_the_clock_in_summer_and_winter() -> None:
    start = datetime(2026, 3, 28, 0, 0, tzinfo=UTC)
    found = times("0 7 * * *", start, 60)
    assert [moment.hour for moment in found] == [6, 5, 5]
    assert walls(found) == ["07:00+0100", "07:00+0200", "07:00+0200"]


@pytest.mark.parametrize(
    ("cron", "start", "expected"),
    [
        ("30 2 * * *", datetime(2026, 3, 28, 22, tzinfo=UTC), ["03:30+0200"]),  # 02:30 is left out
        ("30 2 * * *", datetime(2026, 10, 24, 22, tzinfo=UTC), ["02:30+0200"]),  # 02:30 comes twice
        ("0 3 * * *", datetime(2026, 10, 24, 22, tzinfo=UTC), ["03:00+0100"]),
        (
            "0 */1 * * *",
            datetime(2026, 3, 28, 23, 30, tzinfo=UTC),
            ["01:00+0100", "03:00+0200", "04:00+0200"],
        ),
        (
            "0 * * * *",
            datetime(2026, 10, 24, 23, 30, tzinfo=UTC),
            ["02:00+0200", "02:00+0100", "03:00+0100"],
        ),
    ],
)
def test_a_changed_clock_neither_repeats_nor_drops(cron: str, start: datetime, expected: list[str]) -> None:
    assert walls(times(cron, start, 3 if "*" in cron.split()[1] else 8)) == expected


@pytest.mark.parametrize("cron", ["*/15 9 * * *", "0 */6 * * *", "* 8-17 * * 1-5"])
@pytest.mark.parametrize(
    "change", [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)]
)
def test_a_change_of_the_clock_moves_no_time_on_the_other_side_of_it(cron: str, change: datetime) -> None:
    """What was due in the evening would be due once more, an hour later, when the clock was put back at night."""
    before, after = change - timedelta(minutes=5), change + timedelta(minutes=5)
    assert due_before(cron, BERLIN, after) == due_before(cron, BERLIN, before)
    assert due_after(cron, BERLIN, after) == due_after(cron, BERLIN, before)


def test_what_comes_within_the_repeated_hour_comes_in_both() -> None:
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert walls(times("*/30 2 * * *", start, 8)) == ["02:00+0200", "02:30+0200", "02:00+0100", "02:30+0100"]
    between = datetime(2026, 10, 25, 0, 50, tzinfo=UTC)
    assert due_after("*/30 2 * * *", BERLIN, between) == datetime(2026, 10, 25, 1, tzinfo=UTC)


def test_the_short_form_of_each_hour_is_that_of_the_line() -> None:
    start = datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert times("@hourly", start, 8) == times("0 * * * *", start, 8)


def test_a_time_that_is_left_out_and_one_that_is_shown_both_run_where_they_change_places() -> None:
    start = datetime(2027, 10, 2, 14, tzinfo=UTC)  # 02:00 to 02:30 is left out an hour and a half later
    found = times("15,40 2 * * *", start, 8, "Australia/Lord_Howe")
    assert [f"{local(moment, 'Australia/Lord_Howe'):%H:%M}" for moment in found] == ["02:40", "02:45"]
    assert due_after("15,40 2 * * *", "Australia/Lord_Howe", start) == found[0]


def test_the_very_moment_is_due_and_not_the_next() -> None:
    seven = datetime(2026, 6, 1, 7, tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)
    assert due_before("0 7 * * *", BERLIN, seven) == seven
    assert due_after("0 7 * * *", BERLIN, seven) == seven + timedelta(days=1)
    assert due_after("0 7 * * *", BERLIN, seven - timedelta(seconds=1)) == seven


@pytest.mark.parametrize("cron", ["*/15 * * * *", "0 7 * * 1-5", "30 2 * * *", "5 0 1 * *"])
def test_next_and_last_agree_through_a_year(cron: str) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(60):
        after = due_after(cron, BERLIN, moment)
        assert after is not None
        assert after > moment
        assert due_before(cron, BERLIN, after) == after
        moment = after + timedelta(days=5, hours=7)


def test_an_unknown_zone_is_this_machines_and_an_impossible_date_is_none() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert local(now, "Nowhere/Atlantis") == now
    assert due_after("0 0 30 2 *", "", now) is None


def test_the_machines_zone_is_the_one_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    try:
        for zone, hour in (("Asia/Tokyo", 0), (BERLIN, 8), ("UTC", 9)):
            monkeypatch.setenv("TZ", zone)
            assert due_after("0 9 * * *", "", now) == datetime(2026, 11, 29, hour, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()
