"""Two texts side by side: the lines around each change, with the words marked that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, takewhile, zip_longest

CONTEXT = 3  # lines shown around a change
# beyond which lines, and words of a line, are not matched: it would take long
_LINES_MAX, _LINE_MAX = (3_000, 1_000)
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


@dataclass(frozen=True, slots=True)
class EditedFile:
    path: str
    lines: Sequence[DiffLine]


def side_by_side(before: str, after: str) -> list[DiffLine]:
    """The lines around every change; of very many changed lines those that are too far down stand unmatched."""
    old, new = before.splitlines(), after.splitlines()
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    ends = zip(reversed(old[same:]), reversed(new[same:]), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    first, after_it = max(0, same - CONTEXT), max(0, tail - CONTEXT)  # what lies around need not be matched
    left, right = old[first : len(old) - after_it], new[first : len(new) - after_it]
    near, far = (left[:_LINES_MAX], right[:_LINES_MAX]), (left[_LINES_MAX:], right[_LINES_MAX:])
    found: list[DiffLine] = []
    end = 0
    for group in SequenceMatcher(None, *near, autojunk=False).get_grouped_opcodes(CONTEXT):
        if first + group[0][1] > end:
            found.append(DiffLine("gap"))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [
                    DiffLine("same", first + i1 + n + 1, first + j1 + n + 1, [(line, False)], [(line, False)])
                    for n, line in enumerate(near[0][i1:i2])
                ]
            else:
                found += _replaced(near[0][i1:i2], near[1][j1:j2], first + i1, first + j1)
        end = first + group[-1][2]
    rest = list(islice(_unmatched(*far, first + _LINES_MAX), _LINES_MAX + 1))
    rest[_LINES_MAX:] = [DiffLine("gap")] if len(rest) > _LINES_MAX else []
    if found and end + 1 < (max(rest[0].left, rest[0].right) if rest else len(old) + 1):
        found.append(DiffLine("gap"))
    return [*found, *rest]


def _unmatched(old: Sequence[str], new: Sequence[str], start: int) -> Iterator[DiffLine]:
    for number, (before, after) in enumerate(zip_longest(old, new), start + 1):
        if before != after:
            if before is not None:
                yield DiffLine("gone", number, 0, [(before, False)])
            if after is not None:
                yield DiffLine("new", 0, number, (), [(after, False)])


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
