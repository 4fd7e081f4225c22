"""YAML or JSON text as a JSON value, strictly, and in which line of it something stands."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from typing import Any

import yaml

from agentos.domain import Json
from agentos.errors import Invalid

_MAX_DEPTH = 40
_MAX_NODES = 200_000


def parse(text: str, what: str) -> Json:
    """The JSON value that a YAML or JSON text stands for; raises Invalid with where and why."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
            _refuse_depth(value)
            return value
        except json.JSONDecodeError:
            pass  # YAML's flow style begins the same way
        except RecursionError:
            raise Invalid(what, ["it is nested too deeply"]) from None
        except ValueError as error:
            raise Invalid(what, [str(error)]) from None
    try:
        return _Builder().build(text)
    except yaml.YAMLError as error:
        said = str(error).replace('in "<unicode string>", ', "at ").replace('in "<byte string>", ', "at ")
        raise Invalid(what, [" ".join(f"it is neither YAML nor JSON: {said}".split())]) from None
    except ValueError as error:
        raise Invalid(what, [str(error)]) from None


def _unique(pairs: list[tuple[str, Json]]) -> Json:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key '{key}' is given twice")
        found[key] = value
    return found


def _refuse_depth(value: Json) -> None:
    level, depth = [value], 0
    while level := [
        inner
        for item in level
        if isinstance(item, list | dict)
        for inner in (item.values() if isinstance(item, dict) else item)
    ]:
        depth += 1
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not allowed: use null, or text")


class _Builder:
    """Builds the value from the parser's events, because only there an alias can still be seen."""

    def __init__(self) -> None:
        self._open: list[Any] = []  # containers, outermost first
        self._keys: list[str | None] = []  # the key that waits for its value, by container
        self._root: list[Json] = []

    def build(self, text: str) -> Json:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for count, event in enumerate(yaml.parse(text, Loader=loader)):
            line = f"line {event.start_mark.line + 1}" if event.start_mark else ""
            if count > _MAX_NODES:
                raise ValueError(f"it has more than {_MAX_NODES} values")
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"{line}: aliases (*name) are not allowed")
            if (tag := getattr(event, "tag", None)) is not None:
                raise ValueError(f"{line}: tags ({tag}) are not allowed")
            if isinstance(event, yaml.ScalarEvent):
                self._add(_scalar(event, line), line)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._start({} if isinstance(event, yaml.MappingStartEvent) else [], line)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._open.pop()
                self._keys.pop()
        if len(self._root) != 1:
            found = f"{len(self._root)} documents" if self._root else "nothing"
            raise ValueError(f"it holds {found}; exactly one document is expected")
        return self._root[0]

    def _start(self, container: Any, line: str) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise ValueError(f"{line}: it is nested more than {_MAX_DEPTH} deep")
        self._add(container, line)
        self._open.append(container)
        self._keys.append(None)

    def _add(self, value: Json, line: str) -> None:
        if not self._open:
            self._root.append(value)
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        elif self._keys[-1] is not None:
            self._open[-1][self._keys[-1]] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise ValueError(f"{line}: the key {value!r} is no text; put it in quotes")
        elif value in self._open[-1]:
            raise ValueError(f"{line}: the key '{value}' is given twice")
        else:
            self._keys[-1] = value


class Lines:
    """In which line of a document something stands, for a sentence about it; looked up only once there is one to say."""

    def __init__(self, text: str, within: tuple[str | int, ...] = (), apart: Container[str] = ()) -> None:
        self._text = text
        self._within = within  # the keys and places that lead to what it is asked about
        self._apart = apart  # keys that were not given in the document

    def below(self, *path: str | int) -> Lines:
        """For what stands there."""
        return Lines(self._text, (*self._within, *path), self._apart)

    def of(self, *path: str | int) -> str:
        """``line 3: ``, of the last of the keys and places that is there; "" where none is, or all is on one line."""
        if "\n" not in self._text.strip() or (path and path[0] in self._apart):
            return ""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            node = yaml.compose(self._text, Loader=loader)
        except yaml.YAMLError:  # JSON that is no YAML
            return ""
        line = -1
        for step in (*self._within, *path):
            if isinstance(node, yaml.MappingNode):
                key, node = next((pair for pair in node.value if pair[0].value == step), (None, None))
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
                key = node = node.value[step] if step < len(node.value) else None
            else:
                break
            if key is None:
                break
            line = key.start_mark.line
        return f"line {line + 1}: " if line >= 0 else ""


_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {name: name.lower() == "true" for name in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INT = re.compile(r"[-+]?[0-9]{1,4000}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def _scalar(event: yaml.ScalarEvent, line: str) -> Json:
    text = event.value
    if not event.implicit[0]:  # quoted, or a block of text
        return text
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{line}: {text} is not allowed: use null, or put it in quotes")
    return text
