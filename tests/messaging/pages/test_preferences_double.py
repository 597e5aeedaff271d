"""Double opt-in: opting in to email counts only after the link of a mail was followed."""

import re
from datetime import timedelta

import pytest
import time_machine
from django.test import Client

from messaging import links
from messaging.consent import ledger
from messaging.links import Confirmation, PreferenceLink
from messaging.models import ConsentEntry, MessageContent, SendingRules, Suppression
from tests import factories
from tests.messaging.pages.test_preferences import (
    IN,
    NEWS_MAIL,
    NEWS_SMS,
    OUT,
    SERVICE_MAIL,
    SERVICE_SMS,
    boxes,
    recorded_entries,
    submit,
)
from tests.rest import events

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(org):
    SendingRules.objects.create(organization=org, double_opt_in=True)
    return factories.contact(org)


@pytest.fixture
def path(org, person):
    return f"/p/{PreferenceLink(org.pk, str(person.pk), 'EMAIL', 'MARKETING').token}"


def mailed():
    """Return the contents of the mails that were accepted."""
    return [row.body["content"] for row in MessageContent.objects.order_by("id")]


def confirmation_path(mail):
    (url,) = re.findall(r"^http://127.0.0.1:8000(/p/c/\S+)$", mail["text"], re.MULTILINE)
    return url


def test_opting_in_to_email_is_mailed_and_confirmed(path, redis):
    response = submit(path, NEWS_MAIL, NEWS_SMS, SERVICE_MAIL, SERVICE_SMS)
    assert response["Location"] == f"{path}?lang=en&done=mailed#result"
    assert recorded_entries() == [("MARKETING", "SMS", IN, "PREFERENCE_PAGE")]
    (mail,) = mailed()
    url = confirmation_path(mail)
    assert mail["subject"] == "Please confirm: email from Acme"
    assert mail["text"] == (
        "You asked for email from Acme about: News and offers. Please confirm:\n\n"
        f"http://127.0.0.1:8000{url}\n\n"
        "If that was not you, do nothing. The link is good for 30 days.\n\n"
    )
    assert f'<a href="http://127.0.0.1:8000{url}"' in mail["html"]

    page = Client().get(url)
    assert "Acme may send you email about: News and offers." in page.content.decode()
    assert len(recorded_entries()) == 1

    for _ in range(2):
        page = Client().post(url)
        assert page.status_code == 200
        assert "You will get email about: News and offers." in page.content.decode()
    assert recorded_entries()[1:] == [("MARKETING", "EMAIL", IN, "DOUBLE_OPT_IN")]
    assert ConsentEntry.objects.last().evidence == {"form": "confirmation", "ip": "127.0.0.1"}
    assert boxes(path)[NEWS_MAIL] is True


def test_confirmation_mails_are_limited(path, redis):
    for _ in range(5):
        response = submit(path, NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS)
        assert "done=mailed" in response["Location"]
    assert len(mailed()) == 3


def test_the_mail_is_in_the_language_of_the_page(path, redis):
    submit(f"{path}?lang=de", NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS)
    assert mailed()[0]["subject"] == "Bitte bestätigen: E-Mail von Acme"


def test_service_messages_need_no_confirmation(org, person, path, redis):
    off = ledger.ConsentDecision(str(person.pk), "EMAIL", "TRANSACTIONAL", OUT, "API", None)
    ledger.record(org.pk, [off])
    response = submit(path, SERVICE_MAIL, SERVICE_SMS)
    assert "done=saved" in response["Location"]
    assert mailed() == []


def test_unsendable_confirmation_mail_is_reported(org, person, path, redis):
    Client().post(path, {"stop": "1"})
    response = submit(path, NEWS_MAIL)
    assert "done=unmailed" in response["Location"]
    assert boxes(path)[NEWS_MAIL] is False
    response = submit(path, NEWS_MAIL, SERVICE_MAIL)
    assert "done=mailed" in response["Location"]


def test_a_suppressed_choice_stays_off_until_confirmed(org, person, path, redis):
    yes = ledger.ConsentDecision(str(person.pk), "EMAIL", "MARKETING", IN, "API", None)
    ledger.record(org.pk, [yes])
    Suppression.objects.create(
        organization=org, channel="EMAIL", contact_id=str(person.pk), reason="COMPLAINT"
    )
    submit(path, NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS)
    assert not Suppression.objects.exists()
    assert boxes(path)[NEWS_MAIL] is False
    Client().post(confirmation_path(mailed()[-1]))
    assert boxes(path)[NEWS_MAIL] is True


def test_a_confirmation_is_good_for_thirty_days(org, person):
    link = PreferenceLink(org.pk, str(person.pk), "EMAIL", "MARKETING")
    token = Confirmation(link, ("MARKETING", "GONE")).token
    with time_machine.travel(timedelta(days=31)):
        assert Client().post(f"/p/c/{token}").status_code == 404
    with time_machine.travel(timedelta(days=29)):
        assert Client().post(f"/p/c/{token}").status_code == 200
    assert recorded_entries() == [("MARKETING", "EMAIL", IN, "DOUBLE_OPT_IN")]


def test_a_link_of_the_preference_page_confirms_nothing(path):
    token = path.removeprefix("/p/")
    assert Client().post(f"/p/c/{token}").status_code == 404
    assert recorded_entries() == []
    assert links.read(token).category == "MARKETING"


def test_confirmation_mail_is_an_ordinary_message(path, redis):
    submit(path, NEWS_MAIL, SERVICE_MAIL, SERVICE_SMS)
    content = MessageContent.objects.get()
    assert events(str(content.pk)) == ["accepted"]
