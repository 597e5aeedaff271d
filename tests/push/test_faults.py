"""Push services that break off, stall and half answer: each message ends once, and right.

From rows in the database to outcomes, over TLS to real HTTP/2 servers on loopback. What was
certainly not taken is sent again by itself. What may have been taken is UNKNOWN; with push that is
sent again as well, under the same key, so that the device shows it once.
"""

import json
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from messaging import schedule
from messaging.models import Attempt, Delivery, ProviderAccount
from push.models import Device, token_digest
from rme.core.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes import apns as fake_apns
from tests.fakes import tcp
from tests.fakes.http2 import Http2Server
from tests.fakes.tls import ca_pem, server_pem
from tests.push.subscriptions import Browser
from tests.rest import message, work

pytestmark = pytest.mark.django_db

PLATFORMS = {"apns": "IOS", "webpush": "WEB"}
REFUSED = ("Retryable", "the stream was refused")


@pytest.fixture(autouse=True)
def _open(settings, redis):
    settings.OUTBOUND_OPEN_HOSTS = ["localhost"]
    settings.BACKOFF_SECONDS = 60.0
    settings.UNKNOWN_SECONDS = 60.0
    yield
    redis.flushdb()


@pytest.fixture
def worker():
    made = Transport(AddressPolicy(["localhost"]))
    yield made
    made.close()


@dataclass
class Service:
    """A push service; `script` answers a stream, and gives None for the usual answer."""

    kind: str
    script: object = lambda connection, stream: None
    settings: dict[str, int] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    """The messages that it has answered with a yes, by their collapse keys."""

    def __post_init__(self):
        self.server = Http2Server(self._answer, **self.settings)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def take(self, connection, stream):
        names = {"apns": "apns-collapse-id", "webpush": "topic"}
        self.taken.append(stream.headers[names[self.kind]])
        connection.respond(stream, 200 if self.kind == "apns" else 201)

    def _answer(self, connection, stream):
        said = self.script(connection, stream)
        return self.take(connection, stream) if said is None else said


def account(org, kind, port, *, timeout=5.0, name=None):
    """Let an organization push by a service on this machine."""
    settings = {
        "apns": fake_apns.settings(port, ca_pem(), timeout),
        "webpush": {"subject": "mailto:a@b.example", "ca_pem": ca_pem(), "timeout": timeout},
    }
    return ProviderAccount.objects.create(
        organization=org, name=name or kind, kind=kind, channel="PUSH",
        credentials=json.dumps(settings[kind]),
    )  # fmt: skip


def people(org, kind, port, count, start=0):
    """Make contacts with one device each at a service."""
    made = factories.contacts(org, count)
    browser = Browser(f"https://localhost:{port}/x")
    for number, person in enumerate(made, start):
        subscription = {**browser.subscription, "endpoint": f"https://localhost:{port}/{number}"}
        token = f"{number:064x}" if kind == "apns" else json.dumps(subscription)
        Device.objects.create(
            organization=org, contact_id=str(person.pk), platform=PLATFORMS[kind],
            token=token, token_digest=token_digest(token),
        )  # fmt: skip
    return made


def accept(api, made):
    answer = api.bulk([message(person, channel="PUSH") for person in made])
    assert {result["status"] for result in answer.json()["results"]} == {"ACCEPTED"}


def standing():
    return Counter(Delivery.objects.values_list("status", flat=True))


def attempts():
    return Counter(Attempt.objects.values_list("outcome", "reason"))


def later(worker, redis):
    """Let all waiting be over, and work again."""
    redis.flushdb()
    Delivery.objects.filter(status__in=["ACCEPTED", "UNKNOWN"]).update(due_at="2020-01-01T00:00Z")
    schedule.resolve_unknown()
    work(worker)


def settle(worker, redis, count):
    """Work until all are sent: libcurl finds a second later that an HTTP/2 connection has ended,
    and what would have gone over it meanwhile is not sent.
    """
    for _ in range(10):
        later(worker, redis)
        if standing() == {"SENT": count}:
            return
        time.sleep(0.3)
    raise AssertionError(standing(), attempts())


def once_each(service, count):
    """Say whether the service has taken each message, and none twice."""
    return len(service.taken) == len(set(service.taken)) == count


@pytest.mark.parametrize("kind", PLATFORMS)
def test_streams_above_a_goaway_go_again_and_those_below_are_in_doubt(
    api, org, worker, redis, kind
):
    def go_away(connection, stream):
        if connection.number > 0:
            return None
        if len(service.server.seen) < 6:
            return True  # it keeps silent
        connection.h2.close_connection(last_stream_id=5)  # the first three
        return False

    with Service(kind, go_away) as service:
        account(org, kind, service.server.port)
        accept(api, people(org, kind, service.server.port, 6))
        work(worker)
        assert standing() == {"UNKNOWN": 3, "ACCEPTED": 3}
        assert attempts()[REFUSED] == 3
        assert set(Attempt.objects.values_list("outcome", flat=True)) == {"Unknown", "Retryable"}
        settle(worker, redis, 6)
        assert once_each(service, 6)
        assert len(service.server.seen) == 12


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_service_that_goes_away_in_order_loses_and_doubles_nothing(api, org, worker, redis, kind):
    def go_away(connection, stream):
        if connection.number > 0:
            return None
        if stream.id <= 5:
            service.take(connection, stream)
            return True
        if len(service.server.seen) == 6:
            connection.h2.close_connection(last_stream_id=5)
            return False
        return True

    with Service(kind, go_away) as service:
        account(org, kind, service.server.port)
        accept(api, people(org, kind, service.server.port, 6))
        work(worker)
        assert standing() == {"SENT": 3, "ACCEPTED": 3}
        assert attempts() == {("Accepted", None): 3, REFUSED: 3}
        settle(worker, redis, 6)
        assert once_each(service, 6)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_limit_of_streams_that_is_lowered_is_kept(api, org, worker, kind):
    def lower(connection, stream):
        if stream.id == 1:
            connection.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 2})

    with Service(kind, lower) as service:  # whoever opens a third ends the connection: h2 does
        account(org, kind, service.server.port)
        made = people(org, kind, service.server.port, 31)
        accept(api, made[:1])
        work(worker)
        accept(api, made[1:])
        work(worker)
        assert standing() == {"SENT": 31}
        assert attempts() == {("Accepted", None): 31}
        assert once_each(service, 31)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_service_that_takes_one_stream_until_it_has_answered_refuses_none(api, org, worker, kind):
    def raise_limit(connection, stream):
        if stream.id == 1:
            service.take(connection, stream)
            connection.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 1000})
            return True
        return None

    with Service(kind, raise_limit, {"max_concurrent_streams": 1}) as service:
        account(org, kind, service.server.port)
        accept(api, people(org, kind, service.server.port, 50))
        work(worker)
        assert attempts() == {("Accepted", None): 50}
        assert once_each(service, 50)
        assert service.server.connections == 1


@pytest.mark.parametrize("kind", PLATFORMS)
def test_streams_that_are_refused_go_again(api, org, worker, redis, kind):
    def refuse(connection, stream):
        if len(service.server.seen) % 2 and len(service.server.seen) < 10:
            connection.h2.reset_stream(stream.id, ErrorCodes.REFUSED_STREAM)
            return True
        return None

    with Service(kind, refuse) as service:
        account(org, kind, service.server.port)
        accept(api, people(org, kind, service.server.port, 10))
        work(worker)
        assert standing() == {"SENT": 5, "ACCEPTED": 5}
        assert attempts() == {("Accepted", None): 5, REFUSED: 5}
        settle(worker, redis, 10)
        assert once_each(service, 10)


class ResetBefore(Http2Server):
    """End the first connection before any request can have been read."""

    def _serve(self, connection, number):
        if number == 0:
            tcp.reset(connection)
        else:
            super()._serve(connection, number)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_connection_reset_before_the_request_costs_a_try(api, org, worker, redis, kind):
    service = Service(kind)
    service.server = ResetBefore(service._answer)
    with service:
        account(org, kind, service.server.port)
        accept(api, people(org, kind, service.server.port, 4))
        work(worker)
        assert standing() == {"ACCEPTED": 1, "SENT": 3}  # it went alone, for its host was not known
        assert {outcome for outcome, _ in attempts()} == {"Accepted", "Retryable"}
        settle(worker, redis, 4)
        assert once_each(service, 4)


def reset(connection, stream):
    tcp.reset(connection.socket)
    return True


def half(connection, stream):
    connection.h2.send_headers(stream.id, [(":status", "200"), ("content-length", "9")])
    connection.h2.send_data(stream.id, b"half")
    return False


def close(connection, stream):
    return False


@pytest.mark.parametrize("break_off", [reset, close, half], ids=["reset", "close", "half"])
@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_connection_lost_after_the_request_leaves_it_in_doubt(
    api, org, worker, redis, kind, break_off
):
    def script(connection, stream):
        if connection.number > 0:
            return None
        return break_off(connection, stream) if len(service.server.seen) == 3 else True

    with Service(kind, script) as service:
        account(org, kind, service.server.port)
        accept(api, people(org, kind, service.server.port, 3))
        work(worker)
        assert standing() == {"UNKNOWN": 3}
        assert {outcome for outcome, _ in attempts()} == {"Unknown"}
        assert service.taken == []
        settle(worker, redis, 3)
        assert once_each(service, 3)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_service_that_answers_too_late_is_left_alone_for_a_while(api, org, worker, redis, kind):
    slow = [True]

    with Service(kind, lambda connection, stream: True if slow else None) as service:
        account(org, kind, service.server.port, timeout=0.4)
        made = people(org, kind, service.server.port, 5)
        accept(api, made[:3])
        work(worker)
        assert attempts() == {("Unknown", "time-out"): 3}
        accept(api, made[3:])
        started = time.monotonic()
        work(worker)
        assert time.monotonic() - started < 0.4  # nobody was asked
        assert standing() == {"UNKNOWN": 3, "ACCEPTED": 2}
        assert len(service.server.seen) == 3
        slow.clear()
        settle(worker, redis, 5)
        assert once_each(service, 5)


@pytest.mark.parametrize(("dead", "well"), [("apns", "webpush"), ("webpush", "apns")])
def test_a_silent_service_holds_up_no_other(api, org, worker, dead, well):
    arrived = {}

    def note(connection, stream):
        arrived.setdefault(len(arrived), time.monotonic())

    with Service(dead, lambda connection, stream: True) as silent, Service(well, note) as quick:
        account(org, dead, silent.server.port, timeout=1.5)
        account(org, well, quick.server.port, timeout=1.5)
        accept(api, people(org, dead, silent.server.port, 5))
        accept(api, people(org, well, quick.server.port, 5))
        started = time.monotonic()
        work(worker)
        assert max(arrived.values()) - started < 1.0
    assert Counter(Delivery.objects.values_list("provider", "status")) == {
        (dead, "UNKNOWN"): 5, (well, "SENT"): 5,
    }  # fmt: skip


def test_a_silent_host_of_browsers_holds_up_no_other_host(api, org, worker):
    with (
        Service("webpush", lambda connection, stream: True) as silent,
        Service("webpush") as quick,
    ):
        account(org, "webpush", 0, timeout=0.6)
        accept(api, people(org, "webpush", silent.server.port, 5))
        accept(api, people(org, "webpush", quick.server.port, 5))
        work(worker)
        assert standing() == {"UNKNOWN": 5, "SENT": 5}
        accept(api, people(org, "webpush", quick.server.port, 5, start=100))
        work(worker)
        assert once_each(quick, 10)


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
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            tcp.socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    yield port, process
    process.kill()
    process.wait()


def test_nghttpd_takes_what_it_is_sent(api, org, worker, redis, nghttpd):
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
