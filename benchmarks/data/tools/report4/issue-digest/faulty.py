"""Issues that were touched lately."""

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

TOOL = {
    "name": "issue_digest",
    "description": "Issues that were touched since a day, the latest touched first",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="One issue a line, in JSON: number, title, state, created, updated")
    since: str = Field(description="2025-01-31; this day counts")
    state: Literal["open", "closed", "all"] = "open"


class Output(BaseModel):
    issues: list[str]
    left_out: int


class Issue(BaseModel):
    number: int
    title: str
    state: str
    created: str
    updated: str

    def line(self) -> str:
        mark = " (new)" if self.updated == self.created else ""
        return f"#{self.number} {self.title}{mark}"


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    issues = [Issue.model_validate(json.loads(line)) for line in lines if line.strip()]
    wanted = [issue for issue in issues if input.state in ("all", issue.state)]
    recent = [issue for issue in wanted if issue.created >= input.since]
    recent.sort(key=lambda issue: (issue.updated, issue.number), reverse=True)
    return Output(issues=[issue.line() for issue in recent], left_out=len(wanted) - len(recent))
