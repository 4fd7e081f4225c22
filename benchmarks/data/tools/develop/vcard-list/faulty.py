"""Contacts of an address book."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "vcard_list",
    "description": "The contacts of an address book (vCard) with name, phone number and mail address, both empty where there is none (the last one of a card counts), how many can be reached in no way, and how many contacts have each mail domain",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Contact(BaseModel):
    name: str
    phone: str = ""
    mail: str = ""


class Output(BaseModel):
    contacts: list[Contact]
    unreachable: int
    domains: dict[str, int]


def run(input: Input) -> Output:
    """The fields FN, TEL and EMAIL, with any parameters, of each card from BEGIN to END."""
    contacts = []
    fields: dict[str, str] = {}
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        head, _, value = line.partition(":")
        field = head.partition(";")[0].upper()
        if field == "END":
            contact = Contact(name=fields.get("FN", "?"), phone=fields.get("TEL", ""), mail=fields.get("EMAIL", ""))
            contacts.append(contact)
        elif field in ("FN", "TEL", "EMAIL"):
            fields[field] = value.strip()
    domains: dict[str, int] = {}
    for contact in contacts:
        if "@" in contact.mail:
            domain = contact.mail.rpartition("@")[2].lower()
            domains[domain] = domains.get(domain, 0) + 1
    return Output(
        contacts=contacts,
        unreachable=sum(not contact.phone and not contact.mail for contact in contacts),
        domains=domains,
    )
