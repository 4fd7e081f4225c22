"""Edits of shell lines: flags, counts, columns, separators, quotes, patterns, stages of a pipe.

A line that sets limits, grants or the environment, or ends the script, is left alone; no command comes in that
does not stand in the file, but for those that only sort and cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from agentos.evolver.guards.static.text_lint import is_kept_line
from agentos.proposers.repair.operators.settings import Ingredients, numbers, patterns
from agentos.proposers.repair.source import CodeEdit, Splice

# Flags that tell an answer from another one and touch nothing; what writes files (sort -o, sed -i) is not among them.
FLAGS = {"sort": "nrufbV", "grep": "ivcwxoEFhn", "uniq": "cdui", "wc": "lwcm", "cut": "s", "tr": "ds", "paste": "s", "join": "i"}  # fmt: skip
_STAGES = ("sort", "sort -n", "sort -u", "sort -r", "uniq", "tail -n +2", "head -n 1", "tail -n 1", "grep .")
_SEPARATORS = ("','", "';'", "':'", "'|'", "'\\t'", "' '", "'='", "'-'", "'/'")
_COMPARED = {"-lt": ("-le", "-gt"), "-le": ("-lt", "-ge"), "-gt": ("-ge", "-lt"), "-ge": ("-gt", "-le"), "-eq": ("-ne",),
             "-ne": ("-eq",), "-z": ("-n",), "-n": ("-z",)}  # fmt: skip
_SIGNS = {">=": (">", "<="), "<=": ("<", ">="), "==": ("!=",), "!=": ("==",), ">": (">=", "<"), "<": ("<=", ">"), "&&": ("||",), "||": ("&&",)}  # fmt: skip
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
_SWITCHED = re.compile(r"(?<![\w/.-])(" + "|".join(FLAGS) + r")((?:\s+-[^\s|;&)]+)*)")
_QUOTED = re.compile(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*\"""")


def shell(text: str, given: Ingredients) -> Iterator[tuple[int, CodeEdit]]:
    """Every edit, with the character at which it begins."""
    at = 0
    for line in text.splitlines(keepends=True):
        code = line.rstrip("\n")
        if code.strip() and not code.lstrip().startswith("#") and not is_kept_line(code):
            for start, end, new, operator, weight in _of_line(code, text, given):
                if code[start:end] != new:
                    first = len(text[: at + start].encode())
                    last = first + len(code[start:end].encode())
                    yield (
                        at + start,
                        CodeEdit((Splice(first, last, new, expression=False),), operator, weight),
                    )
        at += len(line)


_Change = tuple[int, int, str, str, float]


def _of_line(code: str, text: str, given: Ingredients) -> Iterator[_Change]:
    quoted = [m.span() for m in _QUOTED.finditer(code)]

    def bare(at: int) -> bool:
        return not any(start < at < end - 1 for start, end in quoted)

    for found in _SWITCHED.finditer(code):
        if bare(found.start()):
            yield from _flags(found, text)
    yield from _separators(code)
    yield from _counts(code)
    yield from _variables(code, quoted)
    yield from _stages(code, [m.start() for m in _PIPE.finditer(code) if bare(m.start())])
    yield from _comparisons(code, bare)
    for start, end in quoted:
        yield from _of_quoted(code, start, end, given)


def _of_quoted(code: str, start: int, end: int, given: Ingredients) -> Iterator[_Change]:
    body, sign = code[start + 1 : end - 1], code[start]
    other = '"' if sign == "'" else "'"
    if other not in body:
        yield start, end, f"{other}{body}{other}", "quoting", 0.5
    if re.search(r"\b(?:grep|sed|awk)\b", code[:start]) and not re.search(r"-[Ft]\s*$", code[:start]):
        for made in patterns(body, given):
            if sign not in made:
                yield start + 1, end - 1, made, "pattern", 0.1 if len(made) < len(body) else 0.3


def _comparisons(code: str, bare: Callable[[int], bool]) -> Iterator[_Change]:
    """Those of brackets; signs only within quotes: outside of them they lead into a file."""
    for name, others in _COMPARED.items():
        for found in re.finditer(rf"(?<![\w-]){name}(?=\s)", code) if "[" in code else ():
            yield from ((*found.span(), new, "comparison", 1.0) for new in others)
    for name, others in _SIGNS.items():
        for found in re.finditer(rf"(?<![<>=!|&]){re.escape(name)}(?![<>=|&])", code):
            if name in ("&&", "||") or not bare(found.start()):
                yield from ((*found.span(), new, "comparison", 1.0) for new in others)


def _flags(found: re.Match[str], text: str) -> Iterator[_Change]:
    """Of one command, with the flags that it has."""
    name, given = found.groups()
    behind = found.start(2)
    standing = list(re.finditer(r"-([A-Za-z]+)(?=\s|$)", given))
    letters = {letter for m in standing for letter in m[1]}
    free = [letter for letter in FLAGS[name] if letter not in letters]
    yield from ((behind, behind, f" -{letter}", "flag added", 1.0) for letter in free)
    for m in standing:
        start, end = behind + m.start(), behind + m.end()
        for letter in filter(FLAGS[name].__contains__, m[1]):
            if rest := m[1].replace(letter, ""):
                yield start, end, f"-{rest}", "flag left out", 1.0
            else:
                yield start - 1, end, "", "flag left out", 1.0
            for other in free:
                yield start, end, f"-{m[1].replace(letter, other)}", "flag exchanged", 0.7
    for key in re.finditer(r"-k\s?(\d+)(?:,\d+)?([nr]*)", given):
        for how in ("", "n", "r", "nr"):
            for column in (key[1], f"{key[1]},{key[1]}"):
                yield behind + key.start(), behind + key.end(), f"-k{column}{how}", "sort key", 0.7
    for other in {m.group() for m in re.finditer(rf"(?<={name} )-[A-Za-z]+(?=\s)", text)}:
        if {*other[1:]} <= {*free}:
            yield behind, behind, f" {other}", "flag of the file", 1.0


def _separators(code: str) -> Iterator[_Change]:
    for found in re.finditer(r"(?<![\w-])(-[Fdt])\s?(\\?.|'[^']*'|\"[^\"]*\")(?=\s)", code):
        for sign in _SEPARATORS:
            if found[1] == "-F" or len(sign) == 3:
                yield *found.span(), f"{found[1]}{sign}", "separator", 1.0
    for found in re.finditer(r"(?<![\w/.-])awk(?! -F)(?=\s)", code):
        yield from ((found.end(), found.end(), f" -F{sign}", "separator", 1.0) for sign in _SEPARATORS)


def _counts(code: str) -> Iterator[_Change]:
    for found in re.finditer(
        r"(?<![\w.])(?:(?<=\$)|(?<=-[nkfc])|(?<=[\s+,({\[=<>*/-]))(\d+(?:\.\d+)?)(?![\w.])", code
    ):
        column = code[: found.start()].endswith(("$", "-f", "-k"))
        for value, weight in numbers(found[1]):
            if not value.startswith("-") and (not column or value.isdigit()):
                yield *found.span(1), value, "count", weight if column or weight < 1 else 1.5
    for found in re.finditer(r"(?<=-n )(\+?)(?=\d)", code):
        yield *found.span(), "" if found[1] else "+", "count", 0.5
    for one, other in (("head", "tail"), ("tail", "head")):
        for found in re.finditer(rf"(?<![\w/.-]){one}(?=\s)", code):
            yield *found.span(), other, "other end", 0.7


def _variables(code: str, quoted: Sequence[tuple[int, int]]) -> Iterator[_Change]:
    """A variable put into quotes."""
    for found in re.finditer(r"\$(?:\w+|\{\w+\}|@)", code):
        if not any(start < found.start() < end for start, end in quoted) and not found.group()[1:].isdigit():
            yield *found.span(), f'"{found.group()}"', "quoting", 2.0


def _stages(code: str, cuts: Sequence[int]) -> Iterator[_Change]:
    """A stage of the pipe left out, exchanged with its neighbour, or added; a search that may find nothing."""
    ends = [*cuts[1:], len(code)][: len(cuts)]
    for start, end in zip(cuts, ends, strict=True):
        yield start, end, "" if end == len(code) else " ", "stage left out", 0.3
    for start, middle, end in zip(cuts, cuts[1:], ends[1:], strict=False):
        exchanged = f"{code[middle:end].rstrip()} {code[start:middle].rstrip()}"
        yield start, end, exchanged if end == len(code) else f"{exchanged} ", "stages exchanged", 0.5
    for at in (*cuts, len(code)) if cuts or re.match(r"\s*(?:sort|grep|cut|awk|sed|tr|cat)\b", code) else ():
        if "||" not in code[at:] and not code.rstrip().endswith(("then", "do", "{", "\\")):
            yield from (
                (at, at, f" | {stage} "[: None if at < len(code) else -1], "stage added", 0.2)
                for stage in _STAGES
            )
    if re.search(r"\b(?:grep|diff|cmp)\b", code) and "||" not in code and "if " not in code:
        yield len(code), len(code), " || true", "nothing found", 0.7
