"""Which worker is blamed where two say other things of the same source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from agentos.benches import BenchResult
from agentos.daemon.evolve.benches import _CheckedBench

Said = Sequence[tuple[str, bool]]  # host, and whether the source passes, one for each time that it is asked


class Answers:
    """A bench whose box may be on another host each time."""

    def __init__(self, said: Said) -> None:
        self._said = iter(said)
        self.host = said[0][0]

    def try_source(self, source: str, *, trace: bool = False, cases: Any = None) -> BenchResult:
        self.host, passed = next(self._said)
        return BenchResult((passed,), (float(passed),), ({"n": 1},), ())

    def close(self) -> None: ...


class Blames:
    """Trusts all, and asks again for each answer."""

    def __init__(self) -> None:
        self.blamed: list[str] = []

    def of(self, name: str) -> str:
        return ""

    def distrust(self, name: str, why: str) -> None:
        self.blamed.append(name)

    def is_chosen(self, share: float) -> bool:
        return True


@pytest.mark.parametrize(
    ("own", "other", "third", "blamed"),
    [
        ([("a", True), ("a", True)], ("b", False), ("c", False), ["a"]),
        ([("a", True), ("a", True)], ("b", False), ("c", True), ["b"]),
        ([("a", True), ("a", False)], ("b", False), ("c", False), []),  # not alike twice on one host
        ([("a", True), ("d", True)], ("b", False), ("c", False), []),  # gone meanwhile: two against two
    ],
)
def test_who_stands_alone_is_blamed(
    own: Said, other: tuple[str, bool], third: tuple[str, bool], blamed: list[str]
) -> None:
    benches: Iterator[Any] = iter([Answers(own), Answers([other]), Answers([third])])
    trust = Blames()
    _CheckedBench(lambda avoid: next(benches), trust, 1.0).try_source("source")
    assert trust.blamed == blamed
