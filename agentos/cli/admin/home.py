"""``agentos init`` and ``agentos status``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.connections.notify import tell_undelivered, undelivered
from agentos.cli.group import AsJson, noun
from agentos.cli.output import (
    clean,
    counted,
    held_words,
    moment_text,
    print_json,
    print_text,
    with_local_times,
)
from agentos.cli.tasks.waits import tell_delivery, undelivered_lately
from agentos.errors import Unavailable
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.daemon.upkeep.status import DaemonStatus
    from agentos.domain import Evolution, SkippedRun
    from agentos.gateway.setup import GatewayEnding
    from agentos.ledger.reading import Reader

app = noun("")

_EDITS_MAX = 5  # waiting edits that are told with why they wait


@app.command()
def init() -> None:
    """Make a home, or complete one: settings, registry with the shipped content, ledger, consent key."""
    from agentos.daemon.setup import init_home

    home = Home.find()
    did = "Completed" if home.settings.exists() else "Made"
    before = {*_copies(home)}
    fresh = init_home(home)
    for copy in _copies(home):
        if copy not in before:
            print_text(f"Brought the ledger up to date; {copy} is the way back to the older release.")
    print_text(f"{did if fresh else 'Complete already:'} the home {home.root}", "green")
    if fresh:
        print_text("Next: `agentos daemon start`, then `agentos task run FILE`.")


def _copies(home: Home) -> list[Path]:
    """Those of the ledger that migrations left."""
    return sorted(home.root.glob(f"{home.ledger.name}.before-*"))


@app.command()
def status(
    as_json: AsJson = False,
    check: Annotated[
        bool, typer.Option("--check", help="End with the exit code of `agentos daemon status`.")
    ] = False,
) -> None:
    """Show what the daemon is doing, whether it works, what waits for you, and how much there is of everything."""
    from agentos.cli.evolutions.failure import idle_failures
    from agentos.cli.tasks.schedule import skipped_lately
    from agentos.daemon.upkeep.status import daemon_status
    from agentos.domain import Evolution, EvolutionState
    from agentos.gateway.setup import read_ending
    from agentos.ledger.listing import counts
    from agentos.ledger.postgres.address import address_of
    from agentos.ledger.reading import Reader

    home = Home.find()
    status, database = daemon_status(home), address_of(home.ledger)
    code = status.code if check else 0
    try:
        reader = Reader(home.ledger)
        totals = counts(reader)
    except Unavailable as error:
        _tell_without_ledger(home, status, error, as_json=as_json)
        raise typer.Exit(code or 1) from None
    skills = {name: reader.get_kv(f"skills.{name}", {}) for name in ("refused", "left_out", "waiting")}
    questions = reader.open_questions()
    held, mirror = reader.get_kv("swap.held"), reader.get_kv("registry.mirror")
    head = reader.head().short
    waits, ending = _waits(reader), read_ending(home.run)
    edits = {it.id: it.reason for it in reader.find(Evolution, state=EvolutionState.AWAITING_CONSENT)}
    not_told, undelivered_results = undelivered(reader), undelivered_lately(reader)
    not_pruned = reader.get_kv("retention.failed", "")
    skipped, idle = skipped_lately(reader), idle_failures(home, reader)
    if as_json:
        facts = {
            "refused_skills": skills["refused"],
            "skills_left_out": skills["left_out"],
            "skills_waiting": skills["waiting"] or 0,
            "not_pruned": not_pruned,
            "questions": questions,
            "held": held,
            "mirror": mirror,
            "head": head,
            "waits": waits,
            "models_end": ending,
            "edits": edits,
            "skipped": skipped,
            "idle_failures": idle,
            "undelivered": undelivered_results,
            "not_told": not_told,
        }
        print_json(
            {
                "home": str(home.root),
                "database": database or str(home.ledger),
                "counts": totals,
                **status_facts(status),
                **facts,
            }
        )
        raise typer.Exit(code)
    print_text(f"home        {home.root}")
    if database:
        print_text(f"database    {database}")
    tell_status(home, status)
    for name, found in (("tasks", totals.tasks), ("runs", totals.runs), ("evolutions", totals.evolutions)):
        print_text(f"{name:<12}{', '.join(f'{count} {key}' for key, count in found.items()) or 'none'}")
    print_text(f"{'steps':<12}{totals.steps}")
    print_text(
        f"{'audit':<12}{head}  (note it elsewhere; `agentos audit verify --head {head}` holds the log to it)"
    )
    _tell_edits(reader, [*edits])
    if held:
        print_text(f"probe       {held_words(held)}", "red" if held["failed"] else "yellow")
    if mirror:
        behind = (
            f"has not got the newest versions: {mirror['why']}"
            if mirror["why"]
            else f"has {mirror['main'][:12]}"
        )
        print_text(
            f"mirror      {mirror['url']} {behind}, since {moment_text(mirror['at'])}",
            "yellow" if mirror["why"] else "",
        )
    _tell(waits, ending)
    tell_undelivered(not_told)
    for delivery in undelivered_results:
        tell_delivery(delivery)
    for question in questions:
        print_text(f"asks        {_cut(question.text, 200)}  (`agentos run answer`)", "yellow")
    _tell_passed_over(skipped, idle, skills, not_pruned)
    raise typer.Exit(code)


def _tell_without_ledger(home: Home, status: DaemonStatus, error: Unavailable, *, as_json: bool) -> None:
    """What files alone say, where the ledger's server is away."""
    if as_json:
        print_json({"home": str(home.root), **status_facts(status)})
    else:
        print_text(f"home        {home.root}")
        tell_status(home, status)
    print(clean(str(error)), file=sys.stderr)


def _tell_passed_over(
    skipped: Mapping[str, SkippedRun], idle: Mapping[str, int], skills: Mapping[str, Any], not_pruned: str
) -> None:
    """What was there and was not taken up: files and times of schedules, failures, skills."""
    from agentos.cli.evolutions.failure import idle_text
    from agentos.cli.tasks.schedule import tell_skipped

    for name, passed_over in skipped.items():
        tell_skipped(name, passed_over)
    if idle:
        print_text(f"failures    {idle_text(idle)}")
    if not_pruned:
        print_text(f"not pruned  {not_pruned}", "yellow")
    if skills["waiting"]:
        print_text(f"skills      {counted(skills['waiting'], 'folder')} still to be taken in")
    for name, word, style in (("refused", "refused", "red"), ("left_out", "left out", "yellow")):
        for folder, sentences in skills[name].items():
            print_text(f"{word:<12}{folder}", style)
            for sentence in sentences:
                print_text(f"            {sentence}")


def _tell_edits(reader: Reader, edits: Sequence[str]) -> None:
    """Waiting edits: what is asked about, or what else than a person's word would do."""
    from agentos.daemon.views.json_views import short_reason
    from agentos.domain import Evolution

    if edits:
        print_text(
            f"consent     {len(edits)} waiting for yours; `agentos evolution show ID` asks",
            "yellow",
        )
    for name in edits[:_EDITS_MAX]:
        print_text(f"            {name} {_cut(short_reason(reader, reader.get(Evolution, name)), 300)}")


def _cut(text: str, width: int) -> str:
    """On one line, and where it is longer than so many characters cut between words."""
    from textwrap import shorten

    return shorten(text, width, placeholder=" …")


def status_facts(status: DaemonStatus) -> dict[str, Any]:
    """What --json says of the daemon."""
    return {
        "state": status.state,
        "works": not status.code,
        "alive": status.info is not None and status.info.alive,
        "why": status.why,
        "daemon": status.info,
        "heartbeat": status.beat,
        "disk_free_mb": status.disk_free_mb,
        "files_free": status.files_free,
        "given_up": status.given_up,
        "waiting": status.waiting,
        "overdue": status.overdue,
        "stale_settings": status.stale_settings,
        "settings_fault": status.settings_fault,
        "leads": status.leads,
    }


def tell_status(home: Home, status: DaemonStatus) -> None:
    """Lines for a person: whether it works, what it has to work with, what waits."""
    from agentos.daemon.upkeep.status import DEGRADED, since_text

    info, beat = status.info, status.beat
    if info is not None and info.alive:
        word = "stands by" if info.stand_by else "runs" if not status.code else f"runs, but {status.why}"
        about = f"pid {info.pid}, since {moment_text(info.started_at)}, version {info.version}"
        print_text(
            f"daemon      {with_local_times(word)}  ({about})", "red" if status.code == DEGRADED else "green"
        )
    else:
        print_text(f"daemon      {with_local_times(status.why)}", "yellow")
    if status.leads:
        print_text(f"control     {with_local_times(status.leads)}")
    if beat is not None and beat.turn_at:
        failed = f"; last failed {moment_text(beat.error_at)}: {beat.error}" if beat.error else ""
        print_text(f"turn        last good {moment_text(beat.turn_at)}{failed}", "yellow" if failed else "")
    files = "" if status.files_free is None else f", {status.files_free:,} files"
    room = f"room        {status.disk_free_mb:,} MB of disk{files}"
    print_text(room + (f", {beat.descriptors} of {beat.descriptors_max} descriptors used" if beat else ""))
    if status.settings_fault:
        print_text(f"settings    no daemon would start with them: {status.settings_fault}", "red")
    elif status.stale_settings:
        again = "`agentos daemon stop`, then `agentos daemon start`"
        print_text(
            f"settings    agentos.toml or policy.toml changed since the daemon started, and is not in force: {again}",
            "yellow",
        )
    if status.given_up:
        hint = "`agentos run list --result infra` shows their runs"
        print_text(f"given up    {counted(status.given_up, 'task')}; {hint}", "yellow")
    for sentence in status.overdue:
        print_text(f"overdue     {sentence}", "red")
    for item in status.waiting:
        print_text(f"waits       {item.task} for {since_text(item.since)}: {item.why}", "yellow")


def _waits(reader: Reader) -> list[dict[str, Any]]:
    """The evolutions that stand still: for what, until when, who waits behind them, and what to type."""
    from agentos.domain import RUNNING_STATES, Evolution, EvolutionState

    found = [item for state in sorted(RUNNING_STATES) for item in reader.find(Evolution, state=state)]
    waiting = [item for item in found if item.waiting]
    behind = sum(item.state is EvolutionState.MINED for item in found if item not in waiting)
    told = []
    for item in waiting:
        until = f" until {item.waits_until.astimezone():%H:%M:%S}, then it ends" if item.waits_until else ""
        why, type_ = _way_out(item)
        says = f"{item.id} waits for the {item.waiting.value}{until}: {why}"
        if behind:
            says += f" ({behind} not begun yet)"
        told.append({"evolution": item.id, "for": item.waiting.value, "says": says, "type": type_})
    return told


def _way_out(item: Evolution) -> tuple[str, list[str]]:
    """Why an evolution waits, and what to type."""
    from datetime import UTC, datetime, timedelta

    from agentos.domain import EvolutionWait

    if item.waiting is EvolutionWait.BUDGET:  # nothing is wrong with the model
        tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        why = (
            "what all runs of a day may use is used up. Raise day_… of [budget] in agentos.toml, which is in force "
            f"at once; or, if it has ended, after midnight UTC ({tomorrow.astimezone():%H:%M} here) type"
        )
        return why, [f"agentos evolution retry {item.id}"]
    why = _cut(item.reason, 300)
    if item.waiting is EvolutionWait.MODEL:
        return why, ["agentos model test", "agentos model default NAME", "agentos model remove NAME"]
    return why, ["agentos doctor"]


def _tell(waits: list[dict[str, Any]], ending: GatewayEnding | None) -> None:
    if ending:
        print_text(f"models      {ending.says}", "yellow")
    for wait in waits:
        print_text(f"waits       {wait['says']}", "yellow")
        for line in wait["type"]:
            print_text(f"            `{line}`")
