"""Names that Windows does not take."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "windows_names",
    "description": "Which paths of a list (with slashes) cannot be copied to a Windows disk, and why: signs that it forbids, names of devices (also with an ending, as in aux.txt), a point or space at the end of a name, a path that is too long",
    "effects": ["read"],
    "dependencies": [],
}

FORBIDDEN = frozenset('<>:"|?*\\')
DEVICES = {"con", "prn", "aux", "nul"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)
}


class Input(BaseModel):
    path: str
    longest: int = 259


class Output(BaseModel):
    problems: dict[str, str]
    fine: int


def problem(name: str) -> str | None:
    """What is wrong with one part of a path."""
    if FORBIDDEN & set(name) or any(ord(letter) < 32 for letter in name):
        return "sign"
    if name.lower() in DEVICES:
        return "device"
    if name.endswith((".", " ")):
        return "end"
    return None


def run(input: Input) -> Output:
    """The first problem of a path is told, from its start on."""
    problems: dict[str, str] = {}
    fine = 0
    for path in Path(input.path).read_text(encoding="utf-8").split("\n"):
        if not path:
            continue
        found = [what for part in path.split("/") if (what := problem(part))]
        if found:
            problems[path] = found[0]
        elif len(path) > input.longest:
            problems[path] = "length"
        else:
            fine += 1
    return Output(problems=problems, fine=fine)
