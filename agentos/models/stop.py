"""Whether models may be asked: a person may stop all calls of a home at once, and let them go on.

A file in the home, so that it is seen by whatever asks a model there, and stands until somebody takes it back.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from agentos.durable import flush_folder
from agentos.home import Home

_NAME = "models.stopped"


@dataclass(frozen=True, slots=True)
class ModelStop:
    """Who stopped the calls, when and why."""

    principal: str
    at: datetime
    reason: str


def model_stop(home: Home) -> ModelStop | None:
    """None where models may be asked. A file that cannot be read stops them, too."""
    path = home.root / _NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        text = ""
    with suppress(ValueError, KeyError, TypeError):
        said = json.loads(text)
        return ModelStop(str(said["principal"]), datetime.fromisoformat(said["at"]), str(said["reason"]))
    return ModelStop("somebody", datetime.now(UTC), f"{path} cannot be read")


def stop_models(home: Home, principal: str, reason: str) -> None:
    """No call is begun from now on; those under way end."""
    said = {"principal": principal, "at": datetime.now(UTC).isoformat(), "reason": reason}
    aside = home.root / f"{_NAME}.{os.getpid()}"
    with aside.open("w", encoding="utf-8") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(home.root / _NAME)
    flush_folder(home.root)


def let_models_go_on(home: Home) -> None:
    """Calls are begun again."""
    (home.root / _NAME).unlink(missing_ok=True)
