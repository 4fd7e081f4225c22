"""Memory of programs."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "process_table",
    "description": "The memory in KiB that each program holds, added up over its processes, and how many processes each user has, from a table with the columns user, pid, cpu, rss and command; a command is a program's path with its arguments",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str
    at_least: int = 0


class Output(BaseModel):
    memory: dict[str, int]
    users: dict[str, int]
    biggest: str | None


def program(command: str) -> str:
    """The name without folders; the kernel's own processes stand in brackets."""
    return command if command.startswith("[") else command.rsplit("/", 1)[-1]


def run(input: Input) -> Output:
    """Programs with less memory than the least are left out; of equally big ones the first in the table is named."""
    held: dict[str, int] = {}
    users: dict[str, int] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines()[1:]:
        fields = line.split()
        if len(fields) < 5:
            continue
        user, rss = fields[0], fields[3]
        name = program(fields[4])
        held[name] = held.get(name, 0) + int(rss)
        users[user] = users.get(user, 0) + 1
    memory = {name: size for name, size in held.items() if size >= input.at_least}
    biggest = max(memory, key=lambda name: memory[name], default=None)
    return Output(memory=memory, users=users, biggest=biggest)
