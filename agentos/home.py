"""Where everything of one installation lies. Paths only: standard library, nothing is opened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agentos.errors import ErrorKind, NotFound, UserError, to_type


def folder_of_user() -> Path:
    """The home directory of whoever runs this; raises UserError for a user of no name, as containers have."""
    found = os.path.expanduser("~")
    if found == "~":
        raise UserError("This user has no home directory: set HOME, or give whole paths")
    return Path(found)


def made_folder(path: Path) -> Path:
    """The folder of a home, there when this returns. Raises UserError where a file has its name."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise not_a_folder(path) from None
    return path


def not_a_folder(path: Path) -> UserError:
    """What to say of a file in the place of a folder."""
    return UserError(
        f"{path} is a file, and a home has a folder there: move the file away", kind=ErrorKind.TAKEN
    )


@dataclass(frozen=True, slots=True)
class Home:
    """``AGENTOS_HOME``: each property is one entry of it."""

    root: Path

    @classmethod
    def find(cls, given: str | Path | None = None) -> Home:
        """``given``, else ``$AGENTOS_HOME``, else ``~/.agentos``; made absolute, not created. Raises UserError."""
        chosen = os.path.expanduser(given or os.environ.get("AGENTOS_HOME") or "~/.agentos")
        if chosen.startswith("~"):
            raise UserError(
                f"Nobody's home directory is '{chosen.split('/')[0]}' here: give the whole path as --home."
            )
        return cls(Path(chosen).absolute())

    @property
    def settings(self) -> Path:
        return self.root / "agentos.toml"

    @property
    def registry(self) -> Path:
        return self.root / "registry.git"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that every home has."""
        return self.run, self.logs, self.blobs, self.skills

    @property
    def is_there(self) -> bool:
        """Whether somebody made a home here, though it may have lost a part since."""
        return self.settings.exists() or self.ledger.exists() or self.registry.exists()

    def require(self) -> None:
        """Raises NotFound where there is none."""
        if not self.is_there:
            told = f"there is no home at {self.root}; type "
            raise NotFound(told, to_type("agentos init"), ", or name yours by --home")

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.db"

    @property
    def engine(self) -> Path:
        return self.root / "engine.db"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def index(self) -> Path:
        return self.root / "index.db"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def searches(self) -> Path:
        """Which edits searches for repairs have tried, so that the next goes on from there. It may be lost."""
        return self.run / "searches"

    @property
    def page_note(self) -> Path:
        """Where the page that is up is, and what makes links to it; for its owner alone."""
        return self.run / "web.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def servers(self) -> Path:
        return self.root / "mcp"

    @property
    def tokens(self) -> Path:
        return self.root / "mcp-tokens"

    @property
    def api_tokens(self) -> Path:
        return self.root / "api-tokens"

    @property
    def calls(self) -> Path:
        return self.root / "calls.db"

    @property
    def keys(self) -> Path:
        return self.root / "keys.toml"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets.json"

    @property
    def consent_key(self) -> Path:
        return self.root / "consent.key"
