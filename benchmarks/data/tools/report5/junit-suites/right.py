"""Outcome of the suites of a JUnit report."""

import xml.etree.ElementTree as ET
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "junit_suites",
    "description": "How many tests of each suite in a JUnit report passed, failed and were skipped, and the slowest one",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="A JUnit XML report with <testsuite> elements")


class Suite(BaseModel):
    passed: int
    failed: int
    skipped: int


class Output(BaseModel):
    suites: dict[str, Suite]
    green: bool
    slowest: str | None


def number(element: ET.Element, name: str) -> int:
    """A count that may be left out."""
    return int(element.get(name, "0"))


def slowest(root: ET.Element) -> str | None:
    """The test that took longest, the first of several."""
    found, most = None, -1.0
    for case in root.iter("testcase"):
        seconds = float(case.get("time", "0").replace(",", ""))
        if seconds > most:
            found, most = f"{case.get('classname', '')}.{case.get('name')}".lstrip("."), seconds
    return found


def run(input: Input) -> Output:
    root = ET.fromstring(Path(input.path).read_text(encoding="utf-8"))
    suites: dict[str, Suite] = {}
    for element in root.iter("testsuite"):
        failed = number(element, "failures") + number(element, "errors")
        skipped = number(element, "skipped")
        suites[element.get("name", "")] = Suite(
            passed=number(element, "tests") - failed - skipped, failed=failed, skipped=skipped
        )
    green = not any(suite.failed for suite in suites.values())
    return Output(suites=suites, green=green, slowest=slowest(root))
