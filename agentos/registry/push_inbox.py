"""What people push with plain git: ``git push … HEAD:incoming/NAME`` becomes versions, or is refused.

A push that is taken in becomes a merge commit on ``main``, so the pusher's clone can simply pull.
One that is refused moves to ``refused/NAME`` with a commit on top whose message says why, so that
plain git is enough to read the reasons too.
"""

from __future__ import annotations

from dataclasses import field

import pygit2

from agentos.domain import ResourceId, Snapshot, dataclass
from agentos.errors import Invalid, Unavailable
from agentos.registry.git import external_commits, reading
from agentos.registry.git.repository import INCOMING, REFUSED, Repository, stamp
from agentos.registry.wheels import Wheels
from agentos.registry.writing import CommitInfo, Load, advance, as_change, merge, tree_faults, trial
from agentos.resources.documents import FILE_MAX, PINS_FILE


@dataclass(frozen=True, slots=True)
class Push:
    """What became of one pushed branch: taken in as versions of ``resources``, or refused."""

    name: str
    resources: tuple[ResourceId, ...]
    faults: tuple[str, ...]


@dataclass(slots=True)
class _Plan:
    main: Snapshot
    tree: pygit2.Oid
    changed: list[ResourceId] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def take_in(repository: Repository, load: Load | None, wheels: Wheels, about: CommitInfo) -> list[Push]:
    """Merge or refuse every branch under ``incoming/``.

    What somebody did to ``main`` itself is treated as such a push (``direct``). ``about`` gives time
    and origin. A branch during whose trial ``main`` moved is left for the next call. Raises Unavailable
    where nothing came of any, and one could not be read or tried.
    """
    external_commits.set_aside(repository, about.now)
    pushes: list[Push] = []
    away: Unavailable | None = None
    for name in repository.names_below(INCOMING):
        try:
            pushed = repository.resolve(INCOMING + name)
            push = _take_in(repository, (name, pushed), load, wheels, about) if pushed else None
        except (Unavailable, pygit2.GitError) as error:  # it holds up no other
            away = Unavailable(f"The push incoming/{name} could not be taken in: {error}")
            continue
        pushes += [push] if push else []
    if away is not None and not pushes:
        raise away
    return pushes


def _take_in(
    repository: Repository,
    branch: tuple[str, pygit2.Oid],
    load: Load | None,
    wheels: Wheels,
    about: CommitInfo,
) -> Push | None:
    """One branch, by its name and its commit; None where it is left for the next call."""
    name, target = branch
    plan = _plan(repository, target)
    _complete(repository, plan, load, wheels)
    with repository.lock():
        if repository.tip() != plan.main or repository.resolve(INCOMING + name) != target:
            return None
        if plan.faults:
            _refuse(repository, name, target, plan.faults, about)
        else:
            _accept(repository, name, target, plan, about)
        repository.drop(INCOMING + name)
    return Push(name, () if plan.faults else tuple(plan.changed), tuple(plan.faults))


def _plan(repository: Repository, target: pygit2.Oid) -> _Plan:
    main = repository.tip()
    plan = _Plan(main, pygit2.Oid(hex=main.tree))
    base_id = repository.git.merge_base(main.commit, target)
    if base_id is None:
        plan.faults.append("it has no history in common with main: clone the registry, then edit")
        return plan
    base, theirs = repository.commit(base_id).tree_id, repository.commit(target).tree_id
    touched, others = reading.touched(repository, base, theirs)
    plan.faults += [f"{path} lies outside a resource directory" for path in others if path != PINS_FILE]
    changes: dict[str, pygit2.Oid | bytes | None] = {}
    for resource in touched:
        if odd := reading.odd_entries(repository, theirs, str(resource)):  # before anything of it is read
            plan.faults += [f"{resource}: {fault}" for fault in odd]
            continue
        sides = [reading.digest(repository, side, resource) for side in (base, main.tree, theirs)]
        merged = merge(repository, *sides)
        plan.faults += [f"{resource}: {conflict}" for conflict in merged.conflicts]
        if merged.digest != sides[1]:
            changes[str(resource)] = as_change(merged.digest)
            plan.changed.append(resource)
    if PINS_FILE in others:
        changes[PINS_FILE] = _pins(repository, (base, main.tree, theirs), plan.faults)
    if not plan.faults:
        plan.tree = repository.write_tree(main.tree, changes)
    return plan


def _pins(repository: Repository, sides: tuple[pygit2.Oid | str, ...], faults: list[str]) -> bytes:
    """What the pins become, of those at the common ancestor, here, and in the push."""
    found = repository.entry(sides[-1], PINS_FILE)
    if isinstance(found, pygit2.Blob) and repository.size(found.id, PINS_FILE) > FILE_MAX:
        faults.append(f"{PINS_FILE} has more than {FILE_MAX} bytes")
        return b""
    pins = [repository.files(side, PINS_FILE).get(PINS_FILE, b"") for side in sides]
    if pins[1] not in (pins[0], pins[2]):
        faults.append(f"{PINS_FILE}: changed differently on both sides")
    return pins[2]


def _complete(repository: Repository, plan: _Plan, load: Load | None, wheels: Wheels) -> None:
    """Lock what the changed tools depend on, hold all against its rules, and try the tools."""
    if plan.faults:
        return
    for resource in plan.changed:
        try:
            files = repository.files(plan.tree, str(resource))
            plan.tree = repository.write_tree(plan.tree, wheels.renewed(str(resource), files))
        except Invalid as error:
            plan.faults.append(str(error))
            return
    plan.faults += tree_faults(repository, plan.tree, plan.changed) or _tried(repository, plan, load)


def _tried(repository: Repository, plan: _Plan, load: Load | None) -> list[str]:
    return [
        f"{resource}: {fault}"
        for resource in plan.changed
        if (files := repository.files(plan.tree, str(resource)))
        for fault in trial(resource, files, load)[1]
    ]


def _accept(repository: Repository, name: str, target: pygit2.Oid, plan: _Plan, about: CommitInfo) -> None:
    pushed = repository.commit(target)
    said = CommitInfo(
        f"{_words(pushed.raw_message, pushed.message_encoding).strip()}\n\nPushed as incoming/{name}.",
        about.origin,
        about.now,
        author=_words(pushed.author.raw_name, pushed.message_encoding),
        merged=target,
    )
    advance(repository, plan.main, plan.tree, plan.changed, said)


def _words(raw: bytes, encoding: str | None) -> str:
    """What a pushed commit says: by the encoding that it names, which need not be one."""
    try:
        return raw.decode(encoding or "utf-8", "replace")
    except (LookupError, ValueError):
        return raw.decode("utf-8", "replace")


def _refuse(
    repository: Repository, name: str, target: pygit2.Oid, faults: list[str], about: CommitInfo
) -> None:
    pushed = repository.commit(target)
    text = "Refused\n\n" + "\n".join(f"- {fault}" for fault in faults) + "\n"
    text = text.encode("utf-8", "backslashreplace").decode()  # it may quote names that are no text
    by = stamp(about.now)
    made = repository.git.create_commit(None, by, by, text, pushed.tree_id, [target])
    for other in repository.names_below(REFUSED):  # git has no branch below another one
        if f"{name}/".startswith(f"{other}/") != f"{other}/".startswith(f"{name}/"):
            repository.drop(REFUSED + other)
    repository.move(REFUSED + name, made, expected=repository.resolve(REFUSED + name))
