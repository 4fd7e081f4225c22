"""Secrets: where keys are read, and what is taken out of a text."""

from __future__ import annotations

import base64
import errno
import html
import json
import re
import resource
import shlex
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentos.errors import ErrorKind, UserError
from agentos.home import Home
from agentos.models.redaction import _SHAPES, Redactor, known_secrets, redactor_of
from agentos.models.secrets import Secret, keep, read_keys, secrets_of
from agentos.settings import Settings
from tests.refusals import raises

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("secret", "name"),
    [
        ("sk-proj-abcdefghijklmnop1234", "api-key"),
        ("AKIAIOSFODNN7EXAMPLE", "aws-key"),
        ("ghp_" + "a1" * 18, "github-token"),
        ("github_pat_" + "a1" * 18, "github-token"),
        ("xoxb-1234567890-abcdef", "slack-token"),
        ("AIza" + "b" * 35, "google-key"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlX2hlcmU", "jwt"),
        (KEY, "private-key"),
    ],
)
def test_a_well_known_key_is_taken_out_wherever_it_stands(secret: str, name: str) -> None:
    clean = Redactor([])
    assert clean.text(f"it is {secret}, really") == f"it is [redacted:{name}], really"
    nested = {"a": [{"b": f"x {secret}"}], secret: 1, "args": json.dumps({"key": secret})}
    found = json.dumps(clean.value(nested))
    assert secret not in found
    assert json.dumps(secret)[1:-1] not in found


def test_secrets_that_are_set_at_once_are_all_kept(tmp_path: Path) -> None:
    def set_one(number: int) -> None:
        wanted = Secret(f"KEY_{number}", ("api.example.org",), any_task=False, set_at="", kept_in="file")
        keep(home, wanted, f"the value of {number}", in_file=True)

    home = Home(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(set_one, range(40)))
    assert set(secrets_of(home)) == {f"KEY_{number}" for number in range(40)}
    assert home.secrets.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [home.secrets.name]


def test_a_bearer_keeps_its_word_and_loses_its_token() -> None:
    assert Redactor([]).text("Authorization: Bearer abcdefghij0123456789xyz") == (
        "Authorization: Bearer [redacted:bearer]"
    )


def test_known_values_are_named_and_found_within_json_within_json() -> None:
    odd = 'pass"word\\with quotes'
    clean = Redactor([("DB_PASSWORD", odd), ("SHORTER", "pass")])
    inner = json.dumps({"p": odd})
    outer = {"arguments": inner, "deeper": json.dumps({"again": inner})}
    assert "word" not in clean.value(outer)["arguments"]
    assert clean.value({"x": odd}) == {"x": "[redacted:DB_PASSWORD]"}


QUOTE = "'"
VALUES = [
    "plainLettersAndDigits0123",
    "s3cr3t/key+with=odd&signs<a>'x'%",
    'pa"ss\\word\twith space \u00fc\u20ac 12',
    "ends-with~tilde!*()$`#;'",
    f'{QUOTE * 3}quoted{QUOTE * 3}""',
    "a-b'c<d&e-f-g/",
]


def json_of_go(value: str) -> str:
    text = json.dumps(value)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def each_sign(form: str) -> Callable[[str], str]:
    """All but letters and digits, byte by byte."""
    return lambda value: "".join(
        sign if sign.isascii() and sign.isalnum() else "".join(form % byte for byte in sign.encode())
        for sign in value
    )


# How a normal program writes a value; what begins with a star holds for values with a run of letters alone.
SPELT: dict[str, Callable[[str], str]] = {
    "plain": str,
    "quoted": quote,
    "quoted, the slash too": lambda value: quote(value, safe=""),
    "a form": quote_plus,
    "*as a browser quotes a part": lambda value: quote(value, safe="!~*'()"),
    "*as a browser quotes an address": lambda value: quote(value, safe="!~*'();/?:@&=+$,#"),
    "*an address within an address": lambda value: quote(quote(value, safe=""), safe=""),
    "*every sign, lower case": each_sign("%%%02x"),
    "userinfo": lambda value: f"https://ada:{quote(value, safe='')}@example.org/",
    "JSON": json.dumps,
    "JSON in UTF-8": lambda value: json.dumps(value, ensure_ascii=False),
    "*JSON within JSON": lambda value: json.dumps({"a": json.dumps(value)}),
    "*JSON with its slashes escaped": lambda value: json.dumps(value).replace("/", "\\/"),
    "*JSON that may stand in HTML": json_of_go,
    "HTML": html.escape,
    "*HTML with decimal numbers": lambda value: (
        html.escape(value).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    ),
    "*XML": lambda value: html.escape(value).replace("&#x27;", "&apos;"),
    "*HTML twice": lambda value: html.escape(html.escape(value)),
    "shell": shlex.quote,
    "*shell, sign by sign": lambda value: re.sub(r"([^\w/.-])", r"\\\1", value),
    "*SQL": lambda value: value.replace("'", "''"),
    "*CSV": lambda value: value.replace('"', '""'),
    "*a pattern": re.escape,
    "*Python": repr,
    "*Python's bytes": lambda value: repr(value.encode()),
    "*quoted-printable": each_sign("=%02X"),
    "hex": lambda value: value.encode().hex(),
    "hex in capitals": lambda value: value.encode().hex().upper(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 without its end": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64 for addresses": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "*base64 in an address": lambda value: quote(base64.b64encode(value.encode()).decode(), safe=""),
    "basic authorization": lambda value: base64.b64encode(f"ada:{value}".encode()).decode(),
    "the same, the value as the name": lambda value: base64.b64encode(f"{value}:".encode()).decode(),
}


@pytest.mark.parametrize("way", SPELT)
def test_a_value_is_taken_out_however_a_program_writes_it(way: str) -> None:
    for value in VALUES[:-1] if way.startswith("*") else VALUES:
        clean = Redactor([("OTHER", "something-else"), ("KEY", value)])
        written = SPELT[way](value)
        for text in (written, f"before {written} after"):
            assert "[redacted:KEY]" in clean.text(text)
            assert "[redacted:KEY]" in json.dumps(clean.value({"a": [text]}))
        left = clean.text(written).replace("[redacted:KEY]", "")
        assert len(left) <= len(written) - len(value) + 4, left


def test_a_part_of_a_value_and_what_only_looks_like_it_stay() -> None:
    clean = Redactor([("KEY", "pass/word=12")])
    for text in ("the password is 12", "pass/word", "pass-word=12", "pass%2Eword%3D12", "pass&lt;word=12"):
        assert clean.text(text) == text
    longer = Redactor([("SHORT", "pass/word"), ("LONG", "pass/word=12")])
    assert longer.text("pass%2Fword%3D12 pass/word") == "[redacted:LONG] [redacted:SHORT]"


@pytest.mark.slow
def test_no_text_makes_the_search_for_a_value_take_quadratic_time() -> None:
    clean = Redactor(
        [("KEY", "abcd" + "'\"" * 6 + "\\" * 6 + "%%&&" + "'" * 6 + " x"), ("OTHER", "'-\\\\abcd-%")]
    )
    began = time.process_time()
    for unit in ("abcd", "abcd'", "'", "\\", "\\'", '\\"', "%25", "&amp;", "abcd'\"", "'-\\"):
        clean.text("abcd" + unit * (200_000 // len(unit)))
    assert time.process_time() - began < 5


def test_innocent_text_is_left_as_it_is_and_not_copied() -> None:
    value = {"text": "a risk-free task-based sk-8 ask-me desk-lamp xox eyJ earer", "n": [1, None, True]}
    clean = Redactor([("A_TOKEN", "something-else-entirely")])
    assert clean.value(value) == value
    plain = {"text": "nothing"}
    assert clean.value(plain) is plain


def test_base64_that_holds_the_letters_of_a_key_by_chance_is_left_whole() -> None:
    text = "b" * 60 + "/AIza" + "c" * 40 + "=="
    redactor = Redactor([])
    assert redactor.value({"seen": text}) == {"seen": text}
    for before in (
        "",
        "key=",
        "https://maps.example.org/maps/api/staticmap/json/",
        "b" * 40 + " ",
        "a/" * 40,
    ):
        assert redactor.text(f"{before}AIza{'c' * 35}") == f"{before}[redacted:google-key]"


def test_which_variables_are_secret() -> None:
    environ = {
        "X_API_KEY": "a" * 8,
        "MY_TOKEN": "b" * 9,
        "TOKENS": "c" * 9,
        "S_SECRET": "short",
        "PATH": "d" * 9,
        "PLAIN": "f" * 9,
    }
    found = known_secrets(environ, {"FROM_FILE": "e" * 9}, {"PLAIN"})
    assert sorted(name for name, _ in found) == ["FROM_FILE", "MY_TOKEN", "PLAIN", "X_API_KEY"]


def test_a_name_with_one_key_in_the_environment_and_another_in_the_file_hides_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    home.keys.write_text('PLAIN = "the-one-in-the-file"\n')
    home.keys.chmod(0o600)
    monkeypatch.setenv("PLAIN", "the-one-in-the-environment")
    settings = Settings.model_validate({"providers": {"local": {"key_env": "PLAIN"}}})
    clean = redactor_of(home, settings)
    assert (
        clean.text("the-one-in-the-file, the-one-in-the-environment") == "[redacted:PLAIN], [redacted:PLAIN]"
    )


def test_keys_are_read_from_a_file_of_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    assert read_keys(path) == {}
    path.write_text('A_API_KEY = "value"\n')
    for mode in (0o644, 0o660, 0o604):
        path.chmod(mode)
        with raises(UserError, ErrorKind.EXPOSED, type_next="chmod 600"):
            read_keys(path)
    path.chmod(0o600)
    assert read_keys(path) == {"A_API_KEY": "value"}
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    with raises(UserError, ErrorKind.UNREADABLE, names=["link.toml"]):
        read_keys(link)


@pytest.mark.parametrize("text", ['A_API_KEY = sk-secret-value"', "[table]\nx = 1", "A = 5"])
def test_a_broken_file_of_keys_is_refused_without_quoting_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    path.chmod(0o600)
    with raises(UserError, ErrorKind.UNREADABLE, names=["keys.toml"]) as caught:
        read_keys(path)
    assert "sk-secret" not in str(caught.value)


_WHOLE = (
    *(KEY, "AKIA" + "A" * 16, "ghp_" + "a" * 36, "xoxb-" + "1" * 12, "AIza" + "Z" * 35, "sk-" + "q" * 20),
    *("eyJ" + "a" * 9 + ".eyJ" + "b" * 9 + "." + "c" * 9, "Bearer ", "earer ", "a" * 25, "sk-", "eyJ"),
    *(" ", "\n", ".", "-", "_", "b."),
)


@given(
    st.lists(st.sampled_from(_WHOLE).flatmap(lambda one: st.sampled_from([one, one, one[:-2]])), max_size=9)
)
def test_looking_where_marks_stand_finds_what_looking_everywhere_does(parts: list[str]) -> None:
    text = "".join(parts)
    everywhere = _SHAPES.sub(lambda found: f"[redacted:{(found.lastgroup or '').replace('_', '-')}]", text)
    assert Redactor([]).text(text) == everywhere


@pytest.mark.slow
def test_no_text_makes_the_search_take_quadratic_time() -> None:
    """A tool may print a mebibyte of anything, and the daemon stands still while it is searched."""
    clean = Redactor([])
    began = time.process_time()
    for unit in ("-eyJaaaaaaaa", "eyJaaaaaaaa.", "-----BEGIN A", "xoxa-", "-AKIA", "ghp_"):
        clean.text(unit * (400_000 // len(unit)))
    assert time.process_time() - began < 5  # half a minute for the first alone, where each is a beginning


def test_a_process_without_descriptors_learns_nothing_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('A_API_KEY = "value"\n')
    path.chmod(0o600)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with raises(OSError, names=[f"[Errno {errno.EMFILE}]"]):  # a UserError would blame the file
            read_keys(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert read_keys(path) == {"A_API_KEY": "value"}
