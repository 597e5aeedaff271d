"""What a person must set right before an organization can send as it wants to."""

import pytest

from messaging.domain.attention import Finding
from messaging.models import ProviderAccount, SenderDomain, Template
from messaging.reports import configuration
from rme.tenants.models import Organization
from tests import factories

SMTP = '{"host": "mail.example"}'


def account(org, name, channel, **fields):
    return ProviderAccount.objects.create(
        organization=org, name=name, channel=channel, kind="smtp", **fields
    )


@pytest.mark.promise("answer-12", "health-8")
def test_every_finding(org):
    Organization.objects.filter(pk=org.pk).update(language="de", simulator=False)
    broken = account(org, "bad", "EMAIL")
    account(org, "texts", "SMS", state="DRAINING", credentials=SMTP)
    pending = SenderDomain.objects.create(organization=org, domain="new.example")
    lonely = Organization.objects.create(id="lonely", name="Lonely", simulator=True)
    ok = factories.organization("fine")
    factories.template(ok)
    factories.template(ok, "SMS", name="only-french", language="fr")
    error, warning = configuration.ERROR, configuration.WARNING
    unreadable = "The settings of bad can't be read. Save them again."
    none = "The {} template {} isn't published in {}, the organization's language."
    stands = "{} isn't delivered: there is no {} provider, so the simulator receives it."

    def simulated(owner):
        return [
            Finding(owner, warning, "SIMULATOR_SERVES", stands.format(label, noun))
            for label, noun in (("Email", "email"), ("SMS", "SMS"), ("Push", "push"))
        ]

    assert configuration.findings(["acme", "lonely", "fine"]) == [
        Finding(
            "acme",
            error,
            "ACCOUNT_BROKEN",
            unreadable,
            broken.pk,
        ),
        Finding("acme", error, "NO_ACTIVE_PROVIDER", "SMS waits: no SMS provider is active."),
        Finding(
            "acme",
            error,
            "NO_PROVIDER",
            "Push can't be sent: there is no push provider.",
        ),
        *simulated("lonely"),
        *simulated("fine"),
        Finding(
            lonely.pk,
            error,
            "NO_SENDER_DOMAIN",
            "Email can't be sent: no sender domain is verified.",
        ),
        Finding(
            "acme",
            warning,
            "SENDER_DOMAIN_UNVERIFIED",
            "The sender domain new.example isn't verified, so nothing can be sent from it.",
            pending.pk,
        ),
        *(
            Finding(
                "acme", warning, "TEMPLATE_WITHOUT_LANGUAGE", none.format(noun, "welcome", "de")
            )
            for noun in ("email", "push", "SMS")
        ),
        Finding(
            "fine", warning, "TEMPLATE_WITHOUT_LANGUAGE", none.format("SMS", "only-french", "en_US")
        ),
    ]


@pytest.mark.promise("health-8")
@pytest.mark.parametrize(
    ("fallback", "language", "found"),
    [(False, "en", 1), (True, "en", 0), (True, "fr", 1), (False, "en_US", 0)],
)
def test_a_shorter_language_counts_with_locale_fallback(db, fallback, language, found):
    org = factories.organization(locale_fallback=fallback)
    factories.template(org, language=language)
    Template.objects.create(
        organization=org, name="draft", language="fr", channel="SMS", category="X"
    )
    codes = [each.code for each in configuration.findings([org.pk])]
    assert codes.count("TEMPLATE_WITHOUT_LANGUAGE") == found
