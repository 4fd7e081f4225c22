"""Cards of tools: loaded in a real box once for each content, kept, and never in the way of a run."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentos.daemon.evolve.benches import load_tools
from agentos.daemon.job.bundle import Bundle
from agentos.daemon.job.tool_schemas import ToolSchemas
from agentos.domain import Limits
from agentos.messages import ToolCard
from agentos.retrieval.storage import Storage
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

SOURCE = '''"""It."""
from pydantic import BaseModel
{extra}
TOOL = {{"name": "{name}", "description": "Does {name}", "effects": ["pure"]}}
class Input(BaseModel):
    number: int
class Output(BaseModel):
    number: int
def run(input: Input) -> Output:
    return Output(number=input.number)
'''


def source(name: str, extra: str = "") -> bytes:
    return SOURCE.format(name=name, extra=extra).encode()


def bundle(**tools: bytes) -> Bundle:
    files = {f"tool/{name}/tool.py": content for name, content in tools.items()}
    files |= {f"tool/{name}/resource.toml": b'description = "T"\n' for name in tools}
    return Bundle({**files, "prompt/default/prompt.md": b"x"}, "harness/default", Limits())


class Loader:
    """The real one, counting."""

    def __init__(self, sandbox: Bubblewrap) -> None:
        self._sandbox = sandbox
        self.loads: list[Sequence[str]] = []

    def __call__(self, files: Mapping[str, bytes], tools: Sequence[str]) -> tuple[list[ToolCard], list[str]]:
        self.loads.append(list(tools))
        return load_tools(self._sandbox, files, tools)


@pytest.fixture
def loader(sandbox: Bubblewrap) -> Loader:
    return Loader(sandbox)


@pytest.fixture
def cards(tmp_path: Path, loader: Loader) -> ToolSchemas:
    return ToolSchemas(Storage(tmp_path / "index.db"), loader)


def test_all_new_tools_are_loaded_at_once_and_then_known(
    cards: ToolSchemas, loader: Loader, tmp_path: Path
) -> None:
    first = cards.of(bundle(one=source("one"), two=source("two")))
    assert [card.name for card in first] == ["one", "two"]
    assert first[0].input_schema["required"] == ["number"]
    assert loader.loads == [["tool/one/tool.py", "tool/two/tool.py"]]
    assert cards.of(bundle(two=source("two"))) == first[1:]
    assert ToolSchemas(Storage(tmp_path / "index.db"), loader).of(bundle(one=source("one"))) == first[:1]
    assert len(loader.loads) == 1


def test_other_content_is_loaded_again(cards: ToolSchemas, loader: Loader) -> None:
    cards.of(bundle(one=source("one"), two=source("two")))
    changed = cards.of(bundle(one=source("one").replace(b"Does one", b"Other"), two=source("two")))
    assert changed[0].description == "Other"
    assert loader.loads[1] == ["tool/one/tool.py"]


def test_a_tool_that_does_not_load_is_left_out(cards: ToolSchemas, loader: Loader, tmp_path: Path) -> None:
    given = bundle(bad=source("bad", "import nowhere_at_all"), good=source("good"))
    for _ in range(2):
        assert [card.name for card in cards.of(given)] == ["good"]
    assert len(loader.loads) == 1
    # the next daemon may have what was missing
    assert [card.name for card in ToolSchemas(Storage(tmp_path / "index.db"), loader).of(given)] == ["good"]
    assert loader.loads[1] == ["tool/bad/tool.py"]


def test_a_skill_brings_its_tools_and_not_its_helpers(cards: ToolSchemas) -> None:
    files = {
        "skill/kit/SKILL.md": b"---\nname: kit\ndescription: K\n---\n",
        "skill/kit/tools/do_it.py": source("do_it", "import shared_words"),
        "skill/kit/tools/shared_words.py": b"WORDS = 1\n",
    }
    found = cards.of(Bundle(files, "harness/default", Limits()))
    assert [card.path for card in found] == ["skill/kit/tools/do_it.py"]
    assert cards._partial == {}


def test_a_tool_that_ends_its_process_takes_no_other_down(cards: ToolSchemas) -> None:
    rude = source("rude", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos._exit(3)")
    assert [card.name for card in cards.of(bundle(good=source("good"), rude=rude))] == ["good"]


def test_where_the_box_dies_each_resource_gets_its_own(loader: Loader, tmp_path: Path) -> None:
    def mortal(files: Mapping[str, bytes], tools: Sequence[str]) -> tuple[list[ToolCard], list[str]]:
        if "tool/killer/tool.py" in tools:  # as load_tools answers when the box ran out of memory
            return [], ["its tools could not be loaded: the sandbox ended early (memory)"]
        return loader(files, tools)

    cards = ToolSchemas(Storage(tmp_path / "index.db"), mortal)
    given = bundle(good=source("good"), killer=source("killer"), other=source("other"))
    assert [card.name for card in cards.of(given)] == ["good", "other"]
    assert [card.name for card in cards.of(given)] == ["good", "other"]
    assert loader.loads == [["tool/good/tool.py"], ["tool/other/tool.py"]]


def test_a_card_cannot_be_given_for_another_tool(cards: ToolSchemas) -> None:
    """Names and paths come from the contract that the worker checks, not from the file's word."""
    found = cards.of(bundle(good=source("good"), other=source("good")))
    assert [card.path for card in found] == ["tool/good/tool.py"]


def test_runs_that_start_together_load_once(cards: ToolSchemas, loader: Loader) -> None:
    start = threading.Barrier(4)

    def ask(_: int) -> int:
        start.wait()
        return len(cards.of(bundle(one=source("one"))))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [1] * 4
    assert len(loader.loads) == 1


def test_no_tools_need_no_box(cards: ToolSchemas, loader: Loader) -> None:
    assert cards.of(bundle()) == ()
    assert loader.loads == []
