"""Sorts messages into folders."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "mail_rules",
    "description": "Into which folder each message is put by rules, of which the first that fits decides; what no rule fits stays in the inbox; and which rules put nothing anywhere",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: sender | subject")
    rules: list[str] = Field(description="Such as: from shop.example -> Shopping, or: subject invoice -> Bills")


class Output(BaseModel):
    folders: dict[str, list[str]]
    inbox: int
    idle: list[str]


def run(input: Input) -> Output:
    """A rule fits where its words occur in the field, in small letters or large ones."""
    folders: dict[str, list[str]] = {}
    used = set()
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        sender, _, subject = (part.strip() for part in line.partition("|"))
        fields = {"from": sender, "subject": subject}
        folder, by = "Inbox", ""
        for rule in input.rules:
            condition, _, target = rule.partition("->")
            field, words = condition.strip().split(" ", 1)
            if words.lower() in fields[field].lower():
                folder, by = target.strip(), rule
                break
        used.add(by)
        folders.setdefault(folder, []).append(subject)
    idle = [rule for rule in input.rules if rule not in used]
    return Output(folders=folders, inbox=len(folders.get("Inbox", [])), idle=idle)
