"""Sender domains: records to copy, what the provider says, a check on demand, add and delete."""

import pytest

from messaging.models import ProviderAccount, SenderDomain
from messaging.policy import organization_policy
from rme.core.db import clock
from rme.tenants.models import Membership
from tests import audited, factories
from tests.fakes.dns import DnsServer
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
FORM = {"do": "save", "local_part": "no-reply", "name": "", "spf": "", "dkim_selector": ""}
NEW = {**FORM, "domain": "news.example"}


@pytest.fixture(autouse=True)
def _no_records(settings):
    with DnsServer({}) as server:
        settings.DNS_RESOLVER = server.address
        yield


@pytest.fixture
def domain(org):
    SenderDomain.objects.all().delete()
    return SenderDomain.objects.create(organization=org, domain="acme.example")


def do(client, row, button, **fields):
    """Press a button of a domain's page, and return the page that follows."""
    return client.post(url("domain", row.pk), {"do": button, **fields}, follow=True)


def test_a_domain_is_saved_and_checked(root, domain, settings):
    zone = {"acme.example": ["v=spf1 include:spf.mail.example -all"]}
    form = {**FORM, "spf": "include:spf.mail.example", "dkim_selector": "s1"}
    with DnsServer(zone) as server:
        settings.DNS_RESOLVER = server.address
        text = root.post(url("domain", domain.pk), form, follow=True).content.decode()
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
    listed = root.get(url("domains")).content.decode()
    assert ("SPF: correct" in listed, "DKIM: missing" in listed) == (True, True)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"spf": "a\u00a0b"}, "spf"),
        ({"dkim_selector": "s1 ."}, "dkim_selector"),
        ({"local_part": "a@b"}, "local_part"),
        ({"local_part": ""}, "local_part"),
    ],
)
def test_wrong_value_is_an_error_at_its_field(root, domain, wrong, field):
    form = {**FORM, "name": "Books", **wrong}
    shown = root.post(url("domain", domain.pk), form)
    assert set(shown.context["form"].errors) == {field}
    assert 'value="Books"' in shown.content.decode()
    stored = SenderDomain.objects.get()
    assert (stored.name, stored.checked_at) == ("", None)


def test_domain_is_added_and_checked(root, org, domain, settings):
    with DnsServer({}) as server:
        settings.DNS_RESOLVER = server.address
        made = root.post(url("new_domain"), {**NEW, "domain": "News.Example", "name": "News"})
    row = SenderDomain.objects.get(domain="news.example")
    assert made["Location"] == f"{url('domain', row.pk)}?setup"
    assert root.get(made["Location"]).context["is_open"]  # it has no DKIM selector yet
    assert not root.get(url("domain", row.pk)).context["is_open"]
    assert (row.name, row.verified_at, row.is_default) == ("News", None, False)
    assert row.checked_at is not None
    assert "domain: – → News.Example" in audited.lines()
    refused = root.post(url("new_domain"), {**NEW, "domain": "NEWS.example"})
    assert refused.context["form"].errors == {
        "domain": ["Your organization has this domain already."]
    }


def test_new_default_replaces_the_one_before(root, org, domain):
    assert root.get(url("new_domain")).context["form"].initial["is_default"]
    root.post(url("domain", domain.pk), {**FORM, "is_default": "on"})
    assert not root.get(url("new_domain")).context["form"].initial["is_default"]
    root.post(url("new_domain"), {**NEW, "is_default": "on"})
    defaults = dict(SenderDomain.objects.values_list("domain", "is_default"))
    assert defaults == {"acme.example": False, "news.example": True}
    assert "is_default: True → False" in audited.lines()
    first = root.get(url("domains")).context["domains"][0][0]
    assert first.domain == "news.example"


def test_change_applies_to_sending_at_once(root, org, domain):
    SenderDomain.objects.update(verified_at="2026-01-01T00:00Z")
    organization_policy.forget(org.pk)
    assert organization_policy.of(org.pk).default_domain.local_part == "no-reply"
    root.post(url("domain", domain.pk), {**FORM, "local_part": "news"})
    assert organization_policy.of(org.pk).default_domain.local_part == "news"
    assert "Nothing was done." in do(root, domain, "delete").content.decode()
    assert organization_policy.of(org.pk).default_domain is not None
    do(root, domain, "delete", sure="yes")
    assert organization_policy.of(org.pk).default_domain is None
    assert "domain: acme.example → –" in audited.lines()


def test_superuser_marks_a_domain_as_verified(root, org, domain):
    owner = person("owner", org, Membership.Role.OWNER)
    assert do(owner, domain, "verify").status_code == 403
    assert "Mark as verified" not in owner.get(url("domain", domain.pk)).content.decode()
    domain.refresh_from_db()
    assert domain.verified_at is None
    assert "Verified for sending" in do(root, domain, "verify").content.decode()
    assert audited.summaries()[-1] == ("root", "CHANGED", "marked as verified")


@pytest.mark.parametrize(("state", "is_green"), [("RIGHT", True), ("MISSING", False)])
def test_verified_domain_without_its_records_is_not_green(root, domain, state, is_green):
    findings = [{"record": "SPF", "state": state, "text": ""}]
    SenderDomain.objects.filter(pk=domain.pk).update(verified_at=clock.now(), findings=findings)
    for address in (url("domain", domain.pk), url("domains")):
        shown = root.get(address).content.decode()
        assert ('c-good">Verified for sending<' in shown) is is_green
        assert ("Verified, but DNS records are missing or wrong" in shown) is not is_green


def test_reader_changes_nothing(org, domain):
    reader = person("viewer", org, Membership.Role.VIEWER)
    shown = reader.get(url("domain", domain.pk)).content.decode()
    assert ("v=DMARC1; p=none" in shown, "Save and check" in shown) == (True, False)
    for button in ("save", "check", "delete"):
        assert do(reader, domain, button, sure="yes").status_code == 403
    assert (
        "Choose one of the buttons."
        in do(person("owner", org, Membership.Role.OWNER), domain, "explode").content.decode()
    )


def test_the_pages_ask_no_more_for_more_domains(root, org, domain, django_assert_num_queries):
    SenderDomain.objects.bulk_create(
        SenderDomain(organization=org, domain=f"d{number:03}.example") for number in range(105)
    )
    root.get(url("domains"))
    with django_assert_num_queries(4):
        shown = root.get(url("domains"))
    assert len(shown.context["domains"]) == 100
    rest = root.get(url("domains"), {"from": shown.context["following"]})
    assert (len(rest.context["domains"]), rest.context["following"]) == (6, None)
    assert len(root.get(url("domains"), {"from": "x"}).context["domains"]) == 100
    root.get(url("domain", domain.pk))
    with django_assert_num_queries(4):
        root.get(url("domain", domain.pk))


def test_the_mechanism_of_the_accounts_provider_is_suggested(root, org, domain):
    ProviderAccount.objects.create(
        organization=org, name="mail", kind="anymail", channel="EMAIL",
        credentials='{"service": "mailgun", "api_key": "k"}',
    )  # fmt: skip
    organization_policy.forget(org.pk)
    shown = root.get(url("domain", domain.pk)).content.decode()
    assert "v=spf1 include:mailgun.org ~all" in shown
    assert "Not checked yet." in shown


def test_domain_of_another_organization_is_not_found(root, domain):
    other = factories.organization("other")
    (theirs,) = SenderDomain.objects.filter(organization=other)[:1] or [
        SenderDomain.objects.create(organization=other, domain="theirs.example")
    ]
    assert root.get(url("domain", theirs.pk)).status_code == 404
    assert do(root, theirs, "delete", sure="yes").status_code == 404
    assert theirs.domain not in root.get(url("domains")).content.decode()
