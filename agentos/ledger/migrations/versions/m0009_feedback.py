"""What people say of runs, the checks that they accepted, and what they are told of."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

COLUMNS = {
    "feedback": ("run_id", "task_key", "rating"),
    "standing_check": ("task_name",),
    "notification": ("subject", "state"),
}
APPEND_ONLY = ("feedback", "standing_check")


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        op.create_table(
            table,
            sa.Column("seq", sa.Integer(), primary_key=True),
            *(sa.Column(name, sa.String(), nullable=False) for name in ("id", "body", *columns)),
            sa.UniqueConstraint("id"),
        )
        for column in columns:
            op.create_index(f"ix_{table}_{column}", table, [column])
    for table in APPEND_ONLY:
        for verb, when, why in (
            ("update", "TRUE", "changed"),
            ("delete", "TRUE", "removed"),
            # INSERT OR REPLACE fires no delete trigger
            ("insert", f"EXISTS (SELECT 1 FROM {table} WHERE seq = NEW.seq OR id = NEW.id)", "replaced"),  # noqa: S608
        ):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} WHEN {when} "
                f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never {why}'); END"
            )
