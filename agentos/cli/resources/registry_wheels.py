"""The work of ``agentos registry wheels``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from agentos.cli.output import print_json, print_table, print_text
from agentos.domain import ResourceId
from agentos.errors import Invalid, UserError
from agentos.registry import wheels

if TYPE_CHECKING:
    from agentos.registry.store import Registry


def lock_again(registry: Registry, resource: ResourceId) -> None:
    """Resolve the resource's dependencies as if for the first time; a new version if that differs."""
    base = registry.stable()
    files = registry.files(base, str(resource))
    requires = wheels.declared(files)
    if not requires:
        raise UserError(f"{resource} declares no dependencies (TOOL in its tools has no 'dependencies').")
    lock = registry.wheels.resolve(str(resource), requires)
    changes = {f"{resource}/{wheels.LOCK_FILE}": lock}
    registry.commit(changes, f"Resolve the dependencies of {resource} anew", "edit", base=base)


def show(registry: Registry, resource: ResourceId | None, *, as_json: bool) -> None:
    """Every lock with its wheels; those that are missing are fetched. Exit code 1 when one stays away."""
    main = registry.stable()
    rows, lost = [], []
    for name in [resource] if resource else registry.names(main):
        lock = wheels.locked(registry.files(main, str(name)))
        if lock is None:
            continue
        absent = registry.wheels.missing(lock)
        try:
            registry.wheels.fetch(str(name), lock)
            state = "fetched"
        except Invalid as error:
            lost.append(str(error))
            state = "missing"
        rows += [
            {"resource": str(name), **asdict(it), "state": state if it in absent else "here"}
            for it in lock.wheels
        ]
    if as_json:
        print_json({"wheels": rows, "faults": lost})
    else:
        columns = ("resource", "name", "version", "state", "sha256")
        cells = [[str(row[column])[:80] for column in columns] for row in rows]
        print_table(columns, cells, empty="No tool in the registry depends on a wheel.")
        for sentence in lost:
            print_text(sentence, "red")
    if lost:
        raise typer.Exit(1)
