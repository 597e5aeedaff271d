"""Receipts: calls taken over HTTP, and applied to deliveries. `python -m bench receipts`."""

import hashlib
import hmac
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier

from bench import load
from bench.scene import Scene, free_port, processes, wait_for_port, web
from bench.together import seconds_together

COUNT = 10_000
SINGLES = 1000
SECRET = "a secret of more than thirty-two characters"


def receipts(scene: Scene) -> None:
    """Take signed calls, and apply them by the worker's own loop."""
    from bench.report import say

    account, attempts = _sent(scene)
    port = free_port()
    requests = [_request(account, attempt, port) for attempt in attempts]
    with processes([web("rme.asgi:application", port)]):
        wait_for_port(port)
        started = time.perf_counter()
        load.send(port, requests, connections=8, status=b"200")
        taken = COUNT / (time.perf_counter() - started)
    say("receipts: signed calls taken", taken, "calls/s")
    _again()
    one = _apply(1)
    _again()
    two = _apply(2)
    _again()
    single = _one_by_one()
    say("receipts: row by row, one process", single, "receipts/s")
    say("receipts: applied, one process", one, "receipts/s", f"{one / single:.1f} x row by row")
    say("receipts: applied, two processes", two, "receipts/s", f"{two / single:.1f} x row by row")


def _sent(scene: Scene) -> "tuple[str, Sequence[str]]":
    """Write deliveries that were sent, each with its attempt; give the account's public id."""
    import orjson
    from django.utils import timezone

    from messaging.models import Attempt, Callback, Delivery, Message, ProviderAccount
    from rme.core import ids

    Callback.objects.all().delete()
    account, _ = ProviderAccount.objects.update_or_create(
        organization_id="bench",
        name="gateway",
        defaults={
            "kind": "http_sms",
            "channel": "SMS",
            "credentials": orjson.dumps(
                {"url": "https://sms.example", "callback_secret": SECRET}
            ).decode(),
        },
    )
    now = timezone.now()
    messages, deliveries, attempts = [], [], []
    for _ in range(COUNT):
        common = {"organization_id": "bench"}
        message = Message(**common, category="TRANSACTIONAL", channels=["SMS"], strategy="")
        delivery = Delivery(
            **common,
            message_id=message.pk,
            contact_id=scene.contacts[0],
            category="TRANSACTIONAL",
            channels=[],
            channel="SMS",
            address="+12025550123",
            status="SENT",
            expires_at=now,
            fence=1,
        )
        attempt = Attempt(
            id=ids.new_id(),
            **common,
            message_id=message.pk,
            delivery_id=delivery.pk,
            fence=1,
            channel="SMS",
            provider="gateway",
            account_id=account.pk,
            outcome="Accepted",
        )
        messages.append(message)
        deliveries.append(delivery)
        attempts.append(attempt)
    Message.objects.bulk_create(messages, batch_size=1000)
    Delivery.objects.bulk_create(deliveries, batch_size=1000)
    Attempt.objects.bulk_create(attempts, batch_size=1000)
    return account.public_id, [str(attempt.pk) for attempt in attempts]


def _request(public_id: str, attempt: str, port: int) -> bytes:
    from django.conf import settings

    url = f"{settings.BASE_URL}/hooks/{public_id}"
    sign = hmac.new(SECRET.encode(), f"{url}|{attempt}".encode(), hashlib.sha256).hexdigest()
    path = f"/hooks/{public_id}?attempt={attempt}&sign={sign}&status=delivered"
    return load.request_bytes(path, b"", "", port=port)


def _again() -> None:
    """Forget what the reports said, so that the same calls can be applied once more."""
    from messaging.models import Callback, Delivery, Event

    Event.objects.all().delete()
    Delivery.objects.filter(channel="SMS").update(status="SENT")
    rows = Callback.objects.all()
    rows.update(due_at=rows.earliest("received_at").received_at, tries=0)


def _delivered() -> int:
    from messaging.models import Delivery

    return Delivery.objects.filter(status="DELIVERED", channel="SMS").count()


def _work(start: Barrier) -> None:
    """Apply what came in, as the worker's task does, until nothing is left."""
    import django

    django.setup()
    from messaging.feedback import callbacks
    from messaging.models import ProviderAccount

    ProviderAccount.objects.count()  # the connection stands, as a worker's does
    start.wait(60)
    while callbacks.apply_due()[0]:
        pass


def _apply(workers: int) -> float:
    """Apply all calls by worker processes; gives receipts a second."""
    took = seconds_together(workers, _work)
    assert _delivered() == COUNT
    return COUNT / took


def _one_by_one() -> float:
    """Apply a part of the calls as is usual: each in a transaction of its own, row by row."""
    from django.db import transaction

    from messaging.models import Attempt, Callback, Delivery, Event

    calls = list(Callback.objects.order_by("id").values_list("pk", "query")[:SINGLES])
    started = time.perf_counter()
    for pk, query in calls:
        attempt_id = query.partition("attempt=")[2].partition("&")[0]
        with transaction.atomic():
            attempt = Attempt.objects.get(pk=attempt_id)
            delivery = Delivery.objects.select_for_update().get(pk=attempt.delivery_id)
            delivery.status = "DELIVERED"
            delivery.save(update_fields=["status"])
            for kind in ("sent", "delivered"):
                Event.objects.create(
                    organization_id=delivery.organization_id,
                    message_id=delivery.message_id,
                    delivery_id=delivery.pk,
                    type=kind,
                    channel="SMS",
                )
            Callback.objects.filter(pk=pk).update(due_at=None)
    took = time.perf_counter() - started
    assert _delivered() == SINGLES
    return SINGLES / took
