"""Quantities of Kubernetes."""

from decimal import Decimal


def split_quantity(text: str) -> tuple[Decimal, str]:
    """The number and its unit: 1.5Gi is 1.5 and Gi."""
    number = text.strip().rstrip("KMGkim")
    return Decimal(number), text.strip()[len(number) :]
