"""What the two sides of the gateway agree on: how it is told what holds, when it is ready, and its headers.

Settings and the secret go over standard input: never by arguments or environment.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from agentos.domain import Budget

if TYPE_CHECKING:
    from agentos.settings import Settings


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
