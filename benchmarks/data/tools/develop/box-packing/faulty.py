"""First fit decreasing: how many boxes for these weights."""

from pydantic import BaseModel, Field, field_validator

TOOL = {
    "name": "box_packing",
    "description": "Packs weights into boxes, largest first",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    items: list[int] = Field(description="Weights")
    capacity: int = Field(gt=0)

    @field_validator("items")
    @classmethod
    def positive(cls, value: list[int]) -> list[int]:
        if any(item <= 0 for item in value):
            raise ValueError("weights must be positive")
        return value


class Output(BaseModel):
    boxes: list[list[int]]
    free: int


def run(input: Input) -> Output:
    """Each weight goes into the first box that still has room for it."""
    boxes: list[list[int]] = []
    for item in sorted(input.items, reverse=True):
        if item > input.capacity:
            raise ValueError(f"a weight of {item} fits into no box")
        for box in boxes:
            if sum(box) + item < input.capacity:
                box.append(item)
                break
        else:
            boxes.append([item])
    free = len(boxes) * input.capacity - sum(map(sum, boxes))
    return Output(boxes=boxes, free=free)
