"""The audit's page: by organization, filtered, with every kind of entry and an export."""

import csv
import io

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.console.routing import account_form
from messaging.models import Message, ProviderAccount, SavedFilter
from messaging.providers import REGISTRY
from push.models import Device
from rme.core.cache import TtlCache
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.admin.base import ReadOnly
from rme.tenants.audit import Action, Actor
from rme.tenants.models import (
    ApiKey,
    Application,
    AuditEntry,
    Invitation,
    Membership,
    Organization,
    User,
)
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import button, page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role
OLGA = Actor(7, "olga", address="192.0.2.1", user_agent="Firefox", request_id="5f2e")
DEPLOYMENT = reverse("console:deployment_audit")


@pytest.fixture
def owner(org):
    return person("owner", org, Role.OWNER)


def note(row, action=Action.CHANGED, actor=OLGA, **said):
    audit.record(actor, [audit.about(row, action, **said)])


def shown(client, query=""):
    """Return the lines of the page: who, what and which object."""
    return [
        (each.entry.actor_name, each.entry.action, each.label)
        for each in client.get(url("audit") + query).context["lines"]
    ]


def test_page_shows_actor_change_reason_and_origin(owner, org):
    ada = factories.contact(org)
    note(ada, changes={"email": ["a@x.example", "b@x.example"]}, reason="asked to")
    text = owner.get(url("audit")).content.decode()
    parts = ["olga", "Changed", "email: a@x.example → b@x.example", "reason: asked to"]
    parts += ["192.0.2.1", "Ada Lovelace"]
    assert [part for part in parts if part not in text] == []
    entry = AuditEntry.objects.get(action="CHANGED")
    assert f'href="{url("audit_entry", entry.pk)}"' in text
    page = owner.get(url("audit_entry", entry.pk)).content.decode()
    further = [*parts, "Firefox", "5f2e", url("person", ada.pk)]
    assert [part for part in further if part not in page] == []
    audit.erase(org.pk, str(ada.pk))
    text = owner.get(url("audit")).content.decode()
    assert "Erased with the person" in text
    assert "a@x.example" not in text


def test_filters_are_in_the_address(owner, org):
    ada, bob = factories.contacts(org, 2)
    note(ada)
    note(bob, Action.DELETED, Actor(9, "sam"))
    newest, oldest = [("sam", "DELETED", "First1 Last1"), ("olga", "CHANGED", "First0 Last0")]
    assert shown(owner) == [newest, oldest]
    assert shown(owner, "?person=olga") == [oldest]
    assert shown(owner, "?action=DELETED") == [newest]
    assert shown(owner, "?kind=crm.contact&object=first0") == [oldest]
    assert shown(owner, "?until=2020-01-01T00:00") == []
    assert shown(owner, "?since=2020-01-01T00:00&action=NOTHING&kind=x") == [newest, oldest]
    for wrong in ("?since=never", "?after=x", "?person=%00", "?object=" + "x" * 999):
        assert owner.get(url("audit") + wrong).status_code == 200


def test_pages_follow_each_other(owner, org):
    for each in factories.contacts(org, 53):
        note(each)
    first = owner.get(url("audit")).context
    rest = owner.get(f"{url('audit')}?after={first['following']}").context
    labels = [each.label for each in (*first["lines"], *rest["lines"])]
    assert labels == [f"First{n} Last{n}" for n in range(52, -1, -1)]
    assert rest["following"] is None


def test_the_page_asks_as_often_for_3_entries_as_for_1(owner, org):
    counts = []
    owner.get(url("audit"))  # the session keeps the organization
    for more in (1, 2):
        for each in factories.contacts(org, more):
            note(each)
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            owner.get(url("audit"))
        counts.append(len(captured))
    assert counts == [10, 10]


def test_export_escapes_formulas_and_is_audited(owner, org):
    note(org, changes={"name": ["=1+1", "B"]}, reason="@home")
    note(org, Action.DELETED)
    found = owner.post(url("audit_export"), {"action": "CHANGED"})
    assert found["Content-Disposition"] == 'attachment; filename="audit-acme.csv"'
    header, row = csv.reader(io.StringIO(b"".join(found.streaming_content).decode()))
    assert header[:4] == ["time", "person", "acting as", "action"]
    assert row[1:] == [
        "olga", "", "CHANGED", "tenants.organization", "Acme", "acme", "", "name: =1+1 → B",
        "'@home", "192.0.2.1", "5f2e", "Firefox",
    ]  # fmt: skip
    (line,) = audited.entries(action="EXPORTED")
    assert (line.entry.actor_name, line.values.text) == ("owner", "audit")
    assert line.lines == ["filter: – → Action: Changed"]
    assert owner.get(url("audit_export")).status_code == 405


def test_audit_needs_its_role_and_organization(org):
    other = factories.organization("other")
    note(org)
    note(other)
    found = {}
    for role in Role.values:
        client = person(role, org, role)
        lead = client.get(reverse("console:first_audit")).status_code
        found[role] = (client.get(url("audit")).status_code, lead)
        assert client.get(DEPLOYMENT).status_code == 404
        shown_menu = url("audit") in client.get("/admin/").content.decode()
        assert shown_menu == (role == Role.OWNER)
    missing = {Role.TEMPLATE_EDITOR: (404, 403), Role.APPROVER: (404, 403)}
    assert found == {
        role: missing.get(role, (403, 403)) for role in Role.values
    } | {Role.OWNER: (200, 302)}  # fmt: skip
    stranger = person("stranger", other, Role.OWNER)
    assert stranger.get(url("audit")).status_code == 404
    assert stranger.post(url("audit_export")).status_code == 404
    lines = stranger.get(url("audit", org="other")).context["lines"]
    assert {each.entry.organization_id for each in lines} == {"other"}


def test_superusers_see_entries_without_an_organization(root, org):
    note(org)
    audit.record(OLGA, [audit.NewEntry(Action.LOGIN_FAILED, text="unknown account")])
    lines = root.get(DEPLOYMENT).context["lines"]
    assert [(each.entry.action, each.entry.organization_id) for each in lines] == [
        ("LOGIN_FAILED", None)
    ]
    found = root.post(reverse("console:deployment_audit_export"), {})
    assert b"".join(found.streaming_content).count(b"\r\n") == 3  # its own record is the last
    assert shown(root) == [("olga", "CHANGED", "Acme")]


# --- what is recorded ---------------------------------------------------------------------------
def last():
    """Return the newest entry: who, what, which kind of object, in which organization."""
    line = audited.entries()[-1]
    entry = line.entry
    return entry.actor_name, entry.action, entry.kind, entry.organization_id


def test_roles_keys_and_invitations_have_their_own_audit_actions(owner, org):
    grace = User.objects.create_user("grace", is_staff=True)
    row = Membership.objects.create(organization=org, user=grace, role="VIEWER")
    owner.post(page(Membership, "change", row.pk), {"role": "SUPPORT"})
    assert last() == ("owner", "ROLE_CHANGED", "tenants.membership", "acme")
    owner.post(page(Membership, "delete", row.pk), {"post": "yes"})
    assert last() == ("owner", "ROLE_TAKEN", "tenants.membership", "acme")
    owner.post(page(Invitation, "add"),
               {"organization": org.pk, "email": "s@x.example", "role": "VIEWER"})  # fmt: skip
    assert last() == ("owner", "INVITED", "tenants.invitation", "acme")
    owner.post(page(Invitation, "delete", Invitation.objects.get().pk), {"post": "yes"})
    assert last() == ("owner", "WITHDRAWN", "tenants.invitation", "acme")
    owner.post(page(ApiKey, "add"), {"organization": org.pk, "name": "bot", "networks": ""})
    assert last() == ("owner", "KEY_CREATED", "tenants.apikey", "acme")
    key = ApiKey.objects.get()
    owner.post(button(ApiKey, key, "rotate"))
    assert [each[1] for each in audited.summaries()[-2:]] == ["KEY_ROTATED", "KEY_CREATED"]
    owner.post(button(ApiKey, key, "revoke"))
    assert last() == ("owner", "KEY_REVOKED", "tenants.apikey", "acme")
    actions = list(AuditEntry.objects.values_list("action", flat=True))
    assert len(actions) == 8  # each once


def test_rows_of_an_inline_have_their_own_entries(root, org):
    sam = User.objects.create_user("sam", is_staff=True)
    row = Membership.objects.create(organization=org, user=sam, role="VIEWER")
    form = {
        "name": org.name, "zone": "UTC", "language": "en_US", "region": "CH",
        "brand_color": "#1f4e79", "calls_per_second": 100, "calls_per_day": 1_000_000,
        "is_active": "on", "simulator": "on", "memberships-TOTAL_FORMS": 1,
        "memberships-INITIAL_FORMS": 1, "memberships-0-id": row.pk,
        "memberships-0-organization": org.pk, "memberships-0-role": "SUPPORT",
    }  # fmt: skip
    Organization.objects.update(simulator=True)
    changed = page(Organization, "change", org.pk)
    assert root.post(changed, form).status_code == 302
    assert [(each.entry.action, each.lines) for each in audited.entries()] == [
        ("CHANGED", ["region: US → CH"]),
        ("ROLE_CHANGED", ["role: VIEWER → SUPPORT"]),
    ]
    assert root.post(changed, {**form, "memberships-0-DELETE": "on"}).status_code == 302
    line = audited.entries()[-1]
    assert (line.entry.action, line.entry.object_id) == ("ROLE_TAKEN", str(row.pk))
    assert AuditEntry.objects.count() == 3


def test_role_granted_by_a_superuser_is_in_the_organizations_audit(root, org):
    sam = User.objects.create_user("sam", is_staff=True)
    changed = page(User, "change", sam.pk)
    fields = root.get(changed).context["adminform"].form.initial
    form = {name: value for name, value in fields.items() if value not in (None, [], False)}
    form |= {
        "date_joined_0": "2026-11-01", "date_joined_1": "10:00:00",
        "memberships-TOTAL_FORMS": 1, "memberships-INITIAL_FORMS": 0,
        "memberships-0-user": sam.pk, "memberships-0-organization": org.pk,
        "memberships-0-role": "VIEWER",
    }  # fmt: skip
    assert root.post(changed, form).status_code == 302
    granted = [each for each in audited.entries() if each.entry.action == "ROLE_GRANTED"]
    assert [(each.entry.organization_id, each.lines) for each in granted] == [
        ("acme", ["organization: – → Acme", "role: – → VIEWER"])
    ]


def test_reading_contents_is_recorded_once_a_page(org):
    ada = factories.contact(org)
    content = {"subject": "Hi", "html": "<b>Hello</b>"}
    Api(org).send(message(ada, template=None, content=content))
    key = Message.objects.get().pk
    viewer, support = (person(role, org, role) for role in (Role.VIEWER, Role.SUPPORT))
    for _ in range(2):
        viewer.get(url("message", key))
        viewer.get(url("html", key, 0))
        support.get(url("message", key))
        viewer.get(url("message_record", key))
        support.get(url("message_record", key))
    assert audited.summaries() == [("VIEWER", "READ", "to recipient 1")]
    assert {line.entry.object_id for line in audited.entries()} == {str(key)}


def test_saved_filters_are_recorded(owner, org):
    owner.post(url("filters"), {"name": "Failures", "status": "FAILED", "is_shared": "on"})
    row = SavedFilter.objects.get()
    owner.post(url("filter", row.pk), {"name": "Failed"})
    owner.post(url("filter", row.pk), {"do": "delete"})
    assert [(each.entry.action, each.values.label, each.lines) for each in audited.entries()] == [
        ("ADDED", "Failures", ["query: – → status=FAILED", "is_shared: – → True"]),
        ("CHANGED", "Failed", ["name: Failures → Failed"]),
        ("DELETED", "Failed", []),
    ]


def test_frame_opened_alone_is_audited(owner, org):
    content = {"subject": "Hi", "html": "<b>Hello</b>"}
    Api(org).send(message(factories.contact(org), template=None, content=content))
    owner.get(url("html", Message.objects.get().pk, 0))
    assert audited.summaries() == [("owner", "READ", "to recipient 1")]


def test_entry_has_address_request_id_and_user_agent(org):
    client = person("owner", org, Role.OWNER)
    client.defaults |= {"REMOTE_ADDR": "198.51.100.7", "HTTP_USER_AGENT": "Browser " + "x" * 300}
    answer = client.post(url("contact_new"), {"last_name": "L"})
    entry = AuditEntry.objects.get()
    assert (entry.address, entry.request_id) == ("198.51.100.7", answer["X-Request-Id"])
    assert entry.user_agent == "Browser " + "x" * 192


def test_history_of_a_row_comes_from_the_audit(owner, org):
    ada = factories.contact(org)
    note(ada, changes={"email": ["a@x.example", "b@x.example"]})
    text = owner.get(page(Contact, "history", ada.pk)).content.decode()
    assert "email: a@x.example → b@x.example" in text
    assert "olga" in text


# --- secrets ------------------------------------------------------------------------------------
def test_values_of_password_fields_are_not_stored(root, rf):
    """Every password field of every form of the admin counts as a secret, and their columns."""
    request = rf.get("/")
    request.user = User.objects.get(username="root")
    hidden, kept = set(), []
    for model, own in sorted(admin.site._registry.items(), key=lambda pair: pair[0]._meta.label):
        forms = [] if isinstance(own, ReadOnly) else [own.get_form(request, None)]
        fields = {name: field for form in forms for name, field in form.base_fields.items()}
        fields |= {each.name: each for each in model._meta.concrete_fields}
        for name, field in fields.items():
            secret = audit.is_secret(name, own.secret_fields, field)
            looks = any(part in name for part in LOOKS) or getattr(
                getattr(field, "widget", None), "input_type", ""
            ) == "password"  # fmt: skip
            hidden |= {f"{model._meta.label}.{name}"} if secret else set()
            kept += [f"{model._meta.label}.{name}"] if looks and not secret else []
    assert kept == []
    assert hidden >= {
        "messaging.ProviderAccount.credentials",
        "messaging.WebhookEndpoint.secret",
        "messaging.WebhookEndpoint.former_secret",
        "crm.Platform.credentials",
        "crm.Platform.setting_odoo_api_key",
        "push.Device.token",
        "push.Device.token_digest",
        "tenants.ApiKey.digest",
        "tenants.Application.client_secret",
        "tenants.Invitation.digest",
        "tenants.User.password",
    }


def test_password_fields_of_account_forms_are_secret():
    fields = {
        name: field
        for kind in REGISTRY
        for name, field in account_form.form_for(kind).base_fields.items()
    }
    looking = {
        name
        for name, field in fields.items()
        if any(part in name for part in LOOKS)
        or getattr(field.widget, "input_type", "") == "password"
    }
    assert {"setting_smtp_password", "setting_twilio_auth_token"} <= looking
    secret = {
        name
        for name, field in fields.items()
        if audit.is_secret(name, account_form.SECRET_FIELDS, field)
    }
    assert looking - secret == set()


LOOKS = ("password", "secret", "token", "digest", "credential", "private", "api_key")


def test_typed_and_deleted_secrets_are_masked(root, org):
    form = {"name": "mail", "channel": "EMAIL", "setting_smtp_port": "587",
            "setting_smtp_host": "mail.example", "setting_smtp_username": "u",
            "setting_smtp_password": "hunter2", "setting_smtp_security": "TLS"}  # fmt: skip
    added = root.post(url("new_provider", "smtp"), form)
    assert added.status_code == 302, added.context["form"].errors
    deleted = {"do": "delete", "sure": "on"}
    root.post(url("provider", ProviderAccount.objects.get().pk), deleted)
    assert not ProviderAccount.objects.exists()
    device = factories.device(org, factories.contact(org), token="simulator-hunter2")
    root.post(page(Device, "delete", device.pk), {"post": "yes"})
    application = factories.integration_user("robot")
    made = {"organization": org.pk, "name": "CRM", "user": application.pk, "mode": "LIVE"}
    root.post(page(Application, "add"), made)
    row = Application.objects.get(name="CRM")
    root.post(page(Application, "delete", row.pk), {"post": "yes"})
    lines = audited.lines()
    assert "setting_smtp_password: … → …" in lines
    assert "credentials: … → –" in lines
    assert "token: … → –" in lines
    assert "client_secret: … → –" in lines
    assert [line for line in lines if "hunter2" in line or row.client_secret in line] == []
