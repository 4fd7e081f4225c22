"""What a task without a call is given: by its agent's lists, and by its goal where there is much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.daemon.job.bundle import Bundle, Mismatch, bundle_of
from agentos.daemon.job.selection import MOST, RunRequest, allowed_tools, select
from agentos.domain import Json, Kind, Limits, ResourceId, Snapshot, Task
from agentos.registry.store import Registry
from agentos.resources import is_tool_file
from agentos.retrieval.embedding import WordLlama
from agentos.retrieval.index import Index
from tests.refusals import raises

EVERYTHING: Mapping[str, Json] = {"tools": ["*"], "skills": ["*"], "agents": []}
FEW = [
    ResourceId(Kind.AGENT, "default"),
    ResourceId(Kind.AGENT, "helper"),
    ResourceId(Kind.MEMORY, "lessons"),
    ResourceId(Kind.PROMPT, "other"),
    ResourceId(Kind.SKILL, "csv-report"),
    ResourceId(Kind.SKILL, "log-digest"),
    ResourceId(Kind.TOOL, "csv-head"),
    ResourceId(Kind.TOOL, "word-count"),
]


def chosen(**settings: Json) -> set[str]:
    wish = RunRequest(Snapshot("c", "t"), "goal", "default", {**EVERYTHING, **settings})
    return set(map(str, select(wish, FEW, None).resources))


def test_by_default_every_tool_skill_and_memory_but_no_agent_and_no_prompt() -> None:
    assert chosen() == {
        "memory/lessons",
        "skill/csv-report",
        "skill/log-digest",
        "tool/csv-head",
        "tool/word-count",
    }


def test_the_lists_of_the_agent_restrict() -> None:
    assert chosen(tools=["csv-*"], skills=[]) == {"memory/lessons", "tool/csv-head"}
    assert chosen(tools=["word_count"], skills=["log-digest"], agents=["helper"]) == {
        "agent/helper",
        "memory/lessons",
        "skill/log-digest",
        "tool/word-count",
    }


def test_an_agent_is_not_its_own_helper() -> None:
    assert "agent/default" not in chosen(agents=["*"])


def test_what_is_named_and_not_there_is_told() -> None:
    wish = RunRequest(
        Snapshot("c", "t"), "goal", "default", {"tools": ["gone", "x*"], "skills": [], "agents": ["nobody"]}
    )
    missing = select(wish, FEW, None).missing
    assert list(map(str, missing)) == ["tool/gone", "agent/nobody"]


# --- with a real registry and index -----------------------------------------------------------


def tool(name: str, description: str) -> dict[str, bytes]:
    card = {"name": name.replace("-", "_"), "description": description, "effects": ["pure"]}
    source = f'"""It."""\nTOOL = {card!r}\nclass Input: ...\nclass Output: ...\ndef run(input): return 1\n'
    document = f"description = {description!r}\n"
    return {f"tool/{name}/tool.py": source.encode(), f"tool/{name}/resource.toml": document.encode()}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """More tools, skills and memories than a bundle takes."""
    files: dict[str, bytes] = {
        "harness/default/harness.py": b"def run(sdk): ...\n",
        "harness/default/resource.toml": b'description = "H"\n',
        "prompt/default/prompt.md": b"Be brief.\n",
        "prompt/default/resource.toml": b'description = "P"\n',
        "prompt/unused/prompt.md": b"Be long.\n",
        "prompt/unused/resource.toml": b'description = "P"\n',
        "environment/default/resource.toml": b'description = "E"\n',
        "agent/default/resource.toml": b'description = "A"\ntools = ["*", "always-there"]\nagents = ["helper"]\n',
        "agent/picky/resource.toml": b'description = "A"\ntools = ["zz-*"]\nskills = []\n',
        "agent/lost/resource.toml": b'description = "A"\ntools = ["nowhere"]\n',
        "agent/helper/resource.toml": b'description = "Helps with letters"\n',
        **tool("always-there", "Unrelated to all"),
        **tool("zz-moon", "Phase of the moon"),
    }
    for number in range(40):
        files |= tool(f"invoice-{number}", f"Adds up an invoice of kind {number}")
        files[f"skill/letter-{number}/SKILL.md"] = (
            f"---\nname: letter-{number}\ndescription: Writes letters of kind {number}\n---\n".encode()
        )
        files[f"memory/note-{number}/memory.md"] = f"- Customer {number} wants invoices by post\n".encode()
        files[f"memory/note-{number}/resource.toml"] = b'description = "Note"\n'
    place = tmp_path_factory.mktemp("large")
    return Registry.init(place / "registry.git", files)


@pytest.fixture
def bundle(large: Registry, tmp_path: Path, make_task: Callable[..., Task]) -> Callable[..., Bundle]:
    index = Index(tmp_path / "index.db", large)

    def make(goal: str, agent: str = "default", *, finder: Index | None = index) -> Bundle:
        task = replace(make_task("x"), goal=goal, call=None, agent=agent)
        return bundle_of(large, task, large.stable(), finder)

    return make


def resources(bundle: Bundle, kind: str) -> set[str]:
    return {path.split("/")[1] for path in bundle.files if path.startswith(f"{kind}/")}


def test_of_much_the_goal_decides(bundle: Callable[..., Bundle]) -> None:
    found = bundle("add up invoice 7 and write a letter of kind 31 to customer 12")
    assert len(resources(found, "tool")) <= MOST[Kind.TOOL] + 1
    assert len(resources(found, "skill")) == MOST[Kind.SKILL]
    assert len(resources(found, "memory")) == MOST[Kind.MEMORY]
    assert {"invoice-7", "always-there"} <= resources(found, "tool")
    assert "zz-moon" not in resources(found, "tool")
    assert "letter-31" in resources(found, "skill")
    assert "note-12" in resources(found, "memory")
    assert resources(found, "prompt") == {"default"}
    assert resources(found, "agent") == {"default", "helper"}


def test_the_same_goal_gives_the_same_bundle(
    bundle: Callable[..., Bundle], large: Registry, tmp_path: Path
) -> None:
    goal = "an invoice, a letter, a customer"
    once = bundle(goal)
    assert list(bundle(goal).files) == list(once.files)
    assert list(bundle(goal, finder=Index(tmp_path / "fresh.db", large)).files) == list(once.files)


def test_a_pattern_is_searched_among_what_it_allows(bundle: Callable[..., Bundle]) -> None:
    found = bundle("invoice", "picky")
    assert resources(found, "tool") == {"zz-moon"}
    assert resources(found, "skill") == set()


@pytest.mark.slow
def test_what_is_allowed_is_found_behind_all_that_is_not(large: Registry, tmp_path: Path) -> None:
    """Also by meaning, where every tool has a place in the ranking."""
    snapshot = large.stable()
    settings = {**EVERYTHING, "tools": ["invoice-[23]*", "zz-*"]}
    wish = RunRequest(snapshot, "add up an invoice of kind 7", "default", settings)
    for embedder in (None, WordLlama()):
        index = Index(tmp_path / "index.db", large, embedder)
        with_few = {**MOST, Kind.TOOL: 20}
        found = select(wish, large.names(snapshot), index, with_few).resources
        tools = {item.name for item in found if item.kind is Kind.TOOL}
        assert len(tools) == 20
        assert all(name.startswith(("invoice-2", "invoice-3")) for name in tools)


def test_a_goal_cannot_widen_what_the_agent_may_have(bundle: Callable[..., Bundle]) -> None:
    found = bundle("invoice-1 tool/invoice-1 * tools=['*'] letter-3", "picky")
    assert resources(found, "tool") == {"zz-moon"}
    assert resources(found, "skill") == set()


def test_an_agent_that_names_what_is_gone_is_unfit(bundle: Callable[..., Bundle]) -> None:
    with raises(Mismatch, names=["tool/nowhere"]):
        bundle("anything", "lost")


def test_a_call_gets_its_tool_alone(large: Registry, make_task: Callable[..., Task], tmp_path: Path) -> None:
    task = make_task("invoice_3")
    found = bundle_of(large, task, large.stable(), Index(tmp_path / "index.db", large))
    assert resources(found, "tool") == {"invoice-3"}
    assert not resources(found, "skill") | resources(found, "memory")
    assert not (tmp_path / "index.db").exists()


def test_without_a_finder_everything_allowed_is_there(bundle: Callable[..., Bundle]) -> None:
    found = bundle("anything", finder=None)
    assert len(resources(found, "tool")) == 42
    assert len([path for path in found.files if is_tool_file(path)]) == 42


def test_the_lowest_limit_holds_and_a_budget_of_nothing_is_none(
    large: Registry, make_task: Callable[..., Task]
) -> None:
    documents = {
        "agent/frugal/resource.toml": 'description = "x"\n[limits]\ncalls = 5\nwall_s = 20\n',
        "environment/default/resource.toml": 'description = "x"\n[limits]\ncalls = 9\ntokens = 100\nwall_s = 30\n',
    }
    large.commit({path: text.encode() for path, text in documents.items()}, "Limits", "edit")
    task = replace(
        make_task("double", n=1), call=None, agent="frugal", limits=Limits(wall_s=60.0, cost_usd=2.0)
    )
    limits = bundle_of(large, task, large.stable()).limits
    assert (limits.calls, limits.tokens, limits.cost_usd, limits.wall_s) == (5, 100, 2.0, 20)


def test_tools_that_a_skill_allows_come_along_where_the_agent_may_have_them() -> None:
    texts = ["---\nname: x\ndescription: y\nallowed-tools: Bash(git:*) word_count nothing\n---\n", ""]
    names = [*FEW, ResourceId(Kind.TOOL, "shell")]

    def brought(*tools: str) -> set[str]:
        wish = RunRequest(Snapshot("c", "t"), "goal", "default", {**EVERYTHING, "tools": list(tools)})
        return set(map(str, allowed_tools(wish, names, texts)))

    assert brought("*") == {"tool/shell", "tool/word-count"}
    assert brought("word-*") == {"tool/word-count"}
    assert brought() == set()
