"""The bill of a swimming pool."""

import json
from dataclasses import dataclass, field
from datetime import time
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

TOOL = {
    "name": "pool_bill",
    "description": "Bill of a swimming pool for a day's visits: tickets by age and time, family rate, late rate and lockers",
    "effects": ["read"],
    "dependencies": [],
}

PRICES = {"small": 0, "child": 350, "adult": 600, "senior": 450}
FAMILY = 1500  # two adults with up to three children
LOCKER = 50
LATE = time(18, 0)
LATE_OFF = 100


class Input(BaseModel):
    path: str = Field(description="JSON: a list of groups with people (ages), at (HH:MM) and lockers")


class Bill(BaseModel):
    tickets: dict[str, int]
    family: bool
    cents: int


class Output(BaseModel):
    bills: list[Bill]
    total: int
    visitors: int


class Rate(Enum):
    SMALL = "small"
    CHILD = "child"
    ADULT = "adult"
    SENIOR = "senior"


def rate_of(age: int) -> Rate:
    """Under four free, under sixteen a child, from 65 on a senior."""
    if age < 4:
        return Rate.SMALL
    if age <= 16:
        return Rate.CHILD
    if age >= 65:
        return Rate.SENIOR
    return Rate.ADULT


@dataclass
class Group:
    """People who come together."""

    ages: list[int]
    at: time
    lockers: int = 0
    counts: dict[Rate, int] = field(default_factory=dict)

    @classmethod
    def read(cls, item: dict[str, Any]) -> "Group":
        group = cls(list(item["people"]), time.fromisoformat(item["at"]), item.get("lockers", 0))
        for age in group.ages:
            rate = rate_of(age)
            group.counts[rate] = group.counts.get(rate, 0) + 1
        return group

    def count(self, rate: Rate) -> int:
        return self.counts.get(rate, 0)

    @property
    def is_late(self) -> bool:
        return self.at >= LATE

    @property
    def is_family(self) -> bool:
        return self.count(Rate.ADULT) == 2 and 1 <= self.count(Rate.CHILD) <= 3

    def price(self, rate: Rate) -> int:
        """Of one ticket; late ones are cheaper, and never less than nothing."""
        full = PRICES[rate.value]
        return max(0, full - LATE_OFF) if self.is_late else full

    def tickets(self) -> int:
        return sum(self.count(rate) * self.price(rate) for rate in Rate)

    def family_price(self) -> int:
        paying = FAMILY + self.count(Rate.SENIOR) * self.price(Rate.SENIOR)
        return min(paying, self.tickets())

    def cents(self) -> int:
        entry = self.family_price() if self.is_family else self.tickets()
        return entry + self.lockers * LOCKER


def bill(group: Group) -> Bill:
    return Bill(
        tickets={rate.value: group.count(rate) for rate in Rate if group.count(rate)},
        family=group.is_family,
        cents=group.cents(),
    )


def run(input: Input) -> Output:
    groups = [Group.read(item) for item in json.loads(Path(input.path).read_text(encoding="utf-8"))]
    bills = [bill(group) for group in groups]
    return Output(
        bills=bills,
        total=sum(one.cents for one in bills),
        visitors=sum(len(group.ages) for group in groups),
    )
