"""The log of callbacks: filters, what a verdict means, pages, and the page of one."""

import pytest

from messaging.feedback import callback_log
from messaging.models import CallbackLogEntry, ProviderAccount
from rme.core import ids
from rme.core.db import clock
from tests import factories
from tests.messaging.console.conftest import url

pytestmark = pytest.mark.django_db


def entry(owner, account_id, verdict, **fields):
    given = {"method": "POST", "size": 10, "count": 1, "at": clock.now(), **fields}
    return CallbackLogEntry.objects.create(
        organization_id=owner.pk, account_id=account_id, verdict=verdict, id=ids.new_id(), **given
    )


def account(org, name):
    return ProviderAccount.objects.create(
        organization=org, name=name, kind="simulator", channel="SMS"
    )


def rows_of(shown):
    """Return the account and the verdict of each row of the list."""
    return [(line.account, line.entry.verdict) for line in shown.context["lines"]]


def test_the_log_is_filtered_by_account_and_verdict(root, org, django_assert_num_queries):
    first, second = account(org, "twilio-one"), account(org, "vonage-two")
    entry(org, first.pk, "SIGNATURE", count=7)
    entry(org, first.pk, "UNKNOWN_CODE", detail="pigeon")
    entry(org, second.pk, "APPLIED")
    entry(org, 0, "DUPLICATE")
    entry(factories.organization("other"), second.pk, "UNREADABLE")
    root.get(url("callbacks"))
    with django_assert_num_queries(7):
        shown = root.get(url("callbacks"))
    assert rows_of(shown) == [
        ("", "DUPLICATE"), ("vonage-two", "APPLIED"), ("twilio-one", "UNKNOWN_CODE"),
        ("twilio-one", "SIGNATURE"),
    ]  # fmt: skip
    text = shown.content.decode()
    for part in ("Open callback of twilio-one", "pigeon", "Compare the secrets", "Deleted account"):
        assert part in text
    shown = root.get(url("callbacks"), {"account": first.pk, "verdict": "SIGNATURE"})
    assert rows_of(shown) == [("twilio-one", "SIGNATURE")]
    assert [chip.text for chip in shown.context["form"].chips] == [
        "twilio-one",
        "Invalid signature",
    ]
    shown = root.get(url("callbacks"), {"account": "x", "verdict": "x", "after": "x"})
    assert (len(shown.context["form"].errors), len(rows_of(shown))) == (2, 4)


def test_older_callbacks_are_on_the_next_page(root, org):
    row = account(org, "twilio-one")
    oldest = entry(org, row.pk, "UNKNOWN_ID")
    for _ in range(callback_log.SHOWN):
        entry(org, row.pk, "APPLIED")
    first = root.get(url("callbacks"))
    assert len(rows_of(first)) == callback_log.SHOWN
    second = root.get(url("callbacks"), {"after": first.context["following"]})
    assert [line.entry.id for line in second.context["lines"]] == [oldest.id]
    assert second.context["following"] is None


def test_empty_log_says_so_and_filters_have_their_own_words(root, org):
    assert "No provider has called back yet." in root.get(url("callbacks")).content.decode()
    filtered = root.get(url("callbacks"), {"verdict": "APPLIED"}).content.decode()
    assert "Nothing matches these filters." in filtered


def test_callback_has_a_page_with_all_that_is_known(root, org):
    row = account(org, "twilio-one")
    made = entry(org, row.pk, "UNKNOWN_CODE", detail="pigeon", count=3)
    text = root.get(url("callback", made.id)).content.decode()
    for part in ("twilio-one", "Unknown code", "pigeon", "It changed nothing.", "POST", "10"):
        assert part in text
    assert f'href="{url("provider", row.pk)}"' in text
    foreign = entry(factories.organization("other"), row.pk, "APPLIED")
    assert root.get(url("callback", foreign.id)).status_code == 404
