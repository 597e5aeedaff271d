"""A service as `make run` starts it: what is slow, hung, killed or late does not delay the rest."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import requests

from rme.run.places import engine_env
from rme.workers.beat import WAITING_LIMIT
from tests.fakes.tcp import TcpServer
from tests.faults.processes_scene import (
    EXPECTED,
    RELEASE_SECONDS,
    all_there,
    body,
    listens,
    mail_server,
    manage,
    metrics,
    processes,
    released_late,
    send,
    service,
    statuses,
    transactions,
    wait_for,
    waiting,
    web_main,
)
from tests.service import ROOT, free_port
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.xdist_group("service-2")
__all__ = ["mail_server", "service"]

PROMPT_SECONDS = 6.0
"""Within which others are answered on a busy machine, whatever one client does: a body that does
not arrive would hold a thread for ten.
"""
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)

ACCOUNTS = """
import sys
from messaging.models import ProviderAccount
ProviderAccount.objects.update_or_create(organization_id=sys.argv[1], name="hung", defaults={
    "kind": "http_sms", "channel": "SMS", "credentials": sys.argv[2]})
"""
HINTS = """
from rme.celery import app
with app.producer_pool.acquire() as producer:
    for _ in range(3600):
        app.send_task("messaging.sweep", producer=producer, queue="sweep")
"""


def test_queues_have_their_own_workers(service):
    assert {name: len(each) for name, each in processes(service).items()} == EXPECTED


def test_killed_processes_take_no_count_with_them(service):
    """Their successors go on counting, in files that are as many as before."""
    sweeps = 'rme_tasks_total{outcome="succeeded",task="messaging.sweep"}'
    counters = re.compile(r"rme_\w+_(total|bucket|count|sum)\b")
    send(service)
    wait_for(lambda: metrics(service.port).get(sweeps, 0) > 1)
    before = metrics(service.port)
    locks = {path.name for path in (service.var / "metrics").glob("process-*")}
    running = processes(service)
    for name in ("rme-web", "rme-email", "rme-sweep", "rme-metrics"):
        for process in running[name]:
            process.kill()
    wait_for(lambda: all_there(service))
    wait_for(lambda: metrics(service.port).get(sweeps, 0) > before[sweeps])
    after = metrics(service.port)
    counted = {name: value for name, value in before.items() if counters.match(name)}
    assert len(counted) > 50
    assert {name: after.get(name) for name in counted if after.get(name, 0) < counted[name]} == {}
    host = socket.gethostname()
    expected = {"web": 2, "worker": 11}  # those that serve and do tasks
    for port in (service.port, int(service.env["METRICS_PORT"])):
        for role, number in expected.items():
            name = f'rme_processes{{host="{host}",role="{role}"}}'
            wait_for(lambda port=port, name=name, number=number: metrics(port).get(name) == number)
    now = {path.name for path in (service.var / "metrics").glob("process-*")}
    assert len(now) <= len(locks) + 2  # one may be locked for a scrape


EVERY_QUEUE = ("email", "sms", "push", "sweep", "webhooks", "default")


def probe(service, *arguments):
    command = [sys.executable, "-m", "rme.probe", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=service.env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.splitlines()


def test_probes_find_a_worker_finishing_no_tasks(service):
    wait_for(lambda: probe(service, "worker", "--worked", *EVERY_QUEUE) == (0, []))
    for other in (("beat",), ("web",), ("web", "/livez")):
        assert probe(service, *other) == (0, [])
    frozen = processes(service)["rme-sms"]
    with ExitStack() as stack:
        for process in frozen:
            process.suspend()
            stack.callback(process.resume)
        files = sorted((service.var / "alive").glob("sms@*"))
        assert len(files) == 2
        for file in files:  # as if a minute had passed
            file.write_text("1.0".ljust(24))
        code, sentences = probe(service, "worker", "email", "sms")
        assert code == 1
        assert [re.sub(r"\d+ s", "n s", each) for each in sentences] == [
            "sms: no process has ended a task in time, for n s."
        ]
    # without messages it ends its looks for work
    wait_for(lambda: probe(service, "worker", "sms") == (0, []))


def test_probe_names_missing_processes(service):
    assert probe(service, "worker", "email,sms") == (1, ["email,sms: no process runs."])
    other = {**service.env, "PORT": str(free_port())}
    command = [sys.executable, "-m", "rme.probe", "web"]
    done = subprocess.run(command, cwd=ROOT, env=other, capture_output=True, text=True, check=False)
    expected = "web: /readyz does not answer: ConnectionRefusedError.\n"
    assert (done.returncode, done.stderr) == (1, expected)


@pytest.mark.promise("faults-8")
def test_hung_channel_and_hung_jobs_delay_neither_the_sweep_nor_others(service):
    with TcpServer(lambda connection, _: time.sleep(60)) as hung, ExitStack() as stack:
        account = {"url": f"http://127.0.0.1:{hung.port}/", "parameters_json": '{"to": "{to}"}'}
        manage(service, ACCOUNTS, service.organization, json.dumps(account))
        time.sleep(2.5)  # all processes have read the accounts
        for frozen in processes(service)["rme-default"]:
            frozen.suspend()
            stack.callback(frozen.resume)
        requests.post(
            f"{service.api}/bulk",
            json={"messages": [body(service, "SMS") for _ in range(200)]},
            headers=service.headers,
            timeout=20,
        ).raise_for_status()
        wait_for(lambda: hung.connections)
        assert released_late(service) < RELEASE_SECONDS
        waiting = (
            "SELECT count(*) FROM messaging_delivery WHERE channel = 'SMS' AND status = 'SENT'"
        )
        assert service.sql(waiting) == [(0,)]


@pytest.mark.promise("faults-10")
def test_half_sent_requests_do_not_delay_others(service):
    address = ("127.0.0.1", service.port)
    post = b"POST /rme/v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n{"
    with ExitStack() as stack:
        slow = []
        for start in [b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: ", post] * 100:
            connection = stack.enter_context(socket.create_connection(address, timeout=10))
            connection.sendall(start)
            connection.setblocking(False)
            slow.append(connection)
        for _ in range(5):
            for connection in slow:
                try:
                    connection.send(b"a")  # a drip
                except OSError:
                    pytest.fail("one of them was refused before its time")
            paths = ("/livez", "/readyz", "/admin/login/")
            assert statuses(service, *paths, seconds=PROMPT_SECONDS) == [200, 200, 200]
            with Stopwatch() as watch:
                send(service)
            assert watch.seconds < PROMPT_SECONDS
            time.sleep(0.5)


@pytest.mark.promise("faults-9")
def test_death_of_one_web_process_does_not_affect_others(service):
    for deaths in range(2):
        # granian takes two deaths within 5.5 s for a program that cannot run
        time.sleep(6 * deaths)
        main = web_main(service)
        main.children()[0].kill()
        seen = Counter()
        until = time.monotonic() + 3
        while time.monotonic() < until:
            seen.update(statuses(service, "/livez"))
        # What was just being accepted is lost with it.
        assert seen[200] > 0.9 * seen.total(), service.log_text()[-2000:]
        wait_for(lambda main=main: [listens(each) for each in main.children()] == [True, True])
        assert main.is_running()


def test_killed_web_process_is_replaced_without_reloading_the_service(service):
    keeper = web_main(service).ppid()
    for _ in range(2):
        main = web_main(service)
        main.kill()
        main.wait(10)
        wait_for(lambda: statuses(service, "/livez") == [200])
        assert web_main(service).ppid() == keeper
    assert "rme: web ended (signal 9, SIGKILL) after" in service.log_text()


def test_web_answers_while_its_keeper_is_replaced(service):
    """SIGKILL to the process that has loaded the service: its successor loads for some seconds."""
    main = web_main(service)
    replaced = [main, *main.children(recursive=True)]
    psutil.Process(main.ppid()).kill()
    seen, silences, began = Counter(), [], time.monotonic()
    answered = began
    while any(each.is_running() for each in replaced):
        for status in statuses(service, "/livez"):
            seen[status] += 1
            if status == 200:
                silences.append(time.monotonic() - answered)
                answered = time.monotonic()
        assert time.monotonic() - answered < 60, service.log_text()[-2000:]
    took = time.monotonic() - began
    assert max(silences) < max(3, took / 4), (max(silences), took, seen)
    assert seen[200] > 0.95 * seen.total(), seen
    assert "rme: web ended (signal 9, SIGKILL) after" in service.log_text()
    wait_for(lambda: all_there(service))
    assert not [each for each in psutil.Process(service.process.pid).children() if gone(each)]


def gone(process):
    return process.status() == psutil.STATUS_ZOMBIE


def test_workers_send_while_their_keeper_is_replaced(service):
    (launcher,) = [each for each in service.children("rme.workers") if each.name() == "python"]
    replaced = launcher.children(recursive=True)
    launcher.kill()
    sent = "SELECT count(*) FROM messaging_delivery WHERE message_id = '{}' AND status = 'SENT'"
    delays, began = [], time.monotonic()
    while any(each.is_running() for each in replaced):
        message = send(service)
        with Stopwatch() as watch:
            wait_for(lambda message=message: service.sql(sent.format(message)) == [(1,)])
        delays.append(watch.seconds)
    took = time.monotonic() - began
    # A hint that is lost costs three seconds.
    assert max(delays) < max(6, took / 4), (delays, took, service.log_text()[-2000:])
    wait_for(lambda: all_there(service))


@pytest.mark.promise("faults-9")
def test_killed_workers_restart_at_any_moment(service):
    until = time.monotonic() + 8
    while time.monotonic() < until:  # those that are just starting too
        for victim in processes(service).get("rme-email", []):
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.05)
    wait_for(lambda: all_there(service))
    assert "rme: email ended (signal 9, SIGKILL) after" in service.log_text()
    message = send(service)
    done = f"SELECT 1 FROM messaging_delivery WHERE message_id = '{message}' AND status = 'SENT'"
    wait_for(lambda: service.sql(done))


@pytest.mark.promise("faults-9")
def test_child_killed_while_a_worker_starts_does_not_end_it(service):
    (launcher,) = [each for each in service.children("rme.workers") if each.name() == "python"]
    (main,) = [each for each in processes(service)["rme-push"] if each.ppid() == launcher.pid]
    main.kill()
    replaced = set()
    until = time.monotonic() + 8
    while time.monotonic() < until:
        for each in processes(service).get("rme-push", []):
            try:
                if each.ppid() == launcher.pid:
                    replaced.add(each.pid)
                else:
                    each.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
    assert len(replaced - {main.pid}) == 1
    wait_for(lambda: all_there(service))


@pytest.mark.promise("faults-9")
def test_killed_engines_and_programs_restart_every_time(service):
    for _ in range(4):
        for word in ("valkey-server", "rme.workers"):
            wait_for(lambda word=word: service.children(word))
            service.kill(word)
        time.sleep(1)
    wait_for(lambda: all_there(service), 120)
    assert released_late(service) < 2 * RELEASE_SECONDS  # beat and the sweep are at work again
    assert released_late(service) < RELEASE_SECONDS


@pytest.mark.promise("faults-11")
def test_hints_left_by_an_outage_cause_no_delay_and_little_work(service):
    env = {**service.env, **engine_env(service.var), "DJANGO_SETTINGS_MODULE": "rme.settings"}
    with ExitStack() as stack:
        for name in ("rme-sweep", "rme-beat"):
            for frozen in processes(service)[name]:
                frozen.suspend()
                stack.callback(frozen.resume)
        subprocess.run([sys.executable, "-c", HINTS], cwd=ROOT, env=env, check=True)
        assert waiting(service) > 3500
    began, before = time.monotonic(), transactions(service)
    assert released_late(service) < RELEASE_SECONDS
    wait_for(lambda: waiting(service) == 0, 120)
    # One sweep is five transactions or more, and there is one in half a second.
    took = time.monotonic() - began
    assert transactions(service) - before < 200 + 100 * took < 5 * 3600, took


def test_beat_publishes_no_hints_without_workers(service):
    with ExitStack() as stack:
        for frozen in processes(service)["rme-sweep"]:
            frozen.suspend()
            stack.callback(frozen.resume)
        wait_for(lambda: waiting(service) >= 3)
        env = {**service.env, **engine_env(service.var), "DJANGO_SETTINGS_MODULE": "rme.settings"}
        hints = HINTS.replace("3600", str(WAITING_LIMIT))
        subprocess.run([sys.executable, "-c", hints], cwd=ROOT, env=env, check=True)
        full = waiting(service)
        time.sleep(5)
        assert waiting(service) == full
    wait_for(lambda: waiting(service) == 0)


@pytest.mark.promise("faults-11")
@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")
@pytest.mark.parametrize("shift", ["-60s", "+60s"])
def test_heartbeats_of_a_beat_with_another_clock_count(service, shift):
    env = {**service.env, **engine_env(service.var), "LD_PRELOAD": str(FAKETIME)}
    env |= {"FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "rme.celery", "beat"]
    with ExitStack() as stack:
        (own,) = processes(service)["rme-beat"]
        own.suspend()
        stack.callback(own.resume)
        time.sleep(2)  # its last hints are done
        other = subprocess.Popen([*command, "--pidfile", ""], cwd=ROOT, env=env)
        stack.callback(other.wait)
        stack.callback(other.send_signal, signal.SIGKILL)
        assert released_late(service, 15) < RELEASE_SECONDS


def test_stop_leaves_nothing(service):
    assert service.stop() == 0
    assert not os.path.exists(f"/proc/{service.process.pid}")


def test_no_process_is_left_when_all_keepers_are_killed_at_once(service):
    service.start()
    wait_for(lambda: all_there(service))
    supervisor = psutil.Process(service.process.pid)
    processes = supervisor.children(recursive=True)
    keepers = [each for each in supervisor.children() if each.name() == "python"]
    assert len(keepers) == 2
    for each in (*keepers, supervisor):
        each.kill()
    service.process.wait()
    assert psutil.wait_procs(processes, 60)[1] == []
