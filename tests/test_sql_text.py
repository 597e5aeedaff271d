"""SQL text stands where the ORM cannot serve, or costs too much on the hot path."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APPS = ("rme", "messaging", "push", "bot")
STATEMENT = re.compile(
    r"\s*(WITH|SELECT|INSERT INTO|UPDATE|DELETE FROM|MERGE|LOCK|COPY|CREATE|ALTER|DROP)\b[\s\S]*"
    r"\b(FROM|INTO|SET|TABLE|VALUES|SELECT|WHERE)\b"
)
SHORTEST = 25
"""Shorter texts are words of a sentence."""

HOT_PATH = {
    "bot/idempotency.py": "one statement finds or adds a key, and deletes what has expired",
    "messaging/accept/idempotency.py": "keys and their advisory locks, of a whole set of calls",
    "messaging/consent/gate_lock.py": "advisory locks of many organizations in one order",
    "messaging/consent/gates/active_suppressions.py": "LATERAL by index for each organization",
    "messaging/consent/gates/checks.py": "caps are counted by LATERAL and stop at the limit",
    "messaging/consent/gates/current_consent.py": "the newest entry of each, by LATERAL",
    "messaging/consent/soft_bounces.py": "the last outcomes of each address, by LATERAL",
    "messaging/consent/suppressions.py": "ON CONFLICT on two partial indexes in one statement",
    "messaging/content/templates.py": "pairs of version and organization, joined by key",
    "messaging/delivery/accounts/rates.py": "a count of what waits that stops at a limit",
    "messaging/delivery/claims.py": "SKIP LOCKED for many organizations, with leases and contents",
    "messaging/delivery/fairness.py": "steps through an index from organization to organization",
    "messaging/delivery/record.py": "a step of the pipeline that stores a window",
    "messaging/delivery/sweeper.py": "SKIP LOCKED by partial indexes whose choice is forced",
    "messaging/feedback/callbacks.py": "stored once each, read with SKIP LOCKED, noted in one go",
    "messaging/feedback/polling.py": "steps through an index from account to account",
    "messaging/feedback/provider_references.py": "pairs of account and reference, joined by key",
    "messaging/feedback/receipts.py": "the deliveries of a batch and their events, locked in order",
    "messaging/feedback/reported_attempts.py": "the attempts of a batch; locks their deliveries",
    "messaging/feedback/tracking.py": "an open or click is one INSERT … SELECT",
    "messaging/models/derived_events.py": "a union of rows and of what other rows stand for",
    "messaging/models/transitions.py": "compare-and-set of many rows over the transition table",
    "messaging/policy/organization_policy.py": "all decisions of many organizations, pipelined",
    "messaging/webhooks/outbox.py": "claims endpoints by SKIP LOCKED, records results of many",
    "messaging/webhooks/payloads.py": "an event and its delivery, wherever they stand",
    "push/devices.py": "LATERAL by index; ON CONFLICT that tells what changed",
    "push/feedback.py": "takes a batch with SKIP LOCKED and changes its devices",
    "rme/crm/connectors/embedded/connector.py": "LATERAL by index for each organization",
    "rme/crm/connectors/embedded/creates.py": "INSERT … SELECT that checks the parents too",
    "rme/crm/connectors/embedded/lookups.py": "a bot waits: unions over indexes in one read",
    "rme/tenants/api_keys.py": "finds a key and marks it as used, in one statement",
    "rme/tenants/authentication.py": "a token, its organization, person and rights, in one read",
    "rme/tenants/cells/placements.py": "read at each look for what is elsewhere",
}
"""What each request, message, receipt, webhook delivery or bot call waits for, and why SQL."""
MANY_ROWS = {
    "messaging/archive/ended.py": "deletes with the version (xmin) that was archived",
    "messaging/consent/data_export.py": "rows as JSON, as they are stored",
    "messaging/consent/erasure.py": "updates that join a person's deliveries, JSON paths",
    "messaging/consent/retention/job.py": "deletes by ranges of a key in a named partition",
    "messaging/consent/retention/live_contents.py": "an unlogged table, filled in slices",
    "messaging/delivery/accounts/circuit_history.py": "the latest changes of each, by LATERAL",
    "messaging/feedback/callback_log.py": "keeps the newest of each organization, by LATERAL",
    "messaging/reports/account_hour.py": "filtered counts and percentiles in one read",
    "messaging/reports/delivery_list.py": "filters that combine, with a join whose order is fixed",
    "messaging/reports/history.py": "the keys of a page, by the index that suits the filter",
    "messaging/reports/lags.py": "counts that stop at a limit, ages by the database's clock",
    "messaging/reports/metrics.py": "counts that stop at a limit, in the order of an index",
    "messaging/statistics/figures.py": "sums over periods that are joined by their bounds",
    "messaging/statistics/minutes.py": "minutes of all organizations by INSERT … SELECT",
    "messaging/webhooks/replays.py": "queues past events by INSERT … SELECT",
    "rme/core/db/reencryption.py": "compare-and-set of any table's secrets",
    "rme/crm/connectors/embedded/records.py": "records of all kinds in one union, as JSON",
    "rme/tenants/request_log/writer.py": "COPY",
}
"""One statement over many rows, whose plan matters, or rows as they are stored."""
POSTGRESQL_ONLY = {
    "messaging/delivery/manual_review.py": "a count that stops at a limit",
    "rme/core/db/commits.py": "asks how safe a commit is",
    "rme/core/db/locks.py": "advisory locks",
    "rme/core/db/partitions/options.py": "storage parameters of partitions",
    "rme/core/db/partitions/indexes.py": "indexes of partitions, built concurrently",
    "rme/core/db/partitions/tables.py": "partitions: CREATE, ATTACH, DETACH",
    "rme/core/db/partitions/repartition.py": "a trigger and partitions that take its rows",
    "rme/core/db/sql.py": "the INSERT and UPDATE of whole sets, which others use",
    "rme/core/db/turns.py": "the next row with SKIP LOCKED, and its turn",
    "rme/crm/people.py": "the beginning of a name, by ranges of an index",
    "rme/management/commands/migrate.py": "who holds the locks that a migration waits for",
    "rme/tenants/cells/abandoned.py": "an advisory lock as a condition",
    "rme/tenants/cells/moving/copying.py": "COPY between two databases",
    "rme/tenants/cells/moving/databases.py": "the catalog of another database",
    "rme/tenants/cells/moving/fence.py": "another database, and transactions that are running",
    "rme/tenants/cells/moving/identity.py": "another database",
    "rme/tenants/cells/moving/journal.py": "another database, by compare-and-set",
    "rme/tenants/cells/moving/late.py": "two databases, and the age of rows",
    "rme/tenants/cells/moving/move.py": "another database",
    "rme/tenants/cells/moving/names.py": "another database, over tables of any kind",
    "rme/tenants/cells/moving/people.py": "another database",
    "rme/tenants/cells/pauses.py": "a pause ends and its move with it, in one statement",
    "rme/run/engines.py": "before there is Django",
    "rme/tenants/oauth/assertions.py": "an insert that reports whether it was the first",
    "rme/tenants/oauth/tokens.py": "an insert on the condition of another row, locked",
}
"""Locks, partitions, set-up, other databases, and conditions that the ORM cannot write."""
SOQL = {"rme/crm/connectors/salesforce/connector.py": "Salesforce's own language"}


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module, except docstrings; each value in an f-string is an `x`."""
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "" if id(node) in documents else node.value


def test_sql_text_is_written_only_in_these_modules():
    found = {
        str(path.relative_to(ROOT))
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if "migrations" not in path.parts
        if any(len(t) > SHORTEST and STATEMENT.match(t) for t in texts(ast.parse(path.read_text())))
    }
    assert found == set(HOT_PATH | MANY_ROWS | POSTGRESQL_ONLY | SOQL)
