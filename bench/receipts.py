"""Receipts: calls taken over HTTP, and applied to deliveries. `python -m bench receipts`."""

import hashlib
import hmac
import time
from typing import TYPE_CHECKING

from bench import load
from bench.scene import Scene, free_port, processes, wait_for_port, web

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNT = 10_000
SECRET = "a secret of more than thirty-two characters"


def receipts(scene: Scene) -> None:
    """Take signed calls, and apply them by the worker's own loop."""
    from bench.__main__ import say

    account, attempts = _sent(scene)
    port = free_port()
    requests = [_request(account, attempt, port) for attempt in attempts]
    with processes([web("rme.wsgi:application", port)]):
        wait_for_port(port)
        started = time.perf_counter()
        load.send(port, requests, connections=8, status=b"200")
        taken = COUNT / (time.perf_counter() - started)
    say("receipts: signed calls taken", taken, "calls/s")
    say("receipts: applied, one process", _apply(), "receipts/s")


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


def _apply() -> float:
    from messaging import callbacks
    from messaging.models import Delivery

    started, applied = time.perf_counter(), 0
    while applied < COUNT:
        count, _ = callbacks.work()
        assert count, applied
        applied += count
    took = time.perf_counter() - started
    assert Delivery.objects.filter(status="DELIVERED", channel="SMS").count() == COUNT
    return COUNT / took
