"""How well do proposers know what their edits do? What was predicted beside what was observed.

The replay is what was observed of every edit that was tried, promoted or not; live use adds its word on those
that were promoted. A table for people, and a few sentences that the next proposal gets as evidence.
Counts only: no task is named here, so that a hidden one cannot be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentos.domain import Attestation, Candidate, Decision, Verdict
from agentos.ports import Records

AFTER_PROBATION = "probation"
RECENT = 200  # candidates that a digest looks at: what it costs does not grow


@dataclass(frozen=True, slots=True)
class Track:
    """What one proposer, with one model, achieved in one layer; "" as ``model`` where none is named."""

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
) -> list[Track]:
    """One row for each proposer, model and layer, those tried oftenest first."""
    judged = {verdict.candidate_id: verdict for verdict in verdicts}
    ended = {item.evolution_id: item.verdict for item in attestations if item.when == AFTER_PROBATION}
    groups: dict[tuple[str, str, str], list[Candidate]] = {}
    for candidate in candidates:
        proposer, _, model = candidate.proposer.partition(":")
        groups.setdefault((proposer, model, candidate.manifest.layer.value), []).append(candidate)
    found = [_track(*names, group, judged, ended) for names, group in groups.items()]
    return sorted(found, key=lambda track: (-track.tried, -track.proposed, track.proposer, track.layer))


def digest(records: Records, proposer: str) -> str:
    """What the newest edits of a proposer came to, in a few sentences for its next one; "" without any.

    ``proposer`` is as candidates name it, a model included.
    """
    own = [item for item in records.newest(Candidate, RECENT) if item.proposer == proposer]
    verdicts = [verdict for item in own for verdict in records.find(Verdict, candidate_id=item.id)]
    accepted = {item.evolution_id for item in verdicts if item.decision is Decision.PROMOTE}
    attested = [item for name in sorted(accepted) for item in records.find(Attestation, evolution_id=name)]
    tracks = calibrate(own, verdicts, attested)
    if not any(track.tried or track.refused for track in tracks):
        return ""
    return "\n".join(sentence for track in tracks for sentence in _sentences(track))


def _track(
    proposer: str,
    model: str,
    layer: str,
    group: Sequence[Candidate],
    judged: Mapping[str, Verdict],
    ended: Mapping[str, str],
) -> Track:
    tried = [(item.manifest, judged[item.id]) for item in group if item.id in judged]
    accepted = [verdict for _, verdict in tried if verdict.decision is Decision.PROMOTE]
    labels = Counter(ended[verdict.evolution_id] for verdict in accepted if verdict.evolution_id in ended)
    return Track(
        proposer=proposer,
        model=model,
        layer=layer,
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


def _sentences(track: Track) -> Iterable[str]:
    yield (
        f"Your last {track.proposed} edits in the layer {track.layer}: {track.refused} were refused before "
        f"any trial, {track.tried} were tried, {track.accepted} accepted."
    )
    if track.predicted:
        yield (
            f"Of {track.predicted} fixes that you predicted {track.came_true} came true; "
            f"{track.fixed} tasks were fixed in all."
        )
    if track.broken:
        yield f"They broke {track.broken} tasks; you had named {track.foreseen} of these as at risk."
    if track.labels:
        said = ", ".join(f"{count} {label}" for label, count in track.labels.items())
        yield f"In live use those accepted turned out: {said}."
