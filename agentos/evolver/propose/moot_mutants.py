"""Mutants by the syntax tree: what an edit newly writes made moot, picked otherwise, or put beside what it took away.

In the manner of condition coverage (MC/DC): a new operand that could as well always be true, a call that could as
well not be there, a statement that could as well be gone are not pinned down by the tasks, if these pass without
them. Nor is a pick by place that could as well be one by size, nor that something had to go for what came. And of an
edit at several places each by itself could as well be as it was: what rides along with a repair is not pinned down
by what the repair mends. Nothing is run here.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set

from agentos.syntax import is_python, parse, tree_of

_SHOWN = 40  # characters of what is made moot
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Break, ast.Continue, ast.Delete)
_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.With, ast.Try)
_LOGICAL = (ast.Compare, ast.BoolOp)
_REPEATED = (ast.Expr, ast.AugAssign)
_KEYS = ("", ", key=len", ", key=lambda each: each[-1]")
# "2." comes before "10."; what are no texts raise
_BY_NUMBER = "key=lambda text: (len(text) - len(text.lstrip('0123456789')), text)"
_NUMBERED = "with texts in the order of the numbers that they begin with"
_MORE = 1009  # by which a number is raised to see whether it bounds anything: loops still end, and it is prime to all periods
NUMBER = "the number"  # how the words for a raised one begin
_WORD = re.compile(r"\w+|[^\w\s]")
_PIECE = re.compile(r"\\.|\w+|.", re.DOTALL)
_LIKE = 0.5  # of the pieces of a text and of the one that it takes the place of
Change = tuple[str, ast.AST, str]  # what is done to a node, and the text that takes its place


def moot(old: str, new: str) -> dict[str, str]:
    """The sources, each under a few words that say what is otherwise; none where a text is no Python."""
    found = {f"the same edit without {words}": source for words, source in undone(old, new).items()}
    written, tests = written_nodes(old, new)
    ids = {id(node) for node in written}
    changes = [change for test in tests for change in _decided(test)]
    for node in written:
        changes += [*_without_a_part(node, ids), *_without_all(node), *_kept_apart(node)]
        changes += _picked_otherwise(node)
    for words, place, text in [*_both(old, new), *changes]:
        source = with_node(new, place, text)
        if source not in (old, new) and is_python(source):
            found.setdefault(f"the same edit {words}", source)
    return found


def undone(old: str, new: str, *, simpler: bool = True) -> dict[str, str]:
    """Each part of an edit that has several, and the source in which it alone is as it was.

    A part is a run of lines that change together, or one of several statements that stand where others of the same
    kind stood, of one with a block its head. Of what changes within one expression the parts are no edits of their own.
    Without ``simpler`` not those lines of which only something goes, and no line as a whole.
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    opcodes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    found = {
        f"its change of line {since + 1}": "".join([*after[:since], *before[start:end], *after[to:]])
        for tag, start, end, since, to in opcodes
        if tag != "equal" and (simpler or not _simplified(before[start:end], after[since:to]))
    }
    found |= {words: source for words, source, less in _undone_in_texts(old, new) if simpler or not less}
    try:
        pairs = [*_exchanged(parse(old), parse(new), inner=True)]
        for gone, come, _ in pairs:
            if not isinstance(come, ast.expr | ast.stmt) or not isinstance(gone, ast.expr | ast.stmt):
                continue
            if simpler or not _simplified([ast.unparse(gone)], [ast.unparse(come)]):
                found.setdefault(f"{_cut(come)} for {_cut(gone)}", with_node(new, come, ast.unparse(gone)))
        known = {_meaning(old), _meaning(new)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    parts = {}
    for words, source in found.items():
        if is_python(source) and (meaning := _meaning(source)) not in known:
            known.add(meaning)
            parts[words] = source
    return parts


def _undone_in_texts(old: str, new: str) -> Iterator[tuple[str, str, bool]]:
    """Of a text in the place of a like one, as a pattern is, each place by itself as it was, and whether it only lost something."""
    before = [_PIECE.findall(text) for _, text in _new_texts(new, old)]
    for node, written in _new_texts(old, new) if before else ():
        pieces = _PIECE.findall(written)
        ones = [difflib.SequenceMatcher(None, gone, pieces, autojunk=False) for gone in before]
        near, gone = max(zip(ones, before, strict=True), key=lambda each: each[0].ratio())
        places = [code for code in near.get_opcodes() if code[0] != "equal"]
        for tag, start, end, since, to in places if len(places) > 1 and near.ratio() > _LIKE else ():
            text = "".join([*pieces[:since], *gone[start:end], *pieces[to:]])
            yield f"its change from {text!r}", with_node(new, node, repr(text)), tag == "delete"


def _new_texts(old: str, new: str) -> list[tuple[ast.Constant, str]]:
    nodes = [node for node in written_nodes(old, new)[0] if isinstance(node, ast.Constant)]
    return [(node, node.value) for node in nodes if isinstance(node.value, str)]


def _simplified(gone: Sequence[str], come: Sequence[str]) -> bool:
    """As many lines, with no word or sign that was not there."""
    one, other = (Counter(_WORD.findall("".join(lines))) for lines in (gone, come))
    return len(gone) == len(come) and other <= one


def _meaning(source: str) -> str:
    """What of a text may make a difference: no docstrings, no hints, and of a module nothing that nobody names."""
    tree = parse(source)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not _is_bound(node)}
    named |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            node.annotation = ast.Constant(None)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, name, None), list):
                setattr(node, name, [each for each in block if not _is_text(each)])
    tree.body = [each for each in tree.body if not _is_unnamed(each, {*named, "run", "TOOL"})]
    return ast.dump(tree)


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is_unnamed(node: ast.stmt, named: Set[str]) -> bool:
    """An import, a function without a decorator, or a constant, whose name no other place has."""
    names: list[str] = []
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
        names = [node.name]
    elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
        node.value, ast.Constant | ast.List | ast.Dict | ast.Set | ast.Tuple
    ):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id if isinstance(target, ast.Name) else "__" for target in targets]
    return bool(names) and named.isdisjoint(names) and not any(name.startswith("__") for name in names)


def _is_text(node: ast.AST) -> bool:
    """A docstring, or a text that stands where one could."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def idle(old: str, new: str) -> dict[str, str]:
    """Each part, statement and constant operand that is newly written, and the source without it; each number, raised."""
    found = undone(old, new, simpler=False)
    written = written_nodes(old, new)[0]
    # how many digits are kept is nothing that an input reaches
    digits = {
        id(arg) for node in written if isinstance(node, ast.Call) and _is_round(node) for arg in node.args
    }
    for node in written:
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
            if id(node) not in digits:
                words = f"{NUMBER} {node.value} (line {node.lineno}, column {node.col_offset + 1})"
                found[words] = with_node(new, node, str(node.value + _MORE))
        elif _is_text(node):
            continue
        elif isinstance(node, ast.BinOp):
            for kept, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(other, ast.Constant):
                    found.setdefault(_cut(node), with_node(new, node, f"({ast.unparse(kept)})"))
        elif isinstance(node, _SIMPLE):
            found.setdefault(_cut(node), with_node(new, node, "pass"))
    return {text: source for text, source in found.items() if source != old and is_python(source)}


def constant_tests(old: str, new: str) -> dict[str, str]:
    """Each test, and each operand of one, that is newly written, always true and always false, and the source with it so."""
    found: dict[str, str] = {}
    written, tests = written_nodes(old, new)
    wholes = [each for node in written for each in _joined(node)]
    for test in (*tests, *wholes):
        for word in ("True", "False") if not isinstance(test, ast.Constant) else ():
            found.setdefault(f"{_cut(test)} always {word.lower()}", with_node(new, test, word))
    return {words: source for words, source in found.items() if source != old and is_python(source)}


def _is_round(node: ast.Call) -> bool:
    return ast.unparse(node.func).rpartition(".")[2] == "round"


def near_texts(old: str, new: str) -> list[str]:
    """Texts that stand in the lines that the edit writes, and in those that they replace."""
    before, after = tree_of(old), tree_of(new)
    if before is None or after is None:
        return []
    found = [
        node.value
        for tree, lines in zip((before, after), _changed_lines(old, new), strict=True)
        for node in _within(tree, lines)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [*dict.fromkeys(text for text in found if 0 < len(text) <= _SHOWN)]


def written_nodes(old: str, new: str) -> tuple[Sequence[ast.AST], list[ast.expr]]:
    """Nodes of the new text, and tests and operands of ``and`` and ``or``, that the lines which it replaces lack."""
    before, after = tree_of(old), tree_of(new)
    if before is None or after is None:
        return [], []
    lines = _changed_lines(old, new)
    gone, come = [*_within(before, lines[0])], [*_within(after, lines[1])]
    nodes = Counter(map(ast.dump, gone))
    tests = Counter(ast.dump(test) for node in gone for test in _tests(node))
    fresh = [node for node in come if _is_new(node, nodes)]
    return fresh, [test for node in come for test in _tests(node) if _is_new(test, tests)]


def _is_new(node: ast.AST, known: Counter[str]) -> bool:
    text = ast.dump(node)
    known[text] -= 1
    return known[text] < 0


def _tests(node: ast.AST) -> Sequence[ast.expr]:
    tests: Sequence[ast.expr] = ()
    if isinstance(node, ast.If | ast.IfExp):  # of a loop it would be one without end
        tests = (node.test,)
    elif isinstance(node, ast.comprehension):
        tests = node.ifs
    elif isinstance(node, ast.BoolOp):
        tests = node.values
    return [test for test in tests if not isinstance(test, ast.BoolOp)]


def _joined(node: ast.AST) -> Sequence[ast.expr]:
    """The tests of it that are several in one."""
    tests: Sequence[ast.expr] = ()
    if isinstance(node, ast.If | ast.IfExp):
        tests = (node.test,)
    elif isinstance(node, ast.comprehension):
        tests = node.ifs
    return [test for test in tests if isinstance(test, ast.BoolOp)]


def _decided(test: ast.expr) -> Iterator[Change]:
    for word in ("True", "False"):
        yield f"with {_cut(test)} always {word.lower()}", test, word


def _without_a_part(node: ast.AST, written: Set[int]) -> Iterator[Change]:
    """One operand, or what is called, in the place of the whole; for ``round``, which makes halves even, what people do."""
    kept: Sequence[ast.expr] = ()
    if isinstance(node, ast.Call):
        if ast.unparse(node.func) == "round" and len(node.args) == 1 and not node.keywords:
            yield "with halves rounded up", node, f"int(({ast.unparse(node.args[0])} + 0.5) // 1)"
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        kept = [each for each in [*inner, *node.args][:4] if not isinstance(each, ast.Starred)]
        kept += [
            part for word in node.keywords for part in ast.walk(word.value) if isinstance(part, ast.Call)
        ]
    elif isinstance(node, ast.BinOp):
        kept = (node.left, node.right)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        kept = (node.operand,)
    elif isinstance(node, ast.Slice):
        for bound in filter(None, (node.lower, node.upper)):
            if id(bound) in written:
                yield f"without the bound {_cut(bound)}", bound, ""
    for each in kept:
        yield f"with {_cut(each)} for {_cut(node)}", node, f"({ast.unparse(each)})"


def _picked_otherwise(node: ast.AST) -> Iterator[Change]:
    """By size for by place, and another order for a new one; sized as a whole, by length, and by their last part."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_place(node.slice):
        for pick in ("max", "min"):
            for key in _KEYS:
                yield f"with {pick}(…{key})", node, f"{pick}({ast.unparse(node.value)}{key})"
    elif isinstance(node, ast.Call) and len(node.args) < 2 and not node.keywords:
        called, listed = ast.unparse(node.func), ", ".join(map(ast.unparse, node.args))
        if called == "sorted":
            yield _NUMBERED, node, f"sorted({listed}, {_BY_NUMBER})"
            for key in (*_KEYS[1:], ", reverse=True"):
                yield f"with sorted(…{key})", node, f"sorted({listed}{key})"
            yield "with the order reversed", node, f"[*{listed}][::-1]"
        elif called.endswith(".sort") and not listed:
            yield _NUMBERED, node, f"{called}({_BY_NUMBER})"


def _kept_apart(node: ast.AST) -> Iterator[Change]:
    """What is put under a key, beside what has the same one: a table drops all of these but one."""
    key: ast.expr | None = None
    if isinstance(node, ast.SetComp):
        yield "with doubles kept", node, f"[{ast.unparse(node)[1:-1]}]"
    elif isinstance(node, ast.DictComp):
        key = node.key
    elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        key = target.slice
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("dict", "setdefault"):
        first = node.args[0] if node.args else None
        key = first.elt if isinstance(first, ast.GeneratorExp | ast.ListComp) else first
        key = key.elts[0] if isinstance(key, ast.Tuple) and key.elts and key is not first else key
    if key is not None and not isinstance(key, ast.Slice | ast.Starred):
        yield f"with doubles of {_cut(key)} kept", key, f"({ast.unparse(key)}, object())"


def _is_place(index: ast.expr) -> bool:
    """Whether it is a number whatever is read, or one off the end by the length."""
    parts = [index.left, index.right] if isinstance(index, ast.BinOp) else [index]
    parts = [part.operand if isinstance(part, ast.UnaryOp) else part for part in parts]
    return all(
        (isinstance(part, ast.Constant) and isinstance(part.value, int))
        or (isinstance(part, ast.Call) and ast.unparse(part.func) == "len")
        for part in parts
    )


def _both(old: str, new: str) -> Iterator[Change]:
    """What was taken away beside what came in its place: both entries, either condition, one statement after the other."""
    try:
        pairs = [*_exchanged(parse(old), parse(new))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for gone, come, around in pairs:
        one, other = ast.unparse(gone), ast.unparse(come)
        words = f"with {_cut(gone)} beside {_cut(come)}"
        if isinstance(around, ast.Tuple | ast.List | ast.Set) and isinstance(gone, ast.expr):
            yield words, come, f"{one}, {other}"
        elif come in _tests(around) or (isinstance(come, _LOGICAL) and isinstance(gone, _LOGICAL)):
            for word in ("or", "and"):
                yield f"{words} ({word})", come, f"(({one}) {word} ({other}))"
        elif isinstance(come, _REPEATED) and isinstance(gone, _REPEATED):
            yield words, come, f"{one}; {other}"
        elif isinstance(around, ast.Call) and (text := _either(gone, come, around)):
            yield words, come, text


def _either(gone: ast.AST, come: ast.AST, call: ast.Call) -> str:
    """The text that stands for both of two that are an argument; "" where there is none."""
    constants = (each.value for each in (gone, come) if isinstance(each, ast.Constant))
    texts = [value for value in constants if isinstance(value, str)]
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if len(texts) < 2:
        return ""
    if name in ("startswith", "endswith"):
        return repr(tuple(texts))
    if name in ("strip", "lstrip", "rstrip"):
        return repr("".join(texts))
    return repr(f"(?:{texts[0]})|(?:{texts[1]})") if ast.unparse(call.func).startswith("re.") else ""


def _exchanged(
    one: ast.AST, other: ast.AST, *, inner: bool = False
) -> Iterator[tuple[ast.AST, ast.AST, ast.AST]]:
    """Nodes of two trees that stand at the same place and differ, with what is around the second; outer ones first.

    ``inner``: only those within which nothing does so, and within statements nothing.
    """
    if inner and isinstance(other, (ast.expr, *_SIMPLE)):
        return
    before, after = [*ast.iter_child_nodes(one)], [*ast.iter_child_nodes(other)]
    if type(one) is not type(other) or len(before) != len(after) or isinstance(one, ast.JoinedStr):
        return
    for gone, come in zip(before, after, strict=True):
        if ast.dump(gone) != ast.dump(come) and not _only_moved(gone, come, before, after):
            below = [*_exchanged(gone, come, inner=inner)]
            yield from () if inner and below else [(gone, come, other)]
            yield from below


def _only_moved(gone: ast.AST, come: ast.AST, before: Sequence[ast.AST], after: Sequence[ast.AST]) -> bool:
    """Whether one of two statements is still there, or was already: as many came before it as went behind it."""
    if not isinstance(come, ast.stmt):
        return False
    return ast.dump(gone) in map(ast.dump, after) or ast.dump(come) in map(ast.dump, before)


def _without_all(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, _SIMPLE) and not _is_text(node):
        yield f"without {_cut(node)}", node, "pass"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 1:
        for text in (node.value[1:], node.value[:-1]):
            yield f"with {text!r} for {_cut(node)}", node, repr(text)


# --- places in a text ---------------------------------------------------------------------------


def _within(
    tree: ast.Module, lines: Set[int]
) -> Iterator[ast.expr | ast.stmt | ast.comprehension | ast.Slice]:
    """Outer ones first; of a test's block the head alone, and of an f-string the whole: its parts have no place.

    Nothing of annotations, which have no effect.
    """
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in [*ast.walk(node)][1:]
    }
    hints = (getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns"))
    inside |= {id(part) for hint in hints if hint is not None for part in ast.walk(hint)}
    for node in ast.walk(tree):
        if id(node) in inside or isinstance(node, _BLOCKS):
            continue
        if isinstance(node, ast.comprehension):
            first, last = node.target.lineno, (node.ifs or [node.iter])[-1].end_lineno
        elif isinstance(node, ast.expr | ast.stmt | ast.Slice):
            first, last = node.lineno, node.end_lineno
        else:
            continue
        if isinstance(node, ast.If | ast.While):
            last = node.test.end_lineno
        if not lines.isdisjoint(range(first, (last or first) + 1)):
            yield node


def _changed_lines(old: str, new: str) -> tuple[set[int], set[int]]:
    """Those that go and those that come, by number; how far they are indented makes no difference."""
    before, after = ([line.strip() for line in text.encode().splitlines()] for text in (old, new))
    gone: set[int] = set()
    come: set[int] = set()
    for tag, start, end, since, to in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            gone |= set(range(start + 1, end + 1))
            come |= set(range(since + 1, to + 1))
    return gone, come


def edited_lines(old: str, new: str) -> set[int]:
    """Numbers of the lines of functions of the old text that have to run so that the edit does.

    Of a statement that is changed all lines; of one that is added those of the statements around it. Nothing
    where the edit is of no function, or a text is no Python.
    """
    tree = tree_of(old)
    if tree is None:
        return set()
    before, after = old.split("\n"), new.split("\n")  # as Python counts lines
    touched: set[int] = set()
    for tag, start, end, _, _ in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "insert":
            touched |= {start, start + 1}
        elif tag != "equal":
            touched |= set(range(start + 1, end + 1))
    found: set[int] = set()
    for first, last in _statements(tree):
        if touched & set(range(first, last + 1)):
            found |= set(range(first, last + 1))
    return found


def _statements(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """First and last line of each statement within a function, of a compound one that of its head."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.match_case):
                yield node.pattern.lineno, (node.guard or node.pattern).end_lineno or 0
            elif isinstance(node, ast.stmt) and node is not function:
                body = getattr(node, "body", None) or [case.pattern for case in getattr(node, "cases", ())]
                last = body[0].lineno - 1 if body else node.end_lineno or 0
                yield node.lineno, max(node.lineno, last)


def with_node(source: str, node: ast.AST, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined] # of expressions and statements
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]  # type: ignore[attr-defined]
    return b"".join([*lines[:first], head, text.encode(), tail, *lines[last + 1 :]]).decode()


def _cut(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
