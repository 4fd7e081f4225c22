"""Moments, as tills write them."""

from datetime import UTC, datetime


def in_utc(text: str) -> datetime:
    """A moment in UTC; one without an offset is taken as UTC."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)
