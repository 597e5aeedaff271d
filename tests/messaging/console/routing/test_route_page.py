"""What would happen to a message: gates, order, matches, circuits and shares, in words."""

import pytest

from messaging.delivery.accounts import circuits
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from rme.core.outcomes import Misconfigured
from rme.tenants.models import Organization
from tests import factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(org):
    """Return SMS accounts by name: two that share +41, and others that do not take it now."""

    def made(name, priority, **fields):
        return ProviderAccount.objects.create(
            organization=org,
            name=name,
            kind="simulator",
            channel="SMS",
            priority=priority,
            **fields,
        )

    return {
        "vonage": made("vonage", 1, match=["+41"], weight=3),
        "twilio": made("twilio", 1, match=["+41"]),
        "france": made("france", 1, match=["+33"]),
        "spare": made("spare", 2),
        "later": made("later", 3, state="PAUSED"),
        "old": made("old", 4, state="DRAINING"),
        "new": made("new", 0, state="DRAFT"),
    }


def ask(client, to, **given):
    shown = client.get(url("route"), {"to": to, **given})
    return shown.context["answer"], shown


def test_route_of_an_address_explains_each_account(root, lane, django_assert_num_queries):
    ask(root, "+41791234567")
    with django_assert_num_queries(7):
        answer, shown = ask(root, "+41791234567")
    assert answer.sentence == "Sent by vonage or twilio as transactional SMS."
    assert shown.context["form"]["category"].value() == "TRANSACTIONAL"
    assert [(line.name, line.words) for line in answer.lines] == [
        ("vonage", "Sends 75% of these messages"),
        ("twilio", "Sends 25% of these messages"),
        ("spare", "Tried next, if those before can't send it"),
        ("france", "Not tried: it takes other recipients"),
        ("later", "Not tried: it is paused"),
        ("old", "Not tried: it is draining"),
    ]


def test_account_with_an_open_circuit_is_tried_last(root, lane):
    circuits.report([(lane["vonage"].pk, Misconfigured("key"))])
    answer, _ = ask(root, "+41791234567")
    assert [line.name for line in answer.lines[:3]] == ["twilio", "spare", "vonage"]
    assert answer.lines[2].words.startswith("Tried last")
    circuits.states([lane["vonage"].pk])


def test_route_of_a_person_applies_the_gates(root, org, lane):
    ada = factories.contact(org, mobile="+41791234567")
    answer, _ = ask(root, "Lovelace", channel="SMS", category="MARKETING")
    assert answer.sentence == "Not sent as marketing SMS: no consent."
    assert answer.person_url.endswith(f"/people/{ada.pk}/")
    org.suppression_set.create(channel="SMS", address="+41791234567", reason="STOP")
    answer, _ = ask(root, "+41791234567")
    assert answer.sentence == "Not sent as transactional SMS: on the suppression list."
    answer, _ = ask(root, ada.pk, channel="PUSH")
    assert answer.sentence == (
        "Not sent as transactional push: there is no address or device for it."
    )


def test_message_without_a_matching_account_is_not_sent(root, org):
    answer, _ = ask(root, "+41791234567")
    assert answer.sentence == "Sent by simulator as transactional SMS."
    Organization.objects.filter(pk=org.pk).update(simulator=False)
    organization_policy.forget(org.pk)
    answer, _ = ask(root, "+41791234567")
    assert answer.sentence == ("Not sent: no account takes transactional SMS for this recipient.")
    ProviderAccount.objects.create(
        organization=org, name="a", kind="simulator", channel="SMS", state="PAUSED"
    )
    organization_policy.forget(org.pk)
    answer, _ = ask(root, "+41791234567")
    assert answer.sentence == "Not sent now: transactional SMS waits for a paused account."


def test_ambiguous_name_asks_for_the_person_and_unknown_one_is_reported(root, org):
    for mobile in ("+41791234567", "+41791234568"):
        factories.contact(org, mobile=mobile)
    answer, shown = ask(root, "Lovelace")
    assert (answer, len(shown.context["people"])) == (None, 2)
    _, shown = ask(root, "nobody at all")
    assert "Nobody has this name or id" in shown.content.decode()
    _, shown = ask(root, "", category="nonsense")
    assert set(shown.context["form"].errors) == {"to", "category"}


def test_role_without_addresses_sees_a_masked_one(org, lane):
    developer = person("d", org, "DEVELOPER")
    answer, _ = ask(developer, "+41791234567")
    assert "791234" not in answer.whom
