"""Converts lengths, times and weights."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "unit_convert",
    "description": "Convert a quantity into another unit",
    "effects": ["pure"],
    "dependencies": [],
}

UNITS = {
    "length": {"m": 1.0, "cm": 0.01, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "mi": 1609.344},
    "time": {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
    "weight": {"kg": 1.0, "g": 0.001, "lb": 0.45359237, "oz": 1 / 16},
}


class Input(BaseModel):
    text: str = Field(description="A number and a unit, such as: 2.5 km")
    to: str
    digits: int = Field(3, ge=0, le=10)


class Output(BaseModel):
    value: float
    kind: str


def kind_of(unit: str) -> str:
    for kind, factors in UNITS.items():
        if unit in factors:
            return kind
    raise ValueError(f"{unit!r} is no unit that is known here")


def run(input: Input) -> Output:
    number, unit = input.text.split()
    kind = kind_of(unit)
    if kind_of(input.to) != kind:
        raise ValueError(f"{unit} cannot be converted to {input.to}")
    factors = UNITS[kind]
    return Output(value=round(float(number) * factors[unit] / factors[input.to], input.digits), kind=kind)
