"""``agentos audit verify`` against somebody who may write every file of the home."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pygit2
import pytest

from agentos.domain import Candidate, Evolution, Trial
from agentos.home import Home
from agentos.ledger.audit import AuditHead, Entry, chained
from agentos.ledger.reading import Reader
from agentos.ledger.rows.codec import bundle, from_text, kept, plain
from agentos.ledger.store import Ledger
from agentos.registry.git import external_commits
from agentos.registry.git.repository import EMAIL, MAIN, WRITTEN
from agentos.registry.store import Registry
from tests.cli.evolved_home import FAULTY, OTHER, PATH, RIGHT, evolve_home
from tests.homes import pack
from tests.refusals import assert_golden

Agentos = Callable[..., Any]


@pytest.fixture
def home(evolved_home: Path, tmp_path: Path) -> Home:
    shutil.copytree(evolved_home, tmp_path / "home")
    return Home(tmp_path / "home")


@contextmanager
def opened(home: Home) -> Iterator[sqlite3.Connection]:
    """The ledger in the hands of somebody who has dropped its triggers."""
    with closing(sqlite3.connect(home.ledger)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        connection.commit()


def faults(agentos: Agentos) -> list[str]:
    done = agentos("audit", "verify", "--json", code=None)
    found = json.loads(done.stdout)["faults"]
    assert done.returncode == bool(found), done.stderr
    return list(found)


def rewritten(home: Home, table: str, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """A record changed as its own program would have stored it."""
    with opened(home) as connection:
        (body,) = connection.execute(f"SELECT body FROM {table} WHERE id = ?", (name,)).fetchone()
        record = json.loads(plain(body))
        change(record)
        text = json.dumps(record, separators=(",", ":"))
        connection.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (kept(text), name))


def ids(home: Home, table: str) -> list[str]:
    with opened(home) as connection:
        return [name for (name,) in connection.execute(f"SELECT id FROM {table}")]


@pytest.mark.slow
def test_a_home_that_nobody_touched_is_whole(agentos: Agentos, home: Home) -> None:
    assert faults(agentos) == []
    shown = agentos("audit", "verify").stdout
    assert "evolutions 1, consents 1, promotions 1" in shown
    assert "head " in shown
    agentos("registry", "check")
    (evolution,) = Reader(home.ledger).find(Evolution)
    agentos("evolution", "verify", evolution.id)


@pytest.fixture(scope="session")
def moved(first_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("moved") / "home"
    shutil.copytree(first_home, root)
    evolve_home(Home(root), moved=True)
    return pack(root)


@pytest.fixture
def rebased(moved: Path, home: Home) -> Home:
    """A home whose promotion was put on a newer base."""
    shutil.rmtree(home.root)
    shutil.copytree(moved, home.root)
    return home


@pytest.mark.slow
def test_a_promotion_on_a_newer_base_is_whole_and_names_what_it_rests_on(
    agentos: Agentos, rebased: Home
) -> None:
    reader, registry = Reader(rebased.ledger), Registry(rebased.registry)
    (candidate,) = reader.find(Candidate)
    assert candidate.rebase is not None
    assert OTHER in registry.files(candidate.rebase.base, OTHER)
    (promotion,) = registry.promotions()
    assert promotion.snapshot.tree == candidate.rebase.snapshot.tree != candidate.snapshot.tree
    assert promotion.said["Judged-Tree"] == candidate.snapshot.tree
    assert faults(agentos) == []
    (evolution,) = reader.find(Evolution)
    agentos("evolution", "verify", evolution.id)


@pytest.mark.slow
def test_what_a_newer_base_rests_on_cannot_be_made_up(agentos: Agentos, rebased: Home) -> None:
    (candidate,) = ids(rebased, "candidate")
    rewritten(rebased, "candidate", candidate, lambda it: it["rebase"].update(bundles_sha256="0" * 64))
    found = faults(agentos)
    assert any("on the word of other trials" in fault for fault in found)
    assert any("its Bundles is not the one in the ledger" in fault for fault in found)
    rewritten(rebased, "candidate", candidate, lambda it: it.update(rebase=None))
    assert any(
        "the tree that was promoted is not the one that was judged" in fault for fault in faults(agentos)
    )


def passed(record: dict[str, Any]) -> None:
    record["outcome"] |= {"result": "passed", "score": 1.0, "reason": "", "fault": None}


@pytest.mark.slow
def test_failed_runs_turned_into_passed(agentos: Agentos, home: Home) -> None:
    rewritten(home, "run", "run-0", passed)
    with opened(home) as connection:
        connection.execute("UPDATE run SET result = 'passed' WHERE id = 'run-0'")
    assert any("run-0 is passed on record" in fault for fault in faults(agentos))


def test_a_run_whose_column_alone_was_changed(agentos: Agentos, home: Home) -> None:
    with opened(home) as connection:
        connection.execute("UPDATE run SET result = 'passed' WHERE id = 'run-0'")
    assert any("run-0: its columns" in fault for fault in faults(agentos))


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.update(answer={"grade": "pass"}),
        lambda run: run["outcome"].update(reason="something else"),
        lambda run: run.update(resources=[]),
    ],
    ids=["answer", "reason", "resources"],
)
def test_a_run_that_says_something_else_with_the_same_result(
    agentos: Agentos, home: Home, change: Callable[[dict[str, Any]], None]
) -> None:
    rewritten(home, "run", "run-1", change)
    assert any("run-1 (outcome, answer or steps)" in fault for fault in faults(agentos))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE step SET action = '{\"tool\":\"other\"}' WHERE run_id = 'run-3'",
        "DELETE FROM step WHERE run_id = 'run-3'",
        "INSERT INTO step SELECT no + 1000, run_id, 1, node, action, observation, fault, started_at, duration_ms "
        "FROM step WHERE run_id = 'run-3'",
    ],
    ids=["changed", "deleted", "added"],
)
def test_steps_of_a_run(agentos: Agentos, home: Home, sql: str) -> None:
    with opened(home) as connection:
        assert connection.execute(sql).rowcount == 1
    assert any("run-3 (outcome, answer or steps)" in fault for fault in faults(agentos))


@pytest.mark.slow
def test_trials_verdict_and_consent_rewritten_in_anothers_name(agentos: Agentos, home: Home) -> None:
    trial = ids(home, "trial")[0]
    (verdict,), (consent,) = ids(home, "verdict"), ids(home, "consent")
    rewritten(home, "trial", trial, passed)
    rewritten(home, "verdict", verdict, lambda it: it.update(reasons=["all is well"]))
    rewritten(home, "consent", consent, lambda it: it.update(principal="person:ceo", token="ab" * 32))
    found = faults(agentos)
    for said in (
        f"the verdict {verdict} is not what entry",
        f"the consent {consent} of person:ceo was not given with this home's key",
        f"the consent {consent} is person:ceo's on record",
        "the rows in trial of evo-",
        f"{verdict}: trials_sha256 is",
        "its Consent is not the one in the ledger",
    ):
        assert any(said in fault for fault in found), said
    (evolution,) = Reader(home.ledger).find(Evolution)
    done = agentos("evolution", "verify", evolution.id, code=None)
    assert done.returncode == 1
    assert "was not given with this home's key" in done.stderr
    assert any("person:ceo" in line for line in agentos("doctor", "--full", code=None).stdout.splitlines())


def test_a_token_alone_is_not_enough_to_be_somebody(agentos: Agentos, home: Home) -> None:
    (consent,) = ids(home, "consent")
    rewritten(home, "consent", consent, lambda it: it.update(principal="person:ceo"))
    assert any("was not given with this home's key" in fault for fault in faults(agentos))


@pytest.mark.slow
def test_trials_that_were_packed(agentos: Agentos, home: Home) -> None:
    with opened(home) as connection:
        rows = connection.execute("SELECT evolution_id, body FROM trial ORDER BY seq").fetchall()
        texts = [plain(body) for _, body in rows]
        trials = [from_text(Trial, text) for text in texts]
        pack = "INSERT INTO trial_pack (evolution_id, trials, cpu_s, body) VALUES (?, ?, 0, ?)"
        connection.execute(pack, (rows[0][0], len(texts), bundle(trials, texts)))
        connection.execute("DELETE FROM trial")
    assert faults(agentos) == []
    with opened(home) as connection:
        connection.execute("UPDATE trial_pack SET body = ?", (bundle(trials[1:], texts[1:]),))
    assert any("1 of" in fault and "rows in trial of evo-" in fault for fault in faults(agentos))


DELETED = {
    "run": "the run run-0 is gone",
    "task": "its task task-0 is gone",
    "flag": "the flag on run-0 (the grade is wrong) is gone",
    "evidence": "the evidence evd-",
    "evolution": "the evolution evo-",
    "candidate": "rows in candidate of evo-",
    "trial": "rows in trial of evo-",
    "verdict": "the verdict verdict-",
    "consent": "the consent consent-",
    "attestation": "rows in attestation of evo-",
}


@pytest.mark.parametrize("table", DELETED)
def test_rows_deleted(agentos: Agentos, home: Home, table: str) -> None:
    one = {"run": "WHERE id = 'run-0'", "task": "WHERE id = 'task-0'"}.get(table, "")
    with opened(home) as connection:
        connection.execute(f"DELETE FROM {table} {one}")
    found = faults(agentos)
    assert any(DELETED[table] in fault for fault in found), found


COPIED = ("run", "evidence", "verdict", "consent", "evolution")


@pytest.mark.parametrize("table", COPIED)
def test_rows_made_up(agentos: Agentos, home: Home, table: str) -> None:
    """A copy under another id, consistent in itself: nothing in the log says that it happened."""
    with opened(home) as connection:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        row = dict(zip(columns, rows[0], strict=True))
        new = f"{row['id']}x"
        key = "no" if table == "run" else "seq"
        row["body"] = kept(plain(row["body"]).replace(row["id"], new))
        row |= {"id": new, key: 9_999} | ({"seq": 9_999, "attempt": 7} if table == "run" else {})
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
    wanted = "has no audit entry" if table != "run" else "no audit entry says so"
    assert any(wanted in fault for fault in faults(agentos))


def added(home: Home, table: str, **over: object) -> None:
    """One more row, a copy of the newest under another id."""
    with opened(home) as connection:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        row = dict(zip(columns, connection.execute(f"SELECT * FROM {table}").fetchall()[-1], strict=True))
        new = f"{row['id']}x"
        row["body"] = kept(plain(row["body"]).replace(row["id"], new))
        row |= {"id": new, "no" if table == "run" else "seq": 9_999, **over}
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def moved_tag(home: Home) -> None:
    """The newest version's tag, made to say what the one before it was made of."""
    registry = Registry(home.registry)
    git = registry.repository.git
    (promotion,) = registry.promotions()
    path = "/".join(PATH.split("/")[:2])
    old, new = sorted(ref for ref in git.references if ref.startswith(f"refs/tags/{path}@"))[-2:]
    assert str(git[git.references[new].target].target) == promotion.snapshot.commit
    git.references.create(new, git.references[old].target, force=True)


def replaced_object(home: Home) -> None:
    registry = Registry(home.registry)
    (parent,) = registry.repository.commit(registry.stable().commit).parent_ids
    registry.repository.git.references.create(f"refs/replace/{registry.stable().commit}", parent)


def hidden_now(home: Home) -> None:
    with opened(home) as connection:
        connection.execute("UPDATE task SET share = 'hold-out' WHERE id = 'task-1'")


def changed(table: str, **over: Any) -> Callable[[Home], None]:
    def work(home: Home) -> None:
        rewritten(home, table, ids(home, table)[0], lambda it: it.update(over))

    return work


# What somebody may try who wants an edit promoted, or to look well afterwards -> what is said of it.
TAMPERED: dict[str, tuple[Callable[[Home], None], str]] = {
    "a run with an outcome that never ended": (
        lambda home: added(home, "run", seq=None, attempt=7),
        "has an outcome, and never ended",
    ),
    "a shown task hidden": (hidden_now, "is hidden now, or shown, and was not when"),
    "a candidate after the end": (lambda home: added(home, "candidate"), "came after it had ended"),
    "a better attestation": (
        lambda home: added(home, "attestation"),
        "is none that this program makes",
    ),
    "an attestation that says something else": (changed("attestation", verdict="x"), "rows in attestation"),
    "a tag on another commit": (moved_tag, "tag"),
    "an object in the place of another": (replaced_object, "by which git shows another object"),
    "a candidate that was found before its tasks": (changed("candidate", known_tasks=7), "rows in candidate"),
    "a candidate that edits nothing": (changed("candidate", edited=[]), "rows in candidate"),
    "a candidate of a person's": (changed("candidate", proposer="person"), "rows in candidate"),
    "a trial of other work": (changed("trial", work="x"), "rows in trial"),
    "a trial that reached more": (changed("trial", reached=["x"]), "rows in trial"),
    "a trial on another machine": (changed("trial", host="x"), "rows in trial"),
    "an evolution that hid something": (changed("evolution", held_back=["task-1"]), "the evolution evo-"),
    "a consent that lasts": (
        changed("consent", expires_at="2099-01-01T00:00:00+00:00"),
        "the consent consent-",
    ),
}


@pytest.mark.parametrize("way", TAMPERED)
def test_a_second_look_at_what_can_be_tampered_with(agentos: Agentos, home: Home, way: str) -> None:
    tamper, says = TAMPERED[way]
    tamper(home)
    found = faults(agentos)
    assert any(says in fault for fault in found), found


def test_what_a_task_asked_for(agentos: Agentos, home: Home) -> None:
    rewritten(home, "task", "task-0", lambda it: it.update(checks=[]))
    assert any("the task task-0: what it asks for" in fault for fault in faults(agentos))


def test_a_flag_and_evidence_made_up_of_other_runs(agentos: Agentos, home: Home) -> None:
    with opened(home) as connection:
        connection.execute("UPDATE flag SET run_id = 'run-4'")
    rewritten(home, "evidence", ids(home, "evidence")[0], lambda it: it.update(run_ids=["run-4"]))
    found = faults(agentos)
    assert any("the flag on run-4" in fault and "no audit entry" in fault for fault in found)
    assert any("is not the batch that entry" in fault for fault in found)


def test_an_evolution_that_says_it_ended_otherwise(agentos: Agentos, home: Home) -> None:
    (name,) = ids(home, "evolution")
    rewritten(home, "evolution", name, lambda it: it.update(state="promoted"))
    with opened(home) as connection:
        connection.execute("UPDATE evolution SET state = 'promoted'")
    assert any("and the audit log says probation" in fault for fault in faults(agentos))


def test_an_evolution_that_gives_another_reason(agentos: Agentos, home: Home) -> None:
    (name,) = ids(home, "evolution")
    rewritten(home, "evolution", name, lambda it: it.update(reason="a person wished it"))
    assert any(f"the evolution {name} is not what entry" in fault for fault in faults(agentos))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *((table, "id") for table in ("evolution", "candidate", "verdict", "trial")),
        ("evolution", "fingerprint_id"),
        ("evolution", "evidence_id"),
        ("evolution", "resource"),
        ("evidence", "fingerprint"),
        ("trial", "candidate_id"),
        ("probe", "driving_sha256"),
        ("run", "finished_at"),
        *(("task", column) for column in ("name", "agent", "parent", "schedule_id")),
    ],
)
def test_a_column_by_which_records_are_found(agentos: Agentos, home: Home, table: str, column: str) -> None:
    with opened(home) as connection:
        newest = f"SELECT max(rowid) FROM {table}"
        connection.execute(f"UPDATE {table} SET {column} = 'other' WHERE rowid = ({newest})")
    assert any("its columns are not what its record says" in fault for fault in faults(agentos))


@pytest.mark.parametrize("table", ["evolution", "consent", "verdict"])
@pytest.mark.parametrize("body", [b"\x01cut", "no JSON", "[]", "null", "3"])
def test_a_row_that_cannot_be_read_is_named_and_the_rest_is_looked_at(
    agentos: Agentos, home: Home, table: str, body: object
) -> None:
    (name,) = ids(home, table)
    with opened(home) as connection:
        connection.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (body, name))
        connection.execute("UPDATE task SET task_key = 'other'")
    found = faults(agentos)
    assert any(name in fault for fault in found)
    assert any("task" in fault and name not in fault for fault in found)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(("audit", column) for column in ("at", "event", "subject", "detail")),
        ("attestation", "evolution_id"),
        ("run", "body"),
        ("task", "body"),
    ],
)
@pytest.mark.parametrize(
    "value", [b"\xff\xfe", "[]", '{"records": 3, "sets": [1], "inputs": [3], "outputs": 1}']
)
def test_what_stands_in_a_column_for_something_else_is_a_fault_and_no_bug(
    agentos: Agentos, home: Home, table: str, column: str, value: object
) -> None:
    with opened(home) as connection:
        newest = f"SELECT max(rowid) FROM {table}"
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ({newest})", (value,))
    assert faults(agentos)


def blobs(home: Home) -> list[Path]:
    return sorted(path for path in home.blobs.glob("??/*") if path.is_file())


def test_a_blob_overwritten_and_one_that_is_gone(agentos: Agentos, home: Home) -> None:
    first, last = blobs(home)[0], blobs(home)[-1]
    assert first != last
    first.write_bytes(b"something else")
    last.unlink()
    found = faults(agentos)
    assert any(f"the blob {first.parent.name}{first.name} is damaged" in fault for fault in found)
    assert any(f"the blob {last.parent.name}{last.name} is missing" in fault for fault in found)


def forge(home: Home, said: dict[str, str], *, hide: bool) -> str:
    """A commit on ``main`` as this program would make it, by git; ``hide``: with its marks moved along."""
    registry = Registry(home.registry)
    repository, main = registry.repository, registry.stable()
    tree = repository.write_tree(main.tree, {PATH: FAULTY.replace("> 50", "> 1").encode()})
    lines = {
        "Origin": "evolution",
        "Version": "skill/calc@1.0.2",
        "Parent-Version": "skill/calc@1.0.1",
        **said,
    }
    trailers = "\n".join(f"{key}: {value}" for key, value in lines.items())
    us = pygit2.Signature("agentos", EMAIL)
    made = repository.git.create_commit(
        None, us, us, f"Better\n\n{trailers}\n", tree, [pygit2.Oid(hex=main.commit)]
    )
    for ref in (MAIN, *((WRITTEN, external_commits.WRITING) if hide else ())):
        repository.git.references.create(ref, made, force=True)
    return str(made)


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.slow
def test_a_forged_commit_with_an_invented_evolution(agentos: Agentos, home: Home, hide: bool) -> None:
    made = forge(
        home, {"Evolution": "evo-0000000000000", "Evidence": "evd-1", "Consent": "person:ceo c"}, hide=hide
    )
    says = (
        f"the commit {made[:12]} on main says that evo-0000000000000 made it, which the ledger does not know"
    )
    assert says in faults(agentos)
    assert says in json.loads(agentos("registry", "check", "--json", code=1).stdout)["faults"]
    assert any(says in line for line in agentos("doctor", "--full", code=None).stdout.splitlines())


def test_a_home_that_began_with_anothers_registry_is_whole_and_no_commit_can_be_made_up_on_it(
    agentos: Agentos, home: Home, tmp_path: Path
) -> None:
    new = Home(tmp_path / "new")
    new.root.mkdir()
    shutil.copytree(home.registry, new.registry)
    there = partial(agentos, "--home", str(new.root))
    there("init")
    assert json.loads(there("audit", "verify", "--json").stdout)["faults"] == []
    there("registry", "check")
    forge(new, {"Evolution": "evo-0000000000000", "Evidence": "evd-1", "Consent": "person:ceo c"}, hide=True)
    (fault,) = json.loads(there("audit", "verify", "--json", code=1).stdout)["faults"]
    assert "evo-0000000000000" in fault


def test_a_forged_commit_that_our_committer_signed_is_set_aside(home: Home) -> None:
    registry = Registry(home.registry)
    before = registry.stable()
    made = forge(home, {"Evolution": "evo-0000000000000"}, hide=False)
    assert any("nothing of what it says of itself" in fault for fault in registry.check().faults)
    (push,) = registry.take_in_pushes(None)
    assert push.faults == ()
    newest = registry.versions(push.resources[0])[0]
    assert (newest.origin, newest.evolution) == ("edit", None)
    assert registry.stable().commit not in (made, before.commit)


def test_a_forged_commit_in_a_real_evolutions_name(agentos: Agentos, home: Home) -> None:
    (name,) = ids(home, "evolution")
    made = forge(home, {"Evolution": name}, hide=True)
    found = faults(agentos)
    assert any(made[:12] in fault and "knows of no such promotion" in fault for fault in found)


def test_a_promotion_whose_commit_is_gone(agentos: Agentos, home: Home) -> None:
    registry = Registry(home.registry)
    parent = registry.repository.commit(registry.stable().commit).parent_ids[0]
    for ref in (MAIN, WRITTEN, external_commits.WRITING):
        registry.repository.git.references.create(ref, parent, force=True)
    assert any("is not on main" in fault for fault in faults(agentos))


def test_a_commit_whose_trailers_name_another_consent(agentos: Agentos, home: Home) -> None:
    """The promotion's own commit, written anew with one word changed, and the ledger's record along with it."""
    registry = Registry(home.registry)
    old = registry.repository.commit(registry.stable().commit)
    text = old.message.replace("Consent: policy:medium=auto", "Consent: person:ceo")
    assert text != old.message
    made = registry.repository.git.create_commit(
        None, old.author, old.committer, text, old.tree_id, old.parent_ids
    )
    for ref in (MAIN, WRITTEN, external_commits.WRITING):
        registry.repository.git.references.create(ref, made, force=True)
    (name,) = ids(home, "evolution")
    rewritten(home, "evolution", name, lambda it: it["promoted"].update(commit=str(made)))
    found = faults(agentos)
    assert any("its Consent is not the one in the ledger: person:ceo" in fault for fault in found)
    assert any(f"the evolution {name} is not what entry" in fault for fault in found)


# --- the log itself ---------------------------------------------------------------------------


def rechain(home: Home, change: Callable[[Entry], str | None]) -> None:
    """Write the whole log anew, with details changed or entries left out, and its head with it."""
    entries, head = Reader(home.ledger).entries(), AuditHead()
    with opened(home) as connection:
        connection.execute("DELETE FROM audit")
        for entry in entries:
            detail = change(entry)
            if detail is None:
                continue
            new = chained(head, entry.at, entry.event, entry.subject, detail)
            head = AuditHead(new.seq, new.hash)
            values = (new.seq, new.at, new.event, new.subject, detail, new.previous, new.hash)
            connection.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    (home.root / "audit.head").write_text(f"{head.count:020d}:{head.hash}\n")


def without_digests(entry: Entry) -> str:
    detail = {key: value for key, value in entry.detail.items() if key not in ("records", "sets")}
    return json.dumps(detail, sort_keys=True)


@pytest.mark.slow
def test_an_old_home_is_verified_as_far_as_its_entries_go_and_the_output_says_so(
    agentos: Agentos, home: Home
) -> None:
    rechain(home, without_digests)
    assert faults(agentos) == []
    assert "No entry has digests yet" in agentos("audit", "verify").stdout
    since = Reader(home.ledger).head().count + 1
    ledger = Ledger(home.ledger)
    ledger.flag("run-1", "again")
    (evolution,) = ledger.find(Evolution)
    ledger.note("evolution.probation", evolution.id, {"reason": "said again"}, (evolution,))
    ledger.close()
    assert f"from entry {since + 1} on" in agentos("audit", "verify").stdout
    # what an old entry says in words still holds
    rewritten(home, "run", "run-0", passed)
    with opened(home) as connection:
        connection.execute("UPDATE run SET result = 'passed' WHERE id = 'run-0'")
        connection.execute("DELETE FROM consent")
    found = faults(agentos)
    assert any("run-0 is passed on record" in fault for fault in found)
    assert any("the consent consent-" in fault and "is gone" in fault for fault in found)


@pytest.mark.slow
def test_a_log_rewritten_whole_shows_only_against_a_head_that_was_noted_elsewhere(
    agentos: Agentos, home: Home, tmp_path: Path
) -> None:
    """What docs/understand/security.md says of whoever may write all files of the home."""
    short = json.loads(agentos("status", "--json").stdout)["head"]
    assert short in agentos("status").stdout
    heads = tmp_path / "elsewhere"
    heads.write_text(f"2026-01-01T00:00:00+00:00 {Reader(home.ledger).head()}\n")
    with opened(home) as connection:
        connection.execute("DELETE FROM flag")
    rechain(home, lambda entry: None if entry.event == "run.flagged" else entry.detail_text)
    assert faults(agentos) == []
    agentos("audit", "verify", "--head", short, code=1)
    done = agentos("audit", "verify", "--heads", str(heads), code=1)
    assert "line 1" in done.stdout + done.stderr


def test_a_made_up_head_is_refused_with_a_sentence(agentos: Agentos, tmp_path: Path) -> None:
    done = agentos("audit", "verify", "--head", "7", code=1)
    assert_golden("audit.head_is_number_hex_digits", done.stderr)
    done = agentos("audit", "verify", "--heads", str(tmp_path / "none"), code=1)
    assert_golden("audit.cannot_be_read", done.stderr)


def test_the_key_is_missing_or_another(agentos: Agentos, home: Home) -> None:
    key = home.consent_key.read_bytes()
    home.consent_key.write_bytes(bytes(reversed(key)))
    assert any("was not given with this home's key" in fault for fault in faults(agentos))
    home.consent_key.unlink()
    assert any("no consent can be checked" in fault for fault in faults(agentos))


def test_what_was_promoted_is_what_the_tool_is_now(home: Home) -> None:
    registry = Registry(home.registry)
    assert registry.files(registry.stable(), PATH)[PATH].decode() == RIGHT


def test_rows_as_an_earlier_release_wrote_them(agentos: Agentos, home: Home) -> None:
    """Text as it was, or zlib without a dictionary: read, verified and computed again as ever."""
    with opened(home) as connection:
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE sql LIKE '% body %'"
        ).fetchall():
            for place, body in connection.execute(f"SELECT rowid, body FROM {table}").fetchall():
                text = plain(body)
                old = text if len(text) <= 1000 else zlib.compress(text.encode())
                connection.execute(f"UPDATE {table} SET body = ? WHERE rowid = ?", (old, place))
        steps = connection.execute("SELECT no, action, observation FROM step").fetchall()
        for place, *values in steps:
            texts = [plain(value) for value in values]
            connection.execute("UPDATE step SET action = ?, observation = ? WHERE no = ?", (*texts, place))
    assert steps
    assert faults(agentos) == []
    (evolution,) = Reader(home.ledger).find(Evolution)
    assert "1 of 1 verdicts computed again" in agentos("evolution", "verify", evolution.id).stdout
