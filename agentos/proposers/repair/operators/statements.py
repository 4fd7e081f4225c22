"""Statements: left out, too many, in the wrong place, at the wrong depth, without their guard."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge

from agentos.proposers.repair.operators.conditions import conditions_for
from agentos.proposers.repair.reading.clues import GroupedTexts, TextFactors, TextKind
from agentos.proposers.repair.scope import COLLECTIONS, compatible, target_names
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Family, Splice, first_line, is_docstring
from agentos.syntax import Definition

SHORT = 60  # characters of a statement that is written once more elsewhere
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Break, ast.Continue, ast.Raise, ast.AnnAssign)


def block_of(site: EditSite) -> list[ast.stmt]:
    """The statements that the site's statement stands among."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(site.parent, field, None)
        if isinstance(block, list) and site.node in block:
            return block
    return []


def before(site: EditSite, node: ast.stmt, text: str) -> Splice:
    """On a line of its own, or on the node's where that is behind a colon or a semicolon."""
    program = site.program
    start = program.offset(first_line(node), node.col_offset)
    if program.data[program.offset(first_line(node), 0) : start].strip():
        return Splice(start, start, f"{text}; ", expression=False)
    indented = text.replace("\n", "\n" + program.indent(node))
    return Splice(start, start, f"{indented}\n{program.indent(node)}", expression=False)


def after(site: EditSite, node: ast.stmt, text: str) -> Splice:
    """Behind the node and a comment on its last line; on this line where something else stands there."""
    program, end = site.program, site.program.span(node)[1]
    behind = program.rest_of_line(end)
    is_comment = behind.lstrip().startswith(b"#")
    if (behind and not is_comment) or program.data[
        program.offset(node.lineno, 0) : program.span(node)[0]
    ].strip():
        return Splice(end, end, f"; {text}", expression=False)
    indented = text.replace("\n", "\n" + program.indent(node))
    end += len(behind) if is_comment else 0
    return Splice(end, end, f"\n{program.indent(node)}{indented}", expression=False)


def moved_text(site: EditSite, node: ast.stmt) -> str:
    """The node as written, with a comment on its last line."""
    behind = site.program.rest_of_line(site.program.span(node)[1]).decode()
    return f"{site.text(node)}{behind if site.program.has_own_lines(node) else ''}"


def moved_behind(site: EditSite, node: ast.stmt, other: ast.stmt) -> tuple[Splice, Splice]:
    """The node taken away where it stands, and put behind another one, which it may be the last of."""
    left, put = gone(site, node), after(site, other, moved_text(site, node))
    if left.start < put.start < left.end:  # from the line above on, so that nothing is taken away twice
        left = Splice(left.start - 1, put.start, "", expression=False)
    return left, put


def in_loop(site: EditSite) -> bool:
    """Whether a round of a loop may be left here."""
    node, above = site.node, site.parent
    while above is not None and not isinstance(above, DEFINITIONS):
        if isinstance(above, ast.For | ast.While | ast.AsyncFor) and node not in above.orelse:
            return True
        node, above = above, site.program.parent.get(above)
    return False


def differing_lines(site: EditSite, node: ast.stmt, text: str) -> Splice:
    """The lines that differ: a statement that is added is told from one that is written anew."""
    start, end = site.program.span(node)
    indent = site.program.indent(node)
    old, new = f"{indent}{site.text(node)}".split("\n"), f"{indent}{text}".split("\n")
    most = min(len(old), len(new))
    same = next((at for at in range(most) if old[at] != new[at]), most)
    most -= same
    behind = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    if same:
        start += len("\n".join(old[:same]).encode()) - len(indent)
        end -= len("".join(f"\n{line}" for line in old[len(old) - behind :]).encode())
        added = "".join(f"\n{line}" for line in new[same : len(new) - behind])
        return Splice(start, end, added, expression=False)
    added = "\n".join(new[: len(new) - behind]).removeprefix(indent)
    if behind == len(old):
        return Splice(start, start, f"{added}\n{indent}", expression=False)
    end -= len("".join(f"\n{line}" for line in old[len(old) - behind :]).encode())
    return Splice(start, end, added, expression=False)


def deletions(site: EditSite) -> Iterator[CodeEdit]:
    """This statement, or this and the next, left out; a branch without its condition."""
    node = site.node
    block = block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, DEFINITIONS):
        return
    if len(block) == 1:
        yield CodeEdit((site.program.replace(node, "pass"),), "statement deleted", 0.5)
        return
    yield CodeEdit((gone(site, node),), "statement deleted")
    index = block.index(node)
    if index + 1 < len(block) and len(block) > 2:
        yield CodeEdit((gone(site, node), gone(site, block[index + 1])), "statements deleted", 0.3)
    if isinstance(node, ast.If) and not node.orelse and node.body[0].lineno > node.lineno:
        yield CodeEdit((site.program.replace(node, _body(site, node.body)),), "condition dropped", 0.5)


def gone(site: EditSite, node: ast.stmt) -> Splice:
    start, end = site.program.lines_span(node)
    whole = site.program.has_own_lines(node)
    return Splice(start, end, "" if whole else "pass", expression=False)


def _body(site: EditSite, body: list[ast.stmt]) -> str:
    """A block's text, dedented to the depth of the statement that holds it."""
    assert isinstance(site.node, ast.stmt)
    start, end = site.program.span(body[0])[0], site.program.span(body[-1])[1]
    text = site.program.data[start:end].decode()
    deeper = site.program.indent(body[0]).removeprefix(indent := site.program.indent(site.node))
    return text.replace(f"\n{indent}{deeper}", f"\n{indent}")


def moves(site: EditSite) -> Iterator[CodeEdit]:
    """Neighbours exchanged; the last statement of a block one level out; the next one level in."""
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, DEFINITIONS):
        return
    index = block.index(node)
    if index + 1 < len(block) and isinstance(node, SIMPLE):
        below = block[index + 1]
        splices = (
            site.program.replace(node, site.text(below)),
            site.program.replace(below, site.text(node)),
        )
        yield CodeEdit(splices, "statements exchanged", 0.5)
    above = site.parent
    if (
        isinstance(node, SIMPLE)
        and isinstance(above, ast.For | ast.While | ast.If)
        and len(block) > 1
        and index == len(block) - 1
    ):
        yield CodeEdit(moved_behind(site, node, above), "statement moved out", 1.0)
    if isinstance(node, ast.For | ast.While | ast.If) and index + 1 < len(block):
        below = block[index + 1]
        if isinstance(below, SIMPLE):
            yield CodeEdit(moved_behind(site, below, node.body[-1]), "statement moved in", 0.7)


def guards(site: EditSite, factors: TextFactors) -> Iterator[Family]:
    """A condition around this statement, and a way out before it: so many that they are made as needed."""
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, DEFINITIONS):
        return
    conditions = conditions_for(site)
    known = factors.grouped(conditions)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return):
        texts = _Conditions(conditions, known, _by_kind(factors, node, "guard", known), 0.5)
        yield Family("guard", 0.5 * known.total, texts.most(), _guarded(site, node, texts))
    yield from _steps(site, node)
    ways = {}
    for way, likely in _ways_out(site).items():
        by_kind = _by_kind(factors, node, "way out", known, factors.kind(way))
        ways[way] = _Conditions(conditions, known, by_kind, 0.2, likely)
    total = 0.2 * known.total * sum(texts.likely for texts in ways.values())
    most = max((texts.most() for texts in ways.values()), default=0.0)
    yield Family("way out", total, most, _left_early(site, node, ways))


def _steps(site: EditSite, node: ast.stmt) -> Iterator[Family]:
    """A value set right where a condition about it holds: ``if end < begin: end += timedelta(days=1)``."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AugAssign)
        else []
    )
    names = [name for target in targets for name in target_names(target)]
    made = [
        (test, step) for name in names for test in _tests_of(site, name) for step in _steps_of(site, name)
    ]
    if made:
        texts = (after(site, node, f"if {test}:\n    {step}") for test, step in made)
        edits = (CodeEdit((splice,), "guarded step", 0.1) for splice in texts)
        yield Family("guarded step", 0.1 * len(made), 0.1, edits)


def _tests_of(site: EditSite, name: str) -> list[str]:
    kind = site.scope.kinds.get(name, "")
    others = [
        other
        for other in site.variables()
        if other != name and "." not in other and compatible(kind, site.scope.kinds.get(other, ""))
    ]
    return [
        *(f"{name} {sign} {other}" for other in others for sign in "<>"),
        f"{name} < 0",
        *(f"{name} > {number}" for number in _numbers_near(site)),
    ]


def _steps_of(site: EditSite, name: str) -> list[str]:
    steps = ["1", *_numbers_near(site), *(n for n in site.facts.module_numbers if n != name)]
    if "timedelta" in site.facts.imported:
        steps = ["timedelta(days=1)", "timedelta(hours=12)", *steps]
    return [f"{name} {sign} {step}" for step in steps for sign in ("+=", "-=")]


def _numbers_near(site: EditSite) -> list[str]:
    return list(dict.fromkeys(site.text(number) for number in site.near(site.facts.numbers, 6)))


def _by_kind(
    factors: TextFactors, node: ast.stmt, operator: str, known: GroupedTexts, *with_it: TextKind
) -> dict[TextKind, float]:
    return {kind: factors.factor(node.lineno, operator, kind, *with_it) for kind in known.most}


@dataclass(frozen=True, slots=True)
class _Conditions:
    """Conditions before one statement, with what speaks for each kind of them there."""

    weights: Mapping[str, float]
    known: GroupedTexts
    factors: Mapping[TextKind, float]
    share: float
    likely: float = 1.0

    def most(self) -> float:
        """The weight of the likeliest."""
        return max((self._weight(w, kind) for kind, w in self.known.most.items()), default=0.0)

    def likeliest_first(self) -> list[tuple[str, float]]:
        kinds = self.known.kinds
        found = [(text, self._weight(weight, kinds[text])) for text, weight in self.weights.items()]
        return sorted(found, key=lambda pair: -pair[1])

    def _weight(self, weight: float, kind: TextKind) -> float:
        return self.share * weight * self.likely * self.factors[kind]


def _guarded(site: EditSite, node: ast.stmt, conditions: _Conditions) -> Iterator[CodeEdit]:
    inner = site.text(node).replace("\n", "\n    ")
    for condition, weight in conditions.likeliest_first():
        text = f"if {condition}:\n{site.program.indent(node)}    {inner}"
        yield CodeEdit((Splice(*site.program.span(node), text, expression=False),), "guard", weight)


def _left_early(site: EditSite, node: ast.stmt, ways: Mapping[str, _Conditions]) -> Iterator[CodeEdit]:
    def by(way: str, conditions: _Conditions) -> Iterator[CodeEdit]:
        for condition, weight in conditions.likeliest_first():
            yield CodeEdit((before(site, node, f"if {condition}:\n    {way}"),), "way out", weight)

    yield from merge(*(by(*each) for each in ways.items()), key=lambda edit: -edit.weight)


def _ways_out(site: EditSite) -> dict[str, float]:
    ways = {"continue": 1.0, "break": 0.5} if in_loop(site) else {}
    if site.function is not None:
        first = site.function.body[0] is site.node or not ways
        for node in site.facts.nodes_in(site.function):
            if isinstance(node, ast.Raise) and node is not site.node and _is_short(site, node):
                ways.setdefault(site.text(node), 0.3)
            if not isinstance(node, ast.Return):
                continue
            if isinstance(node.value, ast.Constant | ast.List | ast.Name) and site.visible(node.value):
                ways[site.text(node)] = 1.0 if first else 0.3
            elif node is not site.node and node.value is not None and _is_short(site, node):
                ways.setdefault(site.text(node), 0.3)
        for default in ("None", "0", "''", "[]", "False", "True", *_given_first(site.function)):
            ways.setdefault(f"return {default}", 0.5 if first else 0.1)
    return ways


def _is_short(site: EditSite, node: ast.stmt) -> bool:
    """Whether it stands on one line, and all that it names is known here."""
    text = site.text(node)
    return "\n" not in text and len(text) <= SHORT and site.visible(node)


def _given_first(function: Definition) -> list[str]:
    """What it is given, which it may give back as it is; of a method that is the object itself as well."""
    return [argument.arg for argument in function.args.args[:2]]


def insertions(site: EditSite) -> Iterator[CodeEdit]:
    """A statement that is missing: one of the same file, with its names or others; a step; an end."""
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, DEFINITIONS):
        return
    last = block[-1] is node and not isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Raise)
    statements = _statements(site)
    if site.function is not None and node is first_statement(site):
        statements |= _taken_over(site.function)
    for text, weight in statements.items():
        yield CodeEdit((before(site, node, text),), "statement inserted", weight)
        if last:
            yield CodeEdit((after(site, node, text),), "statement inserted", weight)


def first_statement(site: EditSite) -> ast.stmt | None:
    """The first of the function that is no docstring."""
    for each in site.function.body if site.function else ():
        if not (isinstance(each, ast.Expr) and is_docstring(site.program, each.value)):
            return each
    return None


def _taken_over(function: Definition) -> dict[str, float]:
    """What a function does first with what it is given: copies it, or brings it into one form; the class above is asked."""
    weights: dict[str, float] = {}
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    optional = {each.arg for each in named[len(named) - len(given.kwonlyargs) - len(given.defaults) :]}
    for name in (each.arg for each in named if each.arg not in ("self", "cls")):
        weights |= {
            f"{name} = list({name})": 0.3,
            f"{name} = dict({name})": 0.2,
            f"{name} = {name}.copy()": 0.2,
        }
        weights |= {f"if isinstance({name}, str):\n    {name} = [{name}]": 0.2}
        weights |= {f"if isinstance({name}, bytes):\n    {name} = {name}.decode()": 0.2}
        weights |= {f"if not isinstance({name}, str):\n    {name} = str({name})": 0.2}
        for default in ("[]", "{}", "''", "0", "1") if name in optional else ():
            weights[f"if {name} is None:\n    {name} = {default}"] = 0.2
    if named and named[0].arg == "self":
        handed = ", ".join(each.arg for each in named[1:])
        weights[f"super().{function.name}({handed})"] = 0.3
    return weights


# By the kinds of a variable, what may be done to it in a step of its own, and how likely.
_STEPS: tuple[tuple[Collection[str], Mapping[str, float]], ...] = (
    (("", "int", "float"), {"{0} += 1": 0.7, "{0} -= 1": 0.7, "{0} = 0": 0.3, "{0} = abs({0})": 0.1}),
    (("", "str"), {"{0} = {0}.strip()": 0.4, "{0} = {0}.lower()": 0.4, "{0} = ''": 0.2}),
    (("", "list"), {"{0} = [each or 0 for each in {0}]": 0.4}),
    (("", *COLLECTIONS), {"{0} = []": 0.2, "{0}.sort()": 0.3, "{0} = sorted({0})": 0.2, "{0}.reverse()": 0.2, "{0}.clear()": 0.2}),
)  # fmt: skip


def _statements(site: EditSite) -> dict[str, float]:
    weights: dict[str, float] = {}
    own = site.text(site.node) if isinstance(site.node, ast.stmt) else ""
    for other in site.facts.nodes_in(site.function):
        if not isinstance(other, ast.Assign | ast.AugAssign | ast.Expr) or other is site.node:
            continue
        if "\n" in site.text(other):
            continue
        weights[site.text(other)] = 0.2
    for name in site.variables():
        kind = site.scope.kinds.get(name, "")
        if "." in name or kind == "record":
            continue
        for kinds, steps in _STEPS:
            if kind in kinds:
                weights |= {step.format(name): weight for step, weight in steps.items()}
    weights |= {"break": 0.5, "continue": 0.3} if in_loop(site) else {}
    weights.pop(own, None)
    return weights


def returns(site: EditSite) -> Iterator[CodeEdit]:
    """Another variable, the other way round, or nothing at all given back."""
    node = site.node
    if isinstance(node, ast.Return) and node.value is not None:
        for name in site.variables():
            if name != site.text(node.value) and site.scope.kinds.get(name) != "record":
                yield site.edit(name, "result", 0.7, node=node.value)
                yield site.edit(f"-{name}", "result", 0.1, node=node.value)
    if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Name):
        for name in site.variables():
            yield site.edit(name, "value", 0.3, node=node.value)
            if site.scope.kinds.get(name, "") in ("", "int", "float"):
                yield site.edit(f"-{name}", "value", 0.2, node=node.value)


def fresh_name(site: EditSite, *wanted: str) -> str:
    """The first of the names that the file does not use."""
    used = site.facts.bound | {f.name for f in site.program.functions}
    return next((name for name in wanted if name not in used), f"{wanted[0]}_kept")


def within(block: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of these statements, in the order of ``ast.walk``."""
    return (node for statement in block for node in ast.walk(statement))
