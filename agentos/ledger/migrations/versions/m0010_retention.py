"""Steps of runs that retention covers may go; the table `pruned` says which, and only what it covers can leave."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

COVERED = (
    "EXISTS (SELECT 1 FROM run JOIN pruned ON run.seq BETWEEN pruned.from_seq AND pruned.to_seq "
    "WHERE run.id = OLD.run_id)"
)


def upgrade() -> None:
    op.create_table(
        "pruned",
        sa.Column("seq", sa.Integer(), primary_key=True),
        sa.Column("from_seq", sa.Integer(), nullable=False),
        sa.Column("to_seq", sa.Integer(), nullable=False),
        sa.Column("pruned_at", sa.String(), nullable=False),
    )
    for verb, when, why in (
        ("update", "TRUE", "changed"),
        ("delete", "TRUE", "removed"),
        ("insert", "EXISTS (SELECT 1 FROM pruned WHERE seq = NEW.seq)", "replaced"),
    ):
        op.execute(
            f"CREATE TRIGGER pruned_no_{verb} BEFORE {verb.upper()} ON pruned WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of pruned are never {why}'); END"
        )
    op.execute("DROP TRIGGER step_no_delete")
    op.execute(
        f"CREATE TRIGGER step_no_delete BEFORE DELETE ON step WHEN NOT {COVERED} "
        "BEGIN SELECT RAISE(ABORT, 'rows of step are never removed'); END"
    )
