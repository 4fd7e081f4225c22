"""Amounts as people write them."""

from decimal import ROUND_HALF_UP, Decimal

from pydantic import BaseModel

TOOL = {
    "name": "amount_parse",
    "description": "Reads amounts with points or commas for thousands or decimals: of both kinds the last is the decimal sign, one that occurs once with three digits after it, or more often, stands for thousands; minus or brackets for negative ones",
    "effects": ["pure"],
    "dependencies": [],
}


class Input(BaseModel):
    amounts: list[str]


class Output(BaseModel):
    cents: list[int]
    total: int


def number(text: str) -> Decimal:
    kept = "".join(character for character in text if character in "0123456789.,")
    signs = [character for character in kept if character in ".,"]
    point = ""
    if len(set(signs)) == 2:
        point = signs[-1]
    elif len(signs) == 1:
        point = signs[0]
    whole, _, rest = kept.rpartition(point) if point else (kept, "", "")
    digits = whole.replace(".", "").replace(",", "")
    return Decimal(f"{digits or 0}.{rest or 0}")


def run(input: Input) -> Output:
    """In cents, half a cent going up."""
    cents = []
    for text in input.amounts:
        value = number(text)
        if "-" in text or text.strip().startswith("("):
            value = -value
        cents.append(int((value * 100).quantize(Decimal(1), ROUND_HALF_UP)))
    return Output(cents=cents, total=sum(cents))
