"""The first tables, and the triggers that keep history from being rewritten.

There is no way down: history that was written by a newer release is not thrown away by an older.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Table -> what makes a row the same row again. INSERT OR REPLACE fires no delete trigger, so
# inserting over an existing row is refused by a trigger of its own.
APPEND_ONLY = {
    "step": "no = NEW.no OR (run_id = NEW.run_id AND position = NEW.position)",
    "sighting": "seq = NEW.seq OR id = NEW.id",
    "evidence": "seq = NEW.seq OR id = NEW.id",
    "trial": "seq = NEW.seq OR id = NEW.id",
    "verdict": "seq = NEW.seq OR id = NEW.id",
    "flag": "seq = NEW.seq",
    "audit": "seq = NEW.seq",
}

RECORDS = {
    "sighting": ("run_id", "task_key", "fingerprint"),
    "evidence": ("fingerprint",),
    "evolution": ("evidence_id", "fingerprint_id", "state"),
    "candidate": ("evolution_id",),
    "trial": ("evolution_id", "candidate_id", "task_id"),
    "verdict": ("evolution_id", "candidate_id"),
    "consent": ("evolution_id", "candidate_id"),
    "attestation": ("evolution_id",),
}


def text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=null)


def number(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=null)


def index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def upgrade() -> None:
    journal()
    for table, columns in RECORDS.items():
        op.create_table(
            table,
            sa.Column("seq", sa.Integer(), primary_key=True),
            text("id"),
            text("body"),
            *(text(column) for column in columns),
            sa.UniqueConstraint("id"),
        )
        for column in columns:
            index(table, column)
    state()
    for table, same in APPEND_ONLY.items():
        refuse(table, "update", f"rows of {table} are never changed")
        refuse(table, "delete", f"rows of {table} are never removed")
        same_row = f"EXISTS (SELECT 1 FROM {table} WHERE {same})"  # noqa: S608 - the names above
        refuse(table, "insert", f"rows of {table} are never replaced", when=same_row)
    refuse("run", "update", "a finished run is never changed", when="OLD.result IS NOT NULL")


def refuse(table: str, verb: str, why: str, *, when: str = "TRUE") -> None:
    op.execute(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} WHEN {when} "
        f"BEGIN SELECT RAISE(ABORT, '{why}'); END"
    )


def journal() -> None:
    op.create_table(
        "task",
        sa.Column("no", sa.Integer(), primary_key=True),
        *map(text, ("id", "name", "task_key", "share", "state", "agent", "created_at", "body")),
        sa.UniqueConstraint("id"),
    )
    index("task", "task_key")
    index("task", "state")
    op.create_table(
        "run",
        sa.Column("no", sa.Integer(), primary_key=True),
        *map(text, ("id", "task_id", "task_key", "share")),
        number("attempt"),
        text("commit_id"),
        text("result", null=True),
        number("seq", null=True),
        text("started_at"),
        text("finished_at", null=True),
        text("body"),
        sa.UniqueConstraint("id"),
        sa.UniqueConstraint("seq"),
        sa.UniqueConstraint("task_id", "attempt"),
    )
    index("run", "task_key", "seq")
    op.create_table(
        "run_resource",
        *(sa.Column(name, sa.String(), primary_key=True) for name in ("resource", "task_key")),
        sa.Column("seq", sa.Integer(), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "step",
        sa.Column("no", sa.Integer(), primary_key=True),
        text("run_id"),
        number("position"),
        *map(text, ("node", "action", "observation")),
        text("fault", null=True),
        text("started_at"),
        sa.Column("duration_ms", sa.Float(), nullable=False),
        sa.UniqueConstraint("run_id", "position"),
    )
    op.create_table(
        "flag",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *map(text, ("run_id", "reason", "flagged_at")),
    )
    index("flag", "run_id")


def state() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *map(text, ("at", "event", "subject", "detail", "previous", "hash")),
    )
    index("audit", "subject")
    op.create_table(
        "cursor", sa.Column("name", sa.String(), primary_key=True, nullable=False), number("position")
    )
    op.create_table("memo", sa.Column("key", sa.String(), primary_key=True, nullable=False), text("value"))
