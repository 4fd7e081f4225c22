"""``agentos trajectory …``: runs of other systems in, training data and spans out."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import clean, counted, print_json, print_text
from agentos.errors import Conflict, Invalid, UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.ledger.store import Ledger
    from agentos.trajectories.past import ImportedRun, ImportTarget
    from agentos.trajectories.readers.formats import Convert
    from agentos.trajectories.readers.records import Record

app = noun("Import runs of other systems; export training data and spans.")


REFUSED_MAX = 100  # refusals that are kept and told; all are counted
_WHY_MAX = 500
_PROGRESS_S = 0.5


@app.command("import", example="agentos trajectory import runs/ --dry-run")
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="JSON, JSON lines, .traj, .eval, or directories.")
    ],
    format: Annotated[
        str,
        typer.Option(metavar="NAME", help="The format, where it is not recognised; a wrong name lists all."),
    ] = "auto",
    convert: Annotated[
        str, typer.Option(metavar="MODULE:FUNCTION", help="A function of yours that reads the records.")
    ] = "",
    agent: Annotated[
        str,
        typer.Option(metavar="NAME", help="An agent of the registry that does the tasks that have checks."),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be imported, and import nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import runs of other systems. Exit code 1 when a record was refused."""
    from agentos.plugins import registry
    from agentos.trajectories.readers.formats import LOGS, READERS, converter

    shipped = format in ("auto", *READERS)
    if not shipped and format not in (known := registry.names("trajectories")):
        raise UserError(f"There is no format '{format}'; the formats are auto, {', '.join(known)}.")
    plugin = None if shipped else registry.named("trajectories", format)
    home = Home.find()
    with importing(home, agent, dry_run=dry_run, quiet=as_json) as taking:
        taking.convert = converter(convert) if convert else registry.load(plugin) if plugin else None
        for record in read_files(files, format if format in LOGS else "", taking.passed_over):
            taking.take(record, str(plugin) if plugin else format)
    _report(taking, dry_run=dry_run, as_json=as_json)
    raise typer.Exit(1 if taking.counts["refused"] else 0)


def _report(taking: _Taking, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "dry_run": dry_run,
                "imported": taking.counts["imported"],
                "known": taking.counts["known"],
                "results": taking.results,
                "refused": taking.refused,
                "refused_count": taking.counts["refused"],
                "passed_over": taking.passed_over,
            }
        )
    else:
        taking.tell()


def read_files(given: list[Path], log: str, passed_over: Counter[str]) -> Iterator[Record]:
    """The records of all files, one at a time; ``passed_over`` counts the files that are none."""
    from agentos.trajectories.readers.records import files_of, read_records

    found = [files_of(place) for place in given]
    for one in found:
        passed_over.update(one.passed_over)
    for path in [path for one in found for path in one.files]:
        yield from read_records(path, log)


@contextmanager
def importing(home: Home, agent: str, *, dry_run: bool, quiet: bool) -> Iterator[_Taking]:
    """An import; raises UserError when the registry has no such agent."""
    from agentos.daemon.offline import offline_context
    from agentos.domain import Kind, ResourceId
    from agentos.ledger.store import Ledger
    from agentos.resources import no_agent
    from agentos.settings import load_settings
    from agentos.trajectories.past import ImportTarget

    hold_out = load_settings(home.settings).hold_out
    with offline_context(home) as parts:
        stable = parts.snapshots.stable()
        if agent and ResourceId(Kind.AGENT, agent) not in parts.snapshots.names(stable):
            raise no_agent(agent, parts.snapshots.names(stable))
        ledger = parts.records
        assert isinstance(ledger, Ledger)
        into = ImportTarget(stable, hold_out, parts.now(), agent)
        taking = _Taking(ledger, into, dry_run=dry_run, quiet=quiet)
        try:
            yield taking
        finally:
            taking.end()


class _Taking:
    """An import under way: what became of the records so far."""

    def __init__(self, ledger: Ledger, into: ImportTarget, *, dry_run: bool, quiet: bool) -> None:
        self.counts: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.refused: list[dict[str, Any]] = []  # the first of them
        self.passed_over: Counter[str] = Counter()
        self.convert: Convert | None = None
        self._ledger = ledger
        self._into = into
        self._dry_run = dry_run
        self._quiet = quiet
        self._seen: set[str] = set()
        self._told = time.monotonic()
        self._shows = sys.stderr.isatty() and not quiet

    def take(self, record: Record, format: str) -> None:
        """Import one record, or note why not."""
        from agentos.trajectories.past import Source, past_of
        from agentos.trajectories.readers.formats import converted, detect, read

        self._progress()
        try:
            if record.fault:
                raise Invalid("record", [record.fault])
            if self.convert:
                name = format if format != "auto" else "converted"
                conversations = converted(record.value, self.convert)
            else:
                name = detect(record.value) if format == "auto" else format
                conversations = read(record.value, name)
        except Invalid as error:
            self._refuse(record, "; ".join(error.faults))
            return
        source = Source(name, record.file, record.number)
        for conversation in conversations:
            try:
                self._keep(past_of(conversation, source, self._into))
            # What stands there is not touched, and the other records are not held up.
            except Conflict as error:
                self._refuse(record, str(error))

    def _keep(self, past: ImportedRun) -> None:
        if self._dry_run:
            new = past.run.id not in self._seen and not self._ledger.has_run(past.run.id)
            self._seen.add(past.run.id)
        else:
            new = self._ledger.add_past(past.task, past.run, past.steps)
        self.counts["imported" if new else "known"] += 1
        if new and past.run.outcome is not None:
            self.results[past.run.outcome.result.value] += 1

    def _refuse(self, record: Record, why: str) -> None:
        self.counts["refused"] += 1
        if self.counts["refused"] > REFUSED_MAX:
            return
        self.refused.append({"file": record.file, "record": record.number, "why": why[:_WHY_MAX]})
        self.end()
        if not self._quiet:
            print(clean(f"{record.place}: {why[:_WHY_MAX]}"), file=sys.stderr)

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
        print_text(f"{counted(self.counts['imported'], 'run')} {verb}{f' ({how})' if how else ''}.")
        if self.counts["known"]:
            print_text(f"Already there: {counted(self.counts['known'], 'run')}.")
        for why, count in self.passed_over.most_common():
            print_text(f"Passed over: {counted(count, 'file')} ({why}).")
        if count := self.counts["refused"]:
            whose = "" if count <= REFUSED_MAX else f" of the first {REFUSED_MAX}"
            print_text(f"Refused: {count:,}; the reasons{whose} stand above.", "yellow")


@app.command()
def export(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="The ids of runs.")] = None,
    format: Annotated[
        str, typer.Option(metavar="NAME", help="openai-chat, sft, dpo, grpo or otel.")
    ] = "openai-chat",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A new file; else standard output.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All finished runs.")] = False,
    since: Annotated[
        str, typer.Option(metavar="DATE", help="Runs that finished since then, as 2026-01-31.")
    ] = "",
    evolution: Annotated[str, typer.Option(metavar="ID", help="The trials of this evolution.")] = "",
    content: Annotated[
        bool, typer.Option("--content", help="For otel: with messages, arguments and results.")
    ] = False,
) -> None:
    """Export runs, one JSON document on each line. Known secrets are replaced."""
    from agentos.cli.runs.trajectory_export import Chosen, export_lines
    from agentos.models.redaction import redactor_of
    from agentos.settings import load_settings
    from agentos.trajectories.training import SkippedExample

    home = Home.find()
    chosen = Chosen(tuple(runs or ()), all, since, evolution)
    redact = redactor_of(home, load_settings(home.settings)).value
    left: Counter[str] = Counter()
    written = 0
    lines = export_lines(home, chosen, format, content=content)
    with _out(output) as file:
        for line in lines:
            if isinstance(line, SkippedExample):
                left[line.why] += 1
                continue
            file.write(json.dumps(redact(line)) + "\n")
            written += 1
    print(f"{counted(written, 'record')} written.", file=sys.stderr)
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
    opened, name = tempfile.mkstemp(".part", f"{path.name}.", path.parent)  # over nothing that is there
    aside = Path(name)
    try:
        with open(opened, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    finally:
        aside.unlink(missing_ok=True)
