"""How a noun shows its verbs: plain help that cuts no sentence; and the option that most of them have."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


class _Group(TyperGroup):
    """Lists its commands with their whole first paragraph, wrapped; click cuts it to one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The section of --help that names the verbs."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [
            (name, (item.help or "").split("\n\n")[0]) for name, item in found if item and not item.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(shown)


def noun(help: str) -> typer.Typer:
    """An empty group of commands, as all nouns have it."""
    return typer.Typer(
        cls=_Group, no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=help
    )


def verb() -> typer.Typer:
    """For a module that is one command: add it with ``@app.command()``."""
    return typer.Typer(add_completion=False, rich_markup_mode=None)
