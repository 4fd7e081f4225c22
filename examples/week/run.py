"""A week with agentos: three jobs on folders that change, and all that comes between.

    python examples/week/run.py [--home FOLDER] [--strict]

No model and no network but loopback. A clock that can be moved (`clock/`) makes seven nights of a minute. With
--strict the exit code is 1 when something that the week is to show did not happen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "demo"))

from driving import LIVE, Agentos, Json, command, wait_for  # noqa: E402

SECRET = "wiki-key-5d1f0c97ab"
NIGHTS = {  # name of the day -> lines of its log: level and message
    "Monday": ["ERROR no answer from db", "INFO started", "ERROR no answer from db"],
    "Tuesday": ["ERROR disk full", "ERROR no answer from db"],  # as many of each
    "Wednesday": ["INFO started", "INFO stopped"],
    "Thursday": ["ERROR disk full", *["ERROR no answer from db"] * 3, *["ERROR login refused"] * 2],
    "Friday": ["ERROR login refused", "ERROR disk full", "ERROR disk full"],
    "Saturday": ["ERROR disk full", *["ERROR login refused"] * 2],
    "Sunday": ["ERROR login refused", "INFO started"],
}
OVER = {"cannot_fix", "no_improvement", "rejected", "not_reproducible"}
RIGHT = ["no answer from db", "login refused", "disk full"]  # on Thursday
INVOICE = "From: Shop {n} <shop@example.org>\nSubject: Invoice\n\nInvoice 2026-{n}\nTotal: {n}0.50 EUR\n"


class Outside(BaseHTTPRequestHandler):
    """The wiki, which wants a key and may be down, and the place that messages are posted to."""

    def do_GET(self) -> None:
        week: Any = self.server
        week.keys.append(self.headers.get("Authorization"))
        known = self.path in ("/Runbook", "/Contacts") and week.keys[-1] == f"Bearer {SECRET}"
        self.send_response(503 if week.down else 200 if known else 404)
        self.end_headers()
        self.wfile.write(f"your key is {week.keys[-1]}".encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.messages.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def outside() -> Iterator[Any]:
    """On loopback, until the week is over."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Outside)
    server.keys, server.messages, server.down = [], [], False
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Week:
    """The folders of a person, their home of agentos, and the clock."""

    def __init__(self, console: Console, folder: Path, server: Any) -> None:
        self.console, self.folder, self.server = console, folder, server
        self.agentos = Agentos(folder / "home")
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.lacking: list[str] = []
        self.clock = folder / "clock"
        real = datetime.now(UTC)
        self.monday = (real + timedelta(days=7 - real.weekday())).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        self.clock.write_text("0")
        self.to(0, 4)

    def to(self, day: int, hour: float) -> datetime:
        """Move the clock to this hour (UTC) of a day of the week, 0 is Monday; what it shows then."""
        moment = self.monday + timedelta(days=day, hours=hour)
        with self.clock.open("r+") as file:  # the very file that the processes have open
            file.write(f"{(moment - datetime.now(UTC)).total_seconds():<31.3f}")
        return moment

    def write(self, path: str, text: str, moment: datetime) -> None:
        """A file of the person, written at that time."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (moment.timestamp(), moment.timestamp()))

    def night(self, day: int) -> Any:
        """What the services log that night; the digest that comes of it at half past five."""
        name = list(NIGHTS)[day]
        moment = self.to(day, 5)
        lines = [f"{moment:%Y-%m-%d %H:%M:%S} {line}\n" for line in NIGHTS[name]]
        self.write(f"logs/{name.lower()}.log", "".join(lines), moment)
        self.to(day, 5.5)
        found = json.loads(self.delivered(f"digests/{moment:%Y-%m-%d}.json"))
        self.say(f"{name}, the digest: {found['errors']} errors; {', '.join(found['causes']) or 'nothing'}")
        return found

    def delivered(self, path: str) -> str:
        """The text of a file, as soon as it is there."""
        file = self.folder / path
        wait_for(path, file.exists, every_s=0.1)
        return file.read_text()

    def message(self, event: str) -> Json:
        """The newest message of that event, as soon as it has come."""
        found: list[Json] = []

        def came() -> bool:
            found[:] = [one for one in self.server.messages if one["event"] == event]
            return bool(found)

        wait_for(f"a message '{event}'", came, every_s=0.1)
        self.say(f"  a message: {found[-1]['title']}")
        return found[-1]

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def show(self, promised: str, *, held: bool) -> None:
        """Remember what was promised and did not happen."""
        if not held:
            self.lacking.append(promised)


def begin(week: Week) -> None:
    """A home with three skills and three jobs."""
    os.environ["PYTHONPATH"], os.environ["WEEK_CLOCK"] = str(HERE / "clock"), str(week.clock)
    os.environ["TZ"] = "UTC"
    agentos = week.agentos
    agentos("init")
    settings = agentos.home / "agentos.toml"
    host = week.url.removeprefix("http://")
    settings.write_text(
        f'skills = ["{HERE / "skills"}"]\negress = ["{host}"]\n{settings.read_text()}\n'
        f'[notify]\nwebhook = "{week.url}/hook"\n'
    )
    environment = {**os.environ, "AGENTOS_HOME": str(agentos.home)}
    words = [sys.executable, "-m", "agentos", "secret", "set", "WIKI", "--host", week.url, "--file"]
    subprocess.run(words, input=SECRET, env=environment, check=True, text=True, stdout=subprocess.DEVNULL)
    for folder in ("logs", "inbox", "docs"):
        (week.folder / folder).mkdir()
    jobs = week.folder / "jobs.yaml"
    jobs.write_text((HERE / "jobs.yaml").read_text().replace("WIKI_ADDRESS", week.url))
    agentos("daemon", "start")
    wanted = {f"skill/{folder.name}" for folder in (HERE / "skills").iterdir()}
    wait_for(
        "the skills to be taken in",
        lambda: wanted <= {found["resource"] for found in agentos.json("registry", "list")},
        every_s=0.2,
    )
    week.say(agentos("schedule", "add", str(jobs)).rstrip())


def monday_to_wednesday(week: Week) -> None:
    """Quiet nights, invoices that arrive, and a wiki that is down once."""
    page = "# Service\n\n[runbook](wiki:Runbook) [setup](setup.md) [who](wiki:Contacts)\n"
    week.write("docs/README.md", page, week.to(0, 4))
    week.write("docs/setup.md", "[back](README.md)\n", week.to(0, 4))
    week.show("Monday's digest is right", held=week.night(0)["causes"] == ["no answer from db"])
    links = json.loads(week.delivered(f"links/{week.monday:%Y-%m-%d}.json"))
    week.show("no link is broken", held=links == {"links": 4, "broken": []})
    for n in (1, 2):
        week.write(f"inbox/shop-{n}.eml", INVOICE.format(n=n), week.to(0, 9 + n))
    for n in (1, 2):
        row = week.delivered(f"invoices/shop-{n}.csv").splitlines()[1]
        week.say(f"  invoices/shop-{n}.csv: {row}")
        week.show("an invoice is a row", held=row.endswith(f"2026-{n},{n}0.50"))
    week.server.down = True
    week.night(1)
    week.message("failed")
    week.server.down = False
    week.show("a night without errors is empty", held=week.night(2) == {"errors": 0, "causes": []})
    week.message("recovered")


def digests(week: Week) -> list[Json]:
    """The runs that the schedule of the digest started, the newest first; none that only judges one anew."""
    found = week.agentos.json("run", "list")
    tasks = {
        task["task"]["id"]
        for task in week.agentos.json("task", "list", "--all")
        if task["task"]["name"] == "log digest"
    }
    return [run for run in found if run["task_id"] in tasks and not run["regrades"]]


def thursday(week: Week) -> str:
    """The digest is wrong; a person says so, and what it was before that was right. The evolution that comes of it."""
    wrong = week.night(3)
    week.show("Thursday's digest is wrong", held=wrong["causes"] != RIGHT)
    newest, *before = digests(week)
    for run in before:
        week.agentos("run", "good", run["id"])
    answer = week.folder / "right.json"
    answer.write_text(json.dumps({**wrong, "causes": RIGHT}))
    week.say("A person says of three digests that they were right, and corrects Thursday's.")
    week.agentos(
        "run", "correct", newest["id"], "--answer", str(answer), "--because", "the most frequent comes first"
    )
    evolution = promoted(week)
    week.message("promoted")
    week.say(f"  {evolution['edit']}")
    return str(evolution["id"])


def promoted(week: Week) -> Json:
    """The evolution, once it went live."""
    found: list[Json] = []

    def live() -> bool:
        found[:] = week.agentos.json("evolution", "list")
        state = found[0]["state"] if found else ""
        if state == "awaiting_consent":
            week.say("  It waits for the person, who reads the edit and approves it.")
            week.agentos("evolution", "approve", found[0]["id"], "--yes")
        return state in LIVE or state in OVER

    wait_for("the evolution", live, every_s=3.0)
    week.show("the tool is mended", held=found[0]["state"] in LIVE)
    return found[0]


def friday_to_saturday(week: Week, evolution: str) -> None:
    """The digest is right by itself, and the edit is taken back."""
    friday = week.night(4)
    week.show("Friday's digest is right", held=friday["causes"] == ["disk full", "login refused"])
    week.agentos(
        "evolution", "revert", evolution, "--yes", "--reason", "whoever is on call reads it from its end"
    )
    week.message("rolled_back")
    saturday = week.night(5)
    week.show("after the revert it is as before", held=saturday["causes"] == ["disk full", "login refused"])


def sunday(week: Week, evolution: str) -> None:
    """The machine sleeps; then everything is looked over."""
    agentos = week.agentos
    agentos("daemon", "stop")
    week.say("The machine sleeps from Saturday to Monday.")
    moment = week.to(6, 5)
    week.write("logs/sunday.log", f"{moment:%Y-%m-%d %H:%M:%S} {NIGHTS['Sunday'][0]}\n", moment)
    moment = week.to(7, 7)
    agentos("daemon", "start")
    missed = json.loads(week.delivered(f"digests/{moment:%Y-%m-%d}.json"))
    week.show("what was missed is made up for once", held=missed["errors"] == 1)
    week.show("once only", held=len(digests(week)) == 7)
    week.say(agentos("schedule", "list").rstrip())
    for words in (("audit", "verify"), ("evolution", "verify", evolution), ("registry", "check")):
        week.say(agentos(*words).splitlines()[0])


def secret(week: Week) -> None:
    """The key reached the wiki, and lies in one file."""
    week.show("the wiki got the key", held=f"Bearer {SECRET}" in week.server.keys)
    task = {
        "goal": "Is the key in the box?",
        "call": {"tool": "wiki-links/box", "args": {"backwards": SECRET[::-1]}},
        "effects": ["read", "external"],
        "secrets": ["WIKI"],
        "limits": {"wall_s": 600},
        "checks": [{"equals": {"path": "found", "value": []}}],
    }
    file = week.folder / "box.yaml"
    file.write_text(yaml.safe_dump(task))
    (view,) = week.agentos.json("task", "run", str(file))
    answer = view["runs"][-1]["answer"]
    week.show("a box was searched", held=answer["files"] > 10 and answer["found"] == [])
    week.agentos("daemon", "stop")
    holding = [
        str(path.relative_to(week.agentos.home)) for path in files_with(SECRET.encode(), week.agentos.home)
    ]
    week.say(
        f"The key is in no file of the box ({answer['files']}), and in the home in: {', '.join(holding)}"
    )
    week.show("the key is in secrets.json alone", held=holding == ["secrets.json"])


def files_with(wanted: bytes, home: Path) -> list[Path]:
    """The files of a home that hold a text, objects of its registry unpacked."""
    objects = ["git", "-C", str(home / "registry.git"), "cat-file", "--batch-all-objects", "--batch"]
    found = [path for path in home.rglob("*") if path.is_file() and wanted in path.read_bytes()]
    packed = subprocess.run(objects, capture_output=True, check=True).stdout
    return found + ([home / "registry.git"] if wanted in packed else [])


def play(console: Console, folder: Path) -> list[str]:
    """The week; a sentence for each thing that it did not show."""
    with outside() as server:
        week = Week(console, folder, server)
        try:
            begin(week)
            monday_to_wednesday(week)
            evolution = thursday(week)
            friday_to_saturday(week, evolution)
            sunday(week, evolution)
            secret(week)
        finally:
            if week.agentos.home.exists():
                week.agentos("daemon", "stop", "--now")
        return week.lacking


if __name__ == "__main__":
    sys.exit(command("A week with agentos.", Path.home() / ".cache" / "agentos-week", play, sandboxes=False))
