"""Makes the past shorter: a line for each call, whole exchanges at a time, the oldest first."""

from __future__ import annotations

import json
from collections.abc import Sequence

from history import Exchange
from observations import clipped
from replies import text_of

_ARGS_MAX, _SAID_MAX, _CAME_MAX = 120, 160, 160
HEAD = "What you did so far, in short; nothing of it needs to be repeated:"
SUMMARISE = (
    "You are in the middle of a task. Below is its goal and what was done so far. Write down, in at most 200 "
    "words, what whoever goes on has to know: what was found (names, numbers, paths), what was changed, what "
    "failed and why, what remains. Facts only."
)


def lines_of(exchange: Exchange) -> list[str]:
    """What was said, and each call with what came of it, in a line each."""
    lines = []
    said = text_of(exchange.message or {})
    if said.strip():
        lines.append(f"- you said: {_line(said, _SAID_MAX)}")
    for asked, seen in zip(exchange.asked, exchange.seen, strict=True):
        args = _line(json.dumps(asked.args, ensure_ascii=False), _ARGS_MAX)
        whole = f" [{seen.output}]" if seen.output else ""
        came = "" if seen.ok else "failed: "
        lines.append(f"- {asked.name}({args}) → {came}{_line(seen.text, _CAME_MAX)}{whole}")
    return lines


def bounded(lines: Sequence[str], most: int) -> str:
    """The newest of the lines under a head, at most ``most`` bytes within a message; "" if nothing fits."""
    kept: list[str] = []
    left = most - len(HEAD.encode()) - 50
    for line in reversed(lines):
        left -= len(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace"))
        if left < 0:
            break
        kept.insert(0, line)
    if not kept:
        return ""
    missing = len(lines) - len(kept)
    return "\n".join([HEAD, *([f"- ({missing} earlier lines left out)"] if missing else []), *kept])


def shorten(exchange: Exchange, most: int) -> None:
    """Cut each result to ``most`` bytes."""
    for seen in exchange.seen:
        seen.text = clipped(seen.text, most, seen.output)
    exchange.changed()


def transcript(exchanges: Sequence[Exchange], most: int) -> str:
    """The exchanges as one text of about ``most`` bytes, for a summary."""
    parts = []
    share = max(300, most // max(1, len(exchanges)))
    for exchange in exchanges:
        text = "\n".join(lines_of(exchange))
        full = "\n".join(
            f"{asked.name}: {seen.text}" for asked, seen in zip(exchange.asked, exchange.seen, strict=True)
        )
        parts.append(clipped(f"{text}\n{full}", share))
    return "\n\n".join(parts)


def _line(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}… ({len(text):,} characters)"
