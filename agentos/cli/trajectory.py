"""``agentos trajectory …``: runs of other systems in, training data and spans out."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from agentos.cli.group import noun
from agentos.cli.output import clean, print_json, print_text
from agentos.errors import Invalid, UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.ledger.store import Ledger
    from agentos.trajectories.past import Into, Past
    from agentos.trajectories.records import Record

app = noun("Runs of other systems in, training data and spans out.")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]

_PROGRESS_S = 0.5


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="JSON, JSON lines, or directories.")],
    format: Annotated[str, typer.Option(help="auto, openai-chat, tau-bench, whowhen, sft or grpo.")] = "auto",
    agent: Annotated[
        str, typer.Option(help="An agent of the registry that is to do those tasks that have checks.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be imported.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take other systems' runs into the ledger. Exit code 1 when a record was refused."""
    from agentos.trajectories.formats import READERS

    if format not in ("auto", *READERS):
        raise UserError(f"There is no format '{format}'; the formats are auto, {', '.join(READERS)}.")
    home = Home.find()
    with _importing(home, agent, dry_run=dry_run, quiet=as_json) as taking:
        for record in _records(files):
            taking.take(record, format)
    if as_json:
        print_json(
            {
                "dry_run": dry_run,
                "imported": taking.counts["imported"],
                "known": taking.counts["known"],
                "results": taking.results,
                "refused": taking.refused,
            }
        )
    else:
        taking.tell()
    raise typer.Exit(1 if taking.refused else 0)


def _records(given: list[Path]) -> Iterator[Record]:
    from agentos.trajectories.records import files_of, read_records

    for path in [file for place in given for file in files_of(place)]:
        yield from read_records(path)


@contextmanager
def _importing(home: Home, agent: str, *, dry_run: bool, quiet: bool) -> Iterator[_Taking]:
    from agentos.daemon.offline import desk
    from agentos.domain import Kind, ResourceId
    from agentos.ledger.store import Ledger
    from agentos.settings import load_settings
    from agentos.trajectories.past import Into

    hold_out = load_settings(home.settings).hold_out
    with desk(home) as parts:
        stable = parts.snapshots.stable()
        if agent and ResourceId(Kind.AGENT, agent) not in parts.snapshots.names(stable):
            raise UserError(
                f"The registry has no agent '{agent}'; `agentos registry list` shows what it has."
            )
        ledger = parts.records
        assert isinstance(ledger, Ledger)
        into = Into(stable, hold_out, parts.now(), agent)
        taking = _Taking(ledger, into, dry_run=dry_run, quiet=quiet)
        try:
            yield taking
        finally:
            taking.end()


class _Taking:
    """An import under way: what became of the records so far."""

    def __init__(self, ledger: Ledger, into: Into, *, dry_run: bool, quiet: bool) -> None:
        self.counts: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.refused: list[dict[str, Any]] = []
        self._ledger = ledger
        self._into = into
        self._dry_run = dry_run
        self._quiet = quiet
        self._seen: set[str] = set()
        self._told = time.monotonic()
        self._shows = sys.stderr.isatty() and not quiet

    def take(self, record: Record, format: str) -> None:
        """Import one record, or note why not."""
        from agentos.trajectories.formats import detect, read
        from agentos.trajectories.past import Source, past_of

        self._progress()
        try:
            if record.fault:
                raise Invalid("record", [record.fault])
            name = detect(record.value) if format == "auto" else format
            conversations = read(record.value, name)
        except Invalid as error:
            self._refuse(record, "; ".join(error.faults))
            return
        source = Source(name, record.file, record.number)
        for conversation in conversations:
            self._keep(past_of(conversation, source, self._into))

    def _keep(self, past: Past) -> None:
        if self._dry_run:
            new = past.run.id not in self._seen and not self._ledger.has_run(past.run.id)
            self._seen.add(past.run.id)
        else:
            new = self._ledger.add_past(past.task, past.run, past.steps)
        self.counts["imported" if new else "known"] += 1
        if new and past.run.outcome is not None:
            self.results[past.run.outcome.result.value] += 1

    def _refuse(self, record: Record, why: str) -> None:
        self.refused.append({"file": record.file, "record": record.number, "why": why})
        self.end()
        if not self._quiet:
            print(clean(f"{record.place}: {why}"), file=sys.stderr)

    def _progress(self) -> None:
        if self._shows and time.monotonic() - self._told > _PROGRESS_S:
            self._told = time.monotonic()
            print(f"\r{self.counts['imported']:,} runs so far", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line of the progress."""
        if self._shows:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def tell(self) -> None:
        """The summary."""
        verb = "would be imported" if self._dry_run else "imported"
        how = ", ".join(f"{count} {result}" for result, count in sorted(self.results.items()))
        print_text(f"{self.counts['imported']:,} runs {verb}{f' ({how})' if how else ''}.")
        if self.counts["known"]:
            print_text(f"{self.counts['known']:,} were there already.")
        if self.refused:
            print_text(f"Refused: {len(self.refused):,}; the reasons stand above.", "yellow")


@app.command()
def export(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Ids of runs.")] = None,
    format: Annotated[str, typer.Option(help="openai-chat, sft, dpo, grpo or otel.")] = "openai-chat",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A new file; else standard output.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All finished runs.")] = False,
    since: Annotated[
        str, typer.Option(metavar="DATE", help="Runs that finished since then, as 2026-01-31.")
    ] = "",
    evolution: Annotated[str, typer.Option(metavar="ID", help="The trials of this evolution.")] = "",
    content: Annotated[
        bool, typer.Option("--content", help="otel: with messages, arguments and results.")
    ] = False,
) -> None:
    """Write runs out, one JSON document a line. Known secrets are replaced."""
    from agentos.cli.trajectory_export import Chosen, export_lines
    from agentos.models.redaction import redactor_of
    from agentos.settings import load_settings
    from agentos.trajectories.training import LeftOut

    home = Home.find()
    chosen = Chosen(tuple(runs or ()), all, since, evolution)
    redact = redactor_of(home, load_settings(home.settings)).value
    left: Counter[str] = Counter()
    written = 0
    lines = export_lines(home, chosen, format, content=content)
    with _out(output) as file:
        for line in lines:
            if isinstance(line, LeftOut):
                left[line.why] += 1
                continue
            file.write(json.dumps(redact(line)) + "\n")
            written += 1
    print(f"{written} records written.", file=sys.stderr)
    for why, count in left.most_common():
        print(f"{count} left out: {why}.", file=sys.stderr)


@contextmanager
def _out(path: Path | None) -> Iterator[TextIO]:
    """The file, whole or not at all; standard output without one."""
    if path is None:
        yield sys.stdout
        return
    if path.exists():
        raise UserError(f"{path} exists already; name a new file.")
    aside = path.with_name(path.name + ".part")
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    finally:
        aside.unlink(missing_ok=True)
