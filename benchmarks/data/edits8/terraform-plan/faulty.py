"""A plan of Terraform in numbers."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "terraform_plan",
    "description": "How many resources a Terraform plan adds, changes and destroys, and which; one that is replaced is destroyed and added",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="The plan as JSON")


class Output(BaseModel):
    add: int
    change: int
    destroy: int
    touched: list[str]


def run(input: Input) -> Output:
    plan = json.loads(Path(input.path).read_text(encoding="utf-8"))
    add = change = destroy = 0
    touched: list[str] = []
    for each in plan.get("resource_changes", []):
        actions = each["change"]["actions"]
        if "create" in actions:
            add += 1
        elif "update" in actions:
            change += 1
        elif "delete" in actions:
            destroy += 1
        if actions != ["no-op"]:
            touched.append(each["address"])
    return Output(add=add, change=change, destroy=destroy, touched=touched)
