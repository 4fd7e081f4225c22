"""``agentos mcp serve``: the tools of a home over standard streams, or over HTTP to who has the token."""

from __future__ import annotations

import functools
import hmac
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos import __version__
from agentos.cli.tasks.waits import questions_of
from agentos.daemon.people.answers import chosen, give
from agentos.daemon.views.json_views import evolution_summary, evolution_whole, without_share
from agentos.domain import Evolution, EvolutionState, Feedback, Kind, Question, Rating
from agentos.errors import AgentOSError, Conflict, ErrorKind, Unavailable, UserError, missing_extra
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.postgres.address import has_ledger
from agentos.ledger.reading import Reader
from agentos.models.secrets import read_private
from agentos.plaintext import json_text

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken
    from mcp.server.mcpserver import MCPServer


_SESSIONS_MAX = 256
_LOOPBACK = ("127.0.0.1", "localhost")
_INSTRUCTIONS = (
    "A home of agentos: a daemon that runs tasks, keeps each run on record, and repairs by measurement what makes "
    "them fail. Queue work by add_task, look at it by show_task and show_run, and say by rate_run whether it was right."
)


def serve(home: Home, client: str, http: str) -> None:
    """Until the client hangs up, or Ctrl-C. ``http`` is HOST:PORT, "" for standard streams. Raises UserError."""
    from agentos.settings import load_settings
    from agentos.web.listening import BoundedServer, listening_on

    if not has_ledger(home.ledger):
        raise UserError(f"{home.root} is no home yet; type: `agentos init`")
    tools = HomeTools(home, client, may_approve=client in load_settings(home.settings).mcp.approve)
    if not http:
        _server(tools).run("stdio")
        return
    host, _, port = http.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UserError(f"--http is HOST:PORT, such as 127.0.0.1:8765; found '{http}'")
    if host not in _LOOPBACK:  # the token would go over the wire for everybody to read
        raise UserError(
            f"--http listens on this machine alone ({', '.join(_LOOPBACK)}); for another one forward the port: "
            f"ssh -L {port}:127.0.0.1:{port} HOST"
        )
    path, token = _token(home, client)
    server = _server(tools, _Verifier(token, client), f"http://{http}")
    with listening_on(host, int(port), "--http") as listening:
        app = server.streamable_http_app(host=host, max_sessions=_SESSIONS_MAX)
        listening.listen()
        print(
            f"http://{http}/mcp serves the client {client}; its token is in {path}",
            file=sys.stderr,
            flush=True,
        )
        BoundedServer(app, log_level="error").run(sockets=[listening])


def _server(tools: HomeTools, verifier: _Verifier | None = None, url: str = "") -> MCPServer:
    try:
        from mcp.server.auth.settings import AuthSettings
        from mcp.server.mcpserver import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError:
        raise Unavailable(missing_extra("mcp", "The MCP server"), kind=ErrorKind.NOT_INSTALLED) from None
    from pydantic import AnyHttpUrl

    auth = (
        AuthSettings(
            issuer_url=AnyHttpUrl(url),
            resource_server_url=AnyHttpUrl(f"{url}/mcp"),
            validate_token_resource=False,  # the one token is of this server alone
        )
        if url
        else None
    )
    server = MCPServer(
        "agentos",
        instructions=_INSTRUCTIONS,
        version=__version__,
        auth=auth,
        token_verifier=verifier,
        log_level="ERROR",
    )
    for tool in tools.reading():
        server.add_tool(_told(tool), annotations=ToolAnnotations(read_only_hint=True))
    for tool in tools.acting():
        server.add_tool(_told(tool), annotations=ToolAnnotations(destructive_hint=False))
    return server


def _told(tool: Callable[..., Any]) -> Callable[..., Any]:
    """With our own errors as sentences for the client; anything else is a bug, and said to be one."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def told(*args: Any, **more: Any) -> Any:
        try:
            return tool(*args, **more)
        except AgentOSError as error:
            raise ToolError(str(error)) from None

    return told


class _Verifier:
    """Lets in who sends the one token."""

    def __init__(self, token: str, client: str) -> None:
        self._token = token
        self._client = client

    async def verify_token(self, token: str) -> AccessToken | None:
        """See ``TokenVerifier``."""
        from mcp.server.auth.provider import AccessToken

        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        return AccessToken(token=token, client_id=self._client, scopes=[])


def _token(home: Home, client: str) -> tuple[Path, str]:
    """Where the client's token lies, and it; made at the first time, with mode 0600."""
    path = home.tokens / client
    home.tokens.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))
    token = read_private(path).decode().strip()
    if not token:
        raise UserError(f"{path} is empty: remove it, and a new token is made")
    return path, token


# --- What another program may do on this home by MCP: each method of ``HomeTools`` is one tool
# Its docstring is what the program reads. Nothing here can do more than the commands of the same name.


_STEPS_OF_A_RUN = 1 << 31  # none has as many; a larger number is none for the database
_LIST_MAX, _STEPS_MAX, _FOUND_MAX = 100, 200, 20


class HomeTools:
    """The tools for one client. ``client`` is what the person who configured it calls it."""

    def __init__(self, home: Home, client: str, *, may_approve: bool) -> None:
        self._home = home
        self._reader = Reader(home.ledger)
        self._client = client
        self._may_approve = may_approve

    def reading(self) -> Sequence[Callable[..., Any]]:
        """Those that change nothing."""
        return (
            self.show_task,
            self.list_runs,
            self.show_run,
            self.list_evolutions,
            self.show_evolution,
            self.list_questions,
            self.search_skills,
            self.search_memories,
        )

    def acting(self) -> Sequence[Callable[..., Any]]:
        """Those that change something; consent is among them only where the settings let this client give it."""
        approving = (self.approve_evolution,) if self._may_approve else ()
        return (self.add_task, self.rate_run, self.answer_question, *approving)

    # --- tasks and runs -------------------------------------------------------------------

    def add_task(
        self,
        goal: str,
        inputs: dict[str, str] | None = None,
        tool: str = "",
        args: dict[str, Any] | None = None,
        agent: str = "default",
        checks: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Queue a task for the daemon: a goal in words, files as name -> text, and, where one tool is to be called, its
        name with its args. The task has no effects outside. Gives the task's id; show_task tells how it went."""
        from agentos.daemon.intake.filing import file_task

        document: dict[str, Any] = {"goal": goal, "agent": agent, "checks": checks or []}
        if tool:
            document["call"] = {"tool": tool, "args": args or {}}
        files = {name: text.encode("utf-8", "replace") for name, text in (inputs or {}).items()}
        task = file_task(self._home, document, files)
        return {"task": task.id, "daemon": self._daemon()}

    def show_task(self, task: str) -> dict[str, Any]:
        """A task by its id: its state, and the result, answer and reason of its newest run."""
        reader = self._reader
        view = reader.task_view(reader.resolve("task", task))
        runs = reader.runs(view.task.id)
        asked = reader.open_questions(reader.root_of(view.task).id)
        newest = self._told_run(runs[0]) if runs else None
        told = {"id": view.task.id, "goal": view.task.goal, "state": view.state, "newest_run": newest}
        return _plain({**told, "runs": [run.id for run in runs], "questions": [one.id for one in asked]})

    def list_runs(self, limit: int = 20) -> dict[str, Any]:
        """The newest runs: id, task, result, and why where one did not pass."""
        return _plain(
            {"runs": [self._told_run(run, whole=False) for run in self._reader.runs(limit=_few(limit))]}
        )

    def show_run(self, run: str, after_step: int = -1) -> dict[str, Any]:
        """A run by its id: its answer, its checks and its steps (200 at a time; after_step is the last one seen)."""
        found = self._reader.run(self._reader.resolve("run", run))
        steps = self._reader.steps(found.id, max(-1, min(after_step, _STEPS_OF_A_RUN)))
        feedback = self._reader.find(Feedback, run_id=found.id)
        whole = {**without_share(found), **self._told_run(found)}
        return _plain(
            {"run": whole, "steps": steps[:_STEPS_MAX], "more": len(steps) > _STEPS_MAX, "feedback": feedback}
        )

    def rate_run(
        self, run: str, good: bool, because: str = "", expect: list[str] | None = None
    ) -> dict[str, Any]:
        """Say whether a run's answer is right. expect names what has to be there in the answer, as PATH=VALUE
        (=VALUE is all of it): with it the word is evidence, by which the program repairs itself."""
        from agentos.daemon.people.feedback import FeedbackDetails, speak

        said = FeedbackDetails(
            f"{because} (said by the MCP client {self._client})".strip(), tuple(expect or ())
        )
        words = speak(self._home, run, Rating.GOOD if good else Rating.BAD, said)
        return _plain({"feedback": [word.id for word in words], "checks": [word.checks for word in words]})

    # --- questions ------------------------------------------------------------------------

    def list_questions(self) -> dict[str, Any]:
        """What runs wait to be answered: id, text and choices of each question."""
        return _plain({"questions": self._reader.open_questions()})

    def answer_question(self, question: str, answer: str) -> dict[str, Any]:
        """Answer a run's question; its task goes on. Where there are choices, the answer is one of them."""
        (found,) = questions_of(self._reader, self._reader.resolve("question", question))
        if found.answered_at is not None:
            raise Conflict(f"{found.id} was answered already.", kind=ErrorKind.DECIDED)
        give(self._home, found, chosen(found, answer, 0))
        return _plain({"question": self._reader.get(Question, found.id)})

    # --- evolutions -----------------------------------------------------------------------

    def list_evolutions(self, limit: int = 20, state: str = "") -> dict[str, Any]:
        """The newest evolutions (what the program changes in itself): id, state, resource and edit."""
        if state and state not in set(EvolutionState):
            raise UserError(f"There is no state '{state}'; the states are {', '.join(EvolutionState)}.")
        equal = {"state": state} if state else {}
        found = self._reader.newest(Evolution, _few(limit), **equal)
        return _plain({"evolutions": [evolution_summary(self._reader, one) for one in found]})

    def show_evolution(self, evolution: str) -> dict[str, Any]:
        """An evolution by its id: evidence, cause, edit, trials, verdict and consent."""
        return _plain(evolution_whole(self._reader.story(self._reader.resolve("evolution", evolution))))

    def approve_evolution(self, evolution: str) -> dict[str, Any]:
        """Consent to the promotion of an edit that awaits it. Look at it by show_evolution first."""
        from agentos.daemon.offline import offline_context
        from agentos.evolver.promote.consent import person
        from agentos.evolver.promote.promotion import approve

        with offline_context(self._home) as parts:
            found = parts.evolution(self._reader.resolve("evolution", evolution))
            consent = approve(parts, found, person(), f"by the MCP client {self._client}")
        return _plain({"consent": consent.id, "evolution": found.id, "principal": consent.principal})

    # --- what agents have -----------------------------------------------------------------

    def search_skills(self, query: str, limit: int = 5) -> dict[str, Any]:
        """Skills and tools that fit a text, best first: name and description."""
        from agentos.resources import examine

        def told(index: Any, registry: Any, snapshot: Any) -> list[dict[str, Any]]:
            hits = index.find(snapshot, query, (Kind.SKILL, Kind.TOOL), min(_few(limit), _FOUND_MAX))
            found = []
            for hit in hits:
                resource = examine(hit.resource, registry.files(snapshot, str(hit.resource))).resource
                about = resource.description if resource else ""
                found.append({"resource": str(hit.resource), "description": about, "score": hit.score})
            return found

        return _plain({"found": self._searched(told)})

    def search_memories(self, query: str, limit: int = 5) -> dict[str, Any]:
        """What agents of this home remember that fits a text, best first."""

        def told(index: Any, _: Any, snapshot: Any) -> Any:
            return index.recall(snapshot, query, min(_few(limit), _FOUND_MAX))

        return _plain({"found": self._searched(told)})

    def _searched(self, told: Callable[[Any, Any, Any], Any]) -> Any:
        from agentos.registry.store import Registry
        from agentos.retrieval.index import Index

        registry = Registry(self._home.registry)
        with closing(Index(self._home.index, registry)) as index:
            return told(index, registry, registry.stable())

    # --- views ----------------------------------------------------------------------------

    def _told_run(self, run: Any, *, whole: bool = True) -> dict[str, Any]:
        outcome = run.outcome
        told = {
            "id": run.id,
            "task_id": run.task_id,
            "result": outcome.result if outcome else None,
            "why": outcome.reason if outcome else "",
        }
        return {**told, "answer": BlobStore(self._home.blobs).expand(run.answer)} if whole else told

    def _daemon(self) -> str:
        from agentos.daemon.control.daemon_lock import daemon_runs

        return "runs" if daemon_runs(self._home) else "does not run: a person types `agentos daemon start`"


def _few(limit: int) -> int:
    return max(1, min(limit, _LIST_MAX))


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """As ``--json`` gives it."""
    found: dict[str, Any] = json.loads(json_text(value))
    return found
