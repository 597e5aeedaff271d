"""STOP from numbers as each provider writes them: the contact's next SMS is not sent."""

from urllib.parse import urlencode

import orjson
import pytest

from messaging.feedback import callbacks, listeners
from messaging.models import ConsentEntry, ProviderAccount, Suppression
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.provider import CallbackRequest
from rme.crm import lookups
from rme.crm.connectors import REGISTRY
from rme.crm.connectors.base import NO_DEADLINE
from rme.transport.smpp import Address, ShortMessage
from tests import factories
from tests.fakes import providers as fakes
from tests.rest import message

pytestmark = pytest.mark.django_db
SETTINGS = {**fakes.SETTINGS, "smpp": {"host": "127.0.0.1", "system_id": "esme"}}


def account(org, kind):
    row = ProviderAccount.objects.create(
        organization=org,
        name=kind,
        kind=kind,
        channel="SMS",
        credentials=orjson.dumps(SETTINGS[kind]).decode(),
    )
    TtlCache.clear_all()
    provider_account = callbacks.find_account(row.public_id)
    assert provider_account is not None
    return provider_account


def called(whose, sender, text="STOP", ton=None):
    """Write the call of an SMS from a number, as its provider does."""
    at = clock.now()
    match whose.provider.kind:
        case "twilio":
            form = {"From": sender, "To": "1", "Body": text, "MessageSid": ids.new_text_id()}
            call = ("POST", "", {"content-type": fakes.FORM}, urlencode(form).encode())
        case "vonage":
            body = {"message_type": "text", "from": sender, "to": "1", "text": text}
            named = {**body, "message_uuid": ids.new_text_id()}
            call = ("POST", "", {"content-type": "application/json"}, orjson.dumps(named))
        case "kannel":
            query = f"from={sender}&text={text}&id={ids.new_text_id()}&t={int(at.timestamp())}"
            call = ("GET", query, {}, b"")
        case "smpp":
            sent = ShortMessage(Address(sender, ton), Address("1", 1), text.encode())
            call = (listeners.METHOD, ids.new_text_id(), {}, sent.encode())
        case _:
            body = orjson.dumps({"from": sender, "text": text})
            call = ("POST", "", {"content-type": "application/json"}, body)
    return CallbackRequest(whose.url, *call, at)


def write(whose, sender, text="STOP", ton=None):
    callbacks.store(whose, called(whose, sender, text, ton))
    callbacks.apply_due()


NUMBERS = [
    ("kannel", "DE", "33612345679", None, "+33612345679"),
    ("kannel", "DE", "0033612345679", None, "+33612345679"),
    ("kannel", "US", "0033612345679", None, "+33612345679"),
    ("kannel", "DE", "%2B33612345679", None, "+33612345679"),
    ("kannel", "DE", "+33612345679", None, "+33612345679"),  # the plus is not encoded
    ("kannel", "GB", "07400900123", None, "+447400900123"),
    ("kannel", "US", "6462345678", None, "+16462345678"),  # also a number of New Zealand
    ("http_sms", "DE", "33612345679", None, "+33612345679"),
    ("http_sms", "FR", "0612345679", None, "+33612345679"),
    ("http_sms", "AT", "+0033612345679", None, "+33612345679"),
    ("vonage", "DE", "33612345679", None, "+33612345679"),
    ("vonage", "GB", "07400900123", None, "+447400900123"),
    ("twilio", "US", "+5215562000000", None, "+525562000000"),
    ("vonage", "US", "5215562000000", None, "+525562000000"),
    ("twilio", "AR", "+541123456789", None, "+5491123456789"),
    ("twilio", "AR", "+5491123456789", None, "+541123456789"),
    ("smpp", "GB", "07400900123", 2, "+447400900123"),
    ("smpp", "GB", "7400900123", 2, "+447400900123"),
    ("smpp", "GB", "07400900123", 0, "+447400900123"),
    ("smpp", "GB", "07400900123", 1, "+447400900123"),
    ("smpp", "DE", "33612345679", 0, "+33612345679"),
    ("smpp", "DE", "33612345679", 1, "+33612345679"),
    ("smpp", "DE", "15123456789", 2, "+4915123456789"),  # also a number of Texas
    ("smpp", "DE", "15123456789", 1, "+15123456789"),
    ("smpp", "DE", "+33612345679", 5, "+33612345679"),
]


@pytest.mark.parametrize(("kind", "region", "sender", "ton", "mobile"), NUMBERS)
def test_stop_ends_sms_to_the_contact(org, api, kind, region, sender, ton, mobile):
    type(org).objects.filter(pk=org.pk).update(region=region)
    person = factories.contact(org, mobile=mobile)
    whose = account(org, kind)
    write(whose, sender, ton=ton)
    decided = ConsentEntry.objects.values_list("contact_id", "channel", "category", "status")
    assert list(decided) == [(str(person.pk), "SMS", "ALL", "OPTED_OUT")]
    assert api.send(message(person, channel="SMS")).json()["error"]["code"] == "SUPPRESSED"
    listed = api.call("GET", f"/suppressions?channel=SMS&address={mobile.replace('+', '%2B')}")
    assert [each["reason"] for each in listed.json()["suppressions"]] == ["STOP"]
    write(whose, sender, "START", ton)
    assert list(Suppression.objects.all()) == []
    assert api.send(message(person, channel="SMS")).status_code == 202


def test_stop_of_digits_without_a_contact_counts_with_the_country_code(org):
    type(org).objects.filter(pk=org.pk).update(region="DE")
    write(account(org, "kannel"), "33612345679")
    assert list(Suppression.objects.values_list("address", "reason")) == [("+33612345679", "STOP")]


def test_stop_from_digits_matching_two_contacts_applies_to_both(org):
    type(org).objects.filter(pk=org.pk).update(region="DE")
    people = [factories.contact(org, mobile=each) for each in ("+33612345679", "+4933612345679")]
    write(account(org, "kannel"), "33612345679")
    rows = Suppression.objects.order_by("address").values_list("address", "reason")
    assert list(rows) == [("+33612345679", "STOP"), ("+4933612345679", "STOP")]
    entries = ConsentEntry.objects.filter(source="SMS_KEYWORD", status="OPTED_OUT")
    assert set(entries.values_list("contact_id", flat=True)) == {str(each.pk) for each in people}


def test_stop_from_ambiguous_digits_applies_to_the_contact(org):
    type(org).objects.filter(pk=org.pk).update(region="DE")
    factories.contact(org, mobile="+4933612345679")
    write(account(org, "kannel"), "33612345679")
    assert Suppression.objects.get().address == "+4933612345679"


@pytest.mark.parametrize("sender", ["Bank", "12345", "", "0", "+", "00", "9" * 30])
def test_stop_from_a_sender_without_a_number_is_ignored(org, sender):
    factories.contact(org)
    write(account(org, "http_sms"), sender)
    assert (list(Suppression.objects.all()), list(ConsentEntry.objects.all())) == ([], [])


@pytest.mark.parametrize(
    ("listed", "mobile"),
    [
        ("+525562000000", "+5215562000000"),
        ("+5215562000000", "+525562000000"),
        ("+541123456789", "+5491123456789"),
        ("+5491123456789", "+541123456789"),
    ],
)
def test_rows_of_earlier_releases_hold_for_all_spellings(org, api, listed, mobile):
    Suppression.objects.create(organization=org, channel="SMS", address=listed, reason="STOP")
    person = factories.contact(org, mobile=mobile)
    assert api.send(message(person, channel="SMS")).json()["error"]["code"] == "SUPPRESSED"
    connector = REGISTRY["embedded"](org.pk)
    found = lookups.contacts_by_phone(connector, listed, region="US", limit=5, deadline=NO_DEADLINE)
    assert [each.id for each in found] == [str(person.pk)]
