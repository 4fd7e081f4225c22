"""How text becomes words, and what of a resource can be found by."""

from __future__ import annotations

import random
import time

import pytest

from agentos.domain import Kind, ResourceId
from agentos.evolver.memory.lessons import lessons_in
from agentos.retrieval.texts import entries, lessons, telling_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("csvToJson", ["csv", "to", "json"]),
        ("HTTPServer parse_XML", ["http", "server", "parse", "xml"]),
        ("sha256-file", ["sha256", "file"]),
        ("don't", ["don", "t"]),
        ("", []),
    ],
)
def test_identifiers_are_taken_apart(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_words_that_say_nothing_are_left_out_unless_there_are_no_others() -> None:
    assert telling_words("how do I get the total of it") == ["total"]
    assert telling_words("to be or not to be")[:2] == ["to", "be"]


def test_a_tool_is_found_by_its_parameters_and_its_documents() -> None:
    source = b'''"""Doc."""
from pydantic import BaseModel, Field
TOOL = {"name": "area", "description": "Area of a polygon", "effects": ["pure"]}
class Input(BaseModel):
    corners: list[float] = Field(description="clockwise coordinates")
class Output(BaseModel):
    hectares: float
def run(input: Input) -> Output:
    return Output(hectares=1)
'''
    files = {
        "tool/area/tool.py": source,
        "tool/area/resource.toml": b'description = "How large a field is"\n',
    }
    (entry,) = entries(ResourceId(Kind.TOOL, "area"), files)
    assert entry.description == "How large a field is"
    for word in ("polygon", "corners", "clockwise", "hectares"):
        assert word in entry.headings


def test_lessons_are_lines_and_indented_lines_go_on() -> None:
    text = b"# Lessons\n\n- one\n  goes on\n* two\n3. three\nfour\n   - five\n"
    assert lessons({"memory/m/memory.md": text}, ResourceId(Kind.MEMORY, "m")) == [
        "one goes on",
        "two",
        "three",
        "four",
        "five",
    ]


PIECES = (
    "- ",
    "2) ",
    "  ",
    "\t",
    "# ",
    "  # ",
    "a",
    "b c",
    " <!-- m-0a1f0a1f -->",
    "-",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\n\n",
)


def test_what_is_searched_is_what_the_evolver_tells_apart() -> None:
    dice = random.Random(1)
    for _ in range(1_000):
        text = "".join(dice.choices(PIECES, k=dice.randint(1, 12)))
        found = lessons({"memory/m/memory.md": text.encode()}, ResourceId(Kind.MEMORY, "m"))
        assert found == [lesson.text for lesson in lessons_in(text)], text


def test_a_long_gap_in_a_lesson_takes_no_time() -> None:
    text = f"- a{' ' * 30_000}b\n"
    began = time.process_time()
    assert [lesson.text for lesson in lessons_in(text)] == [text[2:-1]]
    assert lessons({"memory/m/memory.md": text.encode()}, ResourceId(Kind.MEMORY, "m")) == [text[2:-1]]
    assert time.process_time() - began < 1.0
