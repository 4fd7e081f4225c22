"""The ledger in a PostgreSQL database: how it is reached, and how the ledger's one SQL is said to it."""
