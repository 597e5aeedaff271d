"""Each person sees and does what its role allows, in its own organizations alone."""

import re

import pytest
from django.urls import reverse

from messaging.console.masks import mask
from messaging.models import (
    Category,
    ConsentEntry,
    Event,
    Message,
    Pause,
    ProviderAccount,
    SenderDomain,
    Suppression,
    TemplateVersion,
    WebhookEndpoint,
)
from push.models import Device
from rme.crm.models import Account, Contact, Exhibitor
from rme.crm.models import Event as CrmEvent
from rme.tenants.models import ApiKey, Application, Invitation, Membership, Organization, User
from tests import factories
from tests.tenants.admin.scene import LISTED, MODELS, PASSWORD, button, fill, page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role

TENANT_MODELS = [
    model
    for model in MODELS
    if model._meta.app_label in ("messaging", "push", "crm")
    or model in (Application, ApiKey, Invitation, Membership, Organization)
]


def first_of(model, org):
    path = {Organization: "pk", TemplateVersion: "template__organization_id"}
    return model._default_manager.filter(**{path.get(model, "organization_id"): org.pk}).first()


@pytest.mark.xdist_group("roles-filled")  # one worker fills it once
class TestFilled:
    """Tests that look at one filled organization, each in a savepoint of its own."""

    @pytest.mark.parametrize("role", [Role.OWNER, Role.VIEWER])
    @pytest.mark.parametrize("model", TENANT_MODELS, ids=lambda model: model._meta.label)
    def test_strangers_see_nothing(self, filled, model, role):
        row = first_of(model, filled)
        stranger = person("stranger", factories.organization("other"), role)
        listed = stranger.get(page(model, "changelist"), follow=True)
        if listed.status_code == 200:
            shown = listed.content.decode()
            assert str(row.pk) not in re.findall(r"/([\w-]+)/change/", shown)
            assert model in LISTED or f"/{row.pk}/" not in shown
        else:
            assert (listed.status_code, role) == (403, Role.VIEWER)
        for name in ("change", "history", "delete"):
            assert stranger.get(page(model, name, row.pk)).status_code == 404
            assert stranger.post(page(model, name, row.pk), {"post": "yes"}).status_code in (
                403,
                404,
            )
        assert first_of(model, filled) == row

    @pytest.mark.parametrize(
        ("model", "name"),
        [(ApiKey, "revoke"), (Application, "rotate"), (ApiKey, "secret"), (Application, "secret")],
    )  # fmt: skip
    def test_strangers_have_no_buttons(self, filled, model, name):
        stranger = person("stranger", factories.organization("other"), Role.OWNER)
        assert stranger.post(button(model, first_of(model, filled), name)).status_code == 404

    @pytest.mark.parametrize(
        ("model", "readers"),
        [
            (ApiKey, {"OWNER", "DEVELOPER"}),
            (Application, {"OWNER", "DEVELOPER"}),
            (Membership, {"OWNER"}),
            (Invitation, {"OWNER"}),
            (Organization, {"OWNER"}),
            (Contact, {"OWNER", "OPERATOR", "VIEWER"}),
            (ProviderAccount, {"OWNER", "OPERATOR", "VIEWER", "DEVELOPER"}),
            (WebhookEndpoint, {"OWNER", "OPERATOR", "VIEWER", "DEVELOPER"}),
            (TemplateVersion, set(Role.values) - {"SUPPORT"}),
            (Message, {"OWNER", "OPERATOR", "VIEWER", "SUPPORT", "DEVELOPER"}),
            (User, set()),
        ],
    )
    def test_reading_needs_the_role(self, filled, model, readers):
        row = User.objects.first() if model is User else first_of(model, filled)
        for role in Role.values:
            browser = person(role, filled, role)
            listed = browser.get(page(model, "changelist"), follow=True)
            assert (role, listed.status_code) == (role, 200 if role in readers else 403)
            opened = browser.get(page(model, "change", row.pk), follow=True)
            assert (role, opened.status_code) == (role, 200 if role in readers else 404)
            assert PASSWORD not in opened.content.decode()


ADD = {
    Invitation: {"OWNER"},
    ProviderAccount: {"OWNER"},
    SenderDomain: {"OWNER"},
    ApiKey: {"OWNER", "DEVELOPER"},
    Application: {"OWNER", "DEVELOPER"},
    WebhookEndpoint: {"OWNER", "DEVELOPER"},
    Contact: {"OWNER", "OPERATOR"},
    ConsentEntry: {"OWNER", "OPERATOR"},
    Suppression: {"OWNER", "OPERATOR"},
    Device: {"OWNER", "OPERATOR"},
    Category: {"OWNER", "OPERATOR"},
    Pause: {"OWNER", "OPERATOR"},
}


@pytest.mark.parametrize("model", ADD, ids=lambda model: model._meta.label)
def test_adding_needs_the_role(org, model):
    got = {r: person(r, org, r).get(page(model, "add")).status_code for r in Role.values}
    opens = 200 if model in {*LISTED, ApiKey, Application} else 302  # to the console
    assert got == {role: opens if role in ADD[model] else 403 for role in Role.values}


def test_an_editor_cannot_touch_keys(org):
    fill(org)
    editor = person("editor", org, Role.OPERATOR)
    for model, name in ((ApiKey, "revoke"), (Application, "rotate")):
        assert editor.post(button(model, first_of(model, org), name)).status_code in (403, 404)
    assert ApiKey.objects.get().revoked_at is None


def test_support_reads_deliveries_and_not_contents(org):
    fill(org)
    row = Message.objects.get()
    secret = b"hello"  # the variable of the message
    record = f"/admin/console/{org.pk}/messages/{row.pk}/record/"
    support = person("support", org, Role.SUPPORT).get(record)
    viewer = person("viewer", org, Role.VIEWER).get(record)
    assert secret in viewer.content
    assert secret not in support.content
    assert b"DELIVERED" in support.content


def test_support_sees_masked_addresses(org):
    fill(org)
    row = Message.objects.get()
    ada = Contact.objects.get(organization=org, email__gt="")
    # a provider's text may repeat the address
    Event.objects.filter(message_id=row.pk).update(detail=f"250 {ada.email} queued")
    seen = {}
    for role in (Role.SUPPORT, Role.DEVELOPER, Role.VIEWER):
        record = f"/admin/console/{org.pk}/messages/{row.pk}/record/"
        shown = person(role, org, role).get(record).content.decode()
        seen[role] = (ada.email in shown, mask(ada.email) in shown)
    assert seen == {"SUPPORT": (False, True), "DEVELOPER": (False, True), "VIEWER": (True, False)}


def exhibitor(org, **fields):
    """Return the form of an exhibitor at an event of an organization."""
    event = CrmEvent.objects.create(
        organization=org, name="Congress", starts_at="2026-01-01T00:00Z"
    )
    return {"organization": org.pk, "event": event.pk, "status": "Confirmed", **fields}


def test_choices_offer_nothing_of_another_organization(org):
    other = factories.organization("other")
    theirs = Account.objects.create(organization=other, name="Theirs")
    owner = person("owner", org, Role.OWNER)
    form = exhibitor(org, account=theirs.pk)
    errors = owner.post(page(Exhibitor, "add"), form).context["adminform"].form.errors
    assert set(errors) == {"account"}
    form = exhibitor(org, organization=other.pk)
    errors = owner.post(page(Exhibitor, "add"), form).context["adminform"].form.errors
    assert set(errors) == {"organization"}
    asked = {"app_label": "crm", "model_name": "exhibitor", "field_name": "account"}
    assert owner.get("/admin/autocomplete/", asked).json()["results"] == []


def test_rows_of_two_organizations_cannot_be_mixed(root, org):
    other = factories.organization("other")
    theirs = Account.objects.create(organization=other, name="Theirs")
    form = exhibitor(org, account=theirs.pk)
    errors = root.post(page(Exhibitor, "add"), form).context["adminform"].form.errors
    assert errors == {"account": ["This belongs to another organization."]}


def test_row_without_an_organization_is_an_error_at_the_field(root, org):
    form = exhibitor(org, organization="")
    errors = root.post(page(Exhibitor, "add"), form).context["adminform"].form.errors
    assert set(errors) == {"organization"}


def test_people_join_by_invitation_only(org):
    User.objects.create_user("grace", is_staff=True)
    owner = person("owner", org, Role.OWNER)
    organization = page(Organization, "change", org.pk)
    assert b"grace" not in owner.get(organization).content
    form = {"organization": org.pk, "user": "grace", "role": "VIEWER"}
    for call in (owner.get, owner.post):
        assert call(page(Membership, "add"), form)["Location"] == page(Invitation, "add")
    assert person("viewer", org, Role.VIEWER).get(page(Membership, "add")).status_code == 403
    row = Membership.objects.get(user__username="owner")
    fields = owner.get(organization).context["adminform"].form.initial
    rows = {
        "memberships-TOTAL_FORMS": 2, "memberships-INITIAL_FORMS": 1, "memberships-0-id": row.pk,
        "memberships-0-organization": org.pk, "memberships-0-role": "OWNER",
        "memberships-1-user": "grace", "memberships-1-organization": org.pk,
        "memberships-1-role": "VIEWER",
    }  # fmt: skip
    assert owner.post(organization, {**fields, **rows}).status_code == 302
    assert not Membership.objects.filter(user__username="grace").exists()


def test_owner_cannot_verify_domains_or_activate_the_organization(org):
    domain = SenderDomain.objects.create(organization=org, domain="bank.example")
    owner = person("owner", org, Role.OWNER)
    verify = reverse("console:domain", args=[org.pk, domain.pk])
    assert owner.post(verify, {"do": "verify"}).status_code == 403
    domain.refresh_from_db()
    assert domain.verified_at is None
    shown = owner.get(page(Organization, "change", org.pk)).content
    assert b'name="is_active"' not in shown
    assert b'name="name"' in shown


def test_sidebar_shows_only_accessible_pages(org):
    support = person("support", org, Role.SUPPORT).get("/admin/").content.decode()
    assert "/admin/console/acme/messages/" in support
    assert "/admin/console/acme/programs/" not in support
    assert "/admin/console/acme/contacts/" not in support
