"""How well do proposers know what their edits do? What was predicted beside what was observed.

The replay is what was observed of every edit that was tried, promoted or not; live use adds its word on those
that were promoted. A table for people, and a few sentences that whoever proposes next gets with the evidence.
Counts only: no task is named here, so that a hidden one cannot be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentos.domain import FAILING, Attestation, Candidate, Decision, Evolution, Layer, Result, Run, Verdict
from agentos.evolver.history import HistoryContext

if TYPE_CHECKING:
    from agentos.ports import Records


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


# --- Attest: what a manifest predicted beside what was observed, at the promotion and after the probation
# At the promotion the replay is what was observed; after the probation it is live use. Both are kept:
# the first says how well a proposer knew its edit, the second how well the replay knew the world.


AT_PROMOTION, AFTER_PROBATION = "promotion", "probation"


def attest_replay(parts: HistoryContext, candidate: Candidate, verdict: Verdict) -> Attestation:
    """Compare the manifest with the replay that promoted the candidate."""
    return _stored(parts, candidate, AT_PROMOTION, verdict.fixed, verdict.broken)


def attest_live(
    parts: HistoryContext,
    candidate: Candidate,
    fixed: Sequence[str],
    live: Iterable[Run],
    regressions: Sequence[str],
) -> Attestation:
    """Compare it with live use: of what the replay ``fixed``, what passes; and what got worse."""
    passes: dict[str, list[bool]] = {}
    for run in live:
        if run.outcome is not None and run.outcome.result in {*FAILING, Result.PASSED}:
            passes.setdefault(run.task_key, []).append(run.passed)
    # Work that was not asked for again stands as the replay left it.
    holds = [task.id for task in parts.tasks(tuple(fixed)) if _mostly(passes.get(task.key, [True]))]
    return _stored(parts, candidate, AFTER_PROBATION, holds, regressions)


def label(predicted: Collection[str], observed: Collection[str], regressions: Collection[str]) -> str:
    """AHE's five labels: predicted fixes that came true, beside regressions."""
    if regressions:
        return "mixed" if observed else "harmful"
    if not observed:
        return "ineffective"
    return "effective" if predicted and set(predicted) <= set(observed) else "partly"


def _stored(
    parts: HistoryContext,
    candidate: Candidate,
    when: str,
    fixes: Sequence[str],
    regressions: Sequence[str],
) -> Attestation:
    manifest = candidate.manifest
    attestation = Attestation(
        id=f"att-{candidate.evolution_id.removeprefix('evo-')}{'-replay' if when == AT_PROMOTION else ''}",
        evolution_id=candidate.evolution_id,
        predicted_fixes=manifest.predicted_fixes,
        observed_fixes=tuple(fixes),
        predicted_risks=manifest.tasks_at_risk,
        observed_regressions=tuple(regressions),
        verdict=label(manifest.predicted_fixes, fixes, regressions),
        when=when,
    )
    parts.records.put(attestation)
    return attestation


def _mostly(passed: Sequence[bool]) -> bool:
    return 2 * sum(passed) >= len(passed)
