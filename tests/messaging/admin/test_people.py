"""Addresses of contacts, consent, suppressions and messages in the admin lead to the console."""

import pytest

from messaging.consent import ledger
from messaging.models import ConsentEntry, Message, Suppression
from rme.crm.models import Contact
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db
PAGES = {
    Contact: ("contacts", "contact_new", "person"),
    ConsentEntry: ("consent", "consent", "consent_entry"),
    Suppression: ("suppressions", "suppression_new", "suppression"),
    Message: ("messages", None, "message"),
}
"""By model: the console's list, its form of a new row, and its page of a row."""


@pytest.fixture
def ada(org):
    ada = factories.contact(org)
    Api(org).send(message(ada))
    decision = ledger.ConsentDecision(str(ada.pk), "ALL", "ALL", "OPTED_IN", "API", None)
    ledger.record(org.pk, [decision])
    Suppression.objects.create(
        organization=org, channel="SMS", address="+12127365000", reason="STOP"
    )
    return ada


@pytest.mark.parametrize("model", PAGES)
def test_addresses_of_the_admin_lead_to_the_console(org, ada, model):
    factories.organization("other")
    in_list, new, in_page = PAGES[model]
    row = model.objects.get()
    owner = person("owner", org, Membership.Role.OWNER)
    for name, args, expected in (
        ("changelist", [], url(in_list)),
        ("add", [], new and url(new)),
        ("change", [row.pk], url(in_page, row.pk)),
        ("delete", [row.pk], url(in_page, row.pk)),
    ):
        address = page(model, name, *args)
        for answer in (owner.get(address), owner.get(f"{address}?record"), owner.post(address)):
            found = (name, answer.status_code, answer.get("Location"))
            assert found == (name, 302 if expected else 403, expected)
    stranger = person("stranger", factories.organization("third"), Membership.Role.OWNER)
    assert stranger.get(page(model, "change", row.pk)).status_code == 404
    support = person("developer", org, Membership.Role.TEMPLATE_EDITOR)
    assert [support.get(page(model, name)).status_code for name in ("changelist", "add")] == [
        403,
        403,
    ]


@pytest.mark.promise("consent-5")
@pytest.mark.parametrize("model", PAGES)
def test_superuser_sees_a_record_that_no_form_changes(root, org, ada, model):
    row = model.objects.get()
    before = model.objects.values().get()
    address = f"{page(model, 'change', row.pk)}?record"
    shown = root.get(address).content.decode()
    assert str(row) in shown
    assert 'name="_save"' not in shown
    assert root.post(address, {"organization": org.pk, "note": "x"}).status_code == 403
    for name in ("changelist", "delete"):
        form = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        root.post(page(model, name, *([row.pk] if name == "delete" else [])), form)
    assert model.objects.values().get() == before
