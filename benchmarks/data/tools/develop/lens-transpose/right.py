"""Turns a prescription of glasses round."""

from pydantic import BaseModel

TOOL = {
    "name": "lens_transpose",
    "description": "Transpose lenses with a plus cylinder to the minus form: the cylinder is added to the sphere and changes its sign, the axis turns by 90 degrees (1 to 180); and the spherical equivalent in steps of an eighth",
    "effects": ["pure"],
    "dependencies": [],
}


class Lens(BaseModel):
    sphere: float
    cylinder: float = 0
    axis: int = 180


class Input(BaseModel):
    lenses: list[Lens]


class Output(BaseModel):
    lenses: list[Lens]
    equivalents: list[float]
    written: list[str]


def minus_form(lens: Lens) -> Lens:
    if lens.cylinder <= 0:
        return lens
    return Lens(
        sphere=lens.sphere + lens.cylinder,
        cylinder=-lens.cylinder,
        axis=lens.axis + 90 if lens.axis <= 90 else lens.axis - 90,
    )


def write(lens: Lens) -> str:
    if not lens.cylinder:
        return f"{lens.sphere:+.2f}"
    return f"{lens.sphere:+.2f} {lens.cylinder:+.2f} x {lens.axis:03d}"


def run(input: Input) -> Output:
    lenses = [minus_form(lens) for lens in input.lenses]
    return Output(
        lenses=lenses,
        equivalents=[round((lens.sphere + lens.cylinder / 2) * 8) / 8 for lens in lenses],
        written=[write(lens) for lens in lenses],
    )
