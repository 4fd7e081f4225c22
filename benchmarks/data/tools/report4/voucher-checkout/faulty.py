"""Checkout with percents off and a voucher."""

from pydantic import BaseModel, Field

TOOL = {
    "name": "voucher_checkout",
    "description": "What a customer pays in cents: first the percents off, then the voucher, then postage, "
    "which is free from 50.00 on after both",
    "effects": ["pure"],
    "dependencies": [],
}

FREE_FROM = 5000
POSTAGE = {False: 490, True: 990}


class Input(BaseModel):
    prices: list[int] = Field(description="Cents")
    percent: int = Field(0, ge=0, le=100)
    voucher: int = Field(0, ge=0, description="Cents")
    express: bool = Field(False, description="Is paid for by everybody")


class Output(BaseModel):
    goods: int
    postage: int
    total: int


def percents_off(cents: int, percent: int) -> int:
    """Half a cent is the customer's."""
    return cents - -(-cents * percent // 100)


def voucher_off(cents: int, voucher: int) -> int:
    return max(cents - voucher, 0)


def run(input: Input) -> Output:
    goods = sum(input.prices)
    goods = voucher_off(goods, input.voucher)
    goods = percents_off(goods, input.percent)
    postage = POSTAGE[input.express]
    if not input.express and goods >= FREE_FROM:
        postage = 0
    return Output(goods=goods, postage=postage, total=goods + postage)
