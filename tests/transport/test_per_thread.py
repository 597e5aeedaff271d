"""One transport for each thread and process; a fork does not touch the parent's connections."""

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from rme.transport import AddressPolicy, Request, Transport, thread_transport
from tests.fakes import tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.http2 import Http2Server
from tests.fakes.smtp import SmtpServer
from tests.fakes.tls import ca_pem

FORKING = """
import os, sys
from rme.transport import Envelope, MailSecurity, Request, Reply, thread_transport
def own():
    return thread_transport(["localhost"])
def send():
    url, ca_pem = sys.argv[1:]
    mail = Envelope("a@x.test", ("b@x.test",), MailSecurity.NONE)
    if url.startswith("https"):
        request = Request(url, b"x", http2=True, ca_pem=ca_pem)
    else:
        request = Request(url, b"Subject: x\\r\\n\\r\\n", envelope=mail)
    (result,) = own().perform([request])
    assert isinstance(result, Reply), result
send()
before = own()
child = os.fork()
if child == 0:
    assert own() is not before
    del before
    send()
    sys.exit(0)  # the interpreter frees its objects at exit
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert own() is before
send()
print("done", flush=True)
os._exit(0)
"""


def test_each_thread_has_one_transport() -> None:
    found: list[Transport] = []
    threads = [threading.Thread(target=lambda: found.append(thread_transport())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert thread_transport() is thread_transport()
    assert len({id(one) for one in (thread_transport(), *found)}) == 4


def test_transport_of_a_thread_ends_with_it() -> None:
    alive: list[weakref.ref[Transport]] = []
    thread = threading.Thread(target=lambda: alive.append(weakref.ref(thread_transport())))
    thread.start()
    thread.join()
    gc.collect()
    assert alive[0]() is None


def fork_and_send(url: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKING, url, ca_pem()],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("done\n", "")


def test_fork_does_not_touch_connections_of_the_parent() -> None:
    with SmtpServer() as server:
        fork_and_send(f"smtp://localhost:{server.port}/me.test")
        assert [mail.connection for mail in server.mails] == [0, 1, 0]
        assert (
            "QUIT"
            not in server.commands[
                : server.commands.index("QUIT") if "QUIT" in server.commands else None
            ]
        )


def test_fork_does_not_touch_http2_connections_of_the_parent() -> None:
    with Http2Server() as server:
        fork_and_send(server.url)
        assert [stream.connection for stream in server.seen] == [0, 1, 0]


@pytest.mark.parametrize("serve", [Http1Server, Http2Server])
def test_threads_may_share_a_transport(
    transport: Transport, serve: type[Http1Server | Http2Server]
) -> None:
    with serve() as server:
        answers: list[int] = []
        request = Request(server.url, b"x", http2=serve is Http2Server, ca_pem=ca_pem())

        def go() -> None:
            results = transport.perform([request] * 20)
            answers.extend(getattr(result, "status", 0) for result in results)

        threads = [threading.Thread(target=go) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [200] * 80


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux tells its descriptors")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_transport_leaks_no_descriptor(scheme: str) -> None:
    def go() -> int:
        transport = Transport(AddressPolicy(["127.0.0.1"]))
        request = Request(url, b"x", connect_timeout=0.2, http2=scheme == "https")
        transport.perform([request] * 20)
        transport.close()
        return len(list(Path("/proc/self/fd").iterdir()))

    url = f"{scheme}://127.0.0.1:{tcp.free_port()}/"
    first = go()
    assert max(go() for _ in range(5)) < first + 15  # other tests' servers come and go
