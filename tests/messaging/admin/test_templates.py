"""Addresses of templates and partials in the admin lead to the console."""

import pytest

from messaging.models import Partial, Template, TemplateVersion
from tests import factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import button, page, person

pytestmark = pytest.mark.django_db
AT = "?language=en_US&channel=EMAIL"


@pytest.fixture
def version(org):
    Partial.objects.create(organization=org, name="footer", text="x")
    return factories.template(org, name="order")


@pytest.mark.parametrize(
    ("model", "buttons", "target"),
    [
        (Template, ["studio", "new_version"], lambda: url("template", "order") + AT),
        (
            TemplateVersion,
            ["studio", "activate", "copy", "send-test"],
            lambda: f"{url('template', 'order')}{AT}&version=1",
        ),
        (Partial, ["versions"], lambda: url("partial", "footer")),
    ],
)
def test_addresses_of_a_row_lead_to_its_page(org, root, version, model, buttons, target):
    row = model.objects.order_by("-pk").first()
    addresses = [page(model, name, row.pk) for name in ("change", "delete")]
    addresses += [button(model, row, name) for name in buttons]
    for address in addresses:
        shown = root.get(address, follow=True)
        assert (address, shown.redirect_chain[-1]) == (address, (target(), 302))
        assert shown.status_code == 200
    assert root.get(page(model, "history", row.pk)).status_code == 200
    assert model.objects.filter(pk=row.pk).exists()
    stranger = person("s", factories.organization("other"), "OWNER")
    assert {stranger.get(each, follow=True).status_code for each in addresses} == {404}


@pytest.mark.parametrize(
    ("model", "name"),
    [(Template, "templates"), (TemplateVersion, "templates"), (Partial, "partials")],
)
def test_addresses_of_lists_and_forms_lead_to_the_list(org, model, name):
    owner, viewer, support = (person(role, org, role) for role in ("OWNER", "VIEWER", "SUPPORT"))
    for client, each in ((owner, "changelist"), (owner, "add"), (viewer, "changelist")):
        shown = client.get(page(model, each), follow=True)
        assert (shown.redirect_chain[-1], shown.status_code) == ((url(name), 302), 200)
    assert viewer.get(page(model, "add")).status_code == 403
    assert support.get(page(model, "changelist")).status_code == 403


def test_superuser_sees_the_stored_record_and_nobody_else(org, root, version):
    record = f"{page(TemplateVersion, 'change', version.pk)}?record"
    shown = root.get(record)
    assert (shown.status_code, b"Save" in shown.content) == (200, False)
    assert root.post(record, {"subject": "Changed"}).status_code == 403
    assert person("o", org, "OWNER").get(record).status_code == 302
