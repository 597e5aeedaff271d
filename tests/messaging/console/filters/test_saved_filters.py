"""Saved filters: built-in, own and shared ones, each in its organization alone."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Delivery, SavedFilter
from messaging.reports import delivery_list
from rme.core.cache import TtlCache
from rme.tenants.models import Membership, User
from tests import factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
FAILED = "status=FAILED&channel=EMAIL"
FIELDS = {"status": "FAILED", "channel": "EMAIL"}
BUILT_IN = ["All", "Failed", "Scheduled", "Needs review"]
Role = Membership.Role


def save(client, name="Mine", **fields):
    return client.post(url("filters"), {"name": name, **FIELDS, **fields})


def names(client, query=""):
    """Return the saved filters on the page of messages: name, whether open, whether shared."""
    found = client.get(f"{url('messages')}?{query}").context["saved"]
    return [(each.name, each.is_open, each.is_shared) for each in found][len(BUILT_IN) :]


def test_every_organization_has_the_built_in_ones(root, org):
    found = root.get(f"{url('messages')}?status=HELD").context["saved"]
    assert [(each.name, each.is_open) for each in found] == [
        (name, name == "Needs review") for name in BUILT_IN
    ]
    for each in found:
        shown = root.get(each.url)
        assert (shown.status_code, dict(shown.context["form"].errors)) == (200, {})


@pytest.mark.parametrize("field", ["category", "template", "provider", "reason"])
def test_nul_in_a_filter_is_no_choice(root, org, field):
    form = root.get(url("messages"), {field: "a\0b"}).context["form"]
    assert list(form.errors) == [field]
    assert root.get(url("choose", "resend"), {field: "a\0b"}).status_code == 200


def test_manual_review_lists_only_held_messages(root, org):
    api = Api(org)
    for each in factories.contacts(org, 4):
        api.send(message(each))
    work()
    held, due, other, _ = Delivery.objects.order_by("pk")
    Delivery.objects.filter(pk__in=[held.pk, due.pk]).update(status="UNKNOWN", due_at=None)
    Delivery.objects.filter(pk=due.pk).update(due_at="2030-01-01T00:00Z")
    Delivery.objects.filter(pk=other.pk).update(status="FAILED", due_at=None)
    page = root.get(f"{url('messages')}?status=HELD")
    assert [line.row.id for line in page.context["lines"]] == [held.pk]
    for kind in ("resend", "cancel", "lift"):
        assert root.get(f"{url('choose', kind)}?status=HELD").context["count"] == 0


def test_manual_review_is_found_behind_any_number_of_messages(org):
    api = Api(org)
    for each in factories.contacts(org, 6):
        api.send(message(each))
    oldest = Delivery.objects.order_by("pk").first()
    Delivery.objects.filter(pk=oldest.pk).update(status="UNKNOWN", due_at=None)
    wanted = delivery_list.DeliveryFilter(held=True)
    found = delivery_list.find(org.pk, wanted, limit=3, scan=2)
    assert ([row.id for row in found.rows], found.following) == ([oldest.pk], None)


def test_a_filter_is_saved_opened_renamed_and_deleted(org):
    client = person("p", org, Role.SUPPORT)
    saved = save(client)
    assert saved["Location"] == f"{url('messages')}?{FAILED}"
    assert names(client) == [("Mine", False, False)]
    assert names(client, FAILED) == [("Mine", True, False)]
    ((row, words, may_change),) = client.get(url("filters")).context["filters"]
    assert (row.name, words, may_change) == ("Mine", "Status: Failed, Channel: Email", True)
    client.post(url("filter", row.pk), {"do": "rename", "name": "Ours"})
    assert names(client) == [("Ours", False, False)]
    client.post(url("filter", row.pk), {"do": "delete"})
    assert names(client) == []


def test_saving_under_the_same_name_replaces(org):
    client = person("p", org, Role.SUPPORT)
    save(client)
    save(client, status="SENT")
    assert [row.query for row in SavedFilter.objects.all()] == ["status=SENT&channel=EMAIL"]
    save(client, "Other")
    row = SavedFilter.objects.get(name="Other")
    shown = client.post(url("filter", row.pk), {"name": "Mine"}, follow=True)
    assert "You already have a view called Mine." in shown.content.decode()
    assert sorted(SavedFilter.objects.values_list("name", flat=True)) == ["Mine", "Other"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": "", "channel": ""}, "Choose valid filters first, then save them."),
        ({"status": "GONE"}, "Choose valid filters first, then save them."),
        ({"template": "x" * 2000}, "Choose valid filters first, then save them."),
        ({"person": "ada@x.example"}, "contain a person"),
        ({"name": ""}, "This field is required."),
        ({"name": "x" * 81}, "Ensure this value has at most 80 characters"),
        ({"name": "a\0b"}, "Null characters are not allowed."),
    ],
)
def test_invalid_filter_is_not_saved_and_says_why(root, org, fields, why):
    shown = root.post(url("filters"), {"name": "Mine", **FIELDS, **fields})
    assert (shown.status_code, SavedFilter.objects.count()) == (200, 0)
    assert why in shown.content.decode()


def test_shared_filter_is_visible_to_all_and_private_one_to_its_author(org):
    author, colleague = (person(name, org, Role.SUPPORT) for name in ("a", "c"))
    save(author, "Own")
    save(author, "Shared", is_shared="on")
    assert names(colleague) == [("Shared", False, True)]
    own, shared = SavedFilter.objects.order_by("name")
    owner = person("o", org, Role.OWNER)
    for client, row, status in (
        (colleague, own, 404), (colleague, shared, 404), (owner, own, 404), (owner, shared, 302)
    ):  # fmt: skip
        assert client.post(url("filter", row.pk), {"do": "delete"}).status_code == status
    assert names(author) == [("Own", False, False)]


def test_stranger_has_no_access_to_filters(org):
    save(person("a", org, Role.OWNER), "Shared", is_shared="on")
    row = SavedFilter.objects.get()
    other = factories.organization("other")
    stranger = person("s", other, Role.OWNER)
    assert stranger.get(url("filters")).status_code == 404
    assert save(stranger).status_code == 404
    assert stranger.post(url("filter", row.pk), {"do": "delete"}).status_code == 404
    # by the address of the own organization
    assert stranger.post(url("filter", row.pk, org="other"), {"do": "delete"}).status_code == 404
    found = stranger.get(url("messages", org="other")).context["saved"]
    assert [each.name for each in found] == BUILT_IN
    editor = person("e", org, Role.TEMPLATE_EDITOR)
    assert editor.get(url("filters")).status_code == 404
    assert SavedFilter.objects.count() == 1


@pytest.mark.parametrize("page", ["messages", "filters"])
def test_30_filters_need_the_same_statements_as_3(org, page):
    client = person("p", org, Role.OWNER)
    user = User.objects.get(username="p")
    client.get(url(page))  # the session keeps the organization
    counts = []
    for start, more in ((0, 3), (3, 27)):
        SavedFilter.objects.bulk_create(
            SavedFilter(organization=org, user=user, name=f"{n}", query=FAILED, is_shared=n % 2)
            for n in range(start, start + more)
        )
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            client.get(url(page))
        counts.append(len(captured))
    assert counts == [{"messages": 11, "filters": 7}[page]] * 2
