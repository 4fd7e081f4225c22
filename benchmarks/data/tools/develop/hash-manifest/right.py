"""Holds a manifest of checksums against the checksums that were found."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "hash_manifest",
    "description": "Which files of a checksum manifest are unchanged, changed or missing, and which are not in it",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    manifest: str
    found: str


class Output(BaseModel):
    unchanged: list[str]
    changed: list[str]
    missing: list[str]
    unknown: list[str]


def sums(path: str) -> dict[str, str]:
    """Digest by file name; a star before the name says that it was read as binary."""
    result = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        digest, name = line.split(" ", 1)
        result[name[1:]] = digest.lower()
    return result


def run(input: Input) -> Output:
    wanted = sums(input.manifest)
    found = sums(input.found)
    unchanged = [name for name in wanted if found.get(name) == wanted[name]]
    return Output(
        unchanged=sorted(unchanged),
        changed=sorted(name for name in wanted if name in found and name not in unchanged),
        missing=sorted(set(wanted) - set(found)),
        unknown=sorted(set(found) - set(wanted)),
    )
