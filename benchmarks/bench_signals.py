"""What the signals, fingerprints and root steps are worth, on real labelled runs of other systems.

    python benchmarks/bench_signals.py [--data PATH]

116 runs of tau-bench's airline tasks (passed or failed), 82 failed runs of Who&When with the decisive step
marked. Nothing that is measured sees a label. The runs are split into two halves by a hash of their task:
rules may be chosen on the dev half, the test half is only ever counted. A number stands beside its trivial
baselines, and says so where it is below the best of them. docs/understand/signals.md tells what is meant by each.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from agentos.domain import Run, Snapshot, Step, digest
from agentos.evolver.documents import load_taxonomy
from agentos.evolver.find.fingerprints import AgentActions, failure_of, root_step
from agentos.evolver.find.signals import deviation, fault_in, read_signals
from agentos.shipped import folder
from agentos.trajectories.past import ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import read

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
TAU = "trajectories/tau_bench/gpt-4o-airline-dev.json"
WHO = "trajectories/whowhen"
LABELS = ROOT / "benchmarks" / "data" / "failed_calls.json"
HALVES = ("dev", "test")
INTO = ImportTarget(Snapshot("c", "t"), 0.0, datetime(2026, 1, 1, tzinfo=UTC))
CHANGES = ("book_", "cancel_", "update_", "send_")  # tau-bench's calls that change its database
NEAR = 3  # steps

# The trivial way: a word anywhere in what a step observed. The kinds are those of agentos.evolver.find.signals.
LEXICON = {
    "timeout": r"time[d ]?\s?-?out",
    "rate_limit": r"rate.?limit|too many requests|\b429\b",
    "denied": r"unauthori[sz]ed|forbidden|permission denied|\b40[13]\b|invalid (?:api )?key|authentication",
    "network": r"network|connection|refused|unreachable|\bdns\b",
    "not_found": r"not found|no such|\b404\b|does not exist|unknown",
    "memory": r"out of memory|memoryerror",
    "state": r"already|conflict|not available|not enough|insufficient",
    "arguments": r"invalid|missing|required|validation",
    "error": r"exception|traceback|error|failed",
}


@dataclass(frozen=True, slots=True)
class Item:
    """A run without its labels, and the record that holds them."""

    source: str
    name: str
    half: str
    record: Mapping[str, Any]
    run: Run
    steps: tuple[Step, ...]

    @property
    def failed(self) -> bool:
        return self.source != "tau-bench" or self.record["reward"] < 1


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def items(data: Path) -> Iterator[Item]:
    """All runs, tau-bench's first."""
    for record in json.loads((data / TAU).read_text()):
        yield _item("tau-bench", f"{record['task_id']}.{record['trial']}", f"tau-{record['task_id']}", record)
    for path in sorted((data / WHO).glob("*/*.json")):
        yield _item(
            path.parent.name, path.stem, f"{path.parent.name}/{path.name}", json.loads(path.read_text())
        )


def _item(source: str, name: str, task: str, record: Mapping[str, Any]) -> Item:
    (conversation,) = read(record)
    past = past_of(conversation, Source(source, name, 0), INTO)
    assert past.run.outcome is not None
    # what the labels became when they were read: the reason of the outcome, and the fault at the mistake
    bare = replace(past.run, outcome=replace(past.run.outcome, fault=None, reason=""))
    steps = tuple(replace(step, fault=None) for step in past.steps)
    half = HALVES[int(digest([task])[:8], 16) % 2]
    return Item(source, name, half, record, bare, steps)


def both(value: Callable[[str], float], *baselines: Callable[[str], float], form: str = ".2f") -> str:
    """The value on each half, marked where it is below a baseline."""
    shown = []
    for half in HALVES:
        low = any(value(half) < baseline(half) for baseline in baselines)
        shown.append(f"{half} {value(half):{form}}{' (below its baseline)' if low else ''}")
    return ", ".join(shown)


# --- does a run look as if it had failed? -----------------------------------------------------------


def auroc(scores: Sequence[float], failed: Sequence[bool]) -> float:
    """Chance that a failed run scores higher than one that passed; ties count half."""
    bad = [score for score, fault in zip(scores, failed, strict=True) if fault]
    good = [score for score, fault in zip(scores, failed, strict=True) if not fault]
    return fmean((b > g) + 0.5 * (b == g) for b in bad for g in good)


def bench_auroc(runs: Sequence[Item]) -> None:
    def calls(item: Item) -> float:
        return sum(step.node == "act" for step in item.steps)

    def signs(item: Item) -> float:
        return len(read_signals(item.steps))

    def on(score: Callable[[Item], float]) -> Callable[[str], float]:
        def value(half: str) -> float:
            here = [item for item in runs if item.half == half]
            return auroc([score(item) for item in here], [item.failed for item in here])

        return value

    length, number = on(lambda item: len(item.steps)), on(calls)
    count = {half: sum(item.half == half for item in runs) for half in HALVES}
    beside = f"0.50 by chance; messages {both(length)}; tool calls {both(number)}"
    remarks = f"tau-bench, {count['dev']} and {count['test']} runs"
    same: dict[str, list[Item]] = {}
    for item in runs:
        same.setdefault(item.record["task_id"], []).append(item)

    def apart(item: Item) -> float:
        others = [other.steps for other in same[item.record["task_id"]] if other is not item]
        found = deviation(item.steps, others)
        return found.share if found else 0.0

    report("AUROC for failure: deviation", both(on(apart), on(signs), length, number), beside, remarks)
    pairs = [
        (apart(bad) > apart(good)) + 0.5 * (apart(bad) == apart(good))
        for together in same.values()
        for bad in together
        for good in together
        if bad.failed and not good.failed
    ]
    report("... of two runs of one task", f"{fmean(pairs):.2f}", "0.50 by chance", f"{len(pairs)} pairs")
    report("AUROC for failure: signs", both(on(signs), length, number), beside, remarks)
    for signal in sorted({sign.signal for item in runs for sign in read_signals(item.steps)}):
        shown = []
        for half in HALVES:
            hits = [
                item.failed
                for item in runs
                if item.half == half and signal in {sign.signal for sign in read_signals(item.steps)}
            ]
            shown.append(f"{half} {sum(hits)}/{len(hits)}")
        base = ", ".join(
            f"{half} {fmean(item.failed for item in runs if item.half == half):.2f}" for half in HALVES
        )
        report(f"runs with {signal} that failed", ", ".join(shown), f"all runs: {base}", "tau-bench")


# --- is what fired a failure of the step, or quoted? -------------------------------------------------


def observed(item: Item) -> Iterator[tuple[Step, str]]:
    """The steps that observe something, and the text."""
    for step in item.steps[1:]:
        message = step.observation["message"]
        speaker = str(message.get("name") or message.get("agent") or "")
        if step.node == "act" and step.action["tool"] == "think":
            continue  # the agent's own words
        if step.node == "act" or "erminal" in speaker or speaker in ("WebSurfer", "FileSurfer"):
            yield step, str(step.observation.get("output") or message.get("content") or "")


def by_account(step: Step, text: str) -> set[str]:
    """What this program takes a step to have failed by."""
    fault = fault_in(step)
    return set() if fault is None else {fault.type if fault.type in LEXICON else "error"}


def by_lexicon(step: Step, text: str) -> set[str]:
    """What a word anywhere in the text says."""
    return {kind for kind, pattern in LEXICON.items() if re.search(pattern, text, re.IGNORECASE)}


def bench_precision(all_items: Sequence[Item]) -> None:
    labels = json.loads(LABELS.read_text())
    fired: dict[str, Counter[tuple[str, str, bool]]] = {}
    found: Counter[tuple[str, str]] = Counter()
    real: Counter[str] = Counter()
    for item in all_items:
        for step, text in observed(item):
            true = labels[item.source].get(f"{item.name}#{step.index}", [])
            real[item.half] += bool(true)
            for name, reader in (("account", by_account), ("lexicon", by_lexicon)):
                kinds = reader(step, text)
                tally = fired.setdefault(name, Counter())
                for kind in kinds:
                    # an error of no known kind is right wherever the step failed
                    tally[kind, item.half, kind in true or (kind == "error" and bool(true))] += 1
                if kinds:
                    tally["any", item.half, bool(true)] += 1
                    found[name, item.half] += bool(true)

    def shown(name: str, kind: str) -> str:
        right = {half: fired[name][kind, half, True] for half in HALVES}
        return ", ".join(
            f"{half} {right[half]}/{right[half] + fired[name][kind, half, False]}" for half in HALVES
        )

    for kind in ("any", *LEXICON):
        what = "steps said to have failed that did" if kind == "any" else f"precision of {kind}"
        report(
            what, shown("account", kind), f"a word in the text: {shown('lexicon', kind)}", "all three sets"
        )

    def share(name: str) -> Callable[[str], float]:
        return lambda half: found[name, half] / max(1, real[half])

    report(
        "failed steps that were found",
        both(share("account"), share("lexicon")),
        f"a word in the text: {both(share('lexicon'))}",
        f"{real['dev']} and {real['test']} steps that failed",
    )


# --- same failure again? ----------------------------------------------------------------------------


def pair_f1(given: Sequence[Hashable], true: Sequence[Hashable]) -> float:
    """F1 over pairs of runs: same given name where same true name."""
    same = [(given[i] == given[j], true[i] == true[j]) for i, j in combinations(range(len(true)), 2)]
    both_ = sum(a and b for a, b in same)
    return 2 * both_ / max(1, sum(a for a, _ in same) + sum(b for _, b in same))


def failure_type(record: Mapping[str, Any]) -> str:
    """What tau-bench's own answer says was wrong: changes that were missing, superfluous, or different."""
    wanted = Counter(
        (action["name"], json.dumps(action["kwargs"], sort_keys=True))
        for action in record["info"]["task"]["actions"]
        if action["name"].startswith(CHANGES)
    )
    answers = {message.get("tool_call_id"): message["content"] for message in record["traj"]}
    made = Counter(
        (call["function"]["name"], json.dumps(json.loads(call["function"]["arguments"]), sort_keys=True))
        for message in record["traj"]
        for call in message.get("tool_calls") or []
        if call["function"]["name"].startswith(CHANGES)
        and not str(answers.get(call["id"], "Error")).startswith("Error")
    )
    missing, extra = ({name for name, _ in (a - b)} for a, b in ((wanted, made), (made, wanted)))
    found = [
        f"{'wrong' if name in missing & extra else 'missing' if name in missing else 'extra'} {name}"
        for name in sorted(missing | extra)
    ]
    return "; ".join(found) or "said something wrong"


def bench_clusters(runs: Sequence[Item], what: str, label: Callable[[Mapping[str, Any]], str]) -> None:
    taxonomy = load_taxonomy(folder("evolver") / "taxonomy.toml")

    def name(item: Item) -> str:
        failure = failure_of(item.run, "", taxonomy, AgentActions("agent/default", lambda: item.steps))
        assert failure is not None
        return failure.fingerprint.id

    def on(given: Callable[[Item], Hashable]) -> Callable[[str], float]:
        def value(half: str) -> float:
            here = [item for item in runs if item.half == half]
            return pair_f1([given(item) for item in here], [label(item.record) for item in here])

        return value

    one, task = on(lambda item: 0), on(lambda item: item.record.get("task_id", item.name))
    kinds = len({label(item.record) for item in runs})
    report(
        f"same failure, {what}: pair F1",
        both(on(name), one, task),
        f"all are one: {both(one)}; same task: {both(task)}",
        f"{len(runs)} failed runs, {kinds} labels",
    )


# --- which step was it? -----------------------------------------------------------------------------


def bench_root(runs: Sequence[Item], what: str) -> None:
    guesses: Mapping[str, Callable[[Item], int]] = {
        "the first": lambda item: 0,
        "the second": lambda item: 1,
        "the middle": lambda item: len(item.record["history"]) // 2,
        "the last": lambda item: len(item.record["history"]) - 1,
    }

    def on(guess: Callable[[Item], int], within: int) -> Callable[[str], float]:
        return lambda half: fmean(
            abs(guess(item) - int(item.record["mistake_step"])) <= within
            for item in runs
            if item.half == half
        )

    def chance(within: int) -> Callable[[str], float]:
        def value(half: str) -> float:
            return fmean(
                fmean(
                    abs(place - int(item.record["mistake_step"])) <= within
                    for place in range(len(item.record["history"]))
                )
                for item in runs
                if item.half == half
            )

        return value

    for within, name in ((0, "exact"), (NEAR, f"±{NEAR}")):
        baselines = {guess_name: on(guess, within) for guess_name, guess in guesses.items()} | {
            "by chance": chance(within)
        }
        report(
            f"root step, {what}: {name}",
            both(on(lambda item: root_step(item.steps) - 1, within), *baselines.values(), form=".0%"),
            "; ".join(f"{guess} {both(value, form='.0%')}" for guess, value in baselines.items()),
            f"{len(runs)} failed runs",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    data = parser.parse_args().data
    if not (data / TAU).is_file() or not (data / WHO).is_dir():
        print(f"skipped: there are no trajectories at {data / 'trajectories'}; say where with --data PATH")
        return
    found = list(items(data))
    tau = [item for item in found if item.source == "tau-bench"]
    who = [item for item in found if item.source != "tau-bench"]
    bench_auroc(tau)
    bench_precision(found)
    bench_clusters([item for item in tau if item.failed], "tau-bench", failure_type)
    bench_clusters(who, "Who&When", lambda record: str(record["mistake_agent"]))
    bench_root(who, "Who&When")
    for source in ("Algorithm-Generated", "Hand-Crafted"):
        bench_root([item for item in who if item.source == source], source)


if __name__ == "__main__":
    main()
