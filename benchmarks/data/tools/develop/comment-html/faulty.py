"""Comments of users as HTML."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "comment_html",
    "description": "Comments as an HTML list",
    "effects": ["read"],
    "dependencies": [],
}

ENTITIES = [("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("&", "&amp;")]


class Input(BaseModel):
    path: str = Field(description="JSON list of comments with user and text")
    limit: int = Field(40, gt=3, description="Longer texts are cut and end in three dots")


class Output(BaseModel):
    html: str
    cut: int


def escape(text: str) -> str:
    for character, entity in ENTITIES:
        text = text.replace(character, entity)
    return text


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def run(input: Input) -> Output:
    items, cut = [], 0
    for comment in json.loads(Path(input.path).read_text(encoding="utf-8")):
        text = shorten(comment["text"], input.limit)
        cut += text != comment["text"]
        items.append(f"<li><b>{escape(comment['user'])}</b>: {escape(text)}</li>")
    return Output(html="<ul>" + "".join(items) + "</ul>", cut=cut)
