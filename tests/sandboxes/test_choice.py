"""Who decides in which sandbox a box is made: settings, environment, tier, and what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentos.domain import Limits
from agentos.errors import ErrorKind, Unavailable
from agentos.ports import Box
from agentos.sandboxes import choice
from agentos.sandboxes.choice import Choice
from agentos.testing import FakeSandbox
from tests.refusals import raises


class Known(FakeSandbox):
    """Counts its starts; refuses where its kind is to be missing."""

    missing: frozenset[str] = frozenset()
    started: list[str] = []  # noqa: RUF012 - the record of one test

    def __init__(self, name: str) -> None:
        super().__init__(lambda channel: None)
        self.name = name
        self.closed = False

    def start(self) -> None:
        self.started.append(self.name)
        if self.name in self.missing:
            raise Unavailable(f"{self.name} is not here")

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Known, "started", [])
    monkeypatch.setattr(Known, "missing", frozenset())
    table = {name: lambda home, uid, name=name: Known(name) for name in ("bubblewrap", "docker")}
    monkeypatch.setattr(choice, "SANDBOXES", table)


@pytest.mark.parametrize(
    ("wanted", "asked", "prefer", "missing", "got"),
    [
        ("auto", "auto", "auto", (), "bubblewrap"),
        ("auto", "auto", "docker", (), "docker"),
        ("auto", "auto", "docker", ("docker",), "bubblewrap"),
        ("auto", "auto", "auto", ("bubblewrap",), "docker"),
        ("auto", "docker", "auto", (), "docker"),
        ("auto", "bubblewrap", "docker", (), "bubblewrap"),
        ("docker", "auto", "bubblewrap", (), "docker"),
        ("docker", "docker", "auto", (), "docker"),
    ],
)
def test_the_first_that_has_a_say_decides(
    wanted: str,
    asked: str,
    prefer: str,
    missing: tuple[str, ...],
    got: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(Known, "missing", frozenset(missing))
    assert Choice(tmp_path, None, wanted).choose(asked, prefer).name == got


@pytest.mark.parametrize(
    ("wanted", "asked", "missing", "why"),
    [
        ("auto", "docker", ("docker",), "docker is not here"),
        ("docker", "auto", ("docker",), "docker is not here"),
        ("auto", "auto", ("docker", "bubblewrap"), r"bubblewrap is not here\. docker is not here"),
        ("docker", "bubblewrap", (), "settings say docker for everything"),
        ("auto", "chroot", (), "no sandbox 'chroot'"),
    ],
)
def test_what_was_asked_for_by_name_is_never_replaced(
    wanted: str,
    asked: str,
    missing: tuple[str, ...],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(Known, "missing", frozenset(missing))
    with pytest.raises(Unavailable, match=why):
        Choice(tmp_path, None, wanted).choose(asked)


def test_each_is_started_once_and_one_that_was_away_not_asked_for_every_box(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Known, "missing", frozenset({"docker"}))
    made = Choice(tmp_path, None)
    box: Box
    for _ in range(3):
        assert made.choose(prefer="docker").name == "bubblewrap"
        with made.open(Limits(), light=True) as box:
            assert box.channel
    assert (made.name, made.level) == ("bubblewrap", "none")
    assert Known.started == ["docker", "bubblewrap"]
    chosen = made.choose()
    made.close()
    made.close()
    assert isinstance(chosen, Known)
    assert chosen.closed
    with raises(Unavailable, ErrorKind.CLOSED):
        made.choose()


class Stuck(Known):
    """Cannot be closed, as a plug-in's may be."""

    def close(self) -> None:
        raise Unavailable("it does not let go")


def test_one_that_cannot_be_closed_keeps_no_other_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stuck, other = Stuck("bubblewrap"), Known("docker")
    table = {"bubblewrap": lambda home, uid: stuck, "docker": lambda home, uid: other}
    monkeypatch.setattr(choice, "SANDBOXES", table)
    both = Choice(tmp_path, None)
    both.choose("bubblewrap")
    both.choose("docker")
    both.close()
    assert other.closed


def test_one_that_neither_starts_nor_closes_gives_way_to_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Known, "missing", frozenset({"bubblewrap"}))
    table = {"bubblewrap": lambda home, uid: Stuck("bubblewrap"), "docker": lambda home, uid: Known("docker")}
    monkeypatch.setattr(choice, "SANDBOXES", table)
    assert Choice(tmp_path, None).choose().name == "docker"
