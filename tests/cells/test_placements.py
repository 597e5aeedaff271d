"""What calls get, and what workers do, for an organization that moves or has moved."""

from datetime import timedelta

import orjson
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.forms import modelform_factory
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging.delivery import claims, sweeper
from messaging.domain.statuses import Status
from messaging.links import PreferenceLink
from messaging.models import Delivery, Message, ProviderAccount
from messaging.store import due_work
from rme.cells import placements
from rme.core import errors
from rme.core.db import clock
from rme.core.placement import places
from rme.tenants.access import roles
from rme.tenants.admin.choices import TenantForm
from rme.tenants.models import ApplicationKey, AuditEntry, Invitation, Membership, Placement, User
from rme.tenants.oauth import applications
from tests import factories
from tests.bot.conftest import bot_of
from tests.cells.placement_scene import cell, place
from tests.rest import Api, message, token

__all__ = ["cell"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis", "cell")]

Phase = Placement.Phase
SETTINGS = orjson.dumps({"url": "https://sms.example", "dead_words": ["dead"]}).decode()
MOVED = (421, {"RME-Cell": "us"})
PAUSED = (503, {"RME-Paused": "1", "Retry-After": "1"})


def answer(response):
    names = ("RME-Cell", "RME-Paused", "Retry-After")
    return response.status_code, {each: response[each] for each in names if each in response}


@pytest.fixture
def ways(org):
    """Return a call of each kind that names the organization by something only it has."""
    api, bot, person = Api(org), bot_of(org), factories.contact(org)
    application, secret = applications.create_application(
        org, "other", factories.integration_user("other")
    )
    account = ProviderAccount.objects.create(
        organization=org, channel="SMS", kind="http_sms", name="t", credentials=SETTINGS
    )
    link = PreferenceLink(org.pk, str(person.pk), "EMAIL", "MARKETING").token
    return {
        "token": lambda: api.call("POST", "/messages", message(person)),
        "bulk": lambda: api.bulk([message(person)]),
        "history": lambda: api.call("GET", "/messages"),
        "client": lambda: token(application.client_id, secret),
        "bot": lambda: bot.get("Confirm_Contact", email=person.email),
        "callback": lambda: Client().post(f"/hooks/{account.public_id}"),
        "preferences": lambda: Client().get(f"/p/{link}"),
        "unsubscribe": lambda: Client().post(f"/p/u/{link}"),
    }


@pytest.mark.promise("errors-19")
@pytest.mark.parametrize(("phase", "expected"), [(Phase.MOVED, MOVED), (Phase.ARRIVING, MOVED)])
def test_a_moved_organization_is_served_by_its_cell(org, ways, phase, expected):
    place(org, phase)
    assert {name: answer(call()) for name, call in ways.items()} == dict.fromkeys(ways, expected)
    assert Message.objects.count() == 0


def test_a_paused_organization_is_asked_to_wait(org, ways):
    place(org, Phase.PAUSED)
    assert {name: answer(call()) for name, call in ways.items()} == dict.fromkeys(ways, PAUSED)
    assert ways["token"]().json()["error"]["code"] == "UNAVAILABLE"


def test_calls_of_leaving_and_unmoved_organizations_are_accepted(org, ways):
    place(org, Phase.LEAVING)
    place(factories.organization("other"), Phase.MOVED)
    assert ways["token"]().status_code == 202
    assert ways["client"]().status_code == 200


def test_call_in_a_cell_needs_no_additional_statement(org, settings):
    api, person = Api(org), factories.contact(org)
    counts = []
    for name in ("", "eu"):
        settings.CELL = name
        api.send(message(person))
        with CaptureQueriesContext(connection) as queries:
            assert api.send(message(person)).status_code == 202
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.django_db(transaction=True)
def test_storing_statement_rejects_a_moved_organization_despite_stale_caches(org, monkeypatch):
    api, person = Api(org), factories.contact(org)
    api.send(message(person))
    stored = Message.objects.count()
    monkeypatch.setattr(placements, "KNOWN_SECONDS", 3600.0)
    Placement.objects.create(pk=org.pk, phase=Phase.MOVED, cell="us")
    assert answer(api.send(message(person))) == MOVED
    assert Message.objects.count() == stored


def test_nothing_of_a_moving_organization_is_claimed_or_released(org, api):
    person = factories.contact(org)
    api.send(message(person))
    api.send(message(person))
    for phase in Phase:
        place(org, phase)
        assert claims.ready("EMAIL") == []
        assert claims.claim(org.pk, "EMAIL", priority=0).deliveries == []
    Placement.objects.all().delete()
    placements.forget()
    assert len(claims.claim(org.pk, "EMAIL", priority=0).deliveries) == 2


def test_scheduled_deliveries_of_a_moved_organization_stay_despite_stale_caches(
    org, api, monkeypatch
):
    api.send(message(factories.contact(org)))
    Delivery.objects.update(status=Status.SCHEDULED, due_at=clock.now() - timedelta(seconds=1))
    places().absent()
    monkeypatch.setattr(placements, "KNOWN_SECONDS", 3600.0)
    Placement.objects.create(pk=org.pk, phase=Phase.MOVED, cell="us")
    assert due_work.lock_scheduled(10) == []
    Placement.objects.all().delete()
    assert len(due_work.lock_scheduled(10)) == 1


def test_claims_of_a_dead_worker_are_reclaimed_while_an_organization_leaves(org, api):
    api.send(message(factories.contact(org)))
    claims.claim(org.pk, "EMAIL", priority=0)
    Delivery.objects.update(due_at=clock.now() - timedelta(seconds=1))
    place(org, Phase.PAUSED)
    assert sweeper.reclaim() == 0
    place(org, Phase.LEAVING)
    assert sweeper.reclaim() == 1
    assert Delivery.objects.get().status == Status.ACCEPTED


def test_person_does_not_see_organization_served_elsewhere(org, rf):
    person = User.objects.create(username="ann", is_staff=True)
    Membership.objects.create(user=person, organization=org, role="OWNER")
    request = rf.get("/admin/")
    request.user = person
    assert roles.organizations_of(request, roles.Permission.OPERATE) == [org.pk]
    place(org, Phase.MOVED)
    assert roles.organizations_of(request, roles.Permission.OPERATE) == []
    with pytest.raises(errors.Misdirected):
        roles.may(person, org.pk, roles.Permission.OPERATE)
    stranger = User.objects.create(username="bob", is_staff=True)
    assert not roles.may(stranger, org.pk, roles.Permission.OPERATE)


def test_commands_change_nothing_of_an_organization_served_elsewhere(org, tmp_path):
    file = tmp_path / "file.csv"
    file.write_text("channel,address\nSMS,+15550100\n")
    commands = [
        ("erase_contact", "1", "--org", org.pk, "--yes"),
        ("export_contact", "1", "--org", org.pk),
        ("decide_held", "--organization", org.pk, "--reason", "r", "--give-up"),
        ("import_suppressions", str(file), "--org", org.pk),
        ("export_suppressions", "--org", org.pk),
        ("templates", "push", str(tmp_path), "--organization", org.pk),
    ]
    for phase, why in [
        (Phase.MOVED, r"is served elsewhere \(RME-Cell: us\)"),
        (Phase.ARRIVING, r"is served elsewhere \(RME-Cell: us\)"),
        (Phase.PAUSED, "is paused: it moves"),
    ]:
        place(org, phase)
        for command in commands:
            with pytest.raises(CommandError, match=why):
                call_command(*command)
    assert not AuditEntry.objects.filter(organization_id=org.pk, action="EXPORTED").exists()
    place(org, Phase.LEAVING)
    call_command("import_suppressions", str(file), "--org", org.pk)


def test_superuser_adds_nothing_to_an_organization_served_elsewhere(org, admin_client):
    form = {"organization": org.pk, "email": "ann@example.org", "role": "OWNER"}
    application, _ = applications.create_application(org, "a", factories.integration_user("a"))
    path = "/admin/tenants/invitation/add/"
    place(org, Phase.MOVED)
    errors = admin_client.post(path, form).context["adminform"].form.errors
    assert "organization" in errors
    assert admin_client.get(f"{path}?organization={org.pk}").status_code == 200
    form_of_key = modelform_factory(ApplicationKey, TenantForm, fields="__all__")
    found = form_of_key({"application": application.pk}).errors["application"]
    assert found == ["This belongs to an organization that is served elsewhere."]
    assert not Invitation.objects.exists()
