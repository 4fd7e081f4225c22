"""Check of pallets before they leave."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "pallet_check",
    "description": "First finding of each pallet: a box over the limit or without a label; pallets without one may leave",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="JSON: boxes by the name of the pallet, each with id, kg and label")
    limit_kg: float = Field(default=25, description="The heaviest that a box may be")


class Output(BaseModel):
    findings: dict[str, str]
    may_leave: list[str]


def finding(boxes: list[dict[str, object]], limit_kg: float) -> str:
    """The first thing that is wrong with these boxes, or ok."""
    for box in boxes:
        if float(box["kg"]) > limit_kg:
            return f"{box['id']} too heavy"
        if not box.get("label"):
            return f"{box['id']} without label"
    return "ok"


def run(input: Input) -> Output:
    pallets = json.loads(Path(input.path).read_text(encoding="utf-8"))
    findings = {}
    for name, boxes in sorted(pallets.items()):
        findings[name] = finding(boxes, input.limit_kg)
    return Output(
        findings=findings,
        may_leave=[name for name, text in findings.items() if text == "ok"],
    )
