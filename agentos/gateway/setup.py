"""What the two sides of the gateway agree on: how it is told what holds, when it is ready, and its headers.

Settings and the secret go over standard input: never by arguments or environment.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentos.settings import Settings


READY = b"ready\n"  # on standard output
CALL_HEADER = "x-agentos-call"  # what is known of a call beside its body, as JSON
TIMEOUT_HEADER = "x-agentos-timeout"  # seconds


@dataclass(frozen=True, slots=True)
class Where:
    """As settings.Provider."""

    api_base: str = ""
    key_env: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """As settings.Budgets, but for those of a run, which come with its grant."""

    evolution_usd: float = 0.0
    day_usd: float = 0.0
    day_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Setup:
    """``secret`` is what control requests must carry."""

    secret: str
    providers: dict[str, Where] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    model_calls: int = 64
    log_level: str = "info"
    log_mb: int = 10

    @classmethod
    def of(cls, settings: Settings) -> Setup:
        """What the settings say of models, with a fresh secret."""
        budget = settings.budget
        return cls(
            secret=secrets.token_urlsafe(32),
            providers={name: Where(**item.model_dump()) for name, item in settings.providers.items()},
            limits=Limits(budget.evolution_usd, budget.day_usd, budget.day_tokens),
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
        providers = {name: Where(**where) for name, where in table.pop("providers").items()}
        return cls(providers=providers, limits=Limits(**table.pop("limits")), **table)
