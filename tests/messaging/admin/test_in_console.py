"""Addresses of accounts, domains and endpoints in the admin lead to the console."""

import pytest

from messaging.models import ProviderAccount, SenderDomain, WebhookEndpoint
from rme.tenants.models import Membership
from tests import factories
from tests.tenants.admin.scene import PASSWORD, fill, page, person

pytestmark = pytest.mark.django_db
CONSOLE = "/admin/console/acme"
PAGES = [
    # model, list, page of a row, form
    (ProviderAccount, "providers/", "providers/{}/", "providers/"),
    (SenderDomain, "domains/", "domains/{}/", "domains/new/"),
    (WebhookEndpoint, "webhooks/", "webhooks/{}/", "webhooks/new/"),
]


@pytest.mark.parametrize(("model", "listed", "row_page", "form"), PAGES)
def test_address_leads_to_the_page_in_the_console(root, org, model, listed, row_page, form):
    fill(org)
    row = model.objects.get()
    for query in ({}, {"organization": org.pk}, {"organization": "nonsense\0"}):
        assert root.get(page(model, "changelist"), query)["Location"] == f"{CONSOLE}/{listed}"
        assert root.get(page(model, "add"), query)["Location"] == f"{CONSOLE}/{form}"
    target = f"{CONSOLE}/{row_page.format(row.pk)}"
    for name in ("change", "delete"):
        assert root.get(page(model, name, row.pk))["Location"] == target
    assert root.post(page(model, "delete", row.pk), {"post": "yes"})["Location"] == target
    assert root.get(page(model, "history", row.pk)).status_code == 200
    assert model.objects.get() == row
    record = root.get(page(model, "change", row.pk), {"record": ""})
    assert (record.status_code, PASSWORD in record.content.decode()) == (200, False)
    assert root.get(target, follow=True).status_code == 200


@pytest.mark.parametrize(("model", "listed", "row_page", "form"), PAGES)
def test_address_tells_a_stranger_nothing(org, model, listed, row_page, form):
    fill(org)
    row = model.objects.get()
    other = factories.organization("other")
    stranger = person("stranger", other, Membership.Role.OWNER)
    for name in ("change", "delete", "history"):
        assert stranger.get(page(model, name, row.pk)).status_code == 404
    answer = stranger.get(page(model, "changelist"), {"organization": org.pk})
    assert answer["Location"] == f"/admin/console/other/{listed}"
    assert person("nobody").get(page(model, "changelist")).status_code == 403
    assert person("viewer", org, "VIEWER").get(page(model, "add")).status_code == 403
