"""What a person put right in a conversation becomes a check only where the conversation bears it out."""

from __future__ import annotations

import pytest

from agentos.trajectories.conversations import corrected_values


def talk(*said: str) -> list[dict[str, object]]:
    """A person and an assistant by turns."""
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(said)]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (("Add the invoices", "It is 44.", "No, the total should be 41.30.", "It is 41.30 then."), ["41.30"]),
        (
            ("Who signs?", "Bob.", 'That is wrong: it says "Ada Lovelace".', "Ada Lovelace signs."),
            ["Ada Lovelace"],
        ),
        (("Which file?", "a.txt", "no, not `a.txt` but `b/c.txt`", "It is b/c.txt."), ["b/c.txt"]),
        # what goes on objects to nothing
        (("Sum of 2024?", "It is 44.", "And of 2025?", "Of 2025 it is 51."), []),
        # the answer did not take it up
        (("Add", "It is 44.", "No, the total should be 41.30.", "I stay with 44."), []),
        # it was there before
        (("Add", "It is 44 or 41.30.", "No, it should be 41.30.", "It is 41.30."), []),
        # part of another number or word
        (("Add", "It is 44.", "No, it should be 41.", "It is 1415, or 41.30, or x41."), []),
        # nobody answered after it
        (("Add", "It is 44.", "No, the total should be 41.30."), []),
        (("No, the total should be 41.30.", "It is 41.30."), []),
        ((), []),
    ],
)
def test_only_what_was_objected_and_taken_up(said: tuple[str, ...], found: list[str]) -> None:
    assert corrected_values(talk(*said)) == found


def test_few_are_taken_and_long_talk_is_read_fast() -> None:
    numbers = [f"{n}.5" for n in range(10, 10_000)]
    long = "No, it should be " + " ".join(numbers)
    assert corrected_values(talk("x", "y", long, " ".join(numbers))) == numbers[:5]
    assert corrected_values(talk("x", "y", "no " + '"' * 200_000, "z")) == []
    assert corrected_values(talk("x", "y", "no " + "1." * 100_000, "z")) == []
