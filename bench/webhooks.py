"""Webhooks: events written without and with an endpoint, and endpoints told of them.

`python -m bench webhooks`; run by itself with `--port N` it is a receiver that answers 204 to all.
"""

import argparse
import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bench.scene import Scene, free_port, processes, wait_for_port
from bench.webhook_workers import webhook_workers

EVENTS = 500
ROUNDS = 30
ENDPOINTS = 10


class Receiver(asyncio.Protocol):
    """One connection. Requests have bodies of a stated length and come one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            _, named, length = head.lower().partition(b"content-length: ")
            size = int(length.split(b"\r\n")[0]) if named else 0
            if not found or len(rest) < size:
                return
            self.buffer = rest[size:]
            self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def webhooks(scene: Scene) -> None:
    """Write events, and tell endpoints of them by the worker's own loop."""
    from bench.report import say
    from messaging.models import WebhookDelivery, WebhookEndpoint

    WebhookDelivery.objects.all().delete()
    scene.mail_by(free_port())
    rows = _rows(scene)
    say("events, 500 a statement: the events alone", _write(rows, alone=True), "events/s")
    say("events, 500 a statement: no endpoint", _write(rows), "events/s")
    port = free_port()
    with processes([["bench.webhooks", "--port", str(port)]]):
        wait_for_port(port)
        _endpoint(port)
        say("events, 500 a statement: one endpoint", _write(rows), "events/s")
        WebhookDelivery.objects.all().delete()
        for _ in range(ENDPOINTS - 1):
            _endpoint(port)
        _write(rows, rounds=2)
        say("webhooks told, one process", _tell(), "calls/s", f"{ENDPOINTS} endpoints")
        webhook_workers(port)
    WebhookEndpoint.objects.filter(organization_id="bench").delete()


def _rows(scene: Scene) -> list[Any]:
    """Accept messages, and return the row of an event (`EventRow`) for each."""
    from messaging.accept import Submission, accept_bulk
    from messaging.accept.requests import MessageInput
    from messaging.domain.statuses import EventType
    from messaging.models import Delivery
    from messaging.store.events import EventRow
    from rme.tenants import organizations
    from rme.tenants.oauth.authentication import Caller

    caller = Caller(organizations.get("bench"), scene.application_id, user_id=1, test=True)
    taken = [Submission(MessageInput.model_validate(scene.body(i))) for i in range(EVENTS)]
    accept_bulk(caller, taken, key=None, request_id="bench")
    found = Delivery.objects.filter(organization_id="bench").values_list("id", "message_id")
    return [
        EventRow(
            "bench",
            message_id,
            delivery_id,
            EventType.SENT,
            datetime(2026, 1, 1, tzinfo=UTC),
            channel="EMAIL",
            provider="sink",
            test=True,
        )
        for delivery_id, message_id in found[:EVENTS]
    ]


def _write(rows: list[Any], rounds: int = ROUNDS, *, alone: bool = False) -> float:
    from messaging.models import Event
    from messaging.store.events import write_events
    from rme.core import ids
    from rme.core.db import sql

    took = []
    for _ in range(rounds):
        fresh = [replace(row, id=ids.new_text_id()) for row in rows]
        started = time.perf_counter()
        if alone:
            sql.insert({Event: fresh})
        else:
            write_events(fresh)
        took.append(time.perf_counter() - started)
    return len(rows) / sorted(took)[len(took) // 2]


def _endpoint(port: int) -> None:
    from messaging.models import WebhookEndpoint
    from messaging.webhooks import signatures

    WebhookEndpoint.objects.create(
        organization_id="bench",
        url=f"http://127.0.0.1:{port}/",
        types=["message.*"],
        secret=signatures.new_secret(),
    )


def _tell() -> float:
    from messaging.models import WebhookDelivery
    from messaging.webhooks import dispatcher

    count = WebhookDelivery.objects.count()
    started = time.perf_counter()
    while WebhookDelivery.objects.filter(due_at__isnull=False).exists():
        dispatcher.dispatch()
        assert time.perf_counter() - started < 120
    took = time.perf_counter() - started
    assert WebhookDelivery.objects.filter(status="DELIVERED").count() == count
    return count / took


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().port))
