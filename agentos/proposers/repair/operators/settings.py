"""Texts beside the code: settings in JSON, TOML and YAML, and scripts of a shell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from agentos.programs import KEPT_KEYS, is_kept_line
from agentos.proposers.repair.operators.idioms.texts import TIMES, variants, with_signs
from agentos.proposers.repair.source import CodeEdit, Splice

_TOKEN = re.compile(
    r"""(?P<comment>(?:^|(?<=\s))\#[^\n]*)|(?P<string>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
    r"""|(?P<word>[^\s"'\[\]{},:=\#][^\n"'\[\]{},:=\#]*?(?=\s*(?:[\]},:=\n]|\s\#|$)))|(?P<mark>[\[\]{},:=\n])""",
    re.MULTILINE,
)
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*)(?:\.\d+)?")
_TURNED = {"true": "false", "yes": "no", "on": "off", "True": "False"}
_TURNED |= {other: one for one, other in _TURNED.items()}
_SEPARATORS = (",", ";", "\t", "|", ":", " ", "-", "/", ".", "=", "_", ", ", "; ", "\n")
_PATTERN = re.compile(r"\\[dwsSb.]|\(\?|\[[^\]]+\]|\{\d|^\^|\$$|[\w)\]][+*?]")
_FACTORS = (10, 100, 60, 1000, 24, 7, 12, 3600, 1024)


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What edits of a text may put in: none of it is an expected value."""

    read: Sequence[str] = ()  # texts that the code has and the data lacks: names that it looks up
    words: Sequence[str] = ()  # of what failing calls were given, but for names of files
    fields: Sequence[str] = ()  # names of columns and keys there
    signs: str = ""  # punctuation there


@dataclass(frozen=True, slots=True)
class TextToken:
    """One text, number or word, and the key above it. ``start`` and ``end`` are offsets of characters."""

    start: int
    end: int
    kind: str  # "key", "string", "number", "turned" or "word"
    written: str
    key: str

    @property
    def value(self) -> str:
        """Without its quotes."""
        if self.written[:1] == '"':
            try:
                return str(json.loads(self.written))
            except ValueError:
                return self.written[1:-1]
        return self.written[1:-1] if self.written[:1] == "'" else self.written

    def as_written(self, value: str) -> str:
        """Another value in the same quotes."""
        if self.written[:1] == "'":
            return f"'{value}'"
        return json.dumps(value, ensure_ascii=False) if self.written[:1] == '"' else value


@dataclass(frozen=True, slots=True)
class DataList:
    """The entries of one list or table in brackets, or the lines of a YAML list: their offsets."""

    entries: Sequence[tuple[int, int]]
    key: str


def read_data(text: str) -> tuple[Sequence[TextToken], Sequence[DataList]]:
    """All that stands in it, in order."""
    tokens: list[TextToken] = []
    lists: list[DataList] = []
    open_at: list[
        tuple[str, int, list[tuple[int, int]], str]
    ] = []  # bracket, where its entry begins, entries, key
    key = ""
    for found in _TOKEN.finditer(text):
        kind, written = str(found.lastgroup), found.group()
        if kind == "comment" or written == "\n":
            continue
        if kind == "mark":
            if written in "[{":
                open_at.append((written, found.end(), [], key))
            elif open_at and written in ",]}":
                bracket, start, entries, above = open_at.pop()
                if text[start : found.start()].strip():
                    entries.append(_trimmed(text, start, found.start()))
                if written == ",":
                    open_at.append((bracket, found.end(), entries, above))
                else:
                    lists.append(DataList(entries, above))
                key = above
            continue
        start, end = _trimmed(text, *found.span())
        dash = re.match(r"-\s+", text[start:end])
        start += len(dash.group()) if dash else 0
        written = text[start:end]
        behind = text[found.end() :].lstrip(" \t")
        if behind[:1] in ("=", ":") and written[:1] != "{":
            tokens.append(TextToken(start, end, "key", written, key))
            key = tokens[-1].value
        elif written:
            tokens.append(TextToken(start, end, _kind(kind, written), written, key))
    return tokens, [*lists, *_dashed(text)]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), end - (len(inner) - len(inner.rstrip()))


def _kind(kind: str, written: str) -> str:
    if kind == "string":
        return "string"
    return "number" if _NUMBER.fullmatch(written) else "turned" if written in _TURNED else "word"


def _dashed(text: str) -> Iterator[DataList]:
    """Lists of one entry a line, as YAML has them."""
    for block in re.finditer(r"(?:^[ \t]*- [^\n]*\n?)+", text, re.MULTILINE):
        lines = re.finditer(r"- ([^\n]*\S)", block.group())
        yield DataList([(block.start() + m.start(1), block.start() + m.end(1)) for m in lines], "")


def settings(text: str, given: Ingredients, *, document: bool) -> Iterator[tuple[int, CodeEdit]]:
    """Every edit, with the character at which it begins. Of a program's ``document`` only its command may change."""
    tokens, lists = read_data(text)
    offsets = _Offsets(text)
    command = next((each for each in lists if each.key == "command"), DataList((), ""))
    for token in tokens:
        if document and not any(start <= token.start < end for start, end in command.entries[1:]):
            continue
        if token.key in KEPT_KEYS or (token.kind == "key" and token.value in KEPT_KEYS):
            continue
        for value, operator, weight in _others(token, tokens, given):
            if value != token.written:
                yield token.start, offsets.edit([(token.start, token.end, value)], operator, weight)
    for each in lists if not document else ():
        if each.key not in KEPT_KEYS:
            for start, changes, operator, weight in _of_list(text, each, given):
                yield start, offsets.edit(changes, operator, weight)


class _Offsets:
    """Edits by characters as edits by bytes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def edit(self, changes: Sequence[tuple[int, int, str]], operator: str, weight: float) -> CodeEdit:
        """One logical change."""
        return CodeEdit(
            tuple(
                Splice(self._at(start), self._at(end), new, expression=False) for start, end, new in changes
            ),
            operator,
            weight,
        )

    def _at(self, offset: int) -> int:
        return len(self._text[:offset].encode())


def _others(
    token: TextToken, tokens: Sequence[TextToken], given: Ingredients
) -> Iterator[tuple[str, str, float]]:
    """(what may stand there instead, operator, weight)."""
    if token.kind == "turned":
        yield _TURNED[token.written], "turned", 3.0
    elif token.kind == "number":
        for value, weight in numbers(token.written):
            yield value, "number", weight
        for other in dict.fromkeys(t.written for t in tokens if t.kind == "number"):
            yield other, "number of the file", 0.3
    elif token.kind == "key":
        for name in given.read:
            if name != token.value:
                yield token.as_written(name), "key renamed", 0.2 + 2.0 * _alike(name, token.value)
    else:
        for value, operator, weight in texts(token.value, given):
            yield token.as_written(value), operator, weight
        same = [t for t in tokens if t.kind == token.kind and t.start != token.start]
        for other in dict.fromkeys(t.value for t in same):
            yield token.as_written(other), "text of the file", 0.3


def numbers(written: str) -> Iterator[tuple[str, float]]:
    """Numbers that are mistaken for each other."""
    digits = written.replace("_", "")
    places = len(digits.partition(".")[2])
    value, step = float(digits), 10.0**-places
    near = [(value + n * step, 1.0 / abs(n)) for n in (1, -1, 2, -2, 3, -3, 4, -4)]
    for factor in _FACTORS:
        weight = 1.0 if factor == 10 else 0.3
        near += [(value * factor, weight), (value / factor, weight)]
    near += [(-value, 0.3), (value + 1, 0.5), (value - 1, 0.5), (0.0, 0.2), (1.0, 0.2), (2 * value, 0.3), (value / 2, 0.3)]  # fmt: skip
    known = {digits}
    for other, weight in near:
        text = f"{other:.{places}f}" if places else f"{other:.10g}"
        if "e" not in text and text not in known:
            known.add(text)
            yield text, weight
    for at in range(len(digits) - 1):
        if digits[at : at + 2].isdigit() and digits[at] != digits[at + 1]:
            yield digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :], 0.3


def texts(value: str, given: Ingredients) -> Iterator[tuple[str, str, float]]:
    """Texts that are mistaken for each other: (value, operator, weight)."""
    for case in (value.lower(), value.upper(), value.title(), value.strip()):
        yield case, "case", 0.5
    yield from ((blank, "blanks", 0.3) for blank in (f"{value} ", f" {value}", value.replace(" ", "")))
    if value in _SEPARATORS:
        yield from ((sign, "separator", 1.0) for sign in _SEPARATORS)
    for name in given.fields:
        yield name, "field", 0.3 + 2.0 * _alike(name, value)
    for name in given.read:
        yield name, "name that is read", 0.2 + _alike(name, value)
    for text in times(value):
        yield text, "template of time", 1.0
    if _PATTERN.search(value):
        for text in patterns(value, given):
            yield text, "pattern", 0.1 if _anchors(text) < _anchors(value) else 0.5


def times(value: str) -> Iterator[str]:
    """A form of dates with one part written otherwise, or two exchanged."""
    parts = list(re.finditer(r"%-?\w", value))
    for part in parts:
        for other in TIMES.get(part.group(), ()):
            yield value[: part.start()] + other + value[part.end() :]
    for one, two in pairwise(parts):
        yield (
            value[: one.start()]
            + two.group()
            + value[one.end() : two.start()]
            + one.group()
            + value[two.end() :]
        )


def patterns(value: str, given: Ingredients) -> Iterator[str]:
    """A pattern with one class, quantifier or anchor changed, or one alternative more."""
    yield from variants(value)
    yield from with_signs(value, given.signs)
    for found in re.finditer(r"\{(\d+)(,?)(\d*)\}", value):
        least, comma, most = found.groups()
        other = [f"{{{least},}}"]
        other += [f"{{{least}{comma}{n}}}" for n in _near(most)] if most else []
        other += [f"{{{n}{comma}{most}}}" for n in _near(least)]
        yield from (value[: found.start()] + text + value[found.end() :] for text in other)
    for found in re.finditer(r"\((?:\?:)?(?=[\w|.-]+\))", value):
        for word in given.words:
            yield f"{value[: found.end()]}{re.escape(word)}|{value[found.end() :]}"


def _anchors(pattern: str) -> int:
    """How many: what has fewer of them lets more pass, and mends a case at the cost of all others."""
    return pattern.startswith("^") + pattern.endswith("$") + pattern.count("\\b")


def _near(number: str) -> Iterator[int]:
    value = int(number)
    yield from (
        n for n in (value + 1, value - 1, value + 2, value - 2, value + 4, value - 4, 2 * value) if n >= 0
    )


def _of_list(
    text: str, each: DataList, given: Ingredients
) -> Iterator[tuple[int, Sequence[tuple[int, int, str]], str, float]]:
    """An entry left out, two neighbours exchanged, a word of a failing call added."""
    entries = each.entries
    for (start, end), (start_2, end_2) in pairwise(entries):
        one, two = text[start:end], text[start_2:end_2]
        yield start, [(start, end, two), (start_2, end_2, one)], "entries exchanged", 1.0
        yield start, [(start, start_2, "")], "entry left out", 0.4
    if len(entries) > 1:
        (_, before), (start, end) = entries[-2:]
        yield start, [(before, end, "")], "entry left out", 0.4
    if entries and (quoted := re.fullmatch(r"""(["']).*\1""", text[slice(*entries[-1])])):
        sign, behind = quoted[1], entries[-1][1]
        known = {text[start + 1 : end - 1] for start, end in entries}
        lengths = {len(word) for word in known}
        own = [word.lower() for word in given.words] + list(given.words)
        ends = [word[-n:] for word in own for n in (3, 2, 1) if len(word) > n and n in lengths]
        for words, weight in ((own, 0.5), (ends, 0.15)):
            for word in dict.fromkeys(words):
                if word not in known and sign not in word and "\\" not in word:
                    known.add(word)
                    yield behind, [(behind, behind, f", {sign}{word}{sign}")], "entry added", weight


def _alike(one: str, other: str) -> float:
    first, second = (re.sub(r"[^a-z0-9]", "", each.lower()) for each in (one, other))
    return SequenceMatcher(None, first, second).ratio() if first and second else 0.0


# --- scripts of a shell ------------------------------------------------------------------------


# Flags that tell an answer from another one and touch nothing; what writes files (sort -o, sed -i) is not among them.
FLAGS = {"sort": "nrufbV", "grep": "ivcwxoEFhn", "uniq": "cdui", "wc": "lwcm", "cut": "s", "tr": "ds", "paste": "s", "join": "i"}  # fmt: skip
_STAGES = ("sort", "sort -n", "sort -u", "sort -r", "uniq", "tail -n +2", "head -n 1", "tail -n 1", "grep .")
_SHELL_SEPARATORS = ("','", "';'", "':'", "'|'", "'\\t'", "' '", "'='", "'-'", "'/'")
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
    for other in dict.fromkeys(re.findall(rf"(?<={name} )-[A-Za-z]+(?=\s)", text)):
        if {*other[1:]} <= {*free}:
            yield behind, behind, f" {other}", "flag of the file", 1.0


def _separators(code: str) -> Iterator[_Change]:
    for found in re.finditer(r"(?<![\w-])(-[Fdt])\s?(\\?.|'[^']*'|\"[^\"]*\")(?=\s)", code):
        for sign in _SHELL_SEPARATORS:
            if found[1] == "-F" or len(sign) == 3:
                yield *found.span(), f"{found[1]}{sign}", "separator", 1.0
    for found in re.finditer(r"(?<![\w/.-])awk(?! -F)(?=\s)", code):
        yield from ((found.end(), found.end(), f" -F{sign}", "separator", 1.0) for sign in _SHELL_SEPARATORS)


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
