"""Signatures of webhooks."""

import hashlib
import hmac
import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "webhook_check",
    "description": "Which deliveries of a log were signed with the secret; while secrets are exchanged a header has several signatures, and one that fits is enough",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON list of deliveries: id, body, and signature, such as sha256=ab12")
    secret: str


class Output(BaseModel):
    signed: list[str]
    refused: list[str]


def signature(body: str, secret: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()


def fits(header: str, wanted: str) -> bool:
    """Whether a header has this signature."""
    return any(part.strip() == wanted for part in header.split(","))


def run(input: Input) -> Output:
    signed: list[str] = []
    refused: list[str] = []
    for delivery in json.loads(Path(input.path).read_text(encoding="utf-8")):
        wanted = signature(delivery["body"], input.secret)
        if fits(delivery["signature"], wanted):
            signed.append(delivery["id"])
        else:
            refused.append(delivery["id"])
    return Output(signed=signed, refused=refused)
