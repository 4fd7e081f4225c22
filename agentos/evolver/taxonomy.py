"""The taxonomy of failures: trusted content outside the registry, read from TOML and checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentos.domain import Layer
from agentos.errors import Invalid
from agentos.evolver.policy import read_toml


@dataclass(frozen=True, slots=True)
class FailureClass:
    """One class of the taxonomy."""

    name: str
    faults: tuple[str, ...]
    layer: Layer
    evolvable: bool
    says: str


def load_taxonomy(path: Path) -> tuple[FailureClass, ...]:
    """Read the taxonomy; raises Invalid, a sentence with its line for each fault, when it is no list of whole classes."""
    classes = read_toml(path).get("class")
    if not isinstance(classes, list) or not classes:
        raise Invalid(str(path), ["expected at least one [[class]]"])
    lines = [
        number
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _HEAD.match(line)
    ]
    faults: list[str] = []
    for number, entry in enumerate(classes):
        where = f"line {lines[number]}: " if len(lines) == len(classes) else ""
        faults += [f"{where}class {number + 1}: {fault}" for fault in _faults(entry)]
    if not faults and "*" not in classes[-1]["faults"]:
        faults.append('the last class must fit any fault: faults = ["*"]')
    if faults:
        raise Invalid(str(path), faults)
    return tuple(
        FailureClass(
            entry["name"], tuple(entry["faults"]), Layer(entry["layer"]), entry["evolvable"], entry["says"]
        )
        for entry in classes
    )


def _faults(entry: Any) -> Iterator[str]:
    """What is wrong with one class."""
    if not isinstance(entry, dict):
        yield "it is no table"
        return
    for key, wanted in _WANTED.items():
        value = entry.get(key)
        if key not in entry:
            yield f"'{key}' is missing, {wanted}"
        elif not _IS[key](value):
            yield f"'{key}' is {value!r:.80}, but it should be {wanted}"
    for key in entry.keys() - _WANTED.keys():
        yield f"'{key}' is no key of a class (there are: {', '.join(_WANTED)})"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_HEAD = re.compile(r"\s*\[\[\s*class\s*\]\]")
_WANTED = {
    "name": "a text",
    "faults": "a list of texts",
    "layer": f"one of {', '.join(Layer)}",
    "evolvable": "true or false",
    "says": "a text",
}
_IS: Mapping[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "faults": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "layer": lambda value: isinstance(value, str) and value in set(Layer),
    "evolvable": lambda value: isinstance(value, bool),
    "says": _is_text,
}
