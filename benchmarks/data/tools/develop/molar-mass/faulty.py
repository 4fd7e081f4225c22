"""Masses of substances by their formulas."""

import re
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "molar_mass",
    "description": "Molar masses of formulas and the grams of each for a number of moles",
    "effects": ["read"],
    "dependencies": [],
}

MASS = {
    "H": 1.008,
    "C": 12.011,
    "N": 14.007,
    "O": 15.999,
    "Na": 22.990,
    "Mg": 24.305,
    "Al": 26.982,
    "S": 32.06,
    "Cl": 35.45,
    "K": 39.098,
    "Ca": 40.078,
    "Mn": 54.938,
    "Fe": 55.845,
}
PART = re.compile(r"([A-Z][a-z]?|\(|\))(\d?)")


class Input(BaseModel):
    path: str = Field(description="One formula on each line, such as Ca(OH)2")
    moles: float = 1


class Output(BaseModel):
    molar: dict[str, float]
    grams: dict[str, float]
    atoms: dict[str, int] = Field(description="Number of atoms in each formula")


def count(formula: str) -> dict[str, int]:
    """How many atoms of each element a formula has; a bracket is closed by its factor."""
    levels: list[dict[str, int]] = [{}]
    for sign, digits in PART.findall(formula):
        number = int(digits or 1)
        if sign == "(":
            levels.append({})
            continue
        inner = {sign: 1} if sign != ")" else levels.pop()
        for element, times in inner.items():
            levels[-1][element] = levels[-1].get(element, 0) + times * number
    return levels[0]


def run(input: Input) -> Output:
    lines = Path(input.path).read_text(encoding="utf-8").split()
    counts = {formula: count(formula) for formula in lines}
    molar = {formula: sum(MASS[e] * n for e, n in counts[formula].items()) for formula in counts}
    return Output(
        molar={formula: round(mass, 3) for formula, mass in molar.items()},
        grams={formula: round(mass * input.moles, 2) for formula, mass in molar.items()},
        atoms={formula: sum(counts[formula].values()) for formula in counts},
    )
