"""Mutants of an edit: the same edit with one thing otherwise that it newly writes.

Where one of them passes all tasks too, the tasks do not say that it has to be this number, or this bound: nobody
knows which is meant. What stood in the base is not changed, because somebody wrote it, but for one case: what is one
too many or too few is mended by a number or by the bound beside it, so an edit that newly writes `+ 1` or `- 1`
is held against the base with the other side of one of its bounds. Nothing is run here.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence

from agentos.evolver.propose.case_variants import of_one_kind
from agentos.evolver.propose.moot_mutants import Change, moot, with_node, written_nodes
from agentos.syntax import is_python, tree_of

_OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "and": "or", "or": "and"}
_WIDER = {"==": (">=", "<="), "!=": ("<", ">")}
# What does nearly the same: which one is meant shows only where they part.
_FAMILIES = (
    ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"),
    ("split", "rsplit"),
    ("partition", "rpartition"),
    ("find", "rfind"),
    ("index", "rindex"),
    ("lower", "upper", "title", "capitalize", "casefold"),
    ("startswith", "endswith"),
    ("isdigit", "isalpha", "isalnum"),
    ("match", "fullmatch", "search"),
    ("append", "extend"),
    ("insort_left", "insort_right"),
    ("bisect_left", "bisect_right"),
    ("floor", "ceil", "trunc"),
    ("int", "round", "ceil", "floor"),
    ("abs", "int"),
    ("min", "max"),
    ("any", "all"),
    ("sorted", "reversed", "list"),
    ("mean", "median"),
    ("ljust", "rjust", "center"),
    ("//", "/"),
    ("break", "continue", "pass"),
)
_BOUNDS = {
    **{sign: other for sign, other in _OTHER.items() if sign not in ("and", "or")},
    "bisect_left": "bisect_right",
    "bisect_right": "bisect_left",
    "floor": "ceil",
    "ceil": "floor",
}
_FIRST, _LAST, _BOUNDARIES = ("^", r"\A"), ("$", r"\Z"), (r"\b", r"\B")
_SHOWN = 60  # characters of a condition
_UNITS = (7, 12, 24, 60, 1000, 1024)
_READ = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_SLICE = re.compile(r"\[-?\w*:-?\w*\]$|\[-?\w*:-?\w*\](?= [=!<>])")
_PRIVATE = "\ue000"  # a sign that no input has
_WORD = re.compile(r"\w+")
_GREEDY = re.compile(r"(\.[*+])(?![?+])")
_OTHERS = re.compile(r"\[\^(?:\\.|[^\]\\])+\]|\\[WD]")  # of a pattern, what stands for all signs but some


def mutants(old: str, new: str, most: int) -> dict[str, str]:
    """At most so many sources, each under a few words that say what is otherwise; none where a text is no Python."""
    old, new = _spelled_out(old, new), _spelled_out(new, old)
    found = dict([*taken_otherwise(old, new).items(), *moot(old, new).items()][:most])
    units = _units(new)
    for token in _newly_written(old, new):
        for other in _others(token) if token.start not in units else ():
            source = _with(new, token, other)
            if len(found) < most and source not in (old, new) and is_python(source):
                found.setdefault(f"the same edit with {other} for {token.string}", source)
    return found | ({**names(old, new, most), **bounds(old, new, most)} if _writes_one(old, new) else {})


def taken_otherwise(old: str, new: str) -> dict[str, str]:
    """Texts that the edit newly writes, taken otherwise, each source under a few words.

    One of its words for any part of a text, what was named before for all but what is named now, for a mark that
    stands for something else meanwhile one that no input has, and blanks for all that is taken out of a text. And
    only None for whatever counts as nothing, 0 and the empty text, the whole for a part of a text, and what comes last
    for what was there before.
    """
    written, found = written_nodes(old, new)[0], {}
    patterns = _texts_gone(old, new)
    for node in written:
        for words, place, text in (
            *_compared_otherwise(node, patterns),
            *_marked_otherwise(node),
            *_nothing_otherwise(node),
            *_matched_otherwise(node, patterns),
            *_combined_otherwise(node),
        ):
            found[f"the same edit with {words}"] = with_node(new, place, text)
    for mark in _meanwhile(written):
        places = [node for node in written if isinstance(node, ast.Constant) and node.value == mark]
        text = new
        for node in sorted(places, key=lambda node: (node.lineno, node.col_offset), reverse=True):
            text = with_node(text, node, repr(_PRIVATE))
        found[f"the same edit with another mark for {mark!r}"] = text
    for name, text in _in_all_branches(old, new):
        found[f"the same of {name} whichever branch it comes from"] = text
    for table, text in _all_kept(written, new):
        found[f"the same edit with doubles of {table} kept"] = text
    return {words: source for words, source in found.items() if is_python(source)}


def _compared_otherwise(node: ast.AST, gone: Sequence[str]) -> Iterator[Change]:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return
    listed = node.comparators[0]
    if isinstance(listed, ast.Constant) and isinstance(listed.value, str):
        words = tuple(_WORD.findall(listed.value))
        if words and not isinstance(node.left, ast.Constant):
            yield f"one of {words} for a part of {listed.value!r}", listed, repr(words)
    elif isinstance(listed, ast.Set | ast.List | ast.Tuple) and gone and len(node.ops) == 1:
        sign = "in" if isinstance(node.ops[0], ast.NotIn) else "not in"
        text = f"{sign} {tuple(gone)}"
        yield f"{text} for {_cut(ast.unparse(node))}", node, f"({ast.unparse(node.left)} {text})"


def _texts_gone(old: str, new: str) -> list[str]:
    """Texts of the lines that go which the new text has nowhere."""
    kept = {*_texts(tree_of(new) or ast.Module([], []))}
    nodes = (node for node in written_nodes(new, old)[0] if isinstance(node, ast.Constant))
    return sorted({node.value for node in nodes if isinstance(node.value, str)} - kept)


def _marked_otherwise(node: ast.AST) -> Iterator[Change]:
    """What is put in the place of an entry that is done."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
        return
    if isinstance(node.targets[0], ast.Subscript):
        yield f"another mark for {node.value.value!r}", node.value, "object()"


def _nothing_otherwise(node: ast.AST) -> Iterator[Change]:
    """Who writes ``given or 1`` may not mean a given 0."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
        given, other = (ast.unparse(value) for value in node.values)
        if not isinstance(node.values[0], ast.Compare | ast.BoolOp):
            text = f"({given} if {given} is not None else {other})"
            yield f"None alone for nothing in {_cut(ast.unparse(node))}", node, text
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, _READ):
        text = f"({ast.unparse(node.operand)} is None)"
        yield f"None alone for nothing in {_cut(ast.unparse(node))}", node, text
    elif isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, _READ):
        text = ast.unparse(node.test)
        yield f"None alone for nothing in {_cut(text)}", node.test, f"({text} is not None)"


def _matched_otherwise(node: ast.AST, gone: Sequence[str]) -> Iterator[Change]:
    """The shortest match of a pattern that took the longest, one kind of sign for a boundary, only blanks taken out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        lazy = [each for text in gone if (each := _GREEDY.sub(r"\1?", text)) not in (text, node.value)]
        for shape in (*lazy, *of_one_kind(node.value, gone)):
            yield f"{shape!r} for {node.value!r}", node, repr(shape)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "re.sub" and len(node.args) > 1:
        pattern, other = node.args[:2]
        if isinstance(pattern, ast.Constant) and isinstance(other, ast.Constant) and other.value == "":
            blanks = _OTHERS.sub(lambda _: r"\s", str(pattern.value))
            if blanks != pattern.value:
                yield f"{blanks!r} for {pattern.value!r}", pattern, repr(blanks)


def _combined_otherwise(node: ast.AST) -> Iterator[Change]:
    """The whole for a part of a text, and the last for the first of a name."""
    text = ast.unparse(node) if isinstance(node, ast.expr) else ""
    if isinstance(node, ast.Compare) and len(_SLICE.findall(text)) == 2:
        yield f"the whole for a part in {_cut(text)}", node, f"({_SLICE.sub('', text)})"
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and len(node.ops) == 1:
        if isinstance(node.left, _READ) and isinstance(node.comparators[0], ast.Name | ast.Attribute):
            part, whole = ast.unparse(node.left), ast.unparse(node.comparators[0])
            words = f"({part} in {whole}.replace(',', ' ').replace(';', ' ').split())"
            yield f"a whole word for a part in {_cut(text)}", node, words
    elif (
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".setdefault") and len(node.args) == 2
    ):
        table, (key, value) = ast.unparse(node.func)[: -len(".setdefault")], map(ast.unparse, node.args)
        last = f"({table}.__setitem__({key}, {value}), {table}[{key}])[1]"
        yield f"the last for the first in {_cut(text)}", node, last


def left_out(old: str, new: str) -> list[str]:
    """The empty text, if the edit newly puts it in the place of an entry, or takes what is part of a text."""
    changes = [
        change
        for node in written_nodes(old, new)[0]
        for change in (*_marked_otherwise(node), *_compared_otherwise(node, ()))
    ]
    return [""] if any(ast.unparse(place) == "''" or text != "object()" for _, place, text in changes) else []


def _meanwhile(written: Sequence[ast.AST]) -> set[str]:
    """Texts that are put in the place of others, and others in theirs."""
    calls = [
        node.args
        for node in written
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "replace"
    ]
    first, second = (
        {arg.value for args in calls for arg in args[at : at + 1] if isinstance(arg, ast.Constant)}
        for at in (0, 1)
    )
    return {mark for mark in first & second if isinstance(mark, str) and mark and mark.isprintable()}


def _all_kept(written: Sequence[ast.AST], new: str) -> Iterator[tuple[str, str]]:
    """A new table, and the text in which all values that it was made of are read where its own are."""
    calls = [node for node in written if isinstance(node, ast.Call) and not node.args]
    for node in written:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.DictComp):
            continue
        name = ast.unparse(node.targets[0])
        reads = [call for call in calls if ast.unparse(call.func) == f"{name}.values"]
        if len(reads) == 1 and reads[0].lineno > node.lineno and name.isidentifier():
            text = with_node(new, reads[0], f"{name}_all")
            listed = ast.ListComp(node.value.value, node.value.generators)
            yield name, with_node(text, node, f"{ast.unparse(node)}; {name}_all = {ast.unparse(listed)}")


def _in_all_branches(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Names whose value one branch newly treats, and the text in which it is treated behind all branches."""
    gone, come = written_nodes(new, old)[0], written_nodes(old, new)[0]
    pairs = zip(*([n for n in nodes if isinstance(n, ast.Assign)] for nodes in (gone, come)), strict=False)
    lines = new.splitlines()
    for one, other in pairs:
        was, now = ast.unparse(one.value), ast.unparse(other.value)
        ifs = [n for n in ast.walk(tree_of(new) or other) if isinstance(n, ast.If) and n.orelse]
        ifs = [n for n in ifs if n.lineno < other.lineno <= (n.end_lineno or 0)]
        whole = next((n for n in ifs if n.col_offset == ifs[-1].col_offset), None)
        if whole is None or was == now or now.count(was) != 1:
            continue
        names = [n for n in ast.walk(whole) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        bound = Counter(n.id for n in names)
        treated = [name for each in other.targets if bound[name := ast.unparse(each)] > 1]
        if more := [f"{' ' * whole.col_offset}{name} = {now.replace(was, name)}" for name in treated]:
            text = "\n".join([*lines[: whole.end_lineno], *more, *lines[whole.end_lineno :]])
            yield ", ".join(treated), text


def _units(source: str) -> set[tuple[int, int]]:
    """Where the numbers of conversions stand, as of `24 * 60`: of these no one is one too many or too few."""
    return {
        (part.lineno, part.col_offset)
        for node in ast.walk(tree_of(source) or ast.Module([], []))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        if all(isinstance(part, ast.Constant) and part.value in _UNITS for part in (node.left, node.right))
        for part in (node.left, node.right)
    }


def bounds(old: str, new: str, most: int) -> dict[str, str]:
    """The base with the other side of one bound instead of the edit, at most so many, in the order of the text."""
    found: dict[str, str] = {}
    try:
        tokens = _tokens(old)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return found
    for token in tokens:
        if len(found) < most and token.string in _BOUNDS:
            other = _BOUNDS[token.string]
            if token.type == tokenize.NAME:  # everywhere, because it may be imported by this name
                where, source = "", re.sub(rf"\b{token.string}\b", other, old)
            else:
                where, source = f" in line {token.start[0]}", _with(old, token, other)
            if source != new and is_python(source):
                found[f"instead {other} for {token.string}{where}"] = source
    return found


def names(old: str, new: str, most: int) -> dict[str, str]:
    """The base with one name of an edited line exchanged for another of its function, at most so many.

    ``far - 1 - 1`` is ``near - 1`` as long as the two lie one apart.
    """
    found: dict[str, str] = {}
    tree = tree_of(old)
    edited = _gone(old, new)
    for function in ast.walk(tree) if tree is not None else ():
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        used = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        own = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
        own |= {node.id for node in used if isinstance(node.ctx, ast.Store)}
        here = [
            node
            for node in used
            if isinstance(node.ctx, ast.Load) and node.lineno in edited and node.id in own
        ]
        for number, node in enumerate(here, start=1):
            for other in sorted(own - {node.id}):
                if (source := _renamed(old, node, other)) and len(found) < most:
                    found[f"instead {other} for {node.id} in line {node.lineno}, name {number} there"] = (
                        source
                    )
    return found


def _gone(old: str, new: str) -> set[int]:
    """Numbers of the old text's lines that the new one has otherwise."""
    lines = difflib.SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
    found = [range(start + 1, end + 1) for tag, start, end, _, _ in lines.get_opcodes() if tag != "equal"]
    return set().union(*found)


def _renamed(source: str, node: ast.Name, other: str) -> str:
    """With the other name in its place; "" where Python does not say where it stands, as within an f-string."""
    lines = source.split("\n")
    line = lines[node.lineno - 1].encode()
    if line[node.col_offset : node.end_col_offset] != node.id.encode():
        return ""
    lines[node.lineno - 1] = (line[: node.col_offset] + other.encode() + line[node.end_col_offset :]).decode()
    return "\n".join(lines)


def _writes_one(old: str, new: str) -> bool:
    """Whether something becomes one more or one less: a `+ 1` or `- 1` that the base has not."""
    return any(token.string == "1" and _signed(new, token) for token in _newly_written(old, new))


def _signed(source: str, token: tokenize.TokenInfo) -> bool:
    row, start = token.start
    return source.split("\n")[row - 1][:start].rstrip().endswith(("+", "-"))


def loosened(old: str, new: str) -> str:
    """What the edit takes away that kept something out, "" where it puts something in its place.

    An anchor of a pattern, or a condition: a test of an ``if``, of a comprehension, or one of several that are joined.
    """
    before, after = tree_of(old), tree_of(new)
    if before is None or after is None:
        return ""
    gone, come = _changes(_texts(before), _texts(after))
    for text in gone if come else ():
        other = max(come, key=lambda each: difflib.SequenceMatcher(None, text, each).ratio())
        if _anchors(other) < _anchors(text):
            return f"an anchor of the pattern {_cut(repr(text))}"
    gone = _conditions_gone(before, after)
    return f"the condition {_cut(gone[0])}" if gone else ""


def decided(old: str, new: str) -> list[str]:
    """The old text with each condition that ``loosened`` says is taken away always true, and always false."""
    before, after = tree_of(old), tree_of(new)
    if before is None or after is None:
        return []
    gone = {*_conditions_gone(before, after)}
    tests = [test for test in _conditions(before) if ast.unparse(test) in gone]
    return [with_node(old, test, word) for test in tests for word in ("True", "False")]


def _conditions_gone(before: ast.Module, after: ast.Module) -> list[str]:
    gone, come = _changes(*(map(ast.unparse, _conditions(tree)) for tree in (before, after)))
    return [] if come else gone


def _changes(before: Iterator[str], after: Iterator[str]) -> tuple[list[str], list[str]]:
    """What is there less often, and what more often."""
    one, other = Counter(before), Counter(after)
    return [*(one - other)], [*(other - one)]


def _texts(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _anchors(pattern: str) -> int:
    ends = pattern.startswith(_FIRST) + (pattern.endswith(_LAST) and not pattern.endswith(r"\$"))
    return ends + sum(map(pattern.count, _BOUNDARIES))


def _conditions(tree: ast.Module) -> Iterator[ast.expr]:
    """The smallest tests, so that one which moved is not gone."""
    for node in ast.walk(tree):
        tests: Sequence[ast.expr] = ()
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            tests = (node.test,)
        elif isinstance(node, ast.comprehension):
            tests = node.ifs
        elif isinstance(node, ast.BoolOp):
            tests = node.values
        yield from (test for test in tests if not isinstance(test, ast.BoolOp | ast.Constant))


# --- f-strings ----------------------------------------------------------------------------------


def _spelled_out(source: str, other: str) -> str:
    """The same program with those f-strings that the other text lacks as calls: of what is in one no parser tells the place."""
    tree, others = tree_of(source), tree_of(other)
    if tree is None or others is None:
        return source
    known = {ast.dump(node) for node in ast.walk(others) if isinstance(node, ast.JoinedStr)}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inner = {id(part) for node in nodes for part in [*ast.walk(node)][1:]}
    outer = [node for node in nodes if id(node) not in inner and ast.dump(node) not in known]
    lines = source.encode().splitlines(keepends=True)
    for node in sorted(outer, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        lines[first : last + 1] = [head + _called(node).encode() + tail]
    text = b"".join(lines).decode()
    return text if is_python(text) else source


def _called(text: ast.JoinedStr) -> str:
    """``f"{a:.2f} m"`` as ``''.join((format(a, '.2f'), ' m'))``."""
    parts = []
    for part in text.values:
        if not isinstance(part, ast.FormattedValue):
            parts.append(ast.unparse(part))
            continue
        value = ast.unparse(part.value)
        if part.conversion >= 0:
            value = f"{ {'r': 'repr', 's': 'str', 'a': 'ascii'}[chr(part.conversion)] }({value})"
        form = f", {_called(part.format_spec)}" if isinstance(part.format_spec, ast.JoinedStr) else ""
        parts.append(f"format({value}{form})")
    return f"''.join(({''.join(f'{part}, ' for part in parts)}))"


# --- what is newly written ----------------------------------------------------------------------


def _newly_written(old: str, new: str) -> list[tokenize.TokenInfo]:
    """Tokens of the new text that the old one does not have there."""
    try:
        before, after = _tokens(old), _tokens(new)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return []
    found = []
    lines = difflib.SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
    for tag, start, end, since, to in lines.get_opcodes():
        if tag == "equal":
            continue
        left = [token.string for token in before if start < token.start[0] <= end]
        right = [token for token in after if since < token.start[0] <= to]
        tokens = difflib.SequenceMatcher(None, left, [token.string for token in right], autojunk=False)
        for kind, _, _, first, last in tokens.get_opcodes():
            if kind != "equal":
                found += right[first:last]
    return found


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    said = (tokenize.NUMBER, tokenize.NAME, tokenize.OP, tokenize.STRING)
    return [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type in said]


def _others(token: tokenize.TokenInfo) -> list[str]:
    """What might as well stand there: the numbers next to it, the other side of a bound, what does nearly the same."""
    if token.type != tokenize.NUMBER:
        word = token.string
        near = [*_WIDER.get(word, ())]
        near += [other for family in _FAMILIES if word in family for other in family if other != word]
        return [*dict.fromkeys([_OTHER[word], *near] if word in _OTHER else near)]
    value = ast.literal_eval(token.string)
    if isinstance(value, int):
        # Nobody who asks for a sign, as ``x < 0`` does, means -1.
        sign = token.line[: token.start[1]].rstrip().endswith(("<", ">="))
        return [str(number) for number in (value - 1, value + 1) if number >= 0 or not sign]
    return [repr(value * factor) for factor in (0.9, 1.1)] if isinstance(value, float) else []


def _with(source: str, token: tokenize.TokenInfo, text: str) -> str:
    lines = source.split("\n")  # as the tokens count them: a form feed ends no line
    row, start = token.start
    line = lines[row - 1]
    lines[row - 1] = line[:start] + text + line[token.end[1] :]
    return "\n".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
