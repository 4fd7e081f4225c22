"""Texts with a grammar of their own: regular expressions, formats of dates, f-strings."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

# (what, by what): each occurrence alone is replaced in the pattern as it is written
RULES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(what), by)
    for what, by in (
        (r"(?<=[\w\])}.])\+(?![?])", ("*", "+?")),
        (r"(?<=[\w\])}.])\*(?![?])", ("+", "*?")),
        (r"(?<=[+*])\?", ("",)),
        (r"(?<=\))(?![?*+{])", ("?",)),
        (
            r"(?<!\\)\\d\+(?!\(\?:)",
            (
                r"-?\\d+",
                r"[+-]?\\d+",
                r"\\d+(?:\\.\\d+)?",
                r"[\\d.]+",
                r"[\\d,]+",
                r"[\\d.,]+",
                r"\\d+|-",
                r"\\w+",
            ),
        ),
        (r"(?<!\\)\\d(?![+*{])", (r"\\d?", r"\\d+", r"\\d{1,2}")),
        (r"(?<!\\)\\w\+", (r"[\\w-]+", r"[\\w.-]+", r"\\S+", r"[^\\W\\d]+", r"\\w*", r"[\\w']+")),
        (r"(?<!\\)\\S\+", (r".+", r".*", r"\\S*")),
        (r"\{(\d+)\}", (r"{1,\1}", r"{\1,}", "+")),
        (r"\{1,(\d+)\}", (r"{\1}", "+", "*")),
        (r"\[A-Z\]", ("[A-Za-z]",)),
        (r"\[a-z\]", ("[A-Za-z]", "[a-z0-9]")),
        (r"\[A-Z(?!a-z)", ("[A-Za-z",)),
        (r"\[a-z(?!A-Z)", ("[A-Za-z", "[a-z0-9")),
        (r"A-z", ("A-Za-z",)),
        (r"\[(?:a-zA-Z|A-Za-z)\]", (r"[^\\W\\d_]", "[A-Za-z0-9]", r"\\w", r"[\\w-]")),
        (r"\[0-9\]", ("[0-9.]",)),
        (r"(?<!\\)\((?!\?)", ("(?:",)),
        (r"\(\?:", ("(",)),
        (r"(?<!\\)\\n", (r"\\r?\\n", r"\\s*\\n", r"\\n+")),
        (r"(?<!\\)\\s(?![*+?])", (r"\\s*", r"\\s+", r"[ \\t]")),
        (r"(?<!\\)\\s\+", (r"\\s*", r"[ \\t]+")),
        (r"(?<!\\) (?![*+?])", (r"\\s*", r"\\s+", " ?", " *")),
        (r"(?<!\\)\.(?![*+?{])", (r"\\.",)),
        (r"^\^", ("",)),
        (r"\$$", ("", r"\\Z")),
        (r"^(?!\^)", ("^", r"\\b", r"(?<!\\w)", r"(?<!\\d)")),
        (r"(?<!\$)$", ("$", r"\\b", r"(?!\\w)", r"(?!\\d)")),
        (r"\[\^[^\]\\]+\]", (".",)),
        (r"(?<!\[)\]", (r"-]", r".]", r"_]", r"']")),
    )
)
LITERAL = re.compile(r"""^([rRbBuU]*)('''|\"\"\"|'|")(.*)\2$""", re.DOTALL)
OF_RE = frozenset({"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "split", "subn"})
TIMES = {"%d": ("%m", "%-d"), "%m": ("%d", "%M", "%b"), "%M": ("%m",), "%H": ("%I",), "%I": ("%H",), "%y": ("%Y",),
         "%Y": ("%y", "%G"), "%W": ("%V",), "%U": ("%V", "%W"), "%b": ("%B", "%m"), "%B": ("%b",), "%S": ("%f",), "%j": ("%d",)}  # fmt: skip
SPECS = (":02d", ":.2f", ":.1f", ":.0f", ":02", ":,", ":03d", ":,.2f", ":g", ":>2", ":4d")
PRINTED = re.compile(r"(%[-+ 0-9.]*[dsfgx])")
PLACED = re.compile(r"(?<!\{)\{\w*((?::[^{}]*)?)\}")
PLACEHOLDER = re.compile(r"(?<!\{)\{([^{}:!]+)(![rs])?(:[^{}]*)?\}(?!\})")


def patterns(site: EditSite) -> Iterator[CodeEdit]:
    """One quantifier, class or anchor of a regular expression changed."""
    node = site.node
    if (
        not isinstance(node, ast.Constant)
        or not isinstance(node.value, str)
        or not _is_pattern(site, node.value)
    ):
        return
    written = LITERAL.match(site.text(node))
    if written is None or "\n" in site.text(node):
        return
    prefix, quote, body = written.groups()
    for text in (*variants(body), *with_signs(body, site.facts.given.signs)):
        yield site.edit(f"{prefix}{quote}{text}{quote}", "pattern", 1.0)


def _is_pattern(site: EditSite, value: str) -> bool:
    above = site.parent
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr in OF_RE:
        return above.args[:1] == [site.node] and site.text(above.func.value) in ("re", "regex")
    return bool(re.search(r"\\[dwsSb]|\(\?|\[\^", value))


def variants(body: str) -> Iterator[str]:
    """The pattern with one quantifier, class or anchor changed."""
    for match in re.finditer(r"(?<!\\)\.([*+])\??(\)?)(\\?[^\w\s\\()\[\]])", body):
        sign, closing, stop = match.groups()
        yield f"{body[: match.start()]}[^{stop}]{sign}{closing}{stop}{body[match.end() :]}"
    for what, by in RULES:
        for match in what.finditer(body):
            for replacement in by:
                text = f"{body[: match.start()]}{match.expand(replacement)}{body[match.end() :]}"
                if text != body and _compiles(text):
                    yield text
    for sign in sorted({sign for sign in body if sign in "\"'-:/# "}):
        if (
            _compiles(text := re.sub(rf"(?<![\[\w^\\]){re.escape(sign)}(?![?*+\]])", f"{sign}?", body))
            and text != body
        ):
            yield text
    yield from filter(_compiles, _grouped(body))
    if repeated := re.match(r"(\^?)((?:\(\?:)[^()]*\)(?:\\s\*|\\s\+)?)", body):
        yield f"{repeated.group(1)}(?:{repeated.group(2)})+{body[repeated.end() :]}"


def _grouped(body: str) -> Iterator[str]:
    """The alternatives between the anchors as one group: ``^a|b$`` has each anchor at one of them only."""
    inside = body.removeprefix("^").removesuffix("$")
    if "|" in inside:
        yield body.replace(inside, f"(?:{inside})", 1)
        yield rf"\b(?:{inside})\b"
    if len(inside) == len(body):
        yield rf"\s*(?:{body})\s*"


def with_signs(body: str, signs: str) -> Iterator[str]:
    """A class of characters with one more sign, which failing calls were given."""
    for match in re.finditer(r"(?<!\\)\[(?!\^)([^\]]*)\]", body):
        for sign in signs:
            if sign not in match.group(1):
                text = f"{body[: match.start() + 1]}\\{sign}{body[match.start() + 1 :]}"
                if _compiles(text):
                    yield text


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # of a class that a later Python reads otherwise
            re.compile(text)
    except (re.error, OverflowError, FutureWarning):
        return False
    return True


def times(site: EditSite) -> Iterator[CodeEdit]:
    """Another part of a date, another separator, in the format that one is read or written by."""
    node = site.node
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or "%" not in node.value:
        return
    value = node.value
    parts = list(re.finditer(r"%-?[A-Za-z]", value))
    for part in parts:
        for other in TIMES.get(part.group(), ()):
            yield site.edit(
                repr(value[: part.start()] + other + value[part.end() :]), "template of time", 1.0
            )
    for index, one in enumerate(parts):
        for two in parts[index + 1 :]:
            between = value[one.end() : two.start()]
            text = f"{value[: one.start()]}{two.group()}{between}{one.group()}{value[two.end() :]}"
            yield site.edit(repr(text), "template of time", 0.7)
    for old in "-/.: T":
        for new in "-/.: T":
            if old in value and old != new and parts:
                yield site.edit(repr(value.replace(old, new)), "template of time", 0.3)


def templates(site: EditSite) -> Iterator[CodeEdit]:
    """What an f-string puts in, and how: another format, another variable, cleaned or counted otherwise."""
    node = site.node
    yield from _formats(site)
    if not isinstance(node, ast.stmt):
        return
    for part in _own_templates(node):
        text = site.text(part)
        is_pattern = re.search(r"\\[dwsSbB]|\(\?|\[\^", text) is not None
        for match in PLACEHOLDER.finditer(text):
            if is_pattern and match[3] is None and "re" in site.facts.libraries[0]:
                escaped = f"{text[: match.start()]}{{re.escape({match[1]})}}{text[match.end() :]}"
                yield site.edit(escaped, "pattern", 3.0, node=part)
            for new, weight in _placeholders(site, *match.groups()):
                changed = f"{text[: match.start()]}{{{new}}}{text[match.end() :]}"
                yield site.edit(changed, "template", weight, node=part)


def _formats(site: EditSite) -> Iterator[CodeEdit]:
    """Another way to write what a text with places puts in: ``"%d" % a`` and ``"{}".format(a)``."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    printed = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mod) and above.left is node
    placed = isinstance(above, ast.Attribute) and above.attr == "format"
    text = site.text(node)
    for match in (PRINTED if printed else PLACED).finditer(text) if printed or placed else ():
        for spec in (*SPECS, ""):
            new = f"%{spec[1:].replace(',', '') or 's'}" if printed else spec
            if printed and not new[-1].isalpha():
                new += "d"
            yield site.edit(f"{text[: match.start(1)]}{new}{text[match.end(1) :]}", "template", 1.0)


def _own_templates(node: ast.stmt) -> Iterator[ast.JoinedStr]:
    """Those of the statement itself, not of the statements inside it."""
    waiting: list[ast.AST] = [
        child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)
    ]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.JoinedStr):
            yield inner
        elif not isinstance(inner, ast.stmt):
            waiting.extend(ast.iter_child_nodes(inner))


def _placeholders(
    site: EditSite, inner: str, way: str | None, spec: str | None
) -> Iterator[tuple[str, float]]:
    way, spec = way or "", spec or ""
    yield from ((f"{inner}{way}{other}", weight) for other, weight in _specs(spec))
    for text, weight in _inner(inner):
        yield f"{text}{way}{spec}", weight
    if inner.endswith(".year") and b"isocalendar" in site.program.data:
        yield f"{inner.removesuffix('.year')}.isocalendar()[0]{spec}", 3.0
    for name in site.variables():
        if name != inner and name.isidentifier():
            yield f"{name}{way}{spec}", 0.5
            for match in re.finditer(r"(?<![\w.'\"])[A-Za-z_]\w*(?![\w(])", inner):
                if match.group() not in (name, inner):
                    yield f"{inner[: match.start()]}{name}{inner[match.end() :]}{way}{spec}", 0.5
    yield from ((f"{number}{spec}", 0.2) for number in (0, 1))


def _specs(spec: str) -> Iterator[tuple[str, float]]:
    """How else it may be written."""
    yield from ((other, 1.0) for other in (*SPECS, "") if other != spec)
    for match in re.finditer(r"%-?[A-Za-z]|[<>^]", spec):
        for sign in TIMES.get(match.group(), "<>^" if match.group() in "<>^" else ()):
            yield f"{spec[: match.start()]}{sign}{spec[match.end() :]}", 1.0
    for match in re.finditer(r"\d+", spec):
        for number in (int(match.group()) + 1, int(match.group()) - 1):
            if number >= 0:
                yield f"{spec[: match.start()]}{number}{spec[match.end() :]}", 0.7


def _inner(inner: str) -> Iterator[tuple[str, float]]:
    """What may stand in the braces instead."""
    for form in ("{} + 1", "{} - 1", "{}.strip()", "{}.lower()", "{}.upper()", "abs({})", "len({})", "round({}, 2)",
                 "int({})", "{} * 100"):  # fmt: skip
        yield form.format(inner), 0.4
    for old, new in (("//", "/"), ("/", "//"), (" + ", " - "), (" - ", " + "), ("//", "%"), ("%", "//")):
        if old in inner and not (old == "/" and "//" in inner):
            yield inner.replace(old, new, 1), 1.0
