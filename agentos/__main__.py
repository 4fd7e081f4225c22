"""``python -m agentos`` is the command ``agentos``."""

from agentos.cli.main import run

run()
