"""Syntax trees, made by one thread at a time.

CPython 3.11 counts the depth of a tree in a place that all threads share while it turns its own tree
into Python objects: two threads in ``ast.parse`` can end with "SystemError: AST constructor recursion
depth mismatch". The kernel parses from many threads, so all of it parses here.
"""

from __future__ import annotations

import ast
import operator
import re
import resource
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from string import Formatter
from typing import Any, TypeVar

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str) -> ast.Module:
    """As ``ast.parse``: raises SyntaxError, also for what is nested too deeply, or ValueError (a null byte).

    Warnings about doubtful escapes and comparisons are the author's business and are not shown.
    """
    tree: ast.Module = _parsed(source, "exec")
    return tree


@lru_cache(maxsize=64)  # the base's file is asked for with each edit of it, and each edit by several rules
def is_python(source: str) -> bool:
    """Whether the interpreter takes it; it would not import a module that it does not."""
    return tree_of(source) is not None


def tree_of(source: str | bytes) -> ast.Module | None:
    """The text, or UTF-8, parsed; None where it is not Python, or there is too little memory to read it."""
    try:
        return parse(source if isinstance(source, str) else source.decode("utf-8"))
    except (SyntaxError, ValueError, MemoryError):
        return None


def parse_expression(source: str) -> ast.expr:
    """As ``ast.parse(mode="eval")``: the expression itself; raises as ``parse``."""
    tree: ast.Expression = _parsed(source, "eval")
    return tree.body


def _parsed(source: str, mode: str) -> Any:
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, mode=mode)
    except (RecursionError, MemoryError) as error:
        # The parser's own stack, as the machine has memory left; not so where a process is held to little of it.
        if (
            isinstance(error, MemoryError)
            and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
        ):
            raise
        raise SyntaxError("it is nested too deeply") from None


# --- Which functions of a source were entered: their labels, and marks that note each entry ------
# The worker marks every source of a resource that it loads, in every run alike, so what was entered is known
# without tracing and nothing inside can tell a trial by it. The kernel finds the same labels in the text. A
# generator expression belongs to the function around it. Readable inside the sandbox: standard library only.


MARK = "__entered__"  # the name that marks call; no edit may name it, as any new name with two underscores
LABEL_MAX = 400

Definition = ast.FunctionDef | ast.AsyncFunctionDef
Function = Definition | ast.Lambda
N = TypeVar("N", bound=ast.AST)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Values of a tree's fields, and nodes, below which no function is.
_WITHOUT = {type(None), bool, str, int, ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue}
_WITHOUT |= {ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Load, ast.Store, ast.Del}
_WITHOUT |= {*ast.operator.__subclasses__(), *ast.cmpop.__subclasses__(), *ast.unaryop.__subclasses__()}
_WITHOUT |= {*ast.boolop.__subclasses__()}


def functions(tree: ast.Module, path: str) -> Iterator[tuple[Function, str]]:
    """Every function and lambda of the file with its label, ``path:line:qualified name``; the outer before the inner.

    Done for each source in each run, so what cannot hold a function is passed over, and nothing is called for a node.
    """
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            at = f"@{node.col_offset}" if isinstance(node, ast.Lambda) else ""
            yield node, f"{path}:{first_line(node)}:{around}{name}{at}"[:LABEL_MAX]
            around = f"{around}{name}."
        elif isinstance(node, ast.ClassDef):
            around = f"{around}{node.name}."
        own = vars(node)
        for field in reversed(node._fields):
            inside: Any = own.get(field)
            if isinstance(inside, list):
                waiting += [(each, around) for each in reversed(inside) if each.__class__ not in _WITHOUT]
            elif inside.__class__ not in _WITHOUT:
                waiting.append((inside, around))


def first_line(node: Function) -> int:
    """Where it begins: at its first decorator, as a code object says."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(item.lineno for item in decorators)])


def marked(tree: ast.Module, path: str) -> ast.Module:
    """The tree, changed: each function calls ``MARK`` with its label before it does anything."""
    for node, label in list(functions(tree, path)):
        body = node.body if isinstance(node, ast.Lambda) else node.body[0]
        call = _at(
            body, ast.Call(_at(body, ast.Name(MARK, ast.Load())), [_at(body, ast.Constant(label))], [])
        )
        if isinstance(node, ast.Lambda):
            node.body = _at(body, ast.BoolOp(ast.Or(), [call, node.body]))  # a mark gives None
        else:
            node.body.insert(1 if _is_text(node.body[0]) else 0, _at(body, ast.Expr(call)))
    return tree


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _at(place: ast.AST, node: N) -> N:
    return ast.copy_location(node, place)


# --- The values of constant expressions, without running anything, and at no cost whatever stands there ----------


UNKNOWN = object()
_LONGEST = 1_000  # characters of a text that is still put together
_HEAVIEST, _DEEPEST = 10_000, 50  # of a tuple or table: values in it, at any depth, and levels
_COMPARE = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}


def fold(node: ast.AST, names: Mapping[str, object]) -> object:
    """The value of the expression, UNKNOWN where it is no constant; ``names`` are those of constants that it may use."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    if isinstance(node, ast.List | ast.Tuple | ast.Dict):
        return _held(node, names)
    if isinstance(node, ast.JoinedStr | ast.FormattedValue):
        return _formatted(node, names)
    if isinstance(node, ast.BinOp):
        return _operated(node.op, fold(node.left, names), fold(node.right, names))
    if isinstance(node, ast.UnaryOp):
        return _negated(node.op, fold(node.operand, names))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node.ops[0], fold(node.left, names), fold(node.comparators[0], names))
    if isinstance(node, ast.Subscript):
        return _cut(node, names)
    if isinstance(node, ast.Call) and not node.keywords:
        return _called(node, names)
    return UNKNOWN


def _all(values: list[object]) -> object:
    return UNKNOWN if UNKNOWN in values else _light(tuple(values))


def _light(value: tuple[object, ...] | dict[object, object]) -> object:
    """UNKNOWN for what has too much in it, or too deep: each name may hold the one before it twice."""
    weight, depth, level = 0, 0, [value]
    while level:
        weight, depth = weight + sum(map(len, level)), depth + 1
        if weight > _HEAVIEST or depth > _DEEPEST:
            return UNKNOWN
        inside = [
            one for item in level for one in ((*item, *item.values()) if isinstance(item, dict) else item)
        ]
        level = [one for one in inside if isinstance(one, tuple | dict)]
    return value


def _formatted(node: ast.JoinedStr | ast.FormattedValue, names: Mapping[str, object]) -> object:
    if isinstance(node, ast.FormattedValue):
        value = fold(node.value, names)
        spec = fold(node.format_spec, names) if node.format_spec else ""
        if UNKNOWN in (value, spec):
            return UNKNOWN
        return _short(format(value, str(spec))) if _is_short(str(spec)) else UNKNOWN
    values = [fold(part, names) for part in node.values]
    return UNKNOWN if UNKNOWN in values else _short("".join(map(str, values)))


def _short(value: object) -> object:
    return UNKNOWN if isinstance(value, str | bytes) and len(value) > _LONGEST else value


def _held(node: ast.List | ast.Tuple | ast.Dict, names: Mapping[str, object]) -> object:
    if not isinstance(node, ast.Dict):
        return _all([fold(item, names) for item in node.elts])
    keys = [fold(key, names) if key else UNKNOWN for key in node.keys]
    values = [fold(value, names) for value in node.values]
    if UNKNOWN in keys or UNKNOWN in values:
        return UNKNOWN
    return _light(dict(zip(keys, values, strict=True)))


_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_LARGE = 1 << 128  # numbers beyond it are not reckoned with
_POWER = 64  # exponents, and digits to shift by


def _operated(sign: ast.operator, left: object, right: object) -> object:
    work = _ARITHMETIC.get(type(sign))
    if work is None or UNKNOWN in (left, right):
        return UNKNOWN
    if isinstance(left, str | bytes) and isinstance(sign, ast.Add | ast.Mod):
        told = right if isinstance(right, tuple) else (right,)
        plain = isinstance(sign, ast.Add) or (_is_short(str(left)) and all(_is_small(item) for item in told))
        return _short(work(left, right)) if plain else UNKNOWN
    if isinstance(left, str | bytes) and isinstance(sign, ast.Mult) and isinstance(right, int):
        return left * right if len(left) * right <= _LONGEST else UNKNOWN
    if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(sign, ast.Add):
        return _light(left + right)
    if not (_is_small(left) and _is_small(right)) or isinstance(left, str) or isinstance(right, str):
        return UNKNOWN
    steep = isinstance(sign, ast.Pow | ast.LShift | ast.RShift)
    return UNKNOWN if steep and abs(right) > _POWER else work(left, right)  # type: ignore[arg-type] # a number


def _is_small(value: object) -> bool:
    """Whether it can be worked with at no cost."""
    return isinstance(value, str) or (isinstance(value, int | float) and abs(value) < _LARGE)


def _is_short(spec: str) -> bool:
    """Whether a form makes no long text of a short one."""
    return not re.search(r"\d{4}|\*", spec)


def _negated(sign: ast.unaryop, value: object) -> object:
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(sign, ast.Not):
        return not value
    if not isinstance(value, int | float):
        return UNKNOWN
    if isinstance(sign, ast.Invert):
        return ~value if isinstance(value, int) else UNKNOWN
    return -value if isinstance(sign, ast.USub) else +value


def _compared(operator: ast.cmpop, left: object, right: object) -> object:
    if UNKNOWN in (left, right) or type(operator) not in _COMPARE:
        return UNKNOWN
    return _COMPARE[type(operator)](left, right)  # type: ignore[no-untyped-call] # any two constants


def _cut(node: ast.Subscript, names: Mapping[str, object]) -> object:
    value = fold(node.value, names)
    if isinstance(value, dict):
        return value.get(fold(node.slice, names), UNKNOWN)
    if not isinstance(value, str | bytes | tuple):
        return UNKNOWN
    if isinstance(node.slice, ast.Slice):
        ends = [
            fold(end, names) if end else None for end in (node.slice.lower, node.slice.upper, node.slice.step)
        ]
        whole = [end for end in ends if end is None or isinstance(end, int)]
        return value[slice(*whole)] if len(whole) == len(ends) else UNKNOWN
    index = fold(node.slice, names)
    return value[index] if isinstance(index, int) else UNKNOWN


def _rounded(number: float, places: int | None = None) -> object:
    """UNKNOWN for so many places that to round takes long."""
    return round(number, places) if places is None or abs(places) <= _POWER else UNKNOWN


# By name, what is made of constants at no cost.
_MADE: Mapping[str, Callable[..., object]] = {
    "chr": chr, "ord": ord, "str": str, "int": int, "float": float, "abs": abs, "round": _rounded, "len": len,
    "min": min, "max": max, "sum": sum, "hex": hex, "oct": oct, "bin": bin, "repr": repr, "tuple": tuple,
    "list": tuple, "dict": dict,
}  # fmt: skip
_OF_TEXT = frozenset({
    "lower", "upper", "strip", "lstrip", "rstrip", "casefold", "swapcase", "title", "capitalize", "replace",
    "removeprefix", "removesuffix",
})  # fmt: skip


def _called(node: ast.Call, names: Mapping[str, object]) -> object:
    """The few calls by which texts and numbers are put together."""
    args = [fold(argument, names) for argument in node.args]
    if UNKNOWN in args or not all(_is_plain(value) for value in args):
        return UNKNOWN
    if isinstance(node.func, ast.Name):
        made = _MADE.get(node.func.id)
        return _short(made(*args)) if made and node.func.id not in names else UNKNOWN
    if not isinstance(node.func, ast.Attribute):
        return UNKNOWN
    owner, name = fold(node.func.value, names), node.func.attr
    if isinstance(owner, dict) and name == "get" and args:
        return owner.get(*args[:2])
    if isinstance(owner, bytes) and name == "decode":
        return owner.decode()
    if not isinstance(owner, str):
        return UNKNOWN
    if name == "join" and len(args) == 1 and isinstance(args[0], tuple):
        return _short(owner.join(args[0]))
    if name == "format":
        return _short(owner.format(*args)) if _fills_little(owner, args) else UNKNOWN
    return _short(getattr(owner, name)(*args)) if name in _OF_TEXT else UNKNOWN


def _fills_little(form: str, args: list[object]) -> bool:
    """Whether ``format`` makes no long text of it: a width may be among what it puts in."""
    specs = [spec or "" for _, _, spec, _ in Formatter().parse(form)]
    nested = [spec for spec in specs if "{" in spec]
    if any(spec.count("{") > 1 for spec in nested) or not _is_short(form):
        return False
    return not nested or all(_is_short(str(value)) for value in args)


def _is_plain(value: object) -> bool:
    """Whether a call with it costs nothing."""
    if isinstance(value, tuple | dict):
        return len(value) <= _LONGEST
    return isinstance(value, bytes) or value is None or _is_small(value)
