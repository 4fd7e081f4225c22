"""Runs the benchmarks one after another and gathers their result lines into one table.

A result line has four cells: ``| what | value | beside | remarks |`` (benchmarks/README.md).
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

HERE = Path(__file__).resolve().parent
RESULT = re.compile(r"\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|")


def results(script: Path) -> tuple[list[list[str]], int]:
    """Run one benchmark, passing its output on; its result lines and its exit code."""
    rows: list[list[str]] = []
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := RESULT.fullmatch(line.strip()):
                cells = [cell.strip() for cell in found.groups()]
                if set("".join(cells)) - set("-: "):  # not the rule below a heading
                    rows.append(cells)
    return rows, process.returncode


def main(only: list[str]) -> int:
    """Run all, or those named; 1 when one of them failed."""
    scripts = sorted(HERE.glob("bench_*.py"))
    chosen = [path for path in scripts if not only or path.stem.removeprefix("bench_") in only]
    if not chosen:
        names = ", ".join(path.stem.removeprefix("bench_") for path in scripts)
        print(f"no benchmark is named {' or '.join(only)}; there are: {names}", file=sys.stderr)
        return 2
    table = Table("part", "what", "measured", "beside", "remarks", box=None, header_style="bold")
    failed = []
    for script in chosen:
        part = script.stem.removeprefix("bench_")
        print(f"== {part}", flush=True)
        began = time.monotonic()
        rows, code = results(script)
        print(f"== {part}: {time.monotonic() - began:.0f} s", flush=True)
        if code:
            failed.append(part)
        for cells in rows:
            table.add_row(part, *(Text(cell) for cell in cells))
    console = Console(width=140 if not sys.stdout.isatty() else None, highlight=False)
    console.print(table)
    if failed:
        console.print(f"failed: {', '.join(failed)}", style="bold red")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
