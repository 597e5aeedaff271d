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
    "bot/idempotency.py",
    "messaging/accept/idempotency.py",
    "messaging/consent/gate_lock.py",
    "messaging/consent/gates/active_suppressions.py",
    "messaging/consent/gates/checks.py",
    "messaging/consent/gates/current_consent.py",
    "messaging/consent/soft_bounces.py",
    "messaging/consent/suppressions.py",
    "messaging/content/templates.py",
    "messaging/delivery/accounts/rates.py",
    "messaging/delivery/claims.py",
    "messaging/delivery/fairness.py",
    "messaging/delivery/record.py",
    "messaging/delivery/sweeper.py",
    "messaging/feedback/callbacks.py",
    "messaging/feedback/polling.py",
    "messaging/feedback/provider_references.py",
    "messaging/feedback/receipts.py",
    "messaging/feedback/tracking.py",
    "messaging/models/derived_events.py",
    "messaging/models/transitions.py",
    "messaging/policy/organization_policy.py",
    "messaging/webhooks/outbox.py",
    "messaging/webhooks/payloads.py",
    "push/devices.py",
    "push/feedback.py",
    "rme/crm/connectors/embedded/connector.py",
    "rme/crm/connectors/embedded/creates.py",
    "rme/crm/connectors/embedded/lookups.py",
    "rme/tenants/api_keys.py",
    "rme/tenants/authentication.py",
    "rme/tenants/cells/placements.py",
    "rme/tenants/organizations.py",
}
"""What each request, message, receipt, webhook delivery or bot call waits for."""
MANY_ROWS = {
    "messaging/archive/ended.py",
    "messaging/consent/data_export.py",
    "messaging/consent/erasure.py",
    "messaging/consent/retention/job.py",
    "messaging/consent/retention/live_contents.py",
    "messaging/delivery/accounts/circuit_history.py",
    "messaging/feedback/callback_log.py",
    "messaging/reports/account_hour.py",
    "messaging/reports/delivery_list.py",
    "messaging/reports/history.py",
    "messaging/reports/lags.py",
    "messaging/reports/metrics.py",
    "messaging/statistics/figures.py",
    "messaging/statistics/minutes.py",
    "messaging/webhooks/replays.py",
    "rme/core/db/reencryption.py",
    "rme/crm/connectors/embedded/records.py",
    "rme/tenants/request_log/writer.py",
}
"""One statement over many rows, whose plan matters, or rows as they are stored."""
POSTGRESQL_ONLY = {
    "messaging/delivery/manual_review.py",  # a count that stops at a limit
    "rme/core/db/commits.py",
    "rme/core/db/locks.py",
    "rme/core/db/partitions/options.py",
    "rme/core/db/partitions/indexes.py",
    "rme/core/db/partitions/tables.py",
    "rme/core/db/partitions/repartition.py",
    "rme/core/db/sql.py",
    "rme/core/db/turns.py",
    "rme/crm/people.py",  # the beginning of a name, by ranges of an index
    "rme/management/commands/migrate.py",
    "rme/tenants/cells/abandoned.py",
    "rme/tenants/cells/moving/copying.py",
    "rme/tenants/cells/moving/databases.py",
    "rme/tenants/cells/moving/fence.py",
    "rme/tenants/cells/moving/identity.py",
    "rme/tenants/cells/moving/journal.py",
    "rme/tenants/cells/moving/move.py",
    "rme/tenants/cells/moving/names.py",
    "rme/tenants/cells/moving/people.py",
    "rme/tenants/cells/pauses.py",
    "rme/run/engines.py",
    "rme/tenants/oauth/assertions.py",  # an insert that reports whether it was the first
    "rme/tenants/oauth/tokens.py",
}
"""Locks, partitions, set-up, and conditions within one statement that the ORM cannot write."""
SOQL = {"rme/crm/connectors/salesforce/connector.py"}


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
    assert found == HOT_PATH | MANY_ROWS | POSTGRESQL_ONLY | SOQL
