"""What the failure says for and against an edit, and which edits must not be made at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from agentos.proposers.repair.prior import TOKEN, tokens_in
from agentos.proposers.repair.scope import names_in, target_names
from agentos.proposers.repair.source import CodeEdit, Program

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


@dataclass(frozen=True)
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

    def factor(self, edit: CodeEdit) -> float:
        """What the failure says of an edit."""
        first = edit.splices[0]
        old = " ".join(self.program.data[s.start : s.end].decode() for s in edit.splices)
        new = " ".join(splice.text for splice in edit.splices)
        return self.says(self.program.line_of(first.start), edit.operator, old, new)

    def says(self, line: int, operator: str, old: str, new: str) -> float:
        """The same for an operator that puts ``new`` where ``old`` stands."""
        if not self.clues:
            return self.at(line)
        return self.about(line, operator, self.tokens_of(new) ^ self.tokens_of(old))

    @cached_property
    def about(self) -> Callable[[int, str, frozenset[str]], float]:
        """The same for an operator that brings these tokens or takes them away: those that a clue speaks of."""

        @lru_cache(maxsize=1 << 14)
        def factor_of(line: int, operator: str, changed: frozenset[str]) -> float:
            factor = self.at(line)
            for clue in self.clues:
                if clue.fits(line, operator, changed):
                    factor *= clue.factor
            return min(MOST, factor) if self.clues else factor

        return factor_of

    @cached_property
    def tokens_of(self) -> Callable[[str], frozenset[str]]:
        """The tokens of a text that a clue speaks of."""
        known = frozenset(token for clue in self.clues for token in clue.tokens)
        return lru_cache(maxsize=1 << 14)(lambda text: known.intersection(_WORD.findall(text)))

    def allows(self, edit: CodeEdit) -> bool:
        """Whether the edit could be a repair: not one that reads the clock, knows the task, or hushes the evidence."""
        for splice in edit.splices:
            old = self.program.data[splice.start : splice.end].decode()
            if _reads_time(old, splice.text) or (self.identifying and self._identifies(old, splice.text)):
                return False
        return not any(self._hushes(edit, statement) for statement in self.raised)

    def _identifies(self, old: str, new: str) -> bool:
        """Whether the name of an input file, or its length, becomes a value."""
        if any(_names(old, name) for name in self.identifying):
            return any(f"len({name})" in new for name in self.identifying)
        return any(_names(new, name) for name in self.identifying)

    def _hushes(self, edit: CodeEdit, statement: ast.Raise) -> bool:
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

    def _opens(self, edit: CodeEdit, above: ast.If) -> bool:
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


class TextFactors:
    """What clues and words of the file say of texts that an operator brings.

    That depends on few of a text's tokens: texts with the same ones are of one kind, and are looked at together.
    """

    def __init__(self, clues: Clues, words: frozenset[str]) -> None:
        self._clues = clues
        self._words = words
        self._grouped: dict[int, GroupedTexts] = {}

    def grouped(self, weights: Mapping[str, float]) -> GroupedTexts:
        """The texts by their kind. ``weights`` has to live as long as this does."""
        if id(weights) not in self._grouped:
            kinds = {text: self.kind(text) for text in weights}
            most: dict[TextKind, float] = {}
            for text, kind in kinds.items():
                most[kind] = max(weights[text], most.get(kind, 0.0))
            self._grouped[id(weights)] = GroupedTexts(kinds, most, sum(weights.values()))
        return self._grouped[id(weights)]

    def kind(self, text: str) -> TextKind:
        """Whether words speak for it, and which of its tokens clues speak of."""
        return boost("", text, self._words), self._clues.tokens_of(text)

    def factor(self, line: int, operator: str, *kinds: TextKind) -> float:
        """For an operator that brings texts of these kinds."""
        tokens = frozenset().union(*(tokens for _, tokens in kinds))
        return max(words for words, _ in kinds) * self._clues.about(line, operator, tokens)


TextKind = tuple[float, frozenset[str]]


@dataclass(frozen=True, slots=True)
class GroupedTexts:
    """Texts with weights. ``most`` is the largest weight of a kind, ``total`` the sum of all."""

    kinds: Mapping[str, TextKind]
    most: Mapping[TextKind, float]
    total: float


def _names(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def _guards_it(text: str) -> bool:
    """Whether a condition or a ``try`` is put around the statement itself."""
    return text.lstrip().startswith(("if ", "try"))


def _reads_time(old: str, new: str) -> bool:
    return "(" in new and bool(_TIMES.search(new)) and not _TIMES.search(old)


def _blocks(node: ast.AST | None) -> Iterable[list[ast.stmt]]:
    return (getattr(node, name, []) for name in ("body", "orelse", "finalbody"))


# --- Signs beside the failure: the author's words, and an endless loop. Weak ones, so they only multiply an edit's
# weight among edits of its kind.


BOOST = 3.0
ENDS_LOOP = 20.0

# token of the new code -> words that speak for it
WORDS: dict[str, frozenset[str]] = {
    token: frozenset(words.split())
    for token, words in {
        "abs": "absolute distance difference magnitude close closer deviation",
        "set": "unique distinct duplicate duplicates common once",
        "sorted": "sorted sort order ordered ascending descending alphabetical",
        "sort": "sorted sort order ordered ascending descending alphabetical",
        "reverse": "reverse reversed descending backwards",
        "reversed": "reverse reversed descending backwards",
        "sum": "sum total add added",
        "len": "length long count size average mean number",
        "max": "max maximum largest biggest greatest highest most latest longest",
        "min": "min minimum smallest least lowest earliest shortest fewest",
        "round": "round rounded nearest decimal decimals closest",
        "floor": "floor down",
        "ceil": "ceil ceiling up",
        "int": "integer integers whole",
        "float": "float decimal fraction average mean",
        "lower": "lowercase lower insensitive case",
        "casefold": "insensitive case",
        "upper": "uppercase upper capital",
        "swapcase": "flip swap case",
        "strip": "whitespace strip stripped trim trimmed blank",
        "splitlines": "lines line",
        "startswith": "start starts starting prefix begins beginning",
        "endswith": "end ends ending suffix",
        "even": "even",
        "**": "cube squared square power exponent",
        "encode": "bytes encoding digest hash md5 sha",
        "all": "all every",
        "any": "any some",
        "None": "none missing empty",
        "not": "not without except non",
        "append": "append add list",
        "isdigit": "digit digits number",
        "isalpha": "letter letters alphabetical",
    }.items()
}


def boost(old: str, new: str, words: frozenset[str]) -> float:
    """The factor for replacing ``old`` by ``new`` in code that says ``words`` of itself."""
    spoken_for = _spoken_for(words)
    brought = spoken_for.intersection(tokens_in(new))
    return BOOST if brought and not brought.issubset(tokens_in(old)) else 1.0


@lru_cache(maxsize=64)
def _spoken_for(words: frozenset[str]) -> frozenset[str]:
    """The tokens that one of the words speaks for."""
    return frozenset(token for token, speaking in WORDS.items() if speaking & words)


def ends_a_loop(program: Program) -> Callable[[CodeEdit], float]:
    """The factor for an edit when the failing calls never end: does it tie a loop's test to its body?

    Either the test gets to use a name that the body changes, or the body to change one that it uses.
    """
    loops = []
    for node in program.nodes(ast.While):
        used = names_in(node.test)
        changed = {name for statement in node.body for name in _changed(statement)}
        body = program.span(node.body[0])[0], program.span(node.body[-1])[1]
        loops.append((program.span(node.test), body, used, changed))

    def factor(edit: CodeEdit) -> float:
        first = edit.splices[0]
        brought = set(TOKEN.findall(first.text)) - set(
            TOKEN.findall(program.data[first.start : first.end].decode())
        )
        for test, body, used, changed in loops:
            if test[0] <= first.start < test[1] and brought & (changed - used):
                return ENDS_LOOP
            if body[0] <= first.start <= body[1] and any(
                first.text.strip().startswith((f"{name} =", f"{name} -=", f"{name} +=")) for name in used
            ):
                return ENDS_LOOP
        return 1.0

    return factor


def _changed(statement: ast.stmt) -> list[str]:
    return [
        name
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in target_names(target)
    ]
