"""What proposers achieved: who is asked first, and how well they know what their edits do.

Asking goes on until something is found, so what is spent in vain is least when those come first whose chance
of success is large for what they cost: the ratio of the two is the best order of independent tests of which
the first success ends the row (Mitten, J. Industrial Engineering 11, 1960; Weitzman, Econometrica 47, 1979).
The ratio is a rate: successes in a second of cost. What is known of it is the mean of a gamma distribution,
``(1 + successes) / (prior + cost)``: before anything is known it follows the order that was given, cheapest
first, and each place in that order has to be outdone by experience.

A function of the ledger alone: the same ledger gives the same order, without chance.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from agentos.domain import (
    PROMOTED_STATES,
    WITHOUT_SUCCESS,
    Arm,
    Attestation,
    Candidate,
    Cost,
    Decision,
    EditTarget,
    Evolution,
    Layer,
    Parent,
    ProposerCost,
    SearchEffort,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.evolver.history import AFTER_PROBATION, HistoryContext
from agentos.evolver.policy import ProposePolicy
from agentos.evolver.verdict.paired_tests import PairTally, log_e_above
from agentos.evolver.verdict.pairing import counted, judged_trials
from agentos.ports import Proposal

if TYPE_CHECKING:
    from agentos.ports import Records

T = TypeVar("T")

GOOD = frozenset({"effective", "partly"})  # labels of an attestation after probation


@dataclass(frozen=True, slots=True)
class ProposerYield:
    """What came of asking someone, as far as it is known."""

    asked: int = 0
    promoted: int = 0
    effective: int = 0  # of the promoted ones, those that stand and were not attested otherwise
    cost_s: float = 0.0  # seconds of asking, CPU seconds of trials, and money as time

    def __add__(self, other: ProposerYield) -> ProposerYield:
        return ProposerYield(
            self.asked + other.asked,
            self.promoted + other.promoted,
            self.effective + other.effective,
            self.cost_s + other.cost_s,
        )


NOTHING = ProposerYield()
Archive = Mapping[tuple[str, Layer], ProposerYield]


def archive(parts: HistoryContext) -> Archive:
    """By proposer and layer, what came of asking it in the newest evolutions that are over or on probation."""
    found: dict[tuple[str, Layer], ProposerYield] = {}
    newest = parts.records.newest(Evolution, parts.policy.look_back.evolutions)
    over = [item for item in newest if item.asked and item.state in {*PROMOTED_STATES, *WITHOUT_SUCCESS}]
    promoted = [item for item in over if item.promoted and item.candidate_id]
    winners = _winners(parts, frozenset(str(item.candidate_id) for item in promoted))
    labels: dict[str, set[str]] = {}
    for label in parts.records.find(Attestation, evolution_id=frozenset(item.id for item in promoted)):
        if label.when == AFTER_PROBATION:
            labels.setdefault(label.evolution_id, set()).add(label.verdict)
    for past in over:
        won = winners.get(past.candidate_id or "") if past.promoted else None
        stands = won is not None and past.state in PROMOTED_STATES and labels.get(past.id, set()) <= GOOD
        for asked in past.asked:
            key = (asked.proposer, asked.layer)
            first, won = key == won, None if key == won else won  # of several sites in a layer, one
            cost_s = asked.seconds + asked.cpu_s + parts.policy.propose.dollar_s * asked.usd
            achieved = ProposerYield(1, int(first), int(first and stands), cost_s)
            found[key] = found.get(key, NOTHING) + achieved
    return found


def _winners(parts: HistoryContext, names: frozenset[str]) -> Mapping[str, tuple[str, Layer]]:
    """Who proposed these candidates, and in which layer.

    Whole files are in a candidate, and hundreds are asked for again and again: these words of it never change.
    """
    known = parts.winners
    if missing := names.difference(known):
        found = parts.records.find(Candidate, id=missing)
        known |= {item.id: (item.proposer, item.manifest.layer) for item in found}
    return known


def ordered(items: Sequence[T], achieved: Callable[[T], ProposerYield], rules: ProposePolicy) -> list[T]:
    """The items with most successes per cost first; ``items`` come in the order that holds until more is known."""

    def rate(place: int) -> float:
        found = achieved(items[place])
        return (1 + found.effective) / (rules.hope_s * rules.falls_by**place + found.cost_s)

    return [items[place] for place in sorted(range(len(items)), key=rate, reverse=True)]


def by_layer(known: Archive, layer: Layer) -> ProposerYield:
    """All proposers of a layer together."""
    return sum((found for (_, where), found in known.items() if where is layer), NOTHING)


# --- what asking costs --------------------------------------------------------------------------


class ProposerMeter:
    """Counts what each proposer is asked for in one evolution. ``clock`` gives aware times."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._asked: list[ProposerCost] = []

    def timed(self, proposer: str, layer: Layer, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        """The same proposals; the time in which the proposer worked on them is counted, also of none.

        A search that returns how far it came is quoted.
        """
        own = len(self._asked)
        self._asked.append(ProposerCost(proposer, layer, 0.0))
        source = iter(proposals)
        while True:
            began = self._clock()
            came: object = None
            proposal: Proposal | None = None
            try:
                proposal = next(source)
            except StopIteration as end:
                came = end.value
            finally:
                took = (self._clock() - began).total_seconds()
                before = self._asked[own]
                search = came if isinstance(came, SearchEffort) else before.search
                self._asked[own] = replace(before, seconds=before.seconds + max(took, 0.0), search=search)
            if proposal is None:
                return
            yield proposal

    @property
    def asked(self) -> tuple[ProposerCost, ...]:
        """In the order of asking."""
        return tuple(self._asked)


def charged(parts: HistoryContext, evolution: Evolution) -> Evolution:
    """The same with what the trials of each proposer's candidates cost; the base's are nobody's."""
    found = parts.records.find(Candidate, evolution_id=evolution.id)
    who = {item.id: (item.proposer, item.manifest.layer) for item in found}
    costs: dict[tuple[str, Layer], list[Cost]] = {}
    for trial in parts.records.find(Trial, evolution_id=evolution.id):
        if trial.candidate_id in who:
            costs.setdefault(who[trial.candidate_id], []).append(trial.outcome.cost)
    asked = []
    for item in evolution.asked:
        spent = costs.pop((item.proposer, item.layer), [])  # of several sites in a layer, with the first
        cpu_s = sum(cost.cpu_s for cost in spent)
        asked.append(replace(item, cpu_s=cpu_s, usd=sum(cost.usd or 0.0 for cost in spent)))
    return replace(evolution, asked=tuple(asked))


# -------------------------------------------------------------------------------------------------
# Which earlier edit of a failure is worth starting from: the one that came closest, chosen with
# regard to noise.
# Of many edits that do nothing one had luck. So what counts is not the gain that was seen but the lower bound
# of it: a smaller one that was seen more often goes before a larger one that was seen twice.


DIFF_MAX = 6_000  # characters


def parents_for(parts: HistoryContext, evolution: Evolution, site: EditTarget) -> tuple[Parent, ...]:
    """The edit of an earlier evolution of this failure that came closest without being promoted; or none.

    Trials of the hold-out have no part in it, because what is chosen is shown.
    """
    close = max(_close(parts, evolution, site), key=lambda found: found[:2], default=None)
    return (close[2],) if close else ()


def _close(
    parts: HistoryContext, evolution: Evolution, site: EditTarget
) -> Iterator[tuple[float, str, Parent]]:
    """Those that did more good than harm: lower bound of the gain, id, and how it is shown.

    Of evolutions since the last that succeeded: what it promoted is what the edit starts from.
    """
    for past in parts.records.newest(
        Evolution, parts.policy.look_back.parents, fingerprint_id=evolution.fingerprint_id
    ):
        if past.id == evolution.id:
            continue
        if past.state in PROMOTED_STATES:
            return
        tried = {
            item.candidate_id
            for item in parts.records.find(Verdict, evolution_id=past.id)
            if item.decision is not Decision.PROMOTE
        }
        found = [item for item in parts.records.find(Candidate, evolution_id=past.id) if item.id in tried]
        fitting = [item for item in found if _fits(item, site)]
        trials = parts.records.find(Trial, evolution_id=past.id) if fitting else ()
        for candidate in fitting:
            seen = pairs_in(judged_trials(candidate, trials))
            diff = _diff(parts, candidate) if seen.wins > seen.losses else ""
            if 0 < len(diff) <= DIFF_MAX:
                parent = Parent(candidate.id, candidate.manifest.edit, diff, _says(seen))
                yield lower_bound(seen, parts.policy.propose.parent_chance), candidate.id, parent


def lower_bound(seen: PairTally, chance: float) -> float:
    """What the mean advantage is above, with a chance of at most ``chance`` to be wrong; -1 where nothing is known.

    The largest mean against which the judge's bets are won (``paired_tests``).
    """
    low, high = -1.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        won = log_e_above(seen, middle) >= math.log(1 / chance)
        low, high = (middle, high) if won else (low, middle)
    return low


def _fits(candidate: Candidate, site: EditTarget) -> bool:
    return candidate.manifest.layer is site.layer and (not site.path or site.path in candidate.manifest.files)


def pairs_in(trials: Sequence[Trial]) -> PairTally:
    """The pairs of the evidence, and those of guards that came out differently on the two sides."""
    sides: dict[tuple[str, int], dict[Arm, Trial]] = {}
    for trial in counted(trials):
        if trial.set not in (TrialSet.HOLD_OUT, TrialSet.FRESH) and not trial.alike:
            sides.setdefault((trial.task_id, trial.repeat), {})[trial.arm] = trial
    found = {1: 0, 0: 0, -1: 0}
    for pair in sides.values():
        if Arm.BASE in pair and Arm.CANDIDATE in pair:
            gain = pair[Arm.CANDIDATE].passed - pair[Arm.BASE].passed
            found[gain] += bool(gain) or pair[Arm.CANDIDATE].set is TrialSet.EVIDENCE
    return PairTally(found[1], found[0], found[-1])


def _says(seen: PairTally) -> str:
    return (
        f"better than without it in {seen.wins:g} and worse in {seen.losses:g} of {seen.pairs:g} trials "
        "of what fails, or of what worked and came out differently"
    )


def _diff(parts: HistoryContext, candidate: Candidate) -> str:
    lines: list[str] = []
    for path, text in sorted(candidate.edit.files.items()):
        before = parts.snapshots.files(candidate.base, path).get(path, b"").decode("utf-8", "replace")
        lines += difflib.unified_diff(before.splitlines(), text.splitlines(), path, path, lineterm="")
    return "\n".join(lines)


# --- How well do proposers know what their edits do? What was predicted beside what was observed.
# The replay is what was observed of every edit that was tried, promoted or not; live use adds its word on those
# that were promoted. A table for people, and a few sentences that whoever proposes next gets with the evidence.
# Counts only: no task is named here, so that a hidden one cannot be.


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """What one proposer, with one model, achieved in one layer; "" as ``model`` where none was asked."""

    proposer: str
    model: str
    layer: str
    proposed: int = 0
    refused: int = 0  # by the screen, untried
    tried: int = 0
    accepted: int = 0  # by a verdict
    predicted: int = 0  # fixes, of all that were tried
    came_true: int = 0
    fixed: int = 0  # tasks, foreseen or not
    broken: int = 0
    foreseen: int = 0  # of the broken ones
    labels: Mapping[str, int] = field(default_factory=dict)  # after probation

    @property
    def precision(self) -> float | None:
        """Of the predicted fixes, the share that came true; None without any."""
        return self.came_true / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        """Of the fixes, the share that was predicted; None without any."""
        return self.came_true / self.fixed if self.fixed else None


def calibrate(
    candidates: Iterable[Candidate], verdicts: Iterable[Verdict], attestations: Iterable[Attestation]
) -> list[TrackRecord]:
    """One row for each proposer, model and layer, those tried oftenest first."""
    judged = {verdict.candidate_id: verdict for verdict in verdicts}
    ended = {item.evolution_id: item.verdict for item in attestations if item.when == AFTER_PROBATION}
    groups: dict[tuple[str, str, str], list[Candidate]] = {}
    for candidate in candidates:
        if not candidate.edit.files and not candidate.model:
            continue  # nobody answered: no word on anybody
        key = (candidate.proposer, candidate.model, candidate.manifest.layer.value)
        groups.setdefault(key, []).append(candidate)
    found = [_track(names, group, judged, ended) for names, group in groups.items()]
    return sorted(found, key=lambda track: (-track.tried, -track.proposed, track.proposer, track.layer))


def lately(records: Records, most: int, evolution_id: str) -> list[TrackRecord]:
    """What edits of the newest evolutions came to, of those that have ended: this one is asked for and left out.

    So asking again after a crash gives the same words, whatever this evolution has stored by then.
    """
    past = frozenset(
        item.id
        for item in records.newest(Evolution, most)
        if item.ended_at is not None and item.id != evolution_id
    )
    return calibrate(
        records.find(Candidate, evolution_id=past),
        records.find(Verdict, evolution_id=past),
        records.find(Attestation, evolution_id=past),
    )


def in_words(tracks: Iterable[TrackRecord], layer: Layer) -> dict[str, str]:
    """By proposer, what its edits in the layer came to, in a few sentences to it."""
    said: dict[str, list[str]] = {}
    for track in tracks:
        if track.layer == layer and (track.tried or track.refused):
            said.setdefault(track.proposer, []).extend(_sentences(track))
    return {proposer: "\n".join(sentences) for proposer, sentences in said.items()}


def _track(
    names: tuple[str, str, str],
    group: Sequence[Candidate],
    judged: Mapping[str, Verdict],
    ended: Mapping[str, str],
) -> TrackRecord:
    """``names``: of proposer, model and layer."""
    tried = [(item.manifest, judged[item.id]) for item in group if item.id in judged]
    accepted = [verdict for _, verdict in tried if verdict.decision is Decision.PROMOTE]
    labels = Counter(ended[verdict.evolution_id] for verdict in accepted if verdict.evolution_id in ended)
    return TrackRecord(
        *names,
        proposed=len(group),
        refused=sum(bool(item.screened) for item in group),
        tried=len(tried),
        accepted=len(accepted),
        predicted=sum(len(manifest.predicted_fixes) for manifest, _ in tried),
        came_true=sum(len({*manifest.predicted_fixes} & {*verdict.fixed}) for manifest, verdict in tried),
        fixed=sum(len(verdict.fixed) for _, verdict in tried),
        broken=sum(len(verdict.broken) for _, verdict in tried),
        foreseen=sum(len({*manifest.tasks_at_risk} & {*verdict.broken}) for manifest, verdict in tried),
        labels=dict(sorted(labels.items())),
    )


def _sentences(track: TrackRecord) -> Iterable[str]:
    written = f", written by {track.model}" if track.model else ""
    yield (
        f"Your last {_edits(track.proposed)} in the layer {track.layer}{written}: {track.refused} refused "
        f"before any trial, {track.tried} tried, {track.accepted} accepted."
    )
    if track.predicted:
        yield (
            f"Of {track.predicted} fixes that you predicted {track.came_true} came true; "
            f"{track.fixed} tasks were fixed in all."
        )
    if track.broken:
        yield f"Of {track.broken} tasks that they broke you had named {track.foreseen} as at risk."
    if track.labels:
        said = ", ".join(f"{count} {label}" for label, count in track.labels.items())
        yield f"In live use those accepted turned out: {said}."


def _edits(count: int) -> str:
    return f"{count} edits" if count != 1 else "edit"
