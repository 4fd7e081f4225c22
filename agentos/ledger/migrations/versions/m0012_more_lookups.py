"""Runs are counted and listed by their result, audit entries found by their event, without reading them all."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_run_result", "run", ["result"])
    op.create_index("ix_audit_event", "audit", ["event"])
