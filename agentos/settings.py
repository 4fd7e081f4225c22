"""What a person may set: ``agentos.toml`` in the home, overridden by ``AGENTOS_*`` variables.

Only the daemon and ``init`` import this; commands that read must not (pydantic-settings is slow
to start).
"""

from __future__ import annotations

import os
import pwd
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from agentos.domain import Budget
from agentos.errors import Invalid

_PREFIX = "AGENTOS_"
_FIRST_FREE_UID = 61321  # above what distributions hand out, below systemd's dynamic users


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Provider(_Table):
    """Where models are reached, and which key is sent there. Never in the registry: see docs/models.md."""

    api_base: str = Field("", max_length=1000, pattern=r"^(https?://[^\s]+)?$")
    key_env: str = Field("", max_length=100, pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")


class Budgets(_Table):
    """What model calls may use; 0 means no limit. A task's own limits go before those of a run."""

    run_usd: float = Field(1.0, ge=0)
    run_tokens: int = Field(2_000_000, ge=0)
    run_calls: int = Field(200, ge=0)
    evolution_usd: float = Field(10.0, ge=0)
    evolution_tokens: int = Field(20_000_000, ge=0)
    evolution_calls: int = Field(0, ge=0)
    evolution_seconds: float = Field(0.0, ge=0)
    day_usd: float = Field(20.0, ge=0)
    day_tokens: int = Field(50_000_000, ge=0)
    day_calls: int = Field(0, ge=0)
    day_seconds: float = Field(0.0, ge=0)

    @property
    def run(self) -> Budget:
        """Of one run; its seconds are bounded by its own limits."""
        return Budget(self.run_calls, self.run_tokens, self.run_usd)

    @property
    def evolution(self) -> Budget:
        """Of all calls for one evolution."""
        return Budget(self.evolution_calls, self.evolution_tokens, self.evolution_usd, self.evolution_seconds)

    @property
    def day(self) -> Budget:
        """Of everything on one day."""
        return Budget(self.day_calls, self.day_tokens, self.day_usd, self.day_seconds)


class Settings(BaseSettings):
    """Every setting with its default. ``docs/operating.md`` explains each."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    sandbox: Literal["auto", "docker", "bubblewrap"] = "auto"
    run_uid: int | None = Field(None, ge=1, lt=1 << 31)
    skills: list[Path] = Field(default_factory=list)
    parallel: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=256)
    evolutions: int = Field(2, ge=1, le=64)
    hold_out: float = Field(0.2, ge=0.0, le=0.9)
    evolve: Literal["auto", "manual"] = "auto"
    retrieval: Literal["bm25", "hybrid"] = "bm25"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_mb: int = Field(10, ge=1, le=1000)
    otlp: str = Field("", max_length=1000, pattern=r"^(https?://[^\s]+)?$")
    audit_heads: list[str] = Field(default_factory=list)
    model: str = Field("", max_length=64, pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")
    model_calls: int = Field(64, ge=1, le=4096)
    recording: Literal["record", "live"] = "record"
    egress: list[str] = Field(default_factory=list)
    providers: dict[str, Provider] = Field(default_factory=dict)
    budget: Budgets = Budgets.model_validate({})

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Variables first, then the file (which ``load_settings`` passes as arguments)."""
        return env_settings, init_settings


def load_settings(path: Path) -> Settings:
    """Read the file (a missing one means all defaults) and the environment.

    Raises Invalid with one sentence for each fault, naming the file or variable and the key.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        table = {}
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(str(path), [f"it cannot be read: {error}"]) from None
    except tomllib.TOMLDecodeError as error:
        raise Invalid(str(path), [f"it is not TOML: {error}"]) from None
    try:
        return Settings(**table)
    except ValidationError as error:
        raise Invalid(str(path), [_sentence(fault) for fault in error.errors()]) from None
    except SettingsError as error:  # a list in a variable must be JSON
        raise Invalid("environment", [str(error)]) from None


def _sentence(fault: Any) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    variable = _PREFIX + str(fault["loc"][0]).upper() if fault["loc"] else ""
    if fault["type"] == "extra_forbidden":
        table = _table_of(fault["loc"])
        return f"'{key}' is no setting (there are: {', '.join(table.model_fields)})"
    where = f"the variable {variable}" if variable in os.environ else f"'{key}'"
    found = repr(fault["input"])
    return f"{where} is {found[:80]}, but {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _table_of(place: tuple[int | str, ...]) -> type[BaseModel]:
    """The table in which a key stands that is no setting."""
    if len(place) > 1 and place[0] == "budget":
        return Budgets
    return Provider if len(place) > 2 and place[0] == "providers" else Settings


def free_uid() -> int:
    """A user id that no account has: what boxes run as when the daemon runs as root."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in range(_FIRST_FREE_UID, 1 << 16) if uid not in taken)


def first_settings(run_uid: int | None) -> str:
    """The text of a fresh ``agentos.toml``: every key there is, with its default as a comment."""
    uid = f"run_uid = {run_uid}" if run_uid is not None else "# run_uid = 61321"
    return f"""\
# Settings of this agentos home. Each can also be given as a variable: AGENTOS_PARALLEL=4.
# docs/operating.md explains them. The daemon reads this file when it starts; models and providers always.

# sandbox = "auto"        # or "bubblewrap", "docker": that one for everything
{uid}        # as root only: the user id that tasks run as; no account may have it
# skills = ["~/my-skills"]  # watched beside the folder skills/ of this home
# parallel = 4             # tasks at a time; default: the number of cores
# evolutions = 2           # evolutions side by side; one that waits for the machinery does not count
# hold_out = 0.2           # share of tasks that proposers of edits never see
# evolve = "auto"          # or "manual": only when `agentos evolve` is typed
# retrieval = "bm25"       # or "hybrid": by meaning too; pip install 'agentos-daemon[embeddings]'
# log_level = "info"       # debug, info, warning, error
# log_mb = 10              # size at which a log is rotated; three old ones are kept
# otlp = ""                # an OpenTelemetry collector that gets spans of every run: http://localhost:4318
# audit_heads = []         # where heads of the audit log go: ["/mnt/other/heads", "http://localhost:4318"]
# model = "main"           # the model resource that agents use as "default"; `agentos model add` sets it
# model_calls = 64         # model calls in flight at a time
# recording = "record"     # or "live": count model calls, but keep none of their texts
# egress = []              # hosts that tools with outside effects may reach: ["api.example.org"]

## Where models are reached. The key is read from the variable key_env, else from keys.toml (mode 0600).
# [providers.local]
# api_base = "http://127.0.0.1:11434/v1"
# key_env = "LOCAL_API_KEY"

## What model calls may use before they are refused; 0 is no limit. Days are those of UTC.
# [budget]
# run_usd = 1.0
# run_tokens = 2_000_000
# run_calls = 200
# evolution_usd = 10.0
# evolution_tokens = 20_000_000
# evolution_calls = 0
# evolution_seconds = 0.0
# day_usd = 20.0
# day_tokens = 50_000_000
# day_calls = 0
# day_seconds = 0.0
"""
