"""``agentos init`` and ``agentos status``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentos.cli.group import noun
from agentos.cli.output import print_json, print_text
from agentos.home import Home

app = noun("")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@app.command()
def init() -> None:
    """Make a home: settings, registry with the shipped content, ledger, consent key. Safe to repeat."""
    from agentos.daemon.setup import init_home

    home = Home.find()
    did = "Completed" if home.settings.exists() else "Made"
    fresh = init_home(home)
    print_text(f"{did if fresh else 'Complete already:'} the home {home.root}", "green")
    if fresh:
        print_text("Next: `agentos daemon start`, then `agentos task run FILE`.")


@app.command()
def status(as_json: AsJson = False) -> None:
    """What the daemon is doing, and how much there is of everything."""
    from agentos.daemon.daemon_lock import daemon_info
    from agentos.ledger.reading import Reader

    home = Home.find()
    reader = Reader(home.ledger)
    counts = reader.counts()
    info = daemon_info(home)
    refused = reader.get_kv("skills.refused", {})
    questions = reader.open_questions()
    held = reader.get_kv("swap.held")
    head = reader.head().short
    if as_json:
        facts = {"refused_skills": refused, "questions": questions, "held": held, "head": head}
        print_json({"home": str(home.root), "daemon": info, "counts": counts, **facts})
        return
    print_text(f"home        {home.root}")
    if info is not None and info.alive:
        print_text(f"daemon      runs, pid {info.pid}, since {info.started_at}", "green")
    else:
        print_text("daemon      does not run; `agentos daemon start` starts it", "yellow")
    for name, found in (("tasks", counts.tasks), ("runs", counts.runs), ("evolutions", counts.evolutions)):
        print_text(f"{name:<12}{', '.join(f'{count} {key}' for key, count in found.items()) or 'none'}")
    print_text(f"{'steps':<12}{counts.steps}")
    print_text(
        f"{'audit':<12}{head}  (note it elsewhere; `agentos audit verify --head {head}` holds the log to it)"
    )
    if waiting := counts.evolutions.get("awaiting_consent", 0):
        print_text(
            f"consent     {waiting} waiting for yours; `agentos evolution list --state awaiting_consent`",
            "yellow",
        )
    if held:
        print_text(f"probe       {_held(held)}", "red" if held["failed"] else "yellow")
    for question in questions:
        print_text(f"asks        {question.text[:200]}  (`agentos run answer`)", "yellow")
    for folder, faults in refused.items():
        print_text(f"refused     {folder}", "red")
        for fault in faults:
            print_text(f"            {fault}")


def _held(held: dict[str, Any]) -> str:
    """Why new runs do not get what the registry holds, and what to do about it."""
    told = f"new runs get {held['served'][:12]}, not {held['main'][:12]}: {held['why']}"
    return f"{told}  (`{held['undo']}`)" if held["undo"] else told
