"""What a policy of content allows."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "csp_check",
    "description": "Whether a Content-Security-Policy lets a page load from a host, and by which directive; what no directive of its own speaks of goes by default-src",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    policy: str = Field(description="The header")
    kind: str = Field(description="What is loaded, such as script-src")
    host: str


class Output(BaseModel):
    allowed: bool
    directive: str = Field(description="that decides; empty where none does")


def directives(policy: str) -> dict[str, list[str]]:
    """The sources of each directive; of two with one name the first counts."""
    found: dict[str, list[str]] = {}
    for part in policy.split(";"):
        words = part.split()
        if words:
            found.setdefault(words[0].lower(), words[1:])
    return found


def matches(pattern: str, host: str) -> bool:
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return pattern == host


def run(input: Input) -> Output:
    rules = directives(input.policy)
    kind = input.kind if input.kind in rules else "default-src"
    if kind not in rules:
        return Output(allowed=True, directive="")
    return Output(allowed=any(matches(each, input.host) for each in rules[kind]), directive=kind)
