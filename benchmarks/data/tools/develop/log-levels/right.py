"""Which log events are kept."""

from pydantic import BaseModel

TOOL = {
    "name": "log_levels",
    "description": "Keep log events by the rule of the nearest logger: app.db.pool falls under app.db, then app, then the root level; and count what is kept for each logger",
    "effects": ["pure"],
    "dependencies": [],
}


LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Input(BaseModel):
    root: str = "WARNING"
    rules: dict[str, str]
    events: list[tuple[str, str]]


class Output(BaseModel):
    kept: list[tuple[str, str]]
    counts: dict[str, int]
    dropped: int


def level_of(name: str, rules: dict[str, str], root: str) -> str:
    fitting = [rule for rule in rules if name == rule or name.startswith(rule + ".")]
    return rules[max(fitting, key=len)] if fitting else root


def run(input: Input) -> Output:
    kept = []
    counts: dict[str, int] = {}
    for name, level in input.events:
        least = level_of(name, input.rules, input.root)
        if LEVELS.index(level) >= LEVELS.index(least):
            kept.append((name, level))
            counts[name] = counts.get(name, 0) + 1
    return Output(kept=kept, counts=counts, dropped=len(input.events) - len(kept))
