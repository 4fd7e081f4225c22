"""Pages that robots.txt allows."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "robots_allowed",
    "description": "Which pages the rules of a robots.txt for all agents allow: of the rules whose path the page's begins with the longest counts, of equally long ones Allow, and without any the page is allowed; a rule without a path says nothing",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    pages: list[str]


class Output(BaseModel):
    allowed: list[str]
    forbidden: list[str]


def rules(text: str) -> list[tuple[str, bool]]:
    """Path and whether it is allowed, of the rules for all agents."""
    found = []
    ours = False
    for line in text.splitlines():
        name, _, value = line.split("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if name == "user-agent":
            ours = value == "*"
        elif name in ("allow", "disallow") and ours and value:
            found.append((value, name == "allow"))
    return found


def allowed(page: str, known: list[tuple[str, bool]]) -> bool:
    fitting = [rule for rule in known if page.startswith(rule[0])]
    return max(fitting, key=lambda rule: (len(rule[0]), rule[1]))[1]


def run(input: Input) -> Output:
    known = rules(Path(input.path).read_text(encoding="utf-8"))
    return Output(
        allowed=[page for page in input.pages if allowed(page, known)],
        forbidden=[page for page in input.pages if not allowed(page, known)],
    )
