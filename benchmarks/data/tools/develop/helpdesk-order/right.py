"""Order of the tickets at a help desk."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "helpdesk_order",
    "description": "The tickets that are worked on next: the most urgent first, of the same priority the one that has waited longest",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    take: int = 10


class Output(BaseModel):
    next: list[str]
    waiting: dict[str, int]
    left_over: int


RANK = {"low": 0, "normal": 1, "high": 2, "urgent": 3}


def run(input: Input) -> Output:
    """Lines: number; priority; day and time; subject. An unknown priority is a normal one."""
    tickets = []
    waiting: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        number, priority, since, subject = (cell.strip() for cell in line.split(";"))
        priority = priority.lower() if priority.lower() in RANK else "normal"
        tickets.append((RANK[priority], since, number, subject))
        waiting[priority] = waiting.get(priority, 0) + 1
    tickets.sort(key=lambda ticket: (-ticket[0], ticket[1]))
    chosen = [f"{number} {subject}" for _, _, number, subject in tickets[: input.take]]
    return Output(next=chosen, waiting=waiting, left_over=len(tickets) - len(chosen))
