"""Predicates of rules: CEL, compiled once, typed, and bounded before anything is evaluated.

The library bounds iterations (10,000 an evaluation) and depth, and its regular expressions take linear time. What
it does not bound is refused here, in the text: long sources, patterns that are computed, texts that are joined in
loops. docs/decisions/rules-in-cel.md says why this library.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentos.errors import ErrorKind, Unavailable, missing_extra

if TYPE_CHECKING:
    from agentos.domain import Json

LENGTH_MAX = 4_000  # characters of a predicate
PATTERN_MAX = 600  # of one regular expression in it
_PATTERN_MEMORY = 16 << 20  # bytes of a compiled one
_SET_MEMORY = 64 << 20  # of all of a run's together
_LOOPS_MAX = 4
_JOINS_MAX = 8

# What a predicate may ask for, by name; docs/use/rules.md has the table.
TYPES: Mapping[str, str] = {
    "tool": "string",
    "args": "map",
    "effects": "strings",
    "text": "string",
    "hosts": "strings",
    "paths": "strings",
    "ok": "bool",
    "request": "string",
    "model": "string",
    "agent": "string",
    "goal": "string",
    "calls": "counts",
    "tool_calls": "int",
    "model_calls": "int",
    "tokens": "int",
    "usd": "double",
    "steps": "maps",
    "seen_hosts": "strings",
    "seen_paths": "strings",
}
_LOOPS = frozenset({"all", "exists", "exists_one", "filter"})
_SEARCH, _SEARCH_TEXT = "matched", "text_matched"  # of the length of "matches" and "text.matches"
_TOGETHER_FROM = 32  # characters of a text from which all patterns are looked for at once
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>[rR]?(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}))
    |(?P<raw>[rR](?:"[^"\n]*"|'[^'\n]*'))
    |(?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_]\w*)
    |(?P<other>.)""",
    re.VERBOSE,
)


class PredicateFault(Exception):
    """The predicate cannot be used; the message says what is wrong and where (line:column)."""


class PredicateError(Exception):
    """It could not be evaluated on these facts."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """One that is compiled. ``names`` are the variables that it asks for; ``loops`` whether it walks lists;
    ``patterns`` its regular expressions.
    """

    source: str
    names: frozenset[str]
    loops: bool
    program: Any
    patterns: tuple[str, ...] = ()

    def holds(self, activation: Any) -> bool:
        """Raises PredicateError."""
        try:
            value = self.program.eval(activation).value()
        except (RuntimeError, ValueError, TypeError) as error:
            raise PredicateError(_first_line(str(error))) from None
        if value is True or value is False:
            return value
        raise PredicateError(_first_line(str(value)))


@lru_cache(maxsize=1_000)
def compiled(source: str) -> Predicate:
    """Raises PredicateFault, and Unavailable where the library is not installed."""
    tokens = _bounded(source)
    within = environment()
    try:
        program = within.compile(_compiled_once(source, tokens))
    except (RuntimeError, TypeError) as error:
        raise PredicateFault(_said(str(error))) from None
    if program.return_type().name() != "BOOL":
        raise PredicateFault(
            f"it is a {program.return_type().name().lower()}, and has to be true or false: compare it, "
            "as in tool == 'shell'"
        )
    names = frozenset(text for kind, text, _ in tokens if kind == "name" and text in TYPES)
    loops = any(kind == "name" and text in _LOOPS for kind, text, _ in tokens)
    return Predicate(source, names, loops, program, tuple(_patterns(tokens)))


@lru_cache(maxsize=1)
def environment() -> Any:
    """What predicates are compiled in. Raises Unavailable where the library is not installed."""
    try:
        from cel_expr_python import cel
    except ImportError:
        raise Unavailable(missing_extra("rules", "A rule"), kind=ErrorKind.NOT_INSTALLED) from None
    kinds = cel.Type
    types = {
        "string": kinds.STRING,
        "strings": kinds.List(kinds.STRING),
        "map": kinds.Map(kinds.STRING, kinds.DYN),
        "maps": kinds.List(kinds.Map(kinds.STRING, kinds.DYN)),
        "counts": kinds.Map(kinds.STRING, kinds.INT),
        "int": kinds.INT,
        "double": kinds.DOUBLE,
        "bool": kinds.BOOL,
    }
    searching = cel.Overload("matched_string", kinds.BOOL, [kinds.STRING, kinds.STRING], True, _search)
    in_text = cel.Overload("text_matched_string", kinds.BOOL, [kinds.STRING], False, _search_text)
    return cel.NewEnv(
        variables={name: types[kind] for name, kind in TYPES.items()},
        functions=[cel.FunctionDecl(_SEARCH, [searching]), cel.FunctionDecl(_SEARCH_TEXT, [in_text])],
    )


@lru_cache(maxsize=2_000)
def pattern(text: str) -> Any:
    """A regular expression of linear time, compiled once. Raises Unavailable where the library is not installed."""
    try:
        import re2
    except ImportError:
        raise Unavailable(missing_extra("rules", "A rule"), kind=ErrorKind.NOT_INSTALLED) from None
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY
    options.log_errors = False
    return re2.compile(text, options)


class PatternSet:
    """Which of many patterns are in a text, found in one pass over it: 180 of them cost little more than one."""

    def __init__(self, expressions: Sequence[str]) -> None:
        import re2

        options = re2.Options()
        options.max_mem = _SET_MEMORY
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        self._set.Add("")  # in every text: where it is not found, the search itself failed
        for expression in expressions:
            self._set.Add(expression)
        self._set.Compile()
        self._expressions = ("", *expressions)

    def within(self, text: str) -> frozenset[str] | None:
        """None where they have to be looked for one by one."""
        found = self._set.Match(text) or ()
        return frozenset(self._expressions[index] for index in found) if 0 in found else None


@lru_cache(maxsize=100)
def pattern_set(expressions: frozenset[str]) -> PatternSet | None:
    """None where they cannot be looked for together. Raises Unavailable where the library is not installed."""
    for expression in expressions:
        pattern(expression)
    try:
        return PatternSet(sorted(expressions))
    except _regex_error():  # more than its memory takes
        return None


class _Ahead(threading.local):
    """Of the event that this thread judges: its ``text``, its patterns, the text last searched, what was in that."""

    event_text = ""
    expressions: frozenset[str] = frozenset()
    text = ""
    found: frozenset[str] | None = None


_ahead = _Ahead()


@contextmanager
def judging(facts: Mapping[str, Json], expressions: Iterable[str] = ()) -> Iterator[Any]:
    """What predicates are evaluated on, made once for all of an event; they are evaluated within it, on this thread.

    ``expressions`` are found in a long text by one pass for all. Raises PredicateError.
    """
    try:
        activation = environment().Activation(dict(facts))
    except (RuntimeError, ValueError, TypeError) as error:
        raise PredicateError(_first_line(str(error))) from None
    _ahead.event_text, _ahead.expressions = str(facts.get("text", "")), frozenset(expressions)
    try:
        yield activation
    finally:
        _ahead.event_text, _ahead.expressions, _ahead.text, _ahead.found = "", frozenset(), "", None


def _search_text(expression: str) -> bool:
    """In the event's ``text``: to hand that over for each pattern would cost more than to search it."""
    return _search(_ahead.event_text, expression)


def _search(text: str, expression: str) -> bool:
    if len(text) >= _TOGETHER_FROM and expression in _ahead.expressions:
        if text != _ahead.text:
            together = pattern_set(_ahead.expressions)
            _ahead.text, _ahead.found = text, together.within(text) if together else None
        if _ahead.found is not None:
            return expression in _ahead.found
    return pattern(expression).search(text) is not None


def _compiled_once(source: str, tokens: Sequence[_Token]) -> str:
    """With our search in place of ``matches``, which compiles its pattern each time. Places stay as they are."""
    texts = [text for _, text, _ in tokens]
    shadowed = any(
        name in _LOOPS and texts[at + 1 : at + 3] == ["(", "text"] for at, name in enumerate(texts)
    )
    for number in _searches(tokens):
        offset = tokens[number][2]
        _check_pattern(source, tokens[number + 2])
        start, name = offset, _SEARCH
        plain = texts[number - 2] == "text" and source[:offset].endswith("text.")
        if plain and texts[number - 3 : number - 2] != ["."] and not shadowed:
            start, name = offset - len("text."), _SEARCH_TEXT
        source = f"{source[:start]}{name}{source[offset + len(_SEARCH) :]}"
    return source


def _patterns(tokens: Sequence[_Token]) -> Iterator[str]:
    return (_text_of(tokens[number + 2]) for number in _searches(tokens))


def _searches(tokens: Sequence[_Token]) -> Iterator[int]:
    """Where ``matches`` is called, which ``_Bounds`` holds to one pattern; an argument may be named so as well."""
    texts = [text for _, text, _ in tokens]
    for number in range(1, len(tokens) - 1):
        if texts[number - 1 : number + 2] == [".", "matches", "("] and tokens[number][0] == "name":
            yield number


_CEL_ONLY = {"\\?": "?", "\\`": "`", "\\X": "\\x"}  # escapes that Python does not have


def _text_of(token: _Token) -> str:
    from agentos.syntax import parse_expression  # only where a rule is read

    said = token[1]
    if said[0] not in "rR":
        said = re.sub(r"\\[\s\S]", lambda found: _CEL_ONLY.get(found[0], found[0]), said)
    return str(ast.literal_eval(parse_expression(said)))


def _check_pattern(source: str, token: _Token) -> None:
    try:
        pattern(_text_of(token))
    except (ValueError, SyntaxError, RuntimeError, _regex_error()) as error:
        why = error.args[0] if error.args else ""
        told = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(error)
        raise PredicateFault(f"{_place(source, token[2])}: not a regular expression: {told}") from None


def _regex_error() -> type[Exception]:
    try:
        import re2
    except ImportError:  # as ``pattern`` says
        return ValueError
    return re2.error  # type: ignore[no-any-return]


def _place(source: str, offset: int) -> str:
    before = source[:offset]
    return f"{before.count(chr(10)) + 1}:{offset - (before.rfind(chr(10)) + 1) + 1}"


# --- bounds -------------------------------------------------------------------------------------

_Token = tuple[str, str, int]  # kind, text, offset


def _bounded(source: str) -> Sequence[_Token]:
    """Its tokens; raises PredicateFault where what it may cost is not bounded."""
    if len(source) > LENGTH_MAX:
        raise PredicateFault(f"it has {len(source):,} characters, at most {LENGTH_MAX:,} are allowed")
    try:
        source.encode()
    except UnicodeEncodeError:
        raise PredicateFault("it is no UTF-8 text") from None
    found = [
        (str(match.lastgroup), match.group(), match.start())
        for match in _TOKEN.finditer(source)
        if match.lastgroup != "space"
    ]
    if sum(text == "+" for _, text, _ in found) > _JOINS_MAX:
        raise PredicateFault(f"it has more than {_JOINS_MAX} '+'")
    _Bounds(source, found).hold()
    return found


class _Bounds:
    """Walks the tokens once, and knows within which loops each stands."""

    def __init__(self, source: str, tokens: Sequence[_Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._open: list[str] = []  # of each parenthesis the loop's variable, "" where it is no loop's
        self._loops = 0

    def hold(self) -> None:
        for number, (kind, text, offset) in enumerate(self._tokens):
            if text in "([{" and kind == "other":
                self._open.append(self._variable(number))
            elif text in ")]}" and kind == "other" and self._open:
                self._open.pop()
            elif text == "+" and any(self._open):
                self._refuse(offset, "'+' may not stand within all, exists or filter")
            elif kind == "name" and self._text(number - 1) == "." and self._text(number + 1) == "(":
                self._method(number)

    def _variable(self, number: int) -> str:
        name = self._text(number - 1)
        if name not in _LOOPS or self._text(number - 2) != ".":
            return ""
        self._loops += 1
        if self._loops > _LOOPS_MAX:
            self._refuse(self._tokens[number - 1][2], f"there are more than {_LOOPS_MAX} loops")
        return self._text(number + 1)

    def _method(self, number: int) -> None:
        _, name, offset = self._tokens[number]
        if name == "map":
            self._refuse(offset, "'map' is not allowed; use exists, all or filter")
        if name != "matches":
            return
        kind, pattern, at = self._tokens[number + 2] if number + 2 < len(self._tokens) else ("", "", offset)
        if kind not in ("raw", "quoted", "text") or self._text(number + 3) != ")":
            self._refuse(offset, "'matches' takes one pattern that stands there as a text")
        if len(pattern) > PATTERN_MAX:
            self._refuse(at, f"the pattern has more than {PATTERN_MAX} characters")
        loops = [variable for variable in self._open if variable]
        if loops and self._root(number - 1) not in loops:
            self._refuse(
                offset, f"within a loop, 'matches' may look at {' and '.join(loops)} only, not at more"
            )

    def _root(self, number: int) -> str:
        """The name at which the chain begins whose dot stands here."""
        while self._text(number) == "." and self._tokens[number - 1][0] == "name":
            number -= 2
        return self._text(number + 1)

    def _text(self, number: int) -> str:
        return self._tokens[number][1] if 0 <= number < len(self._tokens) else ""

    def _refuse(self, offset: int, why: str) -> None:
        raise PredicateFault(f"{_place(self._source, offset)}: {why}")


_PLACE = re.compile(r"<input>:(\d+):(\d+): (.*)")


def _said(text: str) -> str:
    """The library's words for what is wrong, from the place on; columns count from 1."""
    found = _PLACE.search(text)
    if found is None:
        return _first_line(text)
    said = found[3].replace(" (in container '')", "")
    more = ""
    if "undeclared reference to '" in said:
        unknown = said.partition("'")[2].partition("'")[0]
        more = f"; there are {', '.join(sorted(TYPES))}" if unknown.isidentifier() else ""
    return f"{found[1]}:{found[2]}: {said}{more}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:300] if text.strip() else "no reason was given"
