"""Web Push endpoints that must not be called: an endpoint is an address that strangers give us.

None registers; and of those that stand in the database all the same, no packet leaves.
"""

import json
import socket
from contextlib import suppress
from socket import AF_INET6

import orjson
import pytest

from messaging.accept import send_push
from messaging.models import Attempt, ProviderAccount
from push import device_tokens
from push.models import Device, token_digest
from rme.core import ids
from rme.core.errors import InvalidPayload
from rme.core.outcomes import Gone, Retryable
from rme.transport import Failure, FailureKind, InvalidRequest, Request, Transport
from tests import factories
from tests.fakes.tcp import TcpServer
from tests.fakes.webpush import push_service
from tests.push.providers.attempts import dispatch, outcome, provider
from tests.push.subscriptions import Browser
from tests.rest import work

PORT = "59999"
"""Stands for the port at which this machine listens, to hear of anything that leaves."""

HERE = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0x7f.1",
    "0177.0.0.1", "017700000001", "0177.1", "0", "0.0.0.0", "0x0", "127.0.0.1.", "127.255.255.254",
    "localhost", "localhost.", "LOCALHOST", "ip6-localhost", "localhost.localdomain",
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000:0000::0001]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]", "[::127.0.0.1]", "[::1%25lo]", "[64:ff9b::7f00:1]",
    "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "127。0。0。1", "①②⑦.⓪.⓪.①", "１２７.0.0.1",
]  # fmt: skip
INSIDE = [
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1", "224.0.0.1",
    "255.255.255.255", "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "metadata.google.internal",
    "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25eth0]", "[fc00::1]", "[ff02::1]",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[2002:7f00:1::]", "[2001:0:7f00:1::]",
    "[64:ff9b::a9fe:a9fe]",
]  # fmt: skip
LOOK_ALIKES = [
    "evil-fcm.googleapis.com", "xfcm.googleapis.com", "fcm.googleapis.com.evil.test",
    "fcm.googleapis.com-evil.test", "fcmxgoogleapis.com", "fcm-googleapis.com", "googleapis.com",
    "storage.googleapis.com", "com", "evilnotify.windows.com", "evil-notify.windows.com",
    "notify.windows.com.evil.test", "windows.com", "push.services.mozilla.com",
    "updates.push.services.mozilla.com.evil.test", "web.push.apple.com.evil.test",
    "webpush.apple.com", "push.apple.com", "api.push.apple.com", "jmt17.google.com.evil.test",
    "xjmt17.google.com", "fcm.googleapis.com.", "fcm.googleapis.com..", ".fcm.googleapis.com",
    "a..notify.windows.com", "fcm..googleapis.com", "*.notify.windows.com", "{a,b}.googleapis.com",
    "fcm.googleap\u0131s.com", "fcm.g\u043e\u043egleapis.com", "fcm.google\u00adapis.com",
    "fcm.google\u200dapis.com", "fcm\uff0egoogleapis.com", "fcm.xn--googleaps-4hb.com",
    "xn--fcm-0na.googleapis.com", "fcm.googleapis.com,127.0.0.1", "fcm.googleapis.com;127.0.0.1",
    "fcm.googleapis.com 127.0.0.1", "[fcm.googleapis.com]",
]  # fmt: skip
WHOLE = [
    # who logs in, and where the host really ends
    f"https://fcm.googleapis.com@127.0.0.1:{PORT}/",
    f"https://fcm.googleapis.com:443@127.0.0.1:{PORT}/",
    f"https://fcm.googleapis.com%40127.0.0.1:{PORT}/",
    f"https://127.0.0.1:{PORT}%2f@fcm.googleapis.com/",
    f"https://127.0.0.1:{PORT}\\@fcm.googleapis.com/",
    f"https://fcm.googleapis.com\\@127.0.0.1:{PORT}/",
    f"https://127.0.0.1:{PORT}#@fcm.googleapis.com/",
    f"https://127.0.0.1:{PORT}#.fcm.googleapis.com/",
    f"https://127.0.0.1:{PORT}?.fcm.googleapis.com/",
    f"https://127.0.0.1:{PORT}/.fcm.googleapis.com/",
    f"https://127.0.0.1:{PORT};.fcm.googleapis.com/",
    "https://fcm.googleapis.com\\.evil.test/",
    "https://user:secret@fcm.googleapis.com/x",
    "https://@fcm.googleapis.com/x",
    "https://fcm.googleapis.com#/x",
    "https://fcm.googleapis.com/x#y",
    "https://fcm.googleapis.com?x",
    "https://fcm.googleapis.com/x\\..\\y",
    # letters that stand for others
    "https://fcm.googleapis.com%2eevil.test/",
    "https://fcm%2egoogleapis.com/",
    "https://%66cm.googleapis.com/",
    "https://fcm.googleapis.com%00.evil.test/",
    "https://fcm.googleapis.com%0d%0aHost:%20127.0.0.1/",
    "https://fcm.googleapis.com\r\nHost: 127.0.0.1\r\n/",
    "https://fcm.googleapis.com/x\r\nX-Evil: 1",
    "https://fcm.googleapis.com/x\ny",
    "https://fcm.googleapis.com/x y",
    "https://fcm.googleapis.com/\u00e9",
    "https://\tfcm.googleapis.com/",
    " https://fcm.googleapis.com/",
    # ports
    *(
        f"https://fcm.googleapis.com:{port}/x"
        for port in ("80", "8443", "22", "0", "0443", "65536", "99999", "443443", "+443", "-1", "")
    ),
    f"https://fcm.googleapis.com:{PORT}/x",
    # schemes
    *(
        f"{scheme}://127.0.0.1:{PORT}/"
        for scheme in ("http", "ftp", "gopher", "dict", "smtp", "ws", "wss", "telnet", "ldap")
    ),
    "http://fcm.googleapis.com/x",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/plain,x",
    "view-source:https://fcm.googleapis.com/x",
    # what is none
    f"https:127.0.0.1:{PORT}/",
    f"https:/127.0.0.1:{PORT}/",
    f"https:///127.0.0.1:{PORT}/",
    f"https:\\\\127.0.0.1:{PORT}\\",
    f"//127.0.0.1:{PORT}/",
    f"127.0.0.1:{PORT}",
    "https://",
    "https://.",
    "https://:443/",
    "https://[]/",
    "https://[::1/",
    "https://::1/",
    "https://fcm.googleapis.com/" + "x" * 2000,
    "x",
    "",
]
REFUSED = [
    *(f"https://{host}:{PORT}/wpush/v2/x" for host in HERE),
    *(f"https://{host}/wpush/v2/x" for host in (*HERE, *INSIDE, *LOOK_ALIKES)),
    *WHOLE,
]
NAMES = [
    host.rstrip(".")
    for host in ("fcm.googleapis.com", *HERE, *INSIDE, *LOOK_ALIKES)
    if host.isascii() and host[0].isalpha()
]


@pytest.fixture
def trap():
    """Listen on this machine, by IPv4 and (where there is one) by IPv6."""
    with TcpServer(lambda connection, number: None) as server, socket.socket(AF_INET6) as six:
        six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        six.setblocking(False)
        with suppress(OSError):  # a machine without IPv6
            six.bind(("::1", server.port))
            six.listen()
        yield server, six


def nobody_came(trap):
    server, six = trap
    with pytest.raises(OSError, match=r"unavailable|Invalid argument"):  # nobody, or no IPv6
        six.accept()
    return server.connections == 0


def at(url, trap):
    return url.replace(PORT, str(trap[0].port))


def subscription(url):
    return {**Browser().subscription, "endpoint": url}


def test_at_least_a_hundred_endpoints_are_listed():
    assert len(REFUSED) == len(set(REFUSED)) >= 100


@pytest.mark.promise("devices-15")
@pytest.mark.parametrize("url", REFUSED, ids=range(len(REFUSED)))
def test_refused_endpoint_is_rejected(url):
    with pytest.raises(InvalidPayload) as refused:
        device_tokens.parse("WEB", subscription(url))
    (detail,) = refused.value.details
    assert detail.field == "token.endpoint"


@pytest.mark.promise("devices-15")
def test_endpoints_of_browsers_are_accepted():
    for url in (
        "https://fcm.googleapis.com/fcm/send/abc:def",
        "https://updates.push.services.mozilla.com/wpush/v2/gAAAA",
        "https://UPDATES.push.services.mozilla.com:443/wpush/v2/gAAAA",
        "https://web.push.apple.com/QAbc-_",
        "https://wns2-par02p.notify.windows.com/w/?token=BQYAAA%2f",
    ):
        assert device_tokens.parse("WEB", subscription(url)).text


@pytest.mark.promise("devices-15")
@pytest.mark.django_db
def test_refused_endpoints_cannot_be_registered_by_rest(api):
    entries = [{"userId": "u1", "platform": "WEB", "token": subscription(url)} for url in REFUSED]
    body = api.call("POST", "/devices", {"entries": entries}).json()
    assert (body["accepted"], body["rejected"]) == (0, len(REFUSED))
    fields = {one["error"]["details"][0]["field"] for one in body["results"]}
    assert fields == {"token.endpoint"}
    assert not Device.objects.exists()


@pytest.mark.promise("devices-17")
@pytest.mark.django_db
def test_refused_endpoint_stored_in_the_database_is_not_called(org, redis, trap):
    """All names lead to this machine: what the transport would look up, it finds here."""
    person = factories.contact(org)
    settings = {"subject": "mailto:ops@example.com"}
    ProviderAccount.objects.create(
        organization=org, name="web", kind="webpush", channel="PUSH",
        credentials=json.dumps(settings),
    )  # fmt: skip
    texts = [orjson.dumps(subscription(at(url, trap))).decode() for url in REFUSED]
    Device.objects.bulk_create(
        Device(
            id=ids.new_id(), organization=org, contact_id=str(person.pk), platform="WEB",
            token=text, token_digest=token_digest(text),
        )
        for text in texts
    )  # fmt: skip
    send_push(org, str(person.pk), title="T", body="B")
    transport = Transport(resolve=resolved(trap))
    work(transport)
    transport.close()
    assert nobody_came(trap)
    attempts = Attempt.objects.values_list("outcome", "reason")
    assert len(attempts) == len(REFUSED)
    assert {outcome for outcome, _ in attempts} == {"Gone"}
    assert {reason for _, reason in attempts} == {
        "the endpoint must be an https address",
        "the endpoint must be on port 443",
        "the endpoint is not of a push service that is known here",
    }


def resolved(trap):
    """Let all names lead to this machine."""
    return [f"{name}:{port}:127.0.0.1" for name in NAMES for port in (443, trap[0].port)]


ON_LOOPBACK = [url for url in REFUSED if PORT in url]


@pytest.mark.promise("devices-17")
def test_transport_itself_calls_no_refused_endpoint(trap):
    """Were the list of push services wrong, the address would still be looked at."""
    requests = []
    for url in ON_LOOPBACK:
        with suppress(InvalidRequest):
            requests.append(Request(at(url, trap), b"x", timeout=5.0))
    assert len(requests) >= 50
    transport = Transport(resolve=resolved(trap))
    found = transport.perform(requests)
    transport.close()
    assert nobody_came(trap)
    kinds = {result.kind if isinstance(result, Failure) else result for result in found}
    assert kinds == {FailureKind.REFUSED_ADDRESS}


# --- known hosts that lead elsewhere --------------------------------------------------------------
MADE = {"subject": "mailto:ops@example.com"}


@pytest.mark.promise("devices-18")
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[fd00:ec2::254]", "[fe80::1]",
        "[64:ff9b::7f00:1]", "127.0.0.1,[::1]", "10.0.0.1,169.254.169.254",
    ],
)  # fmt: skip
def test_known_host_resolving_into_our_network_is_not_called(redis, address):
    """Whatever its name led to when it registered: the address of the very socket counts."""
    inside = Transport(resolve=[f"fcm.googleapis.com:443:{address}"])
    browser = Browser("https://fcm.googleapis.com/fcm/send/x")
    found = outcome(provider("webpush", MADE), inside, dispatch(platform="WEB", token=browser.text))
    inside.close()
    assert found == Gone("the endpoint's address is not public")


@pytest.mark.promise("devices-18")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433"])
def test_no_redirect_is_followed(transport, trap, status, host):
    location = f"https://{host}:{trap[0].port}/"
    with push_service(device=(status, b"", {"location": location})) as service:
        made = provider("webpush", service.settings())
        found = outcome(made, transport, dispatch(platform="WEB", token=service.browser().text))
        assert len(service.seen) == 1
    assert found == Retryable(f"the push service answered {status}")
    assert nobody_came(trap)
