"""Which answers of an endpoint are a success, and when it is told again."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from messaging.models import WebhookDelivery
from messaging.webhooks import dispatcher, outbox
from tests.fakes.http1 import Http1Server
from tests.messaging.webhooks.dispatcher_scene import note, states
from tests.messaging.webhooks.hooks_scene import Receiver, endpoint, pass_time, tell, waits

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
S = WebhookDelivery.Status


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(org, status):
    with Receiver(status) as receiver:
        row = endpoint(org, receiver.url)
        note(row)
        tell()
    (notice,) = WebhookDelivery.objects.all()
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
    (notice,) = WebhookDelivery.objects.all()
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
    errors = [notice.attempts[0]["error"] for notice in WebhookDelivery.objects.order_by("id")]
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
        WebhookDelivery.objects.update(queued_at=datetime.now(UTC))  # its age is another matter
    assert [
        round(wait / usual, 1) for wait, usual in zip(seen, dispatcher.SCHEDULE, strict=True)
    ] == [pytest.approx(1, abs=0.11)] * 9
    tell()
    assert (states(), waits(), len(receiver.told)) == ([(S.FAILED, 10)], [None], 10)
    assert len(set(receiver.told)) == 1  # the same webhook-id each time
    pass_time(days=1)
    tell()
    assert len(receiver.told) == 10


def test_the_schedule_is_about_three_days():
    assert timedelta(days=3) < timedelta(seconds=sum(dispatcher.SCHEDULE)) < outbox.GIVE_UP


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
