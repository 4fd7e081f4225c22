"""The taxonomy of failures: trusted content outside the registry, read from TOML and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
    """Read the taxonomy; raises Invalid when it is not a list of complete classes."""
    classes = read_toml(path).get("class")
    if not isinstance(classes, list):
        raise Invalid(str(path), ["expected at least one [[class]]"])
    found = []
    for number, entry in enumerate(classes, 1):
        try:
            found.append(
                FailureClass(
                    name=str(entry["name"]),
                    faults=tuple(str(item) for item in entry["faults"]),
                    layer=Layer(entry["layer"]),
                    evolvable=bool(entry["evolvable"]),
                    says=str(entry["says"]),
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Invalid(str(path), [f"class {number} is incomplete or wrong: {error}"]) from None
    if "*" not in found[-1].faults:
        raise Invalid(str(path), ['the last class must fit any fault: faults = ["*"]'])
    return tuple(found)
