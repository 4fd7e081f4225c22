"""Amounts of money as texts."""


def cents(text: str) -> int:
    """12,50 and 12.50 are both 1250 cents."""
    return round(float(text.strip().replace(",", ".")) * 100)
