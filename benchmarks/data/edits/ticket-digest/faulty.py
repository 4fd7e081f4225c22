"""Sums up a file of tickets."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "ticket_digest",
    "description": "A report of the tickets and hours of each owner, by name, as the lines of a table with a sum below; and the title of the ticket that took the most hours",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description='Lines of fields such as: id=7 owner=ann title="no paper" hours=1.5')


class Output(BaseModel):
    report: list[str]
    longest: str | None


def fields(line: str) -> dict[str, str]:
    """The fields of a line; a value with spaces stands in double quotes."""
    found = {}
    for part in line.split(" "):
        key, value = part.split("=", 1)
        found[key] = value.strip('"')
    return found


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    tickets = [fields(line.strip()) for line in lines if line.strip()]
    owners: dict[str, list[float]] = {}
    for ticket in tickets:
        owners.setdefault(ticket["owner"], []).append(float(ticket["hours"]))
    report = [f"{owner:<8}{len(hours):>4}{sum(hours):>8.1f}" for owner, hours in sorted(owners.items())]
    total = sum(sum(hours) for hours in owners.values())
    report.append(f"{'all':<8}{len(tickets):>4}{total:>8.1f}")
    longest = max(tickets, key=lambda ticket: float(ticket["hours"]), default=None)
    return Output(report=report, longest=None if longest is None else longest["title"])
