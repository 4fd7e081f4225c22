"""Records whose methods are compiled when one is called are what the standard library's are."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from agentos.domain import dataclass
from tests.refusals import raises


@dataclass(frozen=True, slots=True)
class Late:
    name: str
    sizes: tuple[int, ...] = ()
    facts: Mapping[str, int] = dataclasses.field(default_factory=dict, compare=False)
    hidden: str = dataclasses.field(default="x", repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")

    def shout(self) -> str:
        return self.name.upper()


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    name: str
    sizes: tuple[int, ...] = ()
    facts: Mapping[str, int] = dataclasses.field(default_factory=dict, compare=False)
    hidden: str = dataclasses.field(default="x", repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")

    def shout(self) -> str:
        return self.name.upper()


@pytest.mark.parametrize("kind", [Late, Plain])
def test_a_record_is_made_compared_hashed_shown_and_copied(kind: Any) -> None:
    one, same, other = kind("a", (1,)), kind("a", (1,), {"b": 2}), kind("a", hidden="y")
    assert one == same
    assert hash(one) == hash(same) == hash((one.name, one.sizes, one.hidden))
    assert one != other
    assert one != ("a", (1,), {}, "x")
    assert repr(same) == f"{kind.__name__}(name='a', sizes=(1,), facts={{'b': 2}})"
    assert (one.facts, one.shout()) == ({}, "A")
    assert kind("z").facts is not kind("z").facts
    assert dataclasses.replace(one, name="c") == kind("c", (1,))
    assert dataclasses.asdict(other) == {"name": "a", "sizes": (), "facts": {}, "hidden": "y"}
    assert copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(same).facts == same.facts
    assert not hasattr(one, "__dict__")
    assert [item.name for item in dataclasses.fields(one)] == ["name", "sizes", "facts", "hidden"]
    assert list(inspect.signature(kind).parameters) == ["name", "sizes", "facts", "hidden"]
    match one:
        case kind(name, sizes):
            assert (name, sizes) == ("a", (1,))


@pytest.mark.parametrize("kind", [Late, Plain])
def test_a_record_refuses_what_it_has_no_room_for(kind: Any) -> None:
    one = kind("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.name
    for given in ((), ("a", (), {}, "x")):
        with pytest.raises(TypeError):
            kind(*given)
    with pytest.raises(TypeError):
        kind("a", wrong=1)
    with raises(ValueError, names=["no name"]):
        kind("")


@dataclass(frozen=True, slots=True)
class Unmade:
    name: str


@dataclass(frozen=True, slots=True)
class SameByName:
    name: str
    size: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameByName) and other.name == self.name

    def __repr__(self) -> str:
        return "by name"


def test_whichever_method_is_called_first() -> None:
    restored = object.__new__(Unmade)
    object.__setattr__(restored, "name", "a")
    assert hash(restored) == hash(("a",))
    assert restored == Unmade("a")


def test_what_a_class_does_itself_is_kept() -> None:
    assert SameByName("a", 1) == SameByName("a", 2)
    assert repr(SameByName("a")) == "by name"
    assert hash(SameByName("a", 1)) == hash(("a", 1))
