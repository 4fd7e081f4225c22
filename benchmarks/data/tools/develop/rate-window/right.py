"""A sliding window limit on requests."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "rate_window",
    "description": "Which requests a limit of so many in a sliding window of seconds lets through",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines: second, client; in the order of time")
    limit: int = Field(3, ge=1)
    window: int = Field(10, description="A request of second 0 no longer counts in second 10")


class Output(BaseModel):
    passed: list[str]
    refused: dict[str, int]


def run(input: Input) -> Output:
    """Only requests that passed count against the limit of their client."""
    recent: dict[str, list[int]] = {}
    passed: list[str] = []
    refused: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        when, client = line.split(",")
        second, client = int(when), client.strip()
        seen = [old for old in recent.get(client, []) if second - old < input.window]
        if len(seen) < input.limit:
            seen.append(second)
            passed.append(f"{second} {client}")
        else:
            refused[client] = refused.get(client, 0) + 1
        recent[client] = seen
    return Output(passed=passed, refused=refused)
