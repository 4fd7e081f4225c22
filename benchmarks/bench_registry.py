"""The registry: read, commit, promote and revert at 100, 1,000 and 10,000 resources and 10,000 commits.

python benchmarks/bench_registry.py [--on FOLDER] [--quick]
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agentos.domain import Kind, ResourceId
from agentos.registry.git import environment
from agentos.registry.git import versions as history
from agentos.registry.git.repository import Repository
from agentos.registry.store import Registry
from agentos.resources import resource_of

# (resources, commits, whether all resources are of one kind: one flat directory)
SIZES = ((100, 100, False), (1_000, 1_000, False), (10_000, 10_000, False), (10_000, 100, True))
SPREAD = (Kind.SKILL, Kind.TOOL, Kind.PROMPT, Kind.MEMORY)
EDITED = 50  # the built history goes over this many resources
FILLER = "One more line of text, about as long as such lines are in prose.\n" * 14


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def content(resource: ResourceId, number: int) -> dict[str, str]:
    """The files of one resource, about 1 KB together."""
    if resource.kind is Kind.SKILL:
        return {
            f"{resource}/SKILL.md": f"---\nname: {resource.name}\ndescription: Number {number}.\n---\n{FILLER}"
        }
    document = {f"{resource}/resource.toml": f'description = "Number {number}."\n'}
    if resource.kind is Kind.TOOL:
        name = resource.name.replace("-", "_")
        card = f'TOOL = {{"name": "{name}", "description": "{number}", "effects": ["pure"]}}\n'
        body = "class Input: ...\nclass Output: ...\ndef run(input): return None\n"
        return {**document, f"{resource}/tool.py": f'"""{FILLER}"""\n{card}{body}'}
    return {**document, f"{resource}/{resource.kind}.md": f"{number}\n{FILLER}"}


def names(count: int, *, flat: bool) -> list[ResourceId]:
    """``count`` names over the kinds, or all of one kind."""
    kinds = itertools.cycle([Kind.SKILL] if flat else SPREAD)
    return [ResourceId(next(kinds), f"number-{index}") for index in range(count)]


def stream(resources: list[ResourceId], commits: int) -> Iterator[str]:
    """A git fast-import stream: everything in one commit, then edits, each with its tags."""
    edited = [resource for resource in resources if resource.kind is not Kind.SKILL][:EDITED] or resources[
        :EDITED
    ]
    minor = dict.fromkeys(resources, 0)
    for index in range(commits):
        changed = resources if index == 0 else [edited[index % len(edited)]]
        trailers = ["Origin: edit"]
        for resource in changed:
            number = minor[resource]
            trailers.append(f"Version: {resource}@1.{number}.0")
            if number:
                trailers.append(f"Parent-Version: {resource}@1.{number - 1}.0")
        message = f"Change {index}\n\n" + "\n".join(trailers) + "\n"
        yield f"commit refs/heads/main\nmark :{index + 1}\ncommitter agentos <a@b> {1_000_000 + index} +0000\n"
        yield f"data {len(message)}\n{message}"
        for resource in changed:
            for path, text in content(resource, index).items():
                yield f"M 100644 inline {path}\ndata {len(text)}\n{text}\n"
        for resource in changed:
            number = minor[resource]
            parent = f"Parent-Version: 1.{number - 1}.0\n" if number else ""
            about = f"Change {index}\n\nDigest: none\nOrigin: edit\n{parent}"
            yield f"tag {resource}@1.{number}.0\nfrom :{index + 1}\n"
            yield f"tagger agentos <a@b> {1_000_000 + index} +0000\ndata {len(about)}\n{about}\n"
            minor[resource] += 1


def build(place: Path, resources: list[ResourceId], commits: int) -> Registry:
    """A registry of that size, packed as ``maintain`` would leave it; made in memory where there is some."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        made = Path(folder) / "registry.git"
        _build(made, resources, commits)
        shutil.copytree(made, place)
    return Registry(place)


def _build(path: Path, resources: list[ResourceId], commits: int) -> None:
    repository = Repository.create(path)
    command = ["git", f"--git-dir={path}", "fast-import", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdin is not None
        process.stdin.writelines(stream(resources, commits))
        process.stdin.close()
    listed = repository.run(
        "for-each-ref", "--format=%(objectname) %(refname) %(*objectname)", "refs/tags"
    ).stdout
    latest: dict[str, tuple[int, str, str]] = {}
    lines: list[tuple[str, str]] = []
    for line in listed.splitlines():
        tag, ref, commit = line.split()
        lines.append((ref, f"{tag} {ref}\n^{commit}\n"))
        name, _, number = ref.removeprefix("refs/tags/").partition("@")
        minor = int(number.split(".")[1])
        if name not in latest or latest[name][0] < minor:
            latest[name] = (minor, tag, commit)
    lines += [
        (ref, f"{tag} {ref}\n^{commit}\n")
        for name, (_, tag, commit) in latest.items()
        for ref in [f"refs/agentos/latest/{name}"]
    ]
    packed = "# pack-refs with: peeled fully-peeled sorted \n" + "".join(text for _, text in sorted(lines))
    (path / "packed-refs").write_text(packed)
    shutil.rmtree(path / "refs" / "tags")
    (path / "refs" / "tags").mkdir()


def flush(folder: Path) -> float:
    """What one fsync of a small file costs here and now: a commit needs 18 of them, one after another."""

    def once() -> None:
        descriptor = os.open(folder / "flushed", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.write(descriptor, b"x" * 1_000)
        os.fsync(descriptor)
        os.close(descriptor)

    return statistics.median(timed(once) for _ in range(30))


def measure(registry: Registry, resources: list[ResourceId], label: str, *, rounds: int) -> None:
    """All rows for one registry."""
    sample = resources[:: max(1, len(resources) // 97)]
    turn = itertools.cycle(sample)
    main = registry.stable()
    registry.files(main, str(sample[0]))

    def middle(work: Callable[[], object], times: int) -> float:
        return statistics.median(timed(work) for _ in range(times))

    def row(what: str, ours: float, beside: str, plain: float | None, n: int) -> None:
        ratio = f"{plain / ours:.0f} x faster than {beside} ({plain:.1f} ms)" if plain else ""
        report(f"{what}, {label}", f"{ours:.2f} ms", ratio, f"n={n}")

    def show() -> object:
        return registry.repository.run("show", f"main:{next(turn)}/")

    row(
        "read one resource",
        middle(lambda: registry.files(registry.stable(), str(next(turn))), 200),
        "`git show`",
        middle(show, 10),
        200,
    )
    row(
        "list all names",
        middle(lambda: registry.names(main), 5),
        "`git ls-tree -r`",
        middle(lambda: registry.repository.run("ls-tree", "-r", "main"), 3),
        5,
    )
    number = itertools.count()

    def commit() -> None:
        registry.commit(
            {p: t.encode() for p, t in content(next(turn), 10**6 + next(number)).items()}, "Edit", "edit"
        )

    def plain() -> None:
        text = next(iter(content(next(turn), 10**6 + next(number)).items()))
        body = f"commit refs/heads/plain\ncommitter a <a@b> 1 +0000\ndata 1\nx\nfrom {main.commit}\n"
        body += f"M 100644 inline {text[0]}\ndata {len(text[1])}\n{text[1]}\n"
        command = ["git", f"--git-dir={registry.repository.path}", "fast-import", "--quiet", "--force"]
        subprocess.run(command, input=body, text=True, env=environment(), check=True)

    row("durable commit", middle(commit, rounds), "`git fast-import` of one commit", middle(plain, 3), rounds)

    def promote() -> None:
        base = registry.stable()
        index = next(number)
        candidate = registry.add_candidate(f"c-{index}", base, content(next(turn), 10**6 + index))
        registry.promote(base, candidate, {"Evolution": f"evo-{index}"}, "Promote")

    row("add a candidate and promote it", middle(promote, rounds), "", None, rounds)

    def undo() -> float:
        changed = content(next(turn), 10**6 + next(number))
        registry.commit({path: text.encode() for path, text in changed.items()}, "Edit", "edit")
        resource = resource_of(next(iter(changed)))
        version = registry.latest(resource) if resource else None
        assert resource
        assert version
        return timed(lambda: registry.revert(registry.plan_undo(resource, version.number), "Measured"))

    row("revert a version", statistics.median(undo() for _ in range(rounds)), "", None, rounds)
    versions = middle(lambda: registry.versions(resources[1]), 20)
    row("versions of a resource", versions, "", None, 20)
    new = registry.stable().commit
    shown = middle(lambda: history.diff(registry.repository, main.commit, new), 5)
    row("diff for people", shown, "", None, 5)
    row("log of 20 for people", middle(lambda: history.log(registry.repository, 20), 5), "", None, 5)


def main() -> None:
    """Build each size, measure it, throw it away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", type=Path, help="where the repositories are made (the disk matters)")
    parser.add_argument("--quick", action="store_true", help="only the two small sizes")
    chosen = parser.parse_args()
    for count, commits, flat in SIZES[:2] if chosen.quick else SIZES:
        with tempfile.TemporaryDirectory(dir=chosen.on) as folder:
            resources = names(count, flat=flat)
            began = time.perf_counter()
            registry = build(Path(folder) / "registry.git", resources, commits)
            label = f"{count:,} resources{' in one directory' if flat else ''}, {commits:,} commits"
            print(f"built {label} in {time.perf_counter() - began:.1f} s", flush=True)
            report(
                f"one flush of the disk, {label}", f"{flush(Path(folder)):.2f} ms", "", "a commit needs 18"
            )
            measure(registry, resources, label, rounds=15)


if __name__ == "__main__":
    main()
