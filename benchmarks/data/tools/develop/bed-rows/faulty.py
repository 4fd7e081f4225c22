"""Plants for a garden bed."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "bed_rows",
    "description": "How many plants go into a garden bed (cm) in a square pattern with equal gaps, the outer plants at least an edge away from the border, and what they cost; plants are sold in trays",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    length: int = Field(gt=0)
    width: int = Field(gt=0)
    gap: int = Field(gt=0)
    edge: int = Field(0, ge=0)
    tray: int = Field(6, gt=0)
    tray_cents: int = 399


class Output(BaseModel):
    rows: int
    in_row: int
    plants: int
    trays: int
    cents: int
    spare: int


def places(space: int, gap: int, edge: int) -> int:
    """On a line with a plant at each end; none where the edges leave no room."""
    usable = space - 2 * edge
    if usable < 0:
        return 0
    return usable // gap + 1


def run(input: Input) -> Output:
    """Rows lie along the bed's length."""
    in_row = (input.length - 2 * input.edge) // input.gap
    rows = places(input.width, input.gap, input.edge)
    plants = rows * in_row
    trays = -(-plants // input.tray)
    return Output(
        rows=rows if plants else 0,
        in_row=in_row if plants else 0,
        plants=plants,
        trays=trays,
        cents=trays * input.tray_cents,
        spare=trays * input.tray - plants,
    )
