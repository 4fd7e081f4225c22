"""``agentos web``: the page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentos.cli.group import verb
from agentos.cli.output import print_text
from agentos.errors import ErrorKind, UserError, missing_extra
from agentos.home import Home

app = verb()


@app.command()
def web(
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Where it listens; 0: any that is free.")
    ] = 8420,
    open_browser: Annotated[bool, typer.Option("--open", help="Also open it in the browser.")] = False,
    bind: Annotated[
        str, typer.Option(metavar="IP", help="Serve others too: where it listens, such as 0.0.0.0.")
    ] = "",
    address: Annotated[
        str, typer.Option(metavar="URL", help="With --bind: the address by which browsers reach it.")
    ] = "",
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --bind: a PEM file, with its chain.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --certificate: its key, a PEM file.")
    ] = None,
    proxy_header: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Instead of a certificate: the header in which a proxy says `https`."
        ),
    ] = "",
    proxy_from: Annotated[
        str, typer.Option(metavar="IP", help="With --proxy-header: the address that the proxy comes from.")
    ] = "127.0.0.1",
    kept: Annotated[bool, typer.Option(hidden=True, help="By a daemon: until standard input ends.")] = False,
) -> None:
    """Show this home in a browser: what needs you, every evolution with its proof, runs, tasks, resources.

    Prints a link that works once, for ten minutes; where the page is up already, only that. Without --bind it answers
    on this machine alone.
    """
    try:
        from agentos.web.context import Reach, served_to_others
        from agentos.web.server import serve
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("agentos"):
            raise
        raise UserError(missing_extra("web", "The page"), kind=ErrorKind.NOT_INSTALLED) from None
    serve(
        Home.find(),
        served_to_others(Reach(bind, address, certificate, key, proxy_header, proxy_from, port)),
        open_browser=open_browser,
        tell=print_text,
        until=sys.stdin.buffer if kept else None,
    )
