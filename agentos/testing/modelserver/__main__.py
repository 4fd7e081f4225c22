"""``python -m agentos.testing.modelserver``: the scripted model as a process of its own.

Without --script it follows rules (``policy.py`` tells which), with --rules those of the file as well.
Prints its base URL as the first line; ends on SIGTERM or Ctrl-C, printing what it counted.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from agentos.testing.modelserver.policy import Rules, load
from agentos.testing.modelserver.replies import reply_from
from agentos.testing.modelserver.server import ModelServer


def main() -> int:
    """Serve until told to end."""
    parser = argparse.ArgumentParser(prog="python -m agentos.testing.modelserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--rules", type=Path, help="a TOML file: knows, noise, seed")
    parser.add_argument("--script", type=Path, help="a JSON file: the list of replies")
    given = parser.parse_args()
    try:
        policy = load(given.rules) if given.rules else None
        if not (given.rules or given.script):
            policy = Rules()
        script = [reply_from(one) for one in json.loads(given.script.read_text())] if given.script else None
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with ModelServer(script, policy=policy, port=given.port) as server:
        print(server.base_url, flush=True)
        ending.wait()
        print(json.dumps(server.stats()))
    return 0


sys.exit(main())
