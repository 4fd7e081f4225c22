"""``agentos web``: the page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agentos.cli.group import verb
from agentos.cli.output import print_text
from agentos.errors import UserError, missing_extra
from agentos.home import Home

app = verb()


@app.command()
def web(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On this machine; 0 is any that is free.")
    ] = 8420,
    open_browser: Annotated[bool, typer.Option("--open", help="Also open it in the browser.")] = False,
    kept: Annotated[bool, typer.Option(hidden=True, help="By a daemon: until standard input ends.")] = False,
) -> None:
    """Show this home in a browser: what needs you, every evolution with its proof, runs, tasks, resources.

    Prints a link that works once, for ten minutes; where the page is up already, only that.
    """
    try:
        from agentos.web.server import serve
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("agentos"):
            raise
        raise UserError(missing_extra("web", "The page")) from None
    serve(
        Home.find(),
        port,
        open_browser=open_browser,
        tell=print_text,
        until=sys.stdin.buffer if kept else None,
    )
