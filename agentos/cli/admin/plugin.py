"""``agentos plugin``: what other distributions bring, and what of it cannot be used."""

from __future__ import annotations

from agentos.cli.group import AsJson, noun
from agentos.cli.output import print_json, print_table

app = noun("List installed plug-ins.")


@app.callback()
def plugin() -> None:
    """List installed plug-ins."""


@app.command("list")
def list_(
    as_json: AsJson = False,
) -> None:
    """Import every installed plug-in, and say which can be used; the daemon reads them when it starts."""
    from agentos.daemon.evolve.plugins import plugin_rows

    rows = plugin_rows()
    if as_json:
        print_json(rows)
        return
    columns = ("name", "kind", "distribution", "version", "state", "reason")
    print_table(
        columns,
        [tuple(row[column] for column in columns) for row in rows],
        empty="No plug-ins: docs/use/plugins.md says how one is made.",
        below=True,
    )
