"""`agentos evolution …`: see, explain, approve and undo what the program changed in itself."""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.evolutions import state_text
from agentos.cli.group import AsJson, Newest, Yes, noun
from agentos.cli.output import confirm, print_json, print_table, print_text, tell_cut, tell_held
from agentos.daemon.views.json_views import edit_of, evolution_summary, evolution_whole
from agentos.domain import PROMOTED_STATES, Evolution, EvolutionState
from agentos.errors import Conflict, NotFound, UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.evolver.history.proposers import TrackRecord
    from agentos.ledger.reading import EvolutionRecords, Reader

_USUAL = 100  # rows of a list
app = noun("See, approve and undo evolutions: what was changed to mend a failure, and why.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The evolution's id, or enough of its start or end.")]

_POLL_S = 0.2
_WATCHED = 200  # newest evolutions: what is older stands still
_PROMOTION_S = 15.0  # that a consent waits for the daemon to promote the edit
_TRACK_COLUMNS = (
    "proposer",
    "layer",
    "tried",
    "accepted",
    "came true",
    "of fixes",
    "foreseen",
    "in live use",
)


def _reader() -> Reader:
    from agentos.ledger.reading import Reader

    return Reader(Home.find().ledger)


def _story(fragment: str) -> tuple[Reader, EvolutionRecords]:
    reader = _reader()
    return reader, reader.story(reader.resolve("evolution", fragment))


@app.command("list")
def list_(
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help=f"Only those in this state: {', '.join(EvolutionState)}."),
    ] = None,
    limit: Newest = _USUAL,
    as_json: AsJson = False,
) -> None:
    """List the newest evolutions, the newest last: what failed, what was changed, how it ended."""
    reader = _reader()
    if state is not None and state not in set(EvolutionState):
        raise UserError(f"There is no state {state!r}; the states are {', '.join(EvolutionState)}.")
    wanted = {"state": EvolutionState(state)} if state else {}
    found = reader.newest(Evolution, limit, **wanted)[::-1]
    if as_json:
        print_json([evolution_summary(reader, item) for item in found])
        return
    rows = [
        (item.id, state_text(item), item.resource, edit_of(reader, item) or item.reason) for item in found
    ]
    print_table(
        ("evolution", "state", "resource", "edit, or why there is none"),
        rows,
        below=True,
        empty=f"No evolution is {state}; `agentos evolution list` shows all."
        if state
        else "No evolution yet: two failing runs of the same kind open one. `agentos evolve` looks now.",
    )
    tell_cut(len(found), limit, _USUAL)


@app.command()
def show(
    id: Id,
    whole: Annotated[
        bool,
        typer.Option("--all", help="Of an edit that waits for you, show its proof as well: trials, verdict."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one evolution: evidence, cause, edit, predictions, trials, verdict, consent, and what came after.

    Of an edit that waits for you: what it mends, the diff, and what only you can answer.
    """
    reader, story = _story(id)
    if as_json:
        print_json(evolution_whole(story))
        return
    from agentos.cli.evolutions.screen import draw
    from agentos.daemon.views.evolution_view import scene_of

    draw(scene_of(Home.find(), reader, story), proof=whole)


@app.command()
def diff(
    id: Id,
    candidate: Annotated[
        int, typer.Option(metavar="N", help="Another candidate of this evolution, by its rank.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Show the edit as a diff against the version that it was measured on."""
    from rich.console import Console

    from agentos.cli.evolutions.waiting_edit import diff_text
    from agentos.daemon.views.evolution_view import base_text, chosen

    _, story = _story(id)
    picked = (
        next((item for item in story.candidates if item.rank == candidate), None)
        if candidate
        else chosen(story)
    )
    if picked is None:
        name, ended = story.evolution.id, story.evolution.reason or story.evolution.state.value
        ranks = ", ".join(str(item.rank) for item in story.candidates)
        raise NotFound(
            f"{name} has no candidate {candidate}; it has {ranks}"
            if ranks
            else f"{name} has no edit: {ended}"
        )
    text = diff_text(base_text(Home.find(), picked), picked)
    if as_json:
        print_json({"evolution": story.evolution.id, "candidate": picked.id, "diff": text.plain})
    else:
        Console(highlight=False, soft_wrap=True).print(text, end="")


@app.command()
def approve(id: Id, yes: Yes = False) -> None:
    """Let an edit that waits for you take effect; shows it and asks. Refused when the registry has changed."""
    from agentos.cli.evolutions.screen import draw_waiting
    from agentos.daemon.control.daemon_lock import daemon_runs
    from agentos.daemon.offline import offline_context
    from agentos.daemon.views.evolution_view import scene_of
    from agentos.evolver.promote.consent import TERMINAL, YES, person
    from agentos.evolver.promote.promotion import approve as give

    reader, story = _story(id)
    if not yes and story.evolution.state is EvolutionState.AWAITING_CONSENT:
        draw_waiting(scene_of(Home.find(), reader, story))
    with offline_context(Home.find()) as parts:
        evolution = parts.evolution(story.evolution.id)
        if evolution.state is EvolutionState.AWAITING_CONSENT:
            confirm(f"Promote this edit ({evolution.id})?", yes=yes)
        consent = give(parts, evolution, person(), YES if yes else TERMINAL)
    told = f"{consent.principal} consented ({consent.given}); the daemon promotes it"
    if not daemon_runs(Home.find()):
        print_text(f"{told} once it runs: `agentos daemon start`.")
        return
    print_text(f"{told} now (`agentos evolution show {consent.evolution_id}`).")
    _wait_for_promotion(reader, consent.evolution_id)


def _wait_for_promotion(reader: Reader, evolution_id: str) -> None:
    """So that what is typed next runs on it; not for long."""
    until = time.monotonic() + _PROMOTION_S
    while time.monotonic() < until:
        state = reader.get(Evolution, evolution_id).state
        if state not in (EvolutionState.AWAITING_CONSENT, EvolutionState.PROMOTING):
            print_text(f"{evolution_id}: {state.value}.")
            return
        time.sleep(0.1)


@app.command()
def reject(
    id: Id,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")] = "no reason given",
) -> None:
    """Turn down an edit that waits or is held; its failure is left alone until `agentos evolution retry`."""
    from agentos.daemon.offline import offline_context
    from agentos.evolver.promote.consent import person
    from agentos.evolver.promote.promotion import decline

    _, story = _story(id)
    with offline_context(Home.find()) as parts:
        ended = decline(parts, parts.evolution(story.evolution.id), person(), reason)
    print_text(f"{ended.id} is rejected: {ended.reason}")


@app.command("reconsider", hidden=True)  # its name before 0.3
@app.command()
def retry(id: Id) -> None:
    """Try to mend the same failure again, measured against the versions of now."""
    from agentos.daemon.offline import offline_context
    from agentos.evolver.promote.promotion import measure_again

    _, story = _story(id)
    with offline_context(Home.find()) as parts:
        fresh = measure_again(parts, parts.evolution(story.evolution.id))
    print_text(f"{fresh.id} takes it up again; follow it with `agentos evolution watch`.")


@app.command()
def revert(
    id: Id,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")] = "no reason given",
    yes: Yes = False,
) -> None:
    """Undo an edit that took effect: shows the diff, asks, and makes new versions with the old content."""
    from rich.console import Console

    from agentos.cli.evolutions.waiting_edit import diff_text
    from agentos.daemon.offline import offline_context
    from agentos.daemon.views.evolution_view import base_text, chosen
    from agentos.evolver.promote.consent import person
    from agentos.evolver.promote.promotion import take_back

    _, story = _story(id)
    if story.evolution.state not in PROMOTED_STATES:
        raise Conflict(
            f"{story.evolution.id} is {story.evolution.state.value}: there is no promotion to revert."
        )
    picked = chosen(story)
    if picked and not yes:
        print_text("This edit will be taken back:", style="bold")
        Console(highlight=False, soft_wrap=True).print(
            diff_text(base_text(Home.find(), picked), picked), end=""
        )
    confirm(f"Revert {story.evolution.id}?", yes=yes)
    with offline_context(Home.find()) as parts:
        ended = take_back(parts, parts.evolution(story.evolution.id), person(), reason)
    print_text(f"{ended.id} is rolled back; `agentos evolution retry {ended.id}` would take it up again.")
    tell_held(Home.find())


@app.command()
def verify(
    id: Id,
    trials: Annotated[
        bool, typer.Option("--trials", help="Also run every trial again, from its own record.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute the verdicts of an evolution again from its stored trials; no daemon is needed.

    With --trials each trial is run again in a sandbox: model calls and outside effects are served
    from the trial's own record, so nothing is asked, paid or done twice. No daemon is needed.
    """
    _, story = _story(id)
    faults = _recomputed(story)
    again = _trials_again(story, quiet=as_json) if trials else []
    faults += again
    if as_json:
        print_json(
            {
                "evolution": story.evolution.id,
                "verdicts": len(story.verdicts),
                "trials": len(story.trials) if trials else 0,
                "faults": faults,
            }
        )
    elif not faults:
        count, runs = len(story.verdicts), len(story.trials)
        if count:
            print_text(f"{count} of {count} verdicts computed again from {runs} trials: the same.")
        else:
            print_text(f"{story.evolution.id} has no verdict that could be computed again.")
        if trials:
            print_text(f"{runs} of {runs} trials run again: the same.")
    if faults:
        raise Conflict("; ".join(faults))


def _recomputed(story: EvolutionRecords) -> list[str]:
    """What is different in a verdict that is computed again, or missing beside it, one sentence each."""
    from agentos.daemon.upkeep.auditing import consent_faults, evolution_faults
    from agentos.ledger.integrity import LedgerSnapshot
    from agentos.registry.store import Registry

    home = Home.find()
    with LedgerSnapshot(home.ledger) as reader:
        faults = evolution_faults(home, reader, Registry(home.registry), story)
        return [*faults, *consent_faults(reader, home.consent_key, story.evolution.id)]


def _trials_again(story: EvolutionRecords, *, quiet: bool) -> list[str]:
    """What is different in a trial that is run again, one sentence each."""
    from agentos.daemon.service import service
    from agentos.evolver.replay.verification import TrialComparison, run_again
    from agentos.settings import load_settings

    home, count = Home.find(), itertools.count(1)

    def done(compared: TrialComparison) -> None:
        if not quiet and sys.stderr.isatty():
            print(f"\r{next(count)} of {len(story.trials)} trials", end="", file=sys.stderr, flush=True)

    with service(home, load_settings(home.settings), socket_name="verify.sock") as parts:
        parts.sandbox.start()
        compared = run_again(parts.parts, story.evolution.id, done)
    if not quiet and sys.stderr.isatty():
        print(file=sys.stderr)
    return [f"{item.trial.id}: {what}" for item in compared for what in item.differences]


@app.command()
def watch(
    exit_when_idle: Annotated[
        bool,
        typer.Option(
            "--exit-when-idle", help="End when nothing is under way, also while something waits for you."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on each line.")] = False,
    until_quiet: Annotated[bool, typer.Option("--until-quiet", hidden=True)] = False,  # before 0.3
) -> None:
    """Follow evolutions, one line for each change; Ctrl-C ends it."""
    from rich.console import Console

    from agentos.cli.evolutions.screen import change_text
    from agentos.domain import RUNNING_STATES

    reader = _reader()
    exit_when_idle = exit_when_idle or until_quiet
    console = Console(highlight=False, soft_wrap=True)
    if not exit_when_idle and not reader.find(Evolution):
        print("There is no evolution yet; each will be told here. Ctrl-C ends this.", file=sys.stderr)
    seen: dict[str, tuple[object, ...]] = {}
    evolutions = reader.find(Evolution)
    while True:
        for item in evolutions:
            now_is = (item.state, item.promoted, item.waiting)
            if seen.get(item.id) != now_is:
                seen[item.id] = now_is
                if as_json:
                    print_json(item, line=True)
                else:
                    console.print(change_text(item))
        if exit_when_idle and not any(item.state in RUNNING_STATES for item in evolutions):
            return
        time.sleep(_POLL_S)
        evolutions = reader.newest(Evolution, _WATCHED)[::-1]


@app.command()
def calibration(as_json: AsJson = False) -> None:
    """Compare what each proposer predicted of its edits with what was observed."""
    from agentos.domain import Attestation, Candidate, Verdict
    from agentos.evolver.history.proposers import calibrate

    reader = _reader()
    tracks = calibrate(reader.find(Candidate), reader.find(Verdict), reader.find(Attestation))
    if as_json:
        print_json(
            [{**asdict(track), "precision": track.precision, "recall": track.recall} for track in tracks]
        )
        return
    print_table(
        _TRACK_COLUMNS,
        [_track_row(track) for track in tracks],
        empty="No edit was proposed yet. `agentos evolve` looks for failures now.",
        below=True,
    )


def _track_row(track: TrackRecord) -> tuple[str, ...]:
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


@app.command()
def health(
    as_json: AsJson = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Also draw it into this file.")
    ] = None,
) -> None:
    """Show how evolutions do over time: what was mended, at what cost, what came back, safety probes."""
    from agentos.cli.evolutions.health import show

    show(Home.find(), as_json=as_json, svg=svg)
