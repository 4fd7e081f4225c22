"""No change of tables: from here on a record or step may be packed with a dictionary, which an older release cannot read."""

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
