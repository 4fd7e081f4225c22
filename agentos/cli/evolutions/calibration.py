"""The work of ``agentos evolution calibration``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from agentos.cli.output import print_json, print_table
from agentos.domain import Attestation, Candidate, Verdict
from agentos.evolver.history.calibration import TrackRecord, calibrate

if TYPE_CHECKING:
    from agentos.ledger.reading import Reader

_COLUMNS = (
    "proposer",
    "layer",
    "tried",
    "accepted",
    "came true",
    "of fixes",
    "foreseen",
    "in live use",
)


def show(reader: Reader, *, as_json: bool) -> None:
    """Every proposer's predictions beside what was observed."""
    tracks = calibrate(reader.find(Candidate), reader.find(Verdict), reader.find(Attestation))
    if as_json:
        print_json(
            [{**asdict(track), "precision": track.precision, "recall": track.recall} for track in tracks]
        )
        return
    print_table(
        _COLUMNS,
        [_row(track) for track in tracks],
        empty="No edit was proposed yet. `agentos evolve` looks for failures now.",
        below=True,
    )


def _row(track: TrackRecord) -> tuple[str, ...]:
    return (
        f"{track.proposer} ({track.model})" if track.model else track.proposer,
        track.layer,
        _share(track.tried, track.proposed),
        str(track.accepted),
        _share(track.came_true, track.predicted),
        _share(track.came_true, track.fixed),
        _share(track.foreseen, track.broken),
        ", ".join(f"{count} {label}" for label, count in track.labels.items()),
    )


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "-"
