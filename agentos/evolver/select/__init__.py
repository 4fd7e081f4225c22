"""Which tasks take part in an evolution: evidence, guards, hold-out, and the tests that a rewrite inherits."""
