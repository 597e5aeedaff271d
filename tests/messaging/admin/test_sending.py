"""Categories, pauses and the first page."""

from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Category, Delivery, Pause, ProviderAccount
from messaging.policy import organization_policy
from rme.crm.models import Account
from rme.tenants.models import Membership
from tests import factories
from tests.messaging.statistics.scene import count as count_all
from tests.rest import Api, message, work
from tests.tenants.admin.scene import fill, page, person

pytestmark = pytest.mark.django_db


def test_category_changes_apply_to_sending_at_once(root, org):
    assert "NEWS" not in organization_policy.of(org.pk).categories
    form = {
        "organization": org.pk, "name": "NEWS", "regime": "OPT_IN", "on_unknown": "HOLD",
        "expires_after": 60, "cap_window": 60, "channel_order": "",
    }  # fmt: skip
    root.post(page(Category, "add"), form)
    assert "NEWS" in organization_policy.of(org.pk).categories
    chosen = {"action": "delete_selected", "post": "yes"}
    chosen["_selected_action"] = [Category.objects.get().pk]
    root.post(page(Category, "changelist"), chosen)
    assert "NEWS" not in organization_policy.of(org.pk).categories


@pytest.mark.parametrize("key", ["x", "1.5", "9" * 5000, "\0"])
def test_action_on_a_row_that_cannot_exist_is_a_404(root, org, key):
    chosen = {"action": "delete_selected", "post": "yes", "_selected_action": [key]}
    assert root.post(page(Category, "changelist"), chosen).status_code == 404


@pytest.mark.parametrize("how", ["delete", "end"])
def test_paused_messages_are_sent_when_the_pause_ends(root, org, how):
    api = Api(org)
    pause = Pause.objects.create(organization=org, reason="maintenance")
    api.send(message(factories.contact(org)))
    work()
    assert Delivery.objects.get().waiting == "PAUSED"
    if how == "delete":
        root.post(page(Pause, "delete", pause.pk), {"post": "yes"})
    else:
        form = {"reason": "over", "ends_at_0": "2026-01-01", "ends_at_1": "00:00"}
        assert root.post(page(Pause, "change", pause.pk), form).status_code == 302
    work()
    assert Delivery.objects.get().status == "DELIVERED"


def test_first_page_shows_open_tasks(root, org):
    fill(org)
    ProviderAccount.objects.create(
        organization=org, name="bad", kind="smtp", channel="SMS", credentials="{}", state="PAUSED"
    )
    shown = root.get("/admin/").content.decode()
    for text in (
        "Push isn't delivered: there is no push provider, so the simulator receives it.",
        "SMS waits: no SMS provider is active.",
        "The settings of bad can't be read. Save them again.",
        "SMS is paused: maintenance",
    ):
        assert text in unescape(shown)
    count_all()
    (row,) = root.get("/admin/", {"mode": "test"}).context["rows"]
    assert (row.channel, row.cells[0].text) == ("Email", "1")


def test_the_first_page_shows_nothing_of_other_organizations(org):
    fill(org)
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    count_all()
    shown = stranger.get("/admin/", {"mode": "test"})
    assert shown.context["rows"] == []
    assert "Acme" not in shown.content.decode()


def test_the_first_page_needs_no_more_statements_for_more_organizations(root, org):
    root.get("/admin/")
    found = []
    for count in (3, 30):
        for i in range(count):
            factories.organization(f"o{count}x{i}")
        with CaptureQueriesContext(connection) as captured:
            root.get("/admin/")
        found.append(len(captured))
    assert found == [17, 17]


def test_names_in_titles_keep_their_case(root, org):
    row = Account.objects.create(organization=org, name="eMail")
    shown = root.get(page(Account, "change", row.pk)).content.decode()
    assert ">EMail" not in shown.replace("\n", "").replace(" ", "")
    assert ">eMail" in shown.replace("\n", "").replace(" ", "")


def test_pages_have_an_icon(root):
    assert '<link rel="icon" href="/static/push/icon.svg"' in root.get("/admin/").content.decode()
