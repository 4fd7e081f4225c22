"""What a test run in TAP says."""

import re

from pydantic import BaseModel, Field

TOOL = {
    "name": "tap_summary",
    "description": "The summary of a run in the Test Anything Protocol; a test whose directive is TODO, in any case, does not count as failed",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    output: str = Field(description="What the tests printed")


class Output(BaseModel):
    passed: int
    skipped: int
    failures: list[str] = Field(description="names, or numbers of those without")


LINE = re.compile(r"(ok|not ok) (\d+)(?: - ([^#]*))?(?: ?# *(.*))?")


def run(input: Input) -> Output:
    passed = skipped = 0
    failures: list[str] = []
    for line in input.output.splitlines():
        match = LINE.fullmatch(line)
        if not match:
            continue
        result, number, name, directive = match.groups()
        if (directive or "").upper().startswith("SKIP"):
            skipped += 1
        elif result == "ok" or (directive or "").upper().startswith("TODO"):
            passed += 1
        else:
            failures.append((name or number).strip())
    return Output(passed=passed, skipped=skipped, failures=failures)
