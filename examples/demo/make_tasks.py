"""Writes the demo's task files: real inputs, and answers worked out without the demo's tools.

Each expected value is computed here, on this machine, from the same file that the task hands to the
tool, but by other means than the tool's: text comparison instead of date arithmetic, the tokenizer
instead of the syntax tree, plain string splitting instead of the csv and mailbox modules. So a fault
in a tool is not repeated here, and a changed file changes the expectation with it.

    python examples/demo/make_tasks.py FOLDER
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.resources
import io
import re
import sys
import sysconfig
import tokenize
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "examples" / "data"
STDLIB = Path(sysconfig.get_path("stdlib"))

TaskDocument = dict[str, Any]


def task(goal: str, tool: str, files: dict[str, Path], expected: dict[str, Any], **args: Any) -> TaskDocument:
    """One task: ``files`` maps the tool's argument to a file, ``expected`` a path in the answer to a value."""
    names = {argument: path.name for argument, path in files.items()}
    return {
        "name": goal,
        "goal": goal,
        "call": {"tool": tool, "args": {**names, **args}},
        "inputs": [{"path": str(path), "as": path.name} for path in dict.fromkeys(files.values())],
        "effects": ["read"],
        "checks": [{"equals": {"path": path, "value": value}} for path, value in expected.items()],
    }


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file without quoting."""
    head, *rows = (line.split(",") for line in path.read_text().splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def installed(distribution: str, name: str) -> Path:
    """A file of an installed distribution's dist-info directory."""
    files = importlib.metadata.files(distribution) or []
    return Path(str(next(file for file in files if file.name == name).locate()))


# --- record-sizes -----------------------------------------------------------------------------


def record_sizes() -> Iterator[TaskDocument]:
    wanted = [("pluggy", ""), ("rich", ""), ("typer", ""), ("iniconfig", "")]
    wanted += [("rich", ".py"), ("click", ".py"), ("pyyaml", ".pyi")]
    for distribution, suffix in wanted:
        record = installed(distribution, "RECORD")
        lines = [line.rsplit(",", 2) for line in record.read_text().splitlines()]
        sizes = [(path.strip('"'), int(size or "0")) for path, _, size in lines]
        chosen = [(path, size) for path, size in sizes if path.endswith(suffix)]
        expected = {"files": len(chosen), "bytes": sum(size for _, size in chosen)}
        what = f"its {suffix} files" if suffix else "all its files"
        goal = f"How large is {distribution}, counting {what}?"
        yield task(goal, "record-sizes/size_by_suffix", {"record": record}, expected, suffix=suffix)


# --- zone-tables ------------------------------------------------------------------------------


def zone_tables() -> Iterator[TaskDocument]:
    zones = Path(str(importlib.resources.files("tzdata") / "zoneinfo" / "zone1970.tab"))
    text = zones.read_text()
    for country in ("NL", "SE", "KE", "CZ", "PT", "CL", "in"):
        line = re.compile(rf"^(?:[A-Z]+,)*{country.upper()}(?:,[A-Z]+)*\t\S+\t(\S+)(\t.+)?$", re.MULTILINE)
        found = line.findall(text)
        expected = {
            "zones": sorted(zone for zone, _ in found),
            "remarks": sum(bool(note) for _, note in found),
        }
        goal = f"Which time zones does {country} keep?"
        yield task(goal, "zone-tables/zones_of_country", {"table": zones}, expected, country=country)


# --- mail-senders -----------------------------------------------------------------------------


def mail_senders() -> Iterator[TaskDocument]:
    wanted = [("gardeners", ""), ("choir", ""), ("orchard", ""), ("support", "client.example")]
    wanted += [("announce", ""), ("alumni", ""), ("alumni", "class91.example")]
    for name, domain in wanted:
        mbox = DATA / "mail" / f"{name}.mbox"
        headers = re.findall(r"^From: .*?<?([^\s<>]+@[^\s<>]+?)>?$", mbox.read_text(), re.MULTILINE)
        addresses = [
            address.lower() for address in headers if not domain or address.lower().endswith(f"@{domain}")
        ]
        senders = {address: addresses.count(address) for address in sorted(set(addresses))}
        expected = {"messages": len(addresses), "senders": senders}
        goal = f"Who wrote how often to {name}" + (f" from {domain}?" if domain else "?")
        yield task(goal, "mail-senders/count_senders", {"mbox": mbox}, expected, domain=domain)


# --- log-window -------------------------------------------------------------------------------


def log_window() -> Iterator[TaskDocument]:
    for name, word in (
        ("gateway", ""),
        ("gateway", "INFO"),
        ("importer", ""),
        ("dpkg", "status"),
    ):
        log = DATA / "logs" / f"{name}.log"
        stamps = sorted({line[:19] for line in log.read_text().splitlines()})
        of_word = sorted(
            {line[:19] for line in log.read_text().splitlines() if word in ("", line.split()[2])}
        )
        third = len(of_word) // 3
        yield _window(log, of_word[third], of_word[2 * third], word)
        if word in ("", "INFO"):
            yield _window(log, _between(stamps), "2099-01-01 00:00:00", word)


def _between(stamps: list[str]) -> str:
    """A moment at which nothing was logged, near the middle: a second after an entry."""
    for earlier, later in pairwise(stamps[len(stamps) // 2 :]):
        moment = f"{earlier[:17]}{int(earlier[17:]) + 1:02d}"
        if earlier < moment < later and moment[17:] < "60":
            return moment
    raise ValueError("this log has an entry in every second")


def _window(log: Path, since: str, until: str, word: str) -> TaskDocument:
    # ISO dates order as text: no date arithmetic is needed to tell what lies within.
    lines = [line.split() for line in log.read_text().splitlines() if since <= line[:19] < until]
    words = [fields[2] for fields in lines if word in ("", fields[2])]
    expected = {"entries": len(words), "words": {each: words.count(each) for each in sorted(set(words))}}
    goal = f"How many {word or 'entries'} are in {log.name} from {since} until {until}?"
    args = {"since": since, "until": until, "word": word}
    return task(goal, "log-window/count_window", {"log": log}, expected, **args)


# --- code-outline -----------------------------------------------------------------------------


def code_outline() -> Iterator[TaskDocument]:
    for name, at_boundary in (
        ("textwrap", True), ("shlex", True), ("configparser", True), ("argparse", True),
        ("textwrap", False), ("fnmatch", False), ("csv", False),
    ):  # fmt: skip
        source = STDLIB / f"{name}.py"
        lengths = function_lengths(source.read_text(encoding="utf-8"))
        present = sorted({length for _, length in lengths}, reverse=True)
        # At the boundary: exactly as long as the third longest. Off it: a length that no function has.
        lines = present[2] if at_boundary else next(n for n in range(8, 500) if n not in present)
        long = sorted((-length, function) for function, length in lengths if length >= lines)
        expected = {"functions": len(lengths), "long": [function for _, function in long]}
        goal = f"Which functions of {name}.py have {lines} lines or more?"
        yield task(goal, "code-outline/long_functions", {"source": source}, expected, lines=lines)


def function_lengths(text: str) -> list[tuple[str, int]]:
    """Name and number of lines of each function, from indentation tokens alone."""
    found: list[tuple[str, int]] = []
    open_: list[tuple[str, int, int]] = []  # name, first line, depth of the body
    depth = last = 0
    for line in logical_lines(text):
        for token in line:
            if token.type == tokenize.INDENT:
                depth += 1
            elif token.type == tokenize.DEDENT:
                if open_ and open_[-1][2] == depth:
                    function, first, _ = open_.pop()
                    found.append((function, last - first + 1))
                depth -= 1
        words = [token for token in line if token.string.strip()]
        if words and words[0].string == "def":
            open_.append((words[1].string, words[0].start[0], depth + 1))
            if words[-1].string != ":":
                raise ValueError("a function on one line is not handled: choose another file")
        if words:
            last = words[-1].end[0]
    return found


def logical_lines(text: str) -> Iterator[list[tokenize.TokenInfo]]:
    """The tokens of each statement, comments left out; changes of depth stand before its first word."""
    line: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            line.append(token)
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            yield line
            line = []


# --- expense-report ---------------------------------------------------------------------------


def expense_report() -> Iterator[TaskDocument]:
    wanted = [("2026-01", "food", "share"), ("2026-02", "travel", "share"), ("2026-03", "home", "share")]
    wanted += [("2026-03", "travel", "share"), ("2026-02", "", "share"), ("2026-01", "food", "sum")]
    wanted += [("2026-02", "home", "mean")]
    for month, category, measure in wanted:
        path = DATA / "expenses" / f"{month}.csv"
        rows = table(path)
        chosen = [Fraction(row["amount"]) for row in rows if category in ("", row["category"])]
        value = {
            "sum": sum(chosen, Fraction(0)),
            "mean": sum(chosen) / Fraction(max(len(chosen), 1)),
            "share": sum(chosen) / sum(Fraction(row["amount"]) for row in rows),
        }[measure]
        expected = {"value": round(float(value), 4), "entries": len(chosen)}
        goal = f"What is the {measure} of {category or 'all'} expenses in {month}?"
        args = {"category": category, "measure": measure}
        yield task(goal, "expense-report/expenses", {"table": path}, expected, **args)


# --- stock-compare and reorder-list -----------------------------------------------------------


def stock_compare() -> Iterator[TaskDocument]:
    for first, second in (
        (2, 3),
        (4, 5),
        (1, 3),
        (3, 2),
        (2, 5),
        (1, 2),
        (3, 4),
    ):
        old, new = (DATA / "stock" / f"depot-{number}.csv" for number in (first, second))
        before, after = ({tuple(row.values())[:2] for row in table(path)} for path in (old, new))
        names = [{article for article, _ in stock} for stock in (before, after)]
        expected = {
            "added": sorted(names[1] - names[0]),
            "removed": sorted(names[0] - names[1]),
            "changed": sorted({article for article, _ in before ^ after} & names[0] & names[1]),
        }
        goal = f"What changed from {old.stem} to {new.stem}?"
        yield task(goal, "stock-compare/compare_stock", {"old": old, "new": new}, expected)


def reorder_list() -> Iterator[TaskDocument]:
    for name in ("north", "south", "market", "station", "harbour", "hill", "mill", "park"):
        stock = DATA / "stock" / f"shop-{name}.csv"
        rows = [(row["article"], int(row["quantity"]), int(row["minimum"])) for row in table(stock)]
        short = sorted(article for article, quantity, minimum in rows if minimum and quantity <= minimum)
        goal = f"What has run low at {stock.stem}?"
        yield task(goal, "reorder-list/reorder", {"stock": stock}, {"articles": len(rows), "reorder": short})


# --- requirements-list ------------------------------------------------------------------------


def requirements_list() -> Iterator[TaskDocument]:
    wanted = [("jsonschema", True), ("dbos", True), ("httpx", True), ("rich", True)]
    wanted += [("jsonschema", False), ("langgraph", False), ("typer", True)]
    for distribution, extras in wanted:
        metadata = installed(distribution, "METADATA")
        lines = [
            line.removeprefix("Requires-Dist: ")
            for line in metadata.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
            if line.startswith("Requires-Dist: ")
        ]
        names = {
            re.split(r"[ ;<>=!~(\[]", line)[0].lower() for line in lines if extras or "extra ==" not in line
        }
        with_extras = " with all extras" if extras else ""
        goal = f"What does {distribution} require{with_extras}?"
        args = {"extras": extras}
        expected = {"names": sorted(names)}
        yield task(goal, "requirements-list/requirements", {"metadata": metadata}, expected, **args)


# --- till-report ------------------------------------------------------------------------------


def till_report() -> Iterator[TaskDocument]:
    for day in ("02", "03", "04", "05", "06", "07", "09", "10"):
        journal = DATA / "till" / f"2026-03-{day}.csv"
        cents = [int(row["amount"].replace(".", "")) for row in table(journal) if row["kind"] != "void"]
        goal = f"What did the till take on 2026-03-{day}?"
        expected = {"takings": sum(cents) / 100, "entries": len(cents)}
        yield task(goal, "till-report/takings", {"journal": journal}, expected)


# --- log-span ---------------------------------------------------------------------------------

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def log_span() -> Iterator[TaskDocument]:
    for name in ("auth", "cron", "kern", "mailer", "gateway", "importer", "dpkg"):
        log = DATA / "logs" / f"{name}.log"
        seconds = [_second(line) for line in log.read_text().splitlines()]
        expected = {"seconds": max(seconds) - min(seconds), "entries": len(seconds)}
        yield task(f"Which span does {log.name} cover?", "log-span/time_span", {"log": log}, expected)


def _second(line: str) -> int:
    if line[0].isdigit():
        day, clock = date(int(line[:4]), int(line[5:7]), int(line[8:10])), line[11:19]
    else:
        day, clock = date(2026, MONTHS.index(line[:3]) + 1, int(line[4:6])), line[7:15]
    hours, minutes, seconds = map(int, clock.split(":"))
    return (day.toordinal() * 24 + hours) * 3600 + minutes * 60 + seconds


# --- license-words ----------------------------------------------------------------------------


def license_words() -> Iterator[TaskDocument]:
    for path in (ROOT / "LICENSE", DATA / "mail" / "choir.mbox"):
        letters = "".join(
            c.lower() if c.isascii() and c.isalpha() else " " for c in path.read_text(encoding="utf-8")
        )
        words = letters.split()
        ranked = sorted((-words.count(word), word) for word in set(words) if len(word) > 4)
        expected = {
            "words": len(words),
            "distinct": len(set(words)),
            "frequent": [word for _, word in ranked[:5]],
        }
        yield task(
            f"Which words are frequent in {path.name}?", "license-words/word_counts", {"text": path}, expected
        )


MAKERS = (
    record_sizes, zone_tables, mail_senders, log_window, code_outline, expense_report, stock_compare,
    requirements_list, till_report, reorder_list, log_span, license_words,
)  # fmt: skip


def write_tasks(folder: Path) -> list[Path]:
    """One YAML file for each skill of the demo; the files, sorted."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for maker in MAKERS:
        path = folder / f"{maker.__name__.replace('_', '-')}.yaml"
        path.write_text(yaml.safe_dump(list(maker()), sort_keys=False, allow_unicode=True, width=110))
        written.append(path)
    return sorted(written)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the demo's task files.")
    parser.add_argument("folder", type=Path)
    for path in write_tasks(parser.parse_args().folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
