"""Each alert fires by its cause: a real service, and a real Prometheus with our rules.

`make test-alerts` runs this and writes docs/alerts.md.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
import yaml

from rme.run.places import engine_env
from tests.deploy import dashboards
from tests.deploy.prometheus import FOR, INTERVAL, RULES, WINDOW, Prometheus, watching
from tests.faults.inflict import POSTGRES, superuser
from tests.service import CRASHES, ROOT, Service, data_folder, free_port, running

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not shutil.which("prometheus"), reason="Prometheus is not installed (make prometheus)"
    ),
]
ENV = {
    "WEB_WORKERS": "1",
    "WORKER_CONCURRENCY": "1",
    "DATABASE_POOL": "2",
    "CIRCUIT_SENDS": "5",
    "OUTBOUND_OPEN_HOSTS": "127.0.0.1",
    "BACKOFF_SECONDS": "0.2",
}
REPORT = ROOT / "docs" / "alerts.md"
ACCOUNT = """
import json, sys
from messaging.models import ProviderAccount
ProviderAccount.objects.create(organization_id=sys.argv[1], name="away", kind="http_sms",
    channel="SMS", credentials=json.dumps({"url": f"http://127.0.0.1:{sys.argv[2]}/"}))
"""
WITHOUT_DATA = (
    "rme_bot_calls",
    "rme_unknown_report",
    "rme:webhooks",
    "rme_webhook_seconds",
    '"3..',
    "rme_router_seconds",
    "rme:router_requests",
)
"""What nobody does here: the panels of it stay empty."""
HOUR_AGO = "now() - interval '1 hour'"


@dataclass
class Watch:
    """A service that is watched, and what has fired so far."""

    service: Service
    prometheus: Prometheus
    demo: dict[str, Any]
    token: str
    fired: dict[str, tuple[str, float]] = field(default_factory=dict)
    began: float = 0.0
    """When the last cause was made."""

    def expect(self, alert: str, cause: str) -> None:
        """Wait until an alert fires of which the cause is there."""
        self.prometheus.wait_for(alert)
        self.fired[alert] = (cause, time.monotonic() - self.began)

    def expect_calm(self, *alerts: str) -> None:
        """Wait until alerts fire no more that a cause before has fired."""
        for each in alerts:
            self.prometheus.wait_for(each, fires=False)

    def call(self, method: str, path: str, body: object = None) -> requests.Response:
        return requests.request(
            method,
            f"{self.demo['base_url']}{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30,
        )

    def send(self, channel: str = "EMAIL") -> requests.Response:
        to = [{"contactId": self.demo["contact_ids"][0]}]
        body = {"channel": channel, "category": "TRANSACTIONAL", "to": to}
        return self.call("POST", "/messages", {**body, "content": {"subject": "a", "text": "b"}})

    def sql(self, statement: str) -> None:
        self.began = time.monotonic()
        with superuser(self.service) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    @contextmanager
    def frozen(self, word: str) -> Iterator[None]:
        """Stop processes, and all below them."""
        found = self.service.children(word)
        assert found, word
        self.began = time.monotonic()
        found += [child for each in found for child in each.children(recursive=True)]
        for each in found:
            each.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for each in found:
                try:
                    each.send_signal(signal.SIGCONT)
                except psutil.NoSuchProcess:
                    continue

    @contextmanager
    def repeated(self, call: Callable[[], object], count: int = 1) -> Iterator[None]:
        """Make calls again and again while the block runs."""
        going, self.began = [True], time.monotonic()

        def run() -> None:
            while going[0]:
                try:
                    call()
                except requests.RequestException:
                    continue
                time.sleep(0.05)

        with ThreadPoolExecutor(count) as pool:
            done = [pool.submit(run) for _ in range(count)]
            try:
                yield
            finally:
                going[0] = False
        for each in done:
            each.result()


def rows_that_wait(watch: Watch) -> None:
    """What a person or a job should have looked after."""
    org = watch.demo["org"]
    watch.send()
    watch.sql("UPDATE messaging_delivery SET status = 'UNKNOWN', due_at = NULL, reason = NULL")
    watch.expect("RmeHeldForReview", "a delivery with an unknown outcome waits for a person")
    watch.sql(
        "UPDATE tenants_apikey SET expires_at = now() + interval '3 days', last_used_at = now()"
    )
    watch.expect("RmeApiKeysExpiring", "the demo's key, used now, expires in three days")
    watch.sql(
        "INSERT INTO messaging_privacyrequest (id, organization_id, kind, state, contact_id, "
        "address, address_digest, note, requested_at, due_at, recorded_by, actor, reason, result) "
        f"VALUES (gen_random_uuid(), '{org}', 'EXPORT', 'OPEN', '1', '', '', '', {HOUR_AGO}, "
        f"{HOUR_AGO}, '', '{{}}', '', '')"
    )
    watch.expect("RmePrivacyRequestsOverdue", "a request for a data export was due an hour ago")
    watch.sql(
        "INSERT INTO messaging_event (id, organization_id, message_id, delivery_id, type, at) "
        "SELECT 'ffffffff-0000-7000-8000-000000000000', organization_id, message_id, id, 'sent', "
        "now() FROM messaging_delivery LIMIT 1"
    )
    watch.expect("RmeDefaultPartitionFilling", "an event with an id of the year 10889")
    watch.sql(
        "CREATE TABLE messaging_message_202001 PARTITION OF messaging_message FOR VALUES FROM "
        "('016f5e66-e800-7000-8000-000000000000') TO ('016ffe0c-b000-7000-8000-000000000000')"
    )
    watch.expect("RmeRetentionLate", "a partition of January 2020")
    watch.sql(
        "INSERT INTO messaging_webhookendpoint (organization_id, url, description, enabled, types, "
        "secret, failures, failing_since) VALUES "
        f"('{org}', 'http://127.0.0.1:1/', '', true, '{{}}', '', 3, {HOUR_AGO})"
    )
    watch.expect("RmeWebhookEndpointsFailing", "an endpoint that has failed for an hour")


def provider_away(watch: Watch) -> None:
    """A provider that nothing connects to."""
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c"]
    code = f"import sys; sys.argv[1:] = {[watch.demo['org'], str(free_port())]}\n{ACCOUNT}"
    env = {**watch.service.env, **engine_env(watch.service.var)}
    subprocess.run([*command, code], cwd=ROOT, env=env, check=True)
    with watch.repeated(lambda: watch.send("SMS"), 2):
        watch.expect("RmeAccountsFailing", "an SMS account whose address refuses connections")
        watch.expect("RmeProviderFailing", "the same account")
    watch.sql("DELETE FROM messaging_provideraccount WHERE name = 'away'")
    watch.sql("UPDATE messaging_delivery SET status = 'FAILED', due_at = NULL")


def processes_away(watch: Watch) -> None:
    """Beat, and then all workers, stand still."""
    with watch.frozen("rme-beat"):
        watch.expect("RmeNoScheduler", "beat is frozen")
    with watch.frozen("rme-sms"):
        watch.expect("RmeQueueWithoutWorker", "the worker of the queue sms is frozen")
    with watch.frozen("rme.workers"):
        watch.expect("RmeNoWorker", "all workers are frozen")
        assert watch.send().status_code == 202
        ready = "UPDATE messaging_delivery SET due_at = {}, priority = {} WHERE status = 'ACCEPTED'"
        watch.sql(ready.format(HOUR_AGO, 0))
        watch.expect("RmeTransactionalLate", "a TRANSACTIONAL message has been ready for an hour")
        watch.sql(
            f"UPDATE messaging_delivery SET due_at = now() + interval '1 hour', waiting = 'RATE', "
            f"accepted_at = {HOUR_AGO} WHERE status = 'ACCEPTED'"
        )
        watch.expect("RmeTransactionalWaiting", "another, accepted an hour ago, still waits")
        watch.sql(ready.format(HOUR_AGO, 1))
        watch.expect("RmeQueueLate", "another message has been ready for an hour")
        watch.sql(
            f"UPDATE messaging_delivery SET status = 'SENDING', due_at = {HOUR_AGO} "
            "WHERE status = 'ACCEPTED'"
        )
        watch.expect("RmeDeliveriesOverdue", "a lease ended an hour ago")
        watch.sql("UPDATE messaging_webhookendpoint SET failures = 0")
        watch.sql(
            "INSERT INTO messaging_notice (organization_id, endpoint_id, event_id, type, due_at) "
            f"SELECT organization_id, id, gen_random_uuid(), 'message.sent', {HOUR_AGO} "
            "FROM messaging_webhookendpoint"
        )
        watch.expect("RmeWebhooksLate", "a webhook delivery has been due for an hour")
        watch.sql(
            "INSERT INTO messaging_counteduntil (id, first_until, final_until) VALUES "
            f"(1, {HOUR_AGO}, {HOUR_AGO}) ON CONFLICT (id) DO UPDATE SET first_until = {HOUR_AGO}"
        )
        watch.expect("RmeStatisticsLate", "no minute was counted for an hour")
        watch.sql("DELETE FROM messaging_notice")
        watch.sql("DELETE FROM messaging_webhookendpoint")


def tasks_fail(watch: Watch) -> None:
    watch.sql("ALTER TABLE messaging_suppressionimport RENAME TO elsewhere")
    watch.expect("RmeTasksFailing", "the table that a task reads is missing")
    watch.sql("ALTER TABLE elsewhere RENAME TO messaging_suppressionimport")


def database_slow(watch: Watch) -> None:
    """A table is locked for some seconds, again and again."""
    with ExitStack() as calls:
        calls.enter_context(watch.repeated(watch.send, 2))
        calls.enter_context(watch.repeated(lambda: watch.call("GET", "/messages"), 6))

        def lock() -> None:
            with superuser(watch.service) as connection, connection.transaction():
                connection.execute("LOCK messaging_message")
                connection.execute("SELECT pg_sleep(3.4)")

        calls.enter_context(watch.repeated(lock))
        watch.expect("RmePoolExhausted", "six readers wait for a lock, with a pool of two")
        watch.expect("RmeAcceptSlow", "senders wait for a lock")


def database_read_only(watch: Watch) -> None:
    watch.expect_calm("RmeServerErrors", "RmeRequestLogLost", "RmeWritesFailing")
    watch.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    watch.sql("SELECT pg_reload_conf()")
    with watch.repeated(watch.send, 2):
        watch.expect("RmeWritesFailing", "PostgreSQL is set to read-only")
        watch.expect("RmeServerErrors", "calls get 503 while PostgreSQL is read-only")
        watch.expect("RmeRequestLogLost", "rme can't store the log of these calls")
    watch.sql("ALTER SYSTEM RESET default_transaction_read_only")
    watch.sql("SELECT pg_reload_conf()")


def cell_away(watch: Watch) -> None:
    """No router, and then one whose only cell takes no connection."""
    watch.expect("RmeRouterNotScraped", "no router runs")
    env = {"CELLS": f"eu=http://127.0.0.1:{free_port()}", "CELL_SECRET": "s" * 32}
    env |= {"PORT": str(watch.prometheus.router_port), "PATH": os.environ["PATH"]}
    watch.began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "rme.cells.router"], cwd=ROOT, env=env)
    try:
        watch.expect("RmeCellDown", "a router's cell accepts no connection")
        address = f"http://127.0.0.1:{watch.prometheus.router_port}/rme/v1/messages"
        headers = {"Authorization": f"Bearer {watch.token}"}
        with watch.repeated(lambda: requests.get(address, headers=headers, timeout=30)):
            watch.expect("RmeRouterErrors", "calls to a cell that is down get 503")
    finally:
        process.terminate()
        process.wait(30)


def gauges_slow(watch: Watch) -> None:
    """A table that a gauge reads is locked."""
    watch.began = time.monotonic()
    with superuser(watch.service) as connection, connection.transaction():
        connection.execute("LOCK messaging_counteduntil")
        watch.expect("RmeGaugesMissing", "a table that a gauge reads is locked")


def engines_away(watch: Watch) -> None:
    with watch.frozen("valkey"):
        watch.expect("RmeRedisDown", "Valkey is frozen")
        watch.expect("RmeBrokerDown", "Valkey is frozen, and it is the broker too")
    with watch.frozen(POSTGRES):
        watch.expect("RmeDatabaseDown", "PostgreSQL is frozen")


def postgresql_crashes(watch: Watch) -> None:
    with superuser(watch.service) as connection:
        os.kill(connection.info.backend_pid, signal.SIGSEGV)
    watch.expect("RmePostgresqlCrashed", "a process of PostgreSQL gets signal 11")
    assert len(CRASHES.take()) == 1


CAUSES = (
    rows_that_wait,
    provider_away,
    processes_away,
    tasks_fail,
    database_slow,
    database_read_only,
    cell_away,
    gauges_slow,
    engines_away,
    postgresql_crashes,
)


def test_each_alert_fires_by_its_cause():
    spent, began = time.process_time(), time.monotonic()
    with ExitStack() as stack:
        var = stack.enter_context(data_folder())
        service = stack.enter_context(running(var, **ENV))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        prometheus = stack.enter_context(watching(service.port, folder))
        demo = service.demo()
        watch = Watch(service, prometheus, demo, service.token(demo))
        prometheus.wait_until_scraped()
        assert watch.send().status_code == 202
        assert watch.call("GET", "/messages/none").status_code == 404
        for cause in CAUSES:
            cause(watch)
            print(f"{cause.__name__}: {time.process_time() - spent:.1f} s of CPU here", flush=True)
        seconds = time.monotonic() - began
        for each in dashboards.expressions():
            is_empty = any(name in each for name in WITHOUT_DATA)
            assert (prometheus.series(each, seconds) == 0) is is_empty, each
        watch.expect_calm("RmeNotScraped")
        service.stop()
        watch.began = time.monotonic()
        watch.expect("RmeNotScraped", "the service is stopped")
    groups = yaml.safe_load((RULES / "alerts.yaml").read_text())["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    assert sorted(watch.fired) == sorted(alerts)
    if path := os.environ.get("ALERTS_REPORT"):
        Path(path).write_text(_report(alerts, watch.fired))


HEAD = """\
# Alerts that have fired

`make test-alerts` wrote this page. It starts rme as `make run` does and lets Prometheus
{version} scrape `/metrics` every {interval} with the rules of `deploy/helm/rme/monitoring`.
Then it causes each alert and waits until it fires. To save time, it shortens each `for` to
{wait}, and each window of two or five minutes to {window}; thresholds are the real ones.
*Seconds* counts from the cause until Prometheus shows the alert as firing.
[runbooks.md](runbooks.md) says what to do about each.

| alert | cause | seconds |
|---|---|---|
"""


def _report(alerts: list[str], fired: dict[str, tuple[str, float]]) -> str:
    command = ["prometheus", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    head = HEAD.format(version=shown.split()[2], interval=INTERVAL, wait=FOR, window=WINDOW)
    rows = [
        f"| [{name}](runbooks.md#{name.lower()}) | {fired[name][0]} | {fired[name][1]:.1f} |\n"
        for name in alerts
    ]
    return "".join([head, *rows, f"| **all {len(alerts)}** | | |\n"])
