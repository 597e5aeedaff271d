"""The page of sender domains: records to copy, what the provider says, and a check on demand."""

import pytest

from messaging.models import ProviderAccount, SenderDomain
from messaging.policy import organization_policy
from tests import audited, factories
from tests.fakes.dns import DnsServer
from tests.messaging.console.conftest import url

pytestmark = pytest.mark.django_db


@pytest.fixture
def domain(org):
    SenderDomain.objects.all().delete()
    return SenderDomain.objects.create(organization=org, domain="acme.example")


def test_a_domain_is_saved_and_checked(root, domain, settings):
    zone = {"acme.example": ["v=spf1 include:spf.mail.example -all"]}
    given = {"domain": domain.pk, "spf": "include:spf.mail.example", "dkim_selector": "s1"}
    with DnsServer(zone) as server:
        settings.DNS_RESOLVER = server.address
        text = root.post(url("domains"), given, follow=True).content.decode()
    for part in (
        "The SPF record has include:spf.mail.example.",
        "There is no DKIM key at the selector s1.",
        "There is no DMARC record.",
        "v=spf1 include:spf.mail.example ~all",
        "s1._domainkey.acme.example",
        "v=DMARC1; p=none",
    ):
        assert part in text
    domain.refresh_from_db()
    assert (domain.spf, domain.dkim_selector) == ("include:spf.mail.example", "s1")
    assert audited.lines() == ["spf: – → include:spf.mail.example", "dkim_selector: – → s1"]


@pytest.mark.parametrize(
    ("wrong", "field"), [({"spf": "a\u00a0b"}, "spf"), ({"dkim_selector": "s1 ."}, "dkim_selector")]
)
def test_malformed_record_is_an_error_at_its_field(root, domain, wrong, field):
    shown = root.post(url("domains"), {"domain": domain.pk, **wrong})
    (found,) = shown.context["domains"]
    assert set(found.form.errors) == {field}
    assert SenderDomain.objects.get().checked_at is None


def test_the_page_asks_no_more_for_more_domains(root, org, domain, django_assert_num_queries):
    for number in range(5):
        SenderDomain.objects.create(organization=org, domain=f"d{number}.example")
    root.get(url("domains"))
    with django_assert_num_queries(4):
        assert len(root.get(url("domains")).context["domains"]) == 6


def test_the_mechanism_of_the_accounts_provider_is_suggested(root, org, domain):
    ProviderAccount.objects.create(
        organization=org, name="mail", kind="anymail", channel="EMAIL",
        credentials='{"service": "mailgun", "api_key": "k"}',
    )  # fmt: skip
    organization_policy.forget(org.pk)
    shown = root.get(url("domains")).content.decode()
    assert "v=spf1 include:mailgun.org ~all" in shown
    assert "Not checked yet." in shown


def test_domain_of_another_organization_is_not_found(root, domain):
    other = factories.organization("other")
    (theirs,) = SenderDomain.objects.filter(organization=other)[:1] or [
        SenderDomain.objects.create(organization=other, domain="theirs.example")
    ]
    for given in (theirs.pk, "x", "9" * 30, ""):
        assert root.post(url("domains"), {"domain": given}).status_code == 404
    assert theirs.domain not in root.get(url("domains")).content.decode()
