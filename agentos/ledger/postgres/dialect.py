"""The ledger's statements and migrations as PostgreSQL takes them. They are written once, as SQLite takes them.

Placeholders are numbered; no end and an empty list are said otherwise. All else that differs is made equal on PostgreSQL's
side: it is given SQLite's functions by their names, texts are compared byte by byte, numbers of rows are one more
than the largest, and the triggers of the migrations refuse what they refuse there.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MARK = re.compile(r"'(?:[^']|'')*'|\?(\d*)")
_TRIGGER = re.compile(
    r"CREATE TRIGGER (?P<name>\w+) BEFORE (?P<verb>\w+) ON (?P<table>\w+)(?: WHEN (?P<when>.+?))? "
    r"BEGIN SELECT RAISE\(ABORT, '(?P<why>[^']+)'\); END",
    re.DOTALL,
)
_DROPPED = re.compile(r"DROP TRIGGER (?P<name>(?P<table>\w+?)_no_\w+)")
_TYPES = {
    r"\bVARCHAR(\(\d+\))?": 'TEXT COLLATE "C"',  # as SQLite compares
    r"\b(BIG)?SERIAL\b|\bINTEGER\b": "BIGINT",
    r"\bBYTEA\b": 'TEXT COLLATE "C"',  # bytes are written as text: see ``connection``
}
_NUMBERED = re.compile(r"CREATE TABLE (?P<table>\w+) \(\s*(?P<column>no|seq) (?:BIG)?SERIAL\b")

# What ``json_extract`` finds is text here; queries compare it as text on both sides.
FUNCTIONS = r"""
CREATE OR REPLACE FUNCTION instr(whole text, part text) RETURNS integer IMMUTABLE STRICT LANGUAGE sql AS
$$ SELECT strpos(whole, part) $$;
CREATE OR REPLACE FUNCTION agentos_json(body text) RETURNS json IMMUTABLE STRICT LANGUAGE sql AS
-- half characters and NUL are legal JSON, and refused by PostgreSQL in any part of a document
$$ SELECT CASE WHEN body ~* '\\u(0000|d[89a-f])' THEN
   regexp_replace(body, '(?<!\\)((\\\\)*)\\u(0000|d[89a-f][0-9a-f]{2})', '\1\\ufffd', 'gi') ELSE body END::json $$;
CREATE OR REPLACE FUNCTION json_extract(body text, path text) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS
$$ SELECT CASE json_typeof(found) WHEN 'boolean' THEN (found::text = 'true')::int::text ELSE found #>> '{}' END
   FROM (SELECT agentos_json(body) #> string_to_array(substr(path, 3), '.') AS found) AS it $$;
"""


@lru_cache(maxsize=2048)
def statement(sql: str) -> str:
    """One of the ledger's statements, its values marked ``$1``, ``$2``, …"""
    newest = 0

    def mark(found: re.Match[str]) -> str:
        nonlocal newest
        if not found[0].startswith("?"):
            return found[0]
        number = int(found[1] or newest + 1)
        newest = max(newest, number)
        return f"${number}"

    return _MARK.sub(mark, sql).replace("LIMIT -1", "LIMIT ALL").replace(" IN ()", " IN (NULL)")


def migration(sql: str) -> str:
    """One statement of a migration, as SQLAlchemy made it for PostgreSQL or as the migration wrote it for SQLite."""
    if found := _TRIGGER.fullmatch(sql.strip()):
        return _refusal(**found.groupdict())
    if found := _DROPPED.fullmatch(sql.strip()):
        return f"DROP FUNCTION {found['name']} CASCADE"
    numbered = _NUMBERED.search(sql)
    if re.match(r"\s*(CREATE|ALTER) TABLE", sql):
        for old, new in _TYPES.items():
            sql = re.sub(old, new, sql)
    return f"{sql};{_numbering(**numbered.groupdict())}" if numbered else sql


def _numbering(table: str, column: str) -> str:
    """Numbers without holes, as SQLite gives them: the transaction holds the one lock of all writers."""
    return _before(
        f"{table}_0_number",
        "INSERT",
        table,
        f"IF NEW.{column} IS NULL THEN "  # noqa: S608 - names of the migrations
        f"SELECT coalesce(max({column}), 0) + 1 INTO NEW.{column} FROM {table}; END IF; RETURN NEW;",
    )


def _refusal(name: str, verb: str, table: str, when: str | None, why: str) -> str:
    row = "OLD" if verb == "DELETE" else "NEW"
    why = why.replace("%", "%%")  # which RAISE would fill in
    refuse = f"RAISE EXCEPTION '{why}' USING ERRCODE = 'integrity_constraint_violation';"
    made = _before(name, verb, table, f"IF {when or 'TRUE'} THEN {refuse} END IF; RETURN {row};")
    if verb == "DELETE":  # emptying a table deletes no row
        made += (
            f"CREATE OR REPLACE FUNCTION {table}_no_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {refuse} END $$;"
            f"CREATE OR REPLACE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION {table}_no_truncate();"
        )
    return made


def _before(name: str, verb: str, table: str, body: str) -> str:
    return (
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$;"
        f"CREATE TRIGGER {name} BEFORE {verb} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}();"
    )
