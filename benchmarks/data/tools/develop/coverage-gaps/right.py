"""Lines that no test ran."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "coverage_gaps",
    "description": "For each file of a coverage record the runs of lines that no test ran (3-7, or 9 alone) and the share of lines that were run; lines that are no code are not in the record and do not end a run",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    gaps: dict[str, list[str]]
    percent: dict[str, float]


def written(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def gaps_of(hits: dict[int, int]) -> list[str]:
    found = []
    first = last = 0
    for number in sorted(hits):
        if hits[number] == 0:
            first = first or number
            last = number
        elif first:
            found.append(written(first, last))
            first = 0
    if first:
        found.append(written(first, last))
    return found


def run(input: Input) -> Output:
    """Lines: file:line times. A line may be recorded several times, by several runs of the tests."""
    files: dict[str, dict[int, int]] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        place, times = line.rsplit(maxsplit=1)
        name, number = place.rsplit(":", 1)
        hits = files.setdefault(name, {})
        hits[int(number)] = hits.get(int(number), 0) + int(times)
    percent = {
        name: round(100 * sum(times > 0 for times in hits.values()) / len(hits), 1)
        for name, hits in files.items()
    }
    return Output(gaps={name: gaps_of(hits) for name, hits in files.items()}, percent=percent)
