"""What lets code tell a trial from a live run: the clock, file times, the machine, folders above its own.

A sandbox hides why it runs as far as that can be hidden (docs/understand/security.md). What is left is looked at here: an
edit that newly reads it may be honest, so it is not refused, and a person is asked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentos.evolver.guards.static.static_eval import FileNames
from agentos.evolver.screen_rules import Construct, RuleHit

_CLOCK, _FILES, _MACHINE, _PLACE = "the clock", "times of files", "the machine", "folders above its workspace"

# Name in a module -> what it shows.
_NAMES = {
    **dict.fromkeys(
        [
            f"time.{name}"
            for name in [
                "time",
                "time_ns",
                "monotonic",
                "monotonic_ns",
                "perf_counter",
                "perf_counter_ns",
                "process_time",
                "process_time_ns",
                "thread_time",
                "thread_time_ns",
                "clock_gettime",
                "clock_gettime_ns",
                "localtime",
                "gmtime",
                "ctime",
                "asctime",
                "strftime",
                "get_clock_info",
            ]
        ],
        _CLOCK,
    ),
    **dict.fromkeys(["uuid.uuid1", "uuid.uuid6", "uuid.uuid7", "os.times", "email.utils.localtime"], _CLOCK),
    **dict.fromkeys(["email.utils.formatdate", "logging.LogRecord", "logging.makeLogRecord"], _CLOCK),
    **dict.fromkeys([f"os.path.{name}" for name in ("getmtime", "getctime", "getatime")], _FILES),
    **dict.fromkeys(
        [
            f"os.{name}"
            for name in [
                "getloadavg",
                "cpu_count",
                "process_cpu_count",
                "uname",
                "getpid",
                "getppid",
                "getpgid",
                "getpgrp",
                "getsid",
                "getuid",
                "geteuid",
                "getgid",
                "sched_getaffinity",
                "statvfs",
                "fstatvfs",
                "sysconf",
                "confstr",
                "getrandom",
                "urandom",
            ]
            if name not in ("urandom", "getrandom")
        ],
        _MACHINE,
    ),
    **dict.fromkeys(["platform", "uuid.getnode", "shutil.disk_usage", "sys.argv", "sys.orig_argv"], _MACHINE),
    **dict.fromkeys(["threading.get_native_id", "sys.executable", "sys.prefix", "sys.base_prefix"], _MACHINE),
    **dict.fromkeys(
        [f"os.{name}" for name in ("getcwd", "getcwdb", "pardir", "fwalk", "path.pardir", "path.ismount")],
        _PLACE,
    ),
    **dict.fromkeys(
        [f"os.path.{name}" for name in ("abspath", "realpath", "expanduser", "expandvars")], _PLACE
    ),
    **dict.fromkeys(["tempfile.gettempdir", "tempfile.tempdir", "tempfile.gettempdirb"], _PLACE),
}
# Attributes of whatever object.
_ATTRIBUTES = {
    **dict.fromkeys(["now", "utcnow", "today"], _CLOCK),
    **dict.fromkeys(
        [
            f"st_{name}"
            for name in [
                "mtime",
                "ctime",
                "atime",
                "birthtime",
                "mtime_ns",
                "ctime_ns",
                "atime_ns",
                "birthtime_ns",
                "ino",
                "dev",
            ]
        ],
        _FILES,
    ),
    **dict.fromkeys(["cwd", "absolute", "resolve", "home", "expanduser", "anchor", "is_mount"], _PLACE),
    **dict.fromkeys(["getcwd", "abspath", "realpath", "pardir", "gettempdir"], _PLACE),
    **dict.fromkeys(["monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns"], _CLOCK),
    **dict.fromkeys(["getmtime", "getctime", "getatime"], _FILES),
    **dict.fromkeys(["getloadavg", "cpu_count", "getpid", "getppid"], _MACHINE),
}
_STATS = frozenset({"stat", "lstat", "fstat"})
_HARMLESS_STATS = frozenset({"st_size", "st_mode", "st_nlink"})
_UP = frozenset({"parent", "parents"})
_WORDS = re.compile(
    r"(^|[/\\])\.\.([/\\]|$)|^~|^/?(proc|cgroup|mountinfo|loadavg|uptime|\.dockerenv|cpuinfo|meminfo)$"
)
_BY_NAME = frozenset({"builtins.getattr", "operator.attrgetter", "operator.methodcaller"})


def tells(reading: FileNames) -> Iterator[Construct]:
    """References to what tells, called or handed on; under aliases, by a text, or in a pattern."""
    leaves = any(_leaves(reading, node) for node in ast.walk(reading.tree))
    for node in ast.walk(reading.tree):
        for what in _shown(reading, node, leaves=leaves):
            finding = RuleHit("tell", reading.path, getattr(node, "lineno", 0), f"newly reads {what}")
            yield Construct(finding, (what, _context(reading, node)))


def _shown(reading: FileNames, node: ast.AST, *, leaves: bool) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield from filter(None, (_of(f"{node.module or ''}.{alias.name}") for alias in node.names))
    elif isinstance(node, ast.Attribute):
        yield from _attribute(reading, node, leaves=leaves)
    elif isinstance(node, ast.Name):
        if not isinstance(reading.parents.get(node), ast.Attribute):
            yield from sorted({what for path in reading.dotted(node) if (what := _of(path))})
        if node.id == "__file__":
            yield _PLACE
    elif isinstance(node, ast.Call):
        yield from _by_text(reading, node)
    elif isinstance(node, ast.MatchClass):
        yield from filter(None, (_ATTRIBUTES.get(name) for name in node.kwd_attrs))
    if isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr | ast.Call | ast.Subscript):
        yield from _text(reading, node)


def _of(path: str) -> str:
    """What a dotted path shows: it, or something that it lies below."""
    parts = path.split(".")
    starts = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_NAMES[start] for start in starts if start in _NAMES), "")


def _attribute(reading: FileNames, node: ast.Attribute, *, leaves: bool) -> Iterator[str]:
    found = {what for path in reading.dotted(node) if (what := _of(path))}
    if found:
        yield from sorted(found)
    elif node.attr in _ATTRIBUTES:
        yield _ATTRIBUTES[node.attr]
    elif node.attr in _STATS and not _looks_at_size(reading, node):
        yield _FILES
    elif node.attr in _UP and leaves:
        yield _PLACE


def _looks_at_size(reading: FileNames, node: ast.Attribute) -> bool:
    """``path.stat().st_size`` and the like show nothing."""
    call = reading.parents.get(node)
    above = reading.parents.get(call) if isinstance(call, ast.Call) else None
    return isinstance(above, ast.Attribute) and above.attr in _HARMLESS_STATS


def _leaves(reading: FileNames, node: ast.AST) -> bool:
    """Whether this gives a path from the root, of which ``parent`` is a folder above; a relative one has none."""
    if isinstance(node, ast.Attribute):
        return _ATTRIBUTES.get(node.attr) == _PLACE or any(_of(p) == _PLACE for p in reading.dotted(node))
    return isinstance(node, ast.Name) and (
        node.id == "__file__" or any(_of(path) == _PLACE for path in reading.dotted(node))
    )


def _by_text(reading: FileNames, node: ast.Call) -> Iterator[str]:
    """``getattr(os, "getcwd")`` and its like."""
    if not reading.dotted(node.func) & _BY_NAME:
        return
    for argument in node.args:
        text = reading.fold(argument)
        for name in text.split(".") if isinstance(text, str) else ():
            what = _ATTRIBUTES.get(name) or next(
                (shown for path, shown in _NAMES.items() if path.endswith(f".{name}")), ""
            )
            if what or name in _UP | _STATS:
                yield what or _PLACE


def _text(reading: FileNames, node: ast.AST) -> Iterator[str]:
    text = reading.fold(node)
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    if not isinstance(text, str) or not _WORDS.search(text):
        return
    above = reading.parents.get(node)
    if isinstance(above, ast.Expr) or (above is not None and isinstance(reading.fold(above), str | bytes)):
        return  # it stands alone, or is told by the whole text
    yield _MACHINE if ".." not in text and "~" not in text else _PLACE


def _context(reading: FileNames, node: ast.AST) -> str:
    """What is done with it: the call that it is part of."""
    above = reading.parents.get(node)
    while isinstance(above, ast.Attribute):
        node, above = above, reading.parents.get(above)
    return ast.dump(above if isinstance(above, ast.Call) else node)
