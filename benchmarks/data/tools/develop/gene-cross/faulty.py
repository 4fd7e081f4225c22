"""Crosses two genotypes."""

from collections import Counter
from fractions import Fraction
from itertools import product

from pydantic import BaseModel

TOOL = {
    "name": "gene_cross",
    "description": "Cross two genotypes such as AaBb: share of each genotype of the offspring (the capital letter first in each pair), and the share that shows each dominant trait",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    mother: str
    father: str


class Output(BaseModel):
    offspring: dict[str, str]
    dominant: dict[str, str]


def pairs(genotype: str) -> list[str]:
    return [genotype[place : place + 2] for place in range(0, len(genotype), 2)]


def gametes(genotype: str) -> list[tuple[str, ...]]:
    return list(product(*pairs(genotype)))


def child(mother: tuple[str, ...], father: tuple[str, ...]) -> str:
    return "".join("".join(genes) for genes in zip(mother, father))


def run(input: Input) -> Output:
    """Shares are fractions in lowest terms, such as 1/4."""
    if input.mother.lower() != input.father.lower():
        raise ValueError("the parents are described by different genes")
    children = Counter(child(*both) for both in product(gametes(input.mother), gametes(input.father)))
    total = sum(children.values())
    offspring = {kind: str(Fraction(count, total)) for kind, count in sorted(children.items())}
    dominant = {}
    for place, pair in enumerate(pairs(input.mother)):
        showing = sum(count for kind, count in children.items() if not pairs(kind)[place].islower())
        dominant[pair[0].upper()] = str(Fraction(showing, total))
    return Output(offspring=offspring, dominant=dominant)
