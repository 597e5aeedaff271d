"""Inbound SMS that arrive as equal calls: a repeated call counts once, a new SMS each time."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import orjson
import pytest

from messaging.domain.channels import Channel
from messaging.feedback import callbacks, listeners
from messaging.models import Callback, ConsentEntry, ProviderAccount, Suppression
from messaging.providers import REGISTRY
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.provider import CallbackRequest, Provider
from rme.transport.smpp import Address, ShortMessage
from tests import factories
from tests.fakes import providers as fakes

pytestmark = pytest.mark.django_db
PERSON, OURS = "+12025550123", "+12025550100"
START_OF_YEAR = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = {
    **fakes.SETTINGS,
    "smpp": {"host": "127.0.0.1", "system_id": "esme"},
}
NUMBERED = {"url": "https://sms.example", "inbound_id_field": "id"}


def account(org, kind, settings=None):
    row = ProviderAccount.objects.create(
        organization=org,
        name=kind,
        kind=kind,
        channel="SMS",
        credentials=orjson.dumps(settings or SETTINGS[kind]).decode(),
    )
    TtlCache.clear_all()
    found = callbacks.find_account(row.public_id)
    assert found is not None
    return found


def request(whose, text, at, number=0):
    """Write the call of a person's SMS as its service does, with the service's number of it."""
    url, kind = whose.url, whose.provider.kind
    call = ("POST", "", {"content-type": "application/json"}, b"")
    match kind:
        case "twilio":
            form = {"From": PERSON, "To": OURS, "Body": text, "MessageSid": f"SM{number}"}
            call = ("POST", "", {"content-type": fakes.FORM}, urlencode(form).encode())
        case "vonage":
            body = {"message_type": "text", "from": PERSON, "to": OURS, "text": text}
            call = (*call[:3], orjson.dumps({**body, "message_uuid": f"u{number}"}))
        case "kannel":
            query = {"from": PERSON, "to": OURS, "text": text, "id": f"i{number}"}
            call = ("GET", urlencode({**query, "t": int(at.timestamp())}), {}, b"")
        case "smpp":
            message = ShortMessage(Address(PERSON[1:], 1), Address(OURS[1:], 1), text.encode())
            call = (listeners.METHOD, ids.new_text_id(), {}, message.encode())
        case "http_sms":
            named = {"id": f"i{number}"} if whose.provider.settings.inbound_id_field else {}
            call = (*call[:3], orjson.dumps({"from": PERSON, "text": text, **named}))
    return CallbackRequest(url, *call, at)


def write(whose, text, at, number=0):
    """Receive an SMS at a moment, and apply it; return whether the call was new."""
    new = callbacks.store(whose, request(whose, text, at, number))
    callbacks.apply_due()
    return new


def is_stopped():
    return Suppression.objects.filter(address=PERSON, reason="STOP").exists()


def receives_sms(provider):
    called = provider.is_authentic is not Provider.is_authentic or provider.listens
    return Channel.SMS in provider.channels and called


@pytest.mark.parametrize("kind", sorted(kind for kind in REGISTRY if receives_sms(REGISTRY[kind])))
@pytest.mark.parametrize("step", [timedelta(days=31), timedelta(seconds=2)])
def test_stop_after_a_start_counts_although_the_same_text_came_before(org, kind, step):
    person = factories.contact(org, mobile=PERSON)
    whose = account(org, kind)
    words = ("STOP", "START", "STOP")
    new = [write(whose, word, START_OF_YEAR + n * step, n) for n, word in enumerate(words)]
    assert new == [True, True, True]
    assert is_stopped()
    entries = ConsentEntry.objects.filter(contact_id=str(person.pk)).order_by("pk")
    statuses = entries.values_list("status", flat=True)
    assert list(statuses) == ["OPTED_OUT", "OPTED_IN", "OPTED_OUT"]


@pytest.mark.parametrize("settings", [None, NUMBERED])
def test_a_repeated_start_does_not_undo_a_stop(org, settings):
    whose = account(org, "http_sms", settings)
    write(whose, "START", START_OF_YEAR, 1)
    write(whose, "STOP", START_OF_YEAR + timedelta(minutes=1), 2)
    assert not write(whose, "START", START_OF_YEAR + timedelta(minutes=2), 1)
    assert is_stopped()


def test_call_with_an_id_is_recognized_however_late_it_repeats(org):
    whose = account(org, "http_sms", NUMBERED)
    for number, word in enumerate(("STOP", "START")):
        assert write(whose, word, START_OF_YEAR, number)
    assert not write(whose, "STOP", START_OF_YEAR + timedelta(days=60), 0)
    assert not is_stopped()
    assert write(whose, "STOP", START_OF_YEAR + timedelta(days=60), 7)
    assert is_stopped()


def test_the_same_start_counts_again_on_another_day(org):
    whose = account(org, "http_sms")
    for day, word in enumerate(("START", "STOP", "START")):
        assert write(whose, word, START_OF_YEAR + timedelta(days=day))
    assert not is_stopped()


def test_a_repeated_receipt_is_one_callback(org):
    whose = account(org, "http_sms")
    body = orjson.dumps({"reference": ids.new_text_id(), "status": "delivered"})
    headers = {"content-type": "application/json"}
    calls = [
        CallbackRequest(whose.url, "POST", "", headers, body, START_OF_YEAR + timedelta(days=day))
        for day in range(3)
    ]
    assert [callbacks.store(whose, call) for call in calls] == [True, False, False]
    assert Callback.objects.count() == 1
