"""Gauges of what needs attention in all organizations, as `messaging.domain.attention` decides.

Home, health and the pages of an organization show the same problems with their names.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from prometheus_client.core import Metric

from messaging.domain import attention
from messaging.domain.attention import BacklogFacts, Severity
from messaging.domain.channels import Channel
from messaging.models import ProviderAccount
from messaging.reports import account_hour, configuration
from messaging.reports.lags import Values, gauge
from messaging.store.reports import accounts
from rme.core.db import sql

ATTEMPTS_LIMIT = 100_000
"""The most attempts that a scrape reads."""
ENDPOINTS_LIMIT = 1000
"""The most webhook endpoints in trouble that are counted."""


def collect(ready: sql.Rows) -> Iterator[Metric]:
    """Return the gauges, by three statements and one call to Redis. `ready` has the backlogs:
    channel, priority, count, and age in seconds. Raises django.db.Error.
    """
    yield _accounts()
    troubled = configuration.troubled_endpoints()[:ENDPOINTS_LIMIT]
    problems = configuration.endpoint_problems(troubled, {})
    codes = Counter(code for _, (_, code, _) in problems)
    text = "Webhook endpoints that have failed for ten minutes, and those that rme has disabled."
    endpoints: Values = {
        ("failing",): codes["WEBHOOK_FAILING"],
        ("disabled",): codes["WEBHOOK_DISABLED"],
    }
    yield gauge("rme_webhook_endpoints", text, endpoints, "state")
    late: Values = {
        (channel, str(priority)): attention.backlog_problem(facts) is not None
        for channel, priority, count, age in ready
        for facts in [BacklogFacts(Channel(channel), priority, count, timedelta(seconds=age))]
    }
    text = "1 if deliveries have been ready for too long in an organization."
    yield gauge("rme_deliveries_late", text, late, "channel", "priority")


def _accounts() -> Metric:
    rows = list(ProviderAccount.objects.order_by("id"))
    # Organizations have equal shares, which are no larger than what their pages read.
    share = ATTEMPTS_LIMIT // max(1, len({row.organization_id for row in rows}))
    hours = account_hour.read(rows, min(accounts.LATEST, share))
    problems = [(row.kind, hours[row.pk].problem) for row in rows]
    values: Values = {(kind, severity): 0 for kind, _ in problems for severity in Severity}
    for kind, problem in problems:
        if problem:
            severity, _, _ = problem
            values[kind, severity] += 1
    text = "Provider accounts that fail or have stopped, by how bad it is."
    return gauge("rme_account_problems", text, values, "provider", "severity")
