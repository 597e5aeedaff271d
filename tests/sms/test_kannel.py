"""SMS through a real gateway, and the receipts and inbound SMS from it."""

import shutil
import time
from pathlib import Path

import orjson
import pytest

from messaging.feedback import callbacks, inbound_sms
from messaging.models import Callback, ConsentEntry, Delivery, ProviderAccount, Suppression
from messaging.providers.kannel import Kannel as Provider
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Fault, Misconfigured, Rejected, Retryable
from rme.core.provider import Dispatch, Sms
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.smsc import wait_for
from tests.rest import events, message, work
from tests.sms.kannel import MISSING, Kannel

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("kannel"),
    pytest.mark.skipif(MISSING, reason="Kannel is not installed: make gateway"),
]
SECRET = "a secret of more than thirty-two characters"


@pytest.fixture
def transport():
    made = Transport(AddressPolicy(["127.0.0.1"]))
    yield made
    made.close()


@pytest.fixture
def kannel(org, live_server, settings, tmp_path):
    """Yield a gateway that passes receipts and inbound SMS to our own web, for one account."""
    settings.BASE_URL = live_server.url
    gateway = Kannel(tmp_path)
    account = ProviderAccount.objects.create(
        organization=org,
        name="gateway",
        kind="kannel",
        channel="SMS",
        credentials=orjson.dumps(credentials(gateway)).decode(),
    )
    TtlCache.clear_all()
    gateway.inbound = f"{live_server.url}/hooks/{account.public_id}?key={SECRET.replace(' ', '+')}"
    with gateway:
        yield gateway


def credentials(gateway, **given):
    own = {"base_url": gateway.url, "username": "rme", "password": "secret", "sender": "Acme"}
    return {**own, "callback_secret": SECRET, **given}


def hand_over(gateway, transport, sms, **given):
    provider = Provider(Provider.Settings.model_validate(credentials(gateway, **given)))
    (outcome,) = provider.send([Dispatch(ids.new_text_id(), sms)], transport)
    return outcome


def apply(count, transport):
    """Apply calls until there were so many."""
    wait_for(lambda: Callback.objects.count() >= count, 60)
    while True:
        applied, answers = callbacks.apply_due()
        if not applied:
            return
        inbound_sms.send_replies(answers, transport)


@pytest.mark.promise("webhooks-14")
def test_reports_of_the_gateway_become_events(org, api, kannel, transport):
    people = factories.contacts(org, 50)
    answer = api.bulk([message(person, channel="SMS") for person in people])
    assert answer.json()["accepted"] == 50
    work(transport)
    apply(100, transport)  # from each the SMSC's and the phone's
    assert set(Delivery.objects.values_list("status", flat=True)) == {"DELIVERED"}
    told = {tuple(events(each["messageId"])) for each in answer.json()["results"]}
    assert told == {("accepted", "sent", "delivered")}
    said = kannel.log.read_text()
    assert all(f"<Acme {person.mobile} text " in said for person in people)


@pytest.mark.parametrize(
    ("text", "arrived"),
    [
        ("Hi € [x] {y} Grüße", "text Hi € [x] {y} Grüße"),
        ("100% a&b=c+d?#", "text 100% a&b=c+d?#"),
        ("Жук 😀", "ucs-2 %04%16%04C%04%3A%00+%D8%3D%DE%00"),
    ],
)
def test_text_arrives_as_it_was_written(kannel, transport, text, arrived):
    assert hand_over(kannel, transport, Sms("+12025550123", text)) == Accepted()
    wait_for(lambda: f"<Acme +12025550123 {arrived}>" in kannel.log.read_text())


def test_long_text_goes_in_parts(kannel, transport):
    assert hand_over(kannel, transport, Sms("+12025550123", "x" * 400)) == Accepted()
    wait_for(lambda: "Got message 3:" in kannel.log.read_text())
    lines = [line for line in kannel.log.read_text().splitlines() if " udh " in line]
    assert [line.count("x") for line in lines] == [153, 153, 94]


def test_text_too_long_for_the_gateway_is_not_sent(kannel, transport):
    refused = Rejected("the provider cannot write this message", Fault.CONTENT)
    assert hand_over(kannel, transport, Sms("+12025550123", "x" * 1531)) == refused
    assert hand_over(kannel, transport, Sms("+12025550123", "x" * 1530)) == Accepted()
    wait_for(lambda: "Got message 10:" in kannel.log.read_text())
    time.sleep(0.2)
    assert "Got message 11:" not in kannel.log.read_text()


@pytest.mark.parametrize(
    ("to", "given", "kind"),
    [
        ("+12025550123", {"password": "wrong"}, Misconfigured),
        ("+12025550123", {"username": "nobody"}, Misconfigured),
        ("+12025550123", {"sender": ""}, Misconfigured),
        ("abc", {}, Rejected),
        ("", {}, Rejected),
        ("+12025550123", {"base_url": "http://127.0.0.1:1"}, Retryable),
    ],
)
def test_refusal_of_the_gateway(kannel, transport, to, given, kind):
    assert type(hand_over(kannel, transport, Sms(to, "Hi"), **given)) is kind


@pytest.mark.promise("webhooks-14")
def test_stop_from_a_phone(org, api, kannel, transport):
    person = factories.contact(org)
    kannel.stop_smsc()
    log = kannel.write(f"{person.mobile} 12345 text Stop.")
    apply(1, transport)
    entry, row = ConsentEntry.objects.get(), Suppression.objects.get()
    assert (entry.contact_id, entry.status, entry.source) == (
        str(person.pk),
        "OPTED_OUT",
        "SMS_KEYWORD",
    )
    assert entry.evidence["text"] == "Stop"
    assert (row.address, row.reason, row.source) == (person.mobile, "STOP", "SMS_KEYWORD")
    wait_for(lambda: f"<12345 {person.mobile} text Acme: You will get no more" in log.read_text())
    answer = api.send(message(person, channel="SMS"))
    assert answer.json()["error"]["code"] == "SUPPRESSED"


def test_message_waiting_at_the_gateway_is_delivered_later(org, api, kannel, transport):
    kannel.stop_smsc()
    answer = api.send(message(factories.contact(org), channel="SMS"))
    work(transport)
    sent = answer.json()["messageId"]
    assert events(sent) == ["accepted", "sent"]
    assert not Callback.objects.exists()
    kannel.write()
    apply(2, transport)
    assert events(sent) == ["accepted", "sent", "delivered"]


def test_no_process_of_the_gateway_is_left(tmp_path):
    with Kannel(tmp_path) as gateway:
        running = [process.pid for process in gateway._running]
    assert len(running) == 3
    assert not [pid for pid in running if Path(f"/proc/{pid}").exists()]
    shutil.rmtree(tmp_path)
