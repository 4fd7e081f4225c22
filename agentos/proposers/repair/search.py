"""Trying candidates: on the case that kills most first, side by side on all benches, until time is up."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial as partial_of
from hashlib import blake2b
from io import TextIOWrapper
from pathlib import Path

from agentos.benches import Bench, BenchResult, error_of
from agentos.domain import Json
from agentos.evolver.propose.input_variation import same
from agentos.ports import Case
from agentos.proposers.repair.prior import RankedEdit
from agentos.proposers.repair.source import Program, TextFile

# An edit this much less likely than the likeliest plausible one cannot change what is proposed.
HOPELESS = 0.02
# After so many endless loops by one operator at one place, the rest of its edits there wait.
HANGS = 2
GAIN_MIN, MOVED_MAX = 0.25, 40  # of the way to the right answer, and how many such edits are kept
RAISES = 0.3  # for an exception in the place of another one
TEXT_SHOWN = 400  # characters of a text that is compared sign by sign
AFTERWARDS_S = 1.5  # of CPU time at least go into looking for something likelier
KEPT_FILES = 64  # of searches whose tries are known, the newest; some 200 KB each
KEPT_BYTES = 8 << 20  # a longer file is none of ours
_NOTED = re.compile(r"([0-9a-f]{16}) ([0-9a-f]{16}) (failed|unsure)")


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


class TriedBefore:
    """Which edits failed on which case in earlier searches of the same: ``about`` says of what. A context manager.

    ``cases`` says by number what a case asks for: an edit that failed on one of these fails again. One file for each
    ``about``, below ``folder``, or none at all. It may be lost, and what is damaged, or about something else, counts
    as lost; a line that a kill cut short is left out. What passed is not in it, so that it is tried again: only a
    search decides what is proposed.
    """

    def __init__(
        self, folder: Path | None, about: bytes = b"", cases: Mapping[int, bytes] | None = None
    ) -> None:
        self._key = blake2b(about, digest_size=32).digest()
        self._cases = {number: self._digest(asked) for number, asked in (cases or {}).items()}
        self._known: dict[str, tuple[str, str]] = {}  # on which case, and how surely
        self._file: TextIOWrapper | None = None
        if folder is not None:
            try:
                self._open(folder)
            except OSError:  # then this search begins anew, and the next one, too
                self.close()

    def __enter__(self) -> TriedBefore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is noted any more."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def said(self, made: tuple[int, str]) -> str:
        """Of what ``Program.change`` tells apart: "failed", "unsure" (it hung, or its box died), or ""."""
        if not self._known:
            return ""
        case, how = self._known.get(self._digest(_bytes(made)), ("", ""))
        return how if case in self._cases.values() else ""

    def note(self, made: tuple[int, str], case: int, *, unsure: bool) -> None:
        """It has failed on this case."""
        if self._file is None:
            return
        try:
            how = "unsure" if unsure else "failed"
            self._file.write(f"{self._digest(_bytes(made))} {self._cases[case]} {how}\n")
        except OSError:  # the disk is full: the search goes on without
            self._file = None

    def _digest(self, what: bytes) -> str:
        return blake2b(what, digest_size=8, key=self._key).hexdigest()

    def _open(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / self._key.hex()
        whole = self._read(path)
        if whole:
            os.truncate(path, whole)
        else:
            path.unlink(missing_ok=True)
        self._file = path.open("a", encoding="ascii", buffering=1)  # a line is there as soon as it is noted
        newest = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in newest[KEPT_FILES:]:
            if old != path:
                old.unlink(missing_ok=True)

    def _read(self, path: Path) -> int:
        """How many bytes of the file are whole lines; 0 where there is none, or it is damaged."""
        if not path.is_file() or path.stat().st_size > KEPT_BYTES:
            return 0
        whole = path.read_bytes().rpartition(b"\n")[0]
        found = [_NOTED.fullmatch(line) for line in whole.decode("ascii", "replace").split("\n")]
        known = {line[1]: (line[2], line[3]) for line in found if line}
        if not all(found):
            return 0
        self._known = known
        return len(whole) + 1


def _bytes(made: tuple[int, str]) -> bytes:
    return f"{made[0]} {made[1]}".encode()


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


@dataclass(frozen=True, slots=True)
class Mover:
    """An edit that passes nothing, after which a failing case fails otherwise: nearer to what is asked for, or later."""

    ranked: RankedEdit
    source: str
    case: int
    gain: float  # of the way to the right answer, up to 1

    @property
    def worth(self) -> float:
        """By what the likeliest are chosen: what ends in an answer before what raises elsewhere."""
        return self.ranked.probability * (self.gain if self.gain > RAISES else 0.01 * self.gain)


class Nearness:
    """How much nearer an answer is than the original's. What is asked for decides the order of trials and nothing else."""

    def __init__(self, cases: Sequence[Case], old: Sequence[Json]) -> None:
        self._wanted = [_wanted(case) for case in cases]
        self._old = old

    def gain(self, case: int, output: Json) -> float:
        """Up to 1; 0 where it is no nearer, or nobody can tell."""
        before = self._old[case]
        if timed_out(output) or _died(output) or same(before, output):
            return 0.0
        if _is_raised(output):
            return RAISES if _is_raised(before) else 0.0
        if _is_raised(before):  # the failure has moved from an exception to an answer
            return 0.5 if self._wanted[case] is None else 1.0 - 0.5 * self._far(case, output)
        if self._wanted[case] is None:
            return 0.0
        far = self._far(case, before)
        return max(0.0, far - self._far(case, output)) / (far or 1.0)

    def _far(self, case: int, output: Json) -> float:
        path, value = self._wanted[case] or ("", None)
        for key in filter(None, path.split(".")):
            try:
                output = output[int(key)] if isinstance(output, list) else output[key]
            except (KeyError, IndexError, TypeError, ValueError):
                return 1.0
        one, other = _leaves(value), _leaves(output)
        keys = one.keys() | other.keys()
        return sum(_apart(one.get(key), other.get(key)) for key in keys) / max(1, len(keys))


def _wanted(case: Case) -> tuple[str, Json] | None:
    for check in case.checks:
        if check.kind == "equals" and "value" in check.spec:
            return str(check.spec.get("path") or ""), check.spec["value"]
    return None


def _is_raised(output: Json) -> bool:
    return bool(error_of(output))


def _leaves(value: Json) -> dict[tuple[str, ...], Json]:
    """By where they stand."""
    if isinstance(value, Mapping):
        parts = [(str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list):
        parts = [(str(number), inner) for number, inner in enumerate(value)]
    else:
        return {(): value}
    return {(key, *rest): leaf for key, inner in parts for rest, leaf in _leaves(inner).items()}


def _apart(one: Json, other: Json) -> float:
    if isinstance(one, str) and isinstance(other, str) and len(one) < TEXT_SHOWN > len(other):
        return 1.0 - SequenceMatcher(None, one, other).ratio()
    return 0.0 if same(one, other) else 1.0


# An edit, the program after it, and what tells that apart.
_Waiting = tuple[RankedEdit, str, tuple[int, str]]


@dataclass(slots=True)
class Search:
    """One pass over the candidates. ``tried`` counts those that reached a bench."""

    program: Program | TextFile
    plan: SearchPlan
    meter: SearchBudget
    slow_s: float  # a try that takes this long has hung
    hopeless: float = HOPELESS  # as far below the best edit found, the search ends
    veto: Callable[[str], bool] = lambda source: False  # what must not be proposed, whatever passes with it
    partial: bool = False  # look for what passes some of the evidence instead of all
    past: TriedBefore = field(default_factory=partial_of(TriedBefore, None))
    nearness: Nearness | None = None  # where edits that only move the failure are noted
    tried: int = 0
    before: int = 0  # left out because they have failed before
    exhausted: bool = False  # it ended because nothing was left to try
    found: list[Plausible] = field(default_factory=list, init=False)
    moved: list[Mover] = field(default_factory=list, init=False)  # the likeliest
    _kills: dict[int, int] = field(default_factory=dict, init=False)
    _seen: set[int] = field(default_factory=set, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _best: float = field(default=0.0, init=False)
    _hung: Counter[tuple[str, int]] = field(default_factory=Counter, init=False)
    # what an earlier search was not sure of
    _unsure: list[_Waiting] = field(default_factory=list, init=False)

    def run(self, order: Iterable[RankedEdit], benches: Sequence[Bench]) -> list[Plausible]:
        """Everything plausible, in the order found. Raises Unavailable when a bench is gone."""
        waiting = self._sources(order)
        with ThreadPoolExecutor(len(benches)) as pool:
            for future in [pool.submit(self._work, waiting, bench) for bench in benches]:
                future.result()
        self.exhausted = not self.meter.spent
        return self.found

    def _sources(self, order: Iterable[RankedEdit]) -> Iterator[_Waiting]:
        """Each distinct program once. What is likely to hang too (an endless loop costs its limit) comes last."""
        later: list[RankedEdit] = []
        for ranked in order:
            if self._hung[self._place(ranked)] >= HANGS:
                later.append(ranked)
            elif self._hopeless(ranked):
                break
            elif waiting := self._new(ranked):
                yield waiting
        for ranked in later:
            if self._hopeless(ranked):
                break
            if waiting := self._new(ranked):
                yield waiting
        for waiting in self._unsure:
            if not self._hopeless(waiting[0]):
                yield waiting

    def _hopeless(self, ranked: RankedEdit) -> bool:
        turn = ranked.probability if ranked.turn is None else ranked.turn
        return self.meter.spent or turn < self._best * self.hopeless

    def _new(self, ranked: RankedEdit) -> _Waiting | None:
        """With the program after the edit; None when it is none, or had its turn, now or in an earlier search."""
        made = self.program.change(ranked.edit)
        if made is None or made[1] == self.program.unchanged(ranked.edit):
            return None
        digest = hash(made[1])
        if digest in self._seen:
            return None
        self._seen.add(digest)
        known = self.past.said(made[1])
        if known == "failed":
            self.before += 1
            return None
        if known == "unsure":
            self._unsure.append((ranked, *made))
            self._hung[self._place(ranked)] += 1
            return None
        return ranked, *made

    def _place(self, ranked: RankedEdit) -> tuple[str, int]:
        return ranked.edit.operator, ranked.edit.splices[0].start

    def _work(self, waiting: Iterator[_Waiting], bench: Bench) -> None:
        while True:
            with self._lock:
                own = time.thread_time()
                chosen = next(waiting, None)
                self.meter.used_s += time.thread_time() - own
            if chosen is None:
                return
            metered = MeteredBench(bench, self.slow_s)
            plausible = self._try(chosen, metered)
            with self._lock:
                self.tried += 1
                self.meter.used_s += metered.used_s
                self._hung[self._place(chosen[0])] += metered.hung
                if plausible is not None:
                    if not self.found:
                        self.meter.found()
                    self.found.append(plausible)
                    self._best = max(self._best, plausible.ranked.probability)

    def _try(self, chosen: _Waiting, bench: MeteredBench) -> Plausible | None:
        ranked, source, made = chosen
        run = bench.run
        killers = sorted(self.plan.evidence, key=lambda case: -self._kills.get(case, 0))
        first = killers if self.partial else killers[:1]
        tried = run(source, cases=first)
        if not (any if self.partial else all)(tried.passed):
            failed = tried.passed.index(False)
            self._killed(first[failed], made, bench)
            self._note_moved(ranked, source, first[failed], tried.outputs[failed])
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
                    self._killed(case, made, bench)
                    return None
        outputs = run(source, cases=self.plan.generated).outputs
        return Plausible(ranked, source, tuple(passed[case] for case in self.plan.evidence), outputs)

    def _note_moved(self, ranked: RankedEdit, source: str, case: int, output: Json) -> None:
        if self.nearness is None or (gain := self.nearness.gain(case, output)) < GAIN_MIN:
            return
        with self._lock:
            self.moved.append(Mover(ranked, source, case, gain))
            if len(self.moved) > 2 * MOVED_MAX:
                self.moved = sorted(self.moved, key=lambda each: -each.worth)[:MOVED_MAX]

    def _killed(self, case: int, made: tuple[int, str], bench: MeteredBench) -> None:
        with self._lock:
            self._kills[case] = self._kills.get(case, 0) + 1
            self.past.note(made, case, unsure=bench.unsure)


@dataclass(slots=True)
class MeteredBench:
    """A bench for one source, which notes what that used, and whether it hung.

    By CPU time where the bench measures it: on the clock of a busy machine any source may seem to hang.
    """

    bench: Bench
    slow_s: float
    used_s: float = 0.0
    hung: bool = False
    unsure: bool = False  # what it answered may be the machine's fault, or the time limit's

    def run(self, source: str, cases: Sequence[int]) -> BenchResult:
        began = time.monotonic()
        tried = self.bench.try_source(source, cases=cases)
        waited_s = time.monotonic() - began
        late = any(timed_out(output) for output in tried.outputs)
        slept = late and tried.cpu_s < self.slow_s  # an endless loop uses its limit up by computing
        self.used_s += waited_s if slept else tried.cpu_s
        if late or (tried.cpu_s or waited_s) > self.slow_s * len(cases):
            self.hung = True
        self.unsure = self.unsure or self.hung or any(map(_died, tried.outputs))
        return tried


def _died(output: Json) -> bool:
    """Whether a box ended before it had answered."""
    return error_of(output) == "died"


def timed_out(output: Json) -> bool:
    """Whether a bench says so of a case."""
    return error_of(output) == "timeout"
