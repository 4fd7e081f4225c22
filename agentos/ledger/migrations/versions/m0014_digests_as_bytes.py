"""No change of tables: from here on digests may stand in bytes, in packed bodies and in the audit log, which an older release cannot read."""

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
