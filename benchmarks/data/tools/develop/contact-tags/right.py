"""The tags of an address book."""

import json
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "contact_tags",
    "description": "How many contacts of an exported address book (JSON) have each tag (capitals make no difference, and a contact counts once for each), which have no tag, and the two tags that most often stand together",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    tags: dict[str, int]
    untagged: list[str]
    together: list[str]


def run(input: Input) -> Output:
    """The file: {"contacts": [{"name": ..., "tags": [...]}]}; a contact need not have any tags."""
    contacts = json.loads(Path(input.path).read_text(encoding="utf-8"))["contacts"]
    counts: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    untagged = []
    for contact in contacts:
        tags = sorted({tag.strip().lower() for tag in contact.get("tags") or [] if tag.strip()})
        if not tags:
            untagged.append(contact["name"])
        for number, tag in enumerate(tags):
            counts[tag] = counts.get(tag, 0) + 1
            for other in tags[number + 1 :]:
                pairs[tag, other] = pairs.get((tag, other), 0) + 1
    together = min(pairs, key=lambda pair: (-pairs[pair], pair), default=())
    return Output(tags=dict(sorted(counts.items())), untagged=untagged, together=list(together))
