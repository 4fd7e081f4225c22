"""How records are made: the standard library's dataclasses, whose methods are compiled when one is called."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        """The standard library's, but of a frozen record with slots the methods are made when one of them is called.

        They are texts that are compiled, six for each class. A command makes few of some hundred records, and took
        a quarter of its time to compile them all.
        """
        if options != {"frozen": True, "slots": True}:
            return dataclasses.dataclass(cls, **options)
        return _make_record


def _make_record(plain: type) -> Any:
    """A frozen record with slots, whose methods are compiled later. None that the class has itself is replaced."""
    # a class that compares by itself has a None for its hash
    later = [name for name in ("__init__", "__repr__", "__eq__", "__hash__") if vars(plain).get(name) is None]
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(plain)
    for name in later:
        setattr(made, name, _late_method(made, name, later))
    made.__setattr__, made.__delattr__, made.__setstate__ = _refuse_to_set, _refuse_to_delete, _restore
    return made


def _late_method(record: Any, called: str, later: Iterable[str]) -> Callable[..., Any]:
    """Stands where the method ``called`` will; puts all of ``later`` in their places, as a twin of the class has them."""

    def first(self: Any, *values: Any, **named: Any) -> Any:
        fields = record.__dataclass_fields__
        body = {"__annotations__": {name: field.type for name, field in fields.items()}, **fields}
        for name in ("__module__", "__qualname__", "__doc__", "__post_init__"):
            if hasattr(record, name):
                body[name] = getattr(record, name)
        twin: Any = dataclasses.dataclass(frozen=True, init=False)(type(record.__name__, (), body))
        made = {**vars(twin), "__init__": _init(record)}
        for name in later:
            setattr(record, name, made[name])
        return getattr(record, called)(self, *values, **named)

    return first


def _init(record: Any) -> Callable[..., None]:
    """As the standard library's, but each value goes into its slot at once and not by its name: half the time."""
    known: dict[str, Any] = {"unset": object()}
    given, named, lines = ["self"], ["*"], []
    for name, field in record.__dataclass_fields__.items():
        if not field.init:
            raise TypeError(f"{record.__name__}.{name}: a record is given all of its fields")
        known[f"set_{name}"], default, value = getattr(record, name).__set__, "", name
        if field.default is not dataclasses.MISSING:
            known[f"default_{name}"], default = field.default, f"=default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"make_{name}"], default = field.default_factory, "=unset"
            value = f"make_{name}() if {name} is unset else {name}"
        (named if field.kw_only else given).append(name + default)
        lines.append(f"\n set_{name}(self, {value})")
    if hasattr(record, "__post_init__"):
        lines.append("\n self.__post_init__()")
    head = ", ".join(given + (named if len(named) > 1 else []))
    exec(f"def __init__({head}):{''.join(lines) or ' pass'}", known)  # noqa: S102 - names of fields alone
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{record.__qualname__}.__init__"
    return made


def _refuse_to_set(record: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(record: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(record: object, state: tuple[None, Mapping[str, object]]) -> None:
    """From a pickle or for a copy."""
    for name, value in state[1].items():
        object.__setattr__(record, name, value)
