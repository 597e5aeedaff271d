"""Every error that leaves a message behind, or that a template gives, its body compared whole."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.consent import ledger
from messaging.models import Category, Delivery, Message, ProviderAccount, Suppression
from rme.core.cache import TtlCache
from rme.tenants.models import Organization
from tests import factories
from tests.messaging.contract.test_errors import check
from tests.rest import Api, error, events, message

pytestmark = pytest.mark.django_db


@pytest.mark.promise("errors-1", "errors-7", "gates-2", "gates-7")
def test_no_consent_leaves_a_message(api, org):
    person = factories.contact(org)
    factories.template(org, name="offer", category="MARKETING")
    response = api.send(message(person, category="Marketing", template={"name": "offer"}))
    stored = Message.objects.get()
    check(
        response,
        403,
        error("NO_CONSENT", "The recipient has not consented.", message_id=str(stored.pk)),
    )
    assert events(str(stored.pk)) == ["blocked"]
    assert api.get(str(stored.pk))["status"] == "BLOCKED"


@pytest.mark.promise("errors-8", "answer-3", "gates-4")
def test_suppressed_leaves_a_message(api, org):
    person = factories.contact(org)
    Suppression.objects.create(
        organization=org, channel="ALL", contact_id=str(person.pk), reason="MANUAL"
    )
    response = api.send(message(person))
    stored = Message.objects.get()
    check(
        response,
        403,
        error("SUPPRESSED", "The recipient is on a suppression list.", message_id=str(stored.pk)),
    )


@pytest.mark.promise("gates-5")
def test_expired_suppression_does_not_count(api, org):
    person = factories.contact(org)
    Suppression.objects.create(
        organization=org,
        channel="EMAIL",
        address=person.email,
        reason="MANUAL",
        expires_at=datetime.now(UTC) - timedelta(seconds=1),
    )
    assert api.send(message(person)).status_code == 202


@pytest.mark.promise("errors-9", "gates-8")
def test_frequency_capped(api, org):
    person = factories.contact(org)
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", cap_count=2)
    factories.template(org, name="news", category="NEWS")
    body = message(person, category="NEWS", template={"name": "news"})
    assert [api.send(body).status_code for _ in range(3)] == [202, 202, 403]
    newest = Delivery.objects.order_by("-id").first()
    assert (newest.status, newest.reason) == ("BLOCKED", "FREQUENCY_CAPPED")
    bulk = api.bulk(
        [message(factories.contact(org), **{k: body[k] for k in ("category", "template")})]
    )
    assert bulk.json()["accepted"] == 1


@pytest.mark.promise("gates-8")
def test_cap_counts_within_one_bulk(api, org):
    person = factories.contact(org)
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", cap_count=2)
    factories.template(org, name="news", category="NEWS")
    body = message(person, category="NEWS", template={"name": "news"})
    results = api.bulk([body] * 4).json()["results"]
    assert ["error" in item for item in results] == [False, False, True, True]


@pytest.mark.promise("errors-10")
def test_template_not_found(api, org):
    person = factories.contact(org)
    check(
        api.send(message(person, template={"name": "welcome", "language": "de_CH"})),
        404,
        error("TEMPLATE_NOT_FOUND", "There is no active template welcome in de_CH for email."),
    )


@pytest.mark.promise("templates-8")
def test_locale_chain_only_where_it_is_allowed(org):
    person = factories.contact(org, language="en_GB")
    factories.template(org, name="short", language="en")
    body = message(person, template={"name": "short"})
    assert Api(org).send(body).status_code == 404
    org.locale_fallback = True
    org.save()
    assert Api(org, mode="TEST").send(body).status_code == 202


@pytest.mark.promise("errors-21")
def test_unreachable_leaves_a_message(api, org):
    person = factories.contact(org, email="", mobile="")
    response = api.send(message(person))
    check(
        response,
        422,
        error(
            "UNREACHABLE",
            "No channel asked for has an address or device for this recipient.",
            message_id=str(Message.objects.get().pk),
        ),
    )


@pytest.mark.promise("errors-24")
@pytest.mark.parametrize("has_another", [False, True], ids=["no account", "another channel's"])
def test_provider_error_where_no_provider_is_configured(api, org, has_another):
    Organization.objects.update(simulator=False)
    TtlCache.clear_all()
    if has_another:
        ProviderAccount.objects.create(organization=org, name="mail", kind="smtp", channel="EMAIL")
    response = api.send(message(factories.contact(org), channel="SMS"))
    check(
        response,
        502,
        error(
            "PROVIDER_ERROR",
            "No provider account for SMS.",
            message_id=str(Message.objects.get().pk),
        ),
    )


@pytest.mark.promise("gates-7")
def test_opt_in_lets_marketing_pass(api, org):
    person = factories.contact(org)
    factories.template(org, name="offer", category="MARKETING")
    ledger.record(
        org.pk,
        [
            ledger.ConsentDecision(
                str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", datetime.now(UTC)
            )
        ],
    )
    body = message(person, category="MARKETING", template={"name": "offer"})
    assert api.send(body).status_code == 202
