"""SQL in RunSQL is refused unless it is known to be harmless, one statement at a time."""

import pytest

from tests.migrating.statements import violations

UNKNOWN = "The SQL is not known to be harmless"
INDEX = "An index is added and removed by its operation"
LATER = "What the release before uses or may break is changed post-deploy"
ROWS = "Rows are changed by RunPython, in batches"


def found(text, *, atomic=True, post_deploy=False):
    return list(violations(text, atomic=atomic, post_deploy=post_deploy))


@pytest.mark.parametrize(
    ("sentence", "statement"),
    [
        (INDEX, "CREATE INDEX trial ON messaging_notice (type)"),
        (INDEX, "CREATE INDEX CONCURRENTLY trial ON messaging_notice (type)"),
        (INDEX, "DROP INDEX CONCURRENTLY trial"),
        (ROWS, "UPDATE messaging_delivery SET tries = 0"),
        (ROWS, "WITH gone AS (DELETE FROM t RETURNING id) SELECT count(*) FROM gone"),
        (UNKNOWN, "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)"),
        (UNKNOWN, "ALTER TABLE t ADD COLUMN a uuid DEFAULT gen_random_uuid()"),
        (UNKNOWN, "ALTER TABLE t ADD COLUMN a int GENERATED ALWAYS AS (b + 1) STORED"),
        (UNKNOWN, "ALTER TABLE t ADD COLUMN a int UNIQUE"),
        (UNKNOWN, "ALTER TABLE t ADD COLUMN a int NOT NULL"),
        (UNKNOWN, "ALTER TABLE t ADD a int, ALTER b TYPE bigint"),
        (UNKNOWN, "ALTER TABLE t ATTACH PARTITION p FOR VALUES FROM (1) TO (2)"),
        (UNKNOWN, "ALTER TABLE t RENAME a TO b"),
        (UNKNOWN, "ALTER TABLE t ALTER a SET NOT NULL"),
        (UNKNOWN, "CREATE TABLE t AS SELECT * FROM messaging_delivery"),
        (UNKNOWN, "CREATE MATERIALIZED VIEW v AS SELECT 1"),
        (UNKNOWN, "DO $$ BEGIN UPDATE t SET a = 1; END $$"),
        (UNKNOWN, "LOCK TABLE t"),
        (LATER, "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID"),
        (LATER, "ALTER TABLE t DROP COLUMN a"),
        (LATER, "ALTER TABLE t DROP CONSTRAINT c"),
        (LATER, "DROP TABLE t"),
        (LATER, "CREATE OR REPLACE VIEW v AS SELECT 1"),
        ("Rows are read with atomic = False", "ALTER TABLE t VALIDATE CONSTRAINT c"),
    ],
)
def test_blocking_statements_are_rejected(sentence, statement):
    assert found(statement) == [f"{sentence}: {statement}"]


def test_each_statement_is_checked_separately():
    first = "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)"
    second = "ALTER TABLE t ADD CONSTRAINT d CHECK (b > 0) NOT VALID"
    assert found(f"{first};\n{second};", post_deploy=True) == [f"{UNKNOWN}: {first}"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("ALTER TABLE t ADD COLUMN a varchar(9)", {}),
        ("alter table t\n  add column a text not null default 'x; y' -- a comment", {}),
        ("ALTER TABLE t ADD COLUMN a timestamptz DEFAULT now()", {}),
        ("ALTER TABLE t SET (fillfactor = 50)", {}),
        ("CREATE TABLE t (a int); COMMENT ON TABLE t IS 'rows'", {}),
        ("ALTER TABLE t VALIDATE CONSTRAINT c", {"atomic": False}),
        ("ALTER TABLE t DROP COLUMN a", {"post_deploy": True}),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID", {"post_deploy": True}),
    ],
)
def test_harmless_statements_pass(text, options):
    assert found(text, **options) == []
