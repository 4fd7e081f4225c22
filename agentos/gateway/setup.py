"""What the two sides of the gateway agree on: how it is told what holds, when it is ready, and its headers.

Settings and the secret go over standard input: never by arguments or environment.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentos.domain import Budget

if TYPE_CHECKING:
    from agentos.settings import Settings


SOCKET = "gateway.sock"  # of the daemon's; a second process on one home has another
READY = b"ready\n"  # on standard output
CALL_HEADER = "x-agentos-call"  # what is known of a call beside its body, as JSON
TIMEOUT_HEADER = "x-agentos-timeout"  # seconds


@dataclass(frozen=True, slots=True)
class ProviderTarget:
    """As settings.Provider."""

    api_base: str = ""
    key_env: str = ""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """What the settings allow beside the budget of a run, which comes with its grant."""

    evolution: Budget = field(default_factory=Budget)
    day: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Setup:
    """``secret`` is what control requests must carry."""

    secret: str
    providers: dict[str, ProviderTarget] = field(default_factory=dict)
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    model_calls: int = 64
    log_level: str = "info"
    log_mb: int = 10

    @classmethod
    def of(cls, settings: Settings) -> Setup:
        """What the settings say of models, with a fresh secret."""
        return cls(
            secret=secrets.token_urlsafe(32),
            providers={
                name: ProviderTarget(**item.model_dump()) for name, item in settings.providers.items()
            },
            limits=GatewayLimits(settings.budget.evolution, settings.budget.day),
            model_calls=settings.model_calls,
            log_level=settings.log_level,
            log_mb=settings.log_mb,
        )

    def line(self) -> bytes:
        """For standard input."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Setup:
        """What ``line`` made; raises ValueError or TypeError for anything else."""
        table = json.loads(line)
        providers = {name: ProviderTarget(**where) for name, where in table.pop("providers").items()}
        limits = {name: Budget(**budget) for name, budget in table.pop("limits").items()}
        return cls(providers=providers, limits=GatewayLimits(**limits), **table)


@dataclass(frozen=True, slots=True)
class GatewayEnding:
    """A gateway that takes no more calls, and keeps its lock until those under way are on record, or ``until``."""

    pid: int
    calls: int
    until: float  # in seconds since 1970

    @property
    def says(self) -> str:
        """For a person."""
        until = datetime.fromtimestamp(self.until, UTC).astimezone()
        return (
            f"{self.calls} model call(s) of before are brought to their record, until {until:%H:%M:%S} at the latest, "
            "since they may be paid already; new calls wait for that"
        )


def note_ending(run: Path, name: str, ending: GatewayEnding | None) -> None:
    """Say that it ends, or that it has, in the home's ``run`` folder. A disk that is full keeps nobody from ending."""
    path = run / f"{name}.ending"
    with suppress(OSError):
        if ending is None:
            path.unlink(missing_ok=True)
            return
        path.write_text(json.dumps(asdict(ending)))  # who reads half of it reads nothing


def read_ending(run: Path, name: str = SOCKET) -> GatewayEnding | None:
    """The gateway that new ones wait for, if there is one."""
    try:
        ending = GatewayEnding(**json.loads((run / f"{name}.ending").read_text()))
        os.kill(ending.pid, 0)  # what was killed has left its word behind
    except (OSError, ValueError, TypeError):
        return None
    return ending if ending.until > datetime.now(UTC).timestamp() else None
