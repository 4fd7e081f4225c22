"""Reads the colour bands of resistors."""

from pydantic import BaseModel

TOOL = {
    "name": "resistor_bands",
    "description": "Resistances in ohm (and the tolerance in percent) of colour bands: 3 bands are two digits and the power of ten (tolerance 20), 4 the same and the tolerance, 5 three digits, power and tolerance; gold and silver as a power are 0.1 and 0.01; and the resistors' sum in series",
    "effects": ["pure"],
    "dependencies": [],
}

COLORS = ["black", "brown", "red", "orange", "yellow", "green", "blue", "violet", "grey", "white"]
POWERS = {color: power for power, color in enumerate(COLORS)} | {"gold": -1, "silver": -2}
TOLERANCES = {"brown": 1.0, "red": 2.0, "green": 0.5, "gold": 5.0, "silver": 10.0}


class Input(BaseModel):
    resistors: list[list[str]]


class Output(BaseModel):
    ohms: list[float]
    tolerances: list[float]
    series: float


def ohms(bands: list[str]) -> float:
    count = 3 if len(bands) == 5 else 2
    number = 0
    for color in bands[:count]:
        number = number * 10 + COLORS.index(color)
    return round(number * 10.0 ** POWERS[bands[count]], 3)


def tolerance(bands: list[str]) -> float:
    return TOLERANCES[bands[-1]] if len(bands) > 3 else 20.0


def run(input: Input) -> Output:
    for bands in input.resistors:
        if not 3 <= len(bands) <= 5:
            raise ValueError(f"{len(bands)} bands: a resistor has three to five")
    values = [ohms(bands) for bands in input.resistors]
    return Output(
        ohms=values,
        tolerances=[tolerance(bands) for bands in input.resistors],
        series=round(sum(values), 3),
    )
