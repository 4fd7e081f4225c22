"""Pictures of the six main pages, of a demo's home: ``make demo``, then ``python scripts/pictures.py .demo/home``.

They go to docs/pictures/. Needs chromium, as the tests of the page do (``scripts/setup.sh chromium``).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentos.domain import Evolution, EvolutionState, Result
from agentos.home import Home
from agentos.ledger.reading import Reader

WIDE, TALL = 1120, 760
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"


@contextmanager
def served(home: Home) -> Iterator[str]:
    """The link that lets a browser in."""
    command = [sys.executable, "-m", "agentos", "--home", str(home.root), "web", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        finally:
            process.terminate()


@contextmanager
def at_work(home: Home) -> Iterator[None]:
    """With a daemon on it, since a page without one says just that."""
    agentos = [sys.executable, "-m", "agentos", "--home", str(home.root), "daemon"]
    subprocess.run([*agentos, "start"], check=True)
    try:
        yield
    finally:
        subprocess.run([*agentos, "stop"], check=True)


def pages(home: Home) -> dict[str, str]:
    """Name -> address."""
    reader = Reader(home.ledger)
    promoted = [
        item
        for state in (EvolutionState.PROBATION, EvolutionState.PROMOTED)
        for item in reader.find(Evolution, state=state)
    ]
    evolution = max(promoted, key=lambda item: len(reader.story(item.id).trials))
    (run, *_) = reader.runs(result=Result.PASSED, limit=1)
    return {
        "inbox": "/",
        "evolution": f"/evolutions/{evolution.id}",
        "run": f"/runs/{run.id}",
        "tasks": "/tasks",
        "resource": f"/resources/{evolution.resource}",
        "failures": "/failures",
    }


def main() -> None:
    """All six, light."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    home = Home(parser.parse_args().home.resolve())
    FOLDER.mkdir(exist_ok=True)
    with at_work(home), served(home) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDE, "height": TALL}, color_scheme="light")
        page.goto(link)
        base = link.partition("/enter")[0]
        for name, address in pages(home).items():
            page.goto(base + address)
            for folder in page.locator(".foot .path").all():  # of this machine, and nobody's business
                folder.evaluate("it => it.textContent = '~/.agentos'")
            picture = FOLDER / f"{name}.png"
            page.screenshot(path=picture)
            print(f"{picture.name}: {picture.stat().st_size / 1e3:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
