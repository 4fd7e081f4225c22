"""The search-based repairer: no model, one logical edit, the likeliest first.

See docs/understand/repair.md for how it searches and what it can and cannot repair.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial as partial_of
from pathlib import Path

from agentos import __version__, shipped
from agentos.benches import Bench, Benches, BenchResult
from agentos.domain import Json, SearchEffort
from agentos.evolver.guards.static.raised import defused
from agentos.evolver.propose.input_variation import generate, same
from agentos.ports import Brief, Case, Proposal
from agentos.proposers.repair.places import helpers_of, stocks, suspicion, text_stocks, texts_of
from agentos.proposers.repair.prior import EditStock, RankedEdit, in_turn, read_prior
from agentos.proposers.repair.ranking import (
    TEXT_MAX,
    SearchFindings,
    both_edits,
    first_edits,
    hypotheses,
    proposal_of,
    raised,
)
from agentos.proposers.repair.reading.failures import read_failures
from agentos.proposers.repair.reading.foresight import can_be_watched, foresight_of
from agentos.proposers.repair.scope import given_names
from agentos.proposers.repair.search import (
    HOPELESS,
    Nearness,
    Plausible,
    Search,
    SearchBudget,
    SearchPlan,
    TriedBefore,
    timed_out,
)
from agentos.proposers.repair.site import FileFacts
from agentos.proposers.repair.source import Program, TextFile, program_of
from agentos.proposers.search_process import PATIENCE

GENERATED = 60  # inputs on which plausible candidates are compared
PROBE_TIMEOUT_S = 1.0  # for one case of the original
LEAST_TIMEOUT_S = 0.03
FULL = 0.75  # of the CPU time is for edits that pass everything, where some of it would do as well
PARTIAL = 0.9  # and at this share of it a second edit is looked for, on top of the best of those
MOVED = 0.8  # or already at this, where an edit moves the failure
LOOKED_AT = 2  # calls that fail, and as many that work: their values are looked at before anything is tried
TRIALS = 1  # one more where what a trial decides becomes another: what was tried by the last is tried again
OWN = 0.7  # of it is for the tool's own file, where it has helper modules
TEXTS = 0.3  # of the CPU time is for texts beside the code, which have hundreds of edits and not thousands
OF_TEXTS = 2  # edits of each of them that are proposed
STARTED_S = 0.5  # for one call of a program, at least: it is a process of its own
FIRSTS = 2  # of edits that pass some of the evidence that are tried as the first of two


@dataclass(frozen=True, slots=True)
class Effort:
    """What a search may use. ``counts`` is the table of edit kinds."""

    deadline: float  # on the monotonic clock
    cpu_s: float  # of the trials and of the search itself
    workers: int
    counts: Mapping[str, float]
    generated: int = GENERATED  # inputs on which plausible candidates are compared
    timeouts_s: tuple[float, float] = (LEAST_TIMEOUT_S, PROBE_TIMEOUT_S)  # for one case, least and most
    hopeless: float = HOPELESS  # see ``Search``
    partial: bool = True  # where nothing passes all of the evidence, look for what passes some
    kept: Path | None = None  # the folder in which is noted what was tried


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the original does on the brief's cases and working calls."""

    tried: BenchResult
    endless: bool  # whether one of them ran into the time limit
    slowest_s: float  # of CPU time, traced, of those that ended by themselves; 0 when none did


class RepairProposer:
    """Searches edits of one source file that make the evidence pass and keep the working calls.

    ``counts`` is the table of edit kinds; None means the shipped ``evolver/edit_prior.toml``. Below ``kept`` is noted
    what was tried, so that the next search of the same goes on from there.
    """

    name = "repair"

    def __init__(
        self,
        benches: Benches,
        workers: int,
        counts: Mapping[str, float] | None = None,
        kept: Path | None = None,
    ) -> None:
        self._benches = benches
        self._workers = max(1, workers)
        self._counts = counts if counts is not None else shipped_counts()
        self._kept = kept

    def propose(self, brief: Brief) -> Generator[Proposal, None, SearchEffort | None]:
        """Edits, best first; none when nothing within reach passes: then it returns how far it came.

        Raises Unavailable when a bench is gone.
        """
        if not brief.path or not brief.cases:
            return None  # a new file is wanted, or nothing that could be tried: no call names this tool
        until = time.monotonic() + PATIENCE * brief.budget_s
        effort = Effort(until, brief.budget_s * self._workers, self._workers, self._counts, kept=self._kept)
        beside, come = self._in_texts(brief, effort)
        yield from beside
        if not brief.path.endswith(".py"):
            return None if beside else come
        if come is not None:
            effort = replace(effort, cpu_s=effort.cpu_s - come.cpu_s)
        own = replace(effort, cpu_s=effort.cpu_s * (OWN if (helpers := helpers_of(brief)) else 1.0))
        found = self._search(brief, own)
        if found is None:
            return None
        if helpers and (found.partial or not found.proposals):
            left_s, effort = effort.cpu_s - found.effort.cpu_s, own
            within, come = self._in_helpers(brief, helpers, replace(effort, cpu_s=left_s), come)
            if within:
                found = replace(found, proposals=within, partial=False, moved=())
        if firsts := found.proposals[:FIRSTS] if found.partial else found.moved:
            yield from self._second_edits(brief, firsts, found.effort.cpu_s, effort)
        # What an edit of a text mends as well is ambiguous, whatever the code's edit is worth by itself.
        doubted = [replace(p, prior=min(TEXT_MAX, p.prior)) for p in found.proposals]
        yield from doubted if beside else found.proposals
        return None if beside or found.proposals else found.effort.also(come)

    def _in_texts(self, brief: Brief, effort: Effort) -> tuple[Sequence[Proposal], SearchEffort | None]:
        """Edits of the texts beside the code that mend all of the evidence; how far it came, None where there is no text."""
        texts = texts_of(brief)
        is_code = brief.path.endswith(".py")
        cpu_s = effort.cpu_s * (TEXTS if is_code else 1.0) / max(1, len(texts))
        least_s, most_s = effort.timeouts_s
        own = replace(
            effort,
            cpu_s=cpu_s,
            partial=False,
            timeouts_s=(least_s if is_code else STARTED_S, max(most_s, 1.0)),
        )
        found: list[Proposal] = []
        come: SearchEffort | None = None
        for path, text in texts.items():
            of_text = replace(
                brief, path=path, source=text, max_candidates=min(OF_TEXTS, brief.max_candidates)
            )
            file = TextFile(path, text, brief.source if is_code else "")
            if ground := ground_of(of_text, file, probe(of_text, self._benches)):
                order = in_order(ground, effort.counts)
                tried = repairs(ground, partial_of(_made_already, order), self._benches, own)
                found += tried.proposals
                come = come.also(tried.effort) if come else tried.effort
        return found, come

    def _in_helpers(
        self, brief: Brief, helpers: Mapping[str, str], effort: Effort, come: SearchEffort | None
    ) -> tuple[Sequence[Proposal], SearchEffort | None]:
        """Edits of modules that the tool imports and that mend all of the evidence; how far it came, after ``come``."""
        own = replace(effort, cpu_s=effort.cpu_s / len(helpers), partial=False)
        found: list[Proposal] = []
        for path, source in helpers.items():
            if tried := self._search(replace(brief, path=path, source=source), own):
                found += tried.proposals
                come = come.also(tried.effort) if come else tried.effort
        return found, come

    def _search(self, brief: Brief, effort: Effort) -> Repairs | None:
        """One edit of the brief's source; None when there is nothing to search."""
        program = program_of(brief.source)
        ground = ground_of(brief, program, probe(brief, self._benches)) if program else None
        if program is None or ground is None:
            return None
        counts = shares(effort.counts, ground.probed)
        if not can_be_watched(program):
            return repairs(ground, lambda _: in_order(ground, counts), self._benches, effort)
        failing, working = looked_at(ground)
        cases = [case for case, _ in (*failing, *working)]
        with closing(self._benches.bench(brief.base, brief.path, cases, PROBE_TIMEOUT_S)) as bench:

            def order(meter: SearchBudget) -> Iterator[RankedEdit]:
                look = partial_of(_metered, bench, meter)
                seeing = foresight_of(failing, working, program, look)
                return seeing.in_order(in_order(ground, counts))

            return repairs(ground, order, self._benches, effort)

    def _second_edits(
        self, brief: Brief, firsts: Sequence[Proposal], used_s: float, effort: Effort
    ) -> Iterator[Proposal]:
        """What passes everything after one more edit of what passes some of it, or moves the failure."""
        known = set()
        for left, first in zip(range(len(firsts), 0, -1), firsts, strict=True):
            source, left_s = first.files[brief.path], (effort.cpu_s - used_s) / left
            then = self._search(
                replace(brief, source=source, max_candidates=1), replace(effort, cpu_s=left_s, partial=False)
            )
            used_s += then.effort.cpu_s if then else 0.0
            for second in then.proposals if then else ():
                if second.files[brief.path] not in known:  # the same two in the other order
                    known.add(second.files[brief.path])
                    yield both_edits(first, second)


def probe(brief: Brief, benches: Benches) -> Baseline:
    """Run the original: where it goes, what it answers, how long that takes."""
    tried, taken = [], []
    given = given_cases(brief)
    with closing(benches.bench(brief.base, brief.path, given, PROBE_TIMEOUT_S)) as bench:
        for case in range(len(given)):
            started = time.monotonic()
            tried.append(bench.try_source(brief.source, trace=True, cases=[case]))
            waited_s = time.monotonic() - started
            late = timed_out(tried[-1].outputs[0])
            taken.append(PROBE_TIMEOUT_S if late else tried[-1].cpu_s or waited_s)
    whole = BenchResult(
        tuple(one.passed[0] for one in tried),
        tuple(one.scores[0] for one in tried),
        tuple(one.outputs[0] for one in tried),
        tuple(one.lines[0] for one in tried),
        tuple(line for one in tried for line in (one.raised or (0,))),
    )
    ended = [seconds for seconds in taken if seconds < 0.9 * PROBE_TIMEOUT_S]
    return Baseline(whole, len(ended) < len(taken), max(ended, default=0.0))


def shipped_counts() -> Mapping[str, float]:
    """The table of edit kinds that comes with the program."""
    return read_prior(shipped.folder("evolver") / "edit_prior.toml")


def given_cases(brief: Brief) -> tuple[Case, ...]:
    """The brief's cases, then its working calls: a bench and all that is probed number them so."""
    return (*brief.cases, *(case for case, _ in brief.working_calls))


@dataclass(frozen=True, slots=True)
class SuspectFile:
    """One file that may be at fault, and what was seen of it."""

    brief: Brief  # its path and source are the file's
    program: Program | TextFile
    probed: Baseline
    evidence: tuple[int, ...]  # numbers of the cases that fail
    working: tuple[int, ...]  # and of those that work
    places: Mapping[int, float]  # suspicion by line
    made: list[int] = field(default_factory=list)  # how many edits each stretch of it had


@dataclass(frozen=True, slots=True)
class Repairs:
    """What a search found, best first, and how far it came."""

    proposals: Sequence[Proposal]
    effort: SearchEffort
    partial: bool = False  # they pass some of the evidence only
    moved: Sequence[Proposal] = ()  # where there is none: what passes nothing and moves the failure


def ground_of(brief: Brief, program: Program | TextFile, probed: Baseline) -> SuspectFile | None:
    """What there is to search; None when nothing fails any more."""
    evidence, working = sorted_out(brief, probed.tried)
    if not evidence:
        return None
    lines = probed.tried.lines
    if isinstance(program, TextFile):
        places: Mapping[int, float] = {}
    else:
        places = suspicion(program, [lines[c] for c in evidence], [lines[c] for c in working])
    return SuspectFile(brief, program, probed, evidence, working, places)


def stocks_in(ground: SuspectFile) -> Iterator[EditStock]:
    """The edits of the file that operators can make where failing calls come along, likeliest places first."""
    if isinstance(ground.program, TextFile):
        outputs = ground.probed.tried.outputs
        for stock in text_stocks(ground.program, ground.brief.cases, ground.evidence, outputs):
            ground.made.append(len(stock.plain))
            yield stock
        return
    facts = FileFacts(ground.program, given_names(ground.brief.cases))
    clues = read_failures(ground.brief.cases, ground.evidence, ground.probed.tried, ground.program)
    for stock in stocks(facts, ground.places, clues, endless=ground.probed.endless):
        ground.made.append(len(stock.plain))
        yield stock


def in_order(ground: SuspectFile, counts: Mapping[str, float]) -> Iterator[RankedEdit]:
    """The same, one after the other."""
    return in_turn(stocks_in(ground), counts)


def _made_already(order: Iterator[RankedEdit], _: SearchBudget) -> Iterator[RankedEdit]:
    return order


def _metered(bench: Bench, meter: SearchBudget, source: str) -> BenchResult:
    """All calls of the bench, on the search's account."""
    tried = bench.try_source(source)
    meter.used_s += tried.cpu_s
    return tried


def looked_at(ground: SuspectFile) -> tuple[Sequence[tuple[Case, Json]], Sequence[tuple[Case, Json]]]:
    """Failing calls whose values are looked at, and working ones, with the original's answers.

    Of those that fail and end, such whose answer is known first; of those that work, such that run what the failing ones run.
    """
    cases, outputs, lines = given_cases(ground.brief), ground.probed.tried.outputs, ground.probed.tried.lines

    def unfit(number: int) -> tuple[bool, bool, int]:
        known = any(check.kind == "equals" and "value" in check.spec for check in cases[number].checks)
        return timed_out(outputs[number]), not known, len(lines[number])

    failing = sorted(ground.evidence, key=unfit)[:LOOKED_AT]
    ran = {line for number in failing for line in lines[number]}
    working = sorted(ground.working, key=lambda number: len(ran.difference(lines[number])))[:LOOKED_AT]
    return [(cases[n], outputs[n]) for n in failing], [(cases[n], outputs[n]) for n in working]


def repairs(
    ground: SuspectFile,
    order: Callable[[SearchBudget], Iterable[RankedEdit]],
    benches: Benches,
    effort: Effort,
) -> Repairs:
    """Of these edits those that are worth a replay.

    All benches are closed when it returns: whoever replays needs the room.
    """
    brief, probed = ground.brief, ground.probed
    given, lines = given_cases(brief), probed.tried.lines
    about = SearchFindings(
        tuple(given[c].task_id for c in ground.evidence),
        ground.places,
        [(given[c].task_id, lines[c]) for c in ground.working],
    )
    cases = (*given, *generate(given, effort.generated, ground.program.tree))
    least_s, most_s = effort.timeouts_s
    timeout_s = min(most_s, max(least_s, 5 * probed.slowest_s))
    with ExitStack() as stack:
        opened = []
        for _ in range(effort.workers):
            bench = benches.bench(brief.base, brief.path, cases, timeout_s)
            opened.append(stack.enter_context(closing(bench)))
        plan = SearchPlan(
            ground.evidence,
            ground.working,
            range(len(given), len(cases)),
            probed.tried.outputs,
            checked=len(brief.cases),
        )
        some = effort.partial and len(ground.evidence) > 1
        meter = SearchBudget(effort.cpu_s * (FULL if some else 1.0), effort.deadline)
        search = Search(
            ground.program,
            plan,
            meter,
            slow_s=0.8 * timeout_s,
            hopeless=effort.hopeless,
            veto=partial_of(_defuses, brief),
            past=stack.enter_context(_tried_before(brief, plan, effort, partial=False)),
            nearness=Nearness(given, plan.old) if some else None,
        )
        full = search
        found, search = _searched(brief, full, order, opened, effort)
        proposals = _proposals(brief, search, found, opened[0], about)
        movers = [*full.moved, *search.moved] if some and not proposals else []
        first = partial_of(proposal_of, brief, full, found=about)
        moved = first_edits(full, movers, probed.tried.raised, opened[0], first)
    used, tried, before = search.meter.used_s, search.tried, search.before
    partial = search.partial and not any(
        len(each.predicted_fixes) == len(ground.evidence) for each in proposals
    )
    known = max(before + tried, sum(ground.made))  # guards are made one by one, when their turn comes
    effort_made = SearchEffort(tried, known, used, search.exhausted, before, (brief.path,))
    return Repairs(proposals, effort_made, partial, moved)


def _tried_before(brief: Brief, plan: SearchPlan, effort: Effort, *, partial: bool) -> TriedBefore:
    """What was tried before of the same. All that decides whether an edit fails on a case is in what it is about.

    A partial search counts an edit as failed that passes none of the evidence: so it is about all of it.
    """
    given = given_cases(brief)

    def asked(number: int) -> bytes:
        case = given[number]
        return repr((case.call, case.checks, sorted(case.inputs.items()))).encode()

    cases = {number: asked(number) for number in plan.evidence}
    cases |= {number: asked(number) + repr(plan.old[number]).encode() for number in plan.working}
    program = (TRIALS, __version__, sys.version, sorted(cases.items()) if partial else None)
    about = repr((program, brief.base.tree, brief.path, brief.source)).encode()
    return TriedBefore(effort.kept, about, cases)


def _defuses(brief: Brief, source: str) -> bool:
    """Whether the edit passes only because it gets past the raise that is the evidence."""
    checked = any(case.checks for case in brief.cases)
    return bool(defused({brief.path: brief.source}, {brief.path: source}, brief.faults, checked=checked))


def shares(counts: Mapping[str, float], probed: Baseline) -> Mapping[str, float]:
    """The table; where calls do not end, a missing step is more likely than among programs that do."""
    missing = 10.0 if probed.endless else 1.0
    return {**counts, "insert statement": missing * counts.get("insert statement", 1.0)}


def sorted_out(brief: Brief, tried: BenchResult) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of the cases that fail, and of those that work: pass now, or answer now as they did."""
    count = len(brief.cases)
    evidence = tuple(case for case in range(count) if not tried.passed[case])
    working = [case for case in range(count) if tried.passed[case]]
    for case, (_, answer) in enumerate(brief.working_calls, count):
        if same(tried.outputs[case], answer):
            working.append(case)
    return evidence, tuple(working)


def _searched(
    brief: Brief,
    search: Search,
    order: Callable[[SearchBudget], Iterable[RankedEdit]],
    benches: Sequence[Bench],
    effort: Effort,
) -> tuple[Sequence[Plausible], Search]:
    """Full fixes; where there is none, perhaps what passes some of the evidence. With the search that found them."""
    found = search.run(order(search.meter), benches)
    if found or not effort.partial or len(search.plan.evidence) < 2:
        return found, search
    with _tried_before(brief, search.plan, effort, partial=True) as past:
        more = replace(search.meter, cpu_s=(MOVED if search.moved else PARTIAL) * effort.cpu_s)
        again = replace(search, partial=True, meter=more, past=past)
        found = again.run(order(again.meter), benches)
    return found, again if found else search


def _proposals(
    brief: Brief, search: Search, found: Sequence[Plausible], bench: Bench, about: SearchFindings
) -> list[Proposal]:
    """One for each behaviour among the plausible edits that pass the most."""
    if not found:
        return []
    old = bench.try_source(brief.source, cases=search.plan.generated).outputs
    most = max(sum(p.passed) for p in found)
    failures = raised([search.plan.old[case] for case in search.plan.evidence])
    behaviours = hypotheses(search.program, old, [p for p in found if sum(p.passed) == most], failures)
    about = replace(about, alternatives=len(behaviours) - 1)
    return [proposal_of(brief, search, one, about) for one in behaviours[: brief.max_candidates]]
