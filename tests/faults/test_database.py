"""PostgreSQL restarted, its backends ended, read-only, frozen: all goes on, and nothing is lost."""

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import requests

from tests.faults.engines import (
    BUSY_MACHINE,
    MEND_SECONDS,
    eventually,
    frozen,
    tree,
)
from tests.service import CRASHES
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture(autouse=True)
def _well_before(broken):
    eventually(lambda: broken.health()["status"] == "ok", MEND_SECONDS)


def refused(answer):
    return answer.status_code, answer.json()["error"]["code"], answer.headers["Retry-After"]


UNAVAILABLE = (503, "UNAVAILABLE", "5")
RESTARTED = (
    r"PostgreSQL restarted \d+ (s|min) ago "
    r"\(\d\d \w{3} \d{4}, \d\d:\d\d UTC\)"
)


def database_detail(broken):
    return broken.health()["checks"]["database"]["detail"]


@pytest.mark.promise("faults-4")
def test_service_continues_after_a_database_restart(broken):
    for _ in range(5):
        assert broken.send().status_code == 202
    broken.postgres.stop()
    assert refused(broken.send()) == UNAVAILABLE
    time.sleep(4)  # long enough that pauses between tries would grow
    broken.postgres.start()
    eventually(lambda: broken.send().status_code == 202, MEND_SECONDS)
    for _ in range(20):
        assert broken.send().status_code == 202
    broken.all_left()
    assert broken.failures() == []
    eventually(lambda: broken.health()["status"] == "ok", 15)
    assert re.fullmatch(RESTARTED, database_detail(broken))


def test_health_and_home_show_a_crash(broken):
    """The server restarts itself, and keeps the time of its own start."""
    with psycopg.connect(f"host={broken.postgres.socket} user=rme dbname=rme") as doomed:
        os.kill(doomed.info.backend_pid, signal.SIGSEGV)
    eventually(lambda: broken.send().status_code == 202, MEND_SECONDS)
    assert len(CRASHES.take()) == 1
    eventually(lambda: broken.health()["status"] == "ok", 15)
    detail = database_detail(broken)
    assert re.fullmatch(f"{RESTARTED} after a crash: read its log", detail)
    session = requests.Session()
    assert log_in(broken, session).status_code == 302
    page = session.get(broken.root("/admin/"), timeout=60)
    assert "after a crash: read its log." in page.text
    gauge = r'rme_postgresql_start_time_seconds{after="crash"} ([0-9.e+]+)'
    metrics = requests.get(broken.root("/metrics"), timeout=60).text
    (value,) = re.findall(gauge, metrics)
    assert abs(time.time() - float(value)) < 60 * BUSY_MACHINE


@pytest.mark.promise("faults-4")
def test_ended_idle_connections_fail_no_call(broken):
    ended = broken.sql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "  # waits until it is gone
        "WHERE datname = 'rme' AND pid <> pg_backend_pid()"
    )
    assert len(ended) >= 3
    for _ in range(30):
        assert broken.send().status_code == 202
    broken.all_left()
    assert broken.failures() == []


@contextmanager
def read_only(broken):
    """Let PostgreSQL take nothing that is written, in all sessions, as a standby does."""
    broken.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    broken.sql("SELECT pg_reload_conf()")
    try:
        # the sessions read their settings again one by one; a token leaves no message behind
        eventually(lambda: ask_for_token(broken).status_code == 503, 5)
        yield
    finally:
        broken.sql("ALTER SYSTEM RESET default_transaction_read_only")
        broken.sql("SELECT pg_reload_conf()")


def soon(seconds):
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return {"mode": "AT", "at": at.isoformat()}


def ask_for_token(broken):
    demo = broken.demo
    form = {"client_id": demo["client_id"], "client_secret": demo["client_secret"]}
    form["grant_type"] = "client_credentials"
    return requests.post(broken.root("/services/oauth2/token"), form, timeout=60)


def create_account(broken, name):
    demo = broken.demo
    form = {"action": "Create_Account", "org": demo["org"], "accountName": name}
    headers = {"X-API-Key": demo["api_key"]}
    url = f"{demo['bot_base_url']}/api_create.php"
    return requests.post(url, form, headers=headers, timeout=60)


def log_in(broken, session):
    """Log in to the admin, as a browser does."""
    url = broken.root("/admin/login/")
    session.get(url, timeout=60)
    form = {
        "username": broken.demo["admin_user"],
        "password": broken.demo["admin_password"],
        "csrfmiddlewaretoken": session.cookies["csrftoken"],
    }
    return session.post(url, form, headers={"Referer": url}, timeout=60, allow_redirects=False)


@pytest.mark.promise("faults-5")
def test_a_read_only_primary_is_reported_and_waited_for(broken):
    """As between the moment a primary is demoted and the one its successor has its place."""
    assert broken.send(schedule=soon(3)).status_code == 202
    eventually(lambda: broken.call("GET", f"/messages/{broken.sent[0]}").status_code == 200, 5)
    with read_only(broken):
        assert refused(broken.send()) == UNAVAILABLE
        assert broken.call("GET", f"/messages/{broken.sent[0]}").status_code == 200
        token = ask_for_token(broken)
        assert (token.status_code, token.json(), token.headers["Retry-After"]) == (
            503,
            {"error": "temporarily_unavailable"},
            "5",
        )
        bot = create_account(broken, "Read-only")
        assert (bot.status_code, bot.json()["error"], bot.headers["Retry-After"]) == (
            503,
            "unavailable",
            "5",
        )
        page = log_in(broken, requests.Session())
        assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
        assert "<h1>The service cannot take requests right now.</h1>" in page.text
        found = broken.health()
        assert found["status"] == "down"
        detail = {"status": "down", "detail": "is read-only: nothing can be accepted"}
        assert found["checks"]["database"].items() >= detail.items()
        # what was scheduled is due, and cannot be sent
        eventually(lambda: broken.health()["checks"]["workers"]["status"] != "ok", 10)
        assert "Tasks fail in" in broken.health()["checks"]["workers"]["detail"]
        assert broken.waiting() == [("SCHEDULED", None, None, 1)]
    eventually(lambda: broken.send().status_code == 202, MEND_SECONDS)
    broken.all_left()
    assert broken.failures() == []


@pytest.mark.promise("faults-5")
def test_a_frozen_server_delays_no_call(broken):
    """Its sockets stay open, and it never answers."""
    assert broken.send().status_code == 202
    broken.all_left()

    def timed(call):
        with Stopwatch() as watch:
            answer = call()
        return answer, watch.seconds

    with frozen(*tree(broken.postgres.process)), ThreadPoolExecutor(20) as callers:
        calls = [callers.submit(timed, broken.send) for _ in range(16)]
        alive = callers.submit(timed, lambda: requests.get(broken.root("/livez"), timeout=60))
        answers = [call.result() for call in calls]
        assert {refused(answer) for answer, _ in answers} == {UNAVAILABLE}
        assert max(seconds for _, seconds in answers) < 5 * BUSY_MACHINE
        assert alive.result()[0].text == "ok\n"
        assert alive.result()[1] < 5 * BUSY_MACHINE
        # from now on nobody waits but the one who finds out whether it is back
        quick = [timed(broken.send) for _ in range(10)]
        assert {refused(answer) for answer, _ in quick} == {UNAVAILABLE}
        assert sorted(seconds for _, seconds in quick)[4] < 1
        ready = requests.get(broken.root("/readyz"), timeout=60)
        assert (ready.status_code, ready.text) == (503, "database\n")
    eventually(lambda: broken.send().status_code == 202, MEND_SECONDS)
    broken.all_left()
    assert broken.failures() == []
