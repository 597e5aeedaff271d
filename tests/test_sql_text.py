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
    "messaging/store/gates/active_suppressions.py": "LATERAL by index for each organization",
    "messaging/store/gates/address_opt_outs.py": "LATERAL by index for each organization",
    "messaging/store/gates/current_consent.py": "the newest entry of each, by LATERAL",
    "messaging/store/gates/pauses_and_caps.py": "caps are counted by LATERAL and stop at the limit",
    "messaging/store/reports/backlogs.py": "counts of what waits that stop at a limit",
    "messaging/store/claims.py": "SKIP LOCKED for many organizations, with leases and contents",
    "messaging/store/due_organizations.py": "steps through an index between organizations",
    "messaging/store/due_work.py": "SKIP LOCKED by partial indexes whose choice is forced",
    "messaging/store/event_view.py": "a union of rows and of what other rows stand for",
    "messaging/store/idempotency.py": "keys and their advisory locks, of a whole set of calls",
    "messaging/store/policies.py": "all decisions of many organizations, by one statement",
    "messaging/store/locks.py": "locks by given ids, so that partitions are known first",
    "messaging/store/feedback/callbacks.py": "stored once each, SKIP LOCKED, noted in one go",
    "messaging/store/feedback/hits.py": "an open or click is one INSERT … SELECT",
    "messaging/store/feedback/receipts.py": "the deliveries of a batch and their events, in order",
    "messaging/store/feedback/references.py": "pairs of account and reference; steps by account",
    "messaging/store/gates/suppression_list.py": "ON CONFLICT on two partial indexes at once",
    "messaging/store/versions.py": "pairs of version and organization, joined by key",
    "messaging/store/transitions.py": "compare-and-set of many rows over the transition table",
    "messaging/store/webhooks/claims.py": "claims endpoints by SKIP LOCKED, records results",
    "messaging/store/webhooks/contents.py": "an event and its delivery, wherever they stand",
    "messaging/store/webhooks/queue.py": "INSERT … SELECT of an event for each subscribed endpoint",
    "push/active_devices.py": "every accept and claim runs it; LATERAL by index",
    "push/devices.py": "ON CONFLICT that tells what changed",
    "push/feedback.py": "takes a batch with SKIP LOCKED and changes its devices",
    "rme/crm/connectors/embedded/connector.py": "LATERAL by index for each organization",
    "rme/crm/connectors/embedded/creates.py": "INSERT … SELECT that checks the parents too",
    "rme/crm/connectors/embedded/lookups.py": "a bot waits: unions over indexes in one read",
    "rme/tenants/oauth/api_keys.py": "finds a key and marks it as used, in one statement",
    "rme/tenants/oauth/authentication.py": "a token with organization, person and rights",
    "rme/cells/placements.py": "read at each look for what is elsewhere",
}
"""What each request, message, receipt, webhook delivery or bot call waits for, and why SQL."""
MANY_ROWS = {
    "messaging/store/retention/ended.py": "deletes with the version (xmin) that was archived",
    "messaging/store/retention/job.py": "deletes by ranges of a key in a named partition",
    "messaging/store/retention/live_contents.py": "an unlogged table, filled in slices",
    "messaging/store/reports/accounts.py": "filtered counts and percentiles, by LATERAL",
    "messaging/store/reports/deliveries.py": "filters that combine, a join in a fixed order",
    "messaging/store/reports/history.py": "the keys of a page, by the index that suits the filter",
    "messaging/store/reports/message_ids.py": "a scan that stops at a limit, within an index",
    "messaging/store/people/erasure.py": "updates that join a person's deliveries, JSON paths",
    "messaging/store/people/export.py": "rows as JSON, as they are stored",
    "messaging/store/reports/gauges.py": "counts that stop at a limit, in the order of an index",
    "messaging/store/reports/statistics.py": "minutes by INSERT … SELECT; sums over periods",
    "messaging/store/webhooks/replays.py": "queues past events by INSERT … SELECT",
    "rme/core/db/reencryption.py": "compare-and-set of any table's secrets",
    "rme/crm/connectors/embedded/records.py": "records of all kinds in one union, as JSON",
    "rme/tenants/audit/request_log.py": "COPY",
}
"""One statement over many rows, whose plan matters, or rows as they are stored."""
POSTGRESQL_ONLY = {
    "rme/core/db/commits.py": "asks how safe a commit is",
    "rme/core/db/locks.py": "advisory locks",
    "rme/core/db/partitions/options.py": "storage parameters of partitions",
    "rme/core/db/partitions/indexes.py": "indexes of partitions, built concurrently",
    "rme/core/db/partitions/tables.py": "partitions: CREATE, ATTACH, DETACH",
    "rme/core/db/partitions/repartition.py": "a trigger and partitions that take its rows",
    "rme/core/db/sql.py": "the INSERT and UPDATE of whole sets, which others use",
    "rme/core/db/server.py": "when the server started, and from when it has statistics",
    "rme/core/db/due.py": "the next row with SKIP LOCKED, and its turn",
    "rme/crm/people.py": "the beginning of a name, by ranges of an index",
    "rme/tenants/imports/mending.py": "the entries of a JSON array, counted",
    "rme/management/commands/migrate.py": "who holds the locks that a migration waits for",
    "rme/cells/abandoned.py": "an advisory lock as a condition",
    "rme/cells/moving/copying.py": "COPY between two databases",
    "rme/cells/moving/databases.py": "the catalog of another database",
    "rme/cells/moving/fence.py": "another database, and transactions that are running",
    "rme/cells/moving/identity.py": "another database",
    "rme/cells/moving/journal.py": "another database, by compare-and-set",
    "rme/cells/moving/late.py": "two databases, and the age of rows",
    "rme/cells/moving/move.py": "another database",
    "rme/cells/moving/names.py": "another database, over tables of any kind",
    "rme/cells/moving/people.py": "another database",
    "rme/cells/pauses.py": "a pause ends and its move with it, in one statement",
    "rme/run/engines.py": "before there is Django",
    "rme/tenants/access/limits/single_use.py": "an insert that reports whether it was the first",
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
