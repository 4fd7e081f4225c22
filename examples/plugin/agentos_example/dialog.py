"""Trajectory format: {"dialog": "User: …\\nAgent: …", "ok": true}, as chat widgets log it."""

from __future__ import annotations

from typing import Any

_ROLES = {"User": "user", "Agent": "assistant"}


def convert(record: Any) -> Any:
    """The record in the form ``openai-chat``, None for what is no dialog."""
    if not isinstance(record, dict) or not isinstance(record.get("dialog"), str):
        return None
    said = (line.partition(": ") for line in record["dialog"].splitlines())
    messages = [{"role": _ROLES[who], "content": text} for who, _, text in said if who in _ROLES]
    return {"messages": messages, "outcome": bool(record.get("ok"))}
