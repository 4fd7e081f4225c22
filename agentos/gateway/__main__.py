"""The gateway's process. Started by ``client.GatewayModels``; not for people.

Standard input carries one line (``setup.Setup``) and then stays open for as long as the parent
lives: its end is how a killed daemon is noticed. Calls under way are then brought to their record.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path

from agentos.errors import UserError
from agentos.home import Home
from agentos.models.secrets import read_keys


def prepare() -> None:
    """Set what litellm reads when it is imported."""
    os.environ.update(
        LITELLM_LOCAL_MODEL_COST_MAP="True",  # else the import fetches a price list
        LITELLM_MODE="PRODUCTION",  # else it reads the .env of whatever folder it finds
        HF_HUB_OFFLINE="1",  # else counting tokens may fetch tokenizers
        LITELLM_LOG="CRITICAL",
    )
    direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    if direct != "*":  # a server of this machine is no matter of a proxy, which would get its key
        direct = ",".join(filter(None, [direct, "localhost", "127.0.0.1", "::1"]))
    os.environ.update(no_proxy=direct, NO_PROXY=direct)


def main() -> None:
    """Prepare the environment before anything imports litellm, then serve."""
    parser = argparse.ArgumentParser(prog="agentos.gateway")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--socket", default="gateway.sock", help="its name in HOME/run")
    given = parser.parse_args()
    try:
        # what it cannot start with is told before the imports, which take seconds
        read_keys(Home(given.home).keys)
    except (UserError, OSError) as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(1)
    prepare()
    os.umask(0o077)
    gc.disable()  # looking for garbage takes a fifth of the time that importing litellm takes
    from agentos.gateway.process import serve

    gc.freeze()
    gc.enable()
    serve(given.home, given.socket, sys.stdin.buffer)


if __name__ == "__main__":
    main()
