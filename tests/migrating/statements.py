"""The rules for SQL in RunSQL: what is not known to be harmless is refused.

Each statement is looked at by itself, and may do one thing to one table.
"""

import re
from collections.abc import Iterator

import sqlparse

_TYPE = (
    r"(smallint|integer|int|bigint|boolean|text|uuid|date|jsonb|bytea|timestamptz|varchar\(\d+\)"
    r"|timestamp with time zone|double precision|numeric(\(\d+(, ?\d+)?\))?)(\[\])?"
)
_CONSTANT = r"(-?\d+(\.\d+)?|'[^']*'|true|false|null|now\(\)|current_timestamp)"
_DEFAULT = rf"( NOT NULL)? DEFAULT {_CONSTANT}( NOT NULL)?"
_ALTER = r"ALTER TABLE (IF EXISTS )?(ONLY )?\S+ "
_HARMLESS = (
    r"(CREATE (FUNCTION|VIEW|SEQUENCE)|COMMENT ON) .*",
    r"CREATE TABLE (IF NOT EXISTS )?\S+ \((?!.*\bREFERENCES\b).*\)",
    rf"{_ALTER}ADD (COLUMN )?(IF NOT EXISTS )?\w+ {_TYPE}( NULL|{_DEFAULT})?",
    rf"{_ALTER}ALTER (COLUMN )?\w+ SET DEFAULT {_CONSTANT}",
    rf"{_ALTER}(RE)?SET \([^()]*\)",
)
"""What takes a lock for a moment only, and nothing away."""
_BATCHES = r"(UPDATE|DELETE FROM|INSERT INTO|MERGE INTO|WITH|COPY) .*"
_VALIDATES = rf"{_ALTER}VALIDATE CONSTRAINT \w+"
_POST_DEPLOY = (
    r"CREATE OR REPLACE (FUNCTION|VIEW) .*",
    r"DROP (TABLE|VIEW|FUNCTION|SEQUENCE|TYPE) .*",
    rf"{_ALTER}DROP (COLUMN |CONSTRAINT )?(IF EXISTS )?\w+( CASCADE| RESTRICT)?",
    rf"{_ALTER}ADD CONSTRAINT \w+ (CHECK|FOREIGN KEY) .* NOT VALID",
)
"""What the release before may use or break, as soon as none of its processes runs."""


def violations(text: str, *, atomic: bool, post_deploy: bool) -> Iterator[str]:
    """Yield a sentence for each statement that the release before could not bear."""
    for statement in statements(text):
        if _is(statement, *_HARMLESS):
            continue
        if _is(statement, _BATCHES):
            yield f"Rows are changed by RunPython, in batches: {statement}"
        elif _is(statement, r"(CREATE|DROP) (UNIQUE )?INDEX .*"):
            yield f"An index is added and removed by its operation: {statement}"
        elif _is(statement, _VALIDATES):
            if atomic:
                yield f"Rows are read with atomic = False: {statement}"
        elif not _is(statement, *_POST_DEPLOY):
            yield f"The SQL is not known to be harmless: {statement}"
        elif not post_deploy:
            yield f"What the release before uses or may break is changed post-deploy: {statement}"


def statements(text: str) -> list[str]:
    """Return the statements of a text, without comments and each on one line."""
    plain = (sqlparse.format(each, strip_comments=True) for each in sqlparse.split(text))
    lines = (" ".join(each.split()).rstrip("; ") for each in plain)
    return [line for line in lines if line]


def _is(statement: str, *patterns: str) -> bool:
    return any(re.fullmatch(each, statement, re.IGNORECASE) for each in patterns)
