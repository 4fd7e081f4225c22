"""Whether somebody's import changed what the kernel decides with, and putting it back.

Functions, classes and constants of the modules that screen, judge and promote are held before an import and compared
after it. This finds what is changed then; code that runs in the kernel's process later can change anything, which is
why `agentos audit verify` computes verdicts again without any plug-in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

_DECIDES = ("agentos.evolver", "agentos.checks", "agentos.rules", "agentos.registry", "agentos.plugins")
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
_LAZY = (
    "__pydantic",
    "__abstract",
    "_abc",
    "__weakref__",
    "__dict__",
)  # of a class: may come with its first use
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
    for name, module in sorted(sys.modules.items()):
        if not name.startswith(_DECIDES):
            continue
        if not getattr(module.__spec__, "_initializing", False):  # another thread is just importing it
            yield name, module
            for key, value in list(vars(module).items()):
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
