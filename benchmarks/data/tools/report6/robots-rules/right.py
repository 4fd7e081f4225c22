"""What a crawler may fetch after robots.txt."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "robots_rules",
    "description": "Which addresses of a site a crawler may fetch after robots.txt",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The robots.txt")
    agent: str = Field(description="The crawler's name")
    urls: list[str] = Field(description="Paths on the site")


class Output(BaseModel):
    allowed: list[str]
    refused: list[str]
    section: str | None


def sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """Rules by crawler, in small letters: (allow or disallow, path)."""
    found: dict[str, list[tuple[str, str]]] = {}
    agent = None
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        key, colon, value = line.partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            agent = value.lower()
            found.setdefault(agent, [])
        elif agent is not None and key in ("allow", "disallow"):
            found[agent].append((key, value))
    return found


def may_fetch(rules: list[tuple[str, str]], url: str) -> bool:
    longest, verdict = -1, "allow"
    for kind, path in rules:
        if not path or not url.startswith(path):
            continue
        if len(path) > longest or len(path) == longest and kind == "allow":
            longest, verdict = len(path), kind
    return verdict == "allow"


def run(input: Input) -> Output:
    known = sections(Path(input.path).read_text(encoding="utf-8"))
    name = input.agent.lower()
    section = name if name in known else "*" if "*" in known else None
    rules = known[section] if section else []
    allowed = [url for url in input.urls if may_fetch(rules, url)]
    return Output(allowed=allowed, refused=[url for url in input.urls if url not in allowed], section=section)
