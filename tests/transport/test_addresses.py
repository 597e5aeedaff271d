"""Which addresses may be called, whatever the spelling."""

import pytest

from rme.transport import (
    AddressPolicy,
    Envelope,
    Failure,
    FailureKind,
    MailSecurity,
    Request,
    Transport,
)
from rme.transport import Reply as Answered
from rme.transport.addresses import is_public
from tests.fakes import tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.smtp import SmtpServer

REFUSED = FailureKind.REFUSED_ADDRESS


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "172.15.255.255",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "192.0.1.1",
        "198.17.255.255",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001:81b::200e",
        "64:ff9b::8.8.8.8",
    ],
)
def test_public_address_may_be_called(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:0:7f00:1::",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "nonsense",
        "",
    ],
)
def test_other_address_may_not_be_called(address: str) -> None:
    assert not is_public(address)


@pytest.mark.promise("mapping-7")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "rebound.test",
        "0",
        "0.0.0.0",
    ],
)
@pytest.mark.parametrize("scheme", ["https", "smtp", "smtps"])
def test_no_spelling_of_loopback_sends_a_packet(host: str, scheme: str) -> None:
    with tcp.TcpServer(lambda connection, _: None) as server:
        where = f"rebound.test:{server.port}:127.0.0.1"
        transport = Transport(AddressPolicy(["other.test", "127.0.0.1:1"]), resolve=[where])
        security = MailSecurity.TLS if scheme == "smtps" else MailSecurity.NONE
        mail = Envelope("a@x.test", ("b@x.test",), security)
        envelope = mail if scheme.startswith("smtp") else None
        request = Request(f"{scheme}://{host}:{server.port}/", b"x", envelope=envelope)
        (result,) = transport.perform([request])
        transport.close()
        assert isinstance(result, Failure)
        assert (result.kind, server.connections) == (REFUSED, 0)


@pytest.mark.parametrize(
    "url",
    [
        "http://8.8.8.8/",
        "http://opened.test.evil.test/",
        "https://opened.test@127.0.0.1:{port}/",
        "https://opened.test:443@127.0.0.1:{port}/",
        "https://opened.test%40127.0.0.1:{port}/",
        "https://opened.test\\@127.0.0.1:{port}/",
        "https://127.0.0.1:{port}\\@opened.test/",
        "https://127.0.0.1:{port}#@opened.test/",
        "https:///127.0.0.1:{port}/",
        "https://[127.0.0.1]:{port}/",
        "https://127.0.0.1:0/",
        "https://127.0.0.1:99999/",
        "https://{{127.0.0.1}}:{port}/",
        "https:127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "file:///etc/passwd",
        "ftp://127.0.0.1:{port}/",
        "gopher://127.0.0.1:{port}/",
        "dict://127.0.0.1:{port}/",
        "smtp://127.0.0.1:{port}/",
        "telnet://127.0.0.1:{port}/",
        "nonsense",
    ],
)
def test_no_url_bypasses_the_check(url: str) -> None:
    with tcp.TcpServer(lambda connection, _: None) as server:
        transport = Transport(AddressPolicy(["opened.test"]))
        (result,) = transport.perform([Request(url.format(port=server.port), b"x")])
        transport.close()
        assert isinstance(result, Failure)
        assert (result.kind, server.connections) == (REFUSED, 0)


@pytest.mark.parametrize(
    ("entry", "opens"),
    [
        ("app.test", True),
        ("APP.test", True),
        ("app.test.", True),
        ("app.test:{port}", True),
        ("127.0.0.1:{port}", True),
        ("app.test:1", False),
        ("test", False),
        ("other.test", False),
        ("127.0.0.1:1", False),
    ],
)
def test_opened_host_may_be_called(entry: str, opens: bool) -> None:
    with Http1Server() as server:
        policy = AddressPolicy([entry.format(port=server.port)])
        transport = Transport(policy, resolve=[f"app.test:{server.port}:127.0.0.1"])
        host = "127.0.0.1" if entry.startswith("127") else "app.test"
        (result,) = transport.perform([Request(f"http://{host}:{server.port}/", b"x")])
        transport.close()
    assert isinstance(result, Answered) is opens
    assert len(server.seen) == int(opens)


@pytest.mark.parametrize(
    ("entry", "host", "port"),
    [
        ("::1", "::1", 443),
        ("[::1]:8025", "::1", 8025),
        ("[0:0:0:0:0:0:0:1]", "[::1]", 9),
        ("10.0.0.5:25", "10.0.0.5", 25),
    ],
)
def test_opened_address_has_many_spellings(entry: str, host: str, port: int) -> None:
    assert AddressPolicy([entry]).opens(host, port)
    assert not AddressPolicy().opens(host, port)


@pytest.mark.parametrize("entry", ["", "https://x.test", "x.test/", "a b", "user@x.test", "x:y"])
def test_malformed_host_entry_is_rejected(entry: str) -> None:
    with pytest.raises(ValueError, match="not a host"):
        AddressPolicy([entry])


@pytest.mark.parametrize(("opened", "kind"), [(["localhost"], None), (["127.0.0.1"], REFUSED)])
def test_log_in_goes_in_clear_to_opened_hosts_only(
    opened: list[str], kind: FailureKind | None
) -> None:
    with SmtpServer({"EHLO": "250-mail.test\n250 AUTH PLAIN"}) as server:
        transport = Transport(AddressPolicy(opened))
        envelope = Envelope("a@x.test", ("b@x.test",), MailSecurity.NONE, "me", "secret")
        url = f"smtp://localhost:{server.port}/me.test"
        (result,) = transport.perform([Request(url, b"Subject: x\r\n\r\n", envelope=envelope)])
        transport.close()
    assert getattr(result, "kind", None) is kind
    assert [mail.login for mail in server.mails] == ([] if kind else ["me:secret"])
