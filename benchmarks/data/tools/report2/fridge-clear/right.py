"""What is thrown out of a fridge."""

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

TOOL = {
    "name": "fridge_clear",
    "description": "Clears out a fridge: what is past its date is thrown out, with its number of packs, and what is left is sorted by its date, with the food to be eaten within three days",
    "effects": ["read"],
    "dependencies": [],
}


class Input(BaseModel):
    path: str = Field(description="Lines of the form: food|packs|last day")
    today: date


class Output(BaseModel):
    thrown: int
    left: list[str]
    soon: list[str]


@dataclass
class Food:
    name: str
    packs: int
    last: date


class Fridge:
    def __init__(self, foods: list[Food]) -> None:
        self.foods = foods

    def clear(self, today: date) -> int:
        """How many packs were past their date."""
        thrown = 0
        for food in list(self.foods):
            if food.last < today:
                thrown += food.packs
                self.foods.remove(food)
        return thrown

    def until(self, day: date) -> list[Food]:
        return [food for food in self.foods if food.last <= day]


def read(path: str) -> list[Food]:
    foods = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, packs, last = line.split("|")
        foods.append(Food(name, int(packs), date.fromisoformat(last)))
    return foods


def run(input: Input) -> Output:
    fridge = Fridge(read(input.path))
    thrown = fridge.clear(input.today)
    fridge.foods.sort(key=lambda food: (food.last, food.name))
    left = [f"{food.packs} {food.name}" for food in fridge.foods]
    soon = [food.name for food in fridge.until(input.today + timedelta(days=3))]
    return Output(thrown=thrown, left=left, soon=soon)
