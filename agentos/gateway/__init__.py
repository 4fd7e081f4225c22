"""The way to models: a process of its own with litellm inside, and the client that starts it.

Only that process knows keys. It records every call before anybody gets its answer (``calls``),
serves recorded answers instead of asking again (``answering``), and holds calls to their budgets
(``budgets``). The rest of the kernel sees ``client.GatewayModels`` and, for reading, ``calls``.
"""
