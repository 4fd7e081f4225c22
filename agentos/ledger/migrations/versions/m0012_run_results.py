"""Runs are counted by how they ended, and open ones found, by an index."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_run_result", "run", ["result"])
