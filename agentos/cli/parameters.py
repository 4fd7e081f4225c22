"""Values of parameters that are what they should be already, without typer's pydantic.

typer converts each value by a pydantic adapter, also where nothing was given; to import pydantic and to build
the adapters takes as long as all else that a list needs. What needs a conversion still gets one from there.
"""

from __future__ import annotations

from typing import Any

import typer.core


class _LazyAdapter:
    """Stands where typer keeps the adapter of a parameter, until there is a value for one."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it; typer's own errors."""
        wanted, info = self._descriptor.annotation, self._descriptor.parameter_info
        ready = value is None or (type(value) is wanted and wanted in (str, int, float))
        if ready and not param.multiple and param.nargs == 1 and info.parser is None:
            return value
        return _BUILD(self._descriptor).coerce(value, param=param, ctx=ctx)


_BUILD: Any = getattr(typer.core, "build_runtime_param", None)


def without_adapters() -> None:
    """From now on an adapter is built where a value needs it. Nothing happens to a typer that works otherwise."""
    if _BUILD is not None:
        typer.core.build_runtime_param = _LazyAdapter  # type: ignore[assignment, attr-defined]
