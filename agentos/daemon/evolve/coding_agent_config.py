"""The coding agent that proposes, as the home's ``coders.toml`` says; part of the composition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from agentos.daemon.evolve.coding_agent import FILES_MB
from agentos.domain import Layer
from agentos.errors import UserError
from agentos.home import Home
from agentos.ports import Audit, Proposer
from agentos.proposers.coders import load_coders
from agentos.proposers.coding_agent import AgentRunner
from agentos.proposers.command import CommandProposer
from agentos.shipped import folder


def with_coder(
    proposers: Mapping[Layer, tuple[Proposer, ...]], home: Home, workshop: AgentRunner, audit: Audit
) -> Mapping[Layer, tuple[Proposer, ...]]:
    """The proposers, and after them the coder in its layers, where one is chosen.

    Raises UserError when the home's document, or what it names, does not fit.
    """
    coders = load_coders(folder("evolver") / "coders.toml", home.root / "coders.toml")
    coder = coders.chosen
    if coder is None:
        return proposers
    program = dict(_files(home.root / coder.program)) if coder.program else {}
    proposer = CommandProposer(coders, coder, program, workshop, audit)
    asked = {layer: (*proposers.get(layer, ()), proposer) for layer in coders.layers}
    return {**proposers, **asked}


def _files(place: Path) -> Iterator[tuple[str, bytes]]:
    """Plain files below ``place``; links are left out, as a box could not follow them."""
    if not place.is_dir():
        raise UserError(f"coders.toml names the directory {place} as a coder's program, and there is none")
    room = FILES_MB << 20
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_symlink():
            room -= path.stat().st_size
            if room < 0:
                raise UserError(
                    f"{place} holds more than the {FILES_MB} MB that a box has room for: install the program "
                    "where boxes see it, see docs/understand/proposers.md"
                )
            yield path.relative_to(place).as_posix(), path.read_bytes()
