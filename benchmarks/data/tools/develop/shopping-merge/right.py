"""One shopping list from some recipes."""

from collections import defaultdict

from pydantic import BaseModel, Field

TOOL = {
    "name": "shopping_merge",
    "description": "Add up the ingredients of recipes ('1.5 kg flour', '3 eggs') in g, ml or pieces, take off what is at home, and list what to buy",
    "effects": ["pure"],
    "dependencies": [],
}


FACTORS = {"g": ("g", 1), "kg": ("g", 1000), "ml": ("ml", 1), "l": ("ml", 1000)}


class Input(BaseModel):
    recipes: list[list[str]]
    at_home: dict[str, float] = Field(default_factory=dict)


class Output(BaseModel):
    buy: dict[str, str]
    enough: list[str]


def parse(line: str) -> tuple[str, float, str]:
    """Article, amount and basic unit; no unit means pieces."""
    number, *words = line.split()
    amount = float(number)
    unit = ""
    if words[0] in FACTORS:
        unit, factor = FACTORS[words.pop(0)]
        amount *= factor
    return " ".join(words), amount, unit


def run(input: Input) -> Output:
    needed: defaultdict[str, float] = defaultdict(float)
    units: dict[str, str] = {}
    for line in (line for recipe in input.recipes for line in recipe):
        article, amount, unit = parse(line)
        if units.setdefault(article, unit) != unit:
            raise ValueError(
                f"{article}: {unit or 'pieces'} and {units[article] or 'pieces'} cannot be added"
            )
        needed[article] += amount
    left = {article: amount - input.at_home.get(article, 0) for article, amount in sorted(needed.items())}
    buy = {article: f"{amount:g} {units[article]}".strip() for article, amount in left.items() if amount > 0}
    return Output(buy=buy, enough=[article for article in left if article not in buy])
