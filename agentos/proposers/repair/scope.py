"""What is visible at a place: names, what they probably hold, and expressions of the same file; and what failing calls name.

Kinds are guesses from literals, annotations and use: ``int``, ``float``, ``str``, ``bool``,
``list``, ``set``, ``dict``, ``tuple``, ``function``, or "" for unknown. A wrong guess costs only
time: kinds weigh candidates, they never forbid one.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentos.proposers.repair.source import Program
from agentos.syntax import Definition

if TYPE_CHECKING:
    from agentos.ports import Case

NUMBERS = frozenset({"int", "float", "bool"})
SEQUENCES = frozenset({"str", "list", "tuple"})
FUNCTIONS_MAX = 40  # that one place may be told of
COLLECTIONS = SEQUENCES | {"set", "dict"}

RESULT_OF = {
    "len": "int", "int": "int", "ord": "int", "hash": "int", "range": "list", "str": "str", "chr": "str",
    "repr": "str", "bin": "str", "hex": "str", "sorted": "list", "list": "list", "set": "set",
    "frozenset": "set", "dict": "dict", "tuple": "tuple", "float": "float", "bool": "bool", "any": "bool",
    "all": "bool", "isinstance": "bool", "round": "int", "open": "file",
}  # fmt: skip
CUTTING = ("split", "rsplit", "splitlines", "partition", "rpartition")
METHOD_RESULT = {
    "split": "list", "splitlines": "list", "rsplit": "list", "keys": "list", "values": "list",
    "items": "list", "join": "str", "strip": "str", "lstrip": "str", "rstrip": "str", "lower": "str",
    "upper": "str", "title": "str", "capitalize": "str", "swapcase": "str", "replace": "str",
    "format": "str", "count": "int", "index": "int", "find": "int", "rfind": "int", "startswith": "bool",
    "endswith": "bool", "isdigit": "bool", "isalpha": "bool", "isspace": "bool", "isupper": "bool",
    "islower": "bool", "read_text": "str", "encode": "bytes", "decode": "str", "copy": "list",
}  # fmt: skip
ANNOTATION = {
    "int": "int", "float": "float", "str": "str", "bool": "bool", "list": "list", "List": "list",
    "dict": "dict", "Dict": "dict", "set": "set", "Set": "set", "tuple": "tuple", "Tuple": "tuple",
    "Sequence": "list", "Iterable": "list", "Mapping": "dict",
}  # fmt: skip


@dataclass(slots=True)
class Scope:
    """The names that one function's body can use. ``kinds`` maps each variable to its kind.

    Of ``functions`` those ``of_one`` may be called with one argument.
    """

    kinds: dict[str, str]
    functions: tuple[str, ...]
    of_one: tuple[str, ...] = ()
    first_line: dict[str, int] = field(default_factory=dict)

    def variables_at(self, program: Program, node: ast.AST) -> list[str]:
        """Variables that may be bound when the node runs: assigned above, or by a loop around it."""
        line = getattr(node, "lineno", 0)
        names = [name for name in self.kinds if self.first_line.get(name, 0) <= line]
        return names + [name for name in comprehension_names(program, node) if name not in self.kinds]

    def kind(self, node: ast.expr) -> str:
        """What the expression probably holds."""
        return kind_of(node, self.kinds)


def comprehension_names(program: Program, node: ast.AST) -> list[str]:
    """Names bound by comprehensions and lambdas around the node."""
    names: list[str] = []
    above: ast.AST | None = node
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            for generator in above.generators:
                names += target_names(generator.target)
        elif isinstance(above, ast.Lambda):
            names += [argument.arg for argument in above.args.args]
        above = program.parent.get(above)
    return list(dict.fromkeys(names))


def target_names(target: ast.expr) -> list[str]:
    """The plain names that an assignment target binds."""
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def names_in(node: ast.AST) -> set[str]:
    """All names that are read or set in it."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def is_target(node: ast.AST) -> bool:
    """Whether something is put there, or it is deleted."""
    return isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)


def called_name(call: ast.Call) -> str:
    """The name of the function or method."""
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


LITERALS: tuple[tuple[tuple[type[ast.expr], ...], str], ...] = (
    ((ast.Compare,), "bool"),
    ((ast.List, ast.ListComp), "list"),
    ((ast.Dict, ast.DictComp), "dict"),
    ((ast.Set, ast.SetComp), "set"),
    ((ast.Tuple,), "tuple"),
    ((ast.JoinedStr,), "str"),
)


def kind_of(node: ast.expr, kinds: dict[str, str]) -> str:
    """What the expression probably holds, given what its names hold."""
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    if isinstance(node, ast.Name):
        return kinds.get(node.id, "")
    if isinstance(node, ast.Call):
        return _kind_of_call(node)
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.IfExp):
        return _kind_of_operation(node, kinds)
    if isinstance(node, ast.Subscript):
        whole = kind_of(node.value, kinds)
        return whole if isinstance(node.slice, ast.Slice) or whole == "str" else ""
    return next((kind for shapes, kind in LITERALS if isinstance(node, shapes)), "")


def _kind_of_call(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return RESULT_OF.get(node.func.id, "")
    return METHOD_RESULT.get(node.func.attr, "") if isinstance(node.func, ast.Attribute) else ""


def _kind_of_operation(node: ast.BinOp | ast.UnaryOp | ast.IfExp, kinds: dict[str, str]) -> str:
    if isinstance(node, ast.IfExp):
        return kind_of(node.body, kinds)
    if isinstance(node, ast.UnaryOp):
        return "bool" if isinstance(node.op, ast.Not) else kind_of(node.operand, kinds)
    left, right = kind_of(node.left, kinds), kind_of(node.right, kinds)
    if left == "str" or (right == "str" and isinstance(node.op, ast.Add)):
        return "str"
    if "list" in (left, right):
        return "list"
    if isinstance(node.op, ast.Div) or "float" in (left, right):
        return "float"
    if isinstance(node.op, ast.Sub | ast.Mod | ast.FloorDiv | ast.Pow | ast.Mult):
        return "int"
    return left or right


def compatible(one: str, other: str) -> bool:
    """Whether a value of one kind can stand for one of the other; unknown fits all."""
    return not one or not other or one == other or (one in NUMBERS and other in NUMBERS)


def scope_of(program: Program, function: Definition | None) -> Scope:
    """Names of the function, of the functions around it, and of the module."""
    near = _functions_near(program, function)
    of_one = tuple(f.name for f in near if _takes_one(f) and f is not function)
    scope = Scope({}, tuple(f.name for f in near), of_one)
    chain: list[ast.AST] = [program.tree]
    above: ast.AST | None = function
    inner: list[ast.AST] = []
    while above is not None:
        if isinstance(above, Definition):
            inner.append(above)
        above = program.parent.get(above)
    for place in chain + inner[::-1]:
        _bind_arguments(program, scope, place)
        for node in _own_nodes(place):
            _bind(scope, node, at_module=place is program.tree)
    return scope


def _functions_near(program: Program, function: Definition | None) -> tuple[Definition, ...]:
    """The file's functions; of a long file's, those nearest to this one."""
    found = program.functions
    if len(found) > FUNCTIONS_MAX:
        line = function.lineno if function else 0
        nearest = set(sorted(found, key=lambda f: abs(f.lineno - line))[:FUNCTIONS_MAX])
        found = tuple(f for f in found if f in nearest)
    return found


def _takes_one(function: Definition) -> bool:
    """Whether it may be called with one argument."""
    given = function.args
    named = [*given.posonlyargs, *given.args]
    needed = len(named) - len(given.defaults)
    return needed <= 1 and bool(named or given.vararg) and None not in given.kw_defaults


def _own_nodes(place: ast.AST) -> list[ast.AST]:
    """Nodes of this function or module, without those of functions and classes inside it."""
    found: list[ast.AST] = []
    waiting = list(ast.iter_child_nodes(place))
    while waiting:
        node = waiting.pop(0)
        found.append(node)
        if not isinstance(node, Definition | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _bind_arguments(program: Program, scope: Scope, place: ast.AST) -> None:
    if isinstance(place, Definition):
        for argument in place.args.posonlyargs + place.args.args + place.args.kwonlyargs:
            scope.kinds[argument.arg] = _kind_of_annotation(argument.annotation)
            scope.first_line[argument.arg] = 0
            for name, kind in _fields(program, place, argument):
                scope.kinds[name] = scope.kinds.get(name) or kind
                scope.kinds[argument.arg] = "record"
        for rest, kind in ((place.args.vararg, "tuple"), (place.args.kwarg, "dict")):
            if rest is not None:
                scope.kinds[rest.arg], scope.first_line[rest.arg] = kind, 0


def _fields(program: Program, place: Definition, argument: ast.arg) -> Iterator[tuple[str, str]]:
    """``input.rows`` and its kind for each field of the argument's class, if that is in the file; of a method's object, too."""
    klass = _class_of(program, place, argument)
    for each in klass.body if klass else ():
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield f"{argument.arg}.{each.target.id}", _kind_of_annotation(each.annotation)
        begun = each.body if isinstance(each, Definition) and each.name == "__init__" else ()
        for node in (step for step in begun if isinstance(step, ast.Assign | ast.AnnAssign)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                said = _kind_of_annotation(node.annotation) if isinstance(node, ast.AnnAssign) else ""
                yield f"{argument.arg}.{target.attr}", said or (kind_of(node.value, {}) if node.value else "")


def _class_of(program: Program, place: Definition, argument: ast.arg) -> ast.ClassDef | None:
    """The class that the argument is said to be of, or the one whose method is asked."""
    above = program.parent.get(place)
    if isinstance(above, ast.ClassDef) and argument.arg == "self":
        return above
    wanted = argument.annotation.id if isinstance(argument.annotation, ast.Name) else ""
    return next((k for k in program.tree.body if isinstance(k, ast.ClassDef) and k.name == wanted), None)


def _kind_of_annotation(annotation: ast.expr | None) -> str:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return ANNOTATION.get(annotation.id, "") if isinstance(annotation, ast.Name) else ""


def _bind(scope: Scope, node: ast.AST, *, at_module: bool) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            for name in target_names(target):
                whole = isinstance(target, ast.Name)
                kind = kind_of(node.value, scope.kinds) if whole else _kind_of_part(target, name, node.value)
                _learn(scope, name, kind, 0 if at_module else node.lineno)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name):
        kind = _kind_of_annotation(node.annotation) if isinstance(node, ast.AnnAssign) else ""
        _learn(scope, node.target.id, kind, 0 if at_module else node.lineno)
    elif isinstance(node, ast.NamedExpr):
        _learn(scope, node.target.id, kind_of(node.value, scope.kinds), node.lineno)
    elif isinstance(node, ast.For):
        for name in target_names(node.target):
            _learn(scope, name, _kind_of_item(node, name, scope), node.lineno)
    elif isinstance(node, ast.withitem) and node.optional_vars:
        for name in target_names(node.optional_vars):
            _learn(scope, name, "", node.optional_vars.lineno)


def _kind_of_part(target: ast.expr, name: str, value: ast.expr) -> str:
    """Of a name among several that a text is cut into, or the numbers that are read of its parts."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else ()
    plain = any(isinstance(part, ast.Name) and part.id == name for part in parts)
    if not plain or not isinstance(value, ast.Call):
        return ""
    if _cuts(value):
        return "str"
    called, *given = (value.func, *value.args)
    reads = isinstance(called, ast.Name) and called.id == "map" and len(given) == 2 and _cuts(given[1])
    return RESULT_OF.get(given[0].id, "") if reads and isinstance(given[0], ast.Name) else ""


def _cuts(node: ast.expr) -> bool:
    """Whether it cuts a text into texts."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CUTTING


def _learn(scope: Scope, name: str, kind: str, line: int) -> None:
    if name not in ("TOOL", "__all__"):
        scope.kinds[name] = scope.kinds.get(name) or kind
        scope.first_line[name] = min(line, scope.first_line.get(name, line))


def _kind_of_item(loop: ast.For, name: str, scope: Scope) -> str:
    call = loop.iter
    if _cuts(call) and isinstance(loop.target, ast.Name):
        return "str"
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
        counted = call.func.id == "range"
        if call.func.id == "enumerate" and isinstance(loop.target, ast.Tuple):
            first = loop.target.elts[0]
            counted = isinstance(first, ast.Name) and first.id == name
        return "int" if counted else ""
    return "str" if kind_of(call, scope.kinds) == "str" else ""


# --- What failing calls were given: names of fields that a program may have to know, and what only tells tasks apart.


NAMES_MAX = 40
SIGNS_MAX = 6
_HEAD = 2_000  # bytes of a file in which names of fields are looked for
_LINES = 20
_SIGNS = "+-.'&/#%_*~!"
_NAME = re.compile(r"[A-Za-z_][\w .-]{0,38}")
_ATTRIBUTE = re.compile(r"\s([A-Za-z_][\w.-]{0,38})\s*=\s*[\"']")
_ASSIGNED = re.compile(r"\s*([A-Za-z_][\w.-]{0,38})\s*[=:]")


@dataclass(frozen=True, slots=True)
class GivenNames:
    """``fields``: names of columns and keys. ``identifying``: parameters that name an input file.

    What identifies an input is no ingredient: a repair that depends on it would know the task, not mend it.
    """

    fields: tuple[str, ...] = ()
    identifying: frozenset[str] = frozenset()
    signs: str = ""  # punctuation within what they were given


NOTHING_GIVEN = GivenNames()


def given_names(cases: Sequence[Case]) -> GivenNames:
    """From the arguments and the input files of the cases; values are not looked at, only what they are called."""
    found: dict[str, None] = {}
    for case in cases:
        for value in case.call.args.values():
            found.update(dict.fromkeys(_keys(value, 0)))
        for data in case.inputs.values():
            found.update(dict.fromkeys(_fields_of(data)))
    identifying = {
        name
        for case in cases
        for name, value in case.call.args.items()
        if isinstance(value, str) and value in case.inputs
    }
    return GivenNames(tuple(found)[:NAMES_MAX], frozenset(identifying), _signs(cases))


def _signs(cases: Sequence[Case]) -> str:
    texts = [value for case in cases for value in case.call.args.values() if isinstance(value, str)]
    texts += [data[:_HEAD].decode("utf-8", "ignore") for case in cases for data in case.inputs.values()]
    used = Counter(char for text in texts for char in text)
    # beyond ASCII there are too many to name: punctuation, symbols and blanks, the most frequent ones
    others = [
        char
        for char, _ in used.most_common()
        if not char.isascii() and unicodedata.category(char)[0] in "PSZ"
    ]
    return "".join(sorted(filter(_SIGNS.__contains__, used))) + "".join(others[:SIGNS_MAX])


def _keys(value: object, depth: int) -> Iterator[str]:
    if depth > 3:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if _NAME.fullmatch(str(key)):
                yield str(key)
            yield from _keys(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value[:3]:
            yield from _keys(inner, depth + 1)


def _fields_of(data: bytes) -> Iterator[str]:
    try:
        yield from _keys(json.loads(data), 0)
        return
    except ValueError:
        pass
    text = data[:_HEAD].decode("utf-8-sig", "replace")
    lines = text.splitlines()[:_LINES]
    if not lines:
        return
    if text.lstrip().startswith("<"):
        yield from _ATTRIBUTE.findall(text)
        return
    cells = [cell.strip().strip('"') for cell in re.split(r"[,;\t|]", lines[0])]
    if len(cells) > 1 and all(_NAME.fullmatch(cell) for cell in cells):
        yield from cells
    for line in lines:
        if match := _ASSIGNED.match(line):
            yield match.group(1)


# --- Names that a file makes and does not use: what somebody meant to use is often what is missing


_CONTRACT = frozenset({"TOOL", "Input", "Output"})


def idle_names(program: Program) -> frozenset[str]:
    """Constants of the module, variables, parameters and fields of ``Input`` that nothing reads."""
    read = {n.id for n in program.nodes(ast.Name) if isinstance(n.ctx, ast.Load)}
    read |= {n.attr for n in program.nodes(ast.Attribute)}
    made = frozenset(_made(program))
    return frozenset(name for name in made if name not in read and not name.startswith("_")) - _CONTRACT


def _made(program: Program) -> Iterator[str]:
    classes = [node for node in program.tree.body if isinstance(node, ast.ClassDef)]
    fields = [(klass, field) for klass in classes for field in _fields_read(klass)]
    of_classes = {field for _, field in fields}
    yield from (n.id for n in program.nodes(ast.Name) if isinstance(n.ctx, ast.Store) and n not in of_classes)
    yield from (argument.arg for argument in program.nodes(ast.arg))
    yield from (field.id for klass, field in fields if klass.name == "Input")


def _fields_read(klass: ast.ClassDef) -> Iterator[ast.Name]:
    for statement in klass.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target
