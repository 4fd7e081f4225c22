"""Claims of tokens."""

import base64
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "token_claims",
    "description": "Who the tokens of a file belong to, and which have expired",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A name and a token in each line; a token is head.claims.signature")
    now: int = Field(description="seconds since 1970")


class Output(BaseModel):
    owners: dict[str, str]
    expired: list[str]
    scopes: list[str]


def claims_of(token: str) -> dict[str, Any]:
    """What a token says of its owner."""
    _, part, _ = token.split(".")
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode("utf-8"))


def run(input: Input) -> Output:
    owners: dict[str, str] = {}
    expired: list[str] = []
    scopes: set[str] = set()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        name, token = line.split()
        claims = claims_of(token)
        owners[name] = claims["sub"]
        scopes.update(claims.get("scope", "").split())
        if "exp" in claims and claims["exp"] < input.now:
            expired.append(name)
    return Output(owners=owners, expired=expired, scopes=sorted(scopes))
