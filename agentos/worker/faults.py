"""Whatever goes wrong in evolvable code, as one structured fault that a machine can compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from agentos.messages import RESERVED, WHEELS, WireFault
from agentos.wire import LEVELS_MAX, is_deeper, shorten
from agentos.worker.children import spare_memory

MESSAGE_MAX = 2_000


class Failed(Exception):
    """Evolvable code did not do what was asked of it; ``fault`` says how."""

    def __init__(self, fault: WireFault) -> None:
        self.fault = fault
        super().__init__(f"{fault.type}: {fault.message}")


class NotPlain(Exception):
    """The value is not JSON (``type`` is ``output``), or too large (``type`` is ``limit``)."""

    def __init__(self, type: str, message: str) -> None:
        self.type = type
        super().__init__(message)


def fault(type: str, message: str, *, where: str = "", path: str = "") -> WireFault:
    """A fault with everything cut to what a frame may carry. ``path`` lies in the resource."""
    return WireFault(
        type=_clean(type)[:200],
        message=shorten(_clean(message), MESSAGE_MAX),
        where=_clean(where)[:1_000],
        resource=resource_of(path)[:200],
    )


def fault_of(error: BaseException, root: Path, path: str) -> WireFault:
    """The fault that an exception is; ``path`` is the registry path of the code that was started.

    ``where`` names the innermost frame inside that resource, so that an error raised by a library
    points to the line of the resource that called it.
    """
    if isinstance(error, Failed):
        return error.fault
    kind, text = exception_word(type(error).__name__), _text(error)
    if isinstance(error, MemoryError):
        kind, text = "memory", "it needs more memory than the task allows"
    elif isinstance(error, SystemExit):
        kind, text = "exit", f"it called sys.exit({shorten(text, 100)})"
    return fault(kind, text, where=_innermost(error.__traceback__, root, path), path=path)


def exception_word(name: str) -> str:
    """The type of the fault that an exception class of this name gives: no word of the kernel's or worker's."""
    return f"exception {name}" if name in RESERVED else name


def load_fault(error: BaseException, root: Path, path: str) -> WireFault:
    """As ``fault_of``, for code that could not even be imported."""
    found = fault_of(error, root, path)
    if isinstance(error, Failed) or found.type == "memory":
        return found
    return fault("load", f"{path}: {found.type}: {found.message}", where=found.where, path=path)


class FaultsOf:
    """Whatever the evolvable code within raises, also what is no Exception, as ``Failed``: the one place that catches it.

    ``path`` is the registry path of that code, and ``told`` says it: ``load_fault`` where it is only imported. Memory is
    spared first, so that there is room to say it. What ``passes`` goes on as it is.
    """

    def __init__(
        self,
        root: Path,
        path: str,
        told: Callable[[BaseException, Path, str], WireFault] = fault_of,
        *,
        passes: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._told = told
        self._place = root, path
        self._passes = passes

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        spare_memory()
        if not isinstance(error, self._passes):
            raise Failed(self._told(error, *self._place)) from None


def resource_of(path: str) -> str:
    """``kind/name`` of a registry path, ``""`` of none."""
    return "/".join(path.split("/")[:2])


def encode(value: Any, most: int) -> bytes:
    """JSON that any reader accepts (finite numbers, valid Unicode), at most ``most`` bytes.

    Raises NotPlain.
    """
    try:
        # Iterating stops early: a structure that refers to itself a million times stays small.
        size, parts = 0, []
        for part in json.JSONEncoder(allow_nan=False, check_circular=True).iterencode(value):
            size += len(part)
            if size > most:
                raise NotPlain("limit", f"it is larger than the {most} bytes that the task allows")
            parts.append(part)
        data = "".join(parts)
        if "\\ud" in data:  # perhaps half of a surrogate pair: UTF-8 has no form for it
            json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotPlain("output", f"it is not JSON: {_text(error)}") from None
    encoded = data.encode()
    if is_deeper(value, LEVELS_MAX, encoded):
        raise NotPlain("output", f"it is nested more than {LEVELS_MAX} levels deep")
    return encoded


def cut_of(value: Any, why: NotPlain, most: int) -> dict[str, str]:
    """What a step holds in place of such a value: why, and the first characters of it."""
    try:
        text = json.dumps(value, default=repr, skipkeys=True) if why.type == "limit" else repr(value)
    except (RecursionError, ValueError):  # too deep to be shown, or within itself
        text = ""
    return {"cut": str(why), "head": text[:most]}


def _innermost(trace: TracebackType | None, root: Path, path: str) -> str:
    inside = f"{root}/{resource_of(path)}/"
    brought = f"{inside}{WHEELS}/"  # libraries, though they lie there
    found = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(inside) and not code.co_filename.startswith(brought):
            found = f"{code.co_filename.removeprefix(f'{root}/')}:{code.co_name}"
        trace = trace.tb_next
    return found


def _text(error: BaseException) -> str:
    """Its message; the error's own ``__str__`` is evolvable code too."""
    try:
        with FaultsOf(Path(), "", _unshown):
            return str(error)
    except Failed as unshown:
        return unshown.fault.message


def _unshown(_error: BaseException, _root: Path, path: str) -> WireFault:
    return fault("load", "(its message cannot be shown)", path=path)


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
