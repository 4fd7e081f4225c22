"""Routes of a server."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "nginx_routes",
    "description": "Which upstream of an nginx server answers each request: an exact location, else the longest prefix",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The configuration")
    requests: list[str]


class Output(BaseModel):
    upstreams: dict[str, str]
    lost: int = Field(description="requests that nobody answers")


LOCATION = re.compile(r"location\s+(=\s+)?(\S+)\s*\{\s*proxy_pass\s+http://([^;]+);")


def upstream(routes: list[tuple[str, str, str]], request: str) -> str:
    """The upstream of one request; empty where no location fits."""
    path = request.partition("?")[0]
    for exact, prefix, name in routes:
        if exact and path == prefix:
            return name
    fitting = [(prefix, name) for exact, prefix, name in routes if not exact and path.startswith(prefix)]
    return max(fitting, key=lambda each: len(each[0]))[1] if fitting else ""


def run(input: Input) -> Output:
    routes = LOCATION.findall(Path(input.path).read_text(encoding="utf-8"))
    answers = {request: upstream(routes, request) for request in input.requests}
    return Output(upstreams=answers, lost=sum(not name for name in answers.values()))
