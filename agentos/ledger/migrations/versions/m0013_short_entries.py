"""No change of tables: entries of the audit log may be packed and name the one before by 16 digits, and digests may stand in bytes.

An older release calls either damaged.
"""

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
