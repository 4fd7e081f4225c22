"""Rules about what an edit does: which errors it hides, which hooks it takes out, what it newly reads of its surroundings."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agentos.evolver.guards.static import Construct, RuleHit
from agentos.evolver.guards.static.edit import FUNCTIONS, ParsedSource, leaving
from agentos.evolver.guards.static.rules_names import MODULES, words
from agentos.syntax import UNKNOWN

HOOKS = frozenset({"before_act", "after_observe", "on_finish"})
_BROAD = frozenset({"builtins.Exception", "builtins.BaseException"})
_EXITS = frozenset({"__exit__", "__aexit__"})
_PUSHES = frozenset({"push", "push_async_exit"})  # of an ExitStack
_TAKES_AWAY = frozenset({"clear", "remove", "pop", "__delitem__"})


# --- errors that are hidden, hooks that are taken out -------------------------------------------


def hidden(reading: ParsedSource) -> Iterator[Construct]:
    """Errors that are caught broadly or swallowed, and hooks that are taken out while it runs."""
    for node in reading.nodes:
        if isinstance(node, ast.ExceptHandler):
            yield from _handler(reading, node)
        elif isinstance(node, ast.Try | ast.TryStar):
            yield from _finally(reading, node)
        elif isinstance(node, FUNCTIONS) and node.name in _EXITS:
            yield from _leaves_quietly(reading, node)
        elif isinstance(node, ast.Call):
            yield from _suppressed(reading, node)
            yield from _taken_out(reading, node)
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.Name) and not isinstance(
            node.ctx, ast.Load
        ):
            yield from _overwritten(reading, node)


def _handler(reading: ParsedSource, node: ast.ExceptHandler) -> Iterator[Construct]:
    caught = ast.unparse(node.type) if node.type else "everything"
    if _is_broad(reading, node.type):
        yield _seen(reading, "except", node, f"catches {caught}", caught)
    if not _tells(node):
        key = f"{caught}: {ast.dump(ast.Module(node.body, []))}"
        yield _seen(reading, "swallow", node, f"goes on after {caught}", key)


def _is_broad(reading: ParsedSource, node: ast.expr | None) -> bool:
    if node is None:
        return True
    if isinstance(node, ast.Tuple):
        return any(_is_broad(reading, item) for item in node.elts)
    if not isinstance(node, ast.Name | ast.Attribute):
        return True  # put together: nobody can say what it catches
    paths = reading.dotted(node)
    return bool(paths & _BROAD) or any(path.endswith(".StepsUsedUp") for path in paths)


def _tells(node: ast.ExceptHandler) -> bool:
    """The handler raises or fails each time."""
    return not any(True for statement in node.body for _ in leaving(statement)) and _raises(node.body[-1])


def _raises(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return bool(node.orelse) and _raises(node.body[-1]) and _raises(node.orelse[-1])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        owner, _, name = ast.unparse(node.value.func).rpartition(".")
        return name == "fail" and "sdk" in owner.lower()
    return isinstance(node, ast.Raise)


def _finally(reading: ParsedSource, node: ast.Try | ast.TryStar) -> Iterator[Construct]:
    for statement in node.finalbody:
        for inner in leaving(statement):
            why = "leaves a finally clause, which drops the error"
            yield _seen(reading, "except", inner, why, ast.dump(inner))


def _leaves_quietly(
    reading: ParsedSource, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Construct]:
    """A context manager whose end says that the error is dealt with."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Return) and inner.value and reading.truth(inner.value) is not False:
            yield _seen(reading, "swallow", inner, f"{node.name} ends an error", ast.dump(node))


def widened(before: Sequence[ParsedSource], after: Sequence[ParsedSource]) -> Iterator[RuleHit]:
    """Statements that stood where their errors went on, and now stand where a handler ends them."""
    (free, held), (free_now, held_now) = _held(before), _held(after)
    for text, found in held_now.items():
        moved = min(
            len(found) - len(held.get(text, ())), len(free.get(text, ())) - len(free_now.get(text, ()))
        )
        yield from found[len(found) - moved :] if moved > 0 else ()


def _held(readings: Sequence[ParsedSource]) -> tuple[dict[str, list[RuleHit]], dict[str, list[RuleHit]]]:
    """Simple statements that may fail, by their text: those whose errors go on, and those where a handler ends some."""
    free: dict[str, list[RuleHit]] = {}
    held: dict[str, list[RuleHit]] = {}
    for reading in readings:
        for node in reading.nodes:
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and _may_fail(node):
                caught = [*_caught(reading, node)]
                why = f"goes on after {', '.join(caught)}, which it did not before"
                hit = RuleHit("swallow", reading.path, node.lineno, why)
                (held if caught else free).setdefault(ast.dump(node), []).append(hit)
    return free, held


def _may_fail(node: ast.stmt) -> bool:
    return any(isinstance(part, ast.Call | ast.Subscript | ast.BinOp | ast.Raise) for part in ast.walk(node))


def _caught(reading: ParsedSource, node: ast.AST) -> Iterator[str]:
    """What handlers around a node, within its function, end without raising."""
    while (above := reading.parents.get(node)) is not None and not isinstance(node, FUNCTIONS):
        if isinstance(above, ast.Try | ast.TryStar) and node in above.body:
            quiet = [handler for handler in above.handlers if not _tells(handler)]
            yield from (ast.unparse(handler.type) if handler.type else "everything" for handler in quiet)
        for item in above.items if isinstance(above, ast.With | ast.AsyncWith) and node in above.body else ():
            call = item.context_expr
            if isinstance(call, ast.Call) and "contextlib.suppress" in reading.dotted(call.func):
                yield from map(ast.unparse, call.args)
        node = above


def _suppressed(reading: ParsedSource, node: ast.Call) -> Iterator[Construct]:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _PUSHES and "ExitStack" in reading.source:
        yield _seen(reading, "swallow", node, "what is pushed may end an error", ast.dump(node))
    if "contextlib.suppress" in reading.dotted(node.func):
        for argument in node.args:
            caught = ast.unparse(argument)
            if _is_broad(reading, argument):
                yield _seen(reading, "except", node, f"catches {caught}", f"suppress {caught}")
            else:
                yield _seen(reading, "swallow", node, f"goes on after {caught}", f"suppress {caught}")


def _taken_out(reading: ParsedSource, node: ast.Call) -> Iterator[Construct]:
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _TAKES_AWAY and (name := _hook(func.value)):
        yield _seen(reading, "hooks", node, f"takes hooks out of {name}", ast.dump(node))


def _overwritten(
    reading: ParsedSource, node: ast.Attribute | ast.Subscript | ast.Name
) -> Iterator[Construct]:
    above = reading.parents.get(node)
    defined = isinstance(above, ast.Assign | ast.AnnAssign | ast.AugAssign) and isinstance(node, ast.Name)
    if not defined and (name := _hook(node)):
        yield _seen(reading, "hooks", node, f"overwrites {name}", ast.dump(node))


def _hook(node: ast.AST) -> str:
    """The hook list that an expression is, or is a part of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name if name in HOOKS else ""


def _seen(reading: ParsedSource, rule: str, node: ast.AST, why: str, key: str) -> Construct:
    return Construct(RuleHit(rule, reading.path, getattr(node, "lineno", 0), why), key)


# --- What lets code tell a trial from a live run: the clock, file times, the machine, folders above its own
# A sandbox hides why it runs as far as that can be hidden (docs/understand/security.md). What is left is looked at here: an
# edit that newly reads it may be honest, so it is not refused, and a person is asked.


_CLOCK, _FILES, _MACHINE, _PLACE = "the clock", "times of files", "the machine", "folders above its workspace"
_ZONE = "the zone of the machine"  # a sandbox is in UTC
_LOCAL = {"astimezone": 1, "fromtimestamp": 2}  # with fewer arguments a moment is told in that zone
_EARLIER = "what calls before it left"  # a trial often calls a tool once
_CHANCE = "chance"  # what is wrong one time in thirty passes most trials

_LISTS = tomllib.loads(Path(__file__).with_name("tells.toml").read_text())
# Name in a module -> what it shows.
_TELLING: Mapping[str, str] = {
    ".".join(filter(None, (table.get("of"), name))): table["shows"]
    for table in _LISTS["names"]
    for name in words(table["names"])
}
# Module that is handed on as a value -> what may be read of it then, by a name that says nothing on other objects.
_HANDED: Mapping[str, str] = {
    owner: shown
    for owner, shown in ((path.rpartition(".")[0], shown) for path, shown in reversed([*_TELLING.items()]))
    if owner in {*sys.stdlib_module_names, "os.path", "email.utils"} - {"os", "sys"}
}
# Attributes of whatever object; methods of whatever object, where they are called; and those that draw, where the
# file has to do with chance.
_TELLING_ATTRIBUTES, _CALLED, _DRAWN = (
    {name: what for what, names in _LISTS[table].items() for name in words(names)}
    for table in ("attributes", "called", "drawn")
)
# Calls that read the clock where they are not given what is named here: so many arguments, or one by this name.
_UNLESS: Mapping[str, list[str]] = {path: words(given) for path, given in _LISTS["unless"].items()}
# Modules that work on what they are given. Any other of the standard library may show what nobody has thought of.
_PLAIN = frozenset(words(_LISTS["plain"]["modules"]))
_STATS = frozenset({"stat", "lstat", "fstat"})
_OS_STATS = tuple(f"os.{name}" for name in sorted(_STATS))
_HARMLESS_STATS = frozenset({"st_size", "st_mode", "st_nlink"})
_UP = frozenset({"parent", "parents"})
_WORDS = re.compile(
    r"(^|[/\\])\.\.([/\\]|$)|^~(?!~)|^/?(proc|cgroup|mountinfo|loadavg|uptime|\.dockerenv|cpuinfo|meminfo)$"
)
_NO_PACKAGE = ("", "builtins", "agentos")
_BY_NAME = frozenset({"builtins.getattr", "operator.attrgetter", "operator.methodcaller"})
_PACKS = frozenset({"gzip.open", "gzip.GzipFile", "zipfile.ZipFile", "tarfile.open", "tarfile.TarFile"})
_SQL_CLOCK = re.compile(
    r"\bcurrent_(?:time|date|timestamp)\b|\b(?:julianday|unixepoch)\s*\(|'now'|\battach\s+(?:database|['\"])",
    re.IGNORECASE,
)
# Only in a text that asks a database: elsewhere the same words are prose, or say how something is called. The first
# is looked for by itself, since one pattern for both takes quadratic time.
_SQL = re.compile(r"\b(?:select|insert|update|delete|values|order\s+by|where|having)\b", re.IGNORECASE)
_SQL_CALLS = {
    _CLOCK: re.compile(
        r"\b(?:now|today|date|time|datetime|getdate|getutcdate|sysdatetime|clock_timestamp|timeofday)\s*\(\s*\)"
        r"|\b(?:sysdate|localtimestamp)\b|\bstrftime\s*\(\s*'[^']*'\s*\)",
        re.IGNORECASE,
    ),
    _CHANCE: re.compile(
        r"\b(?:random|rand|newid|uuid|gen_random_uuid)\s*\(\s*\)|\b(?:randomblob|uniform)\s*\(|\btablesample\b",
        re.IGNORECASE,
    ),
}
_TEMPLATE_CHANCE = re.compile(r"\{[{%][^{}]*\|\s*random\b")
_NOW = re.compile(r"\s*(?:now|today)\s*", re.IGNORECASE)
# How packages call chance, whoever made them: numpy.random, torch.randn, networkx.gnp_random_graph.
_RANDOM = re.compile(r"(?:^|[._])(?:rand|shuffle)", re.IGNORECASE)
_ABOUT_CHANCE = re.compile(r"rand|rng|secrets", re.IGNORECASE)


def tells(reading: ParsedSource) -> Iterator[Construct]:
    """References to what tells, called or handed on; under aliases, by a text, or in a pattern."""
    leaves = any(_is_absolute(reading, node) for node in reading.nodes)
    methods = {**_CALLED, **(_DRAWN if _ABOUT_CHANCE.search(reading.source) else {})}
    for node in reading.nodes:
        seen = (*_shown(reading, node, leaves=leaves), *_by_call(reading, node, methods))
        for what in (*seen, *([_EARLIER] if _leaves_behind(reading, node) else ())):
            finding = RuleHit("tell", reading.path, getattr(node, "lineno", 0), f"newly reads {what}")
            yield Construct(finding, (what, _context(reading, node)))


def _shown(reading: ParsedSource, node: ast.AST, *, leaves: bool) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield from _brought_in(node)
    elif isinstance(node, ast.Import):
        yield from _unknown(alias.name for alias in node.names)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(reading, node, leaves=leaves)
    elif isinstance(node, ast.Name):
        yield from _name(reading, node)
    elif isinstance(node, ast.Call):
        yield from _by_text(reading, node)
        yield from _packed(reading, node)
    elif isinstance(node, ast.MatchClass):
        yield from filter(None, (_TELLING_ATTRIBUTES.get(name) for name in node.kwd_attrs))
    if isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr | ast.Call | ast.Subscript):
        yield from _text(reading, node)


def _brought_in(node: ast.ImportFrom) -> Iterator[str]:
    module, names = node.module or "", [alias.name for alias in node.names]
    yield from filter(None, (_of(f"{module}.{name}") for name in names))
    yield from _unknown([module])
    if module in sys.stdlib_module_names:
        yield from _unknown(names)
    elif _is_foreign(module):  # from dateutil.utils import today
        yield from filter(None, map(_TELLING_ATTRIBUTES.get, names))


def _name(reading: ParsedSource, node: ast.Name) -> Iterator[str]:
    if not isinstance(reading.parents.get(node), ast.Attribute):
        paths = reading.dotted(node)
        yield from sorted({what for path in paths if (what := _of(path))})
        if any(path in paths for path in _OS_STATS) and not _looks_at_size(reading, node):
            yield _FILES  # from os import stat
    if node.id == "__file__":
        yield _PLACE
    elif node.id == "id" and isinstance(node.ctx, ast.Load) and _is_builtin(reading, node):
        yield _MACHINE  # where something lies in memory


def _is_builtin(reading: ParsedSource, node: ast.Name) -> bool:
    """Whether it is Python's own: a field or a variable may have its name, and is not called."""
    above = reading.parents.get(node)
    called = isinstance(above, ast.Call) and above.func is node
    return called or not (node.id in reading.loose or node.id in reading.values)


def _by_call(reading: ParsedSource, node: ast.AST, methods: Mapping[str, str]) -> Iterator[str]:
    """What is shown by a method of whatever object, by a text that means now, or by what a call is not given."""
    if isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in methods:
            owner = func.value.id if isinstance(func.value, ast.Name) else ""
            yield from [methods[func.attr]] if owner not in ("self", "cls") else ()
        if isinstance(func, ast.Attribute) and len([*node.args, *node.keywords]) < _LOCAL.get(func.attr, 0):
            yield _ZONE
        if any(map(_is_foreign, reading.dotted(func))) and _says_now(reading, node):
            yield _CLOCK
    elif isinstance(node, ast.Name | ast.Attribute):
        above = reading.parents.get(node)
        if isinstance(node.ctx, ast.Load) and not isinstance(above, ast.Attribute):
            paths = reading.dotted(node)
            if all(path in _HANDED or _is_plain_module(path) for path in paths):
                yield from sorted({_HANDED[path] for path in paths if path in _HANDED})
        call = above if isinstance(above, ast.Call) and above.func is node else None
        wanted = [_UNLESS[path] for path in reading.dotted(node) if path in _UNLESS]
        if any(call is None or not _is_given(call, given) for given in wanted):
            yield _CLOCK


def _is_plain_module(path: str) -> bool:
    """Through which another module may be meant: a class and a helper of one's own may have the name of one."""
    return path.split(".")[0] in sys.stdlib_module_names and path != "datetime.time"


def _says_now(reading: ParsedSource, call: ast.Call) -> bool:
    """``to_datetime("now")``, also in a list."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    inner = [
        part for item in given for part in (item.elts if isinstance(item, ast.List | ast.Tuple) else [item])
    ]
    return any(isinstance(text := reading.fold(item), str) and _NOW.fullmatch(text) for item in inner)


_CHANGING = frozenset(words(_LISTS["changing"]["methods"]))
# Functions that change their first argument.
_CHANGERS = frozenset(f"{of}.{name}" for of, names in _LISTS["changers"].items() for name in words(names))


def _leaves_behind(reading: ParsedSource, node: ast.AST) -> bool:
    """Whether a function changes what outlasts its call: what a module keeps, or a default of its own."""
    if isinstance(node, ast.Global):
        return True
    if isinstance(node, ast.Nonlocal):
        inner = reading.around(node)
        return inner is not None and reading.lives_on(reading.around(inner))
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        above = reading.parents.get(node)
        drawn = isinstance(above, ast.Call) and bool(reading.dotted(above.func) & _CHANGERS)  # told there
        return (reading.runs_out(node) and not drawn) or _is_handed_on(reading, node)
    if isinstance(node, ast.Call):
        return any(reading.is_kept(changed) for changed in _changed(reading, node))
    if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
        return False
    own = isinstance(node, ast.Attribute) and reading.is_kept(node)
    # csv.excel.delimiter, a table of a helper
    return own or reading.is_kept(node.value) or bool(reading.dotted(node.value))


def _changed(reading: ParsedSource, call: ast.Call) -> Iterator[ast.expr]:
    """What a call may change: what its method is of, its first argument, or the file that it prints to."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _CHANGING:
        is_type = isinstance(func.value, ast.Name) and func.value.id in ("list", "dict", "set")
        yield from call.args[:1] if is_type else [func.value]
    elif reading.dotted(func) & _CHANGERS:
        yield from call.args[:1]
    elif "builtins.print" in reading.dotted(func):
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "file")


def _is_handed_on(reading: ParsedSource, node: ast.Name) -> bool:
    """``SEEN.append`` as a value."""
    above = reading.parents.get(node)
    called = reading.parents.get(above) if above is not None else None
    changes = isinstance(above, ast.Attribute) and above.attr in _CHANGING
    return changes and not (isinstance(called, ast.Call) and called.func is above) and reading.outlasts(node)


def _is_given(call: ast.Call, wanted: Sequence[str]) -> bool:
    names = {keyword.arg for keyword in call.keywords}
    return any(len(call.args) >= int(word) if word.isdigit() else word in names for word in wanted)


def _is_foreign(path: str) -> bool:
    """Whether it leads into a package, and not into Python's library or a file beside this one that begins with _."""
    root = path.split(".")[0]
    return not (root.startswith("_") or root in sys.stdlib_module_names or root in _NO_PACKAGE)


def _unknown(modules: Iterable[str]) -> Iterator[str]:
    """What is imported of the standard library, and is not known to be plain."""
    for root in dict.fromkeys(module.split(".")[0] for module in modules):
        if root in sys.stdlib_module_names and root not in _PLAIN and root not in MODULES:
            yield f"what the module {root} shows"


def _of(path: str) -> str:
    """What a dotted path shows: it, or something that it lies below."""
    parts = path.split(".")
    starts = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    chance = _CHANCE if _is_foreign(path) and _RANDOM.search(path) else ""
    return next((_TELLING[start] for start in starts if start in _TELLING), chance)


def _attribute(reading: ParsedSource, node: ast.Attribute, *, leaves: bool) -> Iterator[str]:
    paths = reading.dotted(node)
    if node.attr in paths:  # a module, through another one
        yield from _unknown([node.attr])
    found = {what for path in paths if (what := _of(path))}
    if found:
        yield from sorted(found)
    elif reading.is_input(node):
        return
    elif node.attr in _TELLING_ATTRIBUTES:
        yield _TELLING_ATTRIBUTES[node.attr]
    elif node.attr in _STATS and not _looks_at_size(reading, node):
        yield _FILES
    elif node.attr in _UP and leaves:
        yield _PLACE


def _looks_at_size(reading: ParsedSource, node: ast.expr) -> bool:
    """``path.stat().st_size`` and the like show nothing."""
    call = reading.parents.get(node)
    above = reading.parents.get(call) if isinstance(call, ast.Call) else None
    return isinstance(above, ast.Attribute) and above.attr in _HARMLESS_STATS


def _is_absolute(reading: ParsedSource, node: ast.AST) -> bool:
    """Whether this gives a path from the root, of which ``parent`` is a folder above; a relative one has none."""
    if isinstance(node, ast.Attribute):
        return _TELLING_ATTRIBUTES.get(node.attr) == _PLACE or any(
            _of(p) == _PLACE for p in reading.dotted(node)
        )
    return isinstance(node, ast.Name) and (
        node.id == "__file__" or any(_of(path) == _PLACE for path in reading.dotted(node))
    )


def _by_text(reading: ParsedSource, node: ast.Call) -> Iterator[str]:
    """``getattr(os, "getcwd")`` and its like."""
    if not reading.dotted(node.func) & _BY_NAME:
        return
    owners = reading.dotted(node.args[0]) if node.args else set()
    for argument in node.args:
        text = reading.fold(argument)
        if isinstance(text, str):
            yield from filter(None, (_of(f"{owner}.{text}") for owner in owners if _is_foreign(owner)))
        for name in text.split(".") if isinstance(text, str) else ():
            what = _TELLING_ATTRIBUTES.get(name) or next(
                (shown for path, shown in _TELLING.items() if path.endswith(f".{name}")), ""
            )
            if what or name in _UP | _STATS:
                yield what or _PLACE


def _packed(reading: ParsedSource, node: ast.Call) -> Iterator[str]:
    """An archive that is written: in it stands when that was, and when its files were made."""
    if not reading.dotted(node.func) & _PACKS:
        return
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    mode = node.args[1] if len(node.args) > 1 else named.get("mode")
    told = "r" if mode is None and None not in named else reading.fold(mode) if mode is not None else UNKNOWN
    if not (isinstance(told, str) and told.startswith("r")):
        yield _CLOCK


def _text(reading: ParsedSource, node: ast.AST) -> Iterator[str]:
    text = reading.fold(node)
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    if text is UNKNOWN and isinstance(node, ast.JoinedStr):  # a query with values in it
        yield from _asked_for("?".join(str(p.value) for p in node.values if isinstance(p, ast.Constant)))
    if not isinstance(text, str):
        return
    if not isinstance(reading.parents.get(node), ast.Expr):
        yield from _asked_for(text)
    if not _WORDS.search(text):
        return
    above = reading.parents.get(node)
    if isinstance(above, ast.Expr) or (above is not None and isinstance(reading.fold(above), str | bytes)):
        return  # it stands alone, or is told by the whole text
    yield _MACHINE if ".." not in text and "~" not in text else _PLACE


def _asked_for(text: str) -> Iterator[str]:
    """What a query or a template asks for in its own words."""
    if _SQL_CLOCK.search(text):
        yield _CLOCK
    if _SQL.search(text):
        yield from (what for what, calls in _SQL_CALLS.items() if calls.search(text))
    if _TEMPLATE_CHANCE.search(text):
        yield _CHANCE


def _context(reading: ParsedSource, node: ast.AST) -> str:
    """What is done with it: the call that it is part of."""
    above = reading.parents.get(node)
    while isinstance(above, ast.Attribute):
        node, above = above, reading.parents.get(above)
    return ast.dump(above if isinstance(above, ast.Call) else node)
