"""Names and addresses."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "address_book",
    "description": "Reads a list of mail addresses, one a line, with a name before them or not, and makes a book of names by address, in lower case",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    names: dict[str, str]
    domains: dict[str, int]
    nameless: list[str]


def turned(name: str) -> str:
    """Without quotation marks; a name such as "Lee, Ann" becomes Ann Lee."""
    name = name.strip().strip('"').strip()
    if "," in name:
        last, first = name.split(",", 1)
        return f"{first.strip()} {last.strip()}"
    return name


def run(input: Input) -> Output:
    """Of an address that occurs more than once the first name that is not empty counts."""
    names: dict[str, str] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        pieces = line.split("<", 1)
        name = pieces[0]
        address = pieces[1].split(">")[0]
        address = address.strip().lower()
        names[address] = names.get(address) or turned(name)
    domains: dict[str, int] = {}
    for address in names:
        domain = address.rpartition("@")[2]
        domains[domain] = domains.get(domain, 0) + 1
    nameless = sorted(address for address, name in names.items() if not name)
    return Output(names=names, domains=domains, nameless=nameless)
