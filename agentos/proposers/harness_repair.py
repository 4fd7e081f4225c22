"""Repairs of a harness' source without a model: the edits of ``repair``, tried by whole runs.

Which file is at fault is not known beforehand: the harness is traced once on every case, and its files
are weighed by how much more often failing runs go through them than passing ones. Runs are slow beside calls
of a tool, so the likeliest edits of all files go first: docs/understand/source-evolution.md has numbers.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from agentos.benches import BenchResult
from agentos.domain import Layer, SearchEffort
from agentos.ports import Brief, Proposal
from agentos.proposers.repair.prior import RankedEdit, merged, ranked, totals
from agentos.proposers.repair.proposer import (
    Baseline,
    Effort,
    SuspectFile,
    given_cases,
    ground_of,
    repairs,
    shares,
    shipped_counts,
    stocks_in,
)
from agentos.proposers.repair.search import SearchBudget
from agentos.proposers.repair.source import program_of
from agentos.proposers.search_process import PATIENCE, CaseTrace, HarnessBenches

GENERATED = 6  # inputs on which plausible edits are compared: each is a run
TIMEOUTS_S = (2.0, 10.0)  # for one run, least and most
HOPELESS = 0.2  # an edit so much less likely than the best one found is not worth a run
EDITS_MAX = 5_000  # of one file: each costs runs
GLUE = {"insert +-1": 0.1}  # a harness hands things on and seldom counts: factors on shares of edit kinds
STRETCHES = 20  # of each file, the most suspicious ones: what is made at once
ROUNDS = (40, 120, 400, 1_000_000)  # edits of all files that are tried when a round is over


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

    def propose(self, brief: Brief) -> Generator[Proposal, None, SearchEffort | None]:
        """Edits, best first, all of one file; none when nothing within reach passes: then how far it came.

        Raises Unavailable when the machinery is away.
        """
        if brief.layer is not Layer.HARNESS or not brief.cases:
            return None  # runs that think are not the same twice: a search learns nothing from one
        until = time.monotonic() + PATIENCE * brief.budget_s
        traced = self._benches.trace(brief.base, brief.resource, given_cases(brief), TIMEOUTS_S[1])
        grounds = list(grounds_of(brief, traced))
        firsts = [merged(islice(stocks_in(ground), STRETCHES)) for ground in grounds]
        among = totals(firsts)
        orders = [
            list(islice(ranked(stock, shares(self._counts, ground.probed), among), EDITS_MAX))
            for ground, stock in zip(grounds, firsts, strict=True)
        ]
        every = all(stock.part > 0.999_999 for stock in firsts) and all(len(o) < EDITS_MAX for o in orders)
        files = tuple(ground.brief.path for ground in grounds)
        come = SearchEffort(0, sum(map(len, orders)), 0.0, exhausted=every, files=files)
        cpu_s = brief.budget_s * self._workers
        for least, most in _rounds(orders):
            for ground, order in zip(grounds, orders, strict=True):
                part = [each for each in order if least <= each.probability < most]
                if not part:
                    continue
                found = repairs(
                    ground,
                    partial(_as_they_are, part),
                    self._benches,
                    self._effort(cpu_s - come.cpu_s, until),
                )
                come = _together(come, found.effort)
                yield from found.proposals
                if found.proposals:
                    return None
                if come.cpu_s >= cpu_s or time.monotonic() >= until:
                    return replace(come, exhausted=False)
        return come

    def _effort(self, cpu_s: float, until: float) -> Effort:
        return Effort(
            until, cpu_s, self._workers, self._counts, GENERATED, TIMEOUTS_S, HOPELESS, partial=False
        )


def _as_they_are(part: Sequence[RankedEdit], _: SearchBudget) -> Sequence[RankedEdit]:
    return part


def _together(come: SearchEffort, part: SearchEffort) -> SearchEffort:
    return replace(
        come,
        tried=come.tried + part.tried,
        cpu_s=come.cpu_s + part.cpu_s,
        exhausted=come.exhausted and part.exhausted,
    )


def _rounds(orders: Sequence[Sequence[RankedEdit]]) -> Iterator[tuple[float, float]]:
    """From and below which probability the edits of all files are tried, likeliest first."""
    known = sorted((each.probability for order in orders for each in order), reverse=True)
    below = 1.1
    for size in ROUNDS:
        least = known[size] if size < len(known) else 0.0
        yield least, below
        below = least


def probed(traced: Sequence[CaseTrace], path: str) -> Baseline:
    """What was traced, as it concerns one file."""
    tried = BenchResult(
        tuple(one.passed for one in traced),
        tuple(float(one.passed) for one in traced),
        tuple(one.output for one in traced),
        tuple(one.lines.get(path, ()) for one in traced),
    )
    ended = [one.wall_s for one in traced if one.wall_s < 0.9 * TIMEOUTS_S[1]]
    return Baseline(tried, len(ended) < len(traced), max(ended, default=0.0))


def grounds_of(brief: Brief, traced: Sequence[CaseTrace]) -> Iterator[SuspectFile]:
    """The harness' files that failing runs go through, the most suspicious first."""
    found = []
    for path, source in sorted(brief.files.items()):
        own = path.startswith(f"{brief.resource}/") and path.endswith(".py")
        program = program_of(source) if own else None
        if program is None:
            continue
        ground = ground_of(replace(brief, path=path, source=source), program, probed(traced, path))
        if ground is not None and any(ground.probed.tried.lines[case] for case in ground.evidence):
            found.append(ground)
    return iter(sorted(found, key=lambda ground: -max(ground.places.values(), default=0.0)))
