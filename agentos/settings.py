"""What a person may set: ``agentos.toml`` in the home, overridden by ``AGENTOS_*`` variables.

Only the daemon, ``init`` and what checks the settings import this; commands that read must not (pydantic is
slow to start).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pwd
import re
import time
import tomllib
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from agentos.domain import Budget
from agentos.errors import ErrorKind, Invalid, meant, shown
from agentos.plaintext import line_of
from agentos.plugins import registry

_PREFIX = "AGENTOS_"
# Above what distributions and systemd hand out, below where subordinate ids begin (/etc/subuid). Where these are
# not mapped (in a container), the rest of what is.
_UIDS, _FEW_UIDS = range(65_600, 100_000), range(61_321, 65_534)
_CLAIMS = Path("/var/lib/agentos/uids")  # of this machine: a file for each uid, which holds the home's place
_CLAIM_S = 60.0  # until a home that made a claim has its settings


_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a number, not infinity",
    "string_type": "text in quotes",
    "list_type": "a list: [...]",
    "dict_type": "a table",
    "model_type": "a table",
    "path_type": "a path in quotes",
    "literal_error": "one of {expected}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_pattern_mismatch": "of the form {pattern}",
    "string_too_long": "at most {max_length} characters long",
}  # what pydantic calls a fault -> what was wanted


def _host(text: str) -> str:
    if re.fullmatch(r"[^/\s]+(/\d+)?", text) is None:
        raise ValueError("a host without http:// and path: 'api.example.org', '*.example.org', '10.1.2.0/24'")
    return text


Host = Annotated[str, AfterValidator(_host)]


def _address(text: str) -> str:
    """Of a URL, or HOST:PORT: what its pattern cannot say."""
    try:
        urlsplit(text if "://" in text else f"//{text}").port  # noqa: B018 - it raises
    except ValueError as error:
        raise ValueError(f"an address with a port up to 65535 ({error})") from None
    return text


Address = Annotated[str, AfterValidator(_address)]


def _one_of(kind: str, *first: str) -> Callable[[str], str]:
    """Accepts what ships and what installed plug-ins of the kind bring."""

    def accept(name: str) -> str:
        shipped = [*first, *registry.KINDS[kind].built_ins()]
        if name in shipped or name in (known := [*first, *registry.names(kind)]):
            return name
        *some, last = map(repr, known)
        expected = f"{', '.join(some)} or {last}" if some else last
        raise PydanticCustomError("literal_error", "{expected}", {"expected": expected})

    return accept


def _blobs(place: str) -> str:
    if "://" not in place:
        return _one_of("blob_stores")(place)
    if re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s?#@]+", place) is None:
        raise ValueError("a URL without keys: 's3://bucket/folder', 'file:///folder'")
    return place


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Provider(_Table):
    """Where models are reached, and which key is sent there. Never in the registry: see docs/use/models.md."""

    api_base: Address = Field("", max_length=1000, pattern=r"^(https?://[^\s]+)?$")
    key_env: str = Field("", max_length=100, pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")


class Budgets(_Table):
    """What model calls may use; 0 means no limit. A task's own limits go before those of a run."""

    run_usd: float = Field(1.0, ge=0)
    run_tokens: int = Field(2_000_000, ge=0)
    run_calls: int = Field(200, ge=0)
    evolution_usd: float = Field(10.0, ge=0)
    evolution_tokens: int = Field(20_000_000, ge=0)
    evolution_calls: int = Field(0, ge=0)
    evolution_seconds: float = Field(0.0, ge=0)
    day_usd: float = Field(20.0, ge=0)
    day_tokens: int = Field(50_000_000, ge=0)
    day_calls: int = Field(0, ge=0)
    day_seconds: float = Field(0.0, ge=0)

    @property
    def run(self) -> Budget:
        """Of one run; its seconds are bounded by its own limits."""
        return Budget(self.run_calls, self.run_tokens, self.run_usd)

    @property
    def evolution(self) -> Budget:
        """Of all calls for one evolution."""
        return Budget(self.evolution_calls, self.evolution_tokens, self.evolution_usd, self.evolution_seconds)

    @property
    def day(self) -> Budget:
        """Of everything on one day."""
        return Budget(self.day_calls, self.day_tokens, self.day_usd, self.day_seconds)


class Retention(_Table):
    """How long steps and files of runs are kept, and how large the home may become; 0 means no limit."""

    days: float = Field(30.0, ge=0, le=36_500)
    gb: float = Field(5.0, ge=0)


Event = Literal["failed", "recovered", "needs_you", "promoted", "rolled_back", "budget"]


class Notify(_Table):
    """Of what a person is told, and how; without a way nobody is."""

    on: list[Event] = list(get_args(Event))
    command: list[str] = Field(default_factory=list, max_length=50)
    webhook: Address = Field("", max_length=1000, pattern=r"^(https?://[^\s]+)?$")
    desktop: bool = False
    mail_to: str = Field("", max_length=300, pattern=r"^([^\s@]+@[^\s@]+)?$")
    mail_from: str = Field("", max_length=300, pattern=r"^([^\s@]+@[^\s@]+)?$")
    smtp: Address = Field("", max_length=300, pattern=r"^([^\s:]+:[0-9]{1,5})?$")
    smtp_security: Literal["starttls", "tls", "none"] = "starttls"
    smtp_user: str = Field("", max_length=200)
    smtp_secret: str = Field("", max_length=64)
    plugins: list[str] = Field(default_factory=list, max_length=20)


class AdoptSettings(_Table):
    """What is done for folders of other agents: how a promoted edit goes back, unless said for the folder."""

    give: Literal["branch", "patch", "in-place", "none"] = "branch"


class RegistrySettings(_Table):
    """Where else the registry lies: the address of a bare git repository, which gets each version.

    ``signing_key`` is the path of a private key of ssh, by which each push signs what it brings; "" for none.
    """

    mirror: str = Field("", max_length=1000, pattern=r"^([^\s-][^\s]*)?$")
    signing_key: str = Field("", max_length=1000, pattern=r"^([/~].*)?$")


class McpServing(_Table):
    """What programs may do that come by MCP, beside what all of them may: names of clients."""

    approve: list[str] = Field(default_factory=list, max_length=100)


SupervisorAct = Literal["off", "note", "warn", "ask", "stop"]


class SupervisorSettings(_Table):
    """What is done where a run looks lost; docs/use/supervisor.md."""

    loop: SupervisorAct = "stop"
    no_progress: SupervisorAct = "warn"
    refusals: SupervisorAct = "warn"
    cost: SupervisorAct = "warn"
    silent_tool: SupervisorAct = "note"
    hopeless: SupervisorAct = "note"
    overseer: SupervisorAct = "warn"
    lost: float = Field(0.02, ge=0, le=1)
    observed: float = Field(0.1, ge=0, le=1)
    overseer_model: str = Field("", max_length=64, pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")
    overseer_steps: int = Field(20, ge=1)
    overseer_calls: int = Field(5, ge=1)
    overseer_usd: float = Field(0.1, ge=0)


class WorkerSettings(_Table):
    """Where workers on other hosts join, and what this machine does beside them; docs/use/cluster.md."""

    listen: Address = Field("", max_length=300, pattern=r"^(([^\s:]+|\[[0-9a-f:]+\]):[0-9]{1,5})?$")
    certificate: str = Field("", max_length=1000)
    key: str = Field("", max_length=1000)
    here: int | None = Field(None, ge=0, le=256)
    lost_s: float = Field(10.0, ge=5, le=600)
    spot_checks: float = Field(0.05, ge=0, le=1)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of ``listen``."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


class KubernetesSettings(_Table):
    """The cluster that pods are made in where ``sandbox = "kubernetes"``; docs/use/kubernetes.md."""

    context: str = Field("", max_length=300)
    namespace: str = Field("agentos-boxes", pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    image: str = Field("", max_length=500, pattern=r"^([^\s]+)?$")
    seccomp: str = Field("agentos/box.json", max_length=300, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$")
    apparmor: str = Field("", max_length=300, pattern=r"^([^\s]+)?$")


class Settings(_Table):
    """Every setting with its default. ``docs/use/operating.md`` explains each."""

    sandbox: Annotated[str, AfterValidator(_one_of("sandboxes", "auto"))] = "auto"
    run_uid: int | None = Field(None, ge=1, lt=1 << 31)
    skills: list[Path] = Field(default_factory=list)
    parallel: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=256)
    evolutions: int = Field(2, ge=1, le=64)
    hold_out: float = Field(0.2, ge=0.0, le=0.9)
    evolve: Literal["auto", "manual"] = "auto"
    retrieval: Annotated[str, AfterValidator(_one_of("retrievers"))] = "bm25"
    blobs: Annotated[str, AfterValidator(_blobs)] = "files"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_mb: int = Field(10, ge=1, le=1000)
    web: bool = False
    web_port: int = Field(8420, ge=1, le=65535)
    database: str = Field("", max_length=1000, pattern=r"^(postgres(ql)?://[^\s]+)?$")
    otlp: Address = Field("", max_length=1000, pattern=r"^(https?://[^\s]+)?$")
    audit_heads: list[str] = Field(default_factory=list)
    model: str = Field("", max_length=64, pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")
    model_calls: int = Field(64, ge=1, le=4096)
    recording: Literal["record", "live"] = "record"
    egress: list[Host] = Field(default_factory=list)
    providers: dict[str, Provider] = Field(default_factory=dict)
    budget: Budgets = Budgets.model_validate({})
    retention: Retention = Retention.model_validate({})
    notify: Notify = Notify.model_validate({})
    adopt: AdoptSettings = AdoptSettings.model_validate({})
    mcp: McpServing = McpServing.model_validate({})
    registry: RegistrySettings = RegistrySettings.model_validate({})
    supervisor: SupervisorSettings = SupervisorSettings.model_validate({})
    workers: WorkerSettings = WorkerSettings.model_validate({})
    kubernetes: KubernetesSettings = KubernetesSettings.model_validate({})


_TABLES: dict[str, type[BaseModel]] = {
    "budget": Budgets,
    "retention": Retention,
    "notify": Notify,
    "adopt": AdoptSettings,
    "mcp": McpServing,
    "registry": RegistrySettings,
    "supervisor": SupervisorSettings,
    "workers": WorkerSettings,
    "kubernetes": KubernetesSettings,
}


def load_settings(path: Path) -> Settings:
    """Read the file (a missing one means all defaults) and the environment.

    Raises Invalid with one sentence for each fault, naming the file or variable and the key.
    """
    text = ""
    try:
        table = tomllib.loads(text := path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        table = {}
    except OSError as error:
        raise Invalid(
            str(path), [f"it cannot be read: {error.strerror}"], kind=ErrorKind.UNREADABLE
        ) from None
    except UnicodeDecodeError as error:
        raise Invalid(str(path), [f"it is not UTF-8 text (byte {error.start})"]) from None
    except (ValueError, RecursionError) as error:
        raise Invalid(str(path), [f"it is not TOML: {error}"]) from None
    try:
        return Settings.model_validate(_with_variables(table))
    except ValidationError as error:
        raise Invalid(str(path), [_sentence(fault, text) for fault in error.errors()]) from None


def settings_text(path: Path) -> str:
    """The file as it stands, line ends and all, without a byte order mark; "" where there is none.

    Raises Invalid for settings that are none, which nobody can change a part of.
    """
    load_settings(path)
    return path.read_bytes().decode("utf-8-sig") if path.exists() else ""


def _with_variables(table: dict[str, Any]) -> dict[str, Any]:
    """The file's table with ``AGENTOS_KEY`` and ``AGENTOS_TABLE__KEY`` over it; a list or table is JSON."""
    found = dict(table)
    for name in sorted(os.environ):  # a whole table before its keys
        *tables, key = name.upper().removeprefix(_PREFIX).lower().split("__")
        if not name.upper().startswith(_PREFIX) or (tables or [key])[0] not in Settings.model_fields:
            continue
        value: Any = os.environ[name]
        if value.lstrip().startswith(("[", "{")):
            with suppress(ValueError):  # told as what it is, if it is no text that the setting takes
                value = json.loads(value)
        place = found
        for part in tables:
            inner = place.get(part)
            place[part] = place = dict(inner) if isinstance(inner, dict) else {}
        inner = place.get(key)
        place[key] = inner | value if isinstance(inner, dict) and isinstance(value, dict) else value
    return found


def strange_variables(given: Collection[str], path: Path, others: Collection[str]) -> list[str]:
    """A sentence for each of the ``given`` variables that sets nothing: no setting, none of ``others``, no key of a provider."""
    try:
        keys = {provider.key_env for provider in load_settings(path).providers.values()}
    except Invalid:  # told by whoever reads the settings
        keys = set()
    known = {_PREFIX + name.upper() for name in Settings.model_fields}
    return [
        f"the variable {name} is no setting and changes nothing "
        f"({meant(name.upper(), {*known, *others}, 'docs/use/operating.md names them')})"
        for name in sorted(given)
        if name not in keys and name.upper().partition("__")[0] not in known and name.upper() not in others
    ]


def _sentence(fault: Any, text: str) -> str:
    names = [part for part in fault["loc"] if isinstance(part, str)]
    whole = line_of(text, "", ".".join(names)) if names else ""
    line = (line_of(text, names[-1], ".".join(names[:-1])) or whole) if names else ""
    key = ".".join(str(part) for part in fault["loc"])
    variable = _PREFIX + str(fault["loc"][0]).upper() if fault["loc"] else ""
    if fault["type"] == "extra_forbidden":
        table = _table_of(fault["loc"])
        if table is not Settings and (name := names[-1]) in Settings.model_fields:
            return f"{line}'{key}' is no setting, but '{name}' is: put it above the first [table] of the file"
        there = f"there are: {', '.join(table.model_fields)}"
        return f"{line}'{key}' is no setting ({meant(names[-1], table.model_fields, there)})"
    where = f"the variable {variable}" if variable in os.environ else f"{line}'{key}'"
    return f"{where} is {shown(fault['input'], 80)}, but it should be {_expected(fault)}"


def _expected(fault: Any) -> str:
    """What pydantic expected, in words for a person."""
    bounds = {key: value for key, value in fault.get("ctx", {}).items() if key != "error"}
    word = _EXPECTED.get(fault["type"])
    if word is None:  # a kind of fault that no setting has had yet: its own words
        return str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    if fault["loc"] == ("database",):  # its pattern would be read by few
        return "of the form 'postgresql://user@host/database', or empty for a file in the home"
    return word.format(**bounds)


def _table_of(place: tuple[int | str, ...]) -> type[BaseModel]:
    """The table in which a key stands that is no setting."""
    if len(place) > 1 and place[0] in _TABLES:
        return _TABLES[str(place[0])]
    return Provider if len(place) > 2 and place[0] == "providers" else Settings


def claim_uid(home: Path, claims: Path = _CLAIMS) -> int:
    """A user id that no account and no other home of this machine has: what boxes run as under root.

    Claimed until the home is no more. Where claims cannot be kept it follows from the home's place alone.
    """
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    place = str(home.absolute())
    uids = _UIDS if _is_mapped(_UIDS[-1]) else _FEW_UIDS
    first = int.from_bytes(hashlib.sha256(os.fsencode(place)).digest()[:8], "big") % len(uids)
    free: list[int] = [uid for uid in (*uids[first:], *uids[:first]) if uid not in taken]
    try:
        claims.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = os.open(claims, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            uid = next(uid for uid in free if _is_void(claims / str(uid), uid, place))
            (claims / str(uid)).write_text(place, "utf-8", "surrogateescape")
        finally:
            os.close(lock)
    except (OSError, StopIteration):
        return free[0]
    return uid


def _is_mapped(uid: int) -> bool:
    """Whether this user namespace has the uid."""
    rows = (map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return any(inner <= uid < inner + count for inner, _, count in rows)


def _is_void(claim: Path, uid: int, place: str) -> bool:
    """Whether there is none, or the home that it was made for is this one, is gone, or has another uid by now."""
    try:
        owner, age_s = claim.read_text("utf-8", "surrogateescape"), time.time() - claim.stat().st_mtime
    except FileNotFoundError:
        return True
    try:
        found = tomllib.loads(Path(owner, "agentos.toml").read_text("utf-8-sig"))
    except FileNotFoundError:
        return owner == place or abs(age_s) > _CLAIM_S
    except (OSError, ValueError):
        return False
    return owner == place or found.get("run_uid") != uid


def first_settings(run_uid: int | None) -> str:
    """The text of a fresh ``agentos.toml``: every key there is, with its default as a comment."""
    uid = f"run_uid = {run_uid}" if run_uid is not None else "# run_uid = 65600"
    return f"""\
# Settings of this agentos home. Each can also be given as a variable: AGENTOS_PARALLEL=4.
# docs/use/operating.md explains them. The daemon reads this file when it starts; models and providers always.

# sandbox = "auto"        # or "bubblewrap", "docker", "kubernetes": that one for everything
{uid}        # as root only: the user id that tasks run as; no account may have it
# skills = ["~/my-skills"]  # watched beside the folder skills/ of this home
# parallel = 4             # tasks at a time; default: the number of cores
# evolutions = 2           # evolutions side by side; one that waits for the machinery does not count
# hold_out = 0.2           # share of tasks that proposers of edits never see
# evolve = "auto"          # or "manual": only when `agentos evolve` is typed
# retrieval = "bm25"       # or "hybrid": by meaning too; pip install 'agentos-daemon[embeddings]'
# blobs = "files"          # or "s3://bucket/folder", a plug-in's store: where content lies; `agentos home move --blobs`
# log_level = "info"       # debug, info, warning, error
# log_mb = 10              # size at which a log is rotated; three old ones are kept
# web = false              # true: the daemon keeps the page up, on web_port
# web_port = 8420
# database = ""            # postgresql://user@host/name: the ledger there; `agentos home move` brings it and sets this
# otlp = ""                # an OpenTelemetry collector that gets spans of every run: http://localhost:4318
# audit_heads = []         # where heads of the audit log go: ["/mnt/other/heads", "http://localhost:4318"]
# model = "main"           # the model resource that agents use as "default"; `agentos model add` sets it
# model_calls = 64         # model calls in flight at a time
# recording = "record"     # or "live": count model calls, but keep none of their texts
# egress = []              # hosts that tools with outside effects may reach: ["api.example.org"]

## Where models are reached. The key is read from the variable key_env, else from keys.toml (mode 0600).
# [providers.local]
# api_base = "http://127.0.0.1:11434/v1"
# key_env = "LOCAL_API_KEY"

## What model calls may use before they are refused; 0 is no limit. Days are those of UTC.
# [budget]
# run_usd = 1.0
# run_tokens = 2_000_000
# run_calls = 200
# evolution_usd = 10.0
# evolution_tokens = 20_000_000
# evolution_calls = 0
# evolution_seconds = 0.0
# day_usd = 20.0
# day_tokens = 50_000_000
# day_calls = 0
# day_seconds = 0.0

## Steps and files of runs that are older than this, or the oldest ones while the home is larger, go; 0 is no limit.
# [retention]
# days = 30
# gb = 5

## Of what you are told, by every way that is named here; `agentos notify test` tries them.
# [notify]
# on = ["failed", "recovered", "needs_you", "promoted", "rolled_back", "budget"]
# command = []             # a program that gets one JSON document on standard input
# webhook = ""             # an URL that gets it by POST
# desktop = false          # notify-send
# mail_to = ""
# mail_from = ""           # else as mail_to
# smtp = ""                # host:port; else the program sendmail
# smtp_security = "starttls"  # or "tls", "none"
# smtp_user = ""
# smtp_secret = ""         # the name of a secret (`agentos secret set`), which is the password
# plugins = []             # names of notifiers that are installed (docs/use/plugins.md)

## How a promoted edit goes back to a folder that was adopted: "branch", "patch", "in-place" or "none".
# [adopt]
# give = "branch"

## What programs may do that come by MCP (`agentos mcp serve --client NAME`).
# [mcp]
# approve = []             # names of clients that may consent to promotions

## Where else the registry lies: a bare git repository that gets each version (docs/use/stores.md).
# [registry]
# mirror = ""              # ssh://git@host/agentos.git
# signing_key = ""         # /etc/agentos/signing: a private key of ssh that signs each version there

## What is done where a run looks lost: "off", "note", "warn" (the agent), "ask" (a person) or "stop".
# [supervisor]
# loop = "stop"            # the same calls with the same results; first a warning, then the end
# no_progress = "warn"     # nothing new for many calls
# refusals = "warn"        # one refusal after the other
# cost = "warn"            # far more than such work took
# silent_tool = "note"     # a tool that takes far longer than it ever did
# hopeless = "note"        # runs that began like this one hardly ever passed
# overseer = "warn"        # what a model that looks on calls lost
# lost = 0.02              # of the successes, what a check may cost before it may neither stop nor ask
# observed = 0.1           # share of tasks that are only looked at, so that this stays measured
# overseer_model = ""      # the model resource that looks on; "": none
# overseer_steps = 20      # it looks each time that a run has made so many more steps
# overseer_calls = 5       # of one run
# overseer_usd = 0.1       # of one run; 0 is no limit

## Workers on other hosts (docs/use/cluster.md): they join there, each with a token of its own.
# [workers]
# listen = ""              # "127.0.0.1:8421"; another address needs a certificate
# certificate = ""         # a PEM file, with its chain
# key = ""                 # of the certificate
# here = 4                 # runs at a time that get their boxes on this machine; default: as `parallel`; 0: none
# lost_s = 10.0            # without a word, after which a worker is given up
# spot_checks = 0.05       # share of the trials on workers that are run again on another host

## The cluster of sandbox = "kubernetes" (docs/use/kubernetes.md); the kubeconfig is that of kubectl.
# [kubernetes]
# context = ""             # of the kubeconfig; "": its current one, or the cluster that the daemon itself runs in
# namespace = "agentos-boxes"
# image = ""               # registry.example.org/agentos-sandbox:1f2e…, pushed there after `agentos sandbox build`
# seccomp = "agentos/box.json"  # that profile on the nodes, which `agentos sandbox profile` prints
# apparmor = ""            # a profile on the nodes that allows mounts, where they have AppArmor
"""
