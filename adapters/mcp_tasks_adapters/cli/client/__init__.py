"""The client commands of ``mcp-tasks``: calling tools, and living with their tasks."""
