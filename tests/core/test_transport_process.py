"""One transport a thread and process; a fork leaves the parent's connections alone."""

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from rme.core.transport import AddressPolicy, Request, Transport, shared
from tests.fakes import tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.smtp import SmtpServer

FORKING = """
import os, sys
from django.conf import settings
settings.configure(OUTBOUND_OPEN_HOSTS=["localhost"])
from rme.core.transport import Envelope, MailSecurity, Request, Reply, shared
def send():
    request = Request(sys.argv[1], b"Subject: x\\r\\n\\r\\n", envelope=Envelope(
        "a@x.test", ("b@x.test",), MailSecurity.NONE))
    (result,) = shared().perform([request])
    assert isinstance(result, Reply), result
send()
before = shared()
child = os.fork()
if child == 0:
    assert shared() is not before
    del before
    send()
    sys.exit(0)  # with all that an interpreter frees at its end
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert shared() is before
send()
print("done", flush=True)
os._exit(0)
"""


def test_shared_is_one_transport_for_each_thread() -> None:
    found: list[Transport] = []
    threads = [threading.Thread(target=lambda: found.append(shared())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared() is shared()
    assert len({id(one) for one in (shared(), *found)}) == 4


def test_transport_of_a_thread_ends_with_it() -> None:
    alive: list[weakref.ref[Transport]] = []
    thread = threading.Thread(target=lambda: alive.append(weakref.ref(shared())))
    thread.start()
    thread.join()
    gc.collect()
    assert alive[0]() is None


def test_fork_leaves_the_connections_of_the_parent_alone() -> None:
    with SmtpServer() as server:
        url = f"smtp://localhost:{server.port}/me.test"
        ran = subprocess.run(
            [sys.executable, "-c", FORKING, url],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert (ran.stdout, ran.stderr) == ("done\n", "")
        assert [mail.connection for mail in server.mails] == [0, 1, 0]
        assert (
            "QUIT"
            not in server.heard[: server.heard.index("QUIT") if "QUIT" in server.heard else None]
        )


def test_threads_may_share_a_transport(transport: Transport) -> None:
    with Http1Server() as server:
        answers: list[int] = []

        def go() -> None:
            results = transport.perform([Request(server.url, b"x")] * 20)
            answers.extend(getattr(result, "status", 0) for result in results)

        threads = [threading.Thread(target=go) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [200] * 80


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux tells its descriptors")
def test_transport_leaks_no_descriptor() -> None:
    def go() -> int:
        transport = Transport(AddressPolicy(["127.0.0.1"]))
        transport.perform([Request(url, b"x", connect_timeout=0.2)] * 20)
        transport.close()
        return len(list(Path("/proc/self/fd").iterdir()))

    url = f"http://127.0.0.1:{tcp.free_port()}/"
    first = go()
    assert max(go() for _ in range(5)) < first + 15  # other tests' servers come and go
