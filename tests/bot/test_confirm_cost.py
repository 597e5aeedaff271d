"""What look-ups cost, whatever there is."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bot.models import BotSettings
from rme.core import ids
from rme.crm.models import Case, Contact, EventRegistration, Speaker
from tests import factories
from tests.bot.confirm_scene import LOOK_UP_ACTIONS, look_ups

pytestmark = pytest.mark.django_db


@pytest.mark.promise("embedded-10")
def test_call_needs_two_statements_for_any_number_of_records(bot, ada, account, event):
    for number in range(5):
        Case.objects.create(
            organization=bot.org, number=str(number), subject="S", issue="I", contact=ada
        )
        EventRegistration.objects.create(
            organization=bot.org, event=event, name="A", email=ada.email
        )
    bot.confirm("Confirm_Contact", email="nobody@example.org")  # reads the settings
    counts = {}
    for action, fields in look_ups(ada, account).items():
        with CaptureQueriesContext(connection) as captured:
            bot.get(action, **fields)
        counts[action] = len(captured)
    assert counts == dict.fromkeys(LOOK_UP_ACTIONS, 2)


@pytest.mark.promise("bot-calls-8")
def test_large_records_are_truncated_to_the_response_limit(bot, ada):
    for number in range(10):
        Case.objects.create(
            organization=bot.org, number=str(number), subject="S", issue="ü" * 32_000, contact=ada
        )
    response = bot.get("Confirm_Case", email=ada.email)
    issues = {record["Issue"] for record in response.json()["msg"]}
    assert (len(response.json()["msg"]), issues) == (10, {"ü" * 1999 + "…"})
    assert len(response.content) <= 64_000


@pytest.mark.promise("bot-calls-8")
def test_response_has_fewer_records_when_truncating_is_not_enough(bot, event):
    BotSettings.objects.create(organization=bot.org, max_records=50)
    worst = "\x01" * 255
    ada = factories.contact(bot.org, first_name=worst, last_name=worst, email="a@b.example")
    for _ in range(50):
        Speaker.objects.create(
            organization=bot.org, event=event, contact=ada, session_title=worst, room="\x01" * 100
        )
    response = bot.get("Confirm_Speaker", contactID=str(ada.pk))
    assert 10 < len(response.json()["msg"]) < 50
    assert len(response.content) <= 64_000


@pytest.mark.promise("embedded-3")
def test_a_million_rows_elsewhere_do_not_matter_to_the_plan(bot, ada):
    Contact.objects.bulk_create(
        Contact(id=ids.new_id(), organization=bot.org, last_name="L", email=f"p{i}@x.example")
        for i in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE crm_contact")
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as captured:
        bot.get("Confirm_Contact", email="p7@x.example")
        bot.get("Confirm_Contact_Phone", phone="+12127365000")
        plans = []
        for query in captured.captured_queries:
            if "crm_contact" in query["sql"]:
                cursor.execute(f"EXPLAIN {query['sql']}")
                plans.append("\n".join(line for (line,) in cursor.fetchall()))
    assert ["contact_by_email" in plans[0], "Seq Scan on crm_contact" in plans[0]] == [True, False]
    assert ["contact_by_phone" in plans[1], "contact_by_mobile" in plans[1]] == [True, True]
