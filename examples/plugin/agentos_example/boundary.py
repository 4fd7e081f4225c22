"""Proposer: a comparison that is off by one, one edit for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentos.domain import Layer
from agentos.ports import Brief, Proposal


class Boundary:
    name = "boundary"
    layers = (Layer.SKILL, Layer.TOOL)

    def __init__(self, adviser: Any, snapshots: Any) -> None:
        """The evolver's model (None where none is set up), and what reads the registry."""

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        fixes = tuple(case.task_id for case in brief.cases)
        for found in re.finditer(r" ([<>])(=?) ", brief.source):
            sign, equal = found.groups()
            text = (
                brief.source[: found.start()]
                + f" {sign}{'' if equal else '='} "
                + brief.source[found.end() :]
            )
            said = f"compare with {sign}{'' if equal else '='}"
            yield Proposal(
                "off by one", said, "boundary", {brief.path: text}, "the comparison is the tool's", fixes, ()
            )
