"""Noun of the command line: ``agentos digest``, how runs ended."""

from __future__ import annotations

from collections import Counter

import typer

from agentos.home import Home
from agentos.ledger.reading import Reader

app = typer.Typer(add_completion=False, help="How runs ended.")


@app.command()
def digest(last: int = typer.Option(1000, min=1, help="Of the newest so many.")) -> None:
    """Count the newest runs by how they ended."""
    runs = Reader(Home.find().ledger).runs(limit=last)
    for result, count in Counter(run.outcome.result for run in runs if run.outcome).most_common():
        print(f"{count:6}  {result.value}")
