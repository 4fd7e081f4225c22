"""Decides which backups may be deleted."""

import re
from datetime import date, datetime

from pydantic import BaseModel, Field

TOOL = {
    "name": "backup_prune",
    "description": "Backups to keep and to delete",
    "effects": ["pure"],
    "dependencies": [],
}

NAME = re.compile(r"db-(\d{8})\.tar")


class Input(BaseModel):
    files: list[str]
    today: date
    days: int = Field(7, ge=0, description="Backups of up to this age are kept")


class Output(BaseModel):
    keep: list[str]
    delete: list[str]


def made(name: str) -> date | None:
    match = NAME.fullmatch(name)
    return datetime.strptime(match.group(1), "%Y%m%d").date() if match else None


def run(input: Input) -> Output:
    """Young ones are kept, and of older ones those of a Sunday; other files are not touched."""
    keep, delete = [], []
    for name in sorted(input.files):
        day = made(name)
        if day is None:
            continue
        young = (input.today - day).days <= input.days
        sunday = day.weekday() == 6
        if young or sunday:
            keep.append(name)
        else:
            delete.append(name)
    return Output(keep=keep, delete=delete)
