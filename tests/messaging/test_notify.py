"""Telling endpoints of events: what is sent, when again, and that none holds up another."""

import threading
import time
import uuid
from collections import deque
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest
import structlog
from django.db import connection
from django.test.utils import CaptureQueriesContext
from standardwebhooks.webhooks import WebhookVerificationError

from messaging import endpoints, notices, notify, replaying
from messaging.models import Delivery, Event, Message, Notice, WebhookEndpoint
from rme.core import clock, locks
from rme.core.clock import iso
from rme.core.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.http1 import Http1Server, respond
from tests.messaging.hooks_scene import Receiver, endpoint, hang, pass_time, tell, verified, waits
from tests.rest import message, work

pytestmark = pytest.mark.django_db
S = Notice.Status


@pytest.fixture(autouse=True)
def _loopback(settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]


@pytest.fixture
def receiver():
    with Receiver() as made:
        yield made


def note(row, count=1):
    """Note so many tests for an endpoint."""
    return [replaying.add_test(row) for _ in range(count)]


def states():
    return list(Notice.objects.order_by("id").values_list("status", "tries"))


# --- what is sent ---------------------------------------------------------------------------------


def test_an_event_is_told_whole(api, org, receiver):
    row = endpoint(org, f"{receiver.url}hook?a=1", "message.sent")
    ada = factories.contact(org)
    sent = api.send(message(ada, metadata={"order": "7"})).json()["messageId"]
    work()
    tell()
    (seen,) = receiver.seen
    event = Event.objects.get(type="sent")
    assert (seen.method, seen.path) == ("POST", "/hook?a=1")
    assert seen.header("content-type") == "application/json"
    assert seen.header("webhook-id") == str(event.pk)
    assert abs(time.time() - int(seen.header("webhook-timestamp"))) < 30
    assert verified(seen, row.secret) == [
        {
            "type": "message.sent",
            "timestamp": iso(event.at),
            "data": {
                "messageId": sent,
                "contactId": str(ada.pk),
                "channel": "EMAIL",
                "category": "TRANSACTIONAL",
                "status": "DELIVERED",
                "provider": "simulator",
                "test": False,
                "metadata": {"order": "7"},
                "detail": None,
            },
        }
    ]
    assert states() == [(S.DELIVERED, 1)]


def test_a_refusal_tells_why(api, org, receiver):
    endpoint(org, receiver.url)
    api.send(message(factories.contact(org, email="", mobile="")))
    tell()
    (seen,) = receiver.seen
    told = orjson.loads(seen.body)
    assert (told["type"], told["data"]["status"], told["data"]["detail"]) == (
        "message.blocked",
        "BLOCKED",
        {"reason": "UNREACHABLE"},
    )


def test_a_test_has_a_body_of_its_own(org, receiver):
    row = endpoint(org, receiver.url, "message.sent", description="CRM")
    (identifier,) = note(row)
    noted = Notice.objects.get().noted_at
    tell()
    (seen,) = receiver.seen
    assert seen.header("webhook-id") == str(identifier)
    assert verified(seen, row.secret) == [
        {"type": "webhook.test", "timestamp": iso(noted), "data": {"endpoint": "CRM"}}
    ]


def test_both_secrets_sign_for_a_day(org, receiver):
    row = endpoint(org, receiver.url)
    fresh = endpoints.rotate(row)
    note(row)
    tell()
    WebhookEndpoint.objects.update(former_until=datetime.now(UTC) - timedelta(seconds=1))
    note(row)
    tell()
    both, one = receiver.seen
    assert len(both.header("webhook-signature").split()) == 2
    assert len(verified(both, row.secret, fresh)) == 2
    assert len(verified(one, fresh)) == 1
    with pytest.raises(WebhookVerificationError):
        verified(one, row.secret)
    notices.purge()
    stored = WebhookEndpoint.objects.get()
    assert (stored.secret, stored.former_secret, stored.former_until) == (fresh, "", None)


def test_secrets_are_encrypted_in_the_database(org):
    row = endpoint(org, "https://hooks.example.com/")
    endpoints.rotate(row)
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret || former_secret FROM messaging_webhookendpoint")
        (stored,) = cursor.fetchone()
    assert "whsec_" not in stored


def test_what_there_is_nothing_to_tell_of_any_more_is_given_up(api, org, receiver):
    endpoint(org, receiver.url, "message.accepted")
    for _ in range(3):
        api.send(message(factories.contact(org)))
    first, second, _ = Event.objects.filter(type="accepted").order_by("id")
    Event.objects.filter(pk=first.pk).delete()
    Message.objects.filter(pk=second.message_id).delete()
    tell()
    assert states() == [(S.FAILED, 1), (S.FAILED, 1), (S.DELIVERED, 1)]
    assert len(receiver.seen) == 1


# --- what an answer means -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(org, status):
    with Receiver(status) as receiver:
        row = endpoint(org, receiver.url)
        note(row)
        tell()
    (notice,) = Notice.objects.all()
    (attempt,) = notice.attempts
    assert (notice.status, notice.due_at, attempt["status"], attempt["answer"]) == (
        S.DELIVERED,
        None,
        status,
        None,
    )


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 429, 500, 503])
def test_anything_else_is_tried_again(org, status):
    headers = {"Location": "http://127.0.0.1:1/elsewhere"}
    with Receiver(status, headers=headers, body=b"no \x00<b>\xff" + b"x" * 600) as receiver:
        row = endpoint(org, receiver.url)
        note(row)
        tell()
        assert len(receiver.seen) == 1
    (notice,) = Notice.objects.all()
    (attempt,) = notice.attempts
    assert (notice.status, notice.tries, attempt["status"]) == (S.PENDING, 1, status)
    assert attempt["answer"] == ("no �<b>�" + "x" * 600)[:500]
    assert 4.4 <= waits()[0] <= 5.6


def test_an_answer_that_is_too_long_counts_by_its_status(org):
    with Receiver(200, 500, body=b"x" * 100_000) as receiver:
        row = endpoint(org, receiver.url)
        note(row)
        tell()
        note(row)
        tell()
    assert states() == [(S.DELIVERED, 1), (S.PENDING, 1)]
    errors = [notice.attempts[0]["error"] for notice in Notice.objects.order_by("id")]
    assert errors == [None, "the answer is too long"]


def test_the_schedule_of_tries(org, receiver):
    receiver.statuses = [500] * 99
    row = endpoint(org, receiver.url)
    note(row)
    seen = []
    for _ in range(9):
        tell()
        (wait,) = waits()
        seen.append(wait)
        pass_time(seconds=wait + 0.5)
        Notice.objects.update(noted_at=datetime.now(UTC))  # its age is another matter
    assert [round(wait / usual, 1) for wait, usual in zip(seen, notify.SCHEDULE, strict=True)] == [
        pytest.approx(1, abs=0.11)
    ] * 9
    tell()
    assert (states(), waits(), len(receiver.told)) == ([(S.FAILED, 10)], [None], 10)
    assert len(set(receiver.told)) == 1  # the same webhook-id each time
    pass_time(days=1)
    tell()
    assert len(receiver.told) == 10


def test_the_schedule_is_about_three_days():
    assert timedelta(days=3) < timedelta(seconds=sum(notify.SCHEDULE)) < notices.GIVE_UP


def test_an_old_notice_is_tried_a_last_time(org, receiver):
    receiver.statuses = [500]
    row = endpoint(org, receiver.url)
    note(row)
    pass_time(days=5)
    tell()
    assert states() == [(S.FAILED, 1)]


@pytest.mark.parametrize(
    ("wish", "least", "most"),
    [
        ("120", 119, 121),
        ("99999999999999999999999999999999999999", 3598, 3601),
        ("-5", 4.4, 5.6),
        ("soon", 4.4, 5.6),
        ("1e9", 4.4, 5.6),
        ("", 4.4, 5.6),
        ("\t٣", 4.4, 5.6),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 4.4, 5.6),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3598, 3601),
    ],
    ids=["seconds", "huge", "negative", "word", "float", "empty", "digits", "past", "future"],
)
def test_retry_after_is_honoured_within_bounds(org, wish, least, most):
    def answer(sock, seen):
        head = f"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nRetry-After: {wish}\r\n\r\n"
        sock.sendall(head.encode())

    with Http1Server(answer) as receiver:
        note(endpoint(org, receiver.url))
        tell()
    (wait,) = waits()
    assert least <= wait <= most


def test_the_queue_waits_as_long_as_the_endpoint_asked(org):
    when = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    with Receiver(503, headers={"Retry-After": when}) as receiver:
        row = endpoint(org, receiver.url)
        note(row)
        tell()
        note(row)
        pass_time(minutes=9)
        tell()
        assert len(receiver.seen) == 1
        pass_time(minutes=1)
        tell()
        assert len(receiver.seen) == 3


# --- endpoints that fail --------------------------------------------------------------------------


def test_410_switches_the_endpoint_off_at_once(org, api, receiver):
    receiver.statuses = [410]
    row = endpoint(org, receiver.url)
    note(row, 3)
    with structlog.testing.capture_logs() as logs:
        tell()
    row.refresh_from_db()
    assert (row.enabled, row.disabled_reason) == (False, "It answered 410: gone.")
    assert len(receiver.seen) == 1
    told = {"event": "endpoint.disabled", "log_level": "warning"}
    assert logs == [{**told, "endpoint_id": row.pk, "organization_id": "acme"}]
    pass_time(hours=1)
    endpoints.forget(org.pk)
    api.send(message(factories.contact(org)))
    tell()
    assert (len(receiver.seen), Notice.objects.count()) == (1, 3)  # neither told nor noted
    endpoints.enable(row)
    tell()
    assert {status for status, _ in states()} == {S.DELIVERED}


def test_a_dead_endpoint_costs_one_request_a_turn(org, receiver):
    receiver.statuses = [500] * 99
    row = endpoint(org, receiver.url)
    note(row, 50)
    waited = []
    for turn in range(1, 14):
        tell()
        assert len(receiver.seen) == turn
        row.refresh_from_db()
        wait = (row.free_at - datetime.now(UTC)).total_seconds()
        waited.append(round(wait))
        pass_time(seconds=wait + 0.1)
    usual = [min(2.0**n, 1800) for n in range(13)]
    assert [w / u for w, u in zip(waited, usual, strict=True)][3:] == [
        pytest.approx(1, abs=0.15)
    ] * 10
    receiver.statuses = []
    pass_time(hours=12)
    tell()
    row.refresh_from_db()
    assert (row.failures, row.failing_since) == (0, None)
    assert {status for status, _ in states()} == {S.DELIVERED}


def test_five_days_without_a_success_switch_an_endpoint_off(org, receiver):
    receiver.statuses = [500, 500, 200, 500, 500, 500]
    row = endpoint(org, receiver.url)
    enabled = []
    for days in (0, 3, 3, 3, 3, 3):
        pass_time(days=days)
        note(row)
        Notice.objects.exclude(pk=Notice.objects.latest("id").pk).update(due_at=None)
        tell()
        row.refresh_from_db()
        enabled.append(row.enabled)
    assert enabled == [True, True, True, True, True, False]
    assert row.disabled_reason == "It failed for 5 days."


def test_a_failure_among_successes_waits_alone(org, receiver):
    receiver.statuses = [200, 200, 500]
    row = endpoint(org, receiver.url)
    note(row, 20)
    tell(0.5)
    pass_time(seconds=2)
    tell(0.5)
    counts = [status for status, _ in states()]
    assert (counts.count(S.DELIVERED), counts.count(S.PENDING)) == (19, 1)
    row.refresh_from_db()
    assert (row.failures, row.failing_since, row.enabled) == (0, None, True)


def test_endpoints_that_are_quick_do_not_wait_for_those_that_hang(org, receiver):
    other = factories.organization("other")
    with Http1Server(hang) as hanging:
        slow = [endpoint(org, f"{hanging.url}{n}") for n in range(3)]
        quick = [endpoint(other, f"{receiver.url}{n}") for n in range(100)]
        for row in slow:
            note(row, 5)
        for row in quick:
            note(row, 2)
        began = time.monotonic()
        arrived = []

        def watch():
            while len(receiver.seen) < 200 and time.monotonic() < began + 8:
                time.sleep(0.01)
            arrived.append(time.monotonic() - began)

        watching = threading.Thread(target=watch)
        watching.start()
        tell(2.0)
        watching.join()
        took = time.monotonic() - began
    assert len(receiver.seen) == 200
    assert arrived[0] < 2.5 < took  # all had come while the others hung
    assert len(hanging.seen) == 3  # one probe each
    assert Notice.objects.filter(status=S.DELIVERED).count() == 200


def test_what_comes_while_one_hangs_is_told_too(org, receiver):
    with Http1Server(hang) as hanging:
        note(endpoint(org, hanging.url))
        late = endpoint(org, receiver.url)
        hand = notify.Round(Transport(AddressPolicy(["127.0.0.1"])))
        assert hand.run(time.monotonic() + 0.3) is False
        note(late)
        assert hand.run(time.monotonic() + 1) is False
        assert len(receiver.seen) == 1
        hand.finish()
        hand.flight.close()
    assert states() == [(S.PENDING, 1), (S.DELIVERED, 1)]


def test_at_most_a_few_are_under_way_to_one_endpoint(org):
    present, most, guard = [0], [0], threading.Lock()

    def answer(sock, seen):
        with guard:
            present[0] += 1
            most[0] = max(most[0], present[0])
        time.sleep(0.02)
        with guard:
            present[0] -= 1
        respond(sock, 200)

    with Http1Server(answer) as receiver:
        note(endpoint(org, receiver.url), 60)
        tell()
    assert most[0] == notify.ENDPOINT_LIMIT
    assert states() == [(S.DELIVERED, 1)] * 60


# --- addresses ------------------------------------------------------------------------------------

PRIVATE = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://10.0.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://192.168.1.1/",
    "https://0.0.0.0/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://localhost/",
    "https://rebound.example/",
    "http://93.184.216.34/",
    "ftp://example.com/",
    "https://user:pw@example.com/",
    "smtp://example.com/",
]


@pytest.mark.parametrize("url", PRIVATE)
def test_what_is_not_public_is_never_called(org, settings, url):
    settings.OUTBOUND_OPEN_HOSTS = []
    note(endpoint(org, url))
    resolve = ["rebound.example:443:127.0.0.1", "localhost:443:127.0.0.1"]
    tell(transport=Transport(AddressPolicy(), resolve=resolve))
    (notice,) = Notice.objects.all()
    (attempt,) = notice.attempts
    assert (notice.status, attempt["status"]) == (S.PENDING, None)
    assert attempt["error"] in {
        "the address is not public",
        "the address is not https",
        "not an address to call",
    }


def test_a_redirect_is_never_followed(org, settings):
    with Receiver() as inside, Receiver(307, headers={"Location": inside.url}) as outside:
        settings.OUTBOUND_OPEN_HOSTS = [f"127.0.0.1:{outside.port}"]
        note(endpoint(org, outside.url))
        tell()
        assert (len(outside.seen), inside.seen) == (1, [])


def test_a_url_with_what_no_url_has_fails_alone(org, receiver):
    note(endpoint(org, "https://hooks.example.com/\u00e9 \n"))
    note(endpoint(org, receiver.url))
    tell()
    assert states() == [(S.PENDING, 1), (S.DELIVERED, 1)]


# --- workers --------------------------------------------------------------------------------------


def test_a_worker_that_died_is_followed_by_another_with_the_same_ids(org, receiver):
    row = endpoint(org, receiver.url)
    expected = note(row, 3)
    dead = notify.Round(Transport(AddressPolicy(["127.0.0.1"])))
    dead.begin(notices.claim(10))
    while len(receiver.seen) < 1:
        dead.flight.step(0.1)  # it was told, and nothing was written down
    dead.flight.close()
    tell()
    assert len(receiver.seen) == 1  # the lease holds
    pass_time(seconds=notices.LEASE_SECONDS + 1)
    tell()
    ids = [identifier for identifier, _ in receiver.told]
    assert sorted(ids) == sorted([str(expected[0]), *map(str, expected)])
    assert states() == [(S.DELIVERED, 1)] * 3


def test_one_that_comes_back_from_the_dead_frees_nothing(org):
    row = endpoint(org, "https://hooks.example.com/")
    note(row)
    (frozen,) = notices.claim(10)
    pass_time(seconds=notices.LEASE_SECONDS + 1)
    (held,) = notices.claim(10)
    turn = notify.Turn(frozen, deque(frozen.due))
    (due,) = turn.take()
    turn.hear(due, notify.Answer(200, "", "", 0.0), 1)
    notices.settle([turn.settled()])
    row.refresh_from_db()
    assert held.fence == frozen.fence + 1 == row.fence
    assert row.free_at > datetime.now(UTC) + timedelta(seconds=50)  # the other holds it still
    assert states() == [(S.DELIVERED, 1)]


def test_one_worker_takes_queues_at_a_time(org, receiver):
    note(endpoint(org, receiver.url))
    taken, go = threading.Event(), threading.Event()

    def hold():
        with locks.alone("messaging.notify") as alone:
            assert alone
            taken.set()
            go.wait(5)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait(5)
    notify.notify()
    assert receiver.seen == []
    go.set()
    holder.join()
    notify.notify()
    assert len(receiver.seen) == 1


def test_statements_do_not_grow_with_notices(org):
    row = endpoint(org, "https://hooks.example.com/")
    counts = []
    clock.now()  # asked every ten seconds
    for count in (1, 100):
        note(row, count)
        with CaptureQueriesContext(connection) as took:
            (claim,) = notices.claim(10)
            turn = notify.Turn(claim, deque(claim.due))
            turn.succeeded = True
            for due in list(turn.line):
                turn.under_way += 1
                turn.hear(due, notify.Answer(200, "", "", 0.0), 1)
            turn.line.clear()
            notices.settle([turn.settled()])
        counts.append((len(turn.told), len(took)))
    assert counts == [(1, 3), (100, 3)]


def test_statements_do_not_grow_with_endpoints(org, receiver):
    counts = []
    for count in (1, 20):
        for n in range(count):
            note(endpoint(org, f"{receiver.url}{count}-{n}"), 25)
        with CaptureQueriesContext(connection) as took:
            claims = notices.claim(100)
        counts.append((sum(len(claim.due) for claim in claims), len(took)))
        pass_time(seconds=100)
        Notice.objects.update(due_at=None, status=S.DELIVERED)
    assert counts == [(25, 2), (500, 2)]


def test_nothing_to_do_is_one_statement(org):
    endpoint(org, "https://hooks.example.com/")
    with CaptureQueriesContext(connection) as took:
        assert notices.claim(10) == []
    assert len(took) == 1


def test_another_organizations_event_is_not_told(org, api, receiver):
    endpoint(org, receiver.url)
    api.send(message(factories.contact(org)))
    Event.objects.update(organization_id="other")
    tell()
    assert receiver.seen == []
    assert Delivery.objects.count() == 1
    assert uuid.UUID(str(Notice.objects.get().event_id)) == Event.objects.get().pk
