"""Records as rows: tables, columns, codec, packing."""
