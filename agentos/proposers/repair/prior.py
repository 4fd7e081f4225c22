"""How likely an edit is before it is tried: its kind, its place, its ingredient.

The kind is read off the tokens that change, so that one table of counts over real repairs
(``evolver/edit_prior.toml``) serves every operator. Each kind's share is divided among the edits of
that kind: five other comparison operators weigh more each than five hundred possible conditions.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush, heapreplace
from pathlib import Path
from typing import Protocol

from agentos.errors import Invalid
from agentos.proposers.repair.source import CodeEdit, Family

TOKEN = re.compile(r"\d+\.?\d*|\w+|'[^'\n]*'|\"[^\"\n]*\"|\*\*|//|[<>=!]=|[^\s\w]")
COMPARISON = frozenset({"<", ">", "<=", ">=", "==", "!=", "is", "in", "not"})
ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "@"})

# The share of each kind that single edits by these operators can make at all: of scattered changes and
# long replacements most cannot be generated, so they must not claim the kind's whole count.
REACH = {
    "several places in the line": 0.1,
    "several lines": 0.3,
    "replace many tokens": 0.4,
    "insert tokens>3": 0.6,
    "other one token": 0.5,
}
BLOCKS = {
    "statement deleted": "delete statement",
    "statement inserted": "insert statement",
    "set again": "insert statement",
    "statements deleted": "delete statement",
    "statements exchanged": "move statement",
    "statement moved out": "move statement",
    "statement moved in": "move statement",
    "guard": "several lines",
    "guarded step": "several lines",
    "way out": "several lines",
    "caught": "several lines",
    "statement rewritten": "several lines",
    "step": "insert statement",
    "condition dropped": "delete statement",
    "defect": "known defect",
    **dict.fromkeys(("state by key", "marked", "asks itself", "whole idiom"), "several places"),
}  # fmt: skip


def read_prior(path: Path) -> Mapping[str, float]:
    """Counts by kind, and factors by ``by operator``. Raises Invalid when the file is not such a table."""
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        factors = {f"by {operator}": factor for operator, factor in read.get("operators", {}).items()}
        return {str(name): float(number) for name, number in {**read["kinds"], **factors}.items()}
    except (OSError, tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError, ValueError) as error:
        raise Invalid(str(path), [f"expected a table [kinds] of counts, found {error!r}"]) from error


@dataclass(frozen=True, slots=True)
class RankedEdit:
    """An edit, its kind, and its probability among all edits of this file; ``plain`` without what the failure says.

    ``turn`` is by what it comes after others, where that is not its probability.
    """

    edit: CodeEdit
    kind: str
    probability: float
    plain: float = 0.0
    turn: float | None = None


class Edited(Protocol):
    """A source or a text: its bytes, and the lines that they lie in."""

    data: bytes

    def line_of(self, offset: int) -> int:
        """The line number, from 1."""
        ...


def kind_of_edit(program: Edited, edit: CodeEdit) -> str:
    """Which row of the table the edit belongs to."""
    if edit.operator in BLOCKS and (edit.operator != "guard" or "\n" in edit.splices[0].text):
        return BLOCKS[edit.operator]
    changes = tuple((program.data[s.start : s.end], s.text) for s in edit.splices)
    return _kind_of_changes(changes)


@lru_cache(maxsize=1 << 14)
def _kind_of_changes(changes: tuple[tuple[bytes, str], ...]) -> str:
    """By what each splice puts in place of what."""
    tokens = [(tokens_in(old.decode()), tokens_in(new)) for old, new in changes]
    repeated = {pair for old, new in tokens for pair in _substitutions(old, new)}
    if len(repeated) == 1:
        return _one_token(*repeated.pop())
    if len(changes) > 1:
        return "several places in the line"
    old, new = _trimmed(*tokens[0])
    if not old:
        return _insertion(new)
    if not new:
        return "drop tokens<=3" if len(old) <= 3 else "drop tokens>3"
    if _is_subsequence(old, new):
        return _insertion(new[len(old) :])
    if _is_subsequence(new, old):
        return "drop tokens<=3" if len(old) - len(new) <= 3 else "drop tokens>3"
    return "replace few tokens" if len(old) <= 4 and len(new) <= 4 else "replace many tokens"


@lru_cache(maxsize=1 << 14)
def tokens_in(text: str) -> tuple[str, ...]:
    """Tokens without parentheses: those often only follow from the rest of the change."""
    return tuple([word for word in TOKEN.findall(text) if word not in ("(", ")")])


def _substitutions(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which token became which, if only single ones were replaced; otherwise two that do not agree."""
    if len(old) != len(new):
        yield from (("", "many"), ("many", ""))
        return
    yield from ((one, two) for one, two in zip(old, new, strict=True) if one != two)


def _trimmed(old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    start, short = 0, min(len(old), len(new))
    while start < short and old[start] == new[start]:
        start += 1
    old, new = old[start:], new[start:]
    behind, short = 0, min(len(old), len(new))
    while behind < short and old[-1 - behind] == new[-1 - behind]:
        behind += 1
    return old[: len(old) - behind], new[: len(new) - behind]


def _insertion(tokens: Sequence[str]) -> str:
    if len(tokens) == 2 and tokens[0] in "+-" and tokens[1] == "1":
        return "insert +-1"
    return "insert tokens<=3" if len(tokens) <= 3 else "insert tokens>3"


def _one_token(old: str, new: str) -> str:
    if old in COMPARISON and new in COMPARISON:
        return "comparison operator"
    if {old, new} == {"and", "or"}:
        return "comparison operator"  # a slip of the same sort, and not one of a hundred names
    if old in ARITHMETIC and new in ARITHMETIC:
        return "arithmetic operator"
    if old[0].isdigit() and new[0].isdigit():
        return "constant"
    if old[0] in "'\"" and new[0] in "'\"":
        return "string"
    return "name/keyword" if old.isidentifier() and new.isidentifier() else "other one token"


def _is_subsequence(short: Sequence[str], long: Sequence[str]) -> bool:
    rest = iter(long)
    return all(token in rest for token in short)


@dataclass(frozen=True, slots=True)
class WeightedEdit:
    """An edit, its kind, and its weight among edits of that kind; what the failure says of it comes on top."""

    edit: CodeEdit
    kind: str
    weight: float
    clue: float = 1.0


@dataclass(frozen=True, slots=True)
class EditStock:
    """Edits of one stretch of a file: some at hand, and families of which each makes its own when needed."""

    plain: Sequence[WeightedEdit]
    families: Sequence[tuple[Family, float]] = ()  # and how suspicious the place is
    part: float = 1.0  # of the file's suspicion that lies in this stretch
    following: float = 0.0  # how suspicious the next stretch is at most, of what this one is at most


def weighed(
    program: Edited,
    edits: Iterable[tuple[CodeEdit, float]],
    suspicion: Mapping[int, float],
    clue: Callable[[CodeEdit], float] = lambda _: 1.0,
) -> list[WeightedEdit]:
    """The edits, each with a factor of its own, by where they are.

    ``suspicion`` is by line; a line that is not in it counts little.
    """
    found = []
    for edit, factor in edits:
        line = program.line_of(min(s.start for s in edit.splices))
        weight = edit.weight * factor * suspicion.get(line, 0.02)
        found.append(WeightedEdit(edit, kind_of_edit(program, edit), weight, clue(edit)))
    return found


def totals(stocks: Iterable[EditStock]) -> Mapping[str, float]:
    """The weight of all edits of a kind, by kind."""
    found: dict[str, float] = defaultdict(float)
    for stock in stocks:
        for each in stock.plain:
            found[each.kind] += each.weight
        for family, suspicion in stock.families:
            found[BLOCKS[family.operator]] += family.total * suspicion
    return found


def merged(stocks: Iterable[EditStock]) -> EditStock:
    """Stretches that are at hand as one."""
    known = list(stocks)
    plain = [each for stock in known for each in stock.plain]
    families = [each for stock in known for each in stock.families]
    return EditStock(plain, families, sum(stock.part for stock in known))


def ranked(
    stock: EditStock, counts: Mapping[str, float], among: Mapping[str, float] | None = None
) -> Iterator[RankedEdit]:
    """The edits, likeliest first. ``among`` are the totals of all that the shares are divided among."""
    known = totals([stock]) if among is None else among
    return _likeliest_first(_streams(stock, _shares_of(known, stock.part, counts), counts))


def in_turn(stocks: Iterator[EditStock], counts: Mapping[str, float]) -> Iterator[RankedEdit]:
    """The edits of all stretches, likeliest first: a stretch is made when it may hold what is likelier than what is at hand.

    What a kind weighs in the whole file is estimated by the stretches made so far. The next stretch's likeliest edit
    is taken for as likely as this one's, by how suspicious both are.
    """
    known: dict[str, float] = defaultdict(float)
    part = 0.0

    def more() -> tuple[Sequence[_Stream], float, int]:
        nonlocal part
        stock = next(stocks, None)
        if stock is None:
            return [], 0.0, 0
        part += stock.part
        for kind, weight in totals([stock]).items():
            known[kind] += weight
        streams = _streams(stock, _shares_of(known, part, counts), counts)
        return streams, stock.following * max(most for most, _ in streams), len(stock.plain)

    return _likeliest_first([], more)


def _shares_of(known: Mapping[str, float], part: float, counts: Mapping[str, float]) -> Mapping[str, float]:
    """The probability of an edit of weight 1 by kind, where ``part`` of the file's suspicion has these totals."""
    shares = {kind: counts.get(kind, 1.0) * REACH.get(kind, 1.0) for kind in known}
    everything = sum(shares.values()) or 1.0
    return {kind: part * share / everything / (known[kind] or 1.0) for kind, share in shares.items()}


def _streams(stock: EditStock, each_s: Mapping[str, float], counts: Mapping[str, float]) -> Sequence[_Stream]:
    """What is at hand as one stream, then a stream for each family, each with how likely its likeliest is at most."""

    def share(operator: str, kind: str) -> float:
        return each_s[kind] * counts.get(f"by {operator}", 1.0)

    found = [
        RankedEdit(
            each.edit,
            each.kind,
            (likely := share(each.edit.operator, each.kind) * each.weight) * each.clue,
            likely,
        )
        for each in stock.plain
        if each.weight > 0
    ]
    found.sort(key=lambda r: -r.probability)
    made = []
    for family, suspicion in stock.families:
        each = share(family.operator, BLOCKS[family.operator]) * suspicion
        if each > 0:
            made.append((each * family.most, _made(family, each)))
    return [(found[0].probability if found else 0.0, iter(found)), *made]


_Stream = tuple[float, Iterator[RankedEdit]]
AT_HAND = 30_000  # edits that are kept at once, so that a long file needs no more memory than a short one


def _no_more() -> tuple[Sequence[_Stream], float, int]:
    return [], 0.0, 0


def _likeliest_first(
    streams: Sequence[_Stream], more: Callable[[], tuple[Sequence[_Stream], float, int]] = _no_more
) -> Iterator[RankedEdit]:
    """As ``heapq.merge``; a stream whose likeliest edit is at most so likely is not begun before its turn.

    ``more`` gives further streams, how likely those after them may be at most, and how many edits they keep at hand.
    """
    waiting: list[tuple[float, int, RankedEdit | None, Iterator[RankedEdit]]]
    waiting = [(-most, number, None, stream) for number, (most, stream) in enumerate(streams)]
    heapify(waiting)
    following, at_hand, number, plain = 1.0, 0, len(waiting), set[int]()
    while waiting or following:
        if following and (not waiting or (following > -waiting[0][0] and at_hand < AT_HAND)):
            opened, following, kept = more()
            at_hand += kept
            plain.add(number)  # the first of them is of what is at hand, the others are made in their turn
            for most, stream in opened:
                heappush(waiting, (-most, number, None, stream))
                number += 1
            continue
        _, turn, edit, stream = waiting[0]
        if edit is not None:
            at_hand -= turn in plain
            yield edit
        upcoming = next(stream, None)
        if upcoming is None:
            heappop(waiting)
        else:
            heapreplace(waiting, (-upcoming.probability, turn, upcoming, stream))


def _made(family: Family, each: float) -> Iterator[RankedEdit]:
    kind = BLOCKS[family.operator]
    for edit in family.edits:
        yield RankedEdit(edit, kind, each * edit.weight)
