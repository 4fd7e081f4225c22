"""Reviews: what a second model said of an edit before it could be promoted."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

COLUMNS = ("evolution_id", "candidate_id")


def upgrade() -> None:
    op.create_table(
        "review",
        sa.Column("seq", sa.Integer(), primary_key=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("id", "body", *COLUMNS)),
        sa.UniqueConstraint("id"),
    )
    for column in COLUMNS:
        op.create_index(f"ix_review_{column}", "review", [column])
    for verb, when, why in (
        ("update", "TRUE", "changed"),
        ("delete", "TRUE", "removed"),
        # INSERT OR REPLACE fires no delete trigger
        ("insert", "EXISTS (SELECT 1 FROM review WHERE seq = NEW.seq OR id = NEW.id)", "replaced"),
    ):
        op.execute(
            f"CREATE TRIGGER review_no_{verb} BEFORE {verb.upper()} ON review WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of review are never {why}'); END"
        )
