"""``agentos service …``: the daemon under systemd."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import print_json, print_text
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.daemon.control.systemd import SystemdUnit

app = noun("Let systemd start the daemon, with the machine or with you.")

User = Annotated[bool, typer.Option("--user", help="Use your own systemd instead of the machine's.")]
Name = Annotated[
    str, typer.Option("--name", metavar="NAME", help="The unit's name; a second home needs one.")
]


@app.command()
def install(
    user: User = False,
    name: Name = "agentos",
    stand_by: Annotated[
        bool | None,
        typer.Option(
            "--stand-by/--no-stand-by",
            help="Start a daemon that waits while another one leads on the same database. Neither: as it is.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the unit and change nothing.")] = False,
) -> None:
    """Write the unit of this home and enable it. Safe to repeat, also after an upgrade."""
    unit = _unit(user, name)
    unit = replace(unit, stand_by=unit.stands_by if stand_by is None else stand_by)
    if dry_run:
        print(unit.text(), end="")
        return
    left = unit.install()
    print_text(f"The service stands in {unit.path}. Next:", "green")
    for line in left:
        print_text(f"  {line}")


@app.command()
def status(
    user: User = False,
    name: Name = "agentos",
    as_json: AsJson = False,
) -> None:
    """Show whether the unit is there, and what systemd says of it. Exit code 0 when it is active, 1 when not."""
    found = _unit(user, name).status()
    if as_json:
        print_json(found)
    elif not found.installed:
        print_text(f"There is no unit {found.unit}; `agentos service install` writes one.")
    else:
        said = ", ".join(word for word in (found.enabled, found.active) if word)
        print_text(f"{found.unit}  of {found.home}: {said or 'systemd cannot be asked'}")
    raise typer.Exit(0 if found.active == "active" else 1)


@app.command()
def uninstall(user: User = False, name: Name = "agentos") -> None:
    """Stop the service and remove its unit; the home stays as it is."""
    unit = _unit(user, name)
    gone = unit.uninstall()
    print_text(f"The unit {unit.path} is removed." if gone else f"There is no unit {unit.path}.")


def _unit(user: bool, name: str) -> SystemdUnit:
    from agentos.daemon.control.systemd import SystemdUnit
    from agentos.errors import UserError

    if not name.replace("-", "").isalnum():
        raise UserError(f"{name!r} is no name of a unit: use letters, digits and dashes.")
    return SystemdUnit(Home.find(), name, user)
