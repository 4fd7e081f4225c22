"""Trying candidates: on the case that kills most first, side by side on all benches, until time is up."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from agentos.domain import Json
from agentos.evolver.propose.input_variation import same
from agentos.ports import Bench, BenchResult
from agentos.proposers.repair.prior import RankedEdit
from agentos.proposers.repair.source import Program

# An edit this much less likely than the likeliest plausible one cannot change what is proposed.
HOPELESS = 0.02
# After so many endless loops by one operator at one place, the rest of its edits there wait.
HANGS = 2
AFTERWARDS_S = 1.5  # of CPU time at least go into looking for something likelier


@dataclass(slots=True)
class SearchBudget:
    """What a search may use: CPU time, its own and that of the trials, which a busy machine does not eat up.

    What hung without computing is charged what it took on the clock. The deadline is for a machine that gives
    next to nothing.
    """

    cpu_s: float
    deadline: float  # on the monotonic clock
    used_s: float = 0.0

    @property
    def spent(self) -> bool:
        """Whether it is time to stop."""
        return self.used_s >= self.cpu_s or time.monotonic() >= self.deadline

    def found(self) -> None:
        """Something passes: what else is looked for may cost as much again, so that the likelier one is had."""
        self.cpu_s = min(self.cpu_s, AFTERWARDS_S + 2.0 * self.used_s)


@dataclass(frozen=True, slots=True)
class SearchPlan:
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

    ranked: RankedEdit
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
    plan: SearchPlan
    meter: SearchBudget
    slow_s: float  # a try that takes this long has hung
    hopeless: float = HOPELESS  # as far below the best edit found, the search ends
    veto: Callable[[str], bool] = lambda source: False  # what must not be proposed, whatever passes with it
    partial: bool = False  # look for what passes some of the evidence instead of all
    tried: int = 0
    exhausted: bool = False  # it ended because nothing was left to try
    found: list[Plausible] = field(default_factory=list, init=False)
    _kills: dict[int, int] = field(default_factory=dict, init=False)
    _seen: set[int] = field(default_factory=set, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _best: float = field(default=0.0, init=False)
    _hung: Counter[tuple[str, int]] = field(default_factory=Counter, init=False)

    def run(self, order: Iterable[RankedEdit], benches: Sequence[Bench]) -> list[Plausible]:
        """Everything plausible, in the order found. Raises Unavailable when a bench is gone."""
        waiting = self._sources(order)
        with ThreadPoolExecutor(len(benches)) as pool:
            for future in [pool.submit(self._work, waiting, bench) for bench in benches]:
                future.result()
        self.exhausted = not self.meter.spent
        return self.found

    def _sources(self, order: Iterable[RankedEdit]) -> Iterator[tuple[RankedEdit, str]]:
        """Each distinct program once. What is likely to hang too (an endless loop costs its limit) comes last."""
        later: list[RankedEdit] = []
        for ranked in order:
            if self._hung[self._place(ranked)] >= HANGS:
                later.append(ranked)
            elif self._hopeless(ranked):
                break
            elif source := self._new(ranked):
                yield ranked, source
        for ranked in later:
            if self._hopeless(ranked):
                return
            if source := self._new(ranked):
                yield ranked, source

    def _hopeless(self, ranked: RankedEdit) -> bool:
        turn = ranked.probability if ranked.turn is None else ranked.turn
        return self.meter.spent or turn < self._best * self.hopeless

    def _new(self, ranked: RankedEdit) -> str | None:
        """The program after the edit; None when it is none, or had its turn."""
        made = self.program.change(ranked.edit)
        if made is None or made[1] == self.program.unchanged(ranked.edit):
            return None
        digest = hash(made[1])
        if digest in self._seen:
            return None
        self._seen.add(digest)
        return made[0]

    def _place(self, ranked: RankedEdit) -> tuple[str, int]:
        return ranked.edit.operator, ranked.edit.splices[0].start

    def _work(self, waiting: Iterator[tuple[RankedEdit, str]], bench: Bench) -> None:
        while True:
            with self._lock:
                own = time.thread_time()
                chosen = next(waiting, None)
                self.meter.used_s += time.thread_time() - own
            if chosen is None:
                return
            metered = MeteredBench(bench, self.slow_s)
            plausible = self._try(*chosen, metered.run)
            with self._lock:
                self.tried += 1
                self.meter.used_s += metered.used_s
                self._hung[self._place(chosen[0])] += metered.hung
                if plausible is not None:
                    if not self.found:
                        self.meter.found()
                    self.found.append(plausible)
                    self._best = max(self._best, plausible.ranked.probability)

    def _try(self, ranked: RankedEdit, source: str, run: Callable[..., BenchResult]) -> Plausible | None:
        killers = sorted(self.plan.evidence, key=lambda case: -self._kills.get(case, 0))
        first = killers if self.partial else killers[:1]
        tried = run(source, cases=first)
        if not (any if self.partial else all)(tried.passed):
            self._killed(first[tried.passed.index(False)])
            return None
        if self.veto(source):
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
        outputs = run(source, cases=self.plan.generated).outputs
        return Plausible(ranked, source, tuple(passed[case] for case in self.plan.evidence), outputs)

    def _killed(self, case: int) -> None:
        with self._lock:
            self._kills[case] = self._kills.get(case, 0) + 1


@dataclass(slots=True)
class MeteredBench:
    """A bench for one source, which notes what that used, and whether it hung.

    By CPU time where the bench measures it: on the clock of a busy machine any source may seem to hang.
    """

    bench: Bench
    slow_s: float
    used_s: float = 0.0
    hung: bool = False

    def run(self, source: str, cases: Sequence[int]) -> BenchResult:
        began = time.monotonic()
        tried = self.bench.try_source(source, cases=cases)
        waited_s = time.monotonic() - began
        late = any(timed_out(output) for output in tried.outputs)
        slept = late and tried.cpu_s < self.slow_s  # an endless loop uses its limit up by computing
        self.used_s += waited_s if slept else tried.cpu_s
        if late or (tried.cpu_s or waited_s) > self.slow_s * len(cases):
            self.hung = True
        return tried


def timed_out(output: Json) -> bool:
    """Whether a bench says so of a case."""
    return isinstance(output, Mapping) and output.get("error") == "timeout"
