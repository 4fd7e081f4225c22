"""Formats of third parties: a function that makes records in the form ``openai-chat`` of one of its own.

It is installed as a plug-in of the kind ``trajectories`` (its name is the format's), or named as ``module:function``. It gets a record as it was read (for a file that is one log, {"log", "lines"}) and gives one
record, several, or None for what it does not know. It runs with the rights of the person who imports.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agentos.domain import Json
from agentos.errors import Invalid, UserError
from agentos.trajectories.conversations import ChatConversation
from agentos.trajectories.readers.formats import read

Convert = Callable[[Json], Json]


def converter(place: str) -> Convert:
    """The function at ``module:function``, also of the current folder. Raises UserError."""
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name) if module and name else None
    except (ImportError, AttributeError, SyntaxError, ValueError) as error:
        raise UserError(f"'{place}' cannot be imported: {error}; write module:function.") from None
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise UserError(f"'{place}' is no function; write module:function.")
    convert: Convert = found
    return convert


def converted(record: Json, convert: Convert) -> Sequence[ChatConversation]:
    """The conversations that a third party's function makes of a record. Raises Invalid, whatever it does."""
    try:
        given = convert(record)
    except Exception as error:  # noqa: BLE001 - a third party's code: its fault costs one record
        raise Invalid("record", [f"the converter failed: {type(error).__name__}: {error}"]) from None
    if given is None:
        raise Invalid("record", ["the converter does not know it"])
    return [conversation for one in _each(given) for conversation in read(one, "openai-chat")]


def _each(given: Json) -> Iterator[Mapping[str, Json]]:
    for one in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(one, dict):
            raise Invalid("record", [f"the converter gave {type(one).__name__}, and no record"])
        yield one
