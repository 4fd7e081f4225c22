"""Watches over certificates."""

from datetime import UTC, datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel

TOOL = {
    "name": "cert_watch",
    "description": "Whole days that the certificates of a list are still valid at a moment, and which expire soon or have",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    moment: AwareDatetime
    warn_days: int = 14


class Output(BaseModel):
    days_left: dict[str, int]
    soon: list[str]
    expired: list[str]
    first: str | None


def load(path: str) -> dict[str, datetime]:
    ends: dict[str, datetime] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        host, stamp = line.split()
        end = datetime.fromisoformat(stamp).astimezone(UTC)
        # a host with two certificates is as safe as the later one
        if host not in ends or end > ends[host]:
            ends[host] = end
    return ends


def run(input: Input) -> Output:
    ends = load(input.path)
    left = {host: end - input.moment for host, end in ends.items()}
    expired = [host for host, delta in left.items() if delta.total_seconds() <= 0]
    days = {host: max(delta.days, 0) for host, delta in left.items()}
    soon = [host for host in days if host not in expired and days[host] < input.warn_days]
    return Output(
        days_left=days,
        soon=sorted(soon, key=lambda host: (ends[host], host)),
        expired=sorted(expired),
        first=min(ends, key=lambda host: (ends[host], host)) if ends else None,
    )
