"""Results of a relay: legs are written as 58.31 or 1:02.50."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "relay_times",
    "description": "Times and ranks of relay teams",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="CSV: team, then one column for each leg")


class Output(BaseModel):
    times: dict[str, str]
    ranks: list[str]
    fastest_leg: str


def hundredths(text: str) -> int:
    """Hundredths of a second."""
    minutes, _, seconds = text.rpartition(":")
    whole, part = seconds.split(".")
    return (int(minutes or 0) * 60 + int(whole)) * 100 + int(part)


def shown(time: int) -> str:
    minutes, rest = divmod(time, 6000)
    return f"{minutes}:{rest // 100:02}.{rest % 100:02}"


def run(input: Input) -> Output:
    totals: dict[str, int] = {}
    legs: list[tuple[int, str]] = []
    with Path(input.path).open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            team = row.pop("team")
            times = [hundredths(time) for time in row.values()]
            totals[team] = sum(times)
            legs += [(time, team) for time in times]
    ranks = sorted(totals, key=lambda team: totals[team])
    return Output(
        times={team: shown(time) for team, time in totals.items()},
        ranks=ranks,
        fastest_leg=min(legs)[1],
    )
