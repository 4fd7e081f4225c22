"""Members of Unix groups."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "unix_members",
    "description": "Members of the groups in passwd and group files, by name or by the own group of an account",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    passwd: str = Field(description="Lines of the form name:x:uid:gid:comment:home:shell")
    group: str = Field(description="Lines of the form name:x:gid:member,member")
    least_uid: int = Field(0, description="Leave out accounts with a lower number")


class Output(BaseModel):
    members: dict[str, list[str]]
    unknown: list[str]


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int


def lines(path: str) -> list[list[str]]:
    text = Path(path).read_text(encoding="utf-8")
    return [line.split(":") for line in text.splitlines() if line.strip() and not line.startswith("#")]


def accounts(path: str, least: int) -> dict[str, Account]:
    found = {}
    for fields in lines(path):
        name, _, uid, gid = fields[:4]
        if int(uid) >= least:
            found[name] = Account(name, int(uid), int(gid))
    return found


def run(input: Input) -> Output:
    known = accounts(input.passwd, input.least_uid)
    everybody = {fields[0] for fields in lines(input.passwd)}
    members: dict[str, list[str]] = {}
    unknown = set()
    for name, _, gid, named in lines(input.group):
        chosen = {user for user in named.split(",") if user in known}
        unknown |= {user for user in named.split(",") if user and user not in everybody}
        chosen |= {account.name for account in known.values() if account.gid == int(gid)}
        members[name] = sorted(chosen)
    return Output(members=members, unknown=sorted(unknown))
