"""The list of messages: filters that combine, pages, words, and the export."""

import csv
import io
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.console import wording
from messaging.models import Delivery, Message
from messaging.reports import delivery_list
from rme.core.cache import TtlCache
from rme.core.zones import zone
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.actions.scene import LATER
from tests.messaging.console.conftest import url
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


def send(org, count=1, **fields):
    """Send a message to each of so many new people, and hand it over."""
    api = Api(org)
    for each in factories.contacts(org, count):
        api.send(message(each, **fields))
    work()
    return api


def shown(client, query=""):
    """Return the statuses on a page of the list."""
    found = client.get(f"{url('messages')}?{query}")
    assert found.status_code == 200
    return [line.row.status for line in found.context["lines"]]


def test_line_shows_the_status_of_a_message_in_words(root, org):
    send(org)
    Delivery.objects.update(status="BLOCKED", reason="SUPPRESSED", detail=None)
    (line,) = root.get(url("messages")).context["lines"]
    assert (line.name, line.address) == ("First0 Last0", "person0@simulator.rme.test")
    assert (line.status, line.colour, line.reason) == (
        "Not sent", "warn", "on the suppression list"
    )  # fmt: skip
    page = root.get(url("messages")).content.decode()
    assert url("message", line.row.message_id) in page
    assert 'aria-label="Open message to First0 Last0"' in page
    assert "Transactional" in page
    assert not {"EMAIL", "TRANSACTIONAL", "SUPPRESSED"} & set(re.findall(r">(\w+)<", page))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", True),
        ("status=DELIVERED", True),
        ("status=FAILED", False),
        ("channel=EMAIL", True),
        ("channel=SMS", False),
        ("category=TRANSACTIONAL", True),
        ("category=MARKETING", False),
        ("template=welcome", True),
        ("provider=simulator", True),
        ("reason=SUPPRESSED", False),
        ("mode=live", True),
        ("mode=test", False),
        ("period=1", True),
        ("since=2020-01-01T00:00&until=2020-01-02T00:00", False),
        ("person=person0@simulator.rme.test", True),
        ("person=First0", True),
        ("person=last0 first0", True),
        ("person=nobody", False),
        ("person=%2B12125550000", True),
        ("status=DELIVERED&channel=EMAIL&person=First0&period=24&provider=simulator", True),
        ("status=DELIVERED&channel=SMS", False),
    ],
)
def test_filters_combine(root, org, query, found):
    send(org)
    assert shown(root, query) == (["DELIVERED"] if found else [])


def test_invalid_filter_is_an_error_at_its_field(root, org):
    found = root.get(f"{url('messages')}?status=GONE&since=yesterday")
    assert set(found.context["form"].errors) == {"status", "since"}


def test_every_recipient_is_on_one_page_and_only_on_one(org):
    api = Api(org)
    people = factories.contacts(org, 7)
    to = [{"contactId": str(each.pk)} for each in people[:5]]
    api.send(message(people[0], to=to))
    for each in people[5:]:
        api.send(message(each))
    pages, cursor = [], None
    while True:
        page = delivery_list.find(org.pk, delivery_list.DeliveryFilter(), limit=3, cursor=cursor)
        pages.append([row.contact_id for row in page.rows])
        if page.following is None:
            break
        cursor = page.following
    newest_first = [str(each.pk) for each in [*reversed(people[5:]), *people[:5]]]
    assert pages == [newest_first[:3], newest_first[3:6], newest_first[6:]]


def test_full_page_links_to_the_next(root, org):
    send(org, 51)
    first = root.get(url("messages"))
    second = root.get(f"{url('messages')}?after={first.context['following']}")
    assert [len(each.context["lines"]) for each in (first, second)] == [50, 1]
    assert second.context["following"] == ""


def test_page_ends_at_its_scan_limit_and_continues_from_there(org):
    send(org, 6)
    wanted = delivery_list.DeliveryFilter(statuses=["FAILED"])
    first = delivery_list.find(org.pk, wanted, limit=10, scan=4)
    assert (first.rows, first.following is not None) == ([], True)
    rest = delivery_list.find(org.pk, wanted, limit=10, scan=4, cursor=first.following)
    assert (rest.rows, rest.following) == ([], None)


@pytest.mark.parametrize(("query", "statements"), [("", 12), ("status=DELIVERED", 13)])
def test_a_page_asks_as_often_for_30_rows_as_for_3(root, org, query, statements):
    send(org, 3)
    counts = []
    shown(root, query)  # the session keeps the organization
    for more in (0, 27):
        send(org, more)
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            shown(root, query)
        counts.append(len(captured))
    assert counts == [statements, statements]


def test_an_export_has_the_filtered_rows_and_is_logged(root, org):
    send(org, 3)
    found = root.post(url("export"), {"status": "DELIVERED"})
    text = b"".join(found.streaming_content).decode()
    header, *rows = csv.reader(io.StringIO(text))
    assert header[:5] == ["time", "message", "contact", "person", "address"]
    assert [row[3] for row in rows] == ["First2 Last2", "First1 Last1", "First0 Last0"]
    assert {row[8] for row in rows} == {"DELIVERED"}
    assert audited.summaries() == [("root", "EXPORTED", "messages")]
    assert audited.lines() == ["filter: – → Status: Delivered"]


def test_the_support_role_sees_no_whole_address(org):
    send(org)
    support = person("s", org, Membership.Role.SUPPORT)
    page = support.get(url("messages"))
    (line,) = page.context["lines"]
    assert line.address == "p…@simulator.rme.test"
    assert "person0@" not in page.content.decode()
    exported = b"".join(support.post(url("export")).streaming_content).decode()
    assert "person0@" not in exported


def test_an_organization_without_messages_sees_the_next_step(root, org):
    shown = root.get(url("messages")).content.decode()
    assert "No messages yet." in shown
    assert f'<a class="c-button" href="{url("send")}">Send a message</a>' in shown
    filtered = root.get(f"{url('messages')}?channel=SMS").content.decode()
    assert "Nothing matches these filters." in filtered
    assert f'<a class="c-button" href="{url("messages")}">Clear filters</a>' in filtered


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("", ["resend", "cancel", "lift"]),
        ("channel=EMAIL", ["resend", "cancel", "lift"]),
        ("status=DELIVERED", []),
        ("status=SCHEDULED", ["cancel"]),
        ("status=FAILED", ["resend"]),
        ("status=BLOCKED", ["resend", "lift"]),
    ],
)
def test_only_actions_for_the_chosen_status_are_offered(root, org, query, kinds):
    offers = root.get(f"{url('messages')}?{query}").context["offers"]
    assert [kind for kind, _ in offers] == kinds


def test_scheduled_message_shows_when_it_goes(root, org):
    Api(org).send(message(factories.contact(org), schedule=LATER))
    at = wording.minute(Delivery.objects.get().due_at, zone(org.zone))
    assert f"Sends at {at}" in root.get(url("messages")).content.decode()
    table = root.get(f"{url('messages')}?status=SCHEDULED").context["table"]
    cells = {column.name: cell.text for column, cell in table.rows[0].cells}
    assert (cells["sends_at"], cells["status"]) == (at, "Scheduled")


def test_filtered_page_offers_its_reasons(root, org):
    send(org, 3)
    first, second, third = Delivery.objects.order_by("pk").values_list("pk", flat=True)
    Delivery.objects.filter(pk__in=[first, second]).update(status="FAILED", reason="PROVIDER_ERROR")
    Delivery.objects.filter(pk=third).update(status="FAILED", reason="EXPIRED")
    reasons = root.get(f"{url('messages')}?status=FAILED").context["reasons"]
    assert [query for _, query in reasons] == [
        "status=FAILED&reason=EXPIRED",
        "status=FAILED&reason=PROVIDER_ERROR",
    ]
    assert shown(root, reasons[1][1]) == ["FAILED", "FAILED"]
    for query in ("", reasons[1][1], "status=FAILED&reason=EXPIRED"):
        assert root.get(f"{url('messages')}?{query}").context["reasons"] == []


def test_page_of_50_messages_is_small(root, org):
    send(org, 50)
    Delivery.objects.update(status="FAILED", reason="PROVIDER_ERROR", detail="550 no such user")
    assert len(root.get(f"{url('messages')}?status=FAILED").content) < 120_000


def test_ticked_messages_are_chosen_for_an_action(root, org):
    api = Api(org)
    for each in factories.contacts(org, 4):
        api.send(message(each, schedule=LATER))
    rows = list(Delivery.objects.order_by("pk"))
    theirs = factories.organization("other")
    Delivery.objects.filter(pk=rows[2].pk).update(organization_id=theirs.pk)
    Delivery.objects.filter(pk=rows[1].pk).update(status="DELIVERED", due_at=None)
    query = "&".join(f"row={each.pk}" for each in rows[:3])
    page = root.get(f"{url('choose', 'cancel')}?{query}&row=x")
    assert (page.context["count"], page.context["choice"].scope) == (1, "3 ticked messages")
    form = {"row": page.context["ticked"], "why": "called off"}
    assert root.post(url("choose", "cancel"), form).status_code == 302
    statuses = list(Delivery.objects.order_by("pk").values_list("status", flat=True))
    assert statuses == ["CANCELLED", "DELIVERED", "SCHEDULED", "SCHEDULED"]


def test_chosen_columns_are_kept_for_their_list(root, org):
    send(org)

    def shown_columns(page):
        return [each.name for each in root.get(url(page)).context["table"].columns]

    others = shown_columns("contacts")
    chosen = root.post(f"{url('messages')}?channel=EMAIL", {"column": ["status", "category", "x-"]})
    assert chosen["Location"] == f"{url('messages')}?channel=EMAIL"
    assert shown_columns("messages") == ["recipient", "category", "status"]
    assert shown_columns("contacts") == others
    root.post(url("messages"), {})
    assert shown_columns("messages") == ["recipient"]
    support = person("s", org, Membership.Role.SUPPORT)
    assert len(support.get(url("messages")).context["table"].columns) == 7


@pytest.mark.parametrize("place", ["9" * 5000, "99999999999", "x", "-1", ""])
def test_cursor_that_is_none_shows_the_first_page(root, org, place):
    Api(org).send(message(factories.contact(org)))
    key = Message.objects.get().pk
    assert len(root.get(f"{url('messages')}?after={key}_{place}").context["lines"]) == 1
