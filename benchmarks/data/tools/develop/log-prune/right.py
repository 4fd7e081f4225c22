"""Old log files to throw away."""

import re

from pydantic import BaseModel

TOOL = {
    "name": "log_prune",
    "description": "Which rotated log files to throw away where so many of each log are kept: app.log is the newest, then app.log.1, app.log.2 and so on",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    files: list[str]
    keep: int = 5


class Output(BaseModel):
    delete: list[str]
    kept: dict[str, int]
    ignored: list[str]


NAME = re.compile(r"(?P<log>.+\.log)(?:\.(?P<number>\d+))?")


def run(input: Input) -> Output:
    """Logs in the order of the alphabet, the oldest file of each first; what is no log is ignored."""
    logs: dict[str, list[tuple[int, str]]] = {}
    ignored = []
    for name in input.files:
        match = NAME.fullmatch(name)
        if match is None:
            ignored.append(name)
            continue
        age = int(match["number"] or 0)
        logs.setdefault(match["log"], []).append((age, name))
    delete = []
    kept = {}
    for log, found in sorted(logs.items()):
        ordered = [name for _, name in sorted(found)]
        kept[log] = len(ordered[: input.keep])
        delete += reversed(ordered[input.keep :])
    return Output(delete=delete, kept=kept, ignored=ignored)
