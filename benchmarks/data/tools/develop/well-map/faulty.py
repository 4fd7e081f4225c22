"""Which sample goes into which well of a plate."""

from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "well_map",
    "description": "Wells of a plate for a list of samples, filled row by row or column by column",
    "effects": ["read"],
    "dependencies": [],
}

SHAPES = {24: (4, 6), 96: (8, 12), 384: (16, 24)}


class Input(BaseModel):
    path: str = Field(description="One sample on each line")
    order: str = Field("rows", description="rows or columns")
    plate: int = Field(96, description="Number of wells: 24, 96 or 384")


class Output(BaseModel):
    wells: dict[str, str]
    plates: int
    free: int = Field(description="Wells of the last plate that stay empty")


def well(number: int, order: str, plate: int) -> str:
    """The name of a well by its number, counted from 0."""
    rows, columns = SHAPES[plate]
    if order == "columns":
        column, row = divmod(number, columns)
    else:
        row, column = divmod(number, columns)
    return f"{chr(ord('A') + row)}{column + 1}"


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").splitlines()
    samples = [line.strip() for line in lines if line.strip()]
    plates = max(1, -(-len(samples) // input.plate))
    wells = {}
    for number, sample in enumerate(samples):
        plate, place = divmod(number, input.plate)
        name = well(place, input.order, input.plate)
        wells[f"{plate + 1}:{name}"] = sample
    return Output(wells=wells, plates=plates, free=plates * input.plate - len(samples))
