"""Policy and taxonomy say what is wrong with them, a sentence for each fault."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from agentos.domain import Tier, canonical
from agentos.errors import ErrorKind, Invalid
from agentos.evolver import documents
from agentos.evolver.documents import load_policy, load_taxonomy, policy_from_json
from agentos.evolver.policy import Policy
from agentos.shipped import folder
from tests.refusals import raises


def test_the_shipped_policy_is_the_default() -> None:
    assert load_policy(folder("evolver") / "policy.toml") == Policy()


def test_tiers_ask_unless_the_policy_says_auto() -> None:
    assert Policy().consent.left(Tier.HIGH)
    assert not Policy().consent.left(Tier.LOW)


def test_another_policy_has_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[judge]\nmin_tasks = 9\n")
    assert load_policy(path).sha256 != Policy().sha256


@pytest.mark.parametrize("section", [item.name for item in fields(Policy) if item.name != "edition"])
def test_every_number_that_decides_is_in_the_digest(section: str) -> None:
    """The judge's, those that say how far is looked back, and all others; none of these stands in code beside."""
    own = getattr(Policy(), section)
    for item in fields(own):
        old = getattr(own, item.name)
        other = replace(own, **{item.name: (*old, "x") if isinstance(old, tuple) else old * 2 + type(old)(1)})
        assert replace(Policy(), **{section: other}).sha256 != Policy().sha256


def test_no_number_beside_the_policy_says_how_far_is_looked_back() -> None:
    """Or how often, how long, of how many: what is left in code is a bound of memory or of a text that is shown."""
    words = "LOOK_BACK|TRIALS|STEADY|ONE_ANSWER|_SLACK|UNUSED|SHARED_BY|PROMOTED|PAST|RECENT|LATELY|RUNS_(A|BACK)|WISHES|HOPE|SURE"
    for path in Path(documents.__file__).parent.rglob("*.py"):
        found = re.search(rf"^_?({words})\w* = [\d.]+\b.*", path.read_text(), re.M)
        assert found is None, f"{path}: {found and found[0]}"


def test_a_policy_that_was_stored_before_a_number_stood_in_it_says_what_the_code_said() -> None:
    old = json.loads(canonical(Policy()))
    moved = {
        "mine": ("shared_by", "deeper_after", "unused_days"),
        "surface": ("max_text_line", "expected_min"),
        "propose": ("hope_s", "falls_by", "dollar_s", "parent_chance"),
        "look_back": (
            "same_failure",
            "parents",
            "told",
            "settled",
            "blamed",
            "calibrated",
            "undone",
            "proposals",
            "answered",
            "observed",
        ),
        "review": ("max_diff",),
        "probe": ("agents",),
    }
    for section, names in moved.items():
        for name in names:
            del old[section][name]
    assert policy_from_json(old) == Policy()
    assert (Policy().mine.unused_days, Policy().mine.shared_by, Policy().look_back.same_failure) == (
        30,
        3,
        50,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[judgement]\n", "line 1: [judgement] is not a section"),
        ("[mine]\nattempts = 2\n[judge]\nattempts = 2\n", "line 4: [judge] attempts is not a setting"),
        ("\njudge = 1\n", "line 2: [judge] must be a table"),
        ("[judge]\nmin = 1\n", "[judge] min is not a setting"),
        ("[judge]\nmin_tasks = -1\n", "at least 0"),
        ("[judge]\nmin_tasks = 1.5\n", "whole number"),
        ("[judge]\nalpha = 0\n", "alpha must lie between 0 and 1"),
        ("[judge]\nmargin = 1.0\n", "margin must lie between 0 and 1"),
        ("[judge]\nmin_tasks = true\n", "number"),
        ("[judge]\nsteady_share = 1.0\n", "steady_share must lie between 0 and 1"),
        ("[judge]\nsieve_trials = 0\n", "sieve_trials must lie between 1 and 100"),
        ("[replay]\nrepeats = 101\n", "repeats must lie between 1 and 100"),
        ("[mine]\nhalf_life_days = 0\n", "half_life_days must be above 0"),
        ("[propose]\nhope_s = 0.0\n", "hope_s must be above 0"),
        ("[replay]\nprior_min = nan\n", "prior_min must be a number of at least 0"),
        ('[consent]\nhigh = "yes"\n', '"auto" or "ask"'),
        ('[replay]\nmodels = "paid"\n', '"replay-then-live" or "replay" or "live"'),
        ("[surface]\nallow = 3\n", "list of patterns"),
        ('[propose]\nform = "patch"\n', '"diff" or "whole"'),
        ('[propose]\nmodel = "openai/x"\n', "the name of a model"),
        ('[review]\nhigh = "advise"\n', "names no model"),
        ("judge = 1\n", "must be a table"),
        ("[judge\n", "not TOML"),
    ],
)
def test_each_fault_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(Invalid) as caught:
        load_policy(path)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("mine", "taken_up"),
        ("look_back", "rolled_back"),
        ("look_back", "versions"),
        ("replay", "neighbour_s"),
        ("replay", "drawn"),
        ("replay", "crossed"),
        ("replay", "stepped"),
        ("replay", "along_min"),
        ("replay", "length_min"),
        ("replay", "broad_share"),
        ("replay", "spelled"),
        ("replay", "mutants"),
        ("replay", "prior_min"),
        ("replay", "luck_min"),
        ("judge", "fresh_doubted"),
        ("replay", "rival_share"),
        ("replay", "share_min"),
        ("replay", "symptom_min"),
        ("replay", "symptom_share"),
    ],
)
def test_what_decides_is_in_the_digest_and_an_older_document_reads_as_it_was(section: str, name: str) -> None:
    rules = getattr(Policy(), section)
    other = replace(Policy(), **{section: replace(rules, **{name: getattr(rules, name) + 1})})
    assert other.sha256 != Policy().sha256
    document = json.loads(canonical(Policy()))
    del document[section][name]
    new = ("mutants", "stepped", "symptom_min", "spelled", "prior_min", "share_min", "fresh_doubted")
    before = 0 if name in new else getattr(rules, name)
    assert getattr(getattr(policy_from_json(document), section), name) == before


def test_a_retired_key_is_passed_over_in_a_file_and_in_what_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_RETIRED", {"judge": frozenset({"luck"})})
    path = tmp_path / "policy.toml"
    path.write_text("[judge]\nluck = 7\nmin_tasks = 9\n")
    assert load_policy(path).judge.min_tasks == 9
    stored = json.loads(canonical(load_policy(path)))
    stored["judge"]["luck"] = 7
    assert policy_from_json(stored) == load_policy(path)
    path.write_text("[mine]\nluck = 7\n")  # retired elsewhere
    with pytest.raises(Invalid):
        load_policy(path)


@pytest.mark.parametrize("extra", [{"judge": {"mercy": 1}}, {"luck": {}}])
def test_a_stored_policy_of_a_later_version_is_refused_rather_than_read_in_part(
    extra: dict[str, object],
) -> None:
    with pytest.raises(Invalid):
        policy_from_json(json.loads(canonical(Policy())) | extra)


def test_a_missing_file_and_a_taxonomy_without_an_end_are_refused(tmp_path: Path) -> None:
    with raises(Invalid, ErrorKind.UNREADABLE):
        load_policy(tmp_path / "none.toml")
    path = tmp_path / "taxonomy.toml"
    path.write_text('[[class]]\nname = "x"\nfaults = ["y"]\nlayer = "tool"\nevolvable = true\nsays = "z"\n')
    with raises(Invalid, message="taxonomy.last_class", hidden={"folder": tmp_path}):
        load_taxonomy(path)


WHOLE = '# what fails\n[[class]]\nname = "x"\nfaults = ["*"]\nlayer = "tool"\nevolvable = true\nsays = "z"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "[[class]]"),
        ("class = []\n", "[[class]]"),
        ("class = 3\n", "[[class]]"),
        ("class = [3]\n", "class 1: it is no table"),
        ("[[class]\n", "line 1"),
        ("x = " + "[" * 100_000, "not TOML"),
        ("x = " + "9" * 5_000, "not TOML"),
        (WHOLE.replace('name = "x"\n', ""), "line 2: class 1: 'name' is missing"),
        (WHOLE.replace('["*"]', '"*"'), "line 2: class 1: 'faults' is '*'"),
        (WHOLE.replace('["*"]', "[1]"), "line 2: class 1: 'faults' is [1]"),
        (WHOLE.replace('"tool"', '"tol"'), "line 2: class 1: 'layer' is 'tol'"),
        (WHOLE.replace("true", '"false"'), "line 2: class 1: 'evolvable' is 'false'"),
        (WHOLE.replace('"z"', "3"), "line 2: class 1: 'says' is 3"),
        (WHOLE + WHOLE.replace("says", "sais"), "line 9: class 2: 'says' is missing"),
    ],
)
def test_a_broken_taxonomy_is_told_by_file_line_and_key(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "taxonomy.toml"
    path.write_text(text)
    with pytest.raises(Invalid) as caught:
        load_taxonomy(path)
    assert str(path) in str(caught.value)
    assert any(told in fault for fault in caught.value.faults), caught.value.faults


def test_a_taxonomy_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "taxonomy.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "taxonomy.toml"):
        with pytest.raises(Invalid) as caught:
            load_taxonomy(path)
        assert str(path) in str(caught.value)
    (tmp_path / "taxonomy.toml").write_text(WHOLE)
    assert [klass.name for klass in load_taxonomy(tmp_path / "taxonomy.toml")] == ["x"]
