"""What a person did to ``main`` with git itself, past this program: set aside, and taken in like a push.

``refs/agentos/written`` names the commit that this program wrote last, and ``refs/agentos/writing`` the one
that it was about to move ``main`` to. Where ``main`` is elsewhere,
somebody has moved it (``git update-ref``, a fetch into the bare repository). The edit is theirs to
make, but its content was not validated, it is no version yet, and its message may say anything
in the trailers that only this program writes, whoever it names as its committer. So it goes where pushes go, and ``main`` back.
"""

from __future__ import annotations

from datetime import datetime

import pygit2

from agentos.registry.git.repository import INCOMING, MAIN, WRITTEN, Repository

WRITING = "refs/agentos/writing"


def announce(repository: Repository, made: pygit2.Oid) -> None:
    """Before ``main`` moves to the commit: after a kill it tells this program's from a stranger's. Needs the lock."""
    repository.move(WRITING, made, expected=repository.resolve(WRITING))


def note(repository: Repository, made: pygit2.Oid) -> None:
    """Remember that this program wrote the commit. Needs the lock."""
    before = repository.resolve(WRITTEN)
    if before != made:
        repository.move(WRITTEN, made, expected=before)


def foreign(repository: Repository) -> pygit2.Oid | None:
    """Where somebody else has moved ``main`` to; None as long as it is where this program left it."""
    written, tip = repository.resolve(WRITTEN), repository.resolve(MAIN)
    if written is None or tip is None or written == tip:
        return None
    # a kill between the two references leaves ``main`` one commit of ours ahead, until the next one is written
    ours = tip == repository.resolve(WRITING) and repository.commit(tip).parent_ids[:1] == [written]
    return None if ours else tip


def set_aside(repository: Repository, now: datetime) -> str | None:
    """Make a pushed branch of what ``main`` was moved to, and move ``main`` back; the branch's name.

    Where ``main`` was set back to an earlier commit, the branch holds that content as a change.
    """
    if foreign(repository) is None:
        return None
    with repository.lock():
        tip, written = foreign(repository), repository.resolve(WRITTEN)
        if tip is None or written is None:
            return None
        name = f"direct-{str(tip)[:12]}"
        theirs = tip
        if repository.git.descendant_of(written, tip):
            text = f"Set main back to {str(tip)[:12]}\n"
            theirs = repository.write_commit(repository.commit(tip).tree_id, [written], text, now)
        repository.move(INCOMING + name, theirs, expected=repository.resolve(INCOMING + name))
        repository.move(MAIN, written, expected=tip)
    return name
