"""What is wrong whatever the code is for: known mistakes of Python that the code alone tells, and how each is mended."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from itertools import pairwise

from agentos.proposers.repair.operators.arithmetic import operand, side
from agentos.proposers.repair.operators.idioms.flow import LEAVING
from agentos.proposers.repair.operators.statements import (
    after,
    before,
    block_of,
    fresh_name,
    gone,
    moved_behind,
)
from agentos.proposers.repair.scope import called_name
from agentos.proposers.repair.site import EditSite, is_library
from agentos.proposers.repair.source import CodeEdit, Splice
from agentos.syntax import Definition

TAKES_AWAY = frozenset({"remove", "pop", "popitem", "discard", "clear"})
CHANGES_IN_PLACE = frozenset({"sort", "reverse", "append", "extend", "insert", "add", "update", *TAKES_AWAY}) - {"pop", "popitem"}  # fmt: skip
GIVES_ANOTHER = frozenset(
    {"replace", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "removeprefix",
     "removesuffix", "zfill", "ljust", "rjust", "union", "intersection", "difference", "astimezone"}
)  # fmt: skip
READ_ONCE = frozenset({"map", "filter", "zip", "reversed", "enumerate", "iter", "reader", "DictReader", "finditer", "scandir"})  # fmt: skip
TO_BE_CALLED = frozenset(
    {"isdigit", "isdecimal", "isalpha", "isalnum", "isspace", "isupper", "islower", "strip", "lower", "upper", "casefold",
     "isoformat", "total_seconds", "is_file", "is_dir"}
)  # fmt: skip
MADE_EMPTY = ("list", "dict", "set", "Counter", "defaultdict")
LOOPS = (ast.For, ast.While)
PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)(?:\.\w+|\[\w+\])*(?:[!:][^{}]*)?\}")
ANCHORED = re.compile(r"([rR]?)(['\"])(\^?)((?:[^|()$^\\]|\\.)+\|(?:[^()$^\\]|\\.)+?)(\$?)\2", re.S)
COUNTED = {"sub": 3, "subn": 3, "split": 2}  # what comes behind the text
FLAGS = re.RegexFlag.__members__
RISING: dict[type[ast.cmpop], bool] = {ast.Lt: True, ast.LtE: True, ast.Gt: False, ast.GtE: False}


def defects(site: EditSite) -> Iterator[CodeEdit]:
    """The edits that mend a known mistake at the site."""
    for mend in MENDED.get(type(site.node), ()):
        yield from mend(site)


def _mended(*splices: Splice, weight: float = 3.0) -> CodeEdit:
    return CodeEdit(splices, "defect", weight)


def _names(node: ast.AST, name: str, context: type[ast.expr_context] = ast.Load) -> list[ast.Name]:
    found = (n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name)
    return [n for n in found if isinstance(n.ctx, context)]


# --- what is gone through, and what is read once ------------------------------------------------------


def _changed_meanwhile(site: EditSite) -> Iterator[CodeEdit]:
    """A list or dictionary from which its own loop takes things away is gone through as it was."""
    node = site.node
    assert isinstance(node, ast.For)
    walked = holder = node.iter
    if isinstance(walked, ast.Call) and isinstance(walked.func, ast.Attribute) and not walked.args:
        holder = walked.func.value
    elif isinstance(walked, ast.Call) and called_name(walked) == "enumerate" and walked.args:
        walked = holder = walked.args[0]
    elif isinstance(walked, ast.Call) and called_name(walked) == "range" and walked.args:
        counted = walked.args[-1]
        holder = counted.args[0] if isinstance(counted, ast.Call) and counted.args else walked
    text = site.text(holder)
    if any(_takes_away(site, inner, text) for step in node.body for inner in ast.walk(step)):
        written = site.text(walked)
        turned = holder is not walked and written.startswith("range")
        yield _mended(site.program.replace(walked, f"{'reversed' if turned else 'list'}({written})"))


def _takes_away(site: EditSite, node: ast.AST, holder: str) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in TAKES_AWAY and site.text(node.func.value) == holder
    deleted = node.targets if isinstance(node, ast.Delete) else []
    return any(isinstance(t, ast.Subscript) and site.text(t.value) == holder for t in deleted)


def _used_up(site: EditSite) -> Iterator[CodeEdit]:
    """What can be read once, and is read twice, becomes a list."""
    node = site.node
    assert isinstance(node, ast.Assign)
    value, target = node.value, node.targets[0]
    if not isinstance(target, ast.Name) or len(_read_in(site, target.id)) < 2:
        return
    if isinstance(value, ast.GeneratorExp):
        yield _mended(site.program.replace(value, f"[{site.text(value)[1:-1]}]"))
    elif isinstance(value, ast.Call) and called_name(value) in READ_ONCE:
        yield _mended(site.program.replace(value, f"list({site.text(value)})"))


def _read_in(site: EditSite, name: str) -> list[ast.AST]:
    """Where the function reads the name, but for the taking of one next item."""
    reads: list[ast.AST] = []
    for node in site.facts.nodes_in(site.function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            above = site.program.parent.get(node)
            if not isinstance(above, ast.Attribute) and not (
                isinstance(above, ast.Call) and called_name(above) == "next"
            ):
                reads.append(node)
    return reads


def _groups_used_up(site: EditSite) -> Iterator[CodeEdit]:
    """A group of ``groupby`` lasts until the next one: it becomes a list where it is read twice, or kept."""
    node = site.node
    assert isinstance(node, ast.For)
    target, walked = node.target, node.iter
    if (
        not isinstance(walked, ast.Call)
        or called_name(walked) != "groupby"
        or not isinstance(target, ast.Tuple)
    ):
        return
    group = target.elts[-1]
    if not isinstance(group, ast.Name):
        return
    reads = [read for step in node.body for read in _names(step, group.id)]
    handed = site.program.parent.get(reads[0]) if reads else None
    kept = isinstance(handed, ast.Call) and called_name(handed) == "append"
    if len(reads) > 1 or kept or isinstance(handed, ast.Assign):
        yield _mended(before(site, node.body[0], f"{group.id} = list({group.id})"))


def _place_by_value(site: EditSite) -> Iterator[CodeEdit]:
    """The place of an item is that which is gone through, and not that of the first which is equal."""
    node = site.node
    loop = node if isinstance(node, ast.For) else getattr(node, "generators", [None])[0]
    assert isinstance(loop, ast.For | ast.comprehension)
    assert isinstance(node, ast.stmt | ast.expr)
    target, walked = loop.target, loop.iter
    sliced = isinstance(walked, ast.Subscript) and isinstance(walked.slice, ast.Slice)
    holder = walked.value if sliced and isinstance(walked, ast.Subscript) else walked
    if not isinstance(target, ast.Name) or not isinstance(holder, ast.Name | ast.Attribute):
        return
    asked = f"{site.text(holder)}.index({target.id})"
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and site.text(n) == asked]
    if not calls:
        return
    place = fresh_name(site, "place", "index", "position", "at_place")
    lower = getattr(walked.slice, "lower", None) if isinstance(walked, ast.Subscript) else None
    start = f", {site.text(lower)}" if lower is not None else ""
    yield _mended(
        site.program.replace(target, f"{place}, {target.id}"),
        site.program.replace(walked, f"enumerate({site.text(walked)}{start})"),
        *(site.program.replace(call, place) for call in calls),
    )


def _same_row(site: EditSite) -> Iterator[CodeEdit]:
    """A row that is made before a loop and added in each round is added as a copy."""
    node = site.node
    assert isinstance(node, ast.Call)
    if called_name(node) not in ("append", "add") or len(node.args) != 1:
        return
    row, loop = node.args[0], site.parent
    while loop is not None and not isinstance(loop, (*LOOPS, Definition)):
        loop = site.program.parent.get(loop)
    if not isinstance(row, ast.Name) or not isinstance(loop, LOOPS) or _names(loop, row.id, ast.Store):
        return
    made = [
        each.value
        for each in site.facts.nodes_in(site.function)
        if isinstance(each, ast.Assign) and any(_names(t, row.id, ast.Store) for t in each.targets)
    ]
    if made and all(isinstance(value, ast.Dict | ast.List | ast.Set) for value in made):
        yield _mended(site.program.replace(row, f"{row.id}.copy()"))


# --- what comes to nothing -------------------------------------------------------------------------------


def _thrown_away(site: EditSite) -> Iterator[CodeEdit]:
    """A new value that nobody keeps takes the place of the old one."""
    node = site.node
    assert isinstance(node, ast.Expr)
    call = node.value
    if not isinstance(call, ast.Call):
        return
    kept: ast.expr | None = None
    if isinstance(call.func, ast.Attribute) and call.func.attr in GIVES_ANOTHER:
        kept = call.func.value
        while isinstance(kept, ast.Call) and isinstance(kept.func, ast.Attribute):
            kept = kept.func.value
    elif called_name(call) in ("sorted", "reversed", "round", "abs") and call.args:
        kept = call.args[0]
    elif called_name(call) == "sub" and len(call.args) > 2:
        kept = call.args[2]
    if isinstance(kept, ast.Name | ast.Attribute | ast.Subscript):
        made = f"list({site.text(call)})" if called_name(call) == "reversed" else site.text(call)
        yield _mended(site.program.replace(node, f"{site.text(kept)} = {made}"))


def _nothing_kept(site: EditSite) -> Iterator[CodeEdit]:
    """What changes a list in place gives nothing: the list is what is kept."""
    node = site.node
    assert isinstance(node, ast.Assign | ast.Return)
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    if call.func.attr not in CHANGES_IN_PLACE or not isinstance(call.func.value, ast.Name | ast.Attribute):
        return
    holder = site.text(call.func.value)
    if isinstance(node, ast.Return):
        text = f"{site.text(call)}\n{site.program.indent(node)}return {holder}"
        yield _mended(Splice(*site.program.span(node), text, expression=False))
    elif site.text(node.targets[0]) == holder:
        yield _mended(site.program.replace(node, site.text(call)))


def _sign_of_the_value(site: EditSite) -> Iterator[CodeEdit]:
    """``total =+ x`` is a sum. Two values are exchanged at once, or one of them is lost."""
    node = site.node
    assert isinstance(node, ast.Assign)
    block, target = block_of(site), node.targets[0]
    if isinstance(node.value, ast.UnaryOp) and isinstance(node.value.op, ast.UAdd | ast.USub):
        sign = "+" if isinstance(node.value.op, ast.UAdd) else "-"
        if f"={sign}" in site.text(node):
            text = f"{site.text(target)} {sign}= {site.text(node.value.operand)}"
            yield _mended(site.program.replace(node, text))
    following = block[block.index(node) + 1] if node in block and node is not block[-1] else None
    if isinstance(following, ast.Assign) and len(node.targets) == len(following.targets) == 1:
        one, other = site.text(target), site.text(following.targets[0])
        if (site.text(node.value), site.text(following.value)) == (other, one):
            both = site.program.replace(node, f"{one}, {other} = {other}, {one}")
            yield _mended(both, gone(site, following))


def _shared_default(site: EditSite) -> Iterator[CodeEdit]:
    """A list that is a parameter's default is made anew in each call."""
    node = site.node
    assert isinstance(node, Definition)
    given = node.args
    named = [*given.posonlyargs, *given.args]
    pairs = [*zip(named[len(named) - len(given.defaults) :], given.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None]
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    for argument, default in pairs:
        made = isinstance(default, ast.Call) and called_name(default) in MADE_EMPTY
        if made or isinstance(default, ast.List | ast.Dict | ast.Set):
            text = f"if {argument.arg} is None:\n    {argument.arg} = {site.text(default)}"
            yield _mended(site.program.replace(default, "None"), before(site, first, text))


# --- ends of loops, and orders of branches ---------------------------------------------------------------


def _ended_at_once(site: EditSite) -> Iterator[CodeEdit]:
    """A loop that ends in its first round whatever it finds goes on, and what ended it comes behind it."""
    node = site.node
    assert isinstance(node, ast.For | ast.While)
    last, block = node.body[-1], block_of(site)
    if isinstance(last, ast.Return) and len(node.body) > 1:
        yield _mended(*moved_behind(site, last, node))
    if not isinstance(last, ast.If) or len(last.orelse) != 1 or node not in block:
        return
    way = last.orelse[0]
    if isinstance(way, ast.Return | ast.Break) and isinstance(last.body[-1], LEAVING):
        left_out = Splice(
            site.program.span(last.body[-1])[1], site.program.span(way)[1], "", expression=False
        )
        follows = node is not block[-1] and isinstance(block[block.index(node) + 1], ast.Return)
        if follows or isinstance(way, ast.Break):
            yield _mended(left_out)
        if isinstance(way, ast.Return):
            yield _mended(left_out, after(site, node, site.text(way)))


def _order_of_bounds(site: EditSite) -> Iterator[CodeEdit]:
    """Branches by bounds, of which the first takes what is meant for the later ones: the narrowest comes first."""
    node = site.node
    assert isinstance(node, ast.If)
    chain = _branches(site, node)
    tests = [each.test for each in chain]
    if len(chain) < 2 or not all(isinstance(t, ast.Compare) and len(t.ops) == 1 for t in tests):
        return
    compared = [t for t in tests if isinstance(t, ast.Compare)]
    signs = {type(t.ops[0]) for t in compared}
    bounds = [t.comparators[0].value for t in compared if isinstance(t.comparators[0], ast.Constant)]
    numbers = [value for value in bounds if isinstance(value, int | float)]
    if len({site.text(t.left) for t in compared}) > 1 or len(signs) > 1 or len(numbers) < len(chain):
        return
    rising = RISING.get(next(iter(signs)))
    order = sorted(range(len(chain)), key=lambda place: numbers[place], reverse=rising is False)
    if rising is not None and order != list(range(len(chain))):
        splices = [
            splice
            for old, place in zip(chain, order, strict=True)
            for splice in (
                site.program.replace(old.test, site.text(chain[place].test)),
                Splice(*_span(site, old.body), _text(site, chain[place].body), expression=False),
            )
        ]
        yield _mended(*splices)


def _branches(site: EditSite, node: ast.If) -> list[ast.If]:
    """An ``if`` and its ``elif``, or ifs that follow one another and leave; nothing where it is not the first of them."""
    if isinstance(site.parent, ast.If) and site.parent.orelse == [node]:
        return []
    chain = [node]
    while len(chain[-1].orelse) == 1 and isinstance(inner := chain[-1].orelse[0], ast.If):
        chain.append(inner)
    block = block_of(site)
    if len(chain) == 1 and node in block and not node.orelse:
        for other in block[block.index(node) + 1 :]:
            if not isinstance(other, ast.If) or other.orelse or not isinstance(chain[-1].body[-1], LEAVING):
                break
            chain.append(other)
    return chain


def _span(site: EditSite, body: Sequence[ast.stmt]) -> tuple[int, int]:
    return site.program.span(body[0])[0], site.program.span(body[-1])[1]


def _text(site: EditSite, body: Sequence[ast.stmt]) -> str:
    start, end = _span(site, body)
    return site.program.data[start:end].decode()


# --- conditions and texts -----------------------------------------------------------------------------------


def _true_by_itself(site: EditSite) -> Iterator[CodeEdit]:
    """``kind == "a" or "b"`` asks for one of both."""
    node = site.node
    assert isinstance(node, ast.BoolOp)
    first, rest = node.values[0], node.values[1:]
    wanted = ast.Eq if isinstance(node.op, ast.Or) else ast.NotEq
    if isinstance(site.parent, ast.ExceptHandler):
        yield _mended(site.program.replace(node, f"({', '.join(map(site.text, node.values))})"))
    if not isinstance(first, ast.Compare) or not isinstance(first.ops[0], wanted) or len(first.ops) > 1:
        return
    if all(isinstance(each, ast.Constant) for each in rest):
        among = ", ".join(site.text(each) for each in (first.comparators[0], *rest))
        word = "in" if wanted is ast.Eq else "not in"
        yield _mended(site.program.replace(node, f"{side(site, first.left)} {word} ({among})"))


def _not_called(site: EditSite) -> Iterator[CodeEdit]:
    """A method that is named where its answer is meant."""
    node = site.node
    assert isinstance(node, ast.Attribute)
    named = isinstance(node.value, ast.Name) and node.value.id == "str"
    if (
        node.attr in TO_BE_CALLED
        and not named
        and not isinstance(site.parent, ast.Call | ast.keyword | ast.Assign)
    ):
        yield _mended(site.program.replace(node, f"{site.text(node)}()"))


def _missing_sign(site: EditSite) -> Iterator[CodeEdit]:
    """A comma between two texts, or behind the only one in brackets; the f before a text with placeholders."""
    node = site.node
    assert isinstance(node, ast.Constant)
    if not isinstance(node.value, str):
        return
    text, above = site.text(node), site.parent
    if isinstance(above, ast.List | ast.Tuple | ast.Set):
        ends = _ends_of_texts(text)
        if ends:
            parts = [text[a:b] for a, b in pairwise([0, *ends, len(text)])]
            yield _mended(Splice(*site.program.span(node), ",".join(parts), expression=False))
    start, end = site.program.span(node)
    alone = site.program.data[start - 1 : start] == b"(" and site.program.data[end : end + 1] == b")"
    if alone and isinstance(above, ast.Compare | ast.For):
        yield _mended(Splice(end, end, ",", expression=False))
    if "\b" in node.value and text[0] in "'\"":
        yield _mended(site.program.replace(node, f"r{text}"))
    held = set(PLACEHOLDER.findall(node.value))
    formatted = isinstance(above, ast.Attribute) and above.attr.startswith("format")
    if not held or formatted or text[0] not in "rR'\"":
        return
    if held <= {name.partition(".")[0] for name in site.variables()}:
        yield _mended(site.program.replace(node, f"f{text}"))


def _ends_of_texts(text: str) -> list[int]:
    """Where the texts of an implicit concatenation end, but for the last."""
    if text.count(text[-1]) < 4:
        return []
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    try:
        tokens = [
            t
            for t in tokenize.generate_tokens(io.StringIO(f"({text})").readline)
            if t.type == tokenize.STRING
        ]
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return []
    return [starts[t.end[0] - 1] + t.end[1] - (1 if t.end[0] == 1 else 0) for t in tokens[:-1]]


def _loose_alternatives(site: EditSite) -> Iterator[CodeEdit]:
    """Alternatives of a pattern that stand beside more of it are grouped."""
    node = site.node
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and (match := ANCHORED.fullmatch(site.text(node))):
            mark, quote, first, inner, last = match.groups()
            if first or last:
                yield _mended(site.program.replace(node, f"{mark}{quote}{first}(?:{inner}){last}{quote}"))
        return
    held = [node.value] if isinstance(node, ast.Assign) else node.args if isinstance(node, ast.Call) else []
    for pattern in (each for each in held if isinstance(each, ast.JoinedStr)):
        for part in (each for each in pattern.values if isinstance(each, ast.FormattedValue)):
            name = part.value.id if isinstance(part.value, ast.Name) else ""
            written = site.text(pattern)
            text = re.sub(rf"(?<![(:])\{{{name}\}}", f"(?:{{{name}}})", written)
            if name and text != written and len(pattern.values) > 1 and _joined_by_bars(site, name):
                yield _mended(site.program.replace(pattern, text))


def _flags_as_count(site: EditSite) -> Iterator[CodeEdit]:
    """Flags that stand where ``re.sub`` and ``re.split`` take a number of times."""
    node = site.node
    assert isinstance(node, ast.Call)
    for function, place in COUNTED.items():
        count = node.args[place] if len(node.args) > place else None
        if count is None or not is_library(site, node.func, "re", function):
            continue
        parts = [part for part in ast.walk(count) if isinstance(part, ast.Attribute | ast.Name)]
        if any(is_library(site, part, "re", flag) for part in parts for flag in FLAGS):
            start = site.program.span(count)[0]
            yield _mended(Splice(start, start, "flags=", expression=False))


def _joined_by_bars(site: EditSite, name: str) -> bool:
    return any(
        isinstance(each, ast.Assign)
        and any(_names(target, name, ast.Store) for target in each.targets)
        and any(isinstance(n, ast.Constant) and n.value == "|" for n in ast.walk(each.value))
        for scope in (site.function, None)
        for each in site.facts.nodes_in(scope)
    )


def _from_the_end(site: EditSite) -> Iterator[CodeEdit]:
    """``items[:-n]`` is empty where n is 0, and ``items[-n:]`` is everything: counted from the start instead."""
    node = site.node
    assert isinstance(node, ast.Subscript)
    if not isinstance(node.slice, ast.Slice) or not isinstance(node.value, ast.Name | ast.Attribute):
        return
    for bound in (node.slice.upper, node.slice.lower):
        counted = isinstance(bound, ast.UnaryOp) and isinstance(bound.op, ast.USub)
        if isinstance(bound, ast.UnaryOp) and counted and not isinstance(bound.operand, ast.Constant):
            text = f"len({site.text(node.value)}) - {operand(site, bound.operand)}"
            yield _mended(site.program.replace(bound, f"max({text}, 0)"))
            yield _mended(site.program.replace(bound, text), weight=1.0)


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MENDED = {
    ast.For: (_changed_meanwhile, _groups_used_up, _place_by_value, _ended_at_once),
    ast.While: (_ended_at_once,),
    **dict.fromkeys(COMPREHENSIONS, (_place_by_value,)),
    ast.Assign: (_used_up, _nothing_kept, _sign_of_the_value, _loose_alternatives),
    ast.Return: (_nothing_kept,),
    ast.Expr: (_thrown_away,),
    ast.Attribute: (_not_called,),
    ast.Call: (_same_row, _loose_alternatives, _flags_as_count),
    ast.FunctionDef: (_shared_default,),
    ast.AsyncFunctionDef: (_shared_default,),
    ast.If: (_order_of_bounds,),
    ast.BoolOp: (_true_by_itself,),
    ast.Constant: (_missing_sign, _loose_alternatives),
    ast.Subscript: (_from_the_end,),
}
