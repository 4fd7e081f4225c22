"""Dependencies of tools: locked when a resource enters the registry, refused where they cannot be had."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import subprocess
import tomllib
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentos.cli.resources.registry import app
from agentos.cli.resources.registry_wheels import lock_again
from agentos.daemon.setup import init_home
from agentos.daemon.upkeep.doctor import examine
from agentos.daemon.upkeep.retention import prune
from agentos.domain import (
    Candidate,
    Edit,
    Evolution,
    EvolutionState,
    Layer,
    Manifest,
    RefusalKind,
    Snapshot,
)
from agentos.errors import Conflict, ErrorKind, Invalid, Unavailable
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry import wheelfile, wheels
from agentos.registry.git.repository import INCOMING
from agentos.registry.skill_folders.skills_folder import SkillsFolders
from agentos.registry.store import Registry
from agentos.registry.wheelfile import BadWheel
from agentos.resources import parse_id
from agentos.settings import Retention
from tests.refusals import raises
from tests.registry.conftest import SKILL, forged
from tests.registry.wheelshop import Shop, needy, open_shop
from tests.test_durable import no_file_beyond

TOOL = "tool/greet/tool.py"
LOCK = "tool/greet/wheels.lock"
ABOUT = b'description = "Greets."\n'


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return open_shop(tmp_path / "shop", monkeypatch)


def add(registry: Registry, *dependencies: str) -> Snapshot:
    files = {"tool/greet/resource.toml": ABOUT, TOOL: needy(*dependencies)}
    return registry.commit(files, "Add", "edit")


def resource(registry: Registry) -> dict[str, bytes]:
    return dict(registry.files(registry.stable(), "tool/greet"))


def held(registry: Registry) -> list[Path]:
    return sorted(registry.wheels.root.glob("*"))


# --- locking ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_dependencies_are_locked_in_the_same_version_and_come_with_the_bundle(
    registry: Registry, shop: Shop
) -> None:
    shop.greeting("1.0")
    shop.greeting("1.5")
    shop.greeting("2.0")
    registry.commit(
        {"tool/greet/resource.toml": ABOUT, TOOL: needy("greeting>=1,<2")}, "Add", "edit", author="Ada"
    )
    lock = tomllib.loads(resource(registry)[LOCK].decode())
    assert lock["requires"] == ["greeting>=1,<2"]
    assert [(it["name"], it["version"], it["file"]) for it in lock["wheel"]] == [
        ("greeting", "1.5", "greeting-1.5-py3-none-any.whl")
    ]
    assert [path.name for path in held(registry)] == [f"{lock['wheel'][0]['sha256']}.whl"]
    assert registry.latest(next(iter(r for r in registry.names(registry.stable()) if r.name == "greet")))
    [(name, modules)] = registry.wheels_of(resource(registry)).items()
    assert name == "tool/greet"
    assert sorted(modules)[0] == "greeting-1.5.dist-info/METADATA"
    assert b"Hello" in modules["greeting/__init__.py"]
    assert registry.check().faults == ()


@pytest.mark.slow
def test_what_a_dependency_needs_comes_too_but_not_what_every_box_has(registry: Registry, shop: Shop) -> None:
    shop.wheel("words", "3", {"words.py": ""})
    shop.wheel("typing_extensions", "4.0", {"typing_extensions.py": ""})
    shop.wheel("greeting", "1.0", {"greeting.py": ""}, needs=("words",))
    add(registry, "greeting")
    assert [it["name"] for it in tomllib.loads(resource(registry)[LOCK].decode())["wheel"]] == [
        "greeting",
        "words",
    ]


@pytest.mark.slow
def test_a_lock_stays_until_the_declaration_changes_and_goes_with_it(registry: Registry, shop: Shop) -> None:
    shop.greeting("1.0")
    add(registry, "greeting")
    first = resource(registry)[LOCK]
    shop.greeting("2.0")
    registry.commit({TOOL: needy("greeting") + b"\n# more\n"}, "Edit", "edit")
    assert resource(registry)[LOCK] == first
    registry.commit({TOOL: needy("greeting>1")}, "Edit", "edit")
    assert b'version = "2.0"' in resource(registry)[LOCK]
    registry.commit({TOOL: needy()}, "Edit", "edit")
    assert LOCK not in resource(registry)


def test_without_dependencies_nothing_is_paid(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    files = {f"tool/greet/{n}.md": b"x" for n in "ab"}
    assert registry.wheels.renewed("tool/greet", {TOOL: needy(), **files}) == {}
    assert registry.wheels_of({TOOL: needy(), **files}) == {}
    assert not registry.wheels.root.exists()


def test_what_cannot_be_had_is_refused_and_leaves_nothing(registry: Registry, shop: Shop) -> None:
    before = registry.stable()
    with raises(Invalid, ErrorKind.UNAVAILABLE, names=["greeting"]):
        add(registry, "greeting")
    assert registry.stable() == before
    assert held(registry) == []


@pytest.mark.slow
def test_source_distributions_are_never_built(registry: Registry, shop: Shop, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    (shop.place / "greeting-1.0").mkdir()
    (shop.place / "greeting-1.0" / "setup.py").write_text(f"open({str(trap)!r}, 'w')\n")
    subprocess.run(["tar", "czf", "greeting-1.0.tar.gz", "greeting-1.0"], cwd=shop.place, check=True)
    with raises(Invalid, ErrorKind.UNAVAILABLE):
        add(registry, "greeting")
    assert not trap.exists()


@pytest.mark.parametrize(
    "text",
    [
        "--index-url=http://example.org",
        "-r /etc/passwd",
        "greeting @ file:///tmp/greeting.whl",
        "git+https://example.org/greeting",
        "./greeting",
        "../shop/greeting-1.0-py3-none-any.whl",
        "/tmp/greeting",
        "greeting\n--pre",
        "greeting; python_version > '3'",
        'greeting"]',
        "greeting --pre",
        "",
    ],
)
def test_a_dependency_is_a_name_with_versions_and_nothing_else(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(wheels, "_pip", None)
    with pytest.raises(Invalid, match=r"not a NAME|must be a list of texts"):
        add(registry, text)


# --- the other ways in ------------------------------------------------------------------------


def drop(place: Path, *dependencies: str) -> Path:
    folder = place / "greeter"
    (folder / "tools").mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(SKILL.format(name="greeter"))
    (folder / "tools" / "greet.py").write_bytes(needy(*dependencies))
    return folder


@pytest.mark.slow
def test_a_dropped_skill_is_locked_or_refused(registry: Registry, shop: Shop, tmp_path: Path) -> None:
    place = tmp_path / "skills"
    folders = SkillsFolders(registry, [place], None)

    def scan(at: float) -> list[tuple[str, tuple[str, ...]]]:
        found = [*folders.scan(at), *folders.scan(at + 0.5)]
        return [(it.action, it.faults) for it in found]

    drop(place, "greeting")
    [(action, why)] = scan(0)
    assert action == "refused"
    assert "could not be had as wheels" in why[0]
    assert not registry.files(registry.stable(), "skill/greeter")
    shop.greeting()
    (drop(place, "greeting>=1") / "more.md").write_text("x")
    assert scan(1) == [("imported", ())]
    assert "skill/greeter/wheels.lock" in registry.files(registry.stable(), "skill/greeter")
    assert scan(2) == []
    (place / "greeter" / "more.md").write_text("changed")
    assert scan(3) == [("imported", ())]
    assert "skill/greeter/wheels.lock" in registry.files(registry.stable(), "skill/greeter")


def push(registry: Registry, tmp_path: Path, files: dict[str, bytes]) -> tuple[str, ...]:
    clone = tmp_path / "clone"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "safe.directory=*"]
    subprocess.run([*git, "clone", "-q", str(registry.repository.path), str(clone)], check=True)
    for path, content in files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_bytes(content)
    subprocess.run([*git, "add", "-A"], cwd=clone, check=True)
    subprocess.run([*git, "commit", "-qm", "Greet"], cwd=clone, check=True)
    subprocess.run([*git, "push", "-q", "origin", "HEAD:incoming/greet"], cwd=clone, check=True)
    [taken] = registry.take_in_pushes(None)
    return taken.faults


@pytest.mark.slow
def test_a_push_is_locked(registry: Registry, shop: Shop, tmp_path: Path) -> None:
    shop.greeting()
    files = {"tool/greet/resource.toml": ABOUT, TOOL: needy("greeting")}
    assert push(registry, tmp_path, files) == ()
    assert LOCK in resource(registry)


@pytest.mark.slow
def test_a_pushed_lock_of_wheels_that_nobody_has_is_refused(
    registry: Registry, shop: Shop, tmp_path: Path
) -> None:
    shop.greeting()
    wheel = wheels.Wheel("greeting", "1.0", "greeting-1.0-py3-none-any.whl", "0" * 64)
    forged = wheels._write(wheels.Lock(("greeting",), wheels.machine(), (wheel,)))
    files = {"tool/greet/resource.toml": ABOUT, TOOL: needy("greeting"), LOCK: forged}
    faults = push(registry, tmp_path, files)
    assert "could not be had as wheels" in faults[0]
    assert held(registry) == []


@pytest.mark.slow
def test_an_evolution_may_not_touch_what_a_tool_depends_on(registry: Registry, shop: Shop) -> None:
    shop.greeting()
    base = add(registry, "greeting")
    lock = resource(registry)[LOCK].decode()
    edits = {
        "lock": {LOCK: lock.replace("1.0", "1.1")},
        "declaration": {TOOL: needy("greeting>=1").decode()},
        "both": {TOOL: needy("other").decode(), LOCK: lock.replace("greeting", "other")},
        "dropped": {TOOL: needy().decode()},
        "fresh": {
            "tool/fresh/resource.toml": ABOUT.decode(),
            "tool/fresh/tool.py": needy("greeting").decode().replace('"greet"', '"fresh"'),
        },
    }
    for name, files in edits.items():
        with raises(Invalid, message=f"candidate.wheels_of_{name}"):
            registry.add_candidate(f"cand-{name}", base, files)
        candidate = forged(registry, base, files)
        with raises(Conflict, RefusalKind.SURFACE):
            registry.promote(base, candidate, {}, "Edit")
    plain = registry.add_candidate("cand-plain", base, {TOOL: needy("greeting").decode() + "\n# better\n"})
    registry.promote(base, plain, {}, "Edit")
    assert resource(registry)[LOCK].decode() == lock


@pytest.mark.slow
def test_a_lock_that_is_not_the_tools_is_refused_and_found(registry: Registry, shop: Shop) -> None:
    shop.greeting()
    add(registry, "greeting")
    lock = wheels.Lock(("other",), wheels.machine(), ())
    files = {**resource(registry), LOCK: wheels._write(lock)}
    assert wheels.faults(files) == ["wheels.lock is for other, its tools declare greeting"]
    assert wheels.faults({TOOL: needy("greeting")})[0].endswith("wheels.lock is missing")


# --- what is done to the wheels ---------------------------------------------------------------


@pytest.mark.slow
def test_altered_and_missing_wheels_are_noticed_and_fetched_again(registry: Registry, shop: Shop) -> None:
    shop.greeting()
    add(registry, "greeting")
    files = resource(registry)
    [wheel] = held(registry)
    for damage in (lambda: wheel.write_bytes(wheel.read_bytes() + b"x"), wheel.unlink):
        damage()
        with raises(Unavailable, ErrorKind.DAMAGED, type_next="agentos registry wheels"):
            registry.wheels_of(files)
        lock = wheels.locked(files)
        assert lock is not None
        assert registry.wheels.fetch("tool/greet", lock) == 1
        assert registry.wheels_of(files)


def test_a_wheel_for_which_there_is_no_room_leaves_nothing(tmp_path: Path) -> None:
    there = wheels.Wheels(tmp_path / "wheels")
    with no_file_beyond(1_000), raises(Unavailable, ErrorKind.NOT_WRITTEN):
        there._put("0" * 64, b"x" * 2_000)
    assert list(there.root.iterdir()) == []


@pytest.mark.slow
def test_the_doctor_and_the_command_find_and_fetch_them(
    tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTOS_HOME", str(tmp_path / "home"))
    home = Home(tmp_path / "home")
    init_home(home)
    shop.greeting()
    registry = Registry(home.registry)
    add(registry, "greeting")
    [wheel] = held(registry)
    wheel.write_bytes(b"x")
    told = [it for it in examine(home, fix=False) if it.what.startswith("wheels of tool/greet are missing")]
    assert [it.mended for it in told] == [False]
    assert any(it.mended for it in examine(home, fix=True) if it.what.startswith("wheels of"))
    assert registry.wheels_of(resource(registry))
    wheel.unlink()
    asked = CliRunner().invoke(app, ["wheels", "--json"])
    assert [(it["name"], it["state"]) for it in json.loads(asked.output)["wheels"]] == [
        ("greeting", "fetched")
    ]
    shop.greeting("2.0")
    assert "is now 1.1.0" in CliRunner().invoke(app, ["wheels", "tool/greet", "--relock"]).output
    wheel.unlink()
    (shop.place / "greeting-1.0-py3-none-any.whl").unlink()
    assert b'version = "2.0"' in resource(registry)[LOCK]
    again = CliRunner().invoke(app, ["wheels", "tool/greet", "--relock", "--json"])
    assert [it["version"] for it in json.loads(again.output)["wheels"]] == ["2.0"]
    assert CliRunner().invoke(app, ["wheels"]).exit_code == 0
    assert "declares no dependencies" in str(
        CliRunner().invoke(app, ["wheels", "tool/word-count", "--relock"]).exception
    )


@pytest.mark.slow
def test_wheels_that_no_recent_lock_names_are_pruned(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool whose dependencies were locked anew each month kept the wheels of all months."""
    monkeypatch.setattr("agentos.registry.store.LOCKS_KEPT", 2)
    home = Home(tmp_path / "home")
    init_home(home)
    registry, fetched = Registry(home.registry), []
    for version in ("1.0", "1.1", "1.2", "1.3"):
        data = shop.greeting(version, f"Hello {version}").read_bytes()
        fetched.append(registry.wheels.root / f"{hashlib.sha256(data).hexdigest()}.whl")
        add(registry, f"greeting=={version}")
    now = datetime.now(UTC)
    assert prune(home, now, Retention(), apply=True).wheels == 0, "what was fetched just now stays"
    for path in fetched:
        os.utime(path, (now.timestamp() - 30 * 86_400,) * 2)
    assert prune(home, now, Retention(), apply=False).wheels == 2
    found = prune(home, now, Retention(), apply=True)
    assert (found.wheels, found.bytes > 0) == (2, True)
    assert [path.exists() for path in fetched] == [False, False, True, True]
    assert registry.wheels_of(resource(registry))
    registry.retire(parse_id("tool/greet"), "not needed")
    assert prune(home, now, Retention(), apply=True).wheels == 0, "a revert brings it back"


@pytest.mark.slow
def test_wheels_of_an_edit_that_is_not_decided_are_not_pruned(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pin that waited for consent could not be promoted any more once its wheels had gone."""
    monkeypatch.setattr("agentos.registry.store.LOCKS_KEPT", 1)
    home = Home(tmp_path / "home")
    init_home(home)
    registry = Registry(home.registry)
    first = shop.greeting("1.0").read_bytes()
    add(registry, "greeting")
    earlier = resource(registry)[LOCK]
    shop.greeting("2.0")
    lock_again(registry, parse_id("tool/greet"))
    base = registry.stable()
    pinned = registry.add_candidate("cand-1", base, {LOCK: earlier.decode()})
    with closing(Ledger(home.ledger)) as ledger:
        ledger.put(Evolution("evo-1", "evidence-1", "f", EvolutionState.AWAITING_CONSENT, base))
        manifest = Manifest("evidence-1", "", "", (LOCK,), (), (), Layer.TOOL, "")
        edit = Edit({LOCK: earlier.decode()}, "pin it", "pin")
        ledger.put(Candidate("cand-1", "evo-1", "pin", 1, manifest, edit, base, pinned))
        wheel = registry.wheels.root / f"{hashlib.sha256(first).hexdigest()}.whl"
        now = datetime.now(UTC)
        for path in held(registry):
            os.utime(path, (now.timestamp() - 30 * 86_400,) * 2)
        assert prune(home, now, Retention(), apply=True).wheels == 0
        assert wheel.exists()
        registry.promote(base, pinned, {}, "Pin it")
    assert resource(registry)[LOCK] == earlier


@pytest.mark.slow
def test_what_is_no_lock_ends_no_prune(shop: Shop, tmp_path: Path) -> None:
    """From a push on that was refused, and had a lock of somebody's own, each prune failed."""
    home = Home(tmp_path / "home")
    init_home(home)
    registry, repository = Registry(home.registry), Registry(home.registry).repository
    shop.greeting()
    add(registry, "greeting")
    pushed = forged(registry, registry.stable(), {LOCK: "no lock", TOOL: "def run(:\n"})
    with repository.lock():
        repository.move(f"{INCOMING}mine", repository.commit(pushed.commit).id, expected=None)
    assert [push.faults != () for push in registry.take_in_pushes(None)] == [True]
    folder = {
        "tool/other/resource.toml": ABOUT,
        "tool/other/tool.py": needy().replace(b'"greet"', b'"other"'),
    }
    registry.commit(folder | {"tool/other/wheels.lock/notes.txt": b"a folder"}, "Add", "edit")
    assert prune(home, datetime.now(UTC), Retention(), apply=True).wheels == 0
    assert registry.wheels.unnamed([b"no lock"], datetime.now(UTC).timestamp() + 60) == held(registry)


@pytest.mark.slow
def test_another_wheel_of_the_same_name_is_not_taken_for_it(registry: Registry, shop: Shop) -> None:
    shop.greeting()
    add(registry, "greeting")
    lock = wheels.locked(resource(registry))
    assert lock is not None
    held(registry)[0].unlink()
    shop.greeting(word="Gotcha")
    with raises(Invalid, ErrorKind.UNAVAILABLE):
        registry.wheels.fetch("tool/greet", lock)
    assert held(registry) == []


@pytest.mark.slow
def test_a_lock_that_points_elsewhere_is_none(registry: Registry, shop: Shop) -> None:
    shop.greeting()
    add(registry, "greeting")
    files = resource(registry)
    for field, value in (
        ("file", "../../../etc/passwd"),
        ("file", "/etc/passwd.whl"),
        ("file", "a/greeting-1.0-py3-none-any.whl"),
        ("sha256", "../../../../etc/passwd"),
        ("sha256", "A" * 64),
        ("name", "--index-url"),
        ("version", "1.0 --pre"),
        ("version", "1.0\\n--index-url http://example.org"),
    ):
        line = next(it for it in files[LOCK].decode().splitlines() if it.startswith(f"{field} = "))
        bent = {**files, LOCK: files[LOCK].replace(line.encode(), f'{field} = "{value}"'.encode())}
        with raises(Unavailable, ErrorKind.UNREADABLE):
            registry.wheels_of(bent)
        assert "no lock that agentos wrote" in wheels.faults(bent)[0], value


def test_a_wheel_for_another_machine_is_not_sent(registry: Registry) -> None:
    wheel = wheels.Wheel("greeting", "1.0", "greeting-1.0-cp39-cp39-linux_x86_64.whl", "0" * 64)
    lock = wheels._write(wheels.Lock(("greeting",), "python-3.9 linux-x86_64", (wheel,)))
    with raises(Unavailable, ErrorKind.MISMATCHED, type_next="agentos registry wheels tool/greet --relock"):
        registry.wheels_of({LOCK: lock})
    with raises(Invalid, ErrorKind.MISMATCHED, type_next="agentos registry wheels tool/greet --relock"):
        registry.wheels.fetch("tool/greet", wheels.Lock(("greeting",), "python-3.9 linux-x86_64", (wheel,)))


# --- archives that try something --------------------------------------------------------------


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, str]:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


HOSTILE = {
    "parent": {"../evil.py": ""},
    "inner parent": {"greeting/../../evil.py": ""},
    "absolute": {"/tmp/evil.py": ""},
    "empty part": {"greeting//evil.py": ""},
    "backslash": {"greeting\\evil.py": ""},
    "drive": {"c:/evil.py": ""},
    "escape sequence": {"a\x1b[2J.py": ""},
    "data parent": {"greeting-1.0.data/purelib/../../evil.py": ""},
    "standard library": {"json/__init__.py": ""},
    "standard module": {"socket.py": ""},
    "compiled module": {"math.cpython-311-x86_64-linux-gnu.so": b"x"},
    "data module": {"greeting-1.0.data/platlib/json.py": ""},
    "the worker": {"agentos/worker/job.py": ""},
    "sitecustomize": {"sitecustomize.py": ""},
    "too large": {"greeting/big.bin": bytes(wheelfile.BYTES_MAX + 1)},
    "too many": {f"greeting/{n}": "" for n in range(wheelfile.FILES_MAX + 1)},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused_at_the_door(registry: Registry, shop: Shop, name: str) -> None:
    path = shop.wheel("greeting", "1.0", HOSTILE[name])
    with raises(BadWheel, message=f"bad_wheel.{name}"):
        list(wheelfile.contents(path.read_bytes()))
    if name in ("parent", "the worker"):  # pip takes most of a second
        with raises(Invalid, message=f"change.bad_wheel_{name}"):
            add(registry, "greeting")
        assert held(registry) == []


@pytest.mark.parametrize("name", ["parent", "standard library"])
def test_hostile_archives_are_not_sent_though_a_lock_names_them(
    registry: Registry, shop: Shop, name: str
) -> None:
    data = shop.wheel("greeting", "1.0", HOSTILE[name]).read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    registry.wheels.root.mkdir()
    (registry.wheels.root / f"{sha256}.whl").write_bytes(data)
    wheel = wheels.Wheel("greeting", "1.0", "greeting-1.0-py3-none-any.whl", sha256)
    lock = wheels._write(wheels.Lock(("greeting",), wheels.machine(), (wheel,)))
    with raises(Unavailable, ErrorKind.DAMAGED, message=f"wheel.{name}"):
        registry.wheels_of({LOCK: lock})


def test_links_doubles_and_liars_are_refused(tmp_path: Path) -> None:
    def archive(*members: tuple[zipfile.ZipInfo | str, str | bytes]) -> bytes:
        path = tmp_path / "made.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for member, content in members:
                made.writestr(member, content)
        return path.read_bytes()

    with raises(BadWheel, message="wheel.link"):
        list(wheelfile.contents(archive(link("greeting/passwd", "/etc/passwd"))))
    twice = archive(("a/b.py", "1"), ("x.data/purelib/a/b.py", "2"))
    with raises(BadWheel, message="wheel.twice"):
        list(wheelfile.contents(twice))
    with raises(BadWheel, message="wheel.file_and_folder"):
        list(wheelfile.contents(archive(("greeting/a", "1"), ("greeting/a/b.py", "2"))))
    bomb = bytearray(archive(("greeting/bomb", bytes(8 << 20))))
    at = bomb.rindex(b"PK\x01\x02") + 24  # the size in the directory: claim ten bytes
    bomb[at : at + 4] = struct.pack("<I", 10)
    with pytest.raises(BadWheel, match="no sound archive"):
        list(wheelfile.contents(bytes(bomb)))
    whole = archive(("a.py", "x"))
    at, beyond = whole.rindex(b"PK\x01\x02"), struct.pack("<HHQ", 1, 8, 1 << 63)
    entry = whole[at : at + 30] + struct.pack("<H", len(beyond)) + whole[at + 32 : at + 42] + b"\xff" * 4
    entry += b"a.py" + beyond
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), at, 0)
    with pytest.raises(BadWheel, match="no sound archive"):
        list(wheelfile.contents(whole[:at] + entry + end))
    for broken in (b"", b"PK", archive(("a.py", "x" * 100))[:-30]):
        with pytest.raises(BadWheel, match="no sound archive"):
            list(wheelfile.contents(broken))


def test_path_files_and_scripts_are_left_out() -> None:
    names = ["a.pth", "x.data/scripts/run", "x.data/data/a.pth", "x.data/purelib/b.pth"]
    assert [wheelfile._target(name) for name in names] == ["", "", "", ""]
    assert wheelfile._target("x.data/platlib/a/b.py") == "a/b.py"
