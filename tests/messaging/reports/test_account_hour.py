"""What others send is not read for one organization's figures."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Attempt, ProviderAccount
from messaging.reports import account_hour, health
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import sql

pytestmark = pytest.mark.django_db


def write(count, organizations, account=None):
    """Write attempts, in turn of some organizations."""
    sql.insert(
        {
            Attempt: [
                {
                    "id": ids.new_id(),
                    "organization_id": organizations[i % len(organizations)],
                    "message_id": ids.new_id(),
                    "delivery_id": ids.new_id(),
                    "fence": 1,
                    "channel": "EMAIL",
                    "provider": "mail",
                    "account_id": account,
                    "outcome": "Accepted",
                }
                for i in range(count)
            ]
        }
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE messaging_attempt")


def rows_read(ask):
    """Return how many rows of attempts PostgreSQL reads for a call."""
    with CaptureQueriesContext(connection) as captured:
        ask()
    (asked,) = [each["sql"] for each in captured if "messaging_attempt" in each["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + asked.replace("%", "%%"), [])
        plan = cursor.fetchone()[0]
    nodes, found = [(json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]], 0
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if node.get("Relation Name", "").startswith("messaging_attempt"):
            found += node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return found


def test_attempts_of_other_organizations_are_not_read(org):
    row = ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL", credentials="{}"
    )
    write(5, [org.pk], row.pk)
    found = []
    for count in (2_000, 20_000):
        write(count, ["other1", "other2", "other3"])
        TtlCache.clear_all()
        health_read = rows_read(lambda: health.report(org.pk))
        found.append((health_read, rows_read(lambda: account_hour.read_outcomes(row))))
    assert found == [(5, 5), (5, 5)]
