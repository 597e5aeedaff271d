"""Sending a template to one person: nothing leaves before the person has seen and confirmed it."""

import pytest
from django.test import Client

from messaging.content import templates
from messaging.models import Delivery, Message, TemplateVersion
from messaging.store import contents
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of
from tests.rest import work

pytestmark = pytest.mark.django_db
SCHEMA = {
    "type": "object",
    "properties": {
        "note": {"type": "string"},
        "count": {"type": "integer"},
        "paid": {"type": "boolean"},
        "size": {"enum": ["S", "M"]},
        "items": {"type": "array", "items": {"type": "string"}},
        "guest": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    "required": ["note"],
}
VALUES = {
    "s:/note": "hello", "s:/count": "3", "s:/paid": "false", "s:/size": "M", "s:/items": "a\nb",
    "s:/guest/name": "Grace",
}  # fmt: skip


@pytest.fixture
def ada(org):
    return factories.contact(org, first_name="Ada", email="ada@person.example")


def post(client, name="welcome", channel="EMAIL", **fields):
    form = {"language": "en_US", "channel": channel, **fields}
    return client.post(url("template_send", name), form)


def confirm(client, shown, name="welcome"):
    """Press the button below a preview."""
    hidden = dict(shown.context["typed"])
    form = {"language": "en_US", "channel": "EMAIL", "key": shown.context["key"], "do": "send"}
    return client.post(url("template_send", name), {**form, **hidden})


def test_message_is_previewed_then_sent_once(ann, org, ada):
    version = templates.add_draft(
        TemplateVersion.objects.get(template__channel="EMAIL").template,
        {"subject": "Hi", "text": "{{ note }} {{ guest.name }}", "variables": SCHEMA},
    )
    templates.activate(version)
    shown = post(ann, contact="Ada@Person.example", **VALUES)
    assert not Message.objects.exists()
    text = shown.content.decode()
    assert "hello Grace" in text
    assert f"Send to {ada.first_name} {ada.last_name} now" in text
    sent = confirm(ann, shown)
    message = Message.objects.get()
    assert sent["Location"] == url("message", message.pk)
    assert confirm(ann, shown)["Location"] == url("message", message.pk)  # pressed twice
    work()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.address) == ("DELIVERED", "ada@person.example")
    assert contents.read(org.pk, [message.pk])[message.pk]["variables"] == {
        "note": "hello", "count": 3, "paid": False, "size": "M", "items": ["a", "b"],
        "guest": {"name": "Grace"},
    }  # fmt: skip
    assert audited.summaries(action="TESTED") == [("ann", "TESTED", f"message {message.pk}")]


@pytest.mark.parametrize(
    ("contact", "error"),
    [
        ("", "This field is required."),
        ("nobody@x.example", "No contact matches. Add the person under Contacts first."),
        ("00000000-0000-7000-8000-000000000000", "No contact matches."),
        ("twin@x.example", "Several contacts match. Enter the id of one of them."),
        ("grace@x.example", "No contact matches."),  # of another organization
        ("a\0b", "Null characters are not allowed."),
    ],
)
def test_recipient_that_cannot_be_is_refused_at_its_field(ann, org, contact, error):
    for email in ("twin@x.example", "twin@x.example"):
        factories.contact(org, email=email)
    factories.contact(factories.organization("other"), first_name="Grace", email="grace@x.example")
    for do in ("", "send"):
        shown = post(ann, contact=contact, do=do)
        assert shown.context["form"].errors["contact"][0].startswith(error)
        assert shown.context["form"]["contact"].value() == contact
        assert b"Grace" not in shown.content
    assert not Message.objects.exists()


def test_variables_are_checked_at_their_fields(ann, org, ada):
    factories.template(org, name="order", variables=SCHEMA)
    wrong = {**VALUES, "s:/note": "", "s:/count": "x", "s:/paid": "maybe", "s:/size": "XL"}
    shown = post(ann, "order", contact=str(ada.pk), **wrong)
    assert set(shown.context["form"].errors) == {"s:/note", "s:/count", "s:/paid", "s:/size"}


def test_refusal_of_a_gate_is_shown_before_anything_is_sent(ann, org, ada):
    org.suppression_set.create(channel="EMAIL", address=ada.email, reason="MANUAL")
    shown = post(ann, contact=str(ada.pk))
    assert "The recipient is on a suppression list." in shown.content.decode()
    assert shown.context["typed"] == []
    assert not Message.objects.exists()


def test_recipient_of_the_query_is_filled_in(ann, org, ada):
    shown = ann.get(f"{url('template_send', 'welcome')}?channel=SMS&contact={ada.pk}")
    assert shown.context["form"]["contact"].value() == str(ada.pk)


def test_only_who_may_operate_sends_and_only_an_active_version(ann, org, row, ada):
    for role in ("VIEWER", "TEMPLATE_EDITOR", "APPROVER"):
        browser = client_of(Client, org, role, Membership.Role(role))
        assert post(browser, contact=str(ada.pk), do="send").status_code == 404
    templates_row = row.template
    TemplateVersion.objects.filter(template=templates_row).update(state="ARCHIVED")
    assert ann.get(url("template_send", "order")).status_code == 404
    other = client_of(Client, factories.organization("other"), "eve")
    assert post(other, contact=str(ada.pk), do="send").status_code == 404
