"""The version before and this one on one database, under load, in all mixtures.

Every message that either accepts is sent, once, and no caller gets a 5xx answer. This version has a
column more, which its last phase removes by a post-deploy migration.
"""

import json
import os
import time
from collections import Counter
from contextlib import ExitStack
from urllib.parse import urlsplit

import psycopg
import pytest
import requests

from tests.fakes.http1 import Http1Server, respond
from tests.faults.accounting import Sink
from tests.service import ROOT
from tests.upgrade import versions
from tests.upgrade.callers import Callers
from tests.upgrade.versions import Version

PHASE_SECONDS = float(os.environ.get("UPGRADE_SECONDS") or 20)
MEND_SECONDS = 150
"""The lease of a webhook endpoint, whose worker was stopped, among it."""
REPORT = ROOT / "docs" / "upgrade-test.md"
FORMER, THIS = "before", "this"
PHASES = [
    ("before; migrate --pre-deploy", {FORMER}, {FORMER}),
    ("web before, workers this", {FORMER}, {THIS}),
    ("web this, workers before", {THIS}, {FORMER}),
    ("both mixed", {FORMER, THIS}, {FORMER, THIS}),
    ("this; migrate", {THIS}, {THIS}),
]
"""What is done, and the versions of the web processes and of the workers that run meanwhile."""
WAITING = """
SELECT status, reason, count(*) FROM messaging_delivery
WHERE status NOT IN ('SENT', 'DELIVERED') GROUP BY 1, 2
UNION ALL SELECT 'webhook ' || status, NULL, count(*) FROM messaging_notice
WHERE status <> 'DELIVERED' GROUP BY 1
"""
DELIVERIES = "SELECT id::text, message_id::text FROM messaging_delivery"
HEAD = """# Upgrade under load

Written by `make test-upgrade` (`UPGRADE_SECONDS={seconds:.0f}`), from {former} to {this}.
Three callers send single emails, scheduled ones and bulks of ten to any running web process, repeat
a fourth of the calls with the same `Idempotency-Key` through any, and read messages. Meanwhile the
test replaces processes of the previous version (*before*) and of this one (*this*) by each other.
Once the new ones are ready, the old ones get SIGTERM. A mail server in a separate process counts
the emails, and a webhook endpoint the `message.sent` events, which may come twice when a worker
stops ([webhooks.md](webhooks.md#responding)).

| these run | calls | repeated | read | 5xx | accepted | sent | doubled | lost | webhooks | again |
|---|---|---|---|---|---|---|---|---|---|---|
"""


@pytest.mark.long
def test_concurrent_versions_lose_and_double_nothing(tmp_path):
    try:
        commit = versions.former_commit()
    except versions.NoHistory as reason:
        pytest.skip(f"There is no version before (fetch it, and set UPGRADE_FROM): {reason}")
    tmp_path.chmod(0o755)
    former_tree, tree = tmp_path / "before", tmp_path / "this"
    with ExitStack() as stack:
        sink = Sink(tmp_path)
        stack.callback(sink.stop)
        env = {**os.environ, "DATABASE_URL": new_database(stack), "RME_VAR": str(tmp_path)}
        env["REDIS_URL"] = env["REDIS_URL"].replace("db=0", "db=7")
        env["OUTBOUND_OPEN_HOSTS"] = f"127.0.0.1:{sink.port},127.0.0.1"
        env["SMTP_URL"] = f"smtp+plain://127.0.0.1:{sink.port}"
        former = Version(FORMER, versions.extract(commit, former_tree), env)
        this = Version(THIS, versions.copy_with_staged_column(tree), env)
        both = {FORMER: former, THIS: this}
        for each in both.values():
            stack.callback(each.kill)
        demo = json.loads(former.manage("demo", "--migrate", "--json"))
        former.start("web")
        former.start("worker")
        callers = Callers(demo, token(former, demo), lambda: ports(both))
        webhooks = stack.enter_context(Http1Server(lambda sock, seen: respond(sock, 204)))
        subscribe(former, callers.token, webhooks.url)
        run_phases(both, callers, env["DATABASE_URL"])
        rows = wait_until_sent(env["DATABASE_URL"])
        for each in both.values():
            each.stop("web")
            each.stop("worker")
        received = sink.received()
    assert callers.odd == []
    assert callers.silent_phases(name for name, _, _ in PHASES) == []
    told = Counter(json.loads(seen.body)["data"]["messageId"] for seen in webhooks.seen)
    text, counts = account(callers, rows, received, told)
    described = {"former": versions.described(commit), "this": versions.described("HEAD")}
    REPORT.write_text(HEAD.format(seconds=PHASE_SECONDS, **described) + text)
    assert (counts["lost"], counts["doubled"], counts["untold"]) == (0, 0, 0)
    assert counts["accepted"] > 10 * len(PHASES)


def run_phases(both, callers, url):
    callers.phase = PHASES[0][0]
    with callers.calling():
        for name, webs, workers in PHASES:
            callers.phase = name
            for program, wanted in (("web", webs), ("worker", workers)):
                for each in wanted:
                    both[each].start(program)
                for each in set(both) - wanted:
                    both[each].stop(program)
            if name == PHASES[0][0]:
                both[THIS].manage("migrate", "--pre-deploy", "--verbosity", "0")
                assert staged_columns(url) == 1
            elif name == PHASES[-1][0]:
                both[THIS].manage("migrate", "--verbosity", "0")
                assert staged_columns(url) == 0
            time.sleep(PHASE_SECONDS)


def staged_columns(url):
    """Return whether the column is there that the last phase removes, as 0 or 1."""
    with psycopg.connect(url) as connection:
        [(count,)] = connection.execute(
            "SELECT count(*) FROM information_schema.columns "
            "WHERE (table_name, column_name) = (%s, %s)",
            [versions.STAGED_TABLE, versions.STAGED_COLUMN],
        )
    return count


def new_database(stack):
    """Create a database; return its address. It is dropped at the end."""
    server = urlsplit(os.environ["DATABASE_URL"])
    name = f"test_upgrade_{os.getpid()}"
    connection = stack.enter_context(
        psycopg.connect(server._replace(path="/postgres").geturl(), autocommit=True)
    )
    connection.execute(f"CREATE DATABASE {name}")
    stack.callback(connection.execute, f"DROP DATABASE {name} WITH (FORCE)")
    return server._replace(path=f"/{name}").geturl()


def ports(both):
    """Return the ports of the web processes that are up."""
    found = [each.port for each in both.values() if "web" in each.running and each.is_up]
    return found or [each.port for each in both.values() if "web" in each.running]


def token(version, demo):
    form = {
        "grant_type": "client_credentials",
        "client_id": demo["client_id"],
        "client_secret": demo["client_secret"],
    }
    url = f"http://127.0.0.1:{version.port}/services/oauth2/token"
    return requests.post(url, form, timeout=30).json()["access_token"]


def subscribe(version, token, url):
    """Create a webhook endpoint for what is sent."""
    answer = requests.post(
        f"http://127.0.0.1:{version.port}/rme/v1/webhook-endpoints",
        json={"url": url, "types": ["message.sent"]},
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
    )
    assert answer.status_code == 201, answer.text


def wait_until_sent(url):
    """Wait until all is sent, and the endpoint knows; return each delivery's id and message."""
    until = time.monotonic() + MEND_SECONDS
    with psycopg.connect(url, autocommit=True) as connection:
        while waiting := connection.execute(WAITING).fetchall():
            assert time.monotonic() < until, waiting
            time.sleep(0.2)
        return connection.execute(DELIVERIES).fetchall()


def account(callers, rows, received, told):
    """Return the rows of the report's table, and the sums that must hold."""
    of_phase = {name: Counter() for name, _, _ in PHASES}
    delivery_of = {message: delivery for delivery, message in rows}
    for message, phase in callers.accepted.items():
        count = received[delivery_of.get(message, "")]
        events = told[message]
        of_phase[phase].update(
            accepted=1,
            received=count > 0,
            lost=count == 0,
            doubled=max(0, count - 1),
            told=events > 0,
            untold=events == 0,
            repeated=max(0, events - 1),
        )
    total = sum(of_phase.values(), Counter())
    lines = []
    for name, counts in [*of_phase.items(), ("**all**", total)]:
        phases = [name] if name in of_phase else [*of_phase]
        calls = [
            sum(n for (phase, k), n in callers.answers.items() if k == kind and phase in phases)
            for kind in ("202", "replay", "read", "5xx")
        ]
        keys = ("accepted", "received", "doubled", "lost", "told", "repeated")
        cells = [name, *calls, *(counts[key] for key in keys)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, ""]), total
