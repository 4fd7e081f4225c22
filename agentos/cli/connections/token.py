"""``agentos token …``: what lets programs in to the API of this home."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import print_json, print_table, print_text
from agentos.daemon.control.tokens import DAYS, TokenRole, TokenScope, tokens
from agentos.daemon.control.tokens import add as make
from agentos.daemon.control.tokens import revoke as take_away
from agentos.home import Home

app = noun("Make and revoke tokens for the API of this home.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The token's name: a-z, 0-9 and -.")]


@app.command(example="agentos token add dashboard --scope look --days 30")
def add(
    name: Name,
    scope: Annotated[
        list[TokenScope] | None,
        typer.Option(metavar="|".join(TokenScope), help="What it allows. Repeatable; without any: look."),
    ] = None,
    role: Annotated[
        TokenRole | None,
        typer.Option(
            metavar="|".join(TokenRole), help="Scopes of a user of the web page, or of a worker, in one word."
        ),
    ] = None,
    days: Annotated[int, typer.Option(metavar="DAYS", help="How long it is valid.")] = DAYS,
    as_json: AsJson = False,
) -> None:
    """Make a token, which is shown only once. What is done with it is done in your name."""
    from agentos.ledger.postgres.address import require_ledger

    home = Home.find()
    require_ledger(home.ledger)
    token, text = make(home, name, (*(role.scopes if role else ()), *(scope or ())), days, datetime.now(UTC))
    if as_json:
        print_json(
            {"name": token.name, "token": text, "scopes": token.scopes, "expires_at": token.expires_at}
        )
        return
    print_text(text)
    may = ", ".join(token.scopes)
    print_text(
        f"It may {may}, as {token.principal}, until {token.expires_at.astimezone():%Y-%m-%d}. It is kept nowhere: "
        f"copy it now. `agentos token revoke {name}` ends it.",
        "dim",
    )


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List tokens by name, with scopes and end; never the tokens themselves."""
    found = tokens(Home.find())
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    print_table(
        ("token", "may", "as", "until"),
        [
            (
                item.name,
                ", ".join(item.scopes),
                item.principal,
                f"{item.expires_at.astimezone():%Y-%m-%d}{'' if now < item.expires_at else ' (expired)'}",
            )
            for item in found
        ],
        empty="No tokens yet; `agentos token add NAME --scope look` makes one.",
    )


@app.command()
def revoke(name: Name) -> None:
    """Revoke a token: it opens nothing from now on."""
    print_text(f"{take_away(Home.find(), name).name} is revoked.")
