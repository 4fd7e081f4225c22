"""Repairs of a harness' source without a model: the edits of ``repair``, tried by whole runs.

Which file is at fault is not known beforehand: the harness is traced once on every case, and its files
are searched in the order of how much oftener failing runs go through them than passing ones. Runs are
slow beside calls of a tool, so the likeliest edits of every file go before the others of any:
docs/source-evolution.md has numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agentos.domain import Json, Layer, ResourceId, Snapshot
from agentos.evolver.proposers.repair.places import suspicion
from agentos.evolver.proposers.repair.proposer import (
    Effort,
    Probed,
    given_cases,
    program_of,
    repairs,
    shipped_counts,
    sorted_out,
)
from agentos.ports import Benches, Brief, Case, Proposal, Tried

GENERATED = 6  # inputs on which plausible edits are compared: each is a run
TIMEOUTS_S = (2.0, 10.0)  # for one run, least and most
HOPELESS = 0.2  # an edit so much less likely than the best one found is not worth a run
GLUE = {"insert +-1": 0.1}  # a harness hands things on and seldom counts: factors on shares of edit kinds
ROUNDS = ((0, 60), (60, 300), (300, None))  # of each file's edits, likeliest first


@dataclass(frozen=True, slots=True)
class Traced:
    """What the harness as it is did on one case. ``lines``: those that ran, by registry path."""

    passed: bool
    output: Json
    lines: Mapping[str, tuple[int, ...]]
    wall_s: float


class HarnessBenches(Benches, Protocol):
    """Opens benches for files of a harness. A case stands for its task, whose agent names the harness."""

    def trace(
        self, snapshot: Snapshot, harness: ResourceId, cases: Sequence[Case], timeout_s: float
    ) -> Sequence[Traced]:
        """Run each case on the snapshot as it is. Raises Unavailable when the machinery failed."""
        ...


class HarnessRepairProposer:
    """Searches edits of one file of a harness that make the evidence pass and keep the working runs."""

    name = "repair"

    def __init__(
        self, benches: HarnessBenches, workers: int, counts: Mapping[str, float] | None = None
    ) -> None:
        self._benches = benches
        self._workers = max(1, workers)
        known = counts if counts is not None else shipped_counts()
        self._counts = {kind: share * GLUE.get(kind, 1.0) for kind, share in known.items()}

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """Edits, best first, all of one file; none when nothing within reach passes.

        Raises Unavailable when the machinery is away.
        """
        if brief.layer is not Layer.HARNESS or not brief.cases:
            return  # runs that think are not the same twice: a search learns nothing from one
        deadline = time.monotonic() + brief.budget_s
        traced = self._benches.trace(brief.base, brief.resource, given_cases(brief), TIMEOUTS_S[1])
        paths = by_suspicion(brief, traced)
        for part in ROUNDS:
            for path in paths:
                effort = Effort(
                    deadline,
                    self._workers,
                    self._counts,
                    GENERATED,
                    TIMEOUTS_S,
                    HOPELESS,
                    part,
                    partial=False,
                )
                found = self._in_file(brief, path, traced, effort)
                yield from found
                if found or time.monotonic() >= deadline:
                    return

    def _in_file(
        self, brief: Brief, path: str, traced: Sequence[Traced], effort: Effort
    ) -> Sequence[Proposal]:
        program = program_of(brief.files[path])
        if program is None:
            return ()
        about = replace(brief, path=path, source=brief.files[path])
        return repairs(about, program, probed(traced, path), self._benches, effort)


def probed(traced: Sequence[Traced], path: str) -> Probed:
    """What was traced, as it concerns one file."""
    tried = Tried(
        tuple(one.passed for one in traced),
        tuple(float(one.passed) for one in traced),
        tuple(one.output for one in traced),
        tuple(one.lines.get(path, ()) for one in traced),
    )
    ended = [one.wall_s for one in traced if one.wall_s < 0.9 * TIMEOUTS_S[1]]
    return Probed(tried, len(ended) < len(traced), max(ended, default=0.0))


def by_suspicion(brief: Brief, traced: Sequence[Traced]) -> list[str]:
    """The harness' files that failing runs go through, the most suspicious first.

    Among equally suspicious ones the file goes first of which the failing runs use least: it is the
    soonest searched.
    """
    ranks: list[tuple[float, int, str]] = []
    for path, source in brief.files.items():
        if not (path.startswith(f"{brief.resource}/") and path.endswith(".py")):
            continue
        program = program_of(source)
        if program is None:
            continue
        seen = probed(traced, path).tried
        evidence, working = sorted_out(brief, seen)
        places = suspicion(program, [seen.lines[c] for c in evidence], [seen.lines[c] for c in working])
        within = [line for line in places if any(line in seen.lines[c] for c in evidence)]
        if within:
            ranks.append((-max(places[line] for line in within), len(within), path))
    return [path for _, _, path in sorted(ranks)]
