"""The page of the log of callbacks: filters, and what a verdict means."""

import pytest

from messaging.models import CallbackLogEntry, ProviderAccount
from rme.core import ids
from rme.core.db import clock
from tests import factories
from tests.messaging.console.conftest import url

pytestmark = pytest.mark.django_db


def entry(owner, account_id, verdict, **fields):
    given = {"method": "POST", "size": 10, "count": 1, "at": clock.now(), **fields}
    CallbackLogEntry.objects.create(
        organization_id=owner.pk, account_id=account_id, verdict=verdict, id=ids.new_id(), **given
    )


def test_the_log_is_filtered_by_account_and_verdict(root, org, django_assert_num_queries):
    first, second = (
        ProviderAccount.objects.create(organization=org, name=name, kind="simulator", channel="SMS")
        for name in ("twilio-one", "vonage-two")
    )
    entry(org, first.pk, "SIGNATURE", count=7)
    entry(org, first.pk, "UNKNOWN_CODE", detail="pigeon")
    entry(org, second.pk, "APPLIED")
    entry(org, 0, "DUPLICATE")
    entry(factories.organization("other"), second.pk, "UNREADABLE")
    root.get(url("callbacks"))
    with django_assert_num_queries(6):
        shown = root.get(url("callbacks"))
    assert [each.verdict for each, *_ in shown.context["entries"]] == [
        "DUPLICATE", "APPLIED", "UNKNOWN_CODE", "SIGNATURE",
    ]  # fmt: skip
    text = shown.content.decode()
    for part in ("7 times", "pigeon", "Compare the secrets", "A deleted account"):
        assert part in text
    query = {"account": first.pk, "verdict": "SIGNATURE"}
    shown = root.get(url("callbacks"), query)
    assert [name for _, name, *_ in shown.context["entries"]] == ["twilio-one"]
    shown = root.get(url("callbacks"), {"account": "x", "verdict": "x", "before": "x"})
    assert shown.status_code == 200
    assert len(shown.context["form"].errors) == 2
