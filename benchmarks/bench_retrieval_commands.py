"""Retrieval on texts of others: what a cheat sheet says is to be done, to the command whose man page says what it does.

    pip download --no-deps --no-binary :all: cheat==2.5.1 && tar xf cheat-2.5.1.tar.gz
    python benchmarks/bench_retrieval_commands.py cheat-2.5.1/cheat/cheatsheets [--half tune]

Entries are the pages of the machine's sections 1 and 8: name, the line of NAME with the beginning of DESCRIPTION, and
the rest of the page as the body. Queries are the comments of the sheets, written by other people; those that name
their command are left out. Halves by a hash of the command's name.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench_retrieval import files_of

from agentos.errors import UserError
from agentos.retrieval.embedding import WordLlama
from agentos.retrieval.index import Index
from agentos.testing.registry import FakeRegistry

PLACES = (1, 5, 12, 36, 100)
_DESCRIPTION = 300  # characters


def pages() -> dict[str, tuple[str, str]]:
    """Command -> (description, body); of pages with equal descriptions the first."""
    found: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    for section in (1, 8):
        for path in sorted(Path(f"/usr/share/man/man{section}").glob(f"*.{section}.gz")):
            name = path.name.removesuffix(f".{section}.gz").lower()
            if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) is None or name in found or len(name) > 60:
                continue
            with gzip.open(path, "rt", errors="replace") as page:
                text = page.read(120_000)
            parts = re.split(r"^\.S[Hh] +", text, flags=re.MULTILINE)
            sections = {part.partition("\n")[0].strip().strip('"').upper(): part for part in parts}
            line = plain(sections.get("NAME", "")).partition(" - ")[2]
            more = plain(sections.get("DESCRIPTION", ""))
            rest = [plain(part) for title, part in sections.items() if title not in ("NAME", "DESCRIPTION")]
            if len(line) > 5 and line not in seen:
                seen.add(line)
                found[name] = (f"{line}. {more[:_DESCRIPTION]}", " ".join([more[_DESCRIPTION:], *rest]))
    return found


def plain(roff: str) -> str:
    """Without macros and escapes, and without the section's title."""
    text = re.sub(r"\\(f\(?.|f\[[^]]*\]|&|%|/|,)", "", roff.partition("\n")[2])
    text = re.sub(r"\\\(..|\\[*]\S", " ", text).replace("\\-", "-").replace("\\", "")
    text = re.sub(r"^\.Nd ", "x - ", text, flags=re.MULTILINE)
    lines = [
        re.sub(r"^[.'][A-Za-z]+ ?", "", line)
        for line in text.splitlines()
        if not line.startswith(('.\\"', ".ad", ".nh"))
    ]
    return " ".join(" ".join(lines).replace('"', " ").split())


def queries(sheets: Path, known: dict[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """(what is to be done, the command) of every comment with at least four words that does not name it."""
    for path in sorted(sheets.iterdir()):
        if path.name not in known:
            continue
        for line in dict.fromkeys(path.read_text("utf-8", "replace").splitlines()):
            said = line.lstrip("# ").rstrip(": .")
            asked = re.findall(r"[a-z]+", said.lower())
            if line.startswith("#") and len(asked) >= 4 and path.name not in said.lower():
                yield said, path.name


def half_of(command: str) -> str:
    """By the command, so that no two halves share one."""
    return "tune" if hashlib.sha256(command.encode()).digest()[0] % 2 else "report"


def main() -> None:
    """Recall at 1, 5, 12, 36 and 100 places, by query and by command (each command counts once)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sheets", type=Path)
    parser.add_argument("--half", choices=("tune", "report"), default="tune")
    chosen = parser.parse_args()
    known = pages()
    asked = [(text, name) for text, name in queries(chosen.sheets, known) if half_of(name) == chosen.half]
    commands = {name for _, name in asked}
    print(f"{len(known):,} entries, {len(asked)} queries for {len(commands)} commands, {chosen.half} half")
    files = {k: v for name, texts in known.items() for k, v in files_of(f"skill/{name}", *texts).items()}
    registry = FakeRegistry(files)
    ways = {"bm25": None}
    try:
        ways["hybrid"] = WordLlama()
    except UserError as error:
        print(error)
    for label, embedder in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            index = Index(Path(folder, "index.db"), registry, embedder)
            index.refresh(registry.stable())
            began, ranks = time.process_time(), []
            for text, name in asked:
                hits = [str(hit.resource) for hit in index.find(registry.stable(), text, limit=100)]
                ranks.append((name, hits.index(f"skill/{name}") if f"skill/{name}" in hits else 1000))
            took = (time.process_time() - began) / max(len(asked), 1) * 1e3
        by_query = [sum(rank < most for _, rank in ranks) / len(ranks) for most in PLACES]
        by_command = []
        for most in PLACES:
            shares = [[rank < most for name, rank in ranks if name == one] for one in sorted(commands)]
            by_command.append(sum(sum(hit) / len(hit) for hit in shares) / len(shares))
        row = (
            ", ".join(f"{share:.2f}" for share in by_query),
            ", ".join(f"{share:.2f}" for share in by_command),
        )
        print(f"| {label} | {row[0]} | {row[1]} | {took:.1f} ms |")


if __name__ == "__main__":
    main()
