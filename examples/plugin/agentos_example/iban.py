"""Check: the answer, or the part of it that ``path`` names, is a bank account number (ISO 13616).

The text of this module is sent into the grader's box, so it imports the standard library alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def faults(spec: dict[str, Any]) -> list[str]:
    """Which parameters cannot be used: asked when a task is added."""
    found = [
        f"'{name}' is no parameter; there are path and country"
        for name in spec
        if name not in ("path", "country")
    ]
    return found + [f"'{name}' must be a text" for name, value in spec.items() if not isinstance(value, str)]


def judge(spec: dict[str, Any], answer: Any, workspace: Path) -> str:
    """Why the answer fails, "" where it passes."""
    if "path" in spec:
        answer = answer.get(spec["path"]) if isinstance(answer, dict) else None
    number = re.sub(r"\s", "", str(answer)).upper()
    if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{10,30}", number):
        return f"{number[:40]!r} has not the form of an IBAN"
    if not number.startswith(spec.get("country", "")):
        return f"{number} is not of {spec['country']}"
    turned = "".join(str(int(letter, 36)) for letter in number[4:] + number[:4])
    return "" if int(turned) % 97 == 1 else f"the check digits of {number} are wrong"
