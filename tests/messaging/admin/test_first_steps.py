"""The checklist of a new organization, and the way from it to a first message."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.models import (
    Delivery,
    ProviderAccount,
    SenderDomain,
    Template,
    TemplateVersion,
)
from messaging.reports import first_steps
from rme.core.cache import TtlCache
from rme.tenants.models import Organization
from rme.tenants.oauth import api_keys
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, do, save
from tests.rest import work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def new(db):
    """Return an organization in which nothing is set up."""
    return Organization.objects.create(id="new", name="newCo")


def done(organization):
    """Return the steps that are done."""
    (progress,) = first_steps.read([organization.pk])
    names = ("has_domain", "domain", "provider", "template", "delivered", "keys")
    return {name for name in names if getattr(progress, name)}


def checklist(client, organization):
    return client.get(reverse("first_steps", args=[organization.pk]))


def test_a_new_organization_has_everything_to_do(root, new):
    assert done(new) == set()
    shown = checklist(root, new).context["checklist"]
    assert [(step.text, step.done) for step in shown.steps] == [
        ("Organization", True),
        ("Sender domain", False),
        ("Provider", False),
        ("Template", False),
        ("First message", False),
        ("Keys for your developers", False),
    ]
    home = root.get("/admin/")
    setup = home.context["setup"]
    assert (setup.name, setup.done, setup.next.text) == ("newCo", 1, "Sender domain")
    for step in shown.steps:
        assert step.url in home.content.decode().replace("&amp;", "&")
        assert root.get(step.url).status_code == 200


def test_each_step_is_derived_from_existing_rows(new):
    domain = SenderDomain.objects.create(organization=new, domain="new.example")
    assert done(new) == {"has_domain"}
    SenderDomain.objects.filter(pk=domain.pk).update(verified_at="2026-01-01T00:00Z")
    account = {"organization": new, "kind": "smtp", "channel": "EMAIL"}
    row = ProviderAccount.objects.create(**account, name="p", state="PAUSED")
    assert done(new) == {"has_domain", "domain"}
    ProviderAccount.objects.filter(pk=row.pk).update(state="ACTIVE")
    Template.objects.create(
        organization=new, name="x", language="de", channel="SMS", category="MARKETING"
    )
    assert done(new) == {"has_domain", "domain", "provider"}
    factories.template(new)
    key, _ = api_keys.issue(new, "bot")
    assert "keys" in done(new)
    api_keys.revoke(key)
    assert done(new) == {"has_domain", "domain", "provider", "template"}


def test_simulator_is_no_provider_but_enough_to_begin(root, new):
    Organization.objects.update(simulator=True)
    assert done(new) == set()
    (step,) = (
        each for each in checklist(root, new).context["checklist"].steps if each.text == "Provider"
    )
    assert (step.done, step.help) == (
        False,
        "The simulator receives your messages. Add a provider to deliver them.",
    )
    steps = dict.fromkeys(("has_domain", "domain", "template"), True)
    progress = replace(first_steps.read([new.pk])[0], **steps, delivered=True, keys=True)
    assert (progress.provider, progress.simulator, progress.complete) == (False, True, True)


def test_home_shows_the_setup_of_its_own_organization_alone(root, org, new):
    for each in (new, org):
        TtlCache.clear_all()
        home = root.get("/admin/", {"organization": each.pk})
        assert home.context["setup"].name == each.name
        other = org if each == new else new
        assert f"Set up {other.name}" not in home.content.decode()


def test_an_owner_goes_from_the_checklist_to_a_message_to_itself(org):
    owner = client_of(Client, org, "o")
    owner.post(url("contact_new"), {"last_name": "Me", "email": "o@example.com"})
    new = {"name": "hello", "language": "en_US", "channel": "EMAIL", "category": "TRANSACTIONAL"}
    owner.post(url("template_new"), new)
    save(owner, TemplateVersion.objects.get(template__name="hello"), subject="Hi", text="Hello")
    version = TemplateVersion.objects.get(template__name="hello")
    do(owner, "test", version, publish=False)
    do(owner, "publish", version)
    work()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.address) == ("DELIVERED", "o@example.com")
    api_keys.issue(org, "bot")
    assert owner.get("/admin/").context["setup"] is None


def test_only_people_of_the_organization_see_its_checklist(new):
    stranger = person("s", factories.organization("other"), "OWNER")
    assert checklist(stranger, new).status_code == 404
    assert checklist(person("support", new, "SUPPORT"), new).status_code == 404
    assert checklist(person("v", new, "VIEWER"), new).status_code == 200


def test_organizations_are_read_by_one_statement(new):
    for count in (3, 30):
        keys = [factories.organization(f"o{count}x{i}").pk for i in range(count)]
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            assert len(first_steps.incomplete(keys)) == count
        assert len(captured) == 1
