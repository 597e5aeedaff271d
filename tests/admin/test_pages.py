"""The admin: every page opens, and each person sees and does what its role allows."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging import consent, templates
from messaging.models import (
    Category,
    ConsentEntry,
    Delivery,
    Message,
    Pause,
    ProviderAccount,
    SenderDomain,
    Suppression,
    Template,
    TemplateVersion,
)
from rme.crm.models import (
    Account,
    Case,
    Contact,
    Event,
    EventRegistration,
    Exhibitor,
    Speaker,
)
from rme.tenants import api_keys
from rme.tenants.models import ApiKey, Application, Membership, User
from tests import factories
from tests.rest import Api, message, work

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def person(name, org=None, role=None, **fields):
    user = User.objects.create_user(name, password="pw", is_staff=True, **fields)
    if org:
        Membership.objects.create(user=user, organization=org, role=role)
    client = Client(raise_request_exception=True)
    client.force_login(user)
    return client


@pytest.fixture
def root(db):
    return person("root", is_superuser=True)


def fill(org):
    """Make a row of every model that has a page."""
    ada = factories.contact(org)
    account = Account.objects.create(organization=org, name="Northwind")
    Case.objects.create(organization=org, number="1", subject="S", issue="I", contact=ada)
    event = Event.objects.create(organization=org, name="Congress", starts_at=NOW)
    EventRegistration.objects.create(organization=org, event=event, name="Ada", email="a@b.example")
    Speaker.objects.create(organization=org, event=event, contact=ada)
    Exhibitor.objects.create(organization=org, event=event, account=account)
    factories.device(org, ada)
    Category.objects.create(organization=org, name="NEWS")
    Pause.objects.create(organization=org, reason="maintenance", channel="SMS")
    credentials = '{"host": "mail.example", "username": "u", "password": "hunter2-secret"}'
    ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL", credentials=credentials
    )
    Suppression.objects.create(
        organization=org, channel="EMAIL", address="x@y.example", reason="STOP"
    )
    decision = consent.Decision(str(ada.pk), "ALL", "ALL", "OPTED_IN", "API", NOW)
    consent.record(org.pk, [decision])
    api_keys.issue(org, "bot")
    Membership.objects.create(
        user=User.objects.create(username="member"), organization=org, role="VIEWER"
    )
    api = Api(org, mode="TEST")
    api.send(message(ada))
    work()
    return api


MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


def page(model, name, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def test_every_model_has_a_page():
    assert {model._meta.label for model in MODELS} >= {
        "tenants.Organization", "tenants.User", "tenants.Membership", "tenants.Application",
        "tenants.ApiKey", "crm.Contact", "crm.Account", "crm.Case", "crm.Event",
        "crm.EventRegistration", "crm.Speaker", "crm.Exhibitor", "push.Device",
        "messaging.Template", "messaging.TemplateVersion", "messaging.ConsentEntry",
        "messaging.Suppression", "messaging.ProviderAccount", "messaging.Category",
        "messaging.Pause", "messaging.SenderDomain", "messaging.Message",
    }  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_every_page_opens(root, org, model):
    fill(org)
    assert root.get("/admin/").status_code == 200
    assert root.get(page(model, "changelist"), {"q": "a"}).status_code == 200
    assert root.get(page(model, "changelist")).status_code == 200
    add = root.get(page(model, "add"))
    assert add.status_code == (403 if model is Message else 200)
    row = model._default_manager.first()
    assert row is not None
    shown = root.get(page(model, "change", row.pk))
    assert shown.status_code == 200
    assert b"hunter2-secret" not in shown.content
    assert b"simulator-delivered" not in shown.content


TENANT_MODELS = [
    model
    for model in MODELS
    if model._meta.app_label in ("messaging", "push", "crm") or model in (Application, ApiKey)
]


@pytest.mark.parametrize("model", TENANT_MODELS, ids=lambda model: model._meta.label)
def test_strangers_see_nothing(org, model):
    fill(org)
    other = factories.organization("other")
    stranger = person("stranger", other, Membership.Role.OWNER)
    listed = stranger.get(page(model, "changelist"))
    assert listed.status_code == 200
    row = model._default_manager.first()
    if model is SenderDomain:
        row = model.objects.get(organization=org)
    assert str(row.pk) not in re.findall(r"/([\w-]+)/change/", listed.content.decode())
    opened = stranger.get(page(model, "change", row.pk))
    assert opened.status_code == 302  # where Django leads for what does not exist
    assert opened["Location"] == "/admin/"


@pytest.mark.parametrize(
    ("role", "model", "status"),
    [
        (Membership.Role.EDITOR, Template, 200),
        (Membership.Role.EDITOR, ApiKey, 403),
        (Membership.Role.EDITOR, Application, 403),
        (Membership.Role.OWNER, ApiKey, 200),
        (Membership.Role.VIEWER, Template, 403),
        (Membership.Role.SUPPORT, Suppression, 403),
        (Membership.Role.OWNER, User, 403),
    ],
)
def test_what_a_role_may_add(org, role, model, status):
    assert person("p", org, role).get(page(model, "add")).status_code == status


def test_support_reads_deliveries_and_not_contents(org):
    fill(org)
    row = Message.objects.get()
    secret = b"hello"  # the variable of the message
    support = person("support", org, Membership.Role.SUPPORT).get(page(Message, "change", row.pk))
    viewer = person("viewer", org, Membership.Role.VIEWER).get(page(Message, "change", row.pk))
    assert secret in viewer.content
    assert secret not in support.content
    assert b"DELIVERED" in support.content


def test_an_applications_secret_is_shown_once(root, org):
    user = factories.integration_user("robot")
    form = {"organization": org.pk, "name": "CRM", "user": user.pk, "mode": "LIVE"}
    made = root.post(page(Application, "add"), form)
    row = Application.objects.get(name="CRM")
    (secret,) = re.findall(r"<code[^>]*>([A-Za-z0-9]{48})</code>", made.content.decode())
    from tests.rest import token

    assert token(row.client_id, secret).status_code == 200
    assert "no-store" in made["Cache-Control"]
    for url in (page(Application, "change", row.pk), page(Application, "changelist")):
        content = root.get(url).content.decode()
        assert secret not in content
        assert row.client_secret not in content


def test_an_api_key_is_shown_once_and_can_be_revoked(root, org):
    form = {"organization": org.pk, "name": "bot", "actions": "[]", "networks": "[]"}
    made = root.post(page(ApiKey, "add"), form)
    (text,) = re.findall(r"(rme_[a-z0-9]{16}_[\w-]{43})", made.content.decode())
    assert api_keys.verify(text, org.pk) is not None
    row = ApiKey.objects.get()
    assert text.encode() not in root.get(page(ApiKey, "change", row.pk)).content
    url = f"/admin/tenants/apikey/{row.pk}/revoke/"
    assert root.get(url).status_code == 200
    assert api_keys.verify(text, org.pk) is not None  # asking does nothing
    root.post(url)
    assert api_keys.verify(text, org.pk) is None


def test_consent_is_added_and_never_changed(root, org):
    form = {
        "organization": org.pk, "contact_id": "ada", "channel": "EMAIL", "category": "marketing",
        "status": "OPTED_IN", "evidence": "{}", "occurred_at_0": "2026-01-01",
        "occurred_at_1": "10:00",
    }  # fmt: skip
    response = root.post(page(ConsentEntry, "add"), form)
    assert response.status_code == 302, response.context["errors"]
    row = ConsentEntry.objects.get()
    assert (row.category, row.source, row.recorded_by) == ("MARKETING", "ADMIN", "root")
    assert root.post(page(ConsentEntry, "change", row.pk), form).status_code == 403
    assert root.post(page(ConsentEntry, "delete", row.pk), {"post": "yes"}).status_code == 403


def test_suppressions_are_normalised_and_protected(root, org):
    form = {
        "organization": org.pk,
        "channel": "EMAIL",
        "address": "Ada@EXAMPLE.com",
        "reason": "STOP",
    }
    assert root.post(page(Suppression, "add"), form).status_code == 302
    row = Suppression.objects.get()
    assert row.address == "ada@example.com"
    root.post(page(Suppression, "delete", row.pk), {"post": "yes"})
    assert Suppression.objects.exists()  # a reason has to be there first
    root.post(page(Suppression, "change", row.pk), {"note": "asked by phone"})
    root.post(page(Suppression, "delete", row.pk), {"post": "yes"})
    assert not Suppression.objects.exists()


def test_a_provider_account_keeps_its_password(root, org):
    form = {
        "organization": org.pk, "name": "mail", "kind": "smtp", "channel": "EMAIL", "priority": 1,
        "weight": 1, "match": "", "state": "ACTIVE", "setting_smtp_host": "mail.example",
        "setting_smtp_port": "587", "setting_smtp_security": "STARTTLS",
        "setting_smtp_username": "u", "setting_smtp_password": "hunter2-secret",
        "setting_smtp_timeout": "20",
    }  # fmt: skip
    bad = root.post(page(ProviderAccount, "add"), form | {"setting_smtp_port": "0"})
    assert "setting_smtp_port" in bad.context["adminform"].form.errors
    response = root.post(page(ProviderAccount, "add"), form)
    assert response.status_code == 302, response.context["adminform"].form.errors
    row = ProviderAccount.objects.get()
    assert '"hunter2-secret"' in row.credentials
    shown = root.get(page(ProviderAccount, "change", row.pk)).content
    assert b"mail.example" in shown
    assert b"hunter2-secret" not in shown
    form = form | {"setting_smtp_password": "", "setting_smtp_host": "other.example"}
    assert root.post(page(ProviderAccount, "change", row.pk), form).status_code == 302
    row.refresh_from_db()
    assert '"hunter2-secret"' in row.credentials
    assert "other.example" in row.credentials
    with connection.cursor() as cursor:
        cursor.execute("SELECT credentials FROM messaging_provideraccount")
        assert "hunter2" not in cursor.fetchone()[0]
    logged = " ".join(LogEntry.objects.values_list("change_message", flat=True))
    assert "other.example" in logged
    assert "hunter2" not in logged


def test_a_test_send_shows_the_outcome(root, org):
    row = ProviderAccount.objects.create(
        organization=org, name="sim", kind="simulator", channel="EMAIL"
    )
    url = f"/admin/messaging/provideraccount/{row.pk}/test-send/"
    assert root.get(url).status_code == 200
    assert b"Accepted" in root.post(url, {"to": "ada@example.com"}).content
    assert b"Retryable" in root.post(url, {"to": "down@simulator.rme.test"}).content
    assert b"no address" in root.post(url, {"to": "nobody"}).content


def test_a_new_version_is_previewed_and_made_active(root, org):
    template = Template.objects.get(channel="EMAIL")
    form = {
        "template": template.pk, "subject": "Hi {{ contact.first_name }}", "text": "",
        "html": "<p>{{ contact.name }}</p>", "mjml": "", "title": "", "body": "", "data": "{}",
        "image": "", "link": "", "variables": "{}", "badge": "",
    }  # fmt: skip
    response = root.post(page(TemplateVersion, "add"), form)
    assert response.status_code == 302, response.context["adminform"].form.errors
    row = template.versions.get(version=2)
    shown = root.get(page(TemplateVersion, "change", row.pk)).content.decode()
    assert "Hi Ada" in shown
    assert 'sandbox="" srcdoc="&lt;p&gt;Ada Lovelace&lt;/p&gt;"' in shown
    url = f"/admin/messaging/templateversion/{row.pk}/activate/"
    assert root.get(url).status_code == 200
    assert template.versions.get(state="ACTIVE").version == 1  # asking does nothing
    root.post(url)
    assert dict(template.versions.values_list("version", "state")) == {1: "ARCHIVED", 2: "ACTIVE"}
    assert root.post(page(TemplateVersion, "change", row.pk), form).status_code == 403
    broken = templates.save_version(template, {"subject": "{{ x", "text": "y"})
    url = f"/admin/messaging/templateversion/{broken.pk}/activate/"
    answer = root.post(url, follow=True)
    assert "subject: " in answer.content.decode()
    assert template.versions.get(state="ACTIVE") == row


def test_what_was_paused_goes_when_the_pause_is_deleted(root, org):
    api = Api(org)
    pause = Pause.objects.create(organization=org, reason="maintenance")
    api.send(message(factories.contact(org)))
    work()
    assert Delivery.objects.get().waiting == "PAUSED"
    root.post(page(Pause, "delete", pause.pk), {"post": "yes"})
    work()
    assert Delivery.objects.get().status == "DELIVERED"


@pytest.mark.parametrize(("model", "count"), [(Contact, 9), (Message, 7)])
def test_lists_do_not_ask_more_for_more_rows(root, org, model, count):
    api = Api(org)
    root.get(page(model, "changelist"))
    found = []
    for more in (3, 30):
        people = factories.contacts(org, more)
        api.bulk([message(each) for each in people])
        with CaptureQueriesContext(connection) as captured:
            assert root.get(page(model, "changelist")).status_code == 200
        found.append(len(captured))
    assert found[0] == found[1]
    assert found[0] <= count
