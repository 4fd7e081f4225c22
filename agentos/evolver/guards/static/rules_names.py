"""Rules about names: imports, and whatever leads out of the program or around the sdk.

A reference counts, not only a call: ``map(os.system, xs)``, a decorator, a default value. The module
``os`` handed on as a value counts too, because nobody can say what becomes of it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping

from agentos.evolver.guards.static import Construct, RuleHit
from agentos.evolver.guards.static.edit import ParsedSource
from agentos.syntax import UNKNOWN

# --- The names that a source edit must not begin to use, by rule ---------------------------------
# ``sdk`` names are those of ``agentos/worker/sdk.py``, which the kernel does not import; a test holds the two
# together.


SDK = "agentos.worker.sdk"


def words(text: str) -> list[str]:
    return text.split()


# Module, or name in a module -> rule. Everything below a name is meant too.
MODULES: Mapping[str, str] = {
    name: rule
    for rule, names in {
        "dynamic": "_ctypes _imp _pickle _posixsubprocess bdb builtins cProfile cffi code codeop copyreg ctypes dill doctest "
        "faulthandler gc imp importlib inspect logging.config marshal pdb pickle pickletools pkgutil profile runpy shelve "
        "site symtable sysconfig timeit trace tracemalloc zipimport "
        # they import, run or compile what a text names
        "_tkinter antigravity compileall distutils ensurepip idlelib lib2to3 modulefinder py_compile pyclbr pydoc "
        "pydantic.deprecated pydantic.v1 test tkinter turtle turtledemo unittest venv zipapp",
        "process": "_thread atexit concurrent.futures.ProcessPoolExecutor concurrent.futures.process fcntl "
        "multiprocessing nt posix pty resource signal subprocess syslog termios",
        "network": "_socket _ssl aiohttp asyncio asyncore ftplib http httpx imaplib nntplib poplib requests select "
        "selectors smtplib socket socketserver ssl telnetlib urllib.error urllib.request urllib.response "
        "urllib.robotparser urllib3 webbrowser wsgiref xmlrpc",
        "inside": "getpass grp mmap pwd",
    }.items()
    for name in names.split()
}

_OS = {
    "process": "system popen fork forkpty execl execle execlp execlpe execv execve execvp execvpe posix_spawn "
    "posix_spawnp spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe kill killpg abort _exit nice "
    "pidfd_open register_at_fork setuid setgid setsid setpgid wait waitpid wait3 wait4 waitid ptrace unshare",
    "inside": "environ environb getenv getenvb putenv unsetenv dup dup2 fdopen pipe pipe2 read write pread pwrite "
    "readv writev sendfile splice open close closerange memfd_create eventfd chroot fchdir mkfifo mknod "
    "symlink link ctermid openpty getlogin initgroups",
}
NAMES: Mapping[str, str] = {
    **{f"os.{name}": rule for rule, names in _OS.items() for name in words(names)},
    **dict.fromkeys(
        [
            f"sys.{name}"
            for name in words(
                "modules _getframe _current_frames setprofile settrace meta_path path path_hooks "
                "path_importer_cache addaudithook excepthook breakpointhook displayhook __stdout__ __stderr__ "
                "__stdin__ setrecursionlimit"
            )
        ],
        "dynamic",
    ),
    **dict.fromkeys(
        [
            f"builtins.{name}"
            for name in words(
                "eval exec compile __import__ globals locals vars breakpoint setattr delattr "
                "__builtins__ __loader__ __spec__ __build_class__"
            )
        ],
        "dynamic",
    ),
    **dict.fromkeys(["builtins.exit", "builtins.quit", "sys.exit", "builtins.SystemExit"], "process"),
    "builtins.getattr": "",  # looked at by its name argument
    # they wait for functions of the program; the loop that runs them reaches further, see ``ATTRIBUTES``
    **dict.fromkeys(
        [
            f"asyncio.{name}"
            for name in words("CancelledError Lock Semaphore TaskGroup create_task gather run sleep")
        ],
        "",
    ),
    # they make code of texts
    **dict.fromkeys(
        words(
            "typing.get_type_hints typing.ForwardRef pydantic.create_model pydantic.TypeAdapter "
            "dataclasses.make_dataclass string.Formatter pydantic.ImportString pydantic.types.ImportString "
            "pydantic.validate_call"
        ),
        "dynamic",
    ),
    "types.CodeType": "dynamic",
    "types.FunctionType": "dynamic",
    "types.ModuleType": "dynamic",
    "threading.settrace": "dynamic",
    "threading.setprofile": "dynamic",
    "logging.disable": "record",
    "warnings.filterwarnings": "record",
    "warnings.simplefilter": "record",
    "warnings.catch_warnings": "record",
}

# Attributes that are looked for on whatever they stand, because no other good thing is called so.
ATTRIBUTES: Mapping[str, str] = {
    **dict.fromkeys(
        words("system popen fork forkpty execv execve execvp execvpe execl posix_spawn spawnv spawnl killpg"),
        "process",
    ),
    **dict.fromkeys(words("subprocess_exec subprocess_shell"), "process"),
    **dict.fromkeys(words("get_loop create_connection create_server create_unix_connection"), "network"),
    **dict.fromkeys(words("environ environb getenv getenvb fdopen"), "inside"),
    **dict.fromkeys(words("os sys subprocess builtins importlib socket ctypes posix"), "reflection"),
    **dict.fromkeys(
        words(
            "gi_frame cr_frame ag_frame f_back f_globals f_locals f_builtins f_code tb_frame gi_code cr_code "
            "func_globals mro"
        ),
        "reflection",
    ),
    **dict.fromkeys(words("eval exec CodeType FunctionType ImportString parse_file parse_raw"), "dynamic"),
    "setLevel": "record",
}

# Special attributes that good code reads; any other is a way around names.
PLAIN_DUNDERS = frozenset(
    words(
        "__init__ __post_init__ __name__ __doc__ __len__ __iter__ __next__ __enter__ __exit__ __eq__ __lt__ __hash__ "
        "__repr__ __str__ __contains__ __getitem__ __setitem__ __version__ __all__ __annotations__ __aenter__ "
        "__aexit__ __new__ __init_subclass__ __cause__ __notes__ __qualname__ __file__ __main__ __future__"
    )
)

SDK_PUBLIC = frozenset(
    words(
        "Clip Failed ModelCard Refused Sdk SkillCard StepsUsedUp Task ToolCall ToolCard ToolResult WireFault fault"
    )
)
SDK_METHODS = frozenset(
    words(
        "agent prompt inputs paths read skills tools call_tool call_tools models model recall remember more_skills find_skills ask_person delegate "
        "steps_left step finish fail end task"
    )
)
SDK_PRIVATE = frozenset(
    words(
        "_talk _held _hosts _side_by_side _says _cards _entered _models _paths _inputs _most _steps _since _lock "
        "_used _end _card _groups _changes _prepare _make _acted _declared _must_allow _announced _host _done "
        "_ask_for_a_step _fitting _skills _more_skills"
    )
)


# -------------------------------------------------------------------------------------------------


_OUTSIDE = re.compile(r"^/(proc|dev(?!/null$)|sys|run|etc|root|home|snapshot)(/|$)|/(proc|sys)/|^file:")
_FORMAT_ATTRIBUTE = re.compile(r"\{[^{}]*\._")
_OPENERS = frozenset(words("open Path PosixPath PurePath PurePosixPath FileIO chdir join fdopen open_code"))
_LOOKS = frozenset(
    {"listdir", "scandir", "walk", "glob", "iglob", "stat", "lstat", "readlink", "samefile", "exists"}
)
_BY_DESCRIPTOR = frozenset({"listdir", "scandir", "fstat", "isatty", "ttyname", "fstatvfs", "listxattr"})
_REACHES = frozenset({"operator.attrgetter", "operator.methodcaller"})
_OPEN_MODULES = frozenset({"os", "sys"})  # allowed, but not as a value that is handed on
_NAMEDTUPLE = frozenset({"_replace", "_asdict", "_fields", "_make", "_field_defaults"})


def imports(
    reading: ParsedSource, allowed: Collection[str], denied: Collection[str], beside: Collection[str]
) -> Iterator[Construct]:
    """Imports outside the allowed set. ``beside`` are the modules of the same resource."""
    for node in reading.nodes:
        for name in _imported(node):
            why = _unwanted(name, allowed, denied, beside)
            if why:
                yield _seen(reading, "import", node, why, name)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def _unwanted(name: str, allowed: Collection[str], denied: Collection[str], beside: Collection[str]) -> str:
    root = name.split(".")[0]
    if name.startswith(".") or name.endswith(".*"):
        return f"imports {name}: say plainly which name of which module"
    if _below(name, {SDK}):
        public = name.removeprefix(SDK).lstrip(".")
        return (
            ""
            if SDK in allowed and public in SDK_PUBLIC | {""}
            else f"imports {name}, which is not the sdk's"
        )
    if root in beside:
        return ""
    if _below(name, allowed) >= max(1, _below(name, denied)):
        private = any(part.startswith("_") for part in name.split("."))
        return f"imports {name}, which is another package's own" if private else ""
    if _below(name, denied) or root not in sys.stdlib_module_names:
        return f"imports {name}"
    if "." in name and name.rpartition(".")[2] in {*ATTRIBUTES, *denied}:
        return f"imports {name} through another module"
    return ""


def _below(name: str, prefixes: Collection[str]) -> int:
    """How many parts the longest of the prefixes has that the name lies below, 0 where there is none."""
    parts = name.split(".")
    return max(
        (length for length in range(1, len(parts) + 1) if ".".join(parts[:length]) in prefixes), default=0
    )


def references(reading: ParsedSource) -> Iterator[Construct]:
    """Names, attributes and texts that lead where an edit must not go."""
    own = _own_attributes(reading.tree)
    for node in reading.nodes:
        if isinstance(node, ast.ImportFrom):
            yield from _imported_names(reading, node)
        elif isinstance(node, ast.Name):
            yield from _name(reading, node)
        elif isinstance(node, ast.Attribute):
            yield from _attribute(reading, node, own)
        elif isinstance(node, ast.Call):
            yield from _call(reading, node)
        elif isinstance(node, ast.MatchClass):
            yield from _by_text(reading, node, " ".join(node.kwd_attrs))
        elif isinstance(node, ast.ClassDef) and any(
            f"{SDK}.Sdk" in reading.dotted(item) for item in node.bases
        ):
            yield _seen(reading, "sdk", node, "makes an sdk of its own", node.name)
        yield from _text(reading, node)
        yield from _annotation(reading, node)


def _annotation(reading: ParsedSource, node: ast.AST) -> Iterator[Construct]:
    """An annotation may be a text, and pydantic runs that text: it may name types, and call nothing.

    Fields and bases of a class are followed to what their names stand for, as pydantic does.
    """
    notes = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    found: list[ast.expr] = [
        inner
        for note in filter(None, notes)
        for inner in ast.walk(note)
        if isinstance(inner, ast.Constant) and _is_code(inner.value)
    ]
    if isinstance(node, ast.AnnAssign) and isinstance(reading.parents[node], ast.ClassDef):
        found += _untyped(reading, node.annotation, frozenset())
    elif isinstance(node, ast.ClassDef):
        found += [inner for item in node.bases for inner in _untyped(reading, item, frozenset())]
    elif isinstance(node, ast.Name) and node.id == "__annotations__" and isinstance(node.ctx, ast.Store):
        found.append(node)
    for inner in dict.fromkeys(found):
        text = inner.value if isinstance(inner, ast.Constant) else ast.unparse(inner)
        yield _seen(reading, "dynamic", inner, f"an annotation that is code: {str(text)[:60]}", str(text))


def _is_code(value: object) -> bool:
    return isinstance(value, str) and "(" in value


_MAKE_TYPES = frozenset({"typing", "enum", "collections", "pydantic"})


def _untyped(reading: ParsedSource, node: ast.AST, seen: frozenset[str]) -> Iterator[ast.expr]:
    """The parts of a type that may be a text with code, or anything."""
    within = _within(reading, node)
    if isinstance(node, ast.Name):
        within = [] if node.id in seen else reading.values.get(node.id, [])
        seen |= {node.id}
    bad = _is_code(node.value) if isinstance(node, ast.Constant) else within is None
    if isinstance(node, ast.expr) and (bad or (isinstance(node, ast.Name) and node.id in reading.loose)):
        yield node
    for part in within or ():
        yield from _untyped(reading, part, seen)


def _within(reading: ParsedSource, node: ast.AST) -> list[ast.expr] | None:
    """The types that a type is made of, None for what is no type."""
    if isinstance(node, ast.Subscript):
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        owner = ast.unparse(node.value).rpartition(".")[2]
        return [node.value, *inside[: {"Literal": 0, "Annotated": 1}.get(owner, len(inside))]]
    if isinstance(node, ast.Tuple | ast.List):
        return node.elts
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [node.left, node.right]
    if isinstance(node, ast.Attribute):
        return [node.value]
    if isinstance(node, ast.Call) and _MAKE_TYPES & {p.split(".")[0] for p in reading.dotted(node.func)}:
        return [*node.args, *(keyword.value for keyword in node.keywords)]
    return None


def _rule_of(paths: Collection[str]) -> tuple[str, str]:
    """The rule that one of these dotted paths falls under, and the path."""
    for path in sorted(paths):
        if NAMES.get(path) == "":
            continue
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            start = ".".join(parts[:length])
            # every plain name may be one of builtins; those that matter are listed by themselves
            module = "" if start == "builtins" != path else MODULES.get(start, "")
            if rule := NAMES.get(start) or module:
                return rule, path
    return "", ""


def _imported_names(reading: ParsedSource, node: ast.ImportFrom) -> Iterator[Construct]:
    for alias in node.names:
        name = f"{node.module or ''}.{alias.name}"
        if rule := NAMES.get(name, ""):
            yield _seen(reading, rule, node, f"imports {name}", name)


def _name(reading: ParsedSource, node: ast.Name) -> Iterator[Construct]:
    paths = reading.dotted(node)
    above = reading.parents.get(node)
    if isinstance(above, ast.Attribute):
        return  # told by the attribute
    rule, path = _rule_of(paths)
    if rule:
        yield _seen(reading, rule, node, f"uses {path}", _around(reading, node))
    elif "builtins.getattr" in paths and not (isinstance(above, ast.Call) and above.func is node):
        yield _seen(reading, "reflection", node, "hands getattr on as a value", _around(reading, node))
    elif paths & _OPEN_MODULES and isinstance(node.ctx, ast.Load):
        yield _seen(
            reading, "reflection", node, f"hands the module {node.id} on as a value", _around(reading, node)
        )
    elif _is_dunder(node.id):
        yield _seen(reading, "reflection", node, f"uses {node.id}", _around(reading, node))


def _attribute(reading: ParsedSource, node: ast.Attribute, own: Collection[str]) -> Iterator[Construct]:
    rule, path = _rule_of(reading.dotted(node))
    if rule:
        if not isinstance(reading.parents.get(node), ast.Attribute):  # os.environ.get is one finding, not two
            yield _seen(reading, rule, node, f"uses {path}", _around(reading, node))
        return
    rule, why = _unwanted_attribute(node, own, with_sdk=reading.path.startswith("harness/"))
    if rule and not reading.is_input(node):
        yield _seen(reading, rule, node, why.format(ast.unparse(node)[:60]), _around(reading, node))


def _unwanted_attribute(node: ast.Attribute, own: Collection[str], *, with_sdk: bool) -> tuple[str, str]:
    """The rule and the reason, with a place for what is used, for an attribute of whatever object."""
    name = node.attr
    if name in ATTRIBUTES and not _is_own(node):
        return ATTRIBUTES[name], "uses {}"
    if with_sdk and not isinstance(node.ctx, ast.Load) and name in SDK_METHODS:
        return "sdk", "replaces {}"
    if _is_dunder(name):
        return "reflection", "uses {}"
    if not name.startswith("_") or _is_own(node) or name in _NAMEDTUPLE:
        return "", ""
    if name in SDK_PRIVATE:
        return "sdk", "uses {}, which is the sdk's own"
    foreign = name not in own and not name.startswith("__")
    return ("reflection", "uses {}, which is another object's own") if foreign else ("", "")


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in PLAIN_DUNDERS


def _is_own(node: ast.Attribute) -> bool:
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _own_attributes(tree: ast.Module) -> set[str]:
    """Private names that the file's own classes have, or the module itself."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and _is_own(node):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def _call(reading: ParsedSource, node: ast.Call) -> Iterator[Construct]:
    paths = reading.dotted(node.func)
    key = ast.dump(node)
    if "builtins.getattr" in paths:
        name = reading.fold(node.args[1]) if len(node.args) > 1 else UNKNOWN
        if not isinstance(name, str):
            yield _seen(reading, "reflection", node, "reads an attribute by a name that is put together", key)
        else:
            yield from _by_text(reading, node, name, node.args[0])
    elif paths & _REACHES:
        names = [reading.fold(argument) for argument in node.args]
        if not all(isinstance(name, str) for name in names):
            yield _seen(reading, "reflection", node, "reads an attribute by a name that is put together", key)
        for name in names:
            yield from _by_text(reading, node, str(name).replace(".", " "))
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in _OPENERS | _LOOKS | _BY_DESCRIPTOR and node.args:
        first = reading.fold(node.args[0])
        by_number = called in _BY_DESCRIPTOR or called not in _LOOKS
        if by_number and isinstance(first, int) and not isinstance(first, bool):
            yield _seen(reading, "inside", node, f"opens descriptor {first}", key)
        elif isinstance(first, str) and first.startswith("/"):
            yield _seen(reading, "inside", node, f"names a place outside the workspace: {first[:60]}", key)


def _by_text(
    reading: ParsedSource, node: ast.AST, names: str, owner: ast.expr | None = None
) -> Iterator[Construct]:
    """Attributes that are named by a text, or in a pattern; of the owner, or of whatever object."""
    paths = reading.dotted(owner) if owner else set[str]()
    for name in names.split():
        own = owner is not None and _is_own(ast.Attribute(owner, name, ast.Load()))
        rule = "sdk" if name in SDK_PRIVATE else ATTRIBUTES.get(name, "")
        rule = rule or _rule_of({f"{path}.{name}" for path in paths})[0]
        rule = rule or ("reflection" if _is_dunder(name) or (name.startswith("_") and not own) else "")
        if rule:
            yield _seen(reading, rule, node, f"reaches {name} by its name", ast.dump(node))


def _text(reading: ParsedSource, node: ast.AST) -> Iterator[Construct]:
    """Texts that name a place outside, or an attribute; those that stand alone say something to the reader."""
    if not isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr | ast.Call | ast.Subscript):
        return
    text = reading.fold(node)
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    if not isinstance(text, str):
        return
    outside = _OUTSIDE.search(text)
    private = text in SDK_PRIVATE or _FORMAT_ATTRIBUTE.search(text)
    if not outside and not private:
        return
    above = reading.parents.get(node)
    if isinstance(above, ast.Expr) or (above and isinstance(reading.fold(above), str | bytes)):
        return  # a docstring, or told by the whole text
    if outside:
        yield _seen(reading, "inside", node, f"names a place outside the workspace: {text[:60]}", text)
    if private:
        yield _seen(reading, "sdk", node, f"a text that reaches a private attribute: {text[:60]}", text)


def _around(reading: ParsedSource, node: ast.AST) -> str:
    """What is done with a reference: the call that it is part of, with its arguments."""
    above = reading.parents.get(node)
    while isinstance(above, ast.Attribute):
        node, above = above, reading.parents.get(above)
    return ast.dump(above if isinstance(above, ast.Call) else node)


def _seen(reading: ParsedSource, rule: str, node: ast.AST, why: str, key: str) -> Construct:
    return Construct(RuleHit(rule, reading.path, getattr(node, "lineno", 0), why), key)
