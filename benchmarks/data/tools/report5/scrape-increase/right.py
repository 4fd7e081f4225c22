"""Growth of counters between two scrapes."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "scrape_increase",
    "description": "How much each counter grew between two scrapes in the Prometheus text format",
    "effects": ["read"],
    "dependencies": [],
}

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


class Input(BaseModel):
    before: str = Field(description="The older scrape")
    after: str = Field(description="The newer scrape")
    by: str | None = Field(None, description="A label that the growth is summed up by")


class Output(BaseModel):
    growth: dict[str, float]
    restarted: int


Series = tuple[str, tuple[tuple[str, str], ...]]


def scrape(path: str) -> dict[Series, float]:
    """The counters of a scrape; gauges, which may fall, are left out."""
    found: dict[Series, float] = {}
    kinds: dict[str, str] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
        match = SAMPLE.match(line.strip())
        if match is None or kinds.get(match[1]) != "counter":
            continue
        labels = tuple(sorted(LABEL.findall(match[2] or "")))
        found[match[1], labels] = float(match[3])
    return found


def run(input: Input) -> Output:
    old, new = scrape(input.before), scrape(input.after)
    growth: dict[str, float] = {}
    restarted = 0
    for series, value in new.items():
        name, labels = series
        start = old.get(series, 0.0)
        if value < start:
            restarted += 1
        key = name if input.by is None else dict(labels).get(input.by, "")
        # a counter that began anew has counted from nought
        growth[key] = growth.get(key, 0.0) + (value - start if value >= start else value)
    return Output(growth=growth, restarted=restarted)
