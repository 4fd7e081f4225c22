"""Which form of memories a harness reads, and which one they have."""

from __future__ import annotations

import pytest

from agentos.domain import Kind, ResourceId
from agentos.errors import Invalid
from agentos.resources import read
from agentos.resources.documents import concerned_by, disagreements, form_in, with_form
from tests.refusals import raises

AGENT, OTHER = ResourceId(Kind.AGENT, "default"), ResourceId(Kind.AGENT, "other")
HARNESS, SPARE = ResourceId(Kind.HARNESS, "default"), ResourceId(Kind.HARNESS, "spare")
NOTES, FACTS = ResourceId(Kind.MEMORY, "notes"), ResourceId(Kind.MEMORY, "facts")


def document(state: str = "", more: str = "") -> bytes:
    return f'description = "D"\n{f"state = {state}" if state else ""}\n{more}\n'.encode()


def files(resource: ResourceId, state: str) -> dict[str, bytes]:
    name, text = {
        Kind.HARNESS: ("harness.py", b"def run(sdk):\n    pass\n"),
        Kind.MEMORY: ("memory.md", b"# Lessons\n"),
    }[resource.kind]
    return {f"{resource}/resource.toml": document(state), f"{resource}/{name}": text}


@pytest.mark.parametrize("resource", [HARNESS, NOTES], ids=str)
def test_a_document_says_the_form_and_1_is_meant_where_it_does_not(resource: ResourceId) -> None:
    assert read(resource, files(resource, "")).settings["state"] == 1
    assert read(resource, files(resource, "7")).settings["state"] == 7


@pytest.mark.parametrize("resource", [HARNESS, NOTES], ids=str)
@pytest.mark.parametrize("state", ["0", "-1", "1.5", "true", '"2"', "[2]"])
def test_anything_but_a_whole_number_from_1_is_named(resource: ResourceId, state: str) -> None:
    with pytest.raises(Invalid, match="'state' must be a whole number from 1"):
        read(resource, files(resource, state))
    assert form_in(document(state)) == 1


@pytest.mark.parametrize("text", [b"\xff", b"state", b"= =", b""])
def test_a_document_that_cannot_be_read_says_nothing(text: bytes) -> None:
    assert form_in(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        'description = "D"\n',
        'description = "D"\nstate = 1\n',
        'state=1 # so far\ndescription = "D"\n',
        "",
        'description = "D"\n[more]\nstate = 9\n',
    ],
)
def test_a_form_is_written_into_a_document_or_not_at_all(text: str) -> None:
    try:
        made = with_form(text, 2)
    except ValueError:
        assert "[more]" in text  # the only 'state' that is found is another one
        return
    assert form_in(made.encode()) == 2
    assert ("description" in made) == ("description" in text)


def test_a_form_is_not_written_into_a_text_within_the_document() -> None:
    with raises(ValueError, message="form.not_written"):
        with_form('description = """\nstate = 1\n"""\n', 2)


def test_whoever_reads_and_what_is_read_have_to_agree() -> None:
    documents = {AGENT: document(), HARNESS: document(), NOTES: document("1"), FACTS: document()}
    assert disagreements(documents) == []
    (told,) = disagreements({**documents, HARNESS: document("2")})
    assert "harness/default (agent default) reads memories of form 2" in told
    assert "memory/facts (form 1), memory/notes (form 1)" in told
    (told,) = disagreements({**documents, FACTS: document("3")})
    assert "memory/facts (form 3)" in told
    assert "notes" not in told


def test_a_harness_that_no_agent_stands_on_reads_nothing() -> None:
    documents = {AGENT: document(), HARNESS: document(), NOTES: document(), SPARE: document("2")}
    assert disagreements(documents) == []
    (told,) = disagreements({**documents, OTHER: document(more='harness = "spare"')})
    assert "harness/spare (agent other)" in told
    both = {**documents, OTHER: document(more='harness = "spare"'), NOTES: document("2")}
    (told,) = disagreements(both)
    assert "harness/default (agent default) reads memories of form 1" in told


def test_beside_a_memory_that_changed_no_other_one_is_looked_at() -> None:
    names = [AGENT, HARNESS, NOTES, FACTS]
    assert concerned_by([NOTES], names) == [AGENT, HARNESS, NOTES]
    for changed in (AGENT, HARNESS):
        assert concerned_by([changed], names) == names
    assert concerned_by([ResourceId(Kind.TOOL, "x")], names) == [AGENT, HARNESS]
