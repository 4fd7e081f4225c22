"""What an evolution asks of the ledger is looked up, however many there were before it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("evolution", sa.Column("resource", sa.String(), nullable=False, server_default=""))
    op.execute("UPDATE evolution SET resource = coalesce(json_extract(body, '$.diagnosis.resource'), '')")
    op.create_index("ix_evolution_resource_state", "evolution", ["resource", "state"])
    op.create_index("ix_run_resource_resource_seq", "run_resource", ["resource", "seq"])
