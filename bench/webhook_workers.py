"""Webhook deliveries by 1, 2 and 4 workers, in turns, beside what the receiver can take.

Run by itself it is a worker: it prints a line when it is ready, starts by a line of its input, and
dispatches until nothing is due.
"""

import subprocess
import sys
import time
from statistics import median

from bench.report import say
from bench.scene import ROOT

WORKERS = (1, 2, 4)
TURNS = 3
COUNT = 20_000
ENDPOINTS = 100
BODY = b"x" * 400
PAUSE_SECONDS = 0.05
"""Of a worker that finds nothing to do, as the other workers have the rest."""


def webhook_workers(port: int) -> None:
    """Deliver the same number of events by each number of workers, to many endpoints."""
    from messaging.models import WebhookDelivery

    limits, rates = [], {number: list[float]() for number in WORKERS}
    costs = {number: list[float]() for number in WORKERS}
    shares = {number: list[float]() for number in WORKERS}
    for _ in range(TURNS):
        limits.append(_limit(port))
        for number in WORKERS:
            WebhookDelivery.objects.all().delete()
            _queue(port)
            took, seconds = _dispatch(number)
            assert not WebhookDelivery.objects.exclude(status="DELIVERED").exists()
            rates[number].append(COUNT / took)
            costs[number].append(sum(seconds) / COUNT * 1e6)
            shares[number].append(max(seconds) / sum(seconds) * number)
    say("the receiver alone, by one client", median(limits), "calls/s")
    for number in WORKERS:
        note = f"{median(costs[number]):,.0f} µs of CPU a call; {ENDPOINTS} endpoints"
        if number > 1:
            note += f"; the busiest worker has {median(shares[number]):.2f} of its share"
        say(f"webhooks delivered, workers: {number}", median(rates[number]), "calls/s", note)


def _queue(port: int) -> None:
    """Queue as many deliveries for each endpoint, of events of their own."""
    from messaging.models import WebhookDelivery, WebhookEndpoint
    from messaging.webhooks import signatures
    from rme.core import ids

    WebhookEndpoint.objects.filter(organization_id="bench").delete()
    endpoints = WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(
            organization_id="bench",
            url=f"http://127.0.0.1:{port}/{number}",
            types=["message.*"],
            secret=signatures.new_secret(),
        )
        for number in range(ENDPOINTS)
    )
    rows = (
        WebhookDelivery(
            organization_id="bench",
            endpoint_id=endpoint.pk,
            event_id=ids.new_id(),
            type="webhook.test",
            data={"note": "x" * 300},
        )
        for _ in range(COUNT // ENDPOINTS)
        for endpoint in endpoints
    )
    WebhookDelivery.objects.bulk_create(rows, batch_size=5000)


def _dispatch(number: int) -> tuple[float, list[float]]:
    """Return how long workers take, and the CPU seconds of each."""
    command = [sys.executable, "-m", "bench.webhook_workers"]
    running = [
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(number)
    ]
    for each in running:
        assert each.stdout is not None
        each.stdout.readline()
    started = time.perf_counter()
    for each in running:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    seconds = [float(each.communicate()[0]) for each in running]
    return time.perf_counter() - started, seconds


def _limit(port: int) -> float:
    """Return how many calls a second the receiver answers, made by the same transport."""
    from rme.transport import AddressPolicy, Request, RequestsInFlight, Transport

    requests: RequestsInFlight[int] = RequestsInFlight(
        Transport(AddressPolicy(["127.0.0.1"]), per_host=300)
    )
    started, sent, answered = time.perf_counter(), 0, 0
    while answered < COUNT:
        while sent < COUNT and len(requests) < 64:
            requests.add(sent, Request(f"http://127.0.0.1:{port}/", BODY))
            sent += 1
        answered += len(requests.step(1.0))
    requests.close()
    return COUNT / (time.perf_counter() - started)


def _work() -> None:
    import django

    django.setup()
    from messaging.models import WebhookDelivery
    from messaging.webhooks import dispatcher

    due = WebhookDelivery.objects.filter(due_at__isnull=False)
    assert due.exists()  # and the connection is open
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    while due.exists():
        dispatcher.dispatch()
        time.sleep(PAUSE_SECONDS)
    print(time.process_time() - before, flush=True)


if __name__ == "__main__":
    _work()
