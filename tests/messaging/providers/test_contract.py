"""What every provider must make of a network that fails.

A new provider is tested by naming it in HARNESSES: how its account comes to call a port of this
machine, a content for it, and what protocol it speaks. The faults are of the protocol; the outcomes
are the same for all.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import UUID

import pytest

from messaging.domain.channels import Channel
from messaging.providers import REGISTRY
from rme.core.outcomes import Misconfigured, Outcome, Rejected, Retryable, Unknown
from rme.core.provider import Content, Dispatch, Email, Provider, Push, Sms
from rme.transport import Transport
from rme.transport.smpp import close_all
from rme.transport.smpp.pdu import CommandId
from tests.fakes import http1, smpp, smtp, tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.http2 import Http2Server
from tests.fakes.smpp import SmppServer
from tests.fakes.smtp import SmtpServer
from tests.fakes.tls import ca_pem, server_context
from tests.push import harnesses

CONTENTS: dict[Channel, Content] = {
    Channel.EMAIL: Email("to@x.test", "from@y.test", "Ann", "Hello", "Hi", message_id="1@y.test"),
    Channel.SMS: Sms("+12025550123", "Hi", "Ann"),
    Channel.PUSH: Push("ab" * 32, "IOS", "Hello", "Hi"),
}


@dataclass(frozen=True)
class Harness:
    """How to try a provider: `settings` makes an account's of a port, a CA and a time-out (s)."""

    protocol: str
    settings: Callable[[int, str, float], dict[str, object]]
    content: Callable[[int], Content] | None = None
    """A content for a port, where the channel's own does not do."""


def _smtp(port: int, ca: str, timeout: float) -> dict[str, object]:
    return {"host": "localhost", "port": port, "security": "TLS", "timeout": timeout, "ca_pem": ca}


def _smpp(port: int, ca: str, timeout: float) -> dict[str, object]:
    where = {"host": "localhost", "port": port, "tls": True, "ca_pem": ca}
    return {**where, "system_id": "esme", "password": "secret", "timeout": timeout}


def _http(**own: str) -> Callable[[int, str, float], dict[str, object]]:
    """Return the settings of an account over HTTP; `{}` in a text is the server's address."""

    def settings(port: int, ca: str, timeout: float) -> dict[str, object]:
        address = f"https://localhost:{port}"
        filled = {name: value.replace("{}", address) for name, value in own.items()}
        return {"timeout": timeout, "ca_pem": ca, **filled}

    return settings


HARNESSES: dict[str, Harness] = {
    "smtp": Harness("smtp", _smtp),
    "anymail": Harness("http", _http(base_url="{}", service="postmark", api_key="k")),
    "ses": Harness(
        "http",
        _http(base_url="{}", region="eu-west-1", access_key_id="A" * 20, secret_access_key="s"),
    ),
    "twilio": Harness("http", _http(base_url="{}", account_sid="AC" + "0" * 32, auth_token="t")),
    "vonage": Harness("http", _http(base_url="{}", api_key="k", api_secret="s")),
    "kannel": Harness("http", _http(base_url="{}", username="u", password="p")),
    "smpp": Harness("smpp", _smpp),
    "http_sms": Harness("http", _http(url="{}/send")),
    "apns": Harness("http2", harnesses.apns),
    "fcm": Harness("http2", harnesses.fcm_logged_in, harnesses.android),
    "webpush": Harness("http2", harnesses.webpush, harnesses.browser),
    "salesforce": Harness("http", harnesses.platform_logged_in, harnesses.user),
}
CALLS_THE_RECIPIENT = {"webpush"}
"""Where it calls is no fault of the account: tried by its own tests."""
WITHOUT_NETWORK = {"simulator"}


@pytest.fixture(autouse=True)
def _no_links() -> Iterator[None]:
    """Keep no link of a test for the next."""
    yield
    close_all(1)


# Each fault is a server; each protocol has its own way to it.

Server = AbstractContextManager[tcp.TcpServer]


def _nobody(protocol: str) -> Server:
    server = tcp.TcpServer(lambda connection, _: None)
    server.port = tcp.free_port()
    return server


def _silent(protocol: str) -> Server:
    return tcp.TcpServer(lambda connection, _: tcp.stall(connection))


def _untrusted(protocol: str) -> Server:
    return _after(protocol, smtp.close, lambda connection, seen: False)


def _plain(protocol: str) -> Server:
    """Speak without TLS where TLS was to be."""
    return tcp.TcpServer(lambda connection, _: connection.sendall(b"220 hello\r\n" * 3))


def _after(
    protocol: str, mail: smtp.Step, http: Callable[[socket.socket, http1.Seen], bool | None]
) -> Server:
    """Fail when the whole request is there."""
    if protocol == "smtp":
        return SmtpServer({"END": mail}, tls=server_context())
    if protocol == "smpp":
        whole = http1.Seen(0, "POST", "/", (), b"")
        steps: dict[int, smpp.Step] = {CommandId.SUBMIT_SM: lambda c, _: http(c, whole)}
        return SmppServer(steps, server_context())
    if protocol == "http2":
        whole = http1.Seen(0, "POST", "/", (), b"")
        return Http2Server(lambda connection, stream: http(connection.socket, whole))
    return Http1Server(http, tls=server_context())


def _stall(protocol: str) -> Server:
    return _after(protocol, tcp.stall, lambda connection, seen: tcp.stall(connection))


def _close(protocol: str) -> Server:
    return _after(protocol, smtp.close, lambda connection, seen: False)


def _garbage(protocol: str) -> Server:
    def http(connection: socket.socket, seen: http1.Seen) -> bool:
        smtp.garbage(connection)
        return False

    return _after(protocol, smtp.garbage, http)


def _half(protocol: str) -> Server:
    def mail(connection: socket.socket) -> None:
        connection.sendall(b"250-2.0.0 almost\r\n250")

    def http(connection: socket.socket, seen: http1.Seen) -> bool:
        connection.sendall(b'HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{"id"')
        return False

    return _after(protocol, mail, http)


def _drip(protocol: str) -> Server:
    def mail(connection: socket.socket) -> None:
        tcp.drip(connection, b"250 2.0.0 queued as 1\r\n", 0.2)

    def http(connection: socket.socket, seen: http1.Seen) -> None:
        tcp.drip(connection, b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0.2)

    return _after(protocol, mail, http)


FAULTS: dict[str, tuple[Callable[[str], Server], type[Outcome]]] = {
    "nobody listens": (_nobody, Retryable),
    "silent before the request": (_silent, Retryable),
    "certificate not to be trusted": (_untrusted, Misconfigured),
    "no TLS": (_plain, Misconfigured),
    "silent after the request": (_stall, Unknown),
    "closed after the request": (_close, Unknown),
    "garbage": (_garbage, Unknown),
    "half an answer": (_half, Unknown),
    "slow drip": (_drip, Unknown),
}

SLOW = {
    "silent before the request": 0.5,
    "silent after the request": tcp.TIME_OUT,
    "slow drip": tcp.TIME_OUT,
}
"""The time-outs of the faults that last for one."""


def make(kind: str, settings: dict[str, object]) -> Provider:
    provider = REGISTRY[kind]
    return provider(provider.Settings.model_validate(settings))


def dispatches(provider: Provider, port: int) -> list[Dispatch]:
    """Return two dispatches for each channel: what holds for one holds for a window."""
    own = HARNESSES[provider.kind].content
    chosen = [own(port)] if own else [CONTENTS[channel] for channel in sorted(provider.channels)]
    chosen *= 2
    return [
        Dispatch(str(UUID(int=number)), content) for number, content in enumerate(chosen, start=1)
    ]


def test_every_provider_is_tried() -> None:
    assert set(HARNESSES) | WITHOUT_NETWORK == set(REGISTRY)


@pytest.mark.parametrize("kind", sorted(REGISTRY))
def test_provider_declares_kind_label_channels_and_settings(kind: str) -> None:
    provider = REGISTRY[kind]
    assert (provider.kind, bool(provider.label)) == (kind, True)
    assert provider.channels <= frozenset(Channel)
    assert provider.channels
    assert provider.Settings.model_config["extra"] == "forbid"


@pytest.mark.promise("faults-7")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", sorted(HARNESSES))
def test_fault_has_its_outcome(transport: Transport, kind: str, fault: str) -> None:
    start, expected = FAULTS[fault]
    harness = HARNESSES[kind]
    with start(harness.protocol) as server:
        trust = "" if fault == "certificate not to be trusted" else ca_pem()
        timeout = SLOW.get(fault, 5.0)
        provider = make(kind, harness.settings(server.port, trust, timeout))
        window = dispatches(provider, server.port)
        first, *others = [type(outcome) for outcome in provider.send(window, transport)]
    # Over HTTP/2 the first goes alone. What follows may find the connection ended, and is not sent.
    unsent = {Retryable} if harness.protocol == "http2" and expected is Unknown else set()
    assert first is expected
    assert set(others) <= {expected} | unsent


@pytest.mark.parametrize("kind", sorted(set(HARNESSES) - CALLS_THE_RECIPIENT))
def test_forbidden_address_is_a_misconfigured_account(kind: str) -> None:
    transport = Transport()
    with tcp.TcpServer(lambda connection, _: None) as server:
        provider = make(kind, HARNESSES[kind].settings(server.port, ca_pem(), 5.0))
        window = dispatches(provider, server.port)
        outcomes = provider.send(window, transport)
        assert server.connections == 0
    transport.close()
    assert [type(outcome) for outcome in outcomes] == [Misconfigured] * len(window)


@pytest.mark.parametrize("kind", sorted(REGISTRY))
def test_empty_window_has_no_outcomes(transport: Transport, kind: str) -> None:
    harness = HARNESSES.get(kind)
    provider = make(kind, harness.settings(1, "", 5.0) if harness else {})
    assert provider.send([], transport) == []


@pytest.mark.parametrize("kind", sorted(HARNESSES))
def test_outcome_names_no_address(transport: Transport, kind: str) -> None:
    harness = HARNESSES[kind]
    with _close(harness.protocol) as server:
        provider = make(kind, harness.settings(server.port, ca_pem(), 5.0))
        outcomes = provider.send(dispatches(provider, server.port), transport)
    assert outcomes
    for outcome in outcomes:
        assert isinstance(outcome, Unknown | Retryable | Rejected | Misconfigured)
        assert "x.test" not in outcome.reason
