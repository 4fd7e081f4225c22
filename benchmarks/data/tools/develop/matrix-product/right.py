"""The product of two matrices."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {
    "name": "matrix_product",
    "description": "Multiplies two matrices of whole numbers from a file (rows on lines, an empty line between the two) and gives the product, its shape, and its trace where it is square",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str


class Output(BaseModel):
    product: list[list[int]]
    shape: list[int]
    trace: int | None


def run(input: Input) -> Output:
    """Raises a ValueError where the shapes do not fit."""
    blocks: list[list[list[int]]] = [[]]
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            blocks[-1].append([int(text) for text in line.split()])
        elif blocks[-1]:
            blocks.append([])
    left, right = blocks[:2]
    if any(len(row) != len(right) for row in left):
        raise ValueError("the left matrix needs as many columns as the right one has rows")
    height, width = len(left), len(right[0])
    product = [[0] * width for _ in range(height)]
    for i in range(height):
        for j in range(width):
            for k in range(len(right)):
                product[i][j] += left[i][k] * right[k][j]
    trace = sum(product[i][i] for i in range(height)) if height == width else None
    return Output(product=product, shape=[height, width], trace=trace)
