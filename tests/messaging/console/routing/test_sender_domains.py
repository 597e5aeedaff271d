"""Sender domains and local parts: console and API take the same, and mail leaves by SMTP."""

from importlib import import_module

import orjson
import pytest
from django.apps import apps

from messaging.models import ProviderAccount, SenderDomain
from rme.core.cache import TtlCache
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.dns import DnsServer
from tests.fakes.smtp import SmtpServer
from tests.messaging.console.conftest import url
from tests.rest import message, work

pytestmark = pytest.mark.django_db
LABEL = "xn--bcher-kva.example"


@pytest.fixture(autouse=True)
def _no_records(settings):
    with DnsServer({}) as server:
        settings.DNS_RESOLVER = server.address
        yield


def add(root, domain="news.example", local_part="no-reply"):
    form = {"domain": domain, "local_part": local_part, "name": "Books"}
    return root.post(url("new_domain"), form)


@pytest.mark.parametrize(
    "typed", ["Bücher.example", LABEL.upper(), "bücher.example.", " bücher\u200b.example"]
)
@pytest.mark.parametrize("named", ["bücher.example", LABEL])
def test_a_domain_beyond_ascii_is_sent_from(root, org, api, typed, named):
    assert add(root, typed).status_code == 302
    assert SenderDomain.objects.filter(domain=LABEL).update(verified_at="2026-01-01T00:00Z") == 1
    assert "bücher.example" in root.get(url("domains")).content.decode()
    transport = Transport(AddressPolicy(["127.0.0.1"]))
    with SmtpServer() as server:
        account = {"host": "127.0.0.1", "port": server.port, "security": "NONE"}
        ProviderAccount.objects.create(
            organization=org,
            name="mail",
            kind="smtp",
            channel="EMAIL",
            credentials=orjson.dumps(account).decode(),
        )
        TtlCache.clear_all()
        sender = {"domain": named, "localPart": "o'hara+books"}
        answer = api.send(message(factories.contact(org), **{"from": sender}))
        assert answer.status_code == 202
        work(transport)
        (mail,) = server.mails
    transport.close()
    assert mail.mail_from == f"<o'hara+books@{LABEL}>"
    assert f"<o'hara+books@{LABEL}>".encode() in mail.data


@pytest.mark.parametrize(
    "domain",
    ["bü cher.example", "a@b.example", "-", "xn--0.example", "x" * 64, "[::1]", "[127.0.0.1]"],
)
def test_console_refuses_an_invalid_domain(root, org, domain):
    assert set(add(root, domain).context["form"].errors) == {"domain"}


WRONG = [".a", "a.", "a..b", "a b", "a,b", "<a>", "a@b", "é", "\u212a", "a\n", '"a"', "x" * 65]


@pytest.mark.parametrize("local_part", WRONG)
def test_invalid_local_part_is_refused(root, org, api, local_part):
    if local_part != "a\n":  # a form cuts it off
        assert set(add(root, local_part=local_part).context["form"].errors) == {"local_part"}
    body = message(factories.contact(org), **{"from": {"localPart": local_part}})
    refused = api.send(body)
    assert refused.status_code == 400
    assert [each["field"] for each in refused.json()["error"]["details"]] == ["from.localPart"]


def test_stored_domains_become_labels(org):
    for domain in ("bücher.example", "News.Example", "xn--mnchen-3ya.example", "münchen.example"):
        SenderDomain.objects.create(organization=org, domain=domain)
    import_module("messaging.migrations.0045_sender_domain_labels").convert(apps, None)
    assert set(SenderDomain.objects.values_list("domain", flat=True)) == {
        "acme.example",
        LABEL,
        "news.example",
        "xn--mnchen-3ya.example",
        "münchen.example",  # the organization has it in its other form
    }
