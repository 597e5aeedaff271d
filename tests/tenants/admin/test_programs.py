"""Nobody gives a program more than their own role includes, or gets the secret of one that has."""

from uuid import uuid4

import pytest

from messaging.models import WebhookEndpoint
from messaging.reports import configuration
from rme.tenants.access.roles import Permission
from rme.tenants.models import (
    INTEGRATION_GROUP,
    ApiKey,
    Application,
    Membership,
    RequestLogEntry,
    User,
)
from rme.tenants.oauth import api_keys, applications, makers
from rme.tenants.oauth.permissions import ALL_PERMISSIONS, Grants
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import button, page, person
from tests.threads import during

pytestmark = pytest.mark.django_db
Role = Membership.Role
HARMLESS = ["READ_MESSAGES", "READ_TEMPLATES", "READ_WEBHOOKS", "CHANGE_WEBHOOKS", "READ_HEALTH"]


@pytest.fixture
def developer(org):
    return person("dev", org, Role.DEVELOPER)


@pytest.fixture
def owner(org):
    return person("owner", org, Role.OWNER)


def form_of(org, **fields):
    user = factories.integration_user("robot")
    applications_of_it = Application.objects.filter(user=user, organization=org)
    if not applications_of_it.exists():  # so that people of the organization may choose it
        factories.application(org, user)
    basics = {"organization": org.pk, "name": "CRM", "user": user.pk, "mode": "LIVE"}
    return {**basics, "permissions": HARMLESS, "send_categories": "TRANSACTIONAL", **fields}


def errors_of(answer):
    return set(answer.context["adminform"].form.errors) if answer.status_code == 200 else set()


@pytest.mark.parametrize("more", sorted(set(ALL_PERMISSIONS) - set(HARMLESS)))
def test_developer_cannot_grant_a_live_application_more_than_its_role(developer, owner, org, more):
    form = form_of(org, permissions=[*HARMLESS, more])
    assert errors_of(developer.post(page(Application, "add"), form)) == {"permissions"}
    assert errors_of(owner.post(page(Application, "add"), form)) == set()
    assert Application.objects.filter(name="CRM").count() == 1


@pytest.mark.parametrize("categories", ["MARKETING", "*", "TRANSACTIONAL,NEWS"])
def test_developer_cannot_let_a_live_application_send_marketing(developer, owner, org, categories):
    form = form_of(org, send_categories=categories)
    assert errors_of(developer.post(page(Application, "add"), form)) == {"send_categories"}
    assert errors_of(owner.post(page(Application, "add"), form)) == set()


def test_grants_of_a_developer_are_stored(developer, org):
    assert developer.post(page(Application, "add"), form_of(org)).status_code == 302
    row = Application.objects.get(name="CRM")
    maker = User.objects.get(username="dev").person
    assert (row.permissions, row.send_categories, row.maker) == (
        HARMLESS,
        ["TRANSACTIONAL"],
        maker,
    )
    initial = developer.get(page(Application, "add")).context["adminform"].form.initial
    assert (initial["permissions"], initial["send_categories"]) == (HARMLESS, ["TRANSACTIONAL"])


def test_test_application_may_get_permissions_for_test_data(developer, org):
    in_test = sorted(set(ALL_PERMISSIONS) - {"READ_PEOPLE"})
    form = form_of(org, mode="TEST", permissions=in_test, send_categories="*")
    assert errors_of(developer.post(page(Application, "add"), form)) == set()
    row = Application.objects.get(name="CRM")
    live = developer.post(page(Application, "change", row.pk), {**form, "mode": "LIVE"})
    assert errors_of(live) == {"permissions", "send_categories"}
    row.refresh_from_db()
    assert row.mode == "TEST"


def test_developer_can_see_a_stronger_program_but_not_renew_its_secret(developer, org):
    strong, _ = applications.create_application(org, "CRM", factories.integration_user("robot"))
    before = strong.client_secret
    asked = developer.get(page(Application, "change", strong.pk))
    assert "your role doesn&#x27;t include" in asked.content.decode()
    tried = [
        developer.post(button(Application, strong, "rotate"), {"ends": "0"}),
        developer.post(button(Application, strong, "confirm")),
        developer.post(page(Application, "change", strong.pk), form_of(org, name="mine")),
    ]
    assert [each.status_code for each in tried] == [403] * 3
    strong.refresh_from_db()
    assert (strong.client_secret, strong.name, strong.maker) == (before, "CRM", None)
    assert developer.get(button(Application, strong, "end_former")).status_code == 302


@pytest.mark.parametrize("actions", [[], ["Confirm_Contact"], ["Create_Case"]])
def test_developer_cannot_issue_a_key_reading_or_creating_people(developer, owner, org, actions):
    form = {"organization": org.pk, "name": "bot", "networks": "", "actions": actions}
    assert errors_of(developer.post(page(ApiKey, "add"), form)) == {"actions"}
    assert errors_of(owner.post(page(ApiKey, "add"), form)) == set()
    row = ApiKey.objects.get()
    assert row.maker == User.objects.get(username="owner").person
    assert developer.post(button(ApiKey, row, "rotate")).status_code == 403
    assert developer.post(button(ApiKey, row, "revoke")).status_code == 302  # ends it, at any time
    row.refresh_from_db()
    assert row.revoked_at is not None


def test_developer_cannot_subscribe_an_endpoint_to_events_of_people(developer, owner, org):
    form = {"url": "https://hooks.example.com/x", "description": "", "do": "save"}
    for types in (["consent.changed"], ["message.*", "device.registered"], ["suppression.lifted"]):
        answer = developer.post(url("new_webhook"), {**form, "types": types})
        assert set(answer.context["form"].errors) == {"types"}
        assert owner.post(url("new_webhook"), {**form, "types": types}).status_code == 302
    row = WebhookEndpoint.objects.first()
    moved = {**form, "url": "https://evil.example.com/x", "types": row.types}
    refused = developer.post(url("webhook_settings", row.pk), moved)
    assert set(refused.context["form"].errors) == {"types"}
    answer = developer.post(url("new_webhook"), {**form, "types": ["message.*"]})
    assert answer.status_code == 302


def test_program_of_a_maker_who_lost_a_permission_keeps_working_and_is_reviewed(owner, org):
    people = User.objects.create_user("gone", is_staff=True)
    member = Membership.objects.create(user=people, organization=org, role=Role.OWNER)
    robot = factories.integration_user("robot")
    given = Grants.of(["READ_CONSENT", "READ_MESSAGES"], ["TRANSACTIONAL"])
    app, _ = applications.create_application(org, "CRM", robot, grants=given, maker=people.person)
    key, _ = api_keys.issue(org, "bot", actions=["Create_Case"], maker=people.person)
    applications.create_application(org, "older", robot)
    assert makers.unbacked_programs([org.pk]) == []
    Membership.objects.filter(pk=member.pk).update(role=Role.DEVELOPER)
    assert [(each.row, each.missing) for each in makers.unbacked_programs([org.pk])] == [
        (app, [Permission.SEE_PEOPLE]),
        (key, [Permission.CHANGE_PEOPLE]),
    ]
    found = [each for each in configuration.findings([org.pk]) if each.code.startswith("PROGRAM")]
    assert [each.message.partition(" may")[0] for each in found] == ["CRM", "bot"]
    assert owner.get(url("programs")).content.decode().count("Its maker has lost these rights") == 2
    opened = owner.get(page(Application, "change", app.pk)).content.decode()
    assert "gone, who has lost these rights: See contacts" in opened
    people.delete()
    missing = makers.unbacked_programs([org.pk])[0].missing
    assert Permission.SEE_MESSAGES in missing
    for row in (app, key):
        assert owner.get(button(type(row), row, "confirm")).status_code == 200
        owner.post(button(type(row), row, "confirm"))
    assert makers.unbacked_programs([org.pk]) == []
    assert audited.summaries()[-2:] == [("owner", "CHANGED", "confirmed")] * 2
    app.refresh_from_db()
    assert app.permissions == ["READ_MESSAGES", "READ_CONSENT"]  # nothing was taken from it
    deleted = Membership.objects.filter(user__username="owner")
    deleted.delete()
    assert len(makers.unbacked_programs([org.pk])) == 2


def test_application_without_a_user_gets_one_of_its_own(owner, org):
    form = {**form_of(org), "user": "", "name": "Web Shop"}
    for number in ("", "-2"):
        answer = owner.post(page(Application, "add"), form)
        assert answer.status_code == 302
        row = Application.objects.latest("pk")
        assert row.user.username == f"acme.web-shop{number}"
        assert not row.user.has_usable_password()
        assert not row.user.is_staff
        assert [each.name for each in row.user.groups.all()] == [INTEGRATION_GROUP]
        assert not Membership.objects.filter(user=row.user).exists()


def test_user_of_another_organization_is_refused(org, root):
    other = factories.organization("other")
    robot = factories.integration_user("robot")
    factories.application(other, robot)
    form = {**form_of(org, user=robot.pk)}
    Application.objects.filter(organization=org).delete()
    answer = root.post(page(Application, "add"), form)
    assert errors_of(answer) == {"user"}
    assert "another organization" in answer.content.decode()
    own = Application.objects.create(organization=org, user=robot, name="old")  # before this rule
    form = {**form, "name": "renamed", "user": robot.pk}
    assert errors_of(root.post(page(Application, "change", own.pk), form)) == set()


FIRST = "its first request since this secret was made."


def request_of(row, route):
    RequestLogEntry.objects.create(
        organization_id=row.organization_id,
        application_id=row.pk,
        request_id=uuid4(),
        method="GET",
        route=route,
        status=200,
        code="",
        microseconds=1,
    )


def test_page_of_a_new_secret_shows_the_first_request(owner, org):
    answer = owner.post(page(Application, "add"), {**form_of(org), "user": ""}, follow=True)
    text = answer.content.decode()
    assert "No request yet." in text
    row = Application.objects.latest("pk")
    request_of(row, "/suppressions")
    request_of(row, "/messages")
    shown = owner.get(page(Application, "secret", row.pk)).content.decode()
    assert f"GET /suppressions: {FIRST}" in shown


def test_page_of_a_rotated_secret_shows_the_first_request_since(owner, org):
    row = factories.application(org, factories.integration_user("robot"))
    request_of(row, "/suppressions")
    made = owner.post(button(Application, row, "rotate"), {"ends": "24"})
    assert "No request yet." in owner.get(made["Location"]).content.decode()
    request_of(row, "/messages")
    request_of(row, "/templates")
    assert f"GET /messages: {FIRST}" in owner.get(made["Location"]).content.decode()


@pytest.mark.parametrize("since", ["x", "-1", "9" * 13, "9" * 40])
def test_page_of_a_secret_takes_any_time(owner, org, since):
    row = factories.application(org, factories.integration_user("robot"))
    answer = owner.get(page(Application, "secret", row.pk), {"since": since})
    assert "No request yet." in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_double_click_gives_each_application_a_user_of_its_own(org):
    def name():
        return applications.integration_user(org, "Shop").username

    assert during(name, name) == ["acme.shop-2"]
    assert User.objects.filter(username="acme.shop").exists()
