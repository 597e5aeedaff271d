"""The log of provider callbacks: one entry for each, with its result and no content."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.feedback import callback_log, callbacks
from messaging.models import Callback, CallbackLogEntry
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock
from tests import factories
from tests.fakes import providers as fakes
from tests.fakes.providers import Call
from tests.messaging.feedback.sms_scene import Scene, attempt, settle
from tests.rest import Api

pytestmark = pytest.mark.django_db


def verdicts():
    rows = CallbackLogEntry.objects.order_by("id")
    return list(rows.values_list("verdict", "count"))


def give_up_waiting():
    """Let the callbacks whose message was not found be tried for the last time."""
    waiting = Callback.objects.filter(due_at__isnull=False)
    waiting.update(due_at=clock.now(), tries=callbacks.UNKNOWN_TRIES)
    settle()


def test_each_verdict_is_noted(org):
    with Scene(org, "twilio") as scene:
        scene.send(Api(org), factories.contact(org, mobile="+41791234567"))
        report = fakes.report("twilio", scene.url, attempt(), "delivered")
        assert scene.call(report) == 200
        settle()
        scene.call(report)
        scene.call(Call(report.method, report.query, {}, report.body))
        for status in ("delivered", "queued", "pigeon"):
            scene.call(fakes.report("twilio", scene.url, ids.new_id(), status))
        settle()
        give_up_waiting()
    found = [verdict for verdict, _ in verdicts()]
    assert sorted(found) == [
        "APPLIED", "DUPLICATE", "NO_NEWS", "SIGNATURE", "UNKNOWN_CODE", "UNKNOWN_ID",
    ]  # fmt: skip
    assert CallbackLogEntry.objects.get(verdict="UNKNOWN_CODE").detail == "pigeon"


def test_retried_callback_is_logged_when_it_is_applied(org):
    with Scene(org, "vonage") as scene:
        scene.send(Api(org), factories.contact(org, mobile="+41791234567"))
        key = attempt()
        with connection.cursor() as cursor:  # the worker has not recorded the outcome yet
            cursor.execute("UPDATE messaging_delivery SET status = 'SENDING'")
        scene.call(fakes.report("vonage", scene.url, key, "delivered"))
        settle()
        assert verdicts() == []
        with connection.cursor() as cursor:
            cursor.execute("UPDATE messaging_delivery SET status = 'SENT'")
        Callback.objects.update(due_at=clock.now())
        settle()
    assert verdicts() == [("APPLIED", 1)]


def test_callback_is_logged_by_one_statement_and_rejected_ones_once_a_second(org):
    with Scene(org, "twilio") as scene:
        report = fakes.report("twilio", scene.url, ids.new_id(), "delivered")
        forged = Call(report.method, report.query, {}, report.body)
        counts = []
        callbacks.find_account(scene.account.public_id)
        clock.now()  # the first asks the database
        for call in (report, report, forged, forged, forged):
            with CaptureQueriesContext(connection) as captured:
                scene.call(call)
            counts.append(len(captured))
        assert counts == [1, 1, 1, 0, 0]
        TtlCache.clear_all()
        scene.call(forged)
    assert verdicts() == [("DUPLICATE", 1), ("SIGNATURE", 1), ("SIGNATURE", 3)]


def test_page_is_bounded_and_the_next_one_continues(org, django_assert_num_queries):
    other = factories.organization("other")
    rows = [
        CallbackLogEntry(
            organization_id=owner.pk, id=ids.new_id(), account_id=number % 2, verdict="APPLIED",
            method="POST", size=1, count=1, at=clock.now(),
        )
        for owner in (org, other)
        for number in range(120)
    ]  # fmt: skip
    CallbackLogEntry.objects.bulk_create(rows)
    seen, before = [], None
    for size in (50, 10):
        with django_assert_num_queries(2):
            page = callback_log.find(org.pk, account_id=1, verdict="APPLIED", before=before)
        seen, before = [*seen, *page.entries], page.following
        assert len(page.entries) == size
    assert before is None
    assert [row.id for row in seen] == [row.id for row in reversed(rows[:120]) if row.account_id]
    assert (
        callback_log.find(org.pk, account_id=None, verdict="SIGNATURE", before=None).entries == []
    )


def test_old_entries_are_deleted(org, settings):
    settings.CALLBACK_LOG_DAYS = 7
    for days in (1, 6, 8, 30):
        at = clock.now() - timedelta(days=days)
        CallbackLogEntry.objects.create(
            organization_id=org.pk, id=ids.at_least(at), account_id=1, verdict="APPLIED",
            method="POST", size=days, count=1, at=at,
        )  # fmt: skip
    callback_log.purge()
    assert sorted(CallbackLogEntry.objects.values_list("size", flat=True)) == [1, 6]
