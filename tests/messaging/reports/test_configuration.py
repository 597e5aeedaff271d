"""What a person must set right before an organization can send as it wants to."""

import pytest

from messaging.models import ProviderAccount, SenderDomain, Template
from messaging.reports import configuration
from messaging.reports.configuration import Finding
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
    none = "the template {} has no active version for {} in {}, the organization's language."
    stands = "no provider account for {}: the simulator takes what is sent."

    def simulated(owner):
        return [
            Finding(owner, warning, "SIMULATOR_SERVES", stands.format(channel))
            for channel in ("EMAIL", "SMS", "PUSH")
        ]

    assert configuration.findings(["acme", "lonely", "fine"]) == [
        Finding("acme", error, "ACCOUNT_BROKEN", "the settings of bad are broken.", broken.pk),
        Finding("acme", error, "NO_ACTIVE_PROVIDER", "no provider account for SMS is active."),
        Finding(
            "acme",
            error,
            "NO_PROVIDER",
            "no provider account for PUSH: what is sent there is refused.",
        ),
        *simulated("lonely"),
        *simulated("fine"),
        Finding(
            lonely.pk, error, "NO_SENDER_DOMAIN", "no verified sender domain: email cannot be sent."
        ),
        Finding(
            "acme",
            warning,
            "SENDER_DOMAIN_UNVERIFIED",
            "the sender domain new.example is not verified: nothing can be sent from it.",
            pending.pk,
        ),
        *(
            Finding(
                "acme", warning, "TEMPLATE_WITHOUT_LANGUAGE", none.format("welcome", channel, "de")
            )
            for channel in ("EMAIL", "PUSH", "SMS")
        ),
        Finding(
            "fine", warning, "TEMPLATE_WITHOUT_LANGUAGE", none.format("only-french", "SMS", "en_US")
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
