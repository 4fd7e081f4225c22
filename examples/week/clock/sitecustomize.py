"""A clock that can be moved: what a process takes for the time is later by the seconds in the file $WEEK_CLOCK.

Python imports this before all else where the folder is on PYTHONPATH. Only ``datetime`` is moved: clocks that
measure how long something takes go on as they do.
"""

from __future__ import annotations

import datetime as module
import os

_REAL = module.datetime
_FILE = os.open(os.environ["WEEK_CLOCK"], os.O_RDONLY | os.O_CLOEXEC)


class _AnyDatetime(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _REAL)  # also what C code makes


class _Moved(_REAL, metaclass=_AnyDatetime):
    @classmethod
    def now(cls, tz: module.tzinfo | None = None) -> _Moved:
        return super().now(tz) + module.timedelta(seconds=float(os.pread(_FILE, 32, 0)))


_Moved.__name__ = _Moved.__qualname__ = "datetime"  # as pickle looks it up
_Moved.__module__ = "datetime"
module.datetime = _Moved  # type: ignore[misc]
