"""Checks of sender domains against a real DNS server on loopback: findings in words, and sets."""

from datetime import timedelta

import pytest

from messaging.models import SenderDomain
from messaging.policy import domain_checks
from rme.core.db import clock
from tests import factories
from tests.fakes.dns import DnsServer

pytestmark = pytest.mark.django_db
KEY = "v=DKIM1; k=rsa; p=MIGfMA0"
RIGHT = {
    "acme.example": ["google-site=1", "v=spf1 include:spf.mail.example ~all"],
    "s1._domainkey.acme.example": "s1.key.mail.example",
    "s1.key.mail.example": [f"{KEY}|GCSqGSIb3"],  # by a CNAME, and in two strings
    "_dmarc.acme.example": ["v=DMARC1; p=reject; rua=mailto:a@acme.example"],
}


def domain(org, name="acme.example", **fields):
    given = {"spf": "include:spf.mail.example", "dkim_selector": "s1", **fields}
    return SenderDomain.objects.create(organization=org, domain=name, **given)


def checked(settings, row, zone, silent=()):
    """Check a domain, and return the states and texts that are stored."""
    with DnsServer(zone, silent) as server:
        settings.DNS_RESOLVER = server.address
        domain_checks.check([row])
    row.refresh_from_db()
    return {each["record"]: (each["state"], each["text"]) for each in row.findings}


@pytest.fixture
def org(db):
    row = factories.organization()
    SenderDomain.objects.all().delete()
    return row


def test_correct_records_are_reported(org, settings):
    row = domain(org)
    assert checked(settings, row, RIGHT) == {
        "SPF": ("RIGHT", "The SPF record has include:spf.mail.example."),
        "DKIM": ("RIGHT", "There is a DKIM key at the selector s1."),
        "DMARC": ("RIGHT", "The DMARC record has the policy reject."),
    }
    assert row.checked_at is not None


@pytest.mark.parametrize(
    ("record", "zone", "expected"),
    [
        ("SPF", {"acme.example": ["v=spf1 mx -all"]},
         ("WRONG", "The SPF record lacks include:spf.mail.example.")),
        ("SPF", {"acme.example": ["v=spf10 x"]}, ("MISSING", "There is no SPF record.")),
        ("SPF", {"acme.example": ["v=spf1 -all", "v=spf1 mx"]},
         ("WRONG", "There are 2 SPF records; there may be only one.")),
        ("SPF", {"acme.example": ["v=spf1 include:spf.mail.example +all"]},
         ("WRONG", "The SPF record lets anybody send: it has +all.")),
        ("DKIM", {}, ("MISSING", "There is no DKIM key at the selector s1.")),
        ("DKIM", {"s1._domainkey.acme.example": ["v=DKIM1; p="]},
         ("WRONG", "The DKIM key of the selector s1 was revoked.")),
        ("DKIM", {"s1._domainkey.acme.example": [KEY, f"{KEY}x"]},
         ("WRONG", "There are 2 DKIM keys at the selector s1.")),
        ("DMARC", {"_dmarc.acme.example": []}, ("MISSING", "There is no DMARC record.")),
        ("DMARC", {"_dmarc.acme.example": ["v=DMARC1; rua=mailto:x@y.example"]},
         ("WRONG", "The DMARC record has no policy (p=).")),
    ],
)  # fmt: skip
def test_incorrect_records_are_reported(org, settings, record, zone, expected):
    assert checked(settings, domain(org), zone)[record] == expected


def test_unset_records_are_asked_for(org, settings):
    found = checked(settings, domain(org, spf="", dkim_selector=""), RIGHT)
    assert found["SPF"][0] == found["DKIM"][0] == "UNSET"
    sub = domain(org, "news.mail.acme.example")
    assert checked(settings, sub, RIGHT)["DMARC"][0] == "RIGHT"  # at a domain above


def test_silent_resolver_is_reported_as_no_answer(org, settings, monkeypatch):
    monkeypatch.setattr(domain_checks, "LOOKUP_SECONDS", 0.3)
    found = checked(settings, domain(org), RIGHT, silent=["acme.example"])
    assert found["SPF"] == ("NO_ANSWER", "No resolver answered. rme asks again in a day.")
    assert found["DKIM"][0] == "RIGHT"
    SenderDomain.objects.update(domain=f"{'x' * 70}.example")  # a label that no DNS has
    found = checked(settings, SenderDomain.objects.get(), {})
    assert {state for state, _ in found.values()} == {"NO_ANSWER"}


def test_domains_are_checked_daily_in_sets(org, settings, django_assert_num_queries):
    for number in range(domain_checks.BATCH + 3):
        domain(org, f"d{number}.example")
    fresh = domain(org, "fresh.example", checked_at=clock.now() - timedelta(hours=23))
    with DnsServer({}) as server:
        settings.DNS_RESOLVER = server.address
        clock.now()
        with django_assert_num_queries(4):  # the lock, the batch, what was found, the lock's end
            assert domain_checks.check_due() == domain_checks.BATCH
        assert [domain_checks.check_due() for _ in range(2)] == [3, 0]
        assert "fresh.example" not in server.asked
        SenderDomain.objects.filter(pk=fresh.pk).update(checked_at=clock.now() - timedelta(days=2))
        assert domain_checks.check_due() == 1
