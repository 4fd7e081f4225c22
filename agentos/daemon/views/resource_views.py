"""What ``agentos registry … --json`` tells of resources, as data: for the command line and the API."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos.domain import Kind, ResourceId, Version
from agentos.errors import NotFound
from agentos.home import Home
from agentos.ledger.postgres.address import has_ledger

if TYPE_CHECKING:
    from agentos.registry.store import Registry


def resource_lines(home: Home, registry: Registry, kind: Kind | None = None) -> list[dict[str, Any]]:
    """Every resource that runs get, with its newest version, its pin, and a folder that differs from it."""
    pinned, folders = registry.pinned(), folders_of(home, registry)
    found = []
    for resource in registry.names(registry.stable()):
        if kind in (None, resource.kind):
            version = registry.latest(resource)
            found.append(
                {
                    "resource": str(resource),
                    "version": version.number if version else None,
                    "origin": version.origin if version else None,
                    "at": version.created_at if version else None,
                    "reason": version.reason if version else None,
                    "pinned": pinned.get(str(resource)),
                    "folder": folders.get(str(resource)),
                }
            )
    return found


def version_of(registry: Registry, resource: ResourceId, number: str | None) -> Version:
    """The version, the newest where none is named. Raises NotFound."""
    version = registry.version(resource, number) if number else registry.latest(resource)
    if version is None and number:
        raise NotFound(f"There is no version {resource}@{number}. Try: agentos registry log {resource}")
    if version is None:
        raise NotFound(f"There is no resource {resource}. Try: agentos registry list")
    return version


def files_of(registry: Registry, resource: ResourceId, number: str | None) -> Mapping[str, bytes]:
    """Those of a version, as runs get them where none is named. Raises NotFound, also for what was retired."""
    version = version_of(registry, resource, number)
    snapshot = registry.repository.snapshot(version.commit) if number else registry.stable()
    files = registry.files(snapshot, str(resource))
    if not files:
        raise NotFound(f"{resource} was retired ({version.reason}). Try: agentos registry log {resource}")
    return files


def resource_whole(registry: Registry, resource: ResourceId, number: str | None) -> dict[str, Any]:
    """What a version says of itself, with its files as text. Raises NotFound."""
    from agentos.registry import promotion
    from agentos.resources import examine

    version, files = version_of(registry, resource, number), files_of(registry, resource, number)
    found = examine(resource, files)
    fixed = promotion.why_fixed(registry.repository, registry.stable(), resource)
    return {
        "resource": str(resource),
        "version": version,
        "description": found.resource.description if found.resource else None,
        "settings": found.resource.settings if found.resource else None,
        "tools": found.resource.tools if found.resource else [],
        "may_evolve": not fixed,
        "why_not": fixed,
        "faults": found.faults,
        "warnings": found.warnings,
        "files": {path: content.decode(errors="replace") for path, content in files.items()},
    }


def folders_of(home: Home, registry: Registry) -> Mapping[str, Any]:
    """Skill -> the folder that differs from the registry, and which side is ahead."""
    if not has_ledger(home.ledger):
        return {}
    from agentos.ledger.reading import Reader
    from agentos.registry.skill_folders.folder_differences import ADOPTED, folder_differences

    if "AGENTOS_SKILLS" in os.environ:
        from agentos.settings import load_settings

        watched = [str(place) for place in load_settings(home.settings).skills]
    else:  # importing the settings takes longer than the command
        table = tomllib.loads(home.settings.read_text()) if home.settings.exists() else {}
        watched = table.get("skills", [])
    named = [*watched, *(item["folder"] for item in Reader(home.ledger).get_kv(ADOPTED, []))]
    places = [home.skills, *(Path(os.path.abspath(Path(place).expanduser())) for place in named)]
    found = folder_differences(registry, places)
    return {str(item.skill): {"folder": str(item.folder), "ahead": item.ahead.value} for item in found}
