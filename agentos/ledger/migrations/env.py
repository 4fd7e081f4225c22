"""Alembic's entry: runs the migrations on the connection that ``opening`` holds a transaction on."""

from alembic import context

from agentos.ledger.rows.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
