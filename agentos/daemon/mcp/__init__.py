"""Tools of MCP servers: how one is added, and how its tools are called in a box of its own."""
