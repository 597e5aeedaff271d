"""A service with all of its processes, and what tests of their faults look at."""

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import psutil
import pytest
import requests
from redis import Redis

from rme.run.places import engine_env
from tests.service import ROOT, data_folder, free_port, running

CATCH_UP_SECONDS = 180
RELEASE_SECONDS = 20
"""How late a scheduled message may be released: usually a second, and a minute or more where
something that hangs delays the sweep.
"""


@pytest.fixture(scope="module")
def mail_server():
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.sinks", "--port", str(port)], cwd=ROOT)
    yield port
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def service(mail_server):
    env = {
        "OUTBOUND_OPEN_HOSTS": "127.0.0.1",
        "SMTP_URL": f"smtp+plain://127.0.0.1:{mail_server}",
        "WORKER_CONCURRENCY": "2",
        "METRICS_PORT": str(free_port()),
    }
    with (
        data_folder() as var,
        running(var, **env) as started,
    ):
        demo = started.demo()
        started.api = f"{demo['base_url']}/messages"
        started.organization, started.people = demo["org"], demo["contact_ids"]
        started.headers = {"Authorization": f"Bearer {started.token(demo)}"}
        wait_for(lambda: all_there(started))
        yield started


EXPECTED = {
    "rme-web": 3,  # granian's main process and two web processes
    "rme-email": 3,
    "rme-sms": 3,
    "rme-push": 3,
    "rme-sweep": 2,
    "rme-webhooks": 3,
    "rme-default": 3,
    "rme-beat": 1,
    "rme-metrics": 1,
}


def processes(service):
    """Return web, workers and beat with their child processes, by the name that `ps` shows."""
    found = {}
    for child in psutil.Process(service.process.pid).children(recursive=True):
        try:
            if child.name().startswith("rme-"):
                found.setdefault(child.name(), []).append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def all_there(service):
    return {name: len(each) for name, each in processes(service).items()} == EXPECTED


def wait_for(condition, seconds=CATCH_UP_SECONDS):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def manage(service, script, *arguments):
    code = f"import django; django.setup(){script}"
    env = {**service.env, "DJANGO_SETTINGS_MODULE": "rme.settings"}
    command = [sys.executable, "-c", code, *arguments]
    subprocess.run(command, cwd=ROOT, env=env, check=True)


def body(service, channel, **more):
    return {
        "channel": channel,
        "category": "TRANSACTIONAL",
        "to": [{"contactId": service.people[0]}],
        "template": {"name": "note", "language": "en_US"},
        "context": {"variables": {"note": "n"}},
        **more,
    }


def send(service, channel="EMAIL", **more):
    answer = requests.post(
        service.api, json=body(service, channel, **more), headers=service.headers, timeout=20
    )
    assert answer.status_code == 202, answer.text
    return answer.json()["messageId"]


def released_late(service, seconds=3):
    """Schedule an email, wait until it was sent, and return how late it was released."""
    at = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
    message = send(service, schedule={"mode": "AT", "at": at})
    late = (
        "SELECT extract(epoch FROM a.started_at - d.scheduled_for)::float8 "
        "FROM messaging_delivery d JOIN messaging_attempt a ON a.delivery_id = d.id "
        f"WHERE d.message_id = '{message}' AND d.status IN ('SENT', 'DELIVERED')"
    )
    wait_for(lambda: service.sql(late))
    return service.sql(late)[0][0]


def metrics(port):
    """Return the samples of /metrics at a port, by name and labels; none if it does not answer."""
    try:
        text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    except requests.ConnectionError:
        return {}
    lines = [line.rpartition(" ") for line in text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in lines}


def statuses(service, *paths, seconds=2.0):
    found = []
    for path in paths:
        try:
            answer = requests.get(f"http://127.0.0.1:{service.port}{path}", timeout=seconds)
            found.append(answer.status_code)
        except requests.RequestException as error:
            found.append(type(error).__name__)
    return found


def web_main(service):
    """Return granian's main process, which `rme.web` has forked."""
    web = service.children("rme.web")
    keeper = next(each for each in web if each.ppid() == service.process.pid)
    wait_for(keeper.children)
    (main,) = keeper.children()
    return main


def listens(process):
    try:
        return any(each.status == psutil.CONN_LISTEN for each in process.net_connections("tcp"))
    except psutil.NoSuchProcess:
        return False


def waiting(service):
    return Redis.from_url(engine_env(service.var)["REDIS_URL"]).llen("sweep")


def transactions(service):
    return service.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'rme'")[0][0]
