"""``agentos failure``: failing runs that are the same failure, and which of them are left alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import LIMIT_MAX, print_json, print_table, print_text, time_text
from agentos.domain import AT_WORK, MUTED_CURSOR, WITHOUT_SUCCESS, Evolution, EvolutionState
from agentos.errors import ErrorKind, NotFound, Unavailable, UserError
from agentos.home import Home
from agentos.ledger.listing import FailureGroup, failure_groups, odd_cursors
from agentos.ledger.reading import Reader

app = noun("List recurring failures, each counted once; a muted one is left alone.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The failure's id, or enough of its start.")]
Reason = Annotated[str, typer.Option("--reason", "-m", metavar="TEXT", help="Why, for the record.")]

_TOOL_FILE = re.compile(r"(?<![\w/])(?:tool/[a-z0-9-]+/tool|skill/[a-z0-9-]+/tools/\w+)\.py\b")
_MOST = 1_000  # of which one is found by the start of its id
_LOOKED_AT = 50  # newest failures of which it is told why they open nothing


class Standing(StrEnum):
    """Why a failure opens no evolution as it is."""

    FEW = "waiting for one more of the same kind"
    MUTED = "muted"
    RETIRED = "of what was retired"
    DECLINED = "closed by a person"
    TRIED = "tried in vain, until another task fails so"
    GIVEN_UP = "given up"
    ELSEWHERE = "no fault of a resource"


@app.command("list")
def list_(
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=LIMIT_MAX, help="How many, the one that was seen last first."),
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """List recurring failures: how often, first and last seen, and why nothing is done about one."""
    home = Home.find()
    reader = Reader(home.ledger)
    muted = odd_cursors(reader, MUTED_CURSOR)
    found = failure_groups(reader, limit)
    known = standings(home, reader, found)
    if as_json:
        print_json(
            [
                {
                    **_plain(group, muted=group.fingerprint.id in muted),
                    "standing": known[group.fingerprint.id].name.lower()
                    if group.fingerprint.id in known
                    else "",
                }
                for group in found
            ]
        )
        return
    texts = as_they_lie(home, [group.fingerprint.text for group in found])
    print_table(
        ("failure", "seen", "first", "last", "resource", "what", ""),
        [
            (
                group.fingerprint.id,
                f"{group.count:,}",
                time_text(group.first_at),
                time_text(group.last_at),
                group.fingerprint.resource,
                f"{group.fingerprint.klass}: {text}",
                known.get(group.fingerprint.id, ""),
            )
            for group, text in zip(found, texts, strict=True)
        ],
        empty="No failure yet. A run that just failed is looked at once no task waits.",
        below=True,
    )


@app.command()
def mute(id: Id, reason: Reason = "", as_json: AsJson = False) -> None:
    """Do not try to mend a failure from now on. It is still counted; an evolution under way goes on."""
    from agentos.evolver.find import triage

    _turn(id, reason, triage.mute, as_json=as_json, muted=True)


@app.command()
def unmute(id: Id, reason: Reason = "", as_json: AsJson = False) -> None:
    """Try to mend a muted failure again."""
    from agentos.evolver.find import triage

    _turn(id, reason, triage.unmute, as_json=as_json, muted=False)


def idle_failures(home: Home, reader: Reader) -> Mapping[str, int]:
    """How many of the newest failures open no evolution, by why."""
    counted = Counter(standings(home, reader, failure_groups(reader, _LOOKED_AT)).values())
    return {standing.value: count for standing, count in counted.most_common()}


def idle_text(counted: Mapping[str, int]) -> str:
    """The same on one line."""
    each = ", ".join(f"{count} {standing}" for standing, count in counted.items())
    return f"{sum(counted.values())} open no evolution: {each}  (`agentos failure list`)"


def standings(home: Home, reader: Reader, groups: Sequence[FailureGroup]) -> Mapping[str, Standing]:
    """By the id of each failure that opens no evolution as it is: why. Without those that have one at work or behind them."""
    from agentos.daemon.offline import policy_of
    from agentos.evolver.documents import load_taxonomy
    from agentos.evolver.policy import Policy
    from agentos.shipped import folder

    try:
        rules = policy_of(home).mine
    except UserError:  # a policy that cannot be read is told elsewhere
        rules = Policy().mine
    mendable = {klass.name for klass in load_taxonomy(folder("evolver") / "taxonomy.toml") if klass.evolvable}
    muted, retired = odd_cursors(reader, MUTED_CURSOR), _retired(home, groups)
    found: dict[str, Standing] = {}
    for group in groups:
        name = group.fingerprint.id
        (last,) = reader.newest(Evolution, 1, fingerprint_id=name) or (None,)
        if last is not None and last.state in AT_WORK:
            continue
        if name in muted:
            found[name] = Standing.MUTED
        elif group.fingerprint.klass not in mendable:
            found[name] = Standing.ELSEWHERE
        elif group.fingerprint.resource in retired:
            found[name] = Standing.RETIRED
        elif last is None and group.count < rules.recurrence:
            found[name] = Standing.FEW
        elif last is not None and (why := _stopped(last)) is not None:
            found[name] = why
    return found


def _stopped(last: Evolution) -> Standing | None:
    if last.state is EvolutionState.CIRCUIT_BROKEN:
        return Standing.GIVEN_UP
    if last.is_closed:
        return Standing.DECLINED
    return Standing.TRIED if last.state in WITHOUT_SUCCESS else None


def _retired(home: Home, groups: Sequence[FailureGroup]) -> frozenset[str]:
    """The resources of these failures for which triage opens nothing, since they were taken out."""
    from agentos.evolver.find.triage import is_retired
    from agentos.registry.store import Registry

    with suppress(UserError, Unavailable):  # a registry that cannot be read is told elsewhere
        registry = Registry(home.registry)
        return frozenset(
            name for name in {group.fingerprint.resource for group in groups} if is_retired(registry, name)
        )
    return frozenset()


def as_they_lie(home: Home, texts: Sequence[str]) -> Sequence[str]:
    """The texts with the document of a tool that has no source file (``tool.json``) in the place of such a file."""
    from agentos.programs import MANIFEST
    from agentos.registry.store import Registry

    try:
        registry = Registry(home.registry)
        tree = registry.stable().tree

        def there(found: re.Match[str]) -> str:
            path = found[0]
            beside = path.removesuffix("/tool.py") if path.startswith("tool/") else path.removesuffix(".py")
            document = f"{beside}/{MANIFEST}"
            has = registry.repository.entry
            return document if has(tree, path) is None and has(tree, document) is not None else path

        return [_TOOL_FILE.sub(there, text) for text in texts]
    except (UserError, Unavailable):  # a registry that cannot be read is told elsewhere
        return texts


def _turn(id: str, reason: str, turn: Callable[..., None], *, as_json: bool, muted: bool) -> None:
    from agentos.daemon.offline import offline_context
    from agentos.evolver.promote.consent import person

    home = Home.find()
    group = _found(Reader(home.ledger), id)
    with offline_context(home) as parts:
        turn(parts.cursor, group.fingerprint.id, person(), reason)
    if as_json:
        print_json(_plain(group, muted=muted))
    else:
        print_text(f"{group.fingerprint.id} is {'muted' if muted else 'muted no longer'}.", "green")


def _found(reader: Reader, fragment: str) -> FailureGroup:
    found = [group for group in failure_groups(reader, _MOST) if group.fingerprint.id.startswith(fragment)]
    if not found or not fragment:
        raise NotFound(f"There is no failure {fragment!r}. Try: `agentos failure list`")
    if len(found) > 1:
        told = f"{fragment!r} could be any of {len(found)} failures: give more of its id."
        raise UserError(told, kind=ErrorKind.AMBIGUOUS)
    return found[0]


def _plain(group: FailureGroup, *, muted: bool) -> dict[str, object]:
    return {
        "fingerprint": group.fingerprint,
        "count": group.count,
        "first_at": group.first_at,
        "last_at": group.last_at,
        "muted": muted,
    }
