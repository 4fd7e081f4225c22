"""Handlers of requested paths, after a table of routes."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "route_table",
    "description": "Handler and parameters of each path, from routes such as: GET /users/{id:int}/file.txt users.file; the first that fits wins",
    "effects": ["read"],
    "dependencies": [],
}

KINDS = {"int": r"\d+", "str": r"[^/]+", "path": r".+"}
PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")


class Input(BaseModel):
    routes: str = Field(description="One route a line: METHOD PATTERN HANDLER; # begins a comment")
    requests: list[str] = Field(description="Each METHOD PATH, perhaps with a query")


class Match(BaseModel):
    handler: str
    parameters: dict[str, str]


class Output(BaseModel):
    matches: list[Match | None]
    unused: list[str]


class Route:
    """One route, ready to be compared with paths."""

    def __init__(self, method: str, pattern: str, handler: str) -> None:
        self.method = method
        self.handler = handler
        self.expression = re.compile(self.translate(pattern))

    @staticmethod
    def translate(pattern: str) -> str:
        parts = []
        end = 0
        for found in PARAMETER.finditer(pattern):
            parts.append(re.escape(pattern[end : found.start()]))
            parts.append(f"(?P<{found[1]}>{KINDS[found[2] or 'str']})")
            end = found.end()
        parts.append(pattern[end:])
        return "".join(parts)

    def match(self, method: str, path: str) -> Match | None:
        if self.method not in (method, "ANY"):
            return None
        found = self.expression.fullmatch(path)
        return Match(handler=self.handler, parameters=found.groupdict()) if found else None


def run(input: Input) -> Output:
    routes = []
    for line in Path(input.routes).read_text(encoding="utf-8").splitlines():
        if line.split("#")[0].strip():
            routes.append(Route(*line.split("#")[0].split()))
    matches: list[Match | None] = []
    used = set()
    for request in input.requests:
        method, _, target = request.partition(" ")
        path = target.partition("?")[0]
        match = next((match for route in routes if (match := route.match(method, path))), None)
        if match:
            used.add(match.handler)
        matches.append(match)
    return Output(matches=matches, unused=[route.handler for route in routes if route.handler not in used])
