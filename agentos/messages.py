"""The frames of each job, as typed models: what the kernel sends into a box and what may come out.

Every job is one exchange on the channel (``agentos/wire.py``): the kernel sends a *job* frame,
the worker answers with frames of the types listed for that job, the last one being ``done`` or
``fault``. The kernel validates each frame it receives; one that does not fit ends the box
(``BoxDied("protocol")``). Readable inside the sandbox: standard library and pydantic only.

=========  ==========================================  =====================================
job        blobs sent with the job frame               frames that come back
=========  ==========================================  =====================================
run        the bundle's files, then the input files    (step | ask)*, then done (+ tar of outputs)
grade      tar of the run's outputs (may be empty)     done
load       the resource's files                        done
search     the resource's files, then case inputs      ready, then a tried for each try frame
mcp        the resource's files, inputs, then a tar    served, then a result for each call frame
=========  ==========================================  =====================================

While a run is under way, its worker may ask the kernel (``Ask``): for a model's answer, whether
and how to call a tool, what is remembered, a person, another agent, the outside world. Each ask is
answered by one ``Answer`` of the same id, in any order.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# In a bundle KIND/NAME/.wheels/ holds the modules that the resource's tools bring. No path in the
# registry has a dot there, so nothing in it can pretend to be one.
WHEELS = ".wheels"


# Words by which kernel and worker say what went wrong. An exception class of evolvable code that bears one of
# them for a name says something else by it, so its faults are told under another word (worker/faults.py).
RESERVED = frozenset(
    {
        *(
            "agent",
            "away",
            "bad_arguments",
            "budget",
            "check",
            "daemon",
            "day_budget",
            "denied",
            "died",
            "effect",
            "empty",
        ),
        *(
            "evolution_budget",
            "exit",
            "feedback",
            "gone",
            "grade",
            "grader",
            "harness",
            "imported",
            "input",
            "inputs",
        ),
        *("killed", "limit", "load", "loop", "memory", "mistake", "no_answer", "no_model", "not_allowed"),
        *(
            "not_available",
            "not_found",
            "not_made",
            "not_recorded",
            "other",
            "output",
            "over",
            "protocol",
            "rule",
        ),
        *(
            "refused",
            "request",
            "signal",
            "steps",
            "supervisor",
            "timeout",
            "uncertain",
            "unknown",
            "unknown_tool",
            "waiting",
            "wall",
        ),
        *("worker",),
    }
)


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WireFault(_Message):
    """As domain.Fault."""

    type: str = Field(max_length=200)
    message: str = Field(max_length=20_000)
    where: str = Field("", max_length=1_000)
    resource: str = Field("", max_length=200)


class WireCheck(_Message):
    """As domain.Check."""

    kind: str
    spec: dict[str, Any]


class ToolCard(_Message):
    """What a tool says of itself; its documentation is generated from this."""

    path: str
    name: str
    description: str
    effects: list[str]
    dependencies: list[str]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


class ModelCard(_Message):
    """What a run may know of a model it can ask."""

    name: str
    context_tokens: int


# --- jobs: kernel -> worker -------------------------------------------------------------------


class RunJob(_Message):
    """Run a task with the harness in the bundle. Files go to /snapshot, inputs to the workspace."""

    job: Literal["run"] = "run"
    run_id: str
    goal: str
    call: dict[str, Any] | None  # {"tool": …, "args": {…}}
    agent: str
    effects: list[str]
    max_steps: int
    max_calls: int = 0  # of models; 0: no limit, as of tokens
    max_tokens: int = 0
    tool_wall_s: float
    output_bytes: int
    memory_mb: int
    harness: str  # path within the bundle of the harness' directory
    command: list[str] | None = None  # of a black-box harness: what to start instead of harness.py
    files: list[str]  # registry paths, one for each blob
    inputs: list[str]  # workspace paths, one for each further blob
    cards: list[ToolCard] = []  # of the tools in the bundle, where the kernel has them at hand
    models: list[ModelCard] = []  # that the run may ask; the first is the agent's own
    more_skills: int = 0  # that are not in the bundle, and can be asked for by ``skills``


class GradeJob(_Message):
    """Apply the checks to the answer, with the run's outputs unpacked in the workspace."""

    job: Literal["grade"] = "grade"
    checks: list[WireCheck]
    answer: Any
    wall_s: float


class LoadJob(_Message):
    """Import every tool below the given paths and describe it."""

    job: Literal["load"] = "load"
    files: list[str]
    tools: list[str]  # paths of tool files among them
    wall_s: float = 5.0  # for importing one of them


class MigrateJob(_Message):
    """Call ``migrate(memories)`` of the file ``path`` (docs/understand/swap.md). Blobs: the files, then the texts."""

    job: Literal["migrate"] = "migrate"
    path: str
    files: list[str]
    memories: list[str]  # names, one for each further blob
    wall_s: float
    memory_mb: int
    output_bytes: int  # of what it returns, as JSON


class SearchJob(_Message):
    """Get ready to try many sources for ``path`` on the cases.

    They call ``tool``, where ``path`` is a text beside it, or what says how a program is called. Blobs: ``files``, then
    one of JSON with the cases (``[{"args": {…}, "inputs": {path: number of its content}, "checks": [WireCheck]}]``), which
    may be larger than a header, then the contents, each once.
    """

    job: Literal["search"] = "search"
    path: str
    tool: str = ""
    files: list[str]
    timeout_s: float  # for one source on one case
    memory_mb: int


class TrySource(_Message):
    """Within a search: try this source."""

    type: Literal["try"] = "try"
    source: str
    trace: bool = False
    cases: list[int] | None = None


class McpJob(_Message):
    """Start a program that speaks MCP on its standard streams (or reach one by ``url``), and call its tools. Blobs:
    ``files`` below ``root``, then ``inputs``, then the tar of what it brings where ``brings``.
    """

    job: Literal["mcp"] = "mcp"
    root: str  # kind/name of its resource
    files: list[str]
    inputs: list[str]
    brings: bool
    command: list[str]
    environment: dict[str, str]  # headers, where it is reached by URL
    url: str = ""
    hosts: list[str] = []  # that it may ask the kernel for; none: no way out
    certificate: str = ""  # PEM, key and certificate for these hosts: of use in this box alone
    wall_s: float  # until it has to have said what its tools are
    output_bytes: int  # of one message of it


class McpCall(_Message):
    """Within such a job: call this tool, by its name there."""

    type: Literal["call"] = "call"
    tool: str
    args: dict[str, Any]
    wall_s: float


# --- answers: worker -> kernel ----------------------------------------------------------------


class StepFrame(_Message):
    """One step, as it happened."""

    type: Literal["step"] = "step"
    node: str = Field(max_length=100)
    action: Any
    observation: Any
    fault: WireFault | None = None
    duration_ms: float = Field(ge=0)


class RunDone(_Message):
    """The run's end. ``answer`` is what the checks will see. One blob: tar of the outputs."""

    type: Literal["done"] = "done"
    finished: Literal["answered", "failed", "limit"]
    answer: Any = None
    fault: WireFault | None = None
    resources: list[str] = Field(default_factory=list, max_length=1_000)
    reached: list[str] = Field(default_factory=list, max_length=10_000)  # functions entered, by label


class WireCheckResult(_Message):
    """As domain.CheckResult."""

    kind: str
    passed: bool
    detail: str = Field("", max_length=4_000)


class GradeDone(_Message):
    """One result for each check, in order."""

    type: Literal["done"] = "done"
    checks: list[WireCheckResult]


class LoadDone(_Message):
    """The tools that loaded, and one sentence for each fault."""

    type: Literal["done"] = "done"
    tools: list[ToolCard]
    faults: list[str]


class MigrateDone(_Message):
    """What was returned, or why nothing was."""

    type: Literal["done"] = "done"
    output: Any = None
    fault: WireFault | None = None


class Ready(_Message):
    """A search's bench stands."""

    type: Literal["ready"] = "ready"


class TriedFrame(_Message):
    """What one source did."""

    type: Literal["tried"] = "tried"
    passed: list[bool]
    scores: list[float]
    outputs: list[Any]
    lines: list[list[int]] = Field(default_factory=list)
    # if traced: by case, the line at which its error left the file, or 0
    raised: list[int] = Field(default_factory=list)
    cpu_s: float = 0.0


class McpServed(_Message):
    """A server's own words: who it is, and its tools as it lists them."""

    type: Literal["served"] = "served"
    name: str = Field(max_length=1_000)
    version: str = Field(max_length=1_000)
    instructions: str = Field(max_length=100_000)
    tools: list[dict[str, Any]] = Field(max_length=500)


class McpResult(_Message):
    """What a call of its tool gave: the result as MCP has it, or why there is none."""

    type: Literal["result"] = "result"
    result: dict[str, Any] | None = None
    fault: WireFault | None = None


class FaultFrame(_Message):
    """The job could not be done at all."""

    type: Literal["fault"] = "fault"
    fault: WireFault


# --- asking the kernel: worker -> kernel, and back --------------------------------------------


class Ask(_Message):
    """The run asks for something that only the kernel can give. ``body`` by ``what``:

    - ``model``: an OpenAI chat completion request; answered by {"reply": chat completion}
    - ``tool``: {"tool", "args", "path"} before a call; answered by {"go": true}, or by
      {"observation", "fault"} of the recorded call, which then is not made, or by all three: it is
      made for what it does in the workspace, and gave what is recorded; with {"args"} it is made with these
    - ``recall``: {"query", "limit"}; answered by {"memories": [{"id", "text", "score"}]}
    - ``remember``: {"text", "why"}; answered by {"proposed": id}
    - ``skills``: {"query", "limit"}; answered by {"skills": [{"name", "description", "text"}]}
    - ``person``: {"question", "choices"}; answered by {"answer": text}, or not at all: then the run
      ends here and goes on in another box when the person has answered
    - ``delegate``: {"agent", "goal", "inputs"}; answered by {"run", "ok", "answer", "reason"}
    - ``fetch``: {"method", "url", "headers", "body"}; answered by {"status", "headers", "body"}
    """

    type: Literal["ask"] = "ask"
    id: int = Field(ge=0)
    what: Literal["model", "tool", "recall", "remember", "skills", "person", "delegate", "fetch"]
    body: dict[str, Any]


class Answer(_Message):
    """What the kernel gives: ``body`` as asked for, or why not."""

    type: Literal["answer"] = "answer"
    id: int
    body: dict[str, Any] = Field(default_factory=dict)
    fault: WireFault | None = None
