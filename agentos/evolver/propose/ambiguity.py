"""Whether what is known tells an edit of a tool from others that would mend the same failure.

The others are those that its proposer found, and mutants of the edit itself. Several edits may pass all tasks, shown and
hidden, and differ elsewhere: then nobody knows which is meant, and an input on which two of them answer differently is a
question for a person. And an edit of lines that no working call runs has nothing to be held against. Neither refuses it.
"""

from __future__ import annotations

import hmac
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice

from agentos.benches import (
    GONE,
    LOST,
    Bench,
    BenchResult,
    alike,
    answers_alike,
    error_of,
    failed,
    is_cut,
    nothing_ended,
    one_fault,
    passes,
    settled,
    unsteady,
)
from agentos.domain import Ambiguity, Candidate, Json, canonical
from agentos.evolver.find.mining import called_path
from agentos.evolver.propose import BehaviourContext
from agentos.evolver.propose.case_variants import with_more_entries, with_other_spans, with_signs_before
from agentos.evolver.propose.edit_mutants import decided, left_out, loosened, mutants
from agentos.evolver.propose.moot_mutants import constant_tests, edited_lines, idle, near_texts
from agentos.evolver.propose.neighbours import (
    Neighbour,
    Rewritten,
    bared,
    crossed,
    filled,
    levelled,
    limits,
    neighbours,
    rewritten,
    spelled,
    stepped,
    usual,
)
from agentos.evolver.propose.symptoms import EditFindings, Known, call_told, noise, parted, short, symptoms
from agentos.evolver.select.curate import TaskSets, case_of
from agentos.ports import Case
from agentos.resources import is_tool_file

_FEW = 24  # inputs that are tried at once, where one is likely to say it
_NO_END = (*LOST, "memory")
_UNFIT = (*_NO_END, "RecursionError")  # of an edit, wherever the base comes to an end
_NOT_TAKEN = ("input", *LOST)
# Nobody means that: no end, or a name that the mutant itself left without a value.
_NOT_MEANT = (*LOST, "RecursionError", "NameError", "UnboundLocalError")
_LATER_GUARDS = 3  # of an edit that none of the work known before it guards


def findings(
    parts: BehaviourContext, candidate: Candidate, path: str, sets: TaskSets, later: Set[str] = frozenset()
) -> EditFindings:
    """Of an edit of the tool at this path, held against the other candidates of its evolution.

    ``later``: of the sets, tasks that came after the edit, and that it passes.
    """
    assert parts.benches is not None
    hidden = (*sets.held_back, *sets.hold_out)
    shown = sorted((*sets.shown, *sets.guards), key=lambda task_id: task_id in later)
    tasks = [
        task
        for task in parts.tasks((*shown, *hidden))
        if task.call is not None and task.checks and task.id not in sets.varying
    ]
    paths = {task.id: called_path(parts.journal, task) for task in tasks}
    called = [paths[task.id] for task in tasks if task.id in sets.evidence]
    if not called:  # work without checks, about which a person is asked in any case
        return EditFindings()
    folder = path.rpartition("/")[0]
    own_path = (
        path if path in called else next((each for each in called if each.rpartition("/")[0] == folder), "")
    )
    # By its path: one tool has several names. And code of one is not tried on calls of another.
    tasks = [task for task in tasks if paths[task.id] == own_path]
    if not own_path or (is_tool_file(path) and own_path != path):
        return EditFindings(untried="no checked task calls it")
    others = [
        item
        for item in parts.records.find(Candidate, evolution_id=candidate.evolution_id)
        if item.id != candidate.id and not item.screened and set(item.edit.files) == {path}
    ]
    rules = parts.policy.replay
    rivals = {item.id: item.edit.files[path] for item in others}
    known = Known(
        [case_of(parts, task) for task in tasks],
        {number for number, task in enumerate(tasks) if task.id not in sets.evidence},
        hmac.digest(parts.consent_key, f"rivals {candidate.evolution_id}".encode(), "sha256"),
        rules,
        {item.id: item.weight for item in others if item.weight},
        rules.rival_share * candidate.weight,
        {number for number, task in enumerate(tasks) if task.id in hidden},
        candidate.weight,
        {number for number, task in enumerate(tasks) if task.id in later},
    )
    text = parts.snapshots.files(candidate.base, path)[path].decode("utf-8", "replace")
    # Python reads both ends of lines alike: one who wrote the other has not changed every line.
    old, own = (each.replace("\r\n", "\n") for each in (text, candidate.edit.files[path]))

    def opened(cases: Sequence[Case]) -> Bench:
        assert parts.benches is not None
        # With what else it edits, of which the old source may make nothing.
        alone = set(candidate.edit.files) == {path}
        snapshot = candidate.base if alone else candidate.snapshot
        return parts.benches.bench(snapshot, path, cases, rules.neighbour_s)

    return compared(opened, known, old, own, rivals)


def compared(
    opened: Callable[[Sequence[Case]], Bench], known: Known, old: str, own: str, found: Mapping[str, str]
) -> EditFindings:
    """Of the edit that makes ``own`` of the old text, held against what else was ``found`` and its mutants, in one bench.

    Of the known tasks those that are hidden stand last.
    """
    rivals = {**found, **mutants(old, own, known.rules.mutants)}
    # What may be told first: from hidden tasks no input is made that a person, and later a proposer, reads.
    open_tasks = [case for number, case in enumerate(known.tasks) if number not in known.hidden]
    # Constants of all of them: inputs on both sides of each bound that one of them has.
    sources = (old, own, "\n".join((old, own, *rivals.values())))
    texts = [*near_texts(old, own), *left_out(old, own)]
    drawn, more = _draw(known, open_tasks, known.tasks, sources, texts), 0
    if known.later:
        # What was asked about is put again, with just these inputs, or an edit could get past by the draw.
        before = [case for number, case in enumerate(known.tasks) if number not in known.later]
        shown = [case for number, case in enumerate(open_tasks) if number not in known.later]
        earlier = _draw(known, shown, before, sources, texts)
        added = [item for item in drawn if item not in earlier]
        drawn, more = [*earlier, *added], len(added)
    put = rewritten(open_tasks, sources[-1], texts) if known.rules.symptom_min else []
    cases = [*known.tasks, *(item.case for item in drawn), *(item.case for item in put)]
    with closing(opened(cases)) as bench:
        return EditExamination(bench, known, drawn, put, old, own, more).findings(rivals)


def _draw(
    known: Known, shown: Sequence[Case], tasks: Sequence[Case], sources: Sequence[str], texts: Sequence[str]
) -> list[Neighbour]:
    """Inputs made of the ``shown`` of the ``tasks``; the ``sources`` are the base's, the edit's, and all in one."""
    (old, own, every), rules, key = sources, known.rules, known.key
    drawn = crossed(shown, known.working, rules.crossed) + limits(shown)
    spans, entries = with_other_spans(shown, known.working), with_more_entries(shown, old)
    for others in (spans, entries, with_signs_before(shown, old, own)):
        drawn += [Neighbour(case, number, name) for number, name, case in islice(others, rules.spelled)]
    drawn += stepped(shown, key, rules.stepped)
    drawn += levelled(shown, old, key, rules.stepped)
    drawn += filled(shown, key, rules.spelled)
    drawn += spelled(shown, texts, key, rules.spelled)
    drawn += bared(shown, key, rules.spelled // 2)
    drawn += neighbours(shown, every, key, rules.drawn * rules.neighbours, unsaid=True)
    return usual(drawn, tasks)


@dataclass(frozen=True, slots=True)
class EditExamination:
    """An edit in one bench, which holds the known tasks, what was drawn, and tasks put otherwise: all go by their numbers."""

    bench: Bench
    known: Known
    drawn: Sequence[Neighbour]
    put: Sequence[Rewritten]
    old: str
    own: str  # the old text, edited
    more: int = 0  # of what was drawn, so many at its end were made with tasks that came after the edit
    # of the edit, as far as they were asked for
    answers: dict[int, Json] = field(default_factory=dict, compare=False)
    lost: set[str] = field(default_factory=set, compare=False)

    def findings(self, rivals: Mapping[str, str]) -> EditFindings:
        """Of the edit, held against these other texts, by their names."""
        known, tasks = self.known, range(self._count)
        before = settled(
            self.bench, self.old, range(self._count + len(self.drawn) + len(self.put)), trace=True
        )
        if any(failed(output, *GONE) for output in before.outputs):
            self.lost.add("")
        done = settled(self.bench, self.own, tasks)
        self.answers.update(enumerate(done.outputs))
        if why := nothing_ended(before.outputs, done.outputs, self._kinds(before)):
            return EditFindings(untried=why)
        lines = edited_lines(self.old, self.own)
        steady = [number for number in known.working if before.passed[number]]
        guards = [number for number in steady if not lines.isdisjoint(before.lines[number])]
        enough = not set(guards) <= known.later or len(guards) >= _LATER_GUARDS
        unguarded = not (guards and enough) if lines and known.working else None
        if hangs := self._hangs(before, lines):
            return EditFindings(unguarded=unguarded, breaks=hangs)  # it would do so over and over below
        unmended = self._still_raises(before) or self._still_wrong(before, done)
        breaks = self._breaks(before)
        needed = [number for number in tasks if done.passed[number]]
        passed = {name: passes(self.bench, source, needed) for name, source in rivals.items()}
        standing = {name: rivals[name] for name, good in passed.items() if good}
        self.lost.update(name for name, good in passed.items() if good is None)
        # Hidden tasks were not known to the search, so what they leave of its belief is divided anew.
        left = known.weight + sum(known.weights.get(name, 0.0) for name in standing)
        share = known.weight / left if left else 0.0
        idle_parts, accepted = self._without(before, lines), self._accepts(before)
        seen = EditFindings(
            None, unguarded, unmended, breaks, *idle_parts, self._loosened(before), share,
            accepted=accepted, noise=self._noise(before, done),
            depends=self._depends(before, done) or self._unsteady(before),
        )  # fmt: skip
        self.lost.update({""} if any(failed(output, *GONE) for output in self.answers.values()) else ())
        if not standing:
            return replace(seen, lost=frozenset(self.lost))
        about = lines.union(*(edited_lines(self.old, source) for source in standing.values()))
        found, names = self._question(standing, self._reaching(before, about))
        return replace(seen, ambiguity=found, rivals=names, lost=frozenset(self.lost))

    @property
    def _count(self) -> int:
        return len(self.known.tasks)

    def _outputs(self, numbers: Sequence[int]) -> Sequence[Json]:
        """Of the edit. Each call is made once, for all questions; but for one that had no end: a busy machine makes such."""
        asked = [n for n in numbers if n not in self.answers or failed(self.answers[n], *LOST)]
        if asked:
            done = self.bench.try_source(self.own, cases=asked).outputs
            self.answers.update(zip(asked, done, strict=True))
        return [self.answers[number] for number in numbers]

    def _call(self, number: int) -> str:
        return call_told(self.drawn[number - self._count], self.known.tasks)

    def _reaching(self, before: BenchResult, about: Set[int]) -> list[int]:
        """Drawn inputs that the tool takes, those first on which it runs what is edited; as many as are compared.

        One on which it ends as with the evidence is taken: there an edit does what it is for.
        """
        rules, start = self.known.rules, self._count
        not_taken = {*_NOT_TAKEN} - self._kinds(before) | {*GONE}
        most = rules.crossed + 2 * (rules.stepped + rules.spelled) + rules.neighbours
        chosen, end = list[int](), start + len(self.drawn)
        for numbers in (range(start, end - self.more), range(end - self.more, end)):
            taken = [number for number in numbers if error_of(before.outputs[number]) not in not_taken]
            chosen += sorted(taken, key=lambda number: about.isdisjoint(before.lines[number]))[:most]
        return chosen

    def _without(self, before: BenchResult, lines: Set[int]) -> tuple[str, str]:
        """What it writes without which all answers are the same, and a test that could as well be constant; "" for none."""
        if not self.known.rules.mutants:
            return "", ""
        kinds = (idle(self.old, self.own), constant_tests(self.old, self.own))
        tried = [*range(self._count), *self._reaching(before, lines)] if any(kinds) else []
        mine = self._outputs(tried)
        first, second = (
            next((words for words, text in kind.items() if answers_alike(self.bench, text, tried, mine)), "")
            for kind in kinds
        )
        return first, second

    def _loosened(self, before: BenchResult) -> str:
        """What it takes away, unless working tasks fail without it: who passes these does the same in another way."""
        needed = [number for number in self.known.working if before.passed[number]]
        texts = decided(self.old, self.own) if needed else []
        shown = texts and not any(passes(self.bench, text, needed) is not False for text in texts)
        return "" if shown else loosened(self.old, self.own)

    def _still_raises(self, before: BenchResult) -> str:
        """A call made of evidence and another task that ends by the evidence's own exception."""
        kinds = self._kinds(before)
        tried = [
            number
            for number, item in enumerate(self.drawn, start=self._count)
            if kinds and _is_crossed(item, self.known)
        ]
        still = zip(tried, self._outputs(tried), strict=True)
        return next((self._call(number) for number, output in still if error_of(output) in kinds), "")

    def _kinds(self, before: BenchResult) -> set[str]:
        """The exceptions by which the evidence ends."""
        evidence = (number for number in range(self._count) if number not in self.known.working)
        return {error_of(before.outputs[number]) for number in evidence} - {""}

    def _breaks(self, before: BenchResult) -> str:
        """Only at limits: of what is malformed a right edit may rightly make nothing."""
        least = [item.case for item in limits(self.known.tasks)]
        at = [
            number
            for number, item in enumerate(self.drawn, start=self._count)
            if item.case in least and not failed(before.outputs[number])
        ]
        for number, output in zip(at, self._outputs(at), strict=True):
            if failed(output):  # also one that its ``Input`` does not take any more
                return f"{self._call(number)} by {short(output)}"
        return ""

    def _accepts(self, before: BenchResult) -> str:
        """A call that the base ends by an exception which none of the evidence has, and the edit answers.

        Only where all evidence ends by one and the same: a default for the one key that was missing is one for every
        other key, too. Where the evidence ends by several, it says itself how far they reach.
        """
        known, tasks = self.known, range(self._count)
        open_evidence = (number for number in tasks if number not in known.working | known.hidden)
        shown = [before.outputs[number] for number in open_evidence if not before.passed[number]]
        if not shown or not failed(shown[0]) or any(output != shown[0] for output in shown):
            return ""
        tried = [
            number
            for number in self._reaching(before, set())
            if failed(output := before.outputs[number])
            and not failed(output, *LOST)
            and not one_fault(output, shown[0])
        ]
        answers = zip(tried, self._outputs(tried), strict=True)
        taken = [number for number, answer in answers if not failed(answer)]
        first = min(taken, key=lambda number: len(self._call(number)), default=-1)
        return f"{self._call(first)} ({short(before.outputs[first])})" if taken else ""

    def _noise(self, before: BenchResult, done: BenchResult) -> str:
        """A call with such a float in the edit's answer, and in no right answer nor the base's to it."""
        if any(noise(answer) for answer in done.outputs):
            return ""
        chosen = [number for number in self._reaching(before, set()) if not noise(before.outputs[number])]
        answers = zip(chosen, self._outputs(chosen), strict=True)
        noisy = ((number, found) for number, answer in answers if (found := noise(answer)))
        return next((f"{self._call(number)}: {found[0]!r}" for number, found in noisy), "")

    def _depends(self, before: BenchResult, done: BenchResult) -> str:
        """A passed task with which it does not what is to be expected as the task is put, and the base does with all that work."""
        start, least = self._count + len(self.drawn), self.known.rules.symptom_min
        numbers = range(start, start + len(self.put))
        pairs = [*zip(self.put, before.outputs[start:], self._outputs(numbers), strict=True)]
        steady: dict[str, list[bool]] = defaultdict(list)
        kinds = self._kinds(before)  # who ends by the very fault there says nothing
        for item, was, _ in pairs:
            told = before.passed[item.of] or (item.faulty and not failed(before.outputs[item.of]))
            if told and error_of(was) not in kinds and not (failed(was, *LOST) or is_cut(was)):
                steady[item.says].append(item.expect(before.outputs[item.of], was))
        for item, _, now in pairs:
            if item.faulty and failed(before.outputs[item.of]):
                continue  # the base says nothing of it
            kept = steady[item.says]
            counts = len(kept) >= least and all(kept) and done.passed[item.of]
            if counts and not item.expect(done.outputs[item.of], now):
                call = dict(self.known.tasks[item.of].call.args)
                return f"{short(call)} {item.says}: {short(now)}"
        return ""

    def _hangs(self, before: BenchResult, lines: Set[int]) -> str:
        """Anywhere: of what is malformed a right edit may make nothing, but it ends, and needs no more memory than there is."""
        chosen = self._reaching(before, lines) if self.known.rules.mutants else []
        chosen = [number for number in chosen if not failed(before.outputs[number], *_UNFIT)]
        for start in range(0, len(chosen), _FEW):
            some = chosen[start : start + _FEW]
            for number, output in zip(some, self._outputs(some), strict=True):
                # Once more, by itself: what ran before it may have left it slow, or without memory.
                if failed(output, *_UNFIT):
                    self.answers.pop(number)
                    if failed(again := self._outputs([number])[0], *_UNFIT):
                        told = "it does not end" if failed(again, "timeout") else short(again)
                        return f"{self._call(number)}: {told}"
        return ""

    def _unsteady(self, before: BenchResult) -> str:
        """A call, no hidden one, that it answers otherwise when asked again, after others than at first, and its base does not."""
        if not self.known.rules.mutants:
            return ""
        asked = [*({*range(self._count)} - self.known.hidden), *self._reaching(before, set())[:_FEW]][::-1]
        found = unsteady(self.bench, (self.old, self.own), asked, (before.outputs, self._outputs(asked)))
        if found is None:
            return ""
        number, then = found
        known = number < self._count
        call = short(dict(self.known.tasks[number].call.args)) if known else self._call(number)
        return f"{call} asked again: {short(then)}, and before {short(self.answers[number])}"

    def _still_wrong(self, before: BenchResult, done: BenchResult) -> str:
        """A call whose answer lacks what those of the evidence lacked, and each right one has: with what it lacks.

        ``before`` is the base on all calls, ``done`` the edit on the tasks.
        """
        known, tasks = self.known, range(self._count)
        right = [done.outputs[number] for number in tasks if done.passed[number]]
        wrong = [
            before.outputs[number]
            for number in tasks
            if not before.passed[number] and number not in known.hidden and not failed(before.outputs[number])
        ]
        least = known.rules.symptom_min
        shown = symptoms(right, wrong, least) if least else []
        chosen = self._reaching(before, set()) if shown else []
        answers = self._outputs(chosen)
        for symptom in shown:
            left = [
                number
                for number, answer in zip(chosen, answers, strict=True)
                if not failed(answer) and symptom.holds(answer) is False
            ]
            # Of inputs that nobody gives, a clock of 94:00, a right edit may leave some.
            there = {number for number in chosen if symptom.holds(before.outputs[number]) is False} | {*left}
            if left and len(left) >= known.rules.symptom_share * len(there):
                return f"{self._call(left[0])}, where {symptom.says}"
        return ""

    def _question(
        self, rivals: Mapping[str, str], chosen: Sequence[int]
    ) -> tuple[Ambiguity | None, Sequence[str]]:
        """The call that tells the edit from a rival of weight best, one that both answer, and a short one; all such rivals."""
        known = self.known
        mine = self._outputs(chosen)
        answers = {
            name: settled(self.bench, source, chosen).outputs if chosen else ()
            for name, source in rivals.items()
        }
        # Rivals that answer alike are one behaviour: its weight may be spread over several edits.
        together: dict[bytes, float] = defaultdict(float)
        for name, outputs in answers.items():
            together[canonical([*outputs])] += known.weights.get(name, math.inf)
        asked: list[tuple[tuple[bool, int], Ambiguity]] = []
        differing: dict[str, None] = {}
        for name, outputs in answers.items():
            if any(failed(output, *GONE) for output in outputs):
                self.lost.add(name)
            if together[canonical([*outputs])] < known.least:
                continue
            # Of one that answered nothing at all nobody knows what it means.
            silent = len(outputs) >= known.rules.along_min and all(failed(each, *LOST) for each in outputs)
            for number, one, other in zip(chosen, mine, outputs, strict=True):
                if alike(one, other) or (failed(other, *_NOT_MEANT) and not silent):
                    continue
                differing[name] = None
                call = self._call(number)
                here, there = parted(one, other)
                about_it = Ambiguity(0, call, short(here), short(there), name)
                asked.append(((failed(one) or failed(other), len(call)), about_it))
        first = min(asked, key=lambda item: item[0])[1] if asked else None
        return replace(first, rivals=len(differing)) if first else None, [*differing]


def _is_crossed(item: Neighbour, known: Known) -> bool:
    value = item.case.call.args.get(item.along)
    given = (task.call.args.get(item.along) for task in known.tasks)
    return item.of not in known.working and item.along not in item.case.inputs and value in given
