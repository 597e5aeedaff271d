"""The request log: what is recorded of a request, how it is stored, found and dropped."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Message, Suppression
from rme.core.db import clock, partitions
from rme.core.db.periods import Period
from rme.core.http import request_records
from rme.core.http.request_records import LOST, Details, RecordBuffer, RequestRecord
from rme.tenants.audit import request_log
from rme.tenants.audit.request_log import RequestFilter
from rme.tenants.models import RequestLogEntry
from tests import factories
from tests.rest import REQUEST_ID, Api, message
from tests.scrape import counted, labels

pytestmark = pytest.mark.django_db
NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def recording():
    """Keep records of requests, which a test stores by itself."""
    buffer = request_records.buffer
    buffer.is_on = True
    yield buffer
    buffer.is_on = False
    buffer.take(buffer.size)


def record(org, **fields):
    values = {
        "organization_id": org.pk, "application_id": 1, "request_id": REQUEST_ID, "method": "GET",
        "route": "/rme/v1/messages", "status": 200, "seconds": 0.0125,
        "at": int(clock.now().timestamp() * 1e9), "details": Details(),
    }  # fmt: skip
    return RequestRecord(**{**values, **fields})


def entries(org):
    """Return what is in the log, oldest first."""
    request_log.store_pending()
    rows = RequestLogEntry.objects.filter(organization_id=org.pk).order_by("pk")
    return [(r.method, r.route, r.status, r.code, r.message_id) for r in rows]


def test_each_request_of_an_organization_is_recorded_without_its_values(org, recording):
    api, ada = Api(org), factories.contact(org)
    sent = UUID(api.send(message(ada)).json()["messageId"])
    Suppression.objects.create(organization=org, channel="EMAIL", address=ada.email, reason="STOP")
    refused = UUID(api.send(message(ada)).json()["error"]["messageId"])
    api.call("GET", f"/messages/{sent}?x=ada@x.example")
    api.get(str(sent))
    api.get(NOBODY)
    api.call("GET", "/messages/%00%09")
    api.call("POST", "/messages", b"{")
    api.bulk([message(ada)])
    api.call("DELETE", "/messages")
    api.call("GET", "/nothing")  # no path, so nobody's
    api.call("GET", "/messages", Authorization="Bearer x")
    one = "/rme/v1/messages/{message_id}"
    assert entries(org) == [
        ("POST", "/rme/v1/messages", 202, "", sent),
        ("POST", "/rme/v1/messages", 403, "SUPPRESSED", refused),
        ("GET", one, 400, "INVALID_PAYLOAD", None),
        ("GET", one, 200, "", sent),
        ("GET", one, 404, "NOT_FOUND", None),
        ("GET", one, 404, "NOT_FOUND", None),
        ("POST", "/rme/v1/messages", 400, "INVALID_PAYLOAD", None),
        ("POST", "/rme/v1/messages/bulk", 202, "", None),
        ("DELETE", "/rme/v1/messages", 405, "METHOD_NOT_ALLOWED", None),
    ]
    row = RequestLogEntry.objects.first()
    assert (str(row.request_id), row.application_id) == (REQUEST_ID, api.application.pk)
    assert 0 < row.microseconds < 600_000_000
    assert Message.objects.filter(pk=sent).exists()


def test_nothing_is_recorded_while_recording_is_off(org, recording):
    recording.is_on = False
    Api(org).call("GET", "/messages")
    assert recording.take(10) == []


def test_request_log_can_be_disabled(settings, recording):
    recording.is_on = False
    settings.REQUEST_LOG_DAYS = 0
    request_log.start()
    assert recording.is_on is False


def test_batch_of_any_size_is_one_statement(org, recording):
    for count in (1, 300):
        recording.add([record(org)] * count)
        with CaptureQueriesContext(connection) as captured:
            request_log.store_pending()
        assert [each["sql"].split()[0] for each in captured] == ["COPY"]
    assert RequestLogEntry.objects.count() == 301


def test_records_without_room_are_dropped_and_counted(org, counting):
    buffer = RecordBuffer(size=3)
    buffer.add([record(org, status=n) for n in (201, 202)])
    buffer.add([record(org, status=n) for n in (203, 204, 205)])
    assert [each.status for each in buffer.take(2)] == [201, 202]
    buffer.add([record(org, status=206)])
    assert [each.status for each in buffer.take(9)] == [203, 206]
    assert counted(LOST.name) == {labels(): 2.0}


@pytest.mark.django_db(transaction=True)
def test_records_that_cannot_be_stored_are_dropped_and_counted(org, recording, counting):
    recording.add([record(org, route="x" * 101)])
    request_log.store_pending()
    recording.add([record(org)])
    request_log.store_pending()
    assert RequestLogEntry.objects.count() == 1
    assert counted(LOST.name) == {labels(): 1.0}


def test_filters_and_pages(org, recording, monkeypatch):
    start = datetime(2026, 11, 1, tzinfo=UTC)
    for n in range(12):
        at = int((start + timedelta(minutes=n)).timestamp() * 1e9)
        status, route = (404, "/a") if n % 3 == 0 else (202, "/b")
        recording.add([record(org, at=at, status=status, route=route, application_id=n % 2 + 1)])
    recording.add([record(factories.organization("other"), request_id=NOBODY)])
    request_log.store_pending()

    def found(limit=50, before=None, **wanted):
        page = request_log.find("acme", RequestFilter(**wanted), limit=limit, before=before)
        return [(request_log.ids.moment(row.pk) - start).seconds // 60 for row in page.rows], page

    minutes, page = found(limit=5)
    assert (minutes, found(before=page.following)[0]) == ([11, 10, 9, 8, 7], [6, 5, 4, 3, 2, 1, 0])
    assert found(status_class=4)[0] == [9, 6, 3, 0]
    assert found(status_class=4, route="/a", application_id=1)[0] == [6, 0]
    assert found(since=start + timedelta(minutes=10))[0] == [11, 10]
    assert found(until=start + timedelta(minutes=1))[0] == [0]
    assert len(found(request_id=UUID(REQUEST_ID))[0]) == 12
    assert found(request_id=UUID(NOBODY))[0] == []
    monkeypatch.setattr(request_log, "SCAN_LIMIT", 4)
    minutes, page = found(status_class=4)
    assert (minutes, found(status_class=4, before=page.following)[0]) == ([9], [6])


@pytest.mark.parametrize(
    ("own", "since", "minute"),
    [((1, 2), 0, 1), ((1, 2), 2, 2), ((9, 11), 0, 9), ((5,), 0, None), ((), 0, None)],
    ids=["oldest", "since", "among the newest", "in between", "none"],
)
def test_first_request_of_an_application(org, recording, monkeypatch, own, since, minute):
    """`own`: the minutes of its requests; there is another application's in each other minute."""
    monkeypatch.setattr(request_log, "SCAN_LIMIT", 4)
    start = datetime(2026, 11, 1, tzinfo=UTC)
    for n in range(12):
        at = int((start + timedelta(minutes=n)).timestamp() * 1e9)
        recording.add([record(org, at=at, application_id=1 if n in own else 2)])
    request_log.store_pending()
    entry = request_log.first("acme", 1, start + timedelta(minutes=since))
    found = entry and (request_log.ids.moment(entry.pk) - start).seconds // 60
    assert found == minute


def test_past_days_are_dropped(org, recording, settings):
    now = datetime(2031, 5, 20, 12, tzinfo=UTC)
    partitions.create_ahead(
        [request_log.TABLE], now=now - timedelta(days=9), period=Period.DAY, ahead=10
    )
    for days in range(10):
        at = int((now - timedelta(days=days)).timestamp() * 1e9)
        recording.add([record(org, at=at, status=200 + days)])
    request_log.store_pending()
    request_log.drop_old(now=now)
    left = RequestLogEntry.objects.order_by("status").values_list("status", flat=True)
    assert list(left) == [200 + days for days in range(8)]
    settings.REQUEST_LOG_DAYS = 0
    request_log.drop_old(now=now)
    assert list(left.all()) == [200]
    assert request_log.STORE_SECONDS == 1.0
