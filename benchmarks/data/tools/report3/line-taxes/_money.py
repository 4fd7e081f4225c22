"""Amounts of money as texts."""

from decimal import Decimal


def amount(text: str) -> Decimal:
    """An amount, with or without commas between thousands."""
    return Decimal(text.replace(",", ""))


def shown(value: Decimal) -> str:
    return f"{value:.2f}"
