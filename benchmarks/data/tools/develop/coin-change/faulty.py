"""Change of a vending machine, largest coins first."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "coin_change",
    "description": "Coins a machine gives back",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    price: int = Field(gt=0, description="Cents")
    paid: int
    stock: dict[str, int] = Field(description="Value of a coin in cents to how many there are")


class Output(BaseModel):
    coins: dict[str, int]
    owed: int = Field(description="Cents that could not be given back")


def change(amount: int, stock: dict[int, int]) -> dict[int, int]:
    """As many of the largest coins as fit and as there are, then the next."""
    given = {}
    for coin in sorted(stock, reverse=True):
        count = amount // coin
        if count:
            given[coin] = count
            amount -= coin * count
    return given


def run(input: Input) -> Output:
    if input.paid < input.price:
        raise ValueError(f"{input.price - input.paid} cents are missing")
    back = input.paid - input.price
    given = change(back, {int(coin): count for coin, count in input.stock.items()})
    owed = back - sum(coin * count for coin, count in given.items())
    return Output(coins={str(coin): count for coin, count in given.items()}, owed=owed)
