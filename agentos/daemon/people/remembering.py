"""What becomes of a memory that a run proposed: a resource of the registry, or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from agentos.domain import Kind, MemoryProposal, ProposalState, ResourceId, Snapshot
from agentos.errors import Conflict, ErrorKind
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.resources import parse_id
from agentos.resources.documents import FIRST, documents_of, readers

_BEGINS = re.compile(r"#|[-*+]\s|\d+[.)]\s")
_NAME_WORDS = 5
_DESCRIPTION = 200  # characters


def accept(home: Home, proposal: MemoryProposal, author: str, name: str = "") -> ResourceId:
    """Make it a memory, which later runs see: a resource of this name, else of one made from its first words.

    Raises Conflict where there is another memory of that name, the harness reads another form, or somebody else has
    answered meanwhile: then the memory is taken out again.
    """
    registry = Registry(home.registry)
    main = registry.stable()
    _refuse_other_form(registry, main)
    if name:
        resource = parse_id(f"memory/{name.removeprefix('memory/')}")
        if registry.files(main, str(resource)) not in ({}, memory_files(resource, proposal)):
            raise Conflict(
                f"There is a {resource} already: give another --name, or edit that one.", kind=ErrorKind.TAKEN
            )
    else:
        resource = _free_name(registry, main, proposal)
    message = f"Remember: {proposal.text.splitlines()[0][:60]}"
    is_new = not registry.files(main, str(resource))
    registry.commit(memory_files(resource, proposal), message, "edit", base=main, author=author)
    try:
        _decide(home, proposal, ProposalState.ACCEPTED, resource=str(resource))
    except Conflict as answered:
        if is_new:
            registry.retire(resource, str(answered))
        raise
    return resource


def turn_down(home: Home, proposal: MemoryProposal, reason: str) -> None:
    """It is not proposed again. Raises Conflict where it was answered already."""
    _decide(home, proposal, ProposalState.REJECTED, reason=reason)


def _refuse_other_form(registry: Registry, main: Snapshot) -> None:
    """A proposal becomes a memory of the first form, which a harness may not read any more."""
    documents = documents_of(registry.names(main), lambda path: registry.files(main, path))
    for reader in readers(documents):
        if reader.form != FIRST:
            raise Conflict(
                f"{reader.harness} reads memories of form {reader.form}, and a proposal becomes one of form "
                f"{FIRST}. Write it down in that form: agentos registry edit memory/NAME"
            )


def _decide(
    home: Home, proposal: MemoryProposal, state: ProposalState, *, resource: str = "", reason: str = ""
) -> None:
    with closing(Ledger(home.ledger)) as ledger:
        try:
            now = datetime.now(UTC)
            ledger.decide(replace(proposal, state=state, decided_at=now, resource=resource, reason=reason))
        except Conflict:
            # The daemon closes a proposal that it finds in a memory, where it stands by now.
            found = ledger.get(MemoryProposal, proposal.id)
            if (found.state, found.resource) != (state, resource):
                raise


def memory_files(resource: ResourceId, proposal: MemoryProposal) -> Mapping[str, bytes]:
    """The resource that a proposal becomes: one lesson, further lines of it indented."""
    first, *rest = proposal.text.splitlines()
    lesson = f"- {first}"
    for line in filter(None, map(str.strip, rest)):
        # what would be read as a heading or as a lesson of its own goes on in the line before
        lesson += f" {line}" if _BEGINS.match(line) else f"\n  {line}"
    description = " ".join((proposal.why or proposal.text).split())[:_DESCRIPTION]
    # JSON's text is TOML's as well, once control characters are gone, which they are
    document = f"description = {json.dumps(description, ensure_ascii=False)}\nevolvable = true\n"
    return {
        f"{resource}/memory.md": f"# {resource.name}\n\n{lesson}\n".encode(),
        f"{resource}/resource.toml": document.encode(),
    }


def _free_name(registry: Registry, main: Snapshot, proposal: MemoryProposal) -> ResourceId:
    """A name of its first words that nothing else has; the one it has where it was written before."""
    words: Sequence[str] = re.findall(r"[a-z0-9]+", proposal.text.lower())[:_NAME_WORDS]
    stem = "-".join(words)[:50].strip("-") or "lesson"
    number = 1
    while True:
        resource = ResourceId(Kind.MEMORY, stem if number == 1 else f"{stem}-{number}")
        present = dict(registry.files(main, str(resource)))
        if present in ({}, memory_files(resource, proposal)):
            return resource
        number += 1
