"""Topics of posts."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "topic_counts",
    "description": "How many posts have each topic; a topic that a post names several times counts once",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Posts with an empty line between them; topics begin with #")
    at_least: int = 1


class Output(BaseModel):
    topics: dict[str, int]
    posts: int


@dataclass(frozen=True)
class Post:
    text: str

    @property
    def topics(self) -> list[str]:
        return [word.lower() for word in re.findall(r"#(\w+)", self.text)]


def posts(path: str) -> list[Post]:
    text = Path(path).read_text(encoding="utf-8")
    return [Post(part) for part in re.split(r"\n\s*\n", text) if part.strip()]


def run(input: Input) -> Output:
    found = posts(input.path)
    counts = Counter(topic for post in found for topic in post.topics)
    topics = {topic: count for topic, count in sorted(counts.items()) if count >= input.at_least}
    return Output(topics=topics, posts=len(found))
