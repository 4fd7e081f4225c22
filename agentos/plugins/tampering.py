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
            if isinstance(holder, dict | list | set):
                changed += [key for key in now if key not in before]
            if changed:
                found.append(f"{name}.{changed[0]}")
                _put_back(holder, before, changed)
        return found


def _holders() -> Iterator[tuple[str, Any]]:
    for name, module in sorted(sys.modules.items()):
        if name in _DECIDES or name.startswith(tuple(f"{part}." for part in _DECIDES)):
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
    if isinstance(holder, ModuleType | type):
        return {key: value for key, value in vars(holder).items() if not key.startswith("__")}
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
            setattr(holder, key, before[key])
