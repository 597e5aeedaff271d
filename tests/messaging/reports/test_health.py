"""Health: dependencies, the results of sends, and what a person must set right."""

import re
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.delivery import tasks
from messaging.delivery.accounts import circuits
from messaging.domain.channels import Channel
from messaging.models import (
    Attempt,
    Delivery,
    ProviderAccount,
)
from rme import __version__
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.environment.archive_settings import StoreSettings
from rme.core.outcomes import Misconfigured
from rme.core.redis import heartbeats
from rme.core.redis.connection import redis_client
from rme.core.redis.heartbeats import Heartbeat
from rme.tenants.models import Organization
from tests import factories
from tests.rest import Api, instant, message

SMTP = '{"host": "mail.example"}'
OK = {"status": "ok", "detail": None}


@pytest.fixture(autouse=True)
def _nobody_lives(redis):
    """Start without heartbeats."""


def read(api, path="/health"):
    """Return the report without its times."""
    TtlCache.clear_all()
    answer = api.call("GET", path)
    assert answer.status_code == 200
    report = answer.json()
    took = [check.pop("latencyMs") for check in report["checks"].values()]
    assert all(0 <= ms < 5000 for ms in took)
    datetime.fromisoformat(report.pop("time"))
    return report


def simulator(channel, **fields):
    return {
        "name": "simulator",
        "channel": channel,
        "status": "ok",
        "circuit": "CLOSED",
        "successRate": None,
        "p95LatencyMs": None,
        "lastSuccessAt": None,
        "lastError": None,
    } | fields


def queue(channel, ready=0):
    return {"channel": channel, "ready": ready, "oldestSeconds": 0.0}


def stands_in(channel):
    return {
        "severity": "warning",
        "code": "SIMULATOR_SERVES",
        "message": f"{Channel(channel).label} isn't delivered: there is no {Channel(channel).noun} "
        "provider, so the simulator receives it.",
    }


def account(org, name="mail", channel="EMAIL", **fields):
    Organization.objects.filter(pk=org.pk).update(simulator=False)
    given = {"kind": "smtp", "credentials": SMTP, **fields}
    return ProviderAccount.objects.create(organization=org, name=name, channel=channel, **given)


def attempt(org, outcome, *, row=None, seconds_ago=0, channel="EMAIL", **fields):
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return Attempt.objects.create(
        organization_id=org.pk,
        message_id=ids.new_id(),
        delivery_id=ids.new_id(),
        fence=1,
        channel=channel,
        provider=row.name if row else "simulator",
        account_id=row.pk if row else None,
        outcome=outcome,
        started_at=moment,
        **fields,
    )


@pytest.mark.promise("answer-12", "health-2")
def test_a_healthy_service(org, api):
    heartbeats.store(Heartbeat("a:1"))
    heartbeats.mark_alive("scheduler")
    assert read(api) == {
        "status": "ok",
        "version": __version__,
        "checks": dict.fromkeys(("database", "redis", "broker", "workers", "scheduler"), OK),
        "queues": [queue("EMAIL"), queue("SMS"), queue("PUSH")],
        "providers": [simulator("EMAIL"), simulator("SMS"), simulator("PUSH")],
        "configuration": [stands_in("EMAIL"), stands_in("SMS"), stands_in("PUSH")],
    }


def test_the_report_is_written_with_these_names_in_this_order(org, api):
    heartbeats.store(Heartbeat("a:1"))
    heartbeats.mark_alive("scheduler")
    text = api.call("GET", "/health").content
    text = re.sub(rb'("latencyMs":)[0-9.]+', rb"\g<1>0.5", text)
    text = re.sub(rb'("time":")[^"]+', rb"\g<1>now", text)
    names = ("database", "redis", "broker", "workers", "scheduler")
    check = {"status": "ok", "latencyMs": 0.5, "detail": None}
    channels = ("EMAIL", "SMS", "PUSH")
    assert text == orjson.dumps(
        {
            "status": "ok",
            "version": __version__,
            "time": "now",
            "checks": dict.fromkeys(names, check),
            "queues": [queue(channel) for channel in channels],
            "providers": [simulator(channel) for channel in channels],
            "configuration": [stands_in(channel) for channel in channels],
        }
    )


def test_report_includes_a_configured_archive(org, api, settings, tmp_path):
    settings.ARCHIVE = StoreSettings(tmp_path.as_uri(), {})
    assert read(api)["checks"]["archive"] == OK


@pytest.mark.promise("health-4")
def test_without_workers_and_beat_it_is_degraded(org, api):
    report = read(api)
    assert report["status"] == "degraded"
    assert report["checks"]["workers"] == {
        "status": "down",
        "detail": "No worker is running, so nothing is sent.",
    }
    assert report["checks"]["scheduler"] == {
        "status": "down",
        "detail": "Scheduled messages wait: no worker is running.",
    }


def test_a_sweep_is_the_schedulers_heartbeat(org, api):
    heartbeats.store(Heartbeat("a:1"))
    assert read(api)["checks"]["scheduler"] == {
        "status": "down",
        "detail": "Scheduled messages wait: the scheduler (beat) is not running.",
    }
    tasks.sweep.apply()
    assert read(api)["checks"]["scheduler"] == OK


FAILS = {"messaging.sweep": "OperationalError"}


@pytest.mark.parametrize(
    ("processes", "status", "detail"),
    [
        ([Heartbeat("a:1"), Heartbeat("a:2")], "ok", None),
        (
            [Heartbeat("a:1", FAILS, works=False), Heartbeat("a:2", FAILS, works=False)],
            "down",
            "Tasks fail in 2 of 2 worker processes (messaging.sweep: OperationalError).",
        ),
        (
            [Heartbeat("a:1", FAILS, works=False), Heartbeat("a:2")],
            "degraded",
            "Tasks fail in 1 of 2 worker processes (messaging.sweep: OperationalError).",
        ),
        (
            [Heartbeat("a:1", FAILS | {"messaging.poll": "KeyError"}, works=True)],
            "degraded",
            "Tasks fail in 1 of 1 worker processes "
            "(messaging.poll: KeyError, messaging.sweep: OperationalError).",
        ),
        (
            [Heartbeat("a:1", unprompted=True), Heartbeat("a:2")],
            "degraded",
            "Workers get no tasks from the broker, so they look for work themselves.",
        ),
    ],
    ids=["well", "all-fail", "one-fails", "some-tasks-fail", "no-tasks"],
)
def test_failing_workers_are_reported(api, processes, status, detail):
    for each in processes:
        heartbeats.store(each)
    assert read(api)["checks"]["workers"] == {"status": status, "detail": detail}


def test_health_reports_workers_sweeping_without_beat(api):
    heartbeats.store(Heartbeat("a:1", unprompted=True))
    assert read(api)["checks"]["scheduler"] == {
        "status": "degraded",
        "detail": "The scheduler (beat) is not running. Workers do its work, late.",
    }


@pytest.mark.promise("limits-8", "health-4")
def test_health_reports_missing_redis_while_calls_continue(org, api, settings):
    api.call("GET", "/health")
    address, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    try:
        report = read(api)
    finally:
        settings.REDIS_URL = address
        redis_client.cache_clear()
    detail = "Redis doesn't answer, so rme can't see whether workers and scheduler run."
    unknown = {"status": "degraded", "detail": detail}
    assert report["status"] == "degraded"
    assert report["checks"] == {
        "database": OK,
        "redis": {"status": "down", "detail": "doesn't answer (ConnectionError)"},
        "broker": OK,
        "workers": unknown,
        "scheduler": unknown,
    }


@pytest.mark.promise("health-5")
@pytest.mark.django_db(transaction=True)
def test_without_the_database_it_is_down(monkeypatch):
    org = factories.organization()
    api = Api(org)
    api.call("GET", "/health")  # the token is known now
    connection.close()
    connection.close_pool()
    pool = {**connection.settings_dict["OPTIONS"]["pool"], "timeout": 0.3}
    options = {**connection.settings_dict["OPTIONS"], "pool": pool}
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "OPTIONS", options)
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", "1")
        answer = api.call("GET", "/health")
        connection.close_pool()
    assert answer.status_code == 200
    report = answer.json()
    assert (report["status"], report["checks"]["database"]["status"]) == ("down", "down")
    assert (report["queues"], report["providers"], report["configuration"]) == ([], [], [])


@pytest.mark.promise("health-6")
def test_queues_show_ready_count_and_oldest_age(org, api):
    people = factories.contacts(org, 3)
    api.bulk([message(person) for person in people])
    now, tomorrow = datetime.now(UTC), datetime.now(UTC) + timedelta(days=1)
    api.send(message(people[0], schedule={"mode": "AT", "at": tomorrow.isoformat()}))
    ready = Delivery.objects.filter(status="ACCEPTED")
    ready.update(due_at=now - timedelta(seconds=90))
    Delivery.objects.filter(pk=ready.first().pk).update(due_at=tomorrow)
    (email, *others) = read(api)["queues"]
    took = (datetime.now(UTC) - now).total_seconds()
    assert 90 <= email.pop("oldestSeconds") <= round(90 + took, 1)
    assert email == {"channel": "EMAIL", "ready": 2}
    assert others == [queue("SMS"), queue("PUSH")]


@pytest.mark.promise("health-7")
def test_a_providers_figures_follow_from_its_attempts(org, api):
    mail, sms = account(org), account(org, "texts", "SMS", state="PAUSED")
    for latency in range(1, 17):
        attempt(org, "Accepted", row=mail, latency_ms=latency)
    attempt(org, "Rejected", row=mail, latency_ms=1, reason="unknown user")
    attempt(org, "Retryable", row=mail, latency_ms=900, reason="451 try later")
    latest = attempt(org, "Accepted", row=mail, latency_ms=2, seconds_ago=30)
    attempt(org, None, row=mail)
    attempt(org, "Accepted")  # of a TEST application, by the simulator
    assert read(api)["providers"] == [
        simulator(
            "EMAIL",
            name="mail",
            status="degraded",
            successRate=0.9444,
            p95LatencyMs=900,
            lastSuccessAt=_latest(Attempt.objects.filter(outcome="Accepted", account_id=mail.pk)),
            lastError="451 try later",
        ),
        simulator("SMS", name="texts", status="paused"),
    ]
    assert latest.account_id == mail.pk != sms.pk


def _latest(rows):
    return instant(rows.order_by("-started_at").first().started_at)


@pytest.mark.promise("routes-23", "health-7", "health-8")
@pytest.mark.parametrize(
    ("outcomes", "status", "rate"),
    [
        ([], "ok", None),
        (["Accepted"] * 19 + ["Unknown"], "ok", 0.95),
        (["Accepted", "Retryable"], "degraded", 0.5),
        (["Accepted", "Retryable", "Unknown"], "down", 0.3333),
        (["Rejected", "Gone"], "ok", None),
        (["Accepted"] * 30 + ["Misconfigured"], "down", 0.9677),
        (["Misconfigured"] + ["Accepted"] * 30, "ok", 0.9677),
    ],
)
def test_the_status_of_a_provider(org, api, outcomes, status, rate):
    row = account(org)
    for place, outcome in enumerate(outcomes):
        attempt(org, outcome, row=row, seconds_ago=100 - place)
    report = read(api)
    (shown,) = report["providers"]
    assert (shown["status"], shown["successRate"]) == (status, rate)
    findings = [each for each in report["configuration"] if "mail" in each["message"].split()]
    failing = [(each["severity"], each["code"]) for each in findings]
    if outcomes[-1:] == ["Misconfigured"]:
        assert failing == [("error", "CREDENTIALS_FAILING")]
    else:
        by_status = {"down": "error", "degraded": "warning"}
        expected = [(by_status[status], "PROVIDER_FAILING")] if status != "ok" else []
        assert failing == expected


def test_open_circuit_is_down_and_a_finding(org, api):
    row = account(org)
    for _ in range(99):
        attempt(org, "Retryable", row=row)
    attempt(org, "Accepted", row=row)
    circuits.report([(row.pk, Misconfigured("key"))])
    report = read(api)
    (shown,) = report["providers"]
    assert (shown["status"], shown["circuit"], shown["successRate"]) == ("down", "OPEN", 0.01)
    assert {
        "severity": "error",
        "code": "PROVIDER_STOPPED",
        "message": "mail stopped after failures and is being retried. "
        "Its provider accepted 1 of 100 attempts in the last hour.",
    } in report["configuration"]


def test_attempts_of_more_than_an_hour_ago_do_not_count(org, api):
    old = attempt(org, "Retryable", reason="long ago")
    Attempt.objects.filter(pk=old.pk).update(
        id=ids.at_least(datetime.now(UTC) - timedelta(minutes=61))
    )
    assert read(api)["providers"][0] == simulator("EMAIL")


@pytest.mark.promise("calls-4")
def test_health_shows_nothing_of_another_organization(org, api):
    other = factories.organization("other")
    row = account(other, "secret-name", credentials="{}")
    attempt(other, "Retryable", row=row, reason="secret")
    factories.template(other, language="fr")
    Api(other).send(message(factories.contact(other), template={"name": "welcome"}))
    before = read(api)
    assert before["providers"] == [simulator(channel) for channel in ("EMAIL", "SMS", "PUSH")]
    assert before["queues"] == [queue("EMAIL"), queue("SMS"), queue("PUSH")]
    assert before["configuration"] == [stands_in(each) for each in ("EMAIL", "SMS", "PUSH")]


def test_statements_of_health_do_not_grow(org, api):
    found = []
    for count in (1, 20):
        for i in range(count):
            row = account(org, f"a{count}x{i}")
            attempt(org, "Accepted", row=row)
            factories.template(org, name=f"t{count}x{i}", language="de")
        TtlCache.clear_all()
        api.call("GET", "/messages/none")  # the token is known
        with CaptureQueriesContext(connection) as captured:
            assert api.call("GET", "/health").status_code == 200
        with CaptureQueriesContext(connection) as again:
            assert api.call("GET", "/health").status_code == 200
        found.append((len(captured), len(again)))
    # the check, the look for a pooler, the queues, the attempts, findings, open tasks, the policy
    assert found == [(18, 1), (18, 1)]


@pytest.mark.promise("health-3")
def test_health_without_a_token_is_refused(org, api):
    assert api.call("GET", "/health", Authorization="Bearer no").status_code == 401
    assert api.call("GET", "/health?x=1").status_code == 400
