"""What ``agentos run replay`` does: a service of its own beside the daemon, and one sentence."""

from __future__ import annotations

import typer

from agentos.cli.output import print_json, print_text
from agentos.home import Home


def replay(id: str, *, as_json: bool) -> None:
    """Ends with exit code 1 when the run differs from its record."""
    from agentos.daemon.service import service
    from agentos.evolver.replay.rerun import rerun
    from agentos.ledger.reading import Reader
    from agentos.settings import load_settings

    home = Home.find()
    reader = Reader(home.ledger)
    run = reader.run(reader.resolve("run", id))
    with service(home, load_settings(home.settings), socket_name="replay.sock") as parts:
        parts.sandbox.start()
        found = rerun(parts.parts, run, parts.registry.find_tool)
    if as_json:
        print_json(found)
    elif found.cause:
        where = "" if found.step is None else f" at step {found.step}"
        print_text(f"{found.run_id} differs{where}: {found.why}.", "yellow")
        if found.before != found.now:
            print_text(f"It was {found.before}, and is {found.now}.")
    elif found.calls:
        print_text(f"{found.calls} of its calls were made again and gave the same.")
    else:
        print_text(f"{found.run_id} was run again from its record: the same.")
    if found.passed_over:
        print_text(f"{found.passed_over} calls of tools that are not here were passed over.")
    raise typer.Exit(1 if found.cause else 0)
