"""Texts: order and cleaning, fields, patterns of regular expressions, formats of dates and of f-strings."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from agentos.proposers.repair.operators.arithmetic import arm, operand, side
from agentos.proposers.repair.scope import called_name, is_target
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

CLEANINGS = (".replace(',', '')", ".replace(',', '.')", ".replace(' ', '')", ".replace('-', '')", ".replace('.', '')",
             ".rstrip('%')", ".lstrip('$')", ".strip('\"')", ".rstrip('.')", ".lstrip('0')", ".rstrip('\\n')",
             ".replace('_', ' ')", ".split()[0]", ".split()[-1]", ".rstrip(',')", ".lstrip('#')")  # fmt: skip
# signs that a page or an office program writes, and those that are meant
TYPED = {"\u2212": "-", "\u2013": "-", "\u2014": "-", "\u2011": "-", "\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"',
         "\u201e": '"', "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2044": "/", "\u00d7": "x"}  # fmt: skip
CHAINED = frozenset(
    {"replace", "split", "rsplit", "partition", "rpartition", "isdigit", "startswith", "endswith", "strip"}
)
ALIKE = ("{}.lower()", "{}.strip()", "{}.casefold()", "{}.strip().lower()", "int({})", "float({})", "str({})", "set({})")  # fmt: skip


def cleaned(site: EditSite) -> Iterator[CodeEdit]:
    """A value without what does not belong to it, where it is converted, kept or compared."""
    node = site.node
    if not isinstance(node, ast.Name | ast.Subscript | ast.Call | ast.Attribute):
        return
    if not (_is_read(site) or _begins_chain(site)):
        return
    if site.kind(node) not in ("", "str"):
        return
    above = site.parent
    name = above.func.id if isinstance(above, ast.Call) and isinstance(above.func, ast.Name) else ""
    text, likely = site.text(node), 0.5 if name in ("int", "float", "Decimal") else 0.15
    for cleaning in CLEANINGS:
        yield site.edit(f"{text}{cleaning}", "cleaned", likely)
    yield site.edit(f"{text}.strip().lower()", "cleaned", 1.0)
    for sign in site.facts.given.signs:
        for form in (".split({})[0]", ".split({})[-1]", ".replace({}, '')", ".strip({})"):
            yield site.edit(text + form.format(ascii(sign)), "cleaned", 0.1)
        if sign in TYPED:
            yield site.edit(f"{text}.replace({sign!a}, {TYPED[sign]!r})", "cleaned", likely)
    for name in site.facts.idle:
        yield site.edit(f"{text}.strip({name})", "cleaned", 0.5)
        yield site.edit(f"{text} in {name}", "cleaned", 0.5)
        yield site.edit(f"{name}[{text}]", "cleaned", 0.5)


def _is_read(site: EditSite) -> bool:
    node, above = site.node, site.parent
    if is_target(node) or isinstance(above, ast.Attribute | ast.Expr):
        return False
    return not (isinstance(above, ast.Call) and above.func is node)


def _begins_chain(site: EditSite) -> bool:
    """``text`` of ``text.replace(",", ".")``: what is taken away first is another thing than what is last."""
    node, above = site.node, site.parent
    plain = isinstance(node, ast.Name | ast.Subscript) and isinstance(node.ctx, ast.Load)
    return plain and isinstance(above, ast.Attribute) and above.attr in CHAINED


def compared_alike(site: EditSite) -> Iterator[CodeEdit]:
    """Both sides of a comparison changed in the same way."""
    node = site.node
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.Constant) or isinstance(right, ast.Constant):
        return
    named = [f"{function}({{}})" for function in site.scope.of_one]
    named += [f"{holder}.index({{}})" for holder in site.facts.idle]
    for form in (*ALIKE, *named):
        new = tuple(form.format(site.tight(each)) for each in (left, right))
        splices = (site.program.replace(left, new[0]), site.program.replace(right, new[1]))
        yield CodeEdit(splices, "wrap", 0.5)


def distinct(site: EditSite) -> Iterator[CodeEdit]:
    """Each thing once, in the order in which they came."""
    node = site.node
    if not isinstance(node, ast.Name | ast.ListComp | ast.Call) or not _is_read(site):
        return
    if site.kind(node) in ("", "list"):
        yield site.edit(f"list(dict.fromkeys({site.text(node)}))", "wrap", 0.2)


def fields(site: EditSite) -> Iterator[CodeEdit]:
    """The name of a column or key as the inputs of failing calls have it."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    is_key = isinstance(above, ast.Subscript) and above.slice is node
    is_key = is_key or (isinstance(above, ast.Call) and node in above.args[:1])
    if is_key or isinstance(above, ast.Compare | ast.Dict | ast.Tuple | ast.List):
        for name in site.facts.given.fields:
            if name != node.value:
                yield site.edit(repr(name), "field", 1.0 if name.casefold() == node.value.casefold() else 0.3)


def prefixes(site: EditSite) -> Iterator[CodeEdit]:
    """One of several: ``startswith(("a", "b"))`` and ``in ("a", "b")`` for a single text."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    name = above.func.attr if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) else ""
    if name in ("startswith", "endswith"):
        for other in site.facts.constants:
            if isinstance(other, str) and other != node.value and len(other) < 20:
                yield site.edit(f"({site.text(node)}, {other!r})", "field", 0.3)
        for sign in dict.fromkeys(f"#;-*>%'\t{site.facts.given.signs}"):
            yield site.edit(f"({site.text(node)}, {sign!r})", "field", 0.3)


def one_of(site: EditSite) -> Iterator[CodeEdit]:
    """``x in (a, b)`` where ``x == a`` is asked, with a text that the file has."""
    node = site.node
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        word = "in" if isinstance(node.ops[0], ast.Eq) else "not in"
        left, right = side(site, node.left), arm(site, node.comparators[0])
        for other in site.facts.constants:
            if isinstance(other, str) and len(other) < 20 and repr(other) != right:
                yield site.edit(f"{left} {word} ({right}, {other!r})", "field", 0.2)


# --- By what things are ordered: the key of ``sorted``, ``sort``, ``min`` and ``max`` ------------


ORDERING = frozenset({"sorted", "sort", "min", "max"})
PLAIN = ("str.lower", "str.casefold", "len", "int", "float")


def sort_keys(site: EditSite) -> Iterator[CodeEdit]:
    """A key where there is none; another one; one with a second criterion, or another direction."""
    node = site.node
    if not isinstance(node, ast.Call):
        return
    name = called_name(node)
    if name not in ORDERING:
        return
    key = next((keyword.value for keyword in node.keywords if keyword.arg == "key"), None)
    if key is None:
        yield from _new_keys(site, node)
    elif isinstance(key, ast.Lambda) and len(key.args.args) == 1:
        for text in _other_bodies(site, key):
            yield site.edit(text, "sort key", 1.0, node=key.body)
        yield from _both_directions(site, node, key)
    else:
        for text in (*PLAIN, *site.scope.of_one):
            yield site.edit(text, "sort key", 0.5, node=key)


def in_order(site: EditSite) -> Iterator[CodeEdit]:
    """Both of a pair put in order; what is given back, sorted by a field."""
    node, above = site.node, site.parent
    if isinstance(above, ast.Assign) and isinstance(node, ast.Tuple) and len(node.elts) == 2:
        pair = ", ".join(site.text(part) for part in node.elts)
        yield site.edit(f"sorted(({pair}))", "sort key", 0.7)
        yield site.edit(f"sorted(({pair}), reverse=True)", "sort key", 0.7)
    elif isinstance(above, ast.Return) and isinstance(node, ast.Name) and site.kind(node) in ("", "list"):
        for body in _elements(site, "item")[:15]:
            yield site.edit(f"sorted({site.text(node)}, key=lambda item: {body})", "sort key", 0.3)


def _both_directions(site: EditSite, node: ast.Call, key: ast.Lambda) -> Iterator[CodeEdit]:
    """``reverse=True`` for one of several criteria only."""
    turned = next((keyword for keyword in node.keywords if keyword.arg == "reverse"), None)
    if turned is None or not isinstance(key.body, ast.Tuple):
        return
    texts = [site.text(part) for part in key.body.elts]
    rest = [site.text(a) for a in node.args]
    for index, part in enumerate(key.body.elts):
        body = _tuple([*texts[:index], f"-{operand(site, part)}", *texts[index + 1 :]])
        written = ", ".join([*rest, f"key=lambda {key.args.args[0].arg}: {body}"])
        yield site.edit(f"{site.text(node.func)}({written})", "sort key", 2.0)


def _new_keys(site: EditSite, node: ast.Call) -> Iterator[CodeEdit]:
    by_place, by_name = site.arguments(node)
    parts = [*by_place, *(each for each in by_name if not each.startswith("**"))]
    for key in (*PLAIN, *site.scope.of_one, *(f"lambda item: {body}" for body in _elements(site, "item"))):
        yield site.edit(f"{site.text(node.func)}({', '.join([*parts, f'key={key}'])})", "sort key", 0.7)


def _elements(site: EditSite, name: str) -> list[str]:
    """What a thing may be ordered by: its places, and the keys and attributes that the file uses."""
    found = {f"{name}[0]": None, f"{name}[1]": None, f"{name}[-1]": None, f"-{name}[1]": None}
    found[f"(-{name}[1], {name}[0])"] = None
    for node in site.facts.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            found[f"{name}[{node.slice.value!r}]"] = None
        elif isinstance(node, ast.Attribute) and not isinstance(site.program.parent.get(node), ast.Call):
            found[f"{name}.{node.attr}"] = None
    return list(found)[:40]


def _other_bodies(site: EditSite, key: ast.Lambda) -> Iterator[str]:
    name, body = key.args.args[0].arg, key.body
    elements = _elements(site, name)
    present = body.elts if isinstance(body, ast.Tuple) else [body]
    texts = [site.text(part) for part in present]
    for index, (text, part) in enumerate(zip(texts, present, strict=True)):
        tight, negative = site.tight(part), isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub)
        turned = text[1:] if negative else f"-{operand(site, part)}"
        for other in (turned, f"{tight}.lower()", f"{tight}.casefold()", f"int({text})", f"float({text})"):
            yield _tuple([*texts[:index], other, *texts[index + 1 :]])
    if len(texts) > 1:
        yield _tuple(texts[::-1])
        for index in range(len(texts)):
            yield _tuple([*texts[:index], *texts[index + 1 :]])
    for element in (*elements, name, f"len({name})"):
        if element not in texts:
            yield _tuple([*texts, element])
            yield _tuple([element, *texts])
            yield element


def _tuple(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


# --- patterns, dates, templates ----------------------------------------------------------------


OTHER_NUMBERS = (r"\\d+(?:\\.\\d+)?", r"[\\d.]+", r"[\\d,]+", r"[\\d.,]+", r"\\d+|-", r"\\w+")  # fmt: skip
# (what, by what): each occurrence alone is replaced in the pattern as it is written
RULES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(what), by)
    for what, by in (
        (r"(?<=[\w\])}.])\+(?![?])", ("*", "+?")),
        (r"(?<=[\w\])}.])\*(?![?])", ("+", "*?")),
        (r"(?<=[+*])\?", ("",)),
        (r"(?<=\))(?![?*+{])", ("?",)),
        (r"(?<!\\)\\d\+(?!\(\?:)", OTHER_NUMBERS),
        (r"(?:(?<![\[\]\\?*+}.,:-])|(?<=\?:))(?<!\\d)(?=\\d|\[0-9|\[\\d)", ("-?", "[+-]?")),
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
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    written = LITERAL.match(site.text(node))
    if written is None or "\n" in site.text(node) or not _is_pattern(site, node.value):
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
    """The pattern with one quantifier, class or anchor changed, or with all of a kind: who slips once does so throughout."""
    for match in re.finditer(r"(?<!\\)\.([*+])\??(\)?)(\\?[^\w\s\\()\[\]])", body):
        sign, closing, stop = match.groups()
        yield f"{body[: match.start()]}[^{stop}]{sign}{closing}{stop}{body[match.end() :]}"
    for what, by in RULES:
        matches = list(what.finditer(body))
        texts = [
            f"{body[: match.start()]}{match.expand(replacement)}{body[match.end() :]}"
            for match in matches
            for replacement in by
        ]
        if len(matches) > 1:
            texts += [what.sub(replacement, body) for replacement in by]
        yield from (text for text in texts if text != body and _compiles(text))
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
    except (re.error, OverflowError, RecursionError, FutureWarning):
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
    """Another format of what an f-string puts in; what that is, is edited as any other expression."""
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
            for spec, weight in _specs(match[3] or ""):
                new = f"{match[1]}{match[2] or ''}{spec}"
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
