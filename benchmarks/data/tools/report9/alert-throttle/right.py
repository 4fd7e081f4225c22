"""Which alerts go out when the same ones come again and again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "alert_throttle",
    "description": "Alerts that are sent, when the same source may send one in so many seconds, from lines SECOND LEVEL SOURCE TEXT",
    "effects": ["read"],
    "dependencies": [],
}

LEVELS = ["info", "warning", "error"]


class Input(BaseModel):
    path: str = Field(description="Alerts in the order of their times")
    every: int = Field(default=60, ge=0, description="A source is silent for so many seconds after an alert that was sent")
    level: str = Field(default="info", description="Alerts of a lower level are not sent")


class Alert(BaseModel):
    at: int
    level: str
    source: str
    text: str


class Output(BaseModel):
    sent: list[str]
    dropped: dict[str, int]


async def alerts(path: Path) -> AsyncIterator[Alert]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        at, level, source, *rest = line.split(maxsplit=3)
        yield Alert(at=int(at), level=level, source=source, text=" ".join(rest))
        await asyncio.sleep(0)


async def important(stream: AsyncIterator[Alert], level: str) -> AsyncIterator[Alert]:
    async for alert in stream:
        if LEVELS.index(alert.level) >= LEVELS.index(level):
            yield alert


async def throttled(
    stream: AsyncIterator[Alert], every: int, dropped: dict[str, int]
) -> AsyncIterator[Alert]:
    last: dict[str, int] = {}
    async for alert in stream:
        before = last.get(alert.source)
        if before is not None and alert.at - before < every:
            dropped[alert.source] = dropped.get(alert.source, 0) + 1
            continue
        last[alert.source] = alert.at
        yield alert


async def run(input: Input) -> Output:
    dropped: dict[str, int] = {}
    stream = throttled(important(alerts(Path(input.path)), input.level), input.every, dropped)
    sent = [f"{alert.at} {alert.source}: {alert.text or alert.level}" async for alert in stream]
    return Output(sent=sent, dropped=dropped)
