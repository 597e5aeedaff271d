"""The contract's rules for sending: each field, and the answers."""

import orjson
import pytest

from messaging.models import Message, MessageContent, ProviderAccount, SenderDomain
from messaging.models import Suppression as Entry
from messaging.policy import organization_policy
from rme.core.cache import TtlCache
from rme.core.provider import Email, Sms
from tests import factories
from tests.rest import error, events, message, work

pytestmark = pytest.mark.django_db


# --- fields ---------------------------------------------------------------------------------------


@pytest.mark.promise("request-2", "request-7", "request-8", "request-9", "request-13", "request-21")
@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        (
            {"channels": ["EMAIL"]},
            "channel",
            "give exactly one of channel and channels",
        ),
        ({"channel": None}, "channel", "give exactly one of channel and channels"),
        ({"content": {"text": "x"}}, "template", "give exactly one of template and content"),
        ({"template": None}, "template", "give exactly one of template and content"),
        (
            {"channel": None, "channels": ["SMS", "SMS"]},
            "channels",
            "the same channel twice",
        ),
        ({"fallbackAfter": 29}, "fallbackAfter", None),
        ({"fallbackAfter": 86_401}, "fallbackAfter", None),
        ({"strategy": "FIRST"}, "strategy", None),
        ({"to": [{"contactId": f"c{n}"} for n in range(101)]}, "to", None),
        ({"to": []}, "to", None),
        ({"metadata": {str(n): "x" for n in range(21)}}, "metadata", None),
        ({"metadata": {"n": 1}}, "metadata.n", "must be a string"),
        ({"push": {"priority": "LOW"}}, "push.priority", None),
        ({"push": {"ttl": -1}}, "push.ttl", None),
        (
            {"template": None, "content": {"text": "x", "data": {"n": 1}}},
            "content.data.n",
            "must be a string",
        ),
        (
            {"category": "NOWHERE"},
            "category",
            "no such category: NOWHERE (there are MARKETING, TRANSACTIONAL)",
        ),
        ({"schedule": {"mode": "SOON"}}, "schedule", "mode must be LOCAL, ORG or AT"),
        ({"schedule": {"mode": "LOCAL", "time": "24:00"}}, "schedule.time", None),
        ({"schedule": {"mode": "AT", "at": "2026-01-01T00:00:00"}}, "schedule.at", None),
    ],
)
def test_a_contradictory_request_is_refused_with_its_field(api, org, fields, field, why):
    response = api.send(message(factories.contact(org), **fields))
    (detail,) = response.json()["error"]["details"]
    assert (response.status_code, detail["field"]) == (400, field)
    assert why in (None, detail["message"])
    text = f"{field}: {detail['message']}"
    assert response.json() == error("INVALID_PAYLOAD", text, (field, detail["message"]))
    assert not Message.objects.exists()


@pytest.mark.promise("request-9")
def test_a_hundred_recipients_are_accepted(api, org):
    answer = api.send(message(*factories.contacts(org, 100)))
    assert (answer.status_code, len(answer.json()["recipients"])) == (202, 100)


@pytest.mark.promise("request-11")
def test_the_same_contact_twice_is_refused(api, org):
    ada, bob = factories.contacts(org, 2)
    response = api.send(message(ada, bob, ada))
    why = "the same contact twice"
    assert (response.status_code, response.json()) == (
        400,
        error("INVALID_PAYLOAD", f"to[2].contactId: {why}", ("to[2].contactId", why)),
    )


@pytest.mark.promise("request-25")
def test_a_template_of_another_category_is_refused(api, org):
    factories.template(org, name="offer", category="MARKETING")
    response = api.send(message(factories.contact(org), template={"name": "offer"}))
    why = "the template's category is MARKETING"
    assert (response.status_code, response.json()) == (
        400,
        error("INVALID_PAYLOAD", f"category: {why}", ("category", why)),
    )


@pytest.mark.promise("request-24")
def test_a_template_without_a_version_for_the_channel_is_not_found(api, org):
    factories.template(org, "SMS", name="code")
    response = api.send(message(factories.contact(org), template={"name": "code"}))
    assert (response.status_code, response.json()) == (
        404,
        error("TEMPLATE_NOT_FOUND", "There is no active template code in en_US for email."),
    )


@pytest.mark.promise("request-14", "request-22")
def test_content_is_sent_unchanged_and_metadata_is_not_sent(api, org, handed):
    content = {"subject": "{{ contact.first_name }}", "text": "{% if x %} {{ note }}"}
    body = message(
        factories.contact(org), template=None, content=content, metadata={"order": "secret-42"}
    )
    message_id = api.send(body).json()["messageId"]
    work()
    (mail,) = handed
    assert (mail.subject, mail.text) == (content["subject"], content["text"])
    assert "secret-42" not in repr(mail)
    assert api.get(message_id)["metadata"] == {"order": "secret-42"}


@pytest.mark.promise("request-19")
def test_from_names_the_sender_on_each_channel(api, org, handed):
    person = factories.contact(org)
    sender = {"domain": "acme.example", "localPart": "billing", "name": "Billing"}
    api.send(message(person, **{"from": sender}))
    api.send(message(person, channel="SMS", **{"from": {"name": "ACME"}}))
    work()
    mail, sms = handed
    assert (mail.from_address, mail.from_name) == ("billing@acme.example", "Billing")
    assert sms.sender == "ACME"


@pytest.mark.parametrize(
    "key", ["from", "message_type", "google.c.a.e", "google.", "gcm.notification.title", "gcm.x"]
)
def test_data_key_reserved_by_google_is_rejected_with_its_field(api, org, key):
    why = "is reserved by Firebase Cloud Messaging: rename it"
    content = {"title": "Hello", "data": {"order": "7", key: "x"}}
    literal = message(factories.contact(org), channel="PUSH", template=None, content=content)
    field = f"content.data.{key}"
    refused = api.send(literal)
    assert refused.status_code == 400
    assert refused.json() == error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))
    override = api.send(message(factories.contact(org), push={"data": {key: "x"}}))
    field = f"push.data.{key}"
    assert override.status_code == 400
    assert override.json() == error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))


@pytest.mark.parametrize("key", ["From", "from_city", "googles", "gcm", "message_types", "x.from"])
def test_other_data_keys_are_accepted(api, org, key):
    body = message(factories.contact(org), push={"data": {key: "x"}})
    assert api.send(body).status_code == 202


@pytest.mark.promise("request-20")
@pytest.mark.parametrize("name", ["", "Acme Events", "Zürich Events AG"])
def test_the_name_of_the_email_domain_is_not_an_sms_sender(api, org, handed, name):
    SenderDomain.objects.update(name=name)
    person = factories.contact(org)
    api.send(message(person, channel="SMS"))
    api.send(message(person, channel=None, channels=["SMS", "EMAIL"]))
    api.send(message(person))
    work()
    sms, second, mail = sorted(handed, key=lambda each: isinstance(each, Email))
    assert (sms.sender, second.sender) == ("", "")
    assert mail.from_name == (name or org.name)


SMS_SENDERS = {
    "ACME": True,
    "Acme Events": True,
    "Zürich": True,
    "Ωmega 1": True,
    "3M": True,
    "12025550123": True,
    "+12025550123": True,
    "123456789012345": True,
    "60300": True,
    "Acme Events.": False,
    "1234567890123456": False,
    "Łódź": False,
    "Acme €": False,
    "A[1]": False,
    "12-34": False,
    "...": False,
    "MG0123456789abcdef0123456789abcdef": False,
    "ACME ": False,
}


@pytest.mark.promise("request-20")
@pytest.mark.parametrize("name", SMS_SENDERS)
def test_an_sms_sender_is_checked_when_the_message_is_accepted(api, org, handed, name):
    person = factories.contact(org)
    body = message(person, channel="SMS", **{"from": {"name": name}})
    answer = api.send(body)
    work()
    if SMS_SENDERS[name]:
        assert answer.status_code == 202
        assert [each.sender for each in handed] == [name]
        return
    assert answer.status_code == 400
    assert answer.json()["error"]["details"] == [{"field": "from.name", "message": (
        "An SMS shows up to 11 characters of the GSM alphabet, a letter among them, or up to 15 "
        "digits. Choose such a name, or leave it out."
    )}]  # fmt: skip
    assert handed == []


@pytest.mark.promise("request-20")
def test_sender_name_unusable_for_sms_is_left_out_with_a_warning(api, org, handed):
    person = factories.contact(org, email="")
    body = message(person, channel=None, channels=["EMAIL", "SMS"])
    body["from"] = {"name": "Zürich Events AG"}
    warnings = [{"field": "from.name", "message": (
        "An SMS shows up to 11 characters of the GSM alphabet, a letter among them, or up to 15 "
        "digits. Recipients of the SMS see the account's own sender."
    )}]  # fmt: skip
    answer = api.send(body)
    assert (answer.status_code, answer.json()["warnings"]) == (202, warnings)
    dry_run = api.call("POST", "/messages?dryRun=true", body).json()
    assert dry_run["result"]["warnings"] == warnings
    (item,) = api.call("POST", "/messages/bulk", {"messages": [body]}).json()["results"]
    assert item["warnings"] == warnings
    api.send(message(factories.contact(org), channel="EMAIL", **{"from": body["from"]}))
    work()
    assert [getattr(each, "sender", None) for each in handed if isinstance(each, Sms)] == ["", ""]
    assert [each.from_name for each in handed if isinstance(each, Email)] == ["Zürich Events AG"]


SMPP = {"host": "smsc.example", "system_id": "rme", "password": "secret", "sender": "Acme"}
TWILIO = {"account_sid": f"AC{'1' * 32}", "auth_token": "secret", "sender": "Acme"}
VONAGE = {"api_key": "k", "api_secret": "s", "signature_secret": "t", "sender": "Acme"}


def sms_accounts(org, *kinds):
    for kind, credentials in kinds:
        ProviderAccount.objects.create(
            organization=org,
            name=kind,
            kind=kind,
            channel="SMS",
            credentials=orjson.dumps(credentials).decode(),
        )
    organization_policy.forget(org.pk)
    TtlCache.clear_all()


@pytest.mark.parametrize("account", [("smpp", SMPP), ("twilio", TWILIO)])
def test_sender_name_unusable_by_every_account_is_rejected_or_left_out(api, org, account):
    sms_accounts(org, account)
    name = {"from": {"name": "Zürich"}}
    answer = api.send(message(factories.contact(org), channel="SMS", **name))
    rule = "Your SMS providers show letters and signs of ASCII only"
    assert answer.status_code == 400
    assert answer.json()["error"]["details"] == [
        {"field": "from.name", "message": f"{rule}. Choose such a name, or leave it out."}
    ]
    body = message(factories.contact(org, email=""), channel=None, channels=["EMAIL", "SMS"])
    answer = api.send({**body, **name})
    text = f"{rule}. Recipients of the SMS see the account's own sender."
    assert answer.status_code == 202
    assert answer.json()["warnings"] == [{"field": "from.name", "message": text}]
    assert MessageContent.objects.get(pk=answer.json()["messageId"]).body["sms_sender"] == ""
    ascii_name = message(factories.contact(org), channel="SMS", **{"from": {"name": "Zurich"}})
    assert api.send(ascii_name).status_code == 202


def test_sender_name_usable_by_one_account_is_accepted(api, org):
    sms_accounts(org, ("smpp", SMPP), ("vonage", VONAGE))
    body = message(factories.contact(org), channel="SMS", **{"from": {"name": "Zürich"}})
    answer = api.send(body)
    assert (answer.status_code, answer.json().get("warnings")) == (202, None)


@pytest.mark.parametrize(("stored", "shown"), [("ACME", "ACME"), ("Zürich Events AG", "")])
def test_a_content_of_the_former_release_keeps_its_sms_sender(api, org, handed, stored, shown):
    sent = api.send(message(factories.contact(org), channel="SMS")).json()
    content = MessageContent.objects.get(pk=sent["messageId"])
    del content.body["sms_sender"]
    content.body["sender"] = ["acme.example", "no-reply", stored]
    content.save()
    work()
    assert [each.sender for each in handed] == [shown]


@pytest.mark.promise("request-10")
def test_a_recipients_variables_override_the_common_ones(api, org, handed):
    ada, bob = factories.contacts(org, 2)
    body = message(ada, bob, channel="SMS")
    body["to"][1]["variables"] = {"note": "own"}
    api.send(body)
    work()
    assert [sms.text for sms in handed] == ["Note: hello", "Note: own"]


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.promise("answer-4")
def test_error_of_the_first_recipient_is_answered_if_all_are_rejected(api, org):
    ada = factories.contact(org, email="")
    bob = factories.contact(org, email="bob@simulator.rme.test")
    Entry.objects.create(organization=org, channel="EMAIL", address=bob.email, reason="MANUAL")
    response = api.send(message(ada, bob))
    kept = str(Message.objects.get().pk)
    text = "No channel asked for has an address or device for this recipient."
    assert (response.status_code, response.json()) == (
        422,
        error("UNREACHABLE", text, message_id=kept),
    )
    assert [(each["status"], each["error"]["code"]) for each in api.get(kept)["recipients"]] == [
        ("BLOCKED", "UNREACHABLE"),
        ("BLOCKED", "SUPPRESSED"),
    ]


@pytest.mark.promise("events-8")
def test_an_unreachable_recipient_is_blocked_and_the_others_are_sent(api, org):
    ada, bob = factories.contact(org), factories.contact(org, email="", mobile="")
    answer = api.send(message(ada, bob)).json()
    text = "No channel asked for has an address or device for this recipient."
    assert answer["recipients"][1] == {
        "contactId": str(bob.pk),
        "status": "BLOCKED",
        "resolvedChannel": None,
        "provider": None,
        "scheduledFor": None,
        "error": error("UNREACHABLE", text, message_id=answer["messageId"])["error"],
    }
    assert events(answer["messageId"]) == ["accepted", "blocked"]
