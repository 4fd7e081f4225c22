"""Takes in what people drop into skills folders or push to the registry, and remembers refusals."""

from __future__ import annotations

import os
import time

import structlog

from agentos.daemon.service import Service
from agentos.registry.skills_folder import FolderOutcome, SkillsFolders

REFUSED = "skills.refused"  # memo in the ledger: folder -> faults, shown by `agentos status`

log = structlog.get_logger("agentos.folders")


class Folders:
    """Scanned by the daemon's housekeeping; not thread-safe."""

    def __init__(self, service: Service) -> None:
        self._service = service
        watched = [service.home.skills, *(path.expanduser() for path in service.settings.skills)]
        self._folders = SkillsFolders(service.registry, watched, service.load)
        self._refused: dict[str, list[str]] = {}
        service.ledger.set_kv(REFUSED, {})

    def scan(self) -> None:
        """One look; a folder that is still being copied is taken at a later one."""
        before = dict(self._refused)
        for outcome in self._folders.scan(time.monotonic()):
            self._note(outcome)
        for push in self._service.registry.take_in_pushes(self._service.load):
            log.info("push", outcome=str(push))
        self._refused = {path: faults for path, faults in self._refused.items() if os.path.lexists(path)}
        if self._refused != before:
            self._service.ledger.set_kv(REFUSED, self._refused)

    def _note(self, outcome: FolderOutcome) -> None:
        path = str(outcome.folder)
        self._refused.pop(path, None)
        if outcome.action == "refused":
            self._refused[path] = list(outcome.faults)
            log.warning("skill refused", folder=path, faults=list(outcome.faults))
            return
        for warning in outcome.warnings:
            log.warning("skill", folder=path, warning=warning)
        log.info("skill " + outcome.action, skill=outcome.name, version=outcome.version)
        detail = {"folder": path, "version": outcome.version}
        self._service.ledger.note(f"skill.{outcome.action}", f"skill/{outcome.name}", detail)
