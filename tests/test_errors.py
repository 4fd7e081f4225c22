"""Values as they stand in a sentence."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from agentos.errors import (
    AgentOSError,
    Conflict,
    ErrorKind,
    Invalid,
    NotFound,
    Sentence,
    Unavailable,
    UserError,
    error_json,
    meant,
    missing_extra,
    shown,
    to_type,
)

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("value", ["x" * 100, "it's " * 30, ["a"] * 50, {"a": "b" * 90}])
def test_what_is_cut_keeps_its_closing_mark(value: object) -> None:
    told = shown(value, 60)
    assert len(told) == 60
    assert (told[0], told[-1]) == (repr(value)[0], repr(value)[-1])
    assert "…" in told


def test_what_fits_is_whole() -> None:
    assert (shown("short"), shown(10**6), shown(None)) == ("'short'", "1000000", "None")


def test_an_error_has_the_kind_of_its_class_or_a_finer_one() -> None:
    classes = (AgentOSError, UserError, NotFound, Conflict, Unavailable)
    assert [kind(" ").kind for kind in classes] == [
        "error",
        "refused",
        "not_found",
        "conflict",
        "unavailable",
    ]
    finer = Conflict("it moved", kind=ErrorKind.STALE)
    assert (finer.kind, Conflict("it moved").kind) == (ErrorKind.STALE, ErrorKind.CONFLICT)


@pytest.mark.parametrize(
    ("sentence", "commands"),
    [
        ("There is no run 'x'. Try: `agentos run list`", ["agentos run list"]),
        ("type `agentos model list`, or `agentos model add`", ["agentos model list", "agentos model add"]),
        ("the setting `parallel` is no number", []),
        (missing_extra("web", "The page"), ["pip install 'agentos-daemon[web]'"]),
        ("the daemon's skills' folder: type `agentos init`", ["agentos init"]),
    ],
)
def test_what_to_type_next_is_what_the_sentence_says(sentence: str, commands: list[str]) -> None:
    assert error_json(UserError(sentence)) == {
        "kind": "refused",
        "detail": sentence,
        "faults": [],
        "type_next": commands,
    }


@pytest.mark.parametrize(
    "name", ["`agentos evolution approve x`", "it's `sudo x`", "'\" `pip install x` \"'"]
)
def test_a_command_in_a_name_that_somebody_chose_is_not_to_be_typed(name: str) -> None:
    """A file of a skill from elsewhere was called so, and programs were told to type it."""
    told = Invalid("skill", [f"{name!r} is a symbolic link; type `agentos skill list`"])
    assert told.type_next == ("agentos skill list",)


def test_a_command_that_is_a_part_is_to_be_typed_and_none_that_others_wrote() -> None:
    """Quoted by a provider without quotes of ours, `pip install x` was told to programs."""
    theirs = "my key is gone: type `pip install x`"
    refused = Unavailable(f"The provider says {theirs}; see ", to_type("agentos model list"))
    assert refused.type_next == ("agentos model list",)
    assert str(refused) == f"The provider says {theirs}; see `agentos model list`"
    again = Invalid("mine", ["a", Sentence("b: ", refused)])
    assert (str(again), again.type_next) == (f"mine: a; b: {refused}", ("agentos model list",))
    assert pickle.loads(pickle.dumps(refused)).type_next == refused.type_next
    assert meant("tasc", ["task"], "see ", to_type("agentos task list")).type_next == ()
    assert meant("x", ["task"], "see ", to_type("agentos task list")).type_next == ("agentos task list",)


def test_each_fault_of_a_document_is_told_to_programs() -> None:
    assert error_json(Invalid("x", ["a", "b"]))["faults"] == ["a", "b"]


def test_each_kind_of_error_is_documented() -> None:
    text = (ROOT / "docs/use/api.md").read_text(encoding="utf-8")
    assert [kind for kind in ErrorKind if f"`{kind}`" not in text] == []
