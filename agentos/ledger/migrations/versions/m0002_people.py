"""Questions to people, memories that runs propose, and tasks that a run handed over."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

RECORDS = {"question": ("task_id", "root_id"), "proposal": ("run_id", "state")}
EXTRA = {"question": sa.Column("answer", sa.String(), nullable=True)}

DECIDED = {"question": "OLD.answer IS NOT NULL", "proposal": "OLD.state <> 'open'"}


def upgrade() -> None:
    op.add_column("task", sa.Column("parent", sa.String(), nullable=False, server_default=""))
    op.create_index("ix_task_parent", "task", ["parent"])
    for table, columns in RECORDS.items():
        op.create_table(
            table,
            sa.Column("seq", sa.Integer(), primary_key=True),
            *(sa.Column(name, sa.String(), nullable=False) for name in ("id", "body", *columns)),
            *([EXTRA[table]] if table in EXTRA else []),
            sa.UniqueConstraint("id"),
        )
        for column in columns:
            op.create_index(f"ix_{table}_{column}", table, [column])
        op.execute(
            f"CREATE TRIGGER {table}_decided_no_update BEFORE UPDATE ON {table} WHEN {DECIDED[table]} "
            f"BEGIN SELECT RAISE(ABORT, 'a {table} is answered once'); END"
        )
        same_row = f"EXISTS (SELECT 1 FROM {table} WHERE seq = NEW.seq OR id = NEW.id)"  # noqa: S608 - as above
        op.execute(
            f"CREATE TRIGGER {table}_no_insert BEFORE INSERT ON {table} WHEN {same_row} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never replaced'); END"
        )
        op.execute(
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never removed'); END"
        )
