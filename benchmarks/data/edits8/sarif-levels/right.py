"""Findings of scanners."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "sarif_levels",
    "description": "Findings of a SARIF log by level; one without a level has that of its rule, and else is a warning",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The log as JSON")


class Output(BaseModel):
    levels: dict[str, int]
    failing: list[str] = Field(description="what the errors say")


def run(input: Input) -> Output:
    log = json.loads(Path(input.path).read_text(encoding="utf-8"))
    levels: dict[str, int] = {}
    failing: list[str] = []
    for part in log["runs"]:
        rules = {rule["id"]: rule for rule in part["tool"]["driver"].get("rules", [])}
        for result in part.get("results", []):
            if result.get("suppressions"):
                continue
            rule = rules.get(result["ruleId"], {})
            usual = rule.get("defaultConfiguration", {}).get("level", "warning")
            level = result.get("level", usual)
            levels[level] = levels.get(level, 0) + 1
            if level == "error":
                failing.append(rule.get("shortDescription", {}).get("text", result["ruleId"]))
    return Output(levels=levels, failing=failing)
