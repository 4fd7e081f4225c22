"""The skill text-stats and the tools word-count and json-query."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import raises

Call = Callable[..., Any]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", (0, 0, 0, 0, 0, 0)),
        (b"one two\n\n  three\n", (3, 1, 3, 14, 7, 1)),
        (b"a\r\nbb\r\n", (2, 0, 2, 3, 2, 2)),
        ("é\u2028x".encode(), (1, 0, 2, 3, 3, 1)),
        (b"\xff\n\n", (2, 1, 1, 1, 1, 1)),
    ],
)
def test_line_stats(call: Call, workspace: Path, content: bytes, expected: tuple[int, ...]) -> None:
    (workspace / "text").write_bytes(content)
    found = call("line_stats", path="text")
    assert tuple(found.values()) == expected


def test_word_frequency(call: Call, workspace: Path) -> None:
    (workspace / "text").write_text("The cat, the DOG; don't -- well-known cat_the 7 Straße STRASSE")
    found = call("word_frequency", path="text", top=3)
    assert found["words"] == 11
    assert found["top"] == [
        {"word": "the", "count": 3},
        {"word": "cat", "count": 2},
        {"word": "strasse", "count": 2},
    ]
    words = {word["word"] for word in call("word_frequency", path="text", shortest=4, top=100)["top"]}
    assert words == {"don't", "well-known", "strasse"}


def test_word_count_is_that_of_wc(call: Call, workspace: Path) -> None:
    (workspace / "text").write_bytes(b" one\ttwo\n\nthree")
    assert call("word-count", path="text") == {"lines": 2, "words": 3, "bytes": 15}
    if shutil.which("wc"):
        shutil.copy(__file__, workspace / "this.py")
        said = subprocess.run(["wc", "-lwc", "this.py"], capture_output=True, text=True, check=True).stdout
        assert list(call("word_count", path="this.py").values()) == [int(word) for word in said.split()[:3]]


def test_json_query(call: Call, workspace: Path) -> None:
    (workspace / "a.json").write_text(
        '{"servers": [{"name": "x", "on": true}, {"name": "y"}], "n": null, "f": 1.5}'
    )
    for query, value, kind in (
        ("servers.0.name", "x", "string"),
        ("servers.-1", {"name": "y"}, "object"),
        ("servers.0.on", True, "boolean"),
        ("n", None, "null"),
        ("f", 1.5, "number"),
    ):
        assert call("json-query", path="a.json", query=query) == {"value": value, "kind": kind}
    assert call("json-query", path="a.json")["kind"] == "object"
    for query in ("servers.2", "servers.x", "n.a", "servers.0.name.0", "missing"):
        with raises(LookupError, names=[repr(query)]):
            call("json-query", path="a.json", query=query)
    (workspace / "odd.json").write_text('{"loss": NaN, "all": [1e999, -Infinity, 2.5]}')
    # null would say that nothing was measured
    assert call("json-query", path="odd.json", query="loss") == {"value": "NaN", "kind": "string"}
    assert call("json-query", path="odd.json", query="all")["value"] == ["1e999", "-Infinity", 2.5]
    (workspace / "marked.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert call("json-query", path="marked.json", query="0")["value"] == 1


def test_words_are_whole_however_their_accents_are_written(call: Call, workspace: Path) -> None:
    (workspace / "text").write_text(
        "\ufeffcafe\u0301s CAF\u00c9S \u0939\u093f\u0928\u094d\u0926\u0940", encoding="utf-8"
    )
    found = call("word_frequency", path="text")
    assert [(one["count"], len(one["word"])) for one in found["top"]] == [(2, 5), (1, 6)]
    assert call("line_stats", path="text")["characters"] == 19
