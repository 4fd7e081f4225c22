"""A worker of pytest-xdist, forked with its imports done (tests/command_server.py): most of what it takes to collect.

Imported here is what most modules of tests import, and what one of them takes half a second for.
"""

from __future__ import annotations

import importlib
import sys

from tests.command_server import import_all

for _name in ("boto3", "hypothesis", "openai", "agentos.web.server", "tests.postgres"):
    importlib.import_module(_name)
import_all()

if __name__ == "__main__":
    exec(eval(sys.stdin.readline()))  # what execnet gives a process of its own
