"""``python -m mcp_tasks_adapters.cli``: the ``mcp-tasks`` command."""

from mcp_tasks_adapters.cli import main

if __name__ == "__main__":
    main()
