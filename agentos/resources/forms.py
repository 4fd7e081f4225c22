"""The form of what is remembered: which one a harness reads, and which one a memory has.

Memories are the one thing of a harness' own making that outlives its runs. ``state = N`` in a harness'
``resource.toml`` says which form of them it reads, in a memory's which form it has; 1 where nothing is said.
Read off the documents alone, so that a whole snapshot is looked at for the price of a few small files.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from agentos.domain import Json, Kind, ResourceId
from agentos.resources.documents import DOCUMENT

FIRST = 1
CONCERNED = (Kind.AGENT, Kind.HARNESS, Kind.MEMORY)  # whose documents decide whether forms agree
_STATE = re.compile(r"(?m)^state[ \t]*=.*$")


@dataclass(frozen=True, slots=True)
class FormReader:
    """A harness that agents stand on, and the form of memories that it reads."""

    harness: ResourceId
    agents: tuple[str, ...]
    form: int


def document_of(resource: ResourceId) -> str:
    """The registry path of the document that says the form."""
    return f"{resource}/{DOCUMENT}"


def concerned_by(changed: Collection[ResourceId], names: Iterable[ResourceId]) -> list[ResourceId]:
    """Those of ``names`` whose documents may disagree after the change: not memories beside one that changed,
    of which there may be thousands."""
    whole = any(name.kind in CONCERNED and name.kind is not Kind.MEMORY for name in changed)
    return [name for name in names if name.kind is not Kind.MEMORY or whole or name in changed]


def documents_of(
    names: Iterable[ResourceId], files: Callable[[str], Mapping[str, bytes]]
) -> dict[ResourceId, bytes]:
    """Those of ``names`` that decide whether forms agree; ``files`` gives what stands at a registry path."""
    paths = {name: document_of(name) for name in names if name.kind in CONCERNED}
    return {name: files(path).get(path, b"") for name, path in paths.items()}


def form_in(document: bytes) -> int:
    """What the document says, FIRST where it says nothing or nothing that can be read."""
    form = _table(document).get("state", FIRST)
    return form if isinstance(form, int) and not isinstance(form, bool) and form >= FIRST else FIRST


def with_form(document: str, form: int) -> str:
    """The document with this form in it; raises ValueError where that cannot be written into it."""
    line = f"state = {form}"
    text, count = _STATE.subn(line, document, count=1)
    if not count:  # in front: after a table's head it would be the table's
        text = f"{line}\n{document}"
    if tomllib.loads(text) != {**tomllib.loads(document), "state": form}:
        raise ValueError(f"'{line}' cannot be written into it")
    return text


def readers(documents: Mapping[ResourceId, bytes]) -> list[FormReader]:
    """The harnesses that agents stand on, sorted. Every agent reads every memory."""
    agents: dict[ResourceId, list[str]] = {}
    for resource, document in documents.items():
        if resource.kind is Kind.AGENT:
            name = str(_table(document).get(Kind.HARNESS.value, "default"))
            agents.setdefault(ResourceId(Kind.HARNESS, name), []).append(resource.name)
    return [
        FormReader(harness, tuple(sorted(agents[harness])), form_in(documents[harness]))
        for harness in sorted(agents)
        if harness in documents
    ]


def disagreements(documents: Mapping[ResourceId, bytes]) -> list[str]:
    """A sentence for each harness that would meet memories of another form than it reads.

    ``documents`` are those of all agents, harnesses and memories of a snapshot.
    """
    return list(_disagreements(documents))


def _disagreements(documents: Mapping[ResourceId, bytes]) -> Iterator[str]:
    forms = {name: form_in(text) for name, text in documents.items() if name.kind is Kind.MEMORY}
    for reader in readers(documents):
        others = [f"{name} (form {form})" for name, form in sorted(forms.items()) if form != reader.form]
        if others:
            agents = ", ".join(reader.agents)
            yield (
                f"{reader.harness} (agent {agents}) reads memories of form {reader.form}, and there is "
                f"{', '.join(others)}: 'state' in {DOCUMENT} says the form, and both must say the same"
            )


def _table(document: bytes) -> dict[str, Json]:
    try:
        return tomllib.loads(document.decode())
    except (ValueError, RecursionError):  # whoever examines the resource says so
        return {}
