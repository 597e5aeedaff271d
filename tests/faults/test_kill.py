"""Killing what can be killed while messages go: every accepted one is sent, doubles are bounded."""

import time

import pytest
import requests
from redis import Redis

from rme.run.places import sockets

pytestmark = pytest.mark.xdist_group("service-2")

WINDOW = 50
WORKERS = 2  # processes that send email
MESSAGES = 5000
CATCH_UP_SECONDS = 300


def bulk(demo, token, note):
    item = {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "template": {"name": "note", "language": "en_US"},
        "context": {"variables": {"note": note}},
    }
    messages = [{**item, "to": [{"contactId": demo["contact_ids"][i % 6]}]} for i in range(500)]
    return requests.post(
        f"{demo['base_url']}/messages/bulk",
        json={"messages": messages},
        headers={"Authorization": f"Bearer {token}", "Idempotency-Key": note},
        timeout=20,
    )


def persistent_bulk(demo, token, note):
    """Send a bulk as a good client does: with the same key until there is an answer."""
    for _ in range(240):
        try:
            answer = bulk(demo, token, note)
            if answer.status_code == 202:
                return [result["messageId"] for result in answer.json()["results"]]
        except requests.RequestException:
            pass  # the web was killed: try again
        time.sleep(0.5)
    raise AssertionError("no answer in two minutes")


@pytest.mark.promise("reliability-1", "reliability-4", "faults-1", "faults-13")
def test_nothing_is_lost_and_doubles_are_bounded(scene):
    service, sink = scene
    demo = service.demo()
    token = service.token(demo)
    earlier = {
        identifier for (identifier,) in service.sql("SELECT id::text FROM messaging_delivery")
    }
    accepted = []
    for number in range(MESSAGES // 500):
        accepted += persistent_bulk(demo, token, f"part-{number}")
        if number == 2:
            service.kill("rme.workers")
        elif number == 5:
            service.kill("rme.web")
        elif number == 7:
            socket = sockets(service.var) / "valkey.sock"
            Redis(unix_socket_path=str(socket)).flushall()
            service.kill("valkey-server")
    assert len(set(accepted)) == MESSAGES

    until = time.monotonic() + CATCH_UP_SECONDS
    own = ",".join(f"'{each}'" for each in accepted)
    deliveries = f"FROM messaging_delivery WHERE message_id IN ({own})"
    count = f"SELECT count(*) {deliveries} AND status <> 'SENT'"
    while (left := service.sql(count)[0][0]) and time.monotonic() < until:
        time.sleep(0.25)
    assert left == 0

    mails = {key: count for key, count in sink.received().items() if key not in earlier}
    assert set(mails) == {
        identifier for (identifier,) in service.sql(f"SELECT id::text {deliveries}")
    }
    doubled = sum(count - 1 for count in mails.values())
    assert doubled <= WINDOW * WORKERS
