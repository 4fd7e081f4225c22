"""What lies outside of a home: models, MCP servers, secrets, messages to people."""
