"""Schedules: which task is a copy of which, what was skipped and delivered, and which files arrived."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

RECORDS = {"skipped_run": ("schedule_id",), "delivery": ("run_id", "schedule_id", "state", "path")}

# Earlier releases made a copy's id of the schedule's and twelve digits of the time that was due.
OF = "substr(id, 1, length(id) - 13)"
DIGITS = "[0-9]" * 12
COPIES = f"UPDATE task SET schedule_id = {OF} WHERE id GLOB '*-{DIGITS}' AND {OF} IN (SELECT id FROM task)"  # noqa: S608


def upgrade() -> None:
    op.add_column("task", sa.Column("schedule_id", sa.String(), nullable=False, server_default=""))
    op.create_index("ix_task_schedule_id", "task", ["schedule_id"])
    if op.get_bind().dialect.name == "sqlite":  # a ledger in PostgreSQL is younger than those releases
        op.execute(COPIES)
    for table, columns in RECORDS.items():
        op.create_table(
            table,
            sa.Column("seq", sa.Integer(), primary_key=True),
            *(sa.Column(name, sa.String(), nullable=False) for name in ("id", "body", *columns)),
            sa.UniqueConstraint("id"),
        )
        for column in columns:
            op.create_index(f"ix_{table}_{column}", table, [column])
    op.execute(
        "CREATE TRIGGER delivery_ended_no_update BEFORE UPDATE ON delivery WHEN OLD.state <> 'pending' "
        "BEGIN SELECT RAISE(ABORT, 'a delivery ends once'); END"
    )
    op.execute(
        "CREATE TRIGGER delivery_no_insert BEFORE INSERT ON delivery "
        "WHEN EXISTS (SELECT 1 FROM delivery WHERE seq = NEW.seq OR id = NEW.id) "
        "BEGIN SELECT RAISE(ABORT, 'rows of delivery are never replaced'); END"
    )
    op.execute(
        "CREATE TRIGGER delivery_no_delete BEFORE DELETE ON delivery "
        "BEGIN SELECT RAISE(ABORT, 'rows of delivery are never removed'); END"
    )
    op.create_table(
        "arrival",
        *(sa.Column(name, sa.String(), primary_key=True) for name in ("schedule_id", "path")),
        sa.Column("signature", sa.String(), nullable=False),
        sqlite_with_rowid=False,
    )
