"""The open action items of a meeting's minutes."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "action_items",
    "description": "Read action items of the form '- [ ] Name: what (by YYYY-MM-DD)' (x for done, the date may be missing) and list the open ones by date, those without one last",
    "effects": ["read"],
    "dependencies": [],
}


ITEM = re.compile(
    r"- \[(?P<done>[ xX])\] (?P<who>\w+): (?P<what>.+?)(?: \(by (?P<due>\d{4}-\d\d-\d\d)\))?\s*$"
)


class Input(BaseModel):
    path: str


class Item(BaseModel):
    who: str
    what: str
    due: str | None


class Output(BaseModel):
    open: list[Item]
    done: int
    people: list[str]


def run(input: Input) -> Output:
    items = []
    done = 0
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        match = ITEM.match(line.strip())
        if match is None:
            continue
        if match["done"] != " ":
            done += 1
        else:
            items.append(Item(who=match["who"], what=match["what"], due=match["due"]))
    items.sort(key=lambda item: (item.due is None, item.due or ""))
    return Output(open=items, done=done, people=sorted({item.who for item in items}))
