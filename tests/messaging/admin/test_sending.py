"""Provider accounts, pauses, messages and the first page."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Category, Delivery, Message, Pause, ProviderAccount
from messaging.policy import organization_policy
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.statistics.scene import count as count_all
from tests.rest import Api, message, work
from tests.tenants.admin.scene import fill, page, person

pytestmark = pytest.mark.django_db
CREDENTIALS = '{"host": "mail.example", "username": "u", "password": "hunter2-secret"}'


def account(org, **fields):
    return {
        "organization": org.pk, "name": "mail", "priority": 1,
        "weight": 1, "match": "", "state": "ACTIVE", "setting_smtp_host": "mail.example",
        "setting_smtp_port": "587", "setting_smtp_security": "STARTTLS",
        "setting_smtp_username": "u", "setting_smtp_password": "hunter2-secret",
        "setting_smtp_timeout": "20", **fields,
    }  # fmt: skip


def test_a_provider_account_keeps_its_password(root, org):
    row = ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL", credentials=CREDENTIALS
    )
    shown = root.get(page(ProviderAccount, "change", row.pk)).content
    assert b"mail.example" in shown
    assert b"hunter2" not in shown
    assert b"setting_twilio" not in shown
    form = account(org, setting_smtp_password="", setting_smtp_helo="other.example")
    assert root.post(page(ProviderAccount, "change", row.pk), form).status_code == 302
    row.refresh_from_db()
    assert '"hunter2-secret"' in row.credentials
    assert "other.example" in row.credentials
    assert organization_policy.of(org.pk).accounts[0].active
    with connection.cursor() as cursor:
        cursor.execute("SELECT credentials FROM messaging_provideraccount")
        assert "hunter2" not in cursor.fetchone()[0]
    root.post(page(ProviderAccount, "delete", row.pk), {"post": "yes"})
    logged = audited.lines()
    assert "setting_smtp_helo: – → other.example" in logged
    assert [line for line in logged if "hunter2" in line] == []


def test_what_sending_reads_is_read_anew(root, org):
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


def test_accounts_are_paused_and_activated(root, org):
    row = ProviderAccount.objects.create(
        organization=org, name="sim", kind="simulator", channel="EMAIL"
    )
    for name, state in (("pause", "PAUSED"), ("activate", "ACTIVE")):
        chosen = {"action": name, "_selected_action": [row.pk], "reason": "maintenance"}
        assert root.post(page(ProviderAccount, "changelist"), chosen).status_code == 302
        row.refresh_from_db()
        assert row.state == state


@pytest.mark.parametrize("how", ["delete", "end"])
def test_what_was_paused_goes_when_the_pause_ends(root, org, how):
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


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("provider=simulator", True), ("provider=mail", False), ("status=DELIVERED", True),
        ("status=FAILED", False), ("channel=EMAIL", True), ("channel=SMS", False),
        ("category=TRANSACTIONAL", True), ("category=MARKETING", False), ("hours=1", True),
        ("test__exact=1", True), ("test__exact=0", False), ("q={contact}", True),
        ("q={message}", True), ("q=nobody", False), ("organization=acme", True),
    ],
)  # fmt: skip
def test_messages_are_found(root, org, query, found):
    fill(org)
    factories.organization("other")
    row, delivery = Message.objects.get(), Delivery.objects.get()
    asked = query.format(contact=delivery.contact_id, message=row.pk)
    shown = root.get(f"{page(Message, 'changelist')}?{asked}").content.decode()
    assert (page(Message, "change", row.pk) in shown) is found


def test_a_messages_page_shows_all_that_happened(root, org):
    fill(org)
    shown = root.get(page(Message, "change", Message.objects.get().pk)).content.decode()
    for text in ("ada@simulator.rme.test", "DELIVERED", "simulator", "hello", "accepted", "CHOSEN"):
        assert text in shown


def test_the_first_page_shows_what_there_is_to_do(root, org):
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
    assert found == [17, 17]


def test_recent_actions_link_only_to_rows_that_are_there(root, org):
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
    row = ProviderAccount.objects.create(
        organization=org, name="eMail", kind="simulator", channel="EMAIL"
    )
    shown = root.get(page(ProviderAccount, "change", row.pk)).content.decode()
    assert ">EMail" not in shown.replace("\n", "").replace(" ", "")
    assert ">eMail" in shown.replace("\n", "").replace(" ", "")


def test_pages_have_an_icon(root):
    assert '<link rel="icon" href="/static/push/icon.svg"' in root.get("/admin/").content.decode()
