"""Trials of evolutions that are over lie in one row each; indexes that nothing looks up are gone.

From here on a long body may be compressed, which an older release could not read.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

UNUSED = {
    "evidence": ("fingerprint",),
    "safety_rate": ("candidate_id",),
    "sighting": ("run_id", "task_key"),
    "task": ("task_key",),
    "trial": ("task_id", "candidate_id"),
}
PACKED = "EXISTS (SELECT 1 FROM trial_pack WHERE evolution_id = OLD.evolution_id)"


def upgrade() -> None:
    op.create_table(
        "trial_pack",
        sa.Column("seq", sa.Integer(), primary_key=True),
        sa.Column("evolution_id", sa.String(), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("cpu_s", sa.Float(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    op.create_index("ix_trial_pack_evolution_id", "trial_pack", ["evolution_id"])
    for verb, when, why in (
        ("update", "TRUE", "changed"),
        ("delete", "TRUE", "removed"),
        # INSERT OR REPLACE fires no delete trigger
        ("insert", "EXISTS (SELECT 1 FROM trial_pack WHERE seq = NEW.seq)", "replaced"),
    ):
        op.execute(
            f"CREATE TRIGGER trial_pack_no_{verb} BEFORE {verb.upper()} ON trial_pack WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of trial_pack are never {why}'); END"
        )
    op.execute("DROP TRIGGER trial_no_delete")
    op.execute(
        f"CREATE TRIGGER trial_no_delete BEFORE DELETE ON trial WHEN NOT {PACKED} "
        "BEGIN SELECT RAISE(ABORT, 'rows of trial are never removed'); END"
    )
    for table, columns in UNUSED.items():
        for column in columns:
            op.drop_index(f"ix_{table}_{column}", table)
