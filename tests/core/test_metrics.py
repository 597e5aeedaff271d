"""/metrics: who may read it and what it shows."""

import re
import socket
from datetime import UTC, datetime, timedelta

import pytest
from celery import current_app
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging.models import Attempt, Delivery
from rme import metrics
from rme.core import ids
from rme.core.redis import heartbeats
from rme.core.redis.connection import redis_client
from tests import databases, factories
from tests.rest import Api, message
from tests.stopwatch import Stopwatch

UNSENT = "rme_transactional_oldest_seconds"
TOKEN = "a-long-metrics-token"


pytestmark = pytest.mark.usefixtures("redis", "counting")


def scrape():
    """Return the samples by name and labels; check that the text is Prometheus's format."""
    answer = Client(HTTP_HOST="127.0.0.1:8000").get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.content.decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


@pytest.mark.promise("health-11")
@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("127.9.9.9", {}, 200),
        ("::1", {}, 200),
        ("192.0.2.9", {}, 404),
        ("", {}, 404),
        ("nowhere", {}, 404),
        # a proxy on this machine brings others' requests
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.9"}, 404),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 404),
        ("127.0.0.1", {"Forwarded": "for=192.0.2.9"}, 404),
        ("127.0.0.1", {"Via": "1.1 proxy"}, 404),
        ("127.0.0.1", {"X-Forwarded-Proto": "http"}, 404),
        ("127.0.0.1", {"X-Forwarded-Host": "rme.example.org"}, 404),
        ("127.0.0.1", {"X-Real-IP": "192.0.2.9"}, 404),
        ("127.0.0.1", {"CF-Connecting-IP": "192.0.2.9"}, 404),
        # one that adds no header asks for the name that it was asked for
        ("127.0.0.1", {"Host": "rme.example.org"}, 404),
        ("127.0.0.1", {"Host": "localhost.example.org"}, 404),
        ("127.0.0.1", {"Host": ""}, 404),
        ("127.0.0.1", {"Host": "localhost:8000"}, 200),
        ("::1", {"Host": "[::1]:8000"}, 200),
        ("127.0.0.1", {"Host": "rme.example.org", "Authorization": f"Bearer {TOKEN}"}, 200),
        ("192.0.2.9", {"Authorization": f"Bearer {TOKEN}"}, 200),
        ("192.0.2.9", {"Authorization": f"bearer {TOKEN}"}, 200),
        ("192.0.2.9", {"Authorization": f"Basic {TOKEN}"}, 404),
        ("192.0.2.9", {"Authorization": "Bearer "}, 404),
        ("192.0.2.9", {"Authorization": "Bearer \xff\x80"}, 404),
        ("192.0.2.9", {"Authorization": f"Bearer {TOKEN}x"}, 404),
    ],
)
def test_metrics_need_a_token_or_a_local_address(db, settings, address, headers, status):
    settings.METRICS_TOKEN = TOKEN
    given = {"Host": "127.0.0.1:8000", **headers}
    answer = Client().get("/metrics", headers=given, REMOTE_ADDR=address)
    assert answer.status_code == status
    assert (b"rme_up" in answer.content) is (status == 200)


def test_behind_a_proxy_no_request_is_local(db, settings):
    settings.TLS_PROXY, settings.METRICS_TOKEN = True, TOKEN
    client = Client(HTTP_HOST="127.0.0.1:8000", REMOTE_ADDR="127.0.0.1")
    assert client.get("/metrics").status_code == 404
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/metrics", headers=bearer).status_code == 200


@pytest.mark.parametrize(
    "base_url", ["https://rme.example.org", "http://192.0.2.1:8000", "http://"]
)
def test_with_a_public_base_url_even_this_machine_needs_the_token(db, settings, base_url):
    settings.BASE_URL, settings.METRICS_TOKEN = base_url, TOKEN
    client = Client(HTTP_HOST="127.0.0.1:8000", REMOTE_ADDR="127.0.0.1")
    assert client.get("/metrics").status_code == 404
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/metrics", headers=bearer).status_code == 200


@pytest.mark.promise("health-11")
def test_without_a_token_no_token_opens(db, settings):
    settings.METRICS_TOKEN = ""
    for header in ("Bearer ", "Bearer x", "Bearer"):
        answer = Client().get(
            "/metrics", headers={"Authorization": header}, REMOTE_ADDR="192.0.2.9"
        )
        assert answer.status_code == 404
    assert Client().post("/metrics").status_code == 405


def test_the_backlog_is_counted_by_channel_and_priority(org, api):
    people = factories.contacts(org, 3)
    api.bulk([message(person) for person in people])
    late = datetime.now(UTC) - timedelta(seconds=90)
    Delivery.objects.update(due_at=late)
    stuck = Delivery.objects.first().pk
    Delivery.objects.filter(pk=stuck).update(status="SENDING")
    found = scrape()
    ready = {name: value for name, value in found.items() if "deliveries_ready{" in name}
    assert ready == {
        f'rme_deliveries_ready{{channel="{channel}",priority="{priority}"}}': (
            2.0 if (channel, priority) == ("EMAIL", 0) else 0.0
        )
        for channel in ("EMAIL", "SMS", "PUSH")
        for priority in (0, 1)
    }
    oldest = 'rme_deliveries_ready_oldest_seconds{channel="EMAIL",priority="0"}'
    assert 90 <= found[oldest] < 95
    assert {name: value for name, value in found.items() if "deliveries_overdue" in name} == {
        'rme_deliveries_overdue{status="SENDING"}': 1,
        'rme_deliveries_overdue{status="UNKNOWN"}': 0,
        'rme_deliveries_overdue{status="SENT"}': 0,
        'rme_deliveries_overdue{status="SCHEDULED"}': 0,
    }


def test_delivery_not_yet_due_is_neither_ready_nor_overdue(org, api):
    api.bulk([message(person) for person in factories.contacts(org, 3)])
    soon = datetime.now(UTC) + timedelta(seconds=90)
    Delivery.objects.update(due_at=soon)
    first, second, _ = Delivery.objects.values_list("pk", flat=True)
    Delivery.objects.filter(pk=first).update(status="SENT", due_at=None)
    Delivery.objects.filter(pk=second).update(status="SCHEDULED")
    found = scrape()
    values = {value for name, value in found.items() if name.startswith("rme_deliveries")}
    assert values == {0.0}
    Delivery.objects.filter(pk=second).update(due_at=soon - timedelta(seconds=102))
    redis_client().delete(metrics.GAUGES)
    assert scrape()['rme_deliveries_overdue{status="SCHEDULED"}'] == 1


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"waiting": "PROVIDER"}, 400),
        ({"waiting": "RATE"}, 400),
        ({}, 400),
        ({"scheduled_for": timedelta(seconds=-70)}, 70),
        ({"waiting": "PAUSED"}, 0),
        ({"accepted_channel": "PUSH"}, 0),
        ({"priority": 1}, 0),
        ({"status": "SENT", "due_at": None}, 0),
    ],
)
def test_waiting_transactional_message_is_aged_from_its_acceptance(org, api, fields, seconds):
    now = datetime.now(UTC)
    api.send(message(factories.contact(org)))
    given = {k: now + v if isinstance(v, timedelta) else v for k, v in fields.items()}
    waits = {"accepted_at": now - timedelta(seconds=400), "due_at": now + timedelta(seconds=60)}
    Delivery.objects.update(**waits | given)
    found = scrape()
    ages = {channel: found[f'{UNSENT}{{channel="{channel}"}}'] for channel in ("EMAIL", "SMS")}
    assert seconds <= ages["EMAIL"] < seconds + 20
    assert ages["SMS"] == 0
    assert found['rme_deliveries_ready_oldest_seconds{channel="EMAIL",priority="0"}'] == 0


def test_recent_attempts_are_counted_by_outcome(org):
    for outcome, age in (("Accepted", 0), ("Accepted", 1), (None, 0), ("Retryable", 301)):
        Attempt.objects.create(
            id=ids.new_id() if age < 300 else ids.at_least(datetime.now(UTC) - timedelta(0, age)),
            organization_id=org.pk,
            message_id=ids.new_id(),
            delivery_id=ids.new_id(),
            fence=1,
            channel="SMS",
            provider="simulator",
            outcome=outcome,
        )
    recent = {name: value for name, value in scrape().items() if "attempts" in name}
    assert recent == {
        'rme_recent_attempts{channel="SMS",outcome="Accepted"}': 2,
        'rme_recent_attempts{channel="SMS",outcome=""}': 1,
    }


def test_workers_and_scheduler_are_shown_as_up(db):
    heartbeats.store(heartbeats.Heartbeat("a:1", {"messaging.sweep": "KeyError"}, works=False))
    assert scrape()['rme_up{part="workers"}'] == 0
    heartbeats.store(heartbeats.Heartbeat("a:2"))
    assert {name: value for name, value in scrape().items() if "rme_up" in name} == {
        'rme_up{part="database"}': 1,
        'rme_up{part="gauges"}': 1,
        'rme_up{part="broker"}': 1,
        'rme_up{part="redis"}': 1,
        'rme_up{part="workers"}': 1,
        'rme_up{part="scheduler"}': 0,
    }


def test_broker_refusing_connections_is_shown_as_down(db, monkeypatch):
    monkeypatch.setattr(current_app.conf, "broker_write_url", "amqp://127.0.0.1:1//")
    found = scrape()
    assert (found['rme_up{part="broker"}'], found['rme_up{part="redis"}']) == (0, 1)


def test_scrape_answers_in_time_while_the_broker_is_frozen(db, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as frozen, Stopwatch() as watch:
        address = f"redis://127.0.0.1:{frozen.getsockname()[1]}/0"
        monkeypatch.setattr(current_app.conf, "broker_write_url", address)
        assert scrape()['rme_up{part="broker"}'] == 0
    assert watch.seconds < 4  # Celery's own time-out is 5


def test_without_redis_the_other_metrics_are_shown(db, settings):
    address, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    try:
        found = scrape()
    finally:
        settings.REDIS_URL = address
        redis_client.cache_clear()
    up = {name: value for name, value in found.items() if "rme_up" in name}
    assert up == {
        'rme_up{part="database"}': 1,
        'rme_up{part="gauges"}': 1,
        'rme_up{part="broker"}': 1,
        'rme_up{part="redis"}': 0,
    }
    assert 'rme_deliveries_ready{channel="SMS",priority="0"}' in found
    assert 'rme_queue_workers{queue="sms"}' in found


def test_requests_are_counted_by_route_and_never_by_path(org, api):
    for name in ("ada@example.com", "+41791234567"):
        assert api.call("GET", f"/messages/{name}").status_code == 404
    assert Client().generic("BREW", "/rme/v1/nothing/ada@example.com").status_code == 404
    found = {n: v for n, v in scrape().items() if n.startswith("rme_requests_total")}
    path = "/rme/v1/messages/<str:message_id>"
    assert found[f'rme_requests_total{{method="GET",path="{path}",status="404"}}'] == 2
    assert found['rme_requests_total{method="(other)",path="(none)",status="404"}'] == 1
    seconds = scrape()[f'rme_request_seconds_total{{method="GET",path="{path}"}}']
    assert 0 < seconds < 60
    text = Client(HTTP_HOST="localhost").get("/metrics").content.decode()
    assert re.findall("ada|4179|Acme|acme", text) == []


def test_a_scrape_takes_few_statements_and_the_next_one_shares_them(org, api):
    api.bulk([message(person) for person in factories.contacts(org, 30)])
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            found = scrape()
        counts.append(len(captured))
        assert found['rme_deliveries_ready{channel="EMAIL",priority="0"}'] == 30
        Delivery.objects.update(status="SENT", due_at=None)
    assert counts == [7, 1]


def test_shared_gauges_are_refreshed_after_some_seconds(org, api, redis):
    scrape()
    assert 9_000 < redis.pttl(metrics.GAUGES) <= 1000 * metrics.SHARED_SECONDS
    api.send(message(factories.contact(org)))
    redis.delete(metrics.GAUGES)
    assert scrape()['rme_deliveries_ready{channel="EMAIL",priority="0"}'] == 1


@pytest.mark.django_db(transaction=True)
def test_slow_gauge_is_not_reported_as_a_database_outage(settings, redis):
    settings.DATABASE_SECONDS = 0.3
    with databases.locked("tenants_apikey"):
        found = scrape()
    connection.close()
    assert found['rme_up{part="database"}'] == 1
    assert found['rme_up{part="gauges"}'] == 0
    assert 'rme_deliveries_ready{channel="EMAIL",priority="0"}' not in found
    assert scrape()['rme_up{part="gauges"}'] == 0  # not tried again by each process
    redis.delete(metrics.GAUGES)
    assert scrape()['rme_up{part="gauges"}'] == 1


def test_the_first_failure_of_a_periodic_task_is_an_increase(db):
    name = 'rme_tasks_total{{outcome="{}",task="messaging.housekeeping"}}'
    assert {scrape()[name.format(outcome)] for outcome in ("succeeded", "failed")} == {0}


def test_a_program_of_an_organization_cannot_read_the_metrics(org):
    api = Api(org)
    answer = Client().get(
        "/metrics", headers={"Authorization": f"Bearer {api.token}"}, REMOTE_ADDR="192.0.2.9"
    )
    assert answer.status_code == 404
