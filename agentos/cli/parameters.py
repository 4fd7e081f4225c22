"""Values of parameters that are what they should be already, without typer's pydantic.

typer converts each value by a pydantic adapter, also where nothing was given; to import pydantic and to build
the adapters takes as long as all else that a list needs. What needs a conversion still gets one from there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer.core


class _LazyAdapter:
    """Stands where typer keeps the adapter of a parameter, until there is a value for one."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it; typer's own errors."""
        wanted, info = self._descriptor.annotation, self._descriptor.parameter_info
        if not param.multiple and param.nargs == 1 and info.parser is None:
            if value is None or (type(value) is wanted and wanted in (str, int, float)):
                return value
            if wanted is Path and type(value) is str and _is_any_path(info) and os.access(value, os.R_OK):
                return Path(value)
            if wanted is int and type(value) is str and _is_within(value, info):
                return int(value)
        return _BUILD(self._descriptor).coerce(value, param=param, ctx=ctx)


def _is_any_path(info: Any) -> bool:
    """Whether nothing more is asked of the path than that it can be read."""
    asked = info.resolve_path or info.writable or info.path_type is not None
    return not asked and info.file_okay and info.dir_okay


def _is_within(value: str, info: Any) -> bool:
    """Whether the text is a whole number, not below zero, within the bounds that were set."""
    is_number = value.isascii() and value.isdigit() and len(value) < 19
    return is_number and (info.min or 0) <= int(value) and (info.max is None or int(value) <= info.max)


_BUILD: Any = getattr(typer.core, "build_runtime_param", None)


def without_adapters() -> None:
    """From now on an adapter is built where a value needs it. Nothing happens to a typer that works otherwise."""
    if _BUILD is not None:
        typer.core.build_runtime_param = _LazyAdapter  # type: ignore[assignment, attr-defined]
