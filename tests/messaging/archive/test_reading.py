"""What is archived is read as before: by id, in the history, and on the console's pages."""

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from messaging.archive import scan
from messaging.models import ArchiveFile, Delivery, Message, Suppression
from messaging.reports import delivery_list, queries
from messaging.store.reports.deliveries import DeliveryFilter
from messaging.store.reports.history import HistoryFilter
from rme.core import ids
from rme.tenants.models import User
from tests import factories
from tests.messaging.archive import archive_scene as scene
from tests.rest import Api, error, message, work

pytestmark = pytest.mark.django_db


def pages(org, limit, **fields):
    """Follow the history's cursors to the end; return the ids of each page."""
    found, cursor = [], None
    while True:
        page = queries.history(org.pk, HistoryFilter(**fields, limit=limit, cursor=cursor))
        found.append([str(each.message_id) for each in page.messages])
        cursor = page.following
        if cursor is None:
            return found


def listed(org, limit, **fields):
    """Follow the cursors of the console's list to the end; return all rows."""
    rows, cursor = [], None
    while True:
        page = delivery_list.find(org.pk, DeliveryFilter(**fields), limit=limit, cursor=cursor)
        rows += page.rows
        cursor = page.following
        if cursor is None:
            return rows


def test_a_message_is_read_by_id_as_before(api, org, ada, bob, archive):
    Suppression.objects.create(
        organization=org, channel="SMS", contact_id=str(bob.pk), reason="STOP"
    )
    sent = [
        api.send(message(ada, metadata={"order": "7"})).json()["messageId"],
        api.send(message(ada, bob)).json()["messageId"],
        api.send(message(bob, channel="SMS")).json()["error"]["messageId"],  # BLOCKED
    ]
    work()
    scene.drop_contents()
    before = [api.get(f"{key}?include=trace") for key in sent]
    assert [each["status"] for each in before] == ["DELIVERED", "DELIVERED", "BLOCKED"]
    scene.move()
    assert scene.left() == (0, 0, 0, 0)
    assert [api.get(f"{key}?include=trace") for key in sent] == before
    with CaptureQueriesContext(
        connection,
    ) as made:
        found = queries.detail(org.pk, sent[0], with_trace=True)
    # the message, the file, what is to be erased
    assert (found.archived, len(made)) == (True, 3)
    refused = api.call("DELETE", f"/messages/{sent[0]}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "NOT_CANCELLABLE")


def test_another_organization_does_not_read_it(api, org, ada, archive):
    [key] = scene.send(org, [ada])
    scene.move()
    other = Api(factories.organization("other"))
    answer = other.call("GET", f"/messages/{key}")
    assert answer.status_code == 404
    assert answer.json() == error("NOT_FOUND", "This message doesn't exist.")
    assert other.call("GET", "/messages").json() == {"messages": [], "nextCursor": None}


@pytest.fixture
def mixed(org, ada, bob, archive, monkeypatch):
    """Seven messages, of which those that ended are in two files that overlap."""
    monkeypatch.setattr(scan, "SLICE", 2)
    keys = scene.send(org, [ada, bob], 7)
    unfinished, late = keys[3], keys[1]
    Delivery.objects.filter(message_id=unfinished).update(status="UNKNOWN", due_at=None)
    Delivery.objects.filter(message_id=late).update(status="UNKNOWN", due_at=None)
    scene.move()
    ArchiveFile.objects.update(messages=10_000)  # full, so that another is begun
    Delivery.objects.filter(message_id=late).update(status="FAILED", reason="PROVIDER_ERROR")
    scene.move()
    assert len(scene.live()) == 2
    assert Message.objects.count() == 1
    return keys


FILTERS = {
    "none": {},
    "contact": {"contact": True},
    "status": {"status": "DELIVERED"},
    "status of one": {"status": "FAILED"},
    "channel": {"channel": "EMAIL"},
    "category": {"category": "TRANSACTIONAL"},
    "nothing": {"category": "OTHER"},
}


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
@pytest.mark.parametrize("name", FILTERS)
def test_pages_of_the_history_continue_into_the_archive(org, ada, mixed, name, limit):
    fields = dict(FILTERS[name])
    expected = list(reversed(mixed))
    if fields.pop("contact", False):
        fields["contact_id"] = str(ada.pk)
        expected = [mixed[6], mixed[4], mixed[2], mixed[0]]
    if name.startswith("status"):
        expected = [k for k in expected if (k == mixed[1]) == (fields["status"] == "FAILED")]
        expected = [k for k in expected if k != mixed[3]]
    if name == "nothing":
        expected = []
    found = pages(org, limit, **fields)
    assert [key for page in found for key in page] == expected
    assert all(len(page) <= limit for page in found)
    listing = {**fields}
    contact = listing.pop("contact_id", None)
    status = listing.pop("status", None)
    rows = listed(
        org,
        limit,
        **listing,
        contact_ids=[contact] if contact else [],
        statuses=[status] if status else [],
    )
    assert [str(row.message_id) for row in rows] == expected


def test_time_range_limits_archived_and_live_messages(org, mixed):
    moments = [ids.moment(ids.parse(key)) for key in mixed]
    since, until = moments[1], moments[5]
    expected = [key for key, at in zip(mixed, moments, strict=True) if since <= at < until]
    found = pages(org, 2, since=since, until=until)
    assert [key for page in found for key in page] == expected[::-1]
    rows = listed(org, 2, since=since, until=until)
    assert [str(row.message_id) for row in rows] == expected[::-1]


def test_a_page_reads_a_limited_number_of_row_groups(org, mixed, monkeypatch):
    monkeypatch.setattr(scan, "GROUPS", 1)
    found = pages(org, 50, category="OTHER")
    assert found == [[]] * len(found)
    assert len(found) == 2  # down to where the second file begins, and the rest
    assert [k for page in pages(org, 50) for k in page] == list(reversed(mixed))


def test_page_of_recent_messages_reads_no_archive_file(org, ada, archive):
    scene.send(org, [ada], 3)
    scene.move()
    Message.objects.all().delete()
    new = scene.send(org, [ada], 3)
    with CaptureQueriesContext(connection) as made:
        page = queries.history(org.pk, HistoryFilter(limit=2))
    assert [str(each.message_id) for each in page.messages] == [new[2], new[1]]
    assert len(made) == 4


def test_console_shows_archived_messages(client, org, ada, archive):
    [key] = scene.send(org, [ada])
    client.force_login(User.objects.create_superuser("root"))
    page = reverse("console:message", args=[org.pk, key])
    before = client.get(page)
    scene.move()
    after = client.get(page)
    assert after.status_code == 200
    for name in ("headline", "moments", "lines"):
        assert after.context[name] == before.context[name]
    record = client.get(reverse("console:message_record", args=[org.pk, key])).context["record"]
    assert orjson.loads(record)["message"]["message_id"] == key
    assert (after.context["is_archived"], after.context["resendable"]) == (True, 0)
    found = client.get(reverse("console:messages", args=[org.pk]))
    assert [str(line.row.message_id) for line in found.context["lines"]] == [key]
    person = client.get(reverse("console:person", args=[org.pk, str(ada.pk)]))
    assert str(person.context["latest"].row.message_id) == key
    search = client.get(reverse("search"), {"q": key}, follow=True)
    assert key in search.content.decode()


def test_unreadable_archive_file_answers_503(api, org, ada, archive):
    [key] = scene.send(org, [ada])
    scene.move()
    [file] = scene.live()
    path = archive / file.path
    content = path.read_bytes()
    path.write_bytes(content[:200] + bytes(64) + content[264:])
    damaged = api.call("GET", f"/messages/{key}")
    path.unlink()
    gone = api.call("GET", "/messages")
    for answer in (damaged, gone):
        assert answer.status_code == 503
        assert answer.json() == error("UNAVAILABLE", "The archive cannot be read right now.")
