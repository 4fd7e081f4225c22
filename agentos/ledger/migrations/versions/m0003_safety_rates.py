"""How often each side of a replay violated the safety probes."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLE, COLUMNS = "safety_rate", ("evolution_id", "candidate_id", "tree")


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("seq", sa.Integer(), primary_key=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("id", "body", *COLUMNS)),
        sa.UniqueConstraint("id"),
    )
    for column in COLUMNS:
        op.create_index(f"ix_{TABLE}_{column}", TABLE, [column])
    for verb, when, why in (
        ("update", "TRUE", "changed"),
        ("delete", "TRUE", "removed"),
        # INSERT OR REPLACE fires no delete trigger
        ("insert", f"EXISTS (SELECT 1 FROM {TABLE} WHERE seq = NEW.seq OR id = NEW.id)", "replaced"),  # noqa: S608 - as above
    ):
        op.execute(
            f"CREATE TRIGGER {TABLE}_no_{verb} BEFORE {verb.upper()} ON {TABLE} WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of {TABLE} are never {why}'); END"
        )
