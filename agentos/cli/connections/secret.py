"""``agentos secret …``: values that the kernel puts into requests of tools, for the hosts that each is bound to."""

from __future__ import annotations

import getpass
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import moment_text, print_json, print_table, print_text
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.models.secrets import Secret

app = noun("Keep keys that tools send to hosts and never see.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name that a tool writes as {{secret:NAME}}.")]


@app.command("set", example="agentos secret set GITHUB --host api.github.com")
def set_(
    name: Name,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Where it may go: api.example.org, host:port; http://… for plain HTTP. Repeatable.",
        ),
    ] = None,
    any_task: Annotated[
        bool,
        typer.Option("--any-task", help="Let each task use it; else a task has to name it under 'secrets'."),
    ] = False,
    file: Annotated[
        bool,
        typer.Option("--file", help="Keep it in secrets.json (mode 0600), also where there is a keyring."),
    ] = False,
    store: Annotated[
        str, typer.Option(metavar="NAME", help="Keep its value in this store, which a plug-in brings.")
    ] = "",
) -> None:
    """Keep a secret; its value is asked for, or read from standard input. Replaces one of that name."""
    from agentos.ledger.postgres.address import require_ledger
    from agentos.models.secrets import Secret, keep

    home = Home.find()
    require_ledger(home.ledger)
    value = getpass.getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.read(1 << 16).rstrip("\r\n")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    kept = keep(
        home, Secret(name, tuple(host or ()), any_task, now, "file"), value, in_file=file, store=store
    )
    _note(home, "secret.set", kept)
    places = {"keyring": "the keyring", "file": f"{home.secrets} (mode 0600)"}
    place = places.get(kept.kept_in, f"the store {kept.kept_in}")
    print_text(f"{name} lies in {place}, for {', '.join(kept.hosts)}.")


@app.command("list")
def list_(
    as_json: AsJson = False,
) -> None:
    """List the names of secrets and their hosts; never their values."""
    from agentos.models.secrets import secrets_of

    found = sorted(secrets_of(Home.find()).values(), key=lambda secret: secret.name)
    if as_json:
        print_json(found)
        return
    print_table(
        ("secret", "hosts", "tasks", "kept in", "set"),
        [
            (
                item.name,
                ", ".join(item.hosts),
                "any" if item.any_task else "that name it",
                item.kept_in,
                moment_text(item.set_at),
            )
            for item in found
        ],
        empty="No secrets yet; `agentos secret set NAME --host HOST` keeps one.",
    )


@app.command()
def remove(name: Name) -> None:
    """Remove a secret."""
    from agentos.models.secrets import remove as forget

    home = Home.find()
    _note(home, "secret.removed", forget(home, name))
    print_text(f"{name} is removed.")


def _note(home: Home, event: str, secret: Secret) -> None:
    """On record without the value, and without a digest of it, which could be guessed at."""
    from agentos.evolver.promote.consent import person
    from agentos.ledger.store import Ledger

    ledger = Ledger(home.ledger)
    try:
        ledger.note(event, secret.name, asdict(secret) | {"hosts": list(secret.hosts), "principal": person()})
    finally:
        ledger.close()
