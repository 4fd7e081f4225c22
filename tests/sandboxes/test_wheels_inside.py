"""Wheels in real boxes: found by the tools of their resource alone, and harmless when hostile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.evolve.benches import BoxBenches, load_tools
from agentos.daemon.job.bundle import with_wheels
from agentos.daemon.run.execution import BoxExecutor
from agentos.domain import Call, Check, Effect, Limits, Result, Task, new_id
from agentos.errors import ErrorKind, Unavailable
from agentos.ledger.blobs import BlobStore
from agentos.ports import Attempt, Case
from agentos.proposers.repair.reading.foresight import FACTORS, foresight_of
from agentos.proposers.repair.source import CodeEdit, Program, Splice
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.choice import PlacesHere
from agentos.sandboxes.docker.sandbox import Docker
from agentos.shipped import seed_files
from tests.refusals import raises
from tests.registry.wheelshop import Shop, needy, open_shop

ABOUT = b'description = "For a test."\n'
GREET = "tool/greet/tool.py"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.sandbox),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bubblewrap | Docker]:
    """Each sandbox with the real worker inside."""
    if request.param == "docker":
        home = tmp_path_factory.mktemp("home")
        with Docker(home, ready=1, image=request.getfixturevalue("docker_image")) as containers:
            yield containers
    else:
        yield request.getfixturevalue("worker_sandbox")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return open_shop(tmp_path / "shop", monkeypatch)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry.init(tmp_path / "registry.git", seed_files())


def put(registry: Registry, name: str, source: bytes) -> None:
    files = {f"tool/{name}/resource.toml": ABOUT, f"tool/{name}/tool.py": source}
    registry.commit(files, "Add", "edit")


def task(tool: str, answer: str | None = None) -> Task:
    checks = () if answer is None else (Check("equals", {"value": answer, "path": "text"}),)
    return Task(
        id=new_id("task"),
        name=tool,
        goal=f"call {tool}",
        call=Call(tool, {"name": "Ada"}),
        inputs=(),
        agent="default",
        limits=Limits(wall_s=20.0),
        effects=(Effect.PURE,),
        checks=checks,
        schedule=None,
        created_at=datetime.now(UTC),
    )


def execute(real: Bubblewrap | Docker, registry: Registry, work: Task, blobs: Path) -> Attempt:
    return BoxExecutor(registry, BlobStore(blobs), real).execute(work, registry.stable(), new_id("run"))


def test_a_tool_imports_its_wheel_and_another_tool_does_not(
    real: Bubblewrap | Docker, registry: Registry, shop: Shop, tmp_path: Path
) -> None:
    shop.greeting()
    put(registry, "greet", needy("greeting"))
    put(registry, "other", needy().replace(b'"greet"', b'"other"'))
    done = execute(real, registry, task("greet", "Hello, Ada!"), tmp_path)
    assert done.outcome.result is Result.PASSED, done.outcome
    done = execute(real, registry, task("other"), tmp_path)
    assert "No module named 'greeting'" in done.outcome.reason


def test_what_was_locked_is_used_though_the_box_has_another_version(
    real: Bubblewrap | Docker, registry: Registry, shop: Shop, tmp_path: Path
) -> None:
    """The worker itself has imported attrs by way of jsonschema, in both sandboxes."""
    shop.wheel("attrs", "99.0", {"attr.py": "MINE = 'attrs 99'\n"})
    source = needy("attrs").replace(b"greeting.hello(input.name)", b"greeting.MINE")
    put(registry, "greet", source.replace(b"import greeting", b"import attr as greeting"))
    done = execute(real, registry, task("greet", "attrs 99"), tmp_path)
    assert done.outcome.result is Result.PASSED, done.outcome


@pytest.mark.sandbox
def test_an_error_in_a_wheel_points_to_the_line_of_the_tool(
    worker_sandbox: Bubblewrap, registry: Registry, shop: Shop, tmp_path: Path
) -> None:
    shop.wheel("greeting", "1.0", {"greeting.py": "def hello(name):\n    raise KeyError(name)\n"})
    put(registry, "greet", needy("greeting"))
    fault = execute(worker_sandbox, registry, task("greet"), tmp_path).outcome.fault
    assert fault is not None
    assert (fault.type, fault.where) == ("KeyError", "tool/greet/tool.py:run")


def test_tools_with_wheels_are_loaded_and_searched(
    real: Bubblewrap | Docker, registry: Registry, shop: Shop
) -> None:
    shop.greeting()
    put(registry, "greet", needy("greeting>=1"))
    files = dict(registry.files(registry.stable(), "tool/greet"))
    cards, faults = load_tools(real, with_wheels(registry, files), [GREET])
    assert faults == []
    assert cards[0].dependencies == ["greeting>=1"]
    wanted = Check("equals", {"value": "Hello, Ada!", "path": "text"})
    case = Case("task-1", Call("greet", {"name": "Ada"}), {}, (wanted,))
    bench = BoxBenches(registry, PlacesHere(real)).bench(registry.stable(), GREET, [case, case], 2.0)
    try:
        for _ in range(2):
            assert bench.try_source(needy("greeting").decode()).passed == (True, True)
    finally:
        bench.close()


@pytest.mark.sandbox
def test_an_altered_wheel_is_the_machinerys_fault(
    worker_sandbox: Bubblewrap, registry: Registry, shop: Shop, tmp_path: Path
) -> None:
    shop.greeting()
    put(registry, "greet", needy("greeting"))
    [wheel] = registry.wheels.root.iterdir()
    wheel.write_bytes(shop.greeting(word="Gotcha").read_bytes())
    with raises(Unavailable, ErrorKind.DAMAGED, type_next="agentos registry wheels"):
        execute(worker_sandbox, registry, task("greet"), tmp_path)


def test_path_files_are_not_obeyed_and_the_workers_modules_stay(real: Bubblewrap | Docker) -> None:
    """Past the kernel's own look: as if that had failed."""
    files = {
        GREET: needy("greeting"),
        "tool/greet/.wheels/greeting.py": b"def hello(name):\n    return name\n",
        "tool/greet/.wheels/greeting-1.dist-info/METADATA": b"Metadata-Version: 2.1\nName: greeting\nVersion: 1\n",
        "tool/greet/.wheels/evil.pth": b"import os; os._exit(9)\n",
        "tool/greet/.wheels/sitecustomize.py": b"raise SystemExit\n",
        "tool/greet/.wheels/pydantic/__init__.py": b"raise SystemExit\n",
    }
    assert load_tools(real, files, [GREET])[1] == []


@pytest.mark.sandbox
def test_more_than_a_box_holds_is_said(
    worker_sandbox: Bubblewrap, registry: Registry, shop: Shop, tmp_path: Path
) -> None:
    for name in ("first", "second"):  # each may be had; together they are more than there is room for
        shop.wheel(name, "1.0", {f"{name}.bin": bytes(30 << 20)})
        put(registry, name, needy(name).replace(b'"greet"', f'"{name}"'.encode()))
    outcome = execute(worker_sandbox, registry, replace(task("first"), call=None), tmp_path).outcome
    assert outcome.reason == "its tools bring 60 MB of modules, a box has room for 48"


ASKS = {
    "requirements.txt": (b"greeting<2\n", b""),
    "inline metadata": (b"", b'# /// script\n# dependencies = ["greeting<2"]\n# ///\n'),
}


@pytest.mark.parametrize("asks", ASKS)
def test_a_script_runs_with_what_its_skill_locked(
    real: Bubblewrap | Docker, registry: Registry, shop: Shop, tmp_path: Path, asks: str
) -> None:
    """Offline, from the version that was there when the skill came in, whatever has come out since."""
    for version in ("1.0", "2.0"):
        shop.greeting(version, word=f"Hello {version}")
    listed, inline = ASKS[asks]
    files = {
        "skill/greeter/SKILL.md": b"---\nname: greeter\ndescription: Greets.\n---\nRun scripts/greet.py\n",
        "skill/greeter/scripts/greet.py": inline
        + b"import sys, greeting\nprint(greeting.hello(sys.argv[1]))\n",
        **({"skill/greeter/requirements.txt": listed} if listed else {}),
    }
    registry.commit(files, "Add", "import")
    shop.greeting("1.1", word="Hello 1.1")
    call = Call("greeter/scripts/greet.py", {"args": ["Ada"], "stdin": ""})
    work = replace(task("greet"), call=call, effects=(Effect.READ, Effect.WRITE))
    done = execute(real, registry, work, tmp_path)
    assert done.outcome.result is Result.PASSED, done.outcome
    assert done.answer["stdout"] == "Hello 1.0, Ada!\n"


@pytest.mark.sandbox
def test_a_script_whose_requirement_is_nowhere_says_what_is_missing(
    worker_sandbox: Bubblewrap, registry: Registry, shop: Shop, tmp_path: Path
) -> None:
    files = {
        "skill/greeter/SKILL.md": b"---\nname: greeter\ndescription: Greets.\n---\nRun scripts/greet.py\n",
        "skill/greeter/scripts/greet.py": b"import greeting\n",
        "skill/greeter/requirements.txt": b"greeting\n",
    }
    registry.commit(files, "Add", "import")
    assert "skill/greeter/wheels.lock" not in registry.files(registry.stable(), "skill/greeter")
    work = replace(task("greet"), call=Call("greeter/scripts/greet.py", {"args": [], "stdin": ""}))
    work = replace(work, effects=(Effect.READ, Effect.WRITE))
    done = execute(worker_sandbox, registry, work, tmp_path)
    assert "No module named 'greeting'" in done.outcome.reason


@pytest.mark.sandbox
def test_the_real_box_says_what_edits_make_of_the_values_of_a_call(
    worker_sandbox: Bubblewrap, registry: Registry
) -> None:
    """The repair proposer looks at values before it tries an edit: a watched source answers there as any tool does."""
    source = needy().decode().replace("import greeting\n", "")
    before, _, behind = source.rpartition("    return ")
    source = f"{before}    text = input.name\n    return Output(text=text.strip())\n"
    assert behind
    put(registry, "greet", source.encode())
    case = Case("t", Call("greet", {"name": "ada"}), {}, (Check("equals", {"value": {"text": "ADA"}}),))
    with closing(
        BoxBenches(registry, PlacesHere(worker_sandbox)).bench(registry.stable(), GREET, [case], 5.0)
    ) as bench:
        program, output = Program(source), bench.try_source(source).outputs[0]
        seeing = foresight_of([(case, output)], [], program, bench.try_source)
        start = source.index("input.name\n")
        edits = [
            CodeEdit((Splice(start, start + len("input.name"), text),), "any")
            for text in ("input.name.upper()", "input.name.lower()", "input.nobody")
        ]
        assert list(seeing.factors(edits)) == [FACTORS["hit"], FACTORS["same"], FACTORS["raises"]]
