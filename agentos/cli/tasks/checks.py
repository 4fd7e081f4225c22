"""``agentos task checks``: what decides over the tasks of a name, and what held in all good runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from agentos.cli.output import print_json, print_table, print_text
from agentos.home import Home


def checks(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tasks' name, or the id of one.")],
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Make this proposal a check of all later tasks. Repeatable."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Take back an accepted check. Repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """What is checked in the tasks of a name, and what held in all good runs and could be."""
    from agentos.daemon.standing_checks import accept as take_in
    from agentos.daemon.standing_checks import checks_for, name_of, take_back

    home = Home.find()
    name = name_of(home, name)
    take_in(home, name, accept or ())
    take_back(home, name, remove or ())
    found = checks_for(home, name)
    if as_json:
        proposed = [{"id": item.id, **asdict(item)} for item in found.proposed]
        print_json({"name": name, **asdict(found), "proposed": proposed})
        return
    print_text(name, "bold")
    rows = [("in the task", "", check.kind, _of(check.spec)) for check in found.own]
    rows += [("accepted", item.id, item.check.kind, _of(item.check.spec)) for item in found.accepted]
    rows += [("proposed", item.id, item.check.kind, item.says) for item in found.proposed]
    print_table(
        ("standing", "id", "kind", "what"),
        rows,
        below=True,
        empty=f"No check decides over it, and {found.runs} good runs show nothing that held in all of them.",
    )
    if found.proposed:
        print_text(
            f"Read off {found.runs} good runs; `agentos task checks '{name}' --accept {found.proposed[0].id}` "
            "makes the first a check of all later tasks."
        )


def _of(spec: object) -> str:
    assert hasattr(spec, "items")
    return " ".join(f"{key}={value}" for key, value in spec.items() if key != "made_by").strip()
