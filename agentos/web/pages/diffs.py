"""Two texts side by side, line against line, with the words marked that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 3  # lines shown around a change
_LINES_MAX, _LINE_MAX = (
    3_000,
    1_000,
)  # beyond which lines, and words of a line, are not matched: it would take long
_ALIKE = 0.4  # of a line, below which its words are not compared: everything would be marked
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

Piece = tuple[str, bool]  # text, and whether it is marked


@dataclass(frozen=True, slots=True)
class DiffLine:
    """``kind`` is same, change, gone, new, or gap (lines are left out). Numbers count from 1, 0 stands for none."""

    kind: str
    left: int = 0
    right: int = 0
    before: Sequence[Piece] = ()
    after: Sequence[Piece] = ()


def side_by_side(before: str, after: str) -> list[DiffLine]:
    """The lines around every change."""
    old, new = before.splitlines()[:_LINES_MAX], after.splitlines()[:_LINES_MAX]
    found: list[DiffLine] = []
    end = 0
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        if group[0][1] > end:
            found.append(DiffLine("gap"))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [
                    DiffLine("same", i1 + n + 1, j1 + n + 1, [(line, False)], [(line, False)])
                    for n, line in enumerate(old[i1:i2])
                ]
            else:
                found += _replaced(old[i1:i2], new[j1:j2], i1, j1)
        end = group[-1][2]
    if end < len(old) and found:
        found.append(DiffLine("gap"))
    return found


def _replaced(old: Sequence[str], new: Sequence[str], i: int, j: int) -> Iterator[DiffLine]:
    both = min(len(old), len(new))
    for n in range(both):
        before, after = _marked(old[n], new[n])
        yield DiffLine("change", i + n + 1, j + n + 1, before, after)
    for n in range(both, len(old)):
        yield DiffLine("gone", i + n + 1, 0, [(old[n], False)])
    for n in range(both, len(new)):
        yield DiffLine("new", 0, j + n + 1, (), [(new[n], False)])


def _marked(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    old, new = _WORD.findall(before[:_LINE_MAX]), _WORD.findall(after[:_LINE_MAX])
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [(before, False)], [(after, False)]
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if i2 > i1:
            left.append(("".join(old[i1:i2]), tag != "equal"))
        if j2 > j1:
            right.append(("".join(new[j1:j2]), tag != "equal"))
    return [*left, *_rest(before)], [*right, *_rest(after)]


def _rest(line: str) -> list[Piece]:
    return [(line[_LINE_MAX:], False)] if len(line) > _LINE_MAX else []
