"""Spans of time as a build server writes them."""

import re

SPAN = re.compile(r"(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?")


def seconds(text: str) -> float:
    """Seconds of 3m12s, 12s, 3m or 800ms; ValueError for any other text."""
    match = SPAN.fullmatch(text)
    if not text or match is None:
        raise ValueError(f"no span of time: {text!r}")
    minutes, whole, thousandths = (int(part or 0) for part in match.groups())
    return minutes * 60 + whole + thousandths / 1000
