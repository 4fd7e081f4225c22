"""The titles of a news feed."""

import re
from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "feed_titles",
    "description": "The titles in a news feed (XML) as readers see them, with the five signs that are written in another way put back (&lt; &gt; &quot; &#39; &amp;), those of them that hold a wanted text, and how long the longest is",
    "effects": ["read"],
    "dependencies": [],
}


SIGNS = (
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", '"'),
    ("&#39;", "'"),
)


class Input(BaseModel):
    path: str
    wanted: str = ""


class Output(BaseModel):
    titles: list[str]
    found: list[str]
    longest: int


def plain(text: str) -> str:
    """A text with its signs put back, and one space for each run of white space."""
    for written, sign in SIGNS:
        text = text.replace(written, sign)
    return " ".join(text.split())


def run(input: Input) -> Output:
    """Capitals make no difference for the wanted text; an empty one is held by each title."""
    feed = Path(input.path).read_text(encoding="utf-8")
    titles = [plain(title) for title in re.findall(r"<title>(.*?)</title>", feed, re.DOTALL)]
    return Output(
        titles=titles,
        found=[title for title in titles if input.wanted.lower() in title.lower()],
        longest=max((len(title) for title in titles), default=0),
    )
