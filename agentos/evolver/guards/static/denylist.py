"""The names that a source edit must not begin to use, by rule.

``sdk`` names are those of ``agentos/worker/sdk.py``, which the kernel does not import; a test holds the two
together.
"""

from __future__ import annotations

from collections.abc import Mapping

SDK = "agentos.worker.sdk"


def _words(text: str) -> list[str]:
    return text.split()


# Module, or name in a module -> rule. Everything below a name is meant too.
MODULES: Mapping[str, str] = {
    **dict.fromkeys(
        _words(
            "_ctypes _imp _pickle _posixsubprocess builtins cffi code codeop copyreg ctypes dill gc imp importlib "
            "inspect marshal pickle pickletools pkgutil runpy shelve site symtable sysconfig zipimport"
        ),
        "dynamic",
    ),
    **dict.fromkeys(
        _words(
            "_thread atexit concurrent.futures.ProcessPoolExecutor concurrent.futures.process fcntl multiprocessing "
            "nt posix pty resource signal subprocess syslog termios"
        ),
        "process",
    ),
    **dict.fromkeys(
        _words(
            "_socket _ssl aiohttp asyncio asyncore ftplib http httpx imaplib nntplib poplib requests select selectors "
            "smtplib socket socketserver ssl telnetlib urllib.error urllib.request urllib.response urllib.robotparser "
            "urllib3 webbrowser wsgiref xmlrpc"
        ),
        "network",
    ),
    **dict.fromkeys(_words("getpass grp mmap pwd"), "inside"),
    **dict.fromkeys(
        _words("bdb cProfile doctest faulthandler logging.config pdb profile timeit trace tracemalloc"),
        "dynamic",
    ),
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
    **{f"os.{name}": rule for rule, names in _OS.items() for name in _words(names)},
    **dict.fromkeys(
        [
            f"sys.{name}"
            for name in _words(
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
            for name in _words(
                "eval exec compile __import__ globals locals vars breakpoint setattr delattr "
                "__builtins__ __loader__ __spec__ __build_class__"
            )
        ],
        "dynamic",
    ),
    **dict.fromkeys(["builtins.exit", "builtins.quit", "sys.exit", "builtins.SystemExit"], "process"),
    "builtins.getattr": "",  # looked at by its name argument
    # they make code of texts
    **dict.fromkeys(
        _words(
            "typing.get_type_hints typing.ForwardRef pydantic.create_model pydantic.TypeAdapter "
            "dataclasses.make_dataclass string.Formatter"
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
        _words(
            "system popen fork forkpty execv execve execvp execvpe execl posix_spawn spawnv spawnl killpg"
        ),
        "process",
    ),
    **dict.fromkeys(_words("environ environb getenv getenvb fdopen"), "inside"),
    **dict.fromkeys(_words("os sys subprocess builtins importlib socket ctypes posix"), "reflection"),
    **dict.fromkeys(
        _words(
            "gi_frame cr_frame ag_frame f_back f_globals f_locals f_builtins f_code tb_frame gi_code cr_code "
            "func_globals mro"
        ),
        "reflection",
    ),
    **dict.fromkeys(_words("eval exec CodeType FunctionType"), "dynamic"),
    "setLevel": "record",
}

# Special attributes that good code reads; any other is a way around names.
PLAIN_DUNDERS = frozenset(
    _words(
        "__init__ __post_init__ __name__ __doc__ __len__ __iter__ __next__ __enter__ __exit__ __eq__ __lt__ __hash__ "
        "__repr__ __str__ __contains__ __getitem__ __setitem__ __version__ __all__ __annotations__ __aenter__ "
        "__aexit__ __new__ __init_subclass__ __cause__ __notes__ __qualname__ __file__ __main__ __future__"
    )
)

SDK_PUBLIC = frozenset(
    _words(
        "Clip Failed ModelCard Refused Sdk SkillCard StepsUsedUp Task ToolCall ToolCard ToolResult WireFault fault"
    )
)
SDK_METHODS = frozenset(
    _words(
        "agent prompt inputs paths read skills tools call_tool call_tools models model recall remember more_skills find_skills ask_person delegate "
        "steps_left step finish fail end task"
    )
)
SDK_PRIVATE = frozenset(
    _words(
        "_talk _held _hosts _side_by_side _says _cards _entered _models _paths _inputs _most _steps _since _lock "
        "_used _end _card _groups _changes _prepare _make _acted _declared _must_allow _announced _host _done "
        "_ask_for_a_step _fitting _skills _more_skills"
    )
)
