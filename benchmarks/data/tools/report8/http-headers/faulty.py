"""Headers of a message, changed by the rules of a proxy."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "http_headers",
    "description": "Headers after rules: set NAME VALUE, add NAME VALUE, remove NAME, default NAME VALUE, rename OLD NEW",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The headers, NAME: VALUE on each line, up to an empty line")
    rules: list[str] = []


class Output(BaseModel):
    headers: list[str]
    length: int = Field(description="Bytes on the wire, with the line ends")


class Headers:
    """Headers in their order; the case of a name says nothing."""

    def __init__(self) -> None:
        self.items: list[tuple[str, str]] = []

    def __contains__(self, name: str) -> bool:
        return any(known == name for known, _ in self.items)

    def add(self, name: str, value: str) -> None:
        self.items.append((name, value))

    def set(self, name: str, value: str) -> None:
        """One header of that name, at the place of the first that there was."""
        places = [place for place, (known, _) in enumerate(self.items) if known.lower() == name.lower()]
        if not places:
            self.add(name, value)
            return
        self.items[places[0]] = (name, value)
        for place in reversed(places[1:]):
            del self.items[place]

    def remove(self, name: str) -> None:
        self.items = [(known, value) for known, value in self.items if known != name]

    def rename(self, old: str, new: str) -> None:
        self.items = [(new if known.lower() == old.lower() else known, value) for known, value in self.items]


def read(text: str) -> Headers:
    headers = Headers()
    for line in text.splitlines():
        if not line.strip():
            break
        name, _, value = line.partition(":")
        headers.add(name.strip(), value.strip())
    return headers


def apply(headers: Headers, rule: str) -> None:
    command, name, *rest = rule.split(maxsplit=2)
    value = rest[0] if rest else ""
    if command == "set":
        headers.set(name, value)
    elif command == "add":
        headers.add(name, value)
    elif command == "remove":
        headers.remove(name)
    elif command == "rename":
        headers.rename(name, value)
    elif command == "default" and name not in headers:
        headers.add(name, value)


def run(input: Input) -> Output:
    headers = read(Path(input.path).read_text(encoding="utf-8"))
    for rule in input.rules:
        apply(headers, rule)
    lines = [f"{name}: {value}" for name, value in headers.items]
    return Output(headers=lines, length=sum(len(line.encode()) + 2 for line in lines))
