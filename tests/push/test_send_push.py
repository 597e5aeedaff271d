"""The programmatic send: the same path as REST, and what it says when it is refused."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from messaging.accept import MessageResult, send_push
from messaging.models import Delivery, Message, ProviderAccount
from rme.core import errors
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.smtp import SmtpServer
from tests.rest import work

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(org):
    return factories.contact(org)


@pytest.mark.promise("push-program-1")
def test_a_push_is_accepted_and_sent(org, person, redis):
    factories.device(org, person)
    result = send_push(org, str(person.pk), title="Hello", body="Hi", data={"order": "7"}, badge=3)
    assert result == MessageResult(result.message_id, "ACCEPTED", "PUSH", "simulator", None)
    work()
    row = Delivery.objects.get()
    assert (str(row.message_id), row.status) == (result.message_id, "DELIVERED")
    message = Message.objects.get()
    assert (message.application_id, message.channels, message.strategy) == (0, None, None)


@pytest.mark.promise("push-program-2")
def test_without_a_device_the_next_channel_has_its_turn(org, person):
    result = send_push(org.pk, str(person.pk), title="Hello", body="Hi", channels=("PUSH", "SMS"))
    assert (result.status, result.resolved_channel) == ("ACCEPTED", "SMS")


@pytest.mark.promise("push-program-4")
def test_title_is_the_subject_of_an_email(org, person, redis):
    with SmtpServer() as server:
        ProviderAccount.objects.create(
            organization=org, name="mail", kind="smtp", channel="EMAIL",
            credentials=json.dumps({"host": "localhost", "port": server.port, "security": "NONE"}),
        )  # fmt: skip
        send_push(org, str(person.pk), title="A title", body="A body", channels=["EMAIL"])
        transport = Transport(AddressPolicy(["localhost"]))
        work(transport)
        transport.close()
        (mail,) = server.mails
    assert b"Subject: A title\r\n" in mail.data
    assert b"A body" in mail.data


@pytest.mark.promise("push-program-1")
def test_the_same_key_is_the_same_message(org, person):
    factories.device(org, person)
    given = {"title": "Hello", "body": "Hi", "idempotency_key": "order-7"}
    first = send_push(org, str(person.pk), **given)
    again = send_push(org, str(person.pk), **given)
    assert (first.message_id, first.replayed, again.replayed) == (again.message_id, False, True)
    assert Message.objects.count() == 1
    with pytest.raises(errors.IdempotencyKeyReused):
        send_push(org, str(person.pk), **{**given, "body": "Ho"})


@pytest.mark.promise("push-sending-4", "push-program-3")
def test_rejected_push_raises_the_same_error_as_rest(org, person):
    with pytest.raises(errors.Unreachable) as refused:
        send_push(org, str(person.pk), title="Hello", body="Hi")
    assert refused.value.message_id == str(Message.objects.get().pk)
    assert Delivery.objects.get().status == "BLOCKED"


@pytest.mark.promise("push-program-1")
@pytest.mark.parametrize(
    ("given", "error", "field"),
    [
        ({"contact_id": "nobody"}, errors.NotFound, "to[0].contactId"),
        ({"organization": "nobody"}, errors.NotFound, "organization"),
        ({"channels": []}, errors.InvalidPayload, "channels"),
        ({"channels": ["FAX"]}, errors.InvalidPayload, "channels[0]"),
        ({"strategy": "LAST"}, errors.InvalidPayload, "strategy"),
        ({"category": "NEWS"}, errors.InvalidPayload, "category"),
        ({"title": "a\x00b"}, errors.InvalidPayload, "content.title"),
        ({"title": "\ud800"}, errors.InvalidPayload, "content.title"),
        ({"title": 7}, errors.InvalidPayload, "content.title"),
        ({"data": {"a": 7}}, errors.InvalidPayload, "content.data.a"),
        ({"badge": -1}, errors.InvalidPayload, "content.badge"),
        ({"idempotency_key": ""}, errors.InvalidPayload, "Idempotency-Key"),
    ],
)
def test_invalid_field_is_named(org, person, given, error, field):
    arguments = {
        "organization": org.pk, "contact_id": str(person.pk), "title": "T", "body": "B", **given,
    }  # fmt: skip
    with pytest.raises(error) as refused:
        send_push(**arguments)
    assert [detail.field for detail in refused.value.details] == [field]
    assert not Message.objects.exists()


@pytest.mark.promise("push-program-3")
def test_another_organization_s_contact_is_not_found(org, person):
    other = factories.organization("other")
    with pytest.raises(errors.NotFound):
        send_push(other, str(person.pk), title="T", body="B")


def command(org, contact_id, *more):
    out = io.StringIO()
    arguments = ["--org", org.pk, "--contact", contact_id, "--title", "T", "--body", "B", *more]
    call_command("send_push", *arguments, stdout=out)
    return json.loads(out.getvalue())


@pytest.mark.promise("push-program-5")
def test_the_command_sends(org, person):
    factories.device(org, person)
    printed = command(
        org, str(person.pk), "--data", "a=b=c", "--badge", "2", "--channels", "PUSH,SMS"
    )
    assert printed == {
        "message_id": str(Message.objects.get().pk),
        "status": "ACCEPTED",
        "resolved_channel": "PUSH",
        "provider": "simulator",
        "scheduled_for": None,
        "replayed": False,
    }


@pytest.mark.promise("push-program-5")
def test_command_reports_the_rejection(org, person):
    text = "UNREACHABLE: No channel asked for has an address or device"
    with pytest.raises(CommandError, match=text) as refused:
        command(org, str(person.pk))
    assert f"(message {Message.objects.get().pk})" in str(refused.value)
    with pytest.raises(CommandError):
        command(org, str(person.pk), "--data", "nonsense")
