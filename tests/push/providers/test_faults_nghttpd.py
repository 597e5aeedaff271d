"""A push service by another implementation of HTTP/2: nghttpd."""

import shutil
import subprocess
import time

import pytest

from tests.fakes import tcp
from tests.fakes.tls import server_pem
from tests.push.faults_scene import REFUSED, accept, account, attempts, people, settle, standing
from tests.rest import work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "long_waits")]


@pytest.fixture
def nghttpd(tmp_path):
    """Run nghttpd, which takes three streams at a time and answers a POST with 200."""
    program = shutil.which("nghttpd")
    if program is None:
        pytest.skip("no nghttpd here (Debian: nghttp2-server)")
    pem, port = tmp_path / "server.pem", tcp.free_port()
    pem.write_bytes(server_pem())
    command = [program, "--max-concurrent-streams=3", "--echo-upload", "--address=127.0.0.1"]
    process = subprocess.Popen([*command, str(port), str(pem), str(pem)])
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            tcp.socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    yield port, process
    process.kill()
    process.wait()


def test_nghttpd_accepts_every_push(api, org, worker, redis, nghttpd):
    port, process = nghttpd
    account(org, "apns", port)
    made = people(org, "apns", port, 60)
    accept(api, made[:50])
    work(worker)
    settle(worker, redis, 50)  # what was too much for a new connection was refused, and goes again
    assert attempts()["Accepted", None] == 50
    assert set(attempts()) <= {("Accepted", None), REFUSED}
    process.kill()
    process.wait()
    accept(api, made[50:])
    work(worker)
    assert standing() == {"SENT": 50, "ACCEPTED": 10}  # kept connections are seen to be closed
    assert {outcome for outcome, _ in attempts()} == {"Accepted", "Retryable"}
