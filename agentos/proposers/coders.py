"""Coding agents that the proposer ``command`` can run: ``evolver/coders.toml``, and the home's own.

A profile is a command line with placeholders; docs/understand/proposers.md explains each key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from agentos.domain import Budget, Cost, Fault, Layer, Limits, Snapshot
from agentos.errors import Invalid
from agentos.evolver.documents import toml_of

_NO_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """One program. ``files`` (name -> text) are its settings and lie beside its own in ``{program}``."""

    name: str
    says: str
    command: tuple[str, ...]
    model: str = ""  # name of the resource; "" is the settings'
    program: str = ""  # directory of this machine whose files it gets; "": it is installed where boxes see it
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CodingAgentConfig:
    """The document. ``use`` names the one that proposes, "" for none."""

    use: str = ""
    layers: tuple[Layer, ...] = ()
    budget: Budget = _NO_BUDGET
    memory_mb: int = 0
    workspace_mb: int = 0
    known: Mapping[str, CodingAgent] = field(default_factory=dict)

    @property
    def chosen(self) -> CodingAgent | None:
        """The one that proposes."""
        return self.known.get(self.use)


def load_coders(shipped: Path, own: Path) -> CodingAgentConfig:
    """The shipped document, and over it the home's ``own`` where there is one.

    What the own one does not name is as shipped; a coder of an equal name stands in place of the
    shipped one. Raises Invalid with one sentence for each fault.
    """
    found = _read(shipped, CodingAgentConfig())
    return _read(own, found) if own.exists() else found


def _read(path: Path, before: CodingAgentConfig) -> CodingAgentConfig:
    document = toml_of(path)
    faults: list[str] = []
    known = {"use", "layers", "budget", "box", "coder"}
    faults += [
        f"'{key}' is not known; known are {', '.join(sorted(known))}"
        for key in sorted(document.keys() - known)
    ]
    box = _numbers(document.get("box", {}), ("memory_mb", "workspace_mb"), "box", faults)
    budget = _numbers(
        document.get("budget", {}), tuple(item.name for item in fields(Budget)), "budget", faults
    )
    coders = {**before.known, **dict(_coders(document.get("coder", {}), faults))}
    layers = _layers(document.get("layers"), faults)
    made = CodingAgentConfig(
        use=document.get("use", before.use),
        layers=before.layers if layers is None else layers,
        budget=replace(before.budget, **budget),
        memory_mb=box.get("memory_mb", before.memory_mb),
        workspace_mb=box.get("workspace_mb", before.workspace_mb),
        known=coders,
    )
    if not isinstance(made.use, str) or (made.use and made.use not in coders):
        faults.append(f"use = {made.use!r} names no coder; there are {', '.join(sorted(coders))}")
    if made.budget.seconds <= 0 or made.memory_mb <= 0 or made.workspace_mb <= 0:
        faults.append("[budget] seconds, [box] memory_mb and workspace_mb must be above 0")
    if faults:
        raise Invalid(str(path), faults)
    return made


def _numbers(table: Any, names: tuple[str, ...], section: str, faults: list[str]) -> dict[str, Any]:
    if not isinstance(table, dict):
        faults.append(f"[{section}] must be a table")
        return {}
    good = {}
    for key, value in table.items():
        if key not in names:
            faults.append(f"[{section}] {key} is not known; known are {', '.join(names)}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            faults.append(f"[{section}] {key} must be a number of at least 0, not {value!r}")
        elif key not in ("usd", "seconds") and value != int(value):
            faults.append(f"[{section}] {key} must be a whole number, not {value!r}")
        else:
            good[key] = value if key in ("usd", "seconds") else int(value)
    return good


def _layers(value: Any, faults: list[str]) -> tuple[Layer, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or any(item not in list(Layer) for item in value):
        faults.append(f"layers must be a list of {', '.join(Layer)}, not {value!r}")
        return None
    return tuple(Layer(item) for item in value)


def _coders(table: Any, faults: list[str]) -> dict[str, CodingAgent]:
    if not isinstance(table, dict):
        faults.append("[coder.NAME] must be tables")
        return {}
    found = {}
    for name, entry in table.items():
        fault = _coder_fault(entry)
        if fault:
            faults.append(f"[coder.{name}] {fault}")
        else:
            values = {**entry, "command": tuple(entry["command"])}
            found[name] = CodingAgent(name=name, **values)
    return found


def _coder_fault(entry: Any) -> str:
    if not isinstance(entry, dict):
        return "must be a table"
    names = {item.name for item in fields(CodingAgent)} - {"name"}
    if unknown := sorted(entry.keys() - names):
        return f"{unknown[0]} is not known; known are {', '.join(sorted(names))}"
    command = entry.get("command")
    if not _is_words(command) or not command:
        return "command must be a list of words"
    texts = [entry.get(name, "") for name in ("says", "model", "program")]
    files = entry.get("files", {})
    if not isinstance(files, dict) or not _is_words([*texts, *files.values()]):
        return "says, model, program and the values of files must be texts"
    if not entry.get("says"):
        return "says is missing: what this program is"
    if any(name.startswith("/") or ".." in name.split("/") for name in files):
        return "files must have relative names"
    return ""


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


# --- What the evolver asks of a workshop: the port of ``daemon/evolve/coding_agent.py``, and of its fakes


@dataclass(frozen=True, slots=True)
class AgentJob:
    """Work for a program in a box of its own, where nothing is but what stands here.

    Words of ``command`` may hold ``{program}`` (the directory of ``program``), ``{workspace}``, ``{model}``
    (its name) and ``{python}``. It runs in the workspace, which holds ``files``, and finds its models
    at OPENAI_BASE_URL.
    """

    id: str  # its model calls are on record under it: an errand done again is served from there
    evolution_id: str
    base: Snapshot  # at which the model is looked up
    command: tuple[str, ...]
    program: Mapping[str, bytes]  # relative path -> content
    files: Mapping[str, bytes]
    model: str  # name of the resource; "" is the settings'
    budget: Budget  # of model calls; its seconds are those of the whole errand
    limits: Limits  # memory and workspace of the box


@dataclass(frozen=True, slots=True)
class AgentJobResult:
    """What an errand left. With a ``fault`` the program did not come to its end by itself."""

    files: Mapping[str, bytes]  # every plain file in the workspace, unchanged ones too
    refused: tuple[str, ...]  # a sentence for each thing that is no plain file
    fault: Fault | None
    cost: Cost
    steps_sha256: str  # the blob with what it did, as recorded


class AgentRunner(Protocol):
    """Runs programs that edit files: coding agents."""

    def run(self, errand: AgentJob) -> AgentJobResult:
        """Blocks until its box is gone. Raises Unavailable when the machinery failed: do it again."""
        ...
