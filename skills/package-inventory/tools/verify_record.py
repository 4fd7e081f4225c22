"""Whether the files of a distribution are as they were installed."""

import hashlib
from base64 import urlsafe_b64encode
from pathlib import Path, PurePosixPath

from _record import Item, items
from pydantic import BaseModel, Field

TOOL = {
    "name": "verify_record",
    "description": "Compare files with the sizes and hashes that a RECORD holds",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    record: str = Field(description="The RECORD file, in the workspace")
    root: str = Field(".", description="Where the recorded paths begin")


class Output(BaseModel):
    verified: int
    changed: list[str] = Field(description="Another size or hash than recorded")
    missing: list[str]
    unchecked: list[str] = Field(description="No hash recorded, an unknown algorithm, or outside root")


def run(input: Input) -> Output:
    """Lists are in the order of the RECORD."""
    found: dict[str, list[str]] = {"verified": [], "changed": [], "missing": [], "unchecked": []}
    for item in items(input.record):
        found[state(item, Path(input.root))].append(item.path)
    return Output(
        verified=len(found["verified"]),
        changed=found["changed"],
        missing=found["missing"],
        unchecked=found["unchecked"],
    )


def state(item: Item, root: Path) -> str:
    """What is to be said of one file."""
    algorithm, _, expected = item.digest.partition("=")
    pure = PurePosixPath(item.path)
    if algorithm not in ("sha256", "sha384", "sha512") or pure.is_absolute() or ".." in pure.parts:
        return "unchecked"
    file = root / pure
    if not file.is_file():
        return "missing"
    content = file.read_bytes()
    digest = urlsafe_b64encode(hashlib.new(algorithm, content).digest()).decode().rstrip("=")
    same = digest == expected.rstrip("=") and item.size in (None, len(content))
    return "verified" if same else "changed"
