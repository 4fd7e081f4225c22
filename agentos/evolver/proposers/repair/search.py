"""Trying candidates: on the case that kills most first, side by side on all benches, until time is up."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from agentos.domain import Json
from agentos.evolver.proposers.repair.inputs import same
from agentos.evolver.proposers.repair.prior import Ranked
from agentos.evolver.proposers.repair.source import Program
from agentos.ports import Bench, Tried

# An edit this much less likely than the likeliest plausible one cannot change what is proposed.
HOPELESS = 1e-3


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases of a bench by number, and what the original answered to each.

    Of the ``working`` ones, those below ``checked`` have a check to pass; the others must answer as before.
    """

    evidence: tuple[int, ...]
    working: tuple[int, ...]
    generated: Sequence[int]
    old: tuple[Json, ...]
    checked: int


@dataclass(frozen=True, slots=True)
class Plausible:
    """An edit that passes evidence (``passed``: which of it) and keeps the working calls."""

    ranked: Ranked
    source: str
    passed: tuple[bool, ...]
    outputs: tuple[Json, ...]  # on the generated inputs

    @property
    def full(self) -> bool:
        """Whether it passes all of the evidence."""
        return all(self.passed)


@dataclass(slots=True)
class Search:
    """One pass over the candidates. ``tried`` counts those that reached a bench."""

    program: Program
    plan: Plan
    deadline: float
    partial: bool = False  # look for what passes some of the evidence instead of all
    tried: int = 0
    found: list[Plausible] = field(default_factory=list, init=False)
    _kills: dict[int, int] = field(default_factory=dict, init=False)
    _seen: set[str] = field(default_factory=set, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _best: float = field(default=0.0, init=False)

    def run(self, order: Sequence[Ranked], benches: Sequence[Bench]) -> list[Plausible]:
        """Everything plausible, in the order found. Raises Unavailable when a bench is gone."""
        self._seen.add(ast.dump(self.program.tree))
        waiting = self._sources(order)
        with ThreadPoolExecutor(len(benches)) as pool:
            for future in [pool.submit(self._work, waiting, bench) for bench in benches]:
                future.result()
        return self.found

    def _sources(self, order: Sequence[Ranked]) -> Iterator[tuple[Ranked, str]]:
        for ranked in order:
            if time.monotonic() > self.deadline or ranked.probability < self._best * HOPELESS:
                return
            source = self.program.apply(ranked.edit)
            if source is None:
                continue
            shape = ast.dump(ast.parse(source))
            if shape not in self._seen:
                self._seen.add(shape)
                yield ranked, source

    def _work(self, waiting: Iterator[tuple[Ranked, str]], bench: Bench) -> None:
        while True:
            with self._lock:
                chosen = next(waiting, None)
            if chosen is None:
                return
            plausible = self._try(*chosen, bench.try_source)
            with self._lock:
                self.tried += 1
                if plausible is not None:
                    self.found.append(plausible)
                    self._best = max(self._best, plausible.ranked.probability)

    def _try(self, ranked: Ranked, source: str, run: Callable[..., Tried]) -> Plausible | None:
        killers = sorted(self.plan.evidence, key=lambda case: -self._kills.get(case, 0))
        first = killers if self.partial else killers[:1]
        tried = run(source, cases=first)
        if not (any if self.partial else all)(tried.passed):
            self._killed(first[tried.passed.index(False)])
            return None
        passed = dict(zip(first, tried.passed, strict=True))
        rest = [*killers[len(first) :], *self.plan.working]
        if rest:
            tried = run(source, cases=rest)
            for case, ok, output in zip(rest, tried.passed, tried.outputs, strict=True):
                passed[case] = ok if case < self.plan.checked else same(output, self.plan.old[case])
                if not passed[case] and not (self.partial and case in self.plan.evidence):
                    self._killed(case)
                    return None
        outputs: tuple[Json, ...] = ()
        if self.plan.generated:
            outputs = run(source, cases=list(self.plan.generated)).outputs
        return Plausible(ranked, source, tuple(passed[case] for case in self.plan.evidence), outputs)

    def _killed(self, case: int) -> None:
        with self._lock:
            self._kills[case] = self._kills.get(case, 0) + 1
