"""Reads simple DNS zone files."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "zone_file",
    "description": "Records of a zone file with whole names and TTLs; an indented record belongs to the name before it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    records: list[str]
    names: list[str]
    shortest_ttl: int | None


def whole(name: str, origin: str) -> str:
    if name == "@":
        return origin
    return name if name.endswith(".") else f"{name}.{origin}"


def run(input: Input) -> Output:
    origin, default = ".", 86400
    owner = ""
    records: list[tuple[str, int, str, str]] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        line = line.split(";")[0].rstrip()
        fields = line.split()
        if not fields:
            continue
        if fields[0] == "$ORIGIN":
            origin = fields[1]
        elif fields[0] == "$TTL":
            default = int(fields[1])
        else:
            if not line[0].isspace():
                owner = whole(fields.pop(0), origin)
            ttl = int(fields.pop(0)) if fields[0].isdigit() else default
            if fields[0] == "IN":
                fields.pop(0)
            records.append((owner, ttl, fields[0], " ".join(fields[1:])))
    return Output(
        records=[f"{name} {ttl} {kind} {data}" for name, ttl, kind, data in records],
        names=sorted({name for name, _, _, _ in records}),
        shortest_ttl=min((ttl for _, ttl, _, _ in records), default=None),
    )
