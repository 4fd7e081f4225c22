"""Other protocols that a program may speak, as chat completions: one file for each.

Each has ``request`` (its body as a chat completion request), ``reply`` (a chat completion as its
answer) and ``events`` (the same as the events of a stream, each with its name). What a chat completion
cannot say is left out: signed thoughts, tools that a provider runs, caching.
"""
