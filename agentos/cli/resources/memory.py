"""``agentos memory``: what agents remember, and what runs propose to remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import moment_text, print_json, print_table, print_text
from agentos.domain import Json, Kind, MemoryProposal, ProposalState, Snapshot, Version
from agentos.errors import Conflict, NotFound, meant
from agentos.home import Home
from agentos.ledger.reading import Reader

if TYPE_CHECKING:
    from agentos.ports import KnownLesson

app = noun("Look at memories, and accept or reject those that runs propose.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The proposal's id, or enough of its start or end.")]


@app.command("list")
def list_(
    all: Annotated[
        bool, typer.Option("--all", help="Also show proposals that were accepted or rejected.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the memories, and the proposals that wait for your decision."""
    proposals = [
        proposal
        for proposal in Reader(Home.find().ledger).find(MemoryProposal)
        if all or proposal.state is ProposalState.OPEN
    ]
    memories = _memories()
    if as_json:
        known = {name: text for name, text in memories.items() if _form(name) == 1}
        lessons = _told(_fared(known))
        print_json({"memories": memories, "lessons": lessons, "proposals": proposals})
        return
    rows = [(name, "memory", _lessons(text)) for name, text in memories.items()]
    rows += [(proposal.id, _standing(proposal), proposal.text) for proposal in proposals]
    print_table(("id", "is", "text"), rows, empty="Nothing is remembered yet.", below=True)


@app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID|NAME", help="A proposal's id, or a memory's name.")],
    as_json: AsJson = False,
) -> None:
    """Show one proposal with the run that made it, or the text of one memory."""
    memories = _memories()
    name = f"memory/{id.removeprefix('memory/')}"
    if name in memories:
        form = _form(name)
        lessons = _told(_fared({name: memories[name]})) if form == 1 else []
        if as_json:
            print_json({"memory": name, "form": form, "text": memories[name], "lessons": lessons})
            return
        print_text(name, "bold")
        if form != 1:
            print_text(f"It has form {form}, which only the harness knows that reads it.", "dim")
            print_text(memories[name])
            return
        rows = [
            (one["id"], one["since"], f"{one['successes']}/{one['uses']}", f"{one['score']:.2f}", one["text"])
            for one in lessons
        ]
        print_table(("lesson", "since", "passed", "score", "text"), rows, empty="Nothing yet.", below=True)
        return
    proposal = _proposal(Reader(Home.find().ledger), id, [key.removeprefix("memory/") for key in memories])
    if as_json:
        print_json(proposal)
        return
    print_text(f"{proposal.id}  ({_standing(proposal)})", "bold")
    print_text(proposal.text)
    if proposal.why:
        print_text(f"why        {proposal.why}")
    print_text(f"run        {proposal.run_id}, {moment_text(proposal.at)}")
    if proposal.reason:
        print_text(f"reason     {proposal.reason}")
    if proposal.state is ProposalState.OPEN:
        print_text(f"type: agentos memory accept {proposal.id}, or reject", "dim")


@app.command()
def accept(
    id: Id,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="What to call the memory; else its first words.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Accept a proposal: it becomes a memory, which later runs see."""
    from agentos.cli.resources.registry_edit import author
    from agentos.daemon.people.remembering import accept as remember

    home = Home.find()
    proposal = _open_proposal(Reader(home.ledger), id)
    resource = remember(home, proposal, author(), name)
    if as_json:
        print_json({"proposal": proposal.id, "resource": str(resource)})
    else:
        print_text(f"{resource} is remembered from now on.")


@app.command()
def reject(
    id: Id,
    reason: Annotated[str, typer.Option("--reason", "-m", metavar="TEXT", help="Why, for the record.")] = "",
    as_json: AsJson = False,
) -> None:
    """Reject a proposal; it is not proposed again."""
    from agentos.daemon.people.remembering import turn_down

    home = Home.find()
    proposal = _open_proposal(Reader(home.ledger), id)
    turn_down(home, proposal, reason)
    if as_json:
        print_json({"proposal": proposal.id, "reason": reason})
    else:
        print_text(f"{proposal.id} is rejected.")


def _memories() -> dict[str, str]:
    """The text of each memory of the registry, by kind/name."""
    from agentos.registry.store import Registry

    registry = Registry(Home.find().registry)
    main = registry.stable()
    return {
        str(found): registry.files(main, str(found))[f"{found}/memory.md"].decode(errors="replace").strip()
        for found in registry.names(main)
        if found.kind is Kind.MEMORY
    }


def _form(name: str) -> int:
    """Of the memory ``kind/name``, as it stands."""
    from agentos.registry.store import Registry
    from agentos.resources import parse_id
    from agentos.resources.documents import document_of, form_in

    registry, path = Registry(Home.find().registry), document_of(parse_id(name))
    return form_in(registry.files(registry.stable(), path).get(path, b""))


def _fared(memories: Mapping[str, str]) -> Sequence[KnownLesson]:
    """The lessons of memories (kind/name -> text), with how the runs ended that had them."""
    from agentos.evolver.documents import load_policy
    from agentos.evolver.memory.lessons import fared
    from agentos.registry.store import Registry
    from agentos.shipped import folder

    home = Home.find()
    registry, reader = Registry(home.registry), Reader(home.ledger)
    own = home.root / "policy.toml"
    policy = load_policy(own if own.exists() else folder("evolver") / "policy.toml")
    texts = {f"{name}/memory.md": text for name, text in memories.items()}
    runs = {f"{name}/memory.md": reader.recent_runs(name, policy.look_back.lessons) for name in memories}

    def text_at(snapshot: Snapshot, path: str) -> str:
        return registry.files(snapshot, path).get(path, b"").decode(errors="replace")

    return fared(texts, runs, text_at, datetime.now(UTC), policy.mine.half_life_days)


def _told(lessons: Sequence[KnownLesson]) -> list[dict[str, Json]]:
    """Lessons with the versions that brought them, and the evolutions that these came from."""
    since = {path: _brought(path) for path in {lesson.path for lesson in lessons}}
    told: list[dict[str, Json]] = []
    for lesson in lessons:
        version = since[lesson.path].get(lesson.id)
        told.append(
            {
                "memory": lesson.path.rpartition("/")[0],
                "id": lesson.id,
                "text": lesson.text,
                "uses": lesson.uses,
                "successes": lesson.successes,
                "score": lesson.score,
                "since": version.number if version else "",
                "evolution": version.evolution if version else None,
            }
        )
    return told


def _brought(path: str) -> dict[str, Version]:
    """Of each lesson in a memory's text at ``path``: the oldest version from which on it has stood there."""
    from agentos.evolver.memory.lessons import lessons_in
    from agentos.registry.store import Registry
    from agentos.resources import parse_id

    registry = Registry(Home.find().registry)
    found: dict[str, Version] = {}
    standing: set[str] | None = None  # in all versions so far
    for version in registry.versions(parse_id(path.rpartition("/")[0])):
        text = registry.files(registry.repository.snapshot(version.commit), path).get(path, b"")
        there = {one.id for one in lessons_in(text.decode(errors="replace"))}
        standing = there if standing is None else standing & there
        if not standing:
            break
        found |= dict.fromkeys(standing, version)
    return found


def _lessons(text: str) -> str:
    """A memory in one line, without its headings."""
    from agentos.evolver.memory.lessons import lessons_in

    return " · ".join(lesson.text for lesson in lessons_in(text)) or "nothing yet"


def _standing(proposal: MemoryProposal) -> str:
    return {
        ProposalState.OPEN: "proposed",
        ProposalState.ACCEPTED: f"accepted as {proposal.resource}" + _why(proposal),
        ProposalState.REJECTED: "rejected",
    }[proposal.state]


def _why(proposal: MemoryProposal) -> str:
    return f" ({proposal.reason})" if proposal.reason else ""


def _proposal(reader: Reader, id: str, known: Sequence[str] = ()) -> MemoryProposal:
    try:
        return reader.get(MemoryProposal, reader.resolve("proposal", id))
    except NotFound:
        raise NotFound(
            f"There is no memory and no proposal '{id}'. {meant(id, known, 'Try: `agentos memory list --all`')}"
        ) from None


def _open_proposal(reader: Reader, id: str) -> MemoryProposal:
    proposal = _proposal(reader, id)
    if proposal.state is not ProposalState.OPEN:
        raise Conflict(f"{proposal.id} is {_standing(proposal)} already.")
    return proposal
