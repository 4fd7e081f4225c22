"""Backups that a recovery needs."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "backup_chain",
    "description": "Which backups have to be put back, in their order, to get the state of a moment: the last full one, the last differential one after it (it holds all since the full one), and the incremental ones since then; and how many MiB they are",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    moment: str


class Output(BaseModel):
    names: list[str]
    size: int
    state_of: str | None


def run(input: Input) -> Output:
    """Lines: moment, kind (full, diff, incr), size, name, and failed for those that are not to be trusted; in any order."""
    rows = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if len(fields) < 4 or "failed" in fields[4:]:
            continue
        moment, kind, size, name = fields[:4]
        if moment <= input.moment:
            rows.append((moment, kind, int(size), name))
    chain: list[tuple[str, str, int, str]] = []
    for row in sorted(rows):
        kind = row[1]
        if kind == "full":
            chain = [row]
        elif chain:
            chain.append(row)
    return Output(
        names=[row[3] for row in chain],
        size=sum(row[2] for row in chain),
        state_of=chain[-1][0] if chain else None,
    )
