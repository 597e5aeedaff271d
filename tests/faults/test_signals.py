"""SIGTERM to sending processes finishes what they have in hand; without memory they end at once.

The mail server answers no mail until the test has seen that some are in hand.
"""

import threading
import time
from collections import Counter
from contextlib import suppress

import psutil
import pytest
import requests

from tests.fakes.tcp import TcpServer
from tests.faults.inflict import backends_terminated, pool_processes
from tests.service import data_folder, note, running, wait_for

pytestmark = pytest.mark.xdist_group("service-2")

ANSWER_SECONDS = 0.15
BULK = 300
LEASE_SECONDS = 20
NOT_SENT = "SELECT count(*) FROM messaging_delivery WHERE status NOT IN ('SENT', 'DELIVERED')"
IN_HAND = "SELECT count(*) FROM messaging_attempt WHERE outcome IS NULL"


class MailServer(TcpServer):
    """Answers each mail late, while it is open, and counts the mails by their Message-ID."""

    def __init__(self):
        super().__init__(self._converse)
        self.received = Counter()
        self.open = threading.Event()

    def _converse(self, connection, number):
        stream = connection.makefile("rb")
        connection.sendall(b"220 slow ESMTP\r\n")
        while line := stream.readline():
            if line[:4].upper() == b"DATA":
                connection.sendall(b"354 go on\r\n")
                while (text := stream.readline()) not in (b".\r\n", b""):
                    if text.lower().startswith(b"message-id:"):
                        identifier = text.split()[1]
                if text:
                    self.received[identifier] += 1
                self.open.wait(120)
                time.sleep(ANSWER_SECONDS)
            connection.sendall(
                b"250 2.0.0 ok\r\n" if line[:4].upper() != b"EHLO" else b"250 slow\r\n"
            )


@pytest.fixture(scope="module")
def mail_server():
    with MailServer() as server:
        yield server


@pytest.fixture(scope="module")
def service(mail_server):
    env = {
        "OUTBOUND_OPEN_HOSTS": "127.0.0.1",
        "SMTP_URL": f"smtp+plain://127.0.0.1:{mail_server.port}",
        "LEASE_SECONDS": str(LEASE_SECONDS),
        "UNKNOWN_SECONDS": "2",
        # A process with little memory fails again and again before another one sends.
        "UNKNOWN_BACKOFF_SECONDS": "0,1,1,1,1,1,1,1",
        "WEB_WORKERS": "1",
    }
    with data_folder() as var, running(var, **env) as started:
        started.sql("UPDATE tenants_organization SET calls_per_second = 1000000 RETURNING id")
        yield started


@pytest.fixture
def send(service, mail_server):
    """Return what sends a bulk of emails, and waits until some of them are in hand; they stay so
    until the mail server is opened.
    """
    demo = service.demo()
    headers = {"Authorization": f"Bearer {service.token(demo)}"}

    def send():
        messages = [note(demo, number) for number in range(BULK)]
        url = f"{demo['base_url']}/messages/bulk"
        mail_server.open.clear()
        answer = requests.post(url, json={"messages": messages}, headers=headers, timeout=20)
        assert answer.json()["accepted"] == BULK
        # a process without memory may have ended with all of them claimed
        wait_for(lambda: service.sql(IN_HAND)[0][0], LEASE_SECONDS + 100)

    return send


def senders(service):
    """Return both processes that send, once they have handlers of their own: until then SIGTERM
    would be for the handler of the worker that forked them.
    """

    def both():
        found = pool_processes(service, "rme-email")
        begun = {path.name.split("@")[1] for path in (service.var / "alive").glob("email@*")}
        return found if len(found) == 2 and {str(each.pid) for each in found} <= begun else None

    return wait_for(both, 120)


def signal_all(processes):
    for process in processes:
        process.terminate()


def all_sent(service, seconds=180):
    wait_for(lambda: service.sql(NOT_SENT) == [(0,)], seconds)


def doubled(mail_server):
    return {key: count for key, count in mail_server.received.items() if count > 1}


def test_terminated_processes_finish_their_current_window(service, mail_server, send):
    took = []
    for _ in range(6):
        processes = senders(service)
        send()
        began = time.monotonic()
        signal_all(processes)
        mail_server.open.set()
        assert psutil.wait_procs(processes, 60)[1] == []
        took.append(time.monotonic() - began)
    all_sent(service)
    assert doubled(mail_server) == {}
    assert len(mail_server.received) == 6 * BULK
    assert max(took) < 20, took  # what is in hand, not the five seconds of a task and more


def test_terminated_group_of_processes_finishes_its_windows(service, mail_server, send):
    """As systemd does it by default: all at once."""
    for _ in range(2):
        senders(service)
        (launcher,) = [each for each in service.children("rme.workers") if each.name() == "python"]
        send()
        processes = [launcher, *launcher.children(recursive=True)]
        signal_all(processes)
        mail_server.open.set()
        assert psutil.wait_procs(processes, 60)[1] == []
    all_sent(service)
    assert doubled(mail_server) == {}


def test_processes_out_of_memory_end_and_others_send(service, mail_server, send):
    ended = 0
    for room in (0, 2**20, 8 * 2**20 + 2**16, 9 * 2**20, 20 * 2**20):
        processes = senders(service)
        for process in processes:
            size = process.memory_info().vms + room
            process.rlimit(psutil.RLIMIT_AS, (size, size))
        send()
        mail_server.open.set()
        all_sent(service)
        running_still = [process for process in processes if process.is_running()]
        ended += len(processes) - len(running_still)
        for process in running_still:
            process.kill()
        assert psutil.wait_procs(processes, 60)[1] == []
    assert ended > 0
    assert sum(count - 1 for count in doubled(mail_server).values()) <= 2 * 50 * 5


def test_web_processes_without_memory_are_replaced(service):
    demo = service.demo()
    processes = wait_for(lambda: pool_processes(service, "rme-web"))
    for process in processes:
        size, (_, hard) = process.memory_info().vms, process.rlimit(psutil.RLIMIT_AS)
        process.rlimit(psutil.RLIMIT_AS, (size, hard))
    backends_terminated(service)

    def all_answer():  # those without memory by their successors
        with suppress(requests.RequestException):
            answers = [requests.get(f"{demo['auth_url']}/readyz", timeout=20) for _ in range(20)]
            return all(answer.ok for answer in answers)
        return False

    try:
        wait_for(all_answer, 60)
        headers = {"Authorization": f"Bearer {service.token(demo)}"}
        for _ in range(10):
            answer = requests.post(
                f"{demo['base_url']}/messages", json=note(demo, 1), headers=headers, timeout=20
            )
            assert answer.status_code == 202
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        assert psutil.wait_procs(processes, 60)[1] == []
