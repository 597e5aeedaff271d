"""Which responses are a success, and when a delivery is tried again."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from messaging.domain.webhooks import GIVE_UP
from messaging.models import WebhookDelivery
from messaging.webhooks import endpoint_queue
from tests.fakes.http1 import Http1Server
from tests.messaging.webhooks.dispatcher_scene import queue, states
from tests.messaging.webhooks.webhook_scene import (
    Receiver,
    dispatch_all,
    dispatch_measured,
    endpoint,
    pass_time,
    waits,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
S = WebhookDelivery.Status


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(org, status):
    with Receiver(status) as receiver:
        row = endpoint(org, receiver.url)
        queue(row)
        dispatch_all()
    (delivery,) = WebhookDelivery.objects.all()
    (attempt,) = delivery.attempts
    assert (delivery.status, delivery.due_at, attempt["status"], attempt["answer"]) == (
        S.DELIVERED,
        None,
        status,
        None,
    )


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 429, 500, 503])
def test_status_other_than_2xx_is_retried(org, status):
    headers = {"Location": "http://127.0.0.1:1/elsewhere"}
    with Receiver(status, headers=headers, body=b"no \x00<b>\xff" + b"x" * 1200) as receiver:
        row = endpoint(org, receiver.url)
        queue(row)
        (due,) = dispatch_measured()
        assert len(receiver.seen) == 1
    (delivery,) = WebhookDelivery.objects.all()
    (attempt,) = delivery.attempts
    assert (delivery.status, delivery.tries, attempt["status"]) == (S.PENDING, 1, status)
    assert attempt["answer"] == ("no �<b>�" + "x" * 1200)[:1000]
    assert due.is_between(4.5, 5.5)


def test_too_long_response_counts_by_its_status(org):
    with Receiver(200, 500, body=b"x" * 100_000) as receiver:
        row = endpoint(org, receiver.url)
        queue(row)
        dispatch_all()
        queue(row)
        dispatch_all()
    assert states() == [(S.DELIVERED, 1), (S.PENDING, 1)]
    errors = [delivery.attempts[0]["error"] for delivery in WebhookDelivery.objects.order_by("id")]
    assert errors == [None, "the answer is too long"]


@pytest.mark.promise("webhooks-7")
def test_the_schedule_of_attempts(org, receiver):
    receiver.statuses = [500] * 99
    row = endpoint(org, receiver.url)
    queue(row)
    for usual in endpoint_queue.SCHEDULE:
        (due,) = dispatch_measured()
        assert due.is_between(0.9 * usual, 1.1 * usual)
        pass_time(seconds=due.from_start)
        WebhookDelivery.objects.update(queued_at=datetime.now(UTC))  # keeps it young
    dispatch_all()
    assert (states(), waits(), len(receiver.received)) == ([(S.FAILED, 10)], [None], 10)
    assert len(set(receiver.received)) == 1  # the same webhook-id each time
    pass_time(days=1)
    dispatch_all()
    assert len(receiver.received) == 10


@pytest.mark.promise("webhooks-7")
def test_the_schedule_is_about_three_days():
    assert timedelta(days=3) < timedelta(seconds=sum(endpoint_queue.SCHEDULE)) < GIVE_UP


def test_an_old_delivery_is_tried_a_last_time(org, receiver):
    receiver.statuses = [500]
    row = endpoint(org, receiver.url)
    queue(row)
    pass_time(days=5)
    dispatch_all()
    assert states() == [(S.FAILED, 1)]


@pytest.mark.parametrize(
    ("requested", "least", "most"),
    [
        ("120", 120, 120),
        ("99999999999999999999999999999999999999", 3600, 3600),
        ("-5", 4.5, 5.5),
        ("soon", 4.5, 5.5),
        ("1e9", 4.5, 5.5),
        ("", 4.5, 5.5),
        ("\t٣", 4.5, 5.5),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 4.5, 5.5),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600, 3600),
    ],
    ids=["seconds", "huge", "negative", "word", "float", "empty", "digits", "past", "future"],
)
def test_retry_after_is_honoured_within_bounds(org, requested, least, most):
    def answer(sock, seen):
        head = f"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nRetry-After: {requested}\r\n\r\n"
        sock.sendall(head.encode())

    with Http1Server(answer) as receiver:
        queue(endpoint(org, receiver.url))
        (due,) = dispatch_measured()
    assert due.is_between(least, most)


def test_the_queue_waits_as_long_as_retry_after(org):
    when = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    with Receiver(503, headers={"Retry-After": when}) as receiver:
        row = endpoint(org, receiver.url)
        queue(row)
        dispatch_all()
        queue(row)
        pass_time(minutes=9)
        dispatch_all()
        assert len(receiver.seen) == 1
        pass_time(minutes=1)
        dispatch_all()
        assert len(receiver.seen) == 3
