"""Probes: what trying a snapshot gave before it was served."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

COLUMNS = ("driving_sha256", "evolution_id")


def upgrade() -> None:
    op.create_table(
        "probe",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("id", "body", *COLUMNS)),
        sa.UniqueConstraint("id"),
    )
    for column in COLUMNS:
        op.create_index(f"ix_probe_{column}", "probe", [column])
    for verb, when, why in (
        ("update", "TRUE", "changed"),
        ("delete", "TRUE", "removed"),
        # INSERT OR REPLACE fires no delete trigger
        ("insert", "EXISTS (SELECT 1 FROM probe WHERE seq = NEW.seq OR id = NEW.id)", "replaced"),
    ):
        op.execute(
            f"CREATE TRIGGER probe_no_{verb} BEFORE {verb.upper()} ON probe WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of probe are never {why}'); END"
        )
