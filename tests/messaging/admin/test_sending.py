"""Categories, pauses and the first page."""

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
        "Acme: no provider account for PUSH: the simulator takes what is sent.",
        "Acme: no provider account for SMS is active.",
        "Acme: the settings of bad are broken.",
        "Acme: Pause of SMS: maintenance",
    ):
        assert text in shown
    count_all()
    (card,) = root.get("/admin/", {"mode": "test"}).context["cards"]
    assert (card.channel, card.rows[0][1][0].text) == ("EMAIL", "1")


def test_the_first_page_shows_nothing_of_other_organizations(org):
    fill(org)
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    count_all()
    shown = stranger.get("/admin/", {"mode": "test"})
    assert shown.context["cards"] == []
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
    assert found == [19, 19]


def test_recent_actions_link_only_to_existing_rows(root, org):
    form = {"organization": org.pk, "reason": "first"}
    root.post(page(Pause, "add"), form)
    root.post(page(Pause, "add"), {**form, "reason": "second"})
    gone, kept = Pause.objects.order_by("pk")
    Pause.objects.filter(pk=gone.pk).delete()
    root.get("/admin/")  # which shows the messages of the saved pauses
    shown = root.get("/admin/")
    assert [action.url for action in shown.context["recent"]] == [
        page(Pause, "change", kept.pk),
        "",
    ]
    assert page(Pause, "change", gone.pk) not in shown.content.decode()


def test_names_in_titles_keep_their_case(root, org):
    row = Account.objects.create(organization=org, name="eMail")
    shown = root.get(page(Account, "change", row.pk)).content.decode()
    assert ">EMail" not in shown.replace("\n", "").replace(" ", "")
    assert ">eMail" in shown.replace("\n", "").replace(" ", "")


def test_pages_have_an_icon(root):
    assert '<link rel="icon" href="/static/push/icon.svg"' in root.get("/admin/").content.decode()
