"""How a noun shows its verbs: plain help that cuts no sentence; and the options that most of them have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from agentos.cli.output import LIMIT_MAX

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Newest = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=LIMIT_MAX, help="How many of the newest.")
]

_BOUND = f"; 1<=x<={LIMIT_MAX}"  # of a list's length: it only keeps SQL from overflowing


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """The sections of --help that name arguments and options: typer's, which tells the type of an argument by Python's name."""
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        rows = [
            (item.display_name_raw if kind == "argument" else record[0], record[1].replace(_BOUND, ""))
            for item in command.get_params(ctx)
            if item.param_type_name == kind and (record := item.get_help_record(ctx))
        ]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


class _Command(TyperCommand):
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """As a person reads them."""
        _write_options(self, ctx, formatter)


class _Group(TyperGroup):
    """Lists its commands with their whole first paragraph, wrapped; click cuts it to one line."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """As a person reads them, and the verbs."""
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The section of --help that names the verbs."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [
            (name, (item.help or "").split("\n\n")[0]) for name, item in found if item and not item.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(shown)


class Verbs(typer.Typer):
    def command(self, name: str | None = None, *, example: str = "", **more: Any) -> Callable[[Any], Any]:
        """As typer's; ``example`` is a line that one may type, told at the end of --help."""
        epilog = f"Example: {example}" if example else None
        return super().command(name, cls=_Command, epilog=epilog, **more)


def noun(help: str) -> Verbs:
    """An empty group of commands, as all nouns have it."""
    return Verbs(cls=_Group, no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=help)


def verb() -> Verbs:
    """For a module that is one command: add it with ``@app.command()``."""
    return Verbs(add_completion=False, rich_markup_mode=None)
