"""``mcp-tasks kit``: how a server, or a proxy, keeps the contract, rule by rule."""
