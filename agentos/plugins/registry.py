"""The kinds of plug-ins, and those that are installed: entry points of the groups ``agentos.<kind>``.

Nothing is read before a kind is asked for, and no plug-in is imported before it is used. One that does not load is
named with its reason and left out. A plug-in is a person's own code, installed by a person; it runs in the process
that uses it, with all that this process may do (docs/use/plugins.md says what that means).
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from agentos.errors import UserError, shown
from agentos.plaintext import clean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


T = TypeVar("T")
LOAD_S = 20.0  # what importing one may take; tests set less
NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_NAME_MAX = 40


@dataclass(frozen=True, slots=True)
class PluginKind:
    """One kind. ``methods`` are what the object (or what it makes) is called for; none: it is called itself."""

    name: str
    what: str
    built_in: tuple[str, ...] | str = ()  # names of those that ship, or "module:table" where these stand
    methods: tuple[str, ...] = ()
    makes: bool = False  # called once, with what the seam gives, and makes what has the methods

    @property
    def group(self) -> str:
        """Of its entry points."""
        return f"agentos.{self.name}"

    def built_ins(self) -> Collection[str]:
        """The names of those that ship: nobody else may have one of them."""
        if isinstance(self.built_in, tuple):
            return self.built_in
        module, _, table = self.built_in.partition(":")
        return tuple(getattr(importlib.import_module(module), table))


KINDS: Mapping[str, PluginKind] = {
    kind.name: kind
    for kind in (
        PluginKind(
            "proposers",
            "proposes edits",
            ("repair", "model", "command", "lesson", "skill", "rule", "pin"),
            ("propose",),
            makes=True,
        ),
        PluginKind(
            "sandboxes",
            "makes boxes",
            ("bubblewrap", "docker", "kubernetes"),
            ("open", "start", "examine", "close"),
            makes=True,
        ),
        PluginKind(
            "trajectories", "reads runs of other systems", "agentos.trajectories.readers.formats:READERS"
        ),
        PluginKind("checks", "decides success", "agentos.checks:KINDS", ("faults", "judge")),
        PluginKind("screen_rules", "screens edits", "agentos.evolver.guards.static:RULES", ("look",)),
        PluginKind("notifiers", "tells a person", ("command", "mail", "webhook", "desktop")),
        PluginKind(
            "secret_stores",
            "keeps values of secrets",
            ("file", "keyring"),
            ("get", "set", "delete"),
            makes=True,
        ),
        PluginKind("retrievers", "ranks texts", ("bm25", "hybrid")),
        PluginKind(
            "blob_stores",
            "keeps content",
            ("files",),
            ("read", "write"),
            makes=True,
        ),
        PluginKind("commands", "a noun of the command line", "agentos.cli.main:COMMANDS"),
        PluginKind("pages", "a page in the browser", (), ("show",)),
    )
}


class PluginFailed(UserError):
    """An installed plug-in cannot be used; the sentence says whose it is, why, and what to type."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One that is installed. ``fault`` says why it is not even loaded, "" where it may be."""

    kind: str
    name: str
    distribution: str
    version: str
    point: EntryPoint
    fault: str = ""

    def __str__(self) -> str:
        """As it stands in the record of what it took part in."""
        return f"{self.name} ({self.distribution} {self.version})"

    @property
    def label(self) -> str:
        """As ``str``, with its kind: what a trial was measured with."""
        return f"{self.kind}/{self}"

    def failed(self, why: str) -> PluginFailed:
        """What to raise where it cannot be used."""
        return PluginFailed(
            f"the plug-in {self.name!r} ({KINDS[self.kind].group}) of {self.distribution} {self.version} "
            f"cannot be used: {why}. Mend it, or type `pip uninstall {self.distribution}`; "
            "`agentos plugin list` shows all of them."
        )


@cache
def any_installed() -> bool:
    """Whether some distribution has a plug-in: looked up in files, because importlib.metadata takes as long as a command."""
    for place in sys.path:
        with suppress(OSError), os.scandir(place or ".") as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError), open(f"{entry.path}/entry_points.txt", "rb") as file:
                        if b"[agentos." in file.read():
                            return True
    return False


@cache
def installed(kind: str) -> tuple[Plugin, ...]:
    """All of the kind, by name, those that are refused for their name included. Imports none of them."""
    if not any_installed():
        return ()
    from importlib.metadata import entry_points  # slow to import, and most commands ask for no plug-in

    points = sorted(entry_points(group=KINDS[kind].group), key=lambda point: (point.name, _owner(point)))
    found: list[Plugin] = []
    taken = set(KINDS[kind].built_ins()) if points else set()
    for point in points:
        fault = _name_fault(point.name, taken)
        taken.add(point.name)
        version = point.dist.version if point.dist else "?"
        found.append(Plugin(kind, point.name, _owner(point)[0], version, point, fault))
    return tuple(found)


def _owner(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name if point.dist else "an installed distribution", point.value)


def _name_fault(name: str, taken: Collection[str]) -> str:
    if not NAME.fullmatch(name) or len(name) > _NAME_MAX:
        return f"{shown(name)} is no name: at most {_NAME_MAX} small letters, digits, '-' and '_'"
    return f"the name {name} is taken" if name in taken else ""


def names(kind: str) -> list[str]:
    """What may be named: those that ship, and after them those that are installed."""
    return [*KINDS[kind].built_ins(), *(found.name for found in installed(kind) if not found.fault)]


def named(kind: str, name: str) -> Plugin:
    """The installed one of that name. Raises UserError, which names those that there are."""
    for found in installed(kind):
        if found.name == name and not found.fault:
            return found
    raise UserError(f"There is no '{name}' among {kind.replace('_', ' ')}: {', '.join(names(kind))}.")


def is_current(label: str) -> bool:
    """Whether the plug-in of this label is installed, in that very version."""
    kind = label.partition("/")[0]
    return kind in KINDS and any(found.label == label and not found.fault for found in installed(kind))


_SAID_MAX = 3_000  # characters that are looked at
_loaded: dict[Plugin, Any] = {}  # the object, or the PluginFailed that it raised
_loading = threading.Lock()


def load(plugin: Plugin) -> Any:
    """What the entry point names, imported once in a process. Raises PluginFailed.

    An import that does not end is left to itself after ``LOAD_S`` seconds: its thread cannot be ended. What changes
    the kernel's own code or constants while it is imported is undone and refused.
    """
    with _loading:
        if plugin not in _loaded:
            try:
                _loaded[plugin] = _load(plugin)
            except PluginFailed as error:
                _loaded[plugin] = error
    found = _loaded[plugin]
    if isinstance(found, PluginFailed):
        raise PluginFailed(str(found))
    return found


def _load(plugin: Plugin) -> Any:
    if plugin.fault:
        raise plugin.failed(plugin.fault)
    kernel = KernelState()
    loaded, why = within(LOAD_S, plugin.point.load)
    if changed := kernel.restore():
        raise plugin.failed(f"its import changes {changed[0]}, which is the kernel's")
    if why:
        raise plugin.failed(f"it cannot be loaded ({why})")
    kind = KINDS[plugin.kind]
    if not kind.makes or isinstance(loaded, type):
        _require(plugin, loaded)
    if (kind.makes or not kind.methods) and not callable(loaded):
        raise plugin.failed(f"it is a {type(loaded).__name__}, which cannot be called")
    return loaded


def attempted(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What another's ``work`` gave, or what it raised, SystemExit too: the one place that catches it outside of boxes."""
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 - another's code
        return None, error


def within(seconds: float, work: Callable[[], Any]) -> tuple[Any, str]:
    """What another's ``work`` gave, and why it gave nothing. Its thread goes on where it does not end in time."""
    ended: list[tuple[Any, str]] = []

    def attempt() -> None:
        found, error = attempted(work)
        ended.append((found, said(error) if error else ""))

    thread = threading.Thread(target=attempt, name="plug-in", daemon=True)
    thread.start()
    thread.join(seconds)
    return ended[0] if ended else (None, f"it did not end within {seconds:g} s")


def make(plugin: Plugin, *given: Any) -> Any:
    """What a plug-in that makes something makes of ``given``. Raises PluginFailed."""
    loaded = load(plugin)
    made = call(plugin, lambda: loaded(*given), fails="it cannot be made ({})")
    _require(plugin, made)
    return made


def _require(plugin: Plugin, found: Any) -> None:
    for name in KINDS[plugin.kind].methods:
        found_one = partial(getattr, found, name, None)
        if not callable(call(plugin, found_one, fails=f"its `{name}` cannot be read ({{}})")):
            raise plugin.failed(f"it has no `{name}`")


def call(plugin: Plugin, work: Callable[[], Any], *, quotes: bool = True, fails: str = "it raised {}") -> Any:
    """What ``work`` (a call of the plug-in) gives. Raises PluginFailed, whatever it raised: ``fails`` with it in ``{}``.

    Without ``quotes`` the sentence has the error's type alone: its text may hold a secret.
    """
    found, error = attempted(work)
    if error is None:
        return found
    if isinstance(error, PluginFailed) or not isinstance(error, Exception):
        raise error
    what = said(error) if quotes else type(error).__name__
    raise plugin.failed(fails.format(what)) from (error if quotes else None)


def usable(kind: str) -> Iterator[tuple[Plugin, Any | PluginFailed]]:
    """Each installed one with what it is, or with why it cannot be used."""
    for plugin in installed(kind):
        try:
            yield plugin, load(plugin)
        except PluginFailed as error:
            yield plugin, error


def said(error: BaseException) -> str:
    """What another's exception says, bounded."""
    words, _ = attempted(lambda: clean(str(error)[:_SAID_MAX]))
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return " ".join(text.split())[:300]


def everything() -> Sequence[tuple[Plugin, str]]:
    """All that is installed, of every kind, with why it cannot be used ("": it can). Imports them all."""
    return [
        (plugin, str(found) if isinstance(found, PluginFailed) else "")
        for kind in KINDS
        for plugin, found in usable(kind)
    ]


# --- Whether somebody's import changed what the kernel decides with, and putting it back ---------
# Functions, classes and constants of the modules that screen, judge and promote are held before an import and compared
# after it. This finds what is changed then; code that runs in the kernel's process later can change anything, which is
# why `agentos audit verify` computes verdicts again without any plug-in.


_DECIDES = ("agentos.evolver", "agentos.checks", "agentos.rules", "agentos.registry", "agentos.plugins")
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
# of a class: may come with its first use
_LAZY = ("__pydantic", "__abstract", "_abc", "__weakref__", "__dict__")
_GONE = object()


class KernelState:
    """The state when it was made."""

    def __init__(self) -> None:
        self._held = [(name, holder, _state(holder)) for name, holder in _holders()]

    def restore(self) -> list[str]:
        """Names of what was changed since; it is put back."""
        found = []
        for name, holder, before in self._held:
            now = _state(holder)
            changed = [key for key in before if now.get(key, _GONE) is not before[key]]
            changed += [
                key for key, value in now.items() if key not in before and not _is_import(holder, value)
            ]
            if changed:
                found.append(f"{name}.{changed[0]}")
                _put_back(holder, before, changed)
        return found


def _is_import(holder: Any, value: Any) -> bool:
    """A module stands as a name in its package once somebody has imported it."""
    return isinstance(holder, ModuleType) and isinstance(value, ModuleType)


def _holders() -> Iterator[tuple[str, Any]]:
    for name, module in sorted(sys.modules.copy().items()):  # a copy is made at once; other threads import
        if not name.startswith(_DECIDES):
            continue
        if not getattr(module.__spec__, "_initializing", False):  # another thread is just importing it
            yield name, module
            for key, value in vars(module).copy().items():
                own = getattr(value, "__module__", None) == name
                if (isinstance(value, dict | list | set) and not key.startswith("_")) or (
                    isinstance(value, FunctionType) and own
                ):
                    yield f"{name}.{key}", value
                elif isinstance(value, type) and own:
                    yield f"{name}.{key}", value
                    for inner, method in vars(value).items():
                        if isinstance(method, FunctionType):
                            yield f"{name}.{key}.{inner}", method


def _state(holder: Any) -> dict[Any, Any]:
    if isinstance(holder, FunctionType):
        return {part: getattr(holder, part) for part in _PARTS}
    if isinstance(holder, ModuleType):
        return {key: value for key, value in vars(holder).items() if not key.startswith("__")}
    if isinstance(holder, type):
        return {key: value for key, value in vars(holder).items() if not key.startswith(_LAZY)}
    if isinstance(holder, list):
        return dict(enumerate(holder))
    return dict(holder) if isinstance(holder, dict) else {item: True for item in holder}


def _put_back(holder: Any, before: dict[Any, Any], changed: list[Any]) -> None:
    if isinstance(holder, list):
        holder[:] = before.values()
    elif isinstance(holder, dict | set):
        holder.clear()
        holder.update(before)
    else:
        for key in changed:
            if key in before:
                setattr(holder, key, before[key])
            else:
                delattr(holder, key)
