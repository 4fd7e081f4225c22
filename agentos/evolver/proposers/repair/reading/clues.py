"""What the failure says for and against an edit, and which edits must not be made at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from agentos.evolver.proposers.repair.source import Edit, Program

MOST = 60.0  # what all clues together can speak for an edit
AT_LINE = 2.0  # for the line at which an exception left the file
_WORD = re.compile(r"\w+|[^\w\s]")
# A repair must not read what differs in each run: it would pass by chance.
_TIMES = re.compile(
    r"\b(now|utcnow|today|time_ns|monotonic|perf_counter|process_time|getpid|random)\(|\btime\.time\("
)


@dataclass(frozen=True, slots=True)
class Clue:
    """Speaks by ``factor`` for edits by one of the operators, or that bring one of the tokens or take it away.

    ``lines`` are those that it is about; none means all.
    """

    factor: float
    operators: frozenset[str] = frozenset()
    tokens: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()

    def fits(self, line: int, operator: str, changed: frozenset[str]) -> bool:
        """Whether the clue speaks for such an edit there."""
        if self.lines and line not in self.lines:
            return False
        return operator in self.operators or bool(changed & self.tokens)


@dataclass(frozen=True, slots=True)
class Clues:
    """All that was read. ``raised`` are the ``raise`` statements by which failing calls ended."""

    program: Program
    clues: tuple[Clue, ...] = ()
    lines: frozenset[int] = frozenset()  # at which exceptions left the file
    identifying: frozenset[str] = frozenset()  # names whose values only tell inputs apart
    raised: tuple[ast.Raise, ...] = ()

    def at(self, line: int) -> float:
        """What the failure says of a line."""
        return AT_LINE if line in self.lines else 1.0

    def factor(self, edit: Edit) -> float:
        """What the failure says of an edit."""
        first = edit.splices[0]
        old = " ".join(self.program.data[s.start : s.end].decode() for s in edit.splices)
        new = " ".join(splice.text for splice in edit.splices)
        return self.says(self.program.line_of(first.start), edit.operator, old, new)

    def says(self, line: int, operator: str, old: str, new: str) -> float:
        """The same for an operator that puts ``new`` where ``old`` stands."""
        if not self.clues:
            return self.at(line)
        changed = frozenset(_WORD.findall(new)) ^ frozenset(_WORD.findall(old))
        factor = self.at(line)
        for clue in self.clues:
            if clue.fits(line, operator, changed):
                factor *= clue.factor
        return min(MOST, factor)

    def allows(self, edit: Edit) -> bool:
        """Whether the edit could be a repair: not one that reads the clock, knows the task, or hushes the evidence."""
        for splice in edit.splices:
            old = self.program.data[splice.start : splice.end].decode()
            if _reads_time(old, splice.text) or self._identifies(old, splice.text):
                return False
        return not any(self._hushes(edit, statement) for statement in self.raised)

    def _identifies(self, old: str, new: str) -> bool:
        """Whether the name of an input file, or its length, becomes a value."""
        if any(name in old for name in self.identifying):
            return any(f"len({name})" in new for name in self.identifying)
        return any(re.search(rf"(?<![\w.]){re.escape(name)}\b", new) for name in self.identifying)

    def _hushes(self, edit: Edit, statement: ast.Raise) -> bool:
        """Whether the edit takes the statement away, or keeps the program from coming to it whatever the input."""
        start, end = self.program.span(statement)
        above = self.program.parent.get(statement)
        block = next((b for b in _blocks(above) if statement in b), [statement])
        first = self.program.span(block[0])[0]
        for splice in edit.splices:
            if splice.start <= start and end <= splice.end and splice.end > splice.start:
                if "raise" not in splice.text or _guards_it(splice.text):
                    return True
            elif first <= splice.start <= start and splice.end <= start and not splice.expression:
                return True
        return isinstance(above, ast.If) and self._opens(edit, above)

    def _opens(self, edit: Edit, above: ast.If) -> bool:
        """Whether the test before the raise is made a constant, or is asked before, for a way around."""
        test, (start, end) = self.program.text(above.test), self.program.span(above.test)
        at = self.program.span(above)[0]
        return any(
            (
                splice.start <= start
                and end <= splice.end
                and splice.text.strip() in ("False", "None", "0", "True")
            )
            or (splice.start == splice.end == at and f"if {test}:" in splice.text)
            for splice in edit.splices
        )


def _guards_it(text: str) -> bool:
    """Whether a condition or a ``try`` is put around the statement itself."""
    return text.lstrip().startswith(("if ", "try"))


def _reads_time(old: str, new: str) -> bool:
    return bool(_TIMES.search(new)) and not _TIMES.search(old)


def _blocks(node: ast.AST | None) -> Iterable[list[ast.stmt]]:
    return (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))
