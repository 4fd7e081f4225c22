"""Schema changes, oldest first; each file is one revision and is never edited after a release."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """All migrations that are missing, in the transaction of the connection."""
    config = Config()
    config.set_main_option("script_location", "agentos.ledger:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
