"""What a person decides about an edit on: what it mends, its diff, and the questions that only they can answer.

And the lines in which this, and all else of an evolution, is printed.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from agentos.cli.output import clean
from agentos.daemon.views.evolution_view import OpenQuestions, Scene, chosen, proof_of
from agentos.domain import Candidate

LABEL = 11  # columns of the labels; what belongs to a label and is no sentence stands at 2
_PIPE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class ScreenLine:
    """Text from column ``indent`` on; a label stands before it. ``cut``: one line, never wrapped."""

    text: Text
    indent: int = LABEL
    label: str = ""
    cut: bool = False


def print_lines(lines: Iterable[ScreenLine]) -> None:
    """As wide as the terminal."""
    console = Console(highlight=False)
    width = console.width if console.is_terminal or "COLUMNS" in os.environ else _PIPE_WIDTH
    for line in lines:
        if line.cut:
            text = line.text.copy()
            text.truncate(width - line.indent, overflow="ellipsis")
            rows = [text]
        else:
            rows = list(line.text.wrap(console, width - line.indent))
        label = Text(line.label.ljust(line.indent), style="bold")
        for row in rows:
            whole = label.append_text(row)
            whole.rstrip()
            console.print(whole, soft_wrap=True)
            label = Text(" " * line.indent)


def diff_text(before: Mapping[str, str], candidate: Candidate) -> Text:
    """A coloured unified diff of the candidate's files."""
    text = Text()
    brought = candidate.migration.files if candidate.migration else {}
    for path, new in sorted([*candidate.edit.files.items(), *brought.items()]):
        for line in difflib.unified_diff(
            before.get(path, "").splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
        ):
            text.append(clean(line) + "\n", style=_diff_style(line))
    return text


def _diff_style(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def waiting_lines(scene: Scene, asked: OpenQuestions) -> Iterator[ScreenLine]:
    """What it mends, the diff, and what is asked of a person."""
    candidate = chosen(scene.story)
    if candidate is None:
        return
    yield ScreenLine(Text(scene.named(asked.mends)), label="Mends")
    for line in diff_text(scene.before, candidate).split():
        yield ScreenLine(line, 2)
    yield from migration_lines(candidate)
    yield ScreenLine(Text(), 0)
    label = "Questions" if len(asked.doubts) > 1 else "Question"
    for number, doubt in enumerate(asked.doubts, 1):
        mark = f"{number}. " if len(asked.doubts) > 1 else ""
        yield ScreenLine(Text(mark + scene.named(doubt.asks), style="bold yellow"), label=label)
        label, indent = "", LABEL + len(mark)
        if doubt.about:
            yield ScreenLine(
                Text(f"for {scene.named(doubt.about)}" if doubt.sides else scene.named(doubt.about)), indent
            )
        for name, answer in doubt.sides:
            yield ScreenLine(Text(f"{clean(name)}:", style="cyan"), indent)
            yield ScreenLine(Text(clean(answer)), indent + 2)


def migration_lines(candidate: Candidate) -> Iterator[ScreenLine]:
    """What else changes with it, of which its diff shows the outcome alone."""
    if moved := candidate.migration:
        told = f"migrates {moved}, as {moved.harness}/migrate.py made it in a box"
        yield ScreenLine(Text(told), label="State")


def beside_questions(scene: Scene, asked: OpenQuestions) -> Iterator[ScreenLine]:
    """That it may wait, and what its trials say."""
    if asked.waits:
        yield ScreenLine(Text(asked.waits), label="Waits")
    label = "Beside"
    for other in scene.beside:
        told = f"{other.id} of {clean(other.resource)} waits for you too; each was tried without the other"
        yield ScreenLine(Text(told), label=label)
        label = ""
    candidate = chosen(scene.story)
    if candidate and (told := proof_of(scene.story, candidate)):
        yield ScreenLine(Text(scene.named(told)), label="Proof")
