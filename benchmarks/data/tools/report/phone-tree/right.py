"""Reads the phone tree of a club."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "phone_tree",
    "description": "Whom each head of a phone tree reaches, directly and through others, in the order of the calls; how many are reached in all, and the head that reaches the most (the first of several)",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: caller: name, name; nobody is called by two")


class Output(BaseModel):
    chains: dict[str, list[str]]
    reached: int
    busiest: str | None


def read(path: str) -> dict[str, list[str]]:
    calls: dict[str, list[str]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        caller, names = line.split(":")
        called = [name.strip() for name in names.split(",") if name.strip()]
        calls.setdefault(caller.strip(), []).extend(called)
    return calls


def run(input: Input) -> Output:
    """A head is a caller whom nobody calls."""
    calls = read(input.path)
    called = {name for names in calls.values() for name in names}

    def collect(caller: str, found: list[str]) -> list[str]:
        for name in calls.get(caller, []):
            found.append(name)
            collect(name, found)
        return found

    chains = {caller: collect(caller, []) for caller in calls if caller not in called}
    busiest = max(chains, key=lambda head: len(chains[head]), default=None)
    return Output(
        chains=chains,
        reached=sum(len(names) for names in chains.values()),
        busiest=busiest,
    )
