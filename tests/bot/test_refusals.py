"""Which keys and callers are refused, in which order, and the whole body of each answer."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from bot.models import BotSettings
from rme.crm.models import Contact
from rme.tenants.models import ApiKey, Organization
from tests import factories
from tests.bot.conftest import FORM, UNAUTHORIZED, bad, bot_of, failure
from tests.bot.refusals_scene import EMAIL, GET, POST, refused, status_and_body

pytestmark = pytest.mark.django_db


# --- the key ------------------------------------------------------------------------------------
@pytest.mark.promise("bot-failures-5")
@pytest.mark.parametrize("key", ["", "x", "rme_a_b", "rme_\x00_b", "ключ", "rme_" + "a" * 9000])
def test_malformed_key_is_rejected(bot, key):
    bot.key = key.encode("utf-8").decode("latin-1")
    refused(bot.get("Confirm_Contact", email=EMAIL))
    refused(bot.post("Create_Contact", lastName="L"))


@pytest.mark.promise("bot-calls-3", "bot-failures-5")
def test_no_key_is_refused(bot):
    refused(Client().get(f"{GET}?action=Confirm_Contact&org={bot.org.pk}&email={EMAIL}"))


@pytest.mark.promise("bot-calls-3", "bot-failures-5")
@pytest.mark.parametrize(
    "org", ["", "other", "ACME", "nobody", "acme\0", "acme' OR '1'='1", "acmé"]
)
def test_another_organization_is_refused(bot, org):
    factories.organization("other")
    bot.org = Organization(pk=org)
    refused(bot.get("Confirm_Contact", email=EMAIL))
    refused(bot.post("Create_Contact", lastName="L"))


@pytest.mark.promise("bot-calls-3")
def test_request_naming_two_organizations_is_rejected(bot):
    factories.organization("other")
    refused(bot.get("Confirm_Contact", email=EMAIL, ORG="other"))
    body = f"action=Create_Contact&org={bot.org.pk}&lastName=L"
    refused(bot.client.post(f"{POST}?org=other", body, FORM, headers=bot.headers()))


@pytest.mark.promise("bot-failures-5")
@pytest.mark.parametrize(
    "changes",
    [
        {"expires_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"revoked_at": datetime(2026, 1, 1, tzinfo=UTC)},
        {"digest": "0" * 64},
        {"networks": ["192.0.2.0/24"]},
        {"networks": ["nonsense"]},
        {"actions": ["Create_Case"]},
    ],
    ids=["expired", "revoked", "wrong", "elsewhere", "no-network", "other-action"],
)
def test_key_without_access_is_rejected(bot, changes):
    ApiKey.objects.update(**changes)
    refused(bot.get("Confirm_Contact", email=EMAIL))


@pytest.mark.promise("bot-failures-5")
def test_a_disabled_organizations_key_is_refused(bot):
    Organization.objects.update(is_active=False)
    refused(bot.get("Confirm_Contact", email=EMAIL))


@pytest.mark.promise("keys-4")
def test_restricted_key_may_call_only_its_actions(db, redis):
    org = factories.organization()
    bot = bot_of(org, actions=["Confirm_Contact"], networks=["127.0.0.0/8"])
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    refused(bot.get("Confirm_Case", email=EMAIL))
    refused(bot.post("Create_Contact", lastName="L"))
    assert not Contact.objects.exists()


@pytest.mark.promise("keys-2")
def test_several_keys_serve_at_once(bot):
    other = bot_of(bot.org)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    assert other.confirm("Confirm_Contact", email=EMAIL) == []


@pytest.mark.promise("keys-6")
def test_the_last_use_is_kept_to_the_minute(bot):
    assert ApiKey.objects.get().last_used_at is None
    wrong, bot.key = bot.key, bot.key + "x"
    refused(bot.get("Confirm_Contact", email=EMAIL))
    assert ApiKey.objects.get().last_used_at is None
    bot.key = wrong
    bot.confirm("Confirm_Contact", email=EMAIL)
    first = ApiKey.objects.get().last_used_at
    bot.confirm("Confirm_Contact", email=EMAIL)
    assert (first is not None, ApiKey.objects.get().last_used_at) == (True, first)
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    bot.confirm("Confirm_Contact", email=EMAIL)
    assert ApiKey.objects.get().last_used_at >= first


@pytest.mark.promise("keys-9")
@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", ""])
def test_a_key_by_plain_http_from_elsewhere_is_refused(bot, address):
    bot.client = Client(REMOTE_ADDR=address)
    refused(bot.get("Confirm_Contact", email=EMAIL))


@pytest.mark.promise("keys-9")
@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1"])
def test_a_key_from_this_machine_is_accepted(bot, address):
    bot.client = Client(REMOTE_ADDR=address)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []


@pytest.mark.promise("keys-9")
def test_key_behind_a_tls_proxy_is_accepted(bot, settings):
    settings.TLS_PROXY = True
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_PROTO="https")
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_PROTO="http")
    refused(bot.get("Confirm_Contact", email=EMAIL))


@pytest.mark.promise("keys-5")
def test_networks_are_checked_against_the_forwarded_address(bot, settings):
    settings.TLS_PROXY = True
    ApiKey.objects.update(networks=["192.0.2.0/24"])
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="198.51.100.1, 192.0.2.9")
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="192.0.2.9, 198.51.100.1")
    refused(bot.get("Confirm_Contact", email=EMAIL))


@pytest.mark.promise("keys-10")
def test_failed_keys_are_throttled_per_address_without_locking_others_out(bot, settings):
    settings.BOT_FAILURES_PER_MINUTE = 2
    right, bot.key = bot.key, "rme_x_y"
    for _ in range(2):
        refused(bot.get("Confirm_Contact", email=EMAIL))
    response = bot.get("Confirm_Contact", email=EMAIL)
    message = "Too many calls; see Retry-After"
    assert status_and_body(response) == (
        429,
        failure(429, "Too Many Requests", "too_many_calls", message),
    )
    assert 1 <= int(response["Retry-After"]) <= 60
    elsewhere = bot_of(bot.org)
    elsewhere.key, elsewhere.client = "rme_x_y", Client(REMOTE_ADDR="127.0.0.2")
    refused(elsewhere.get("Confirm_Contact", email=EMAIL))
    bot.key = right
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []


@pytest.mark.promise("bot-failures-17")
def test_organization_calling_too_often_is_rate_limited(bot, redis_clock):
    Organization.objects.update(calls_per_second=1)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    response = bot.get("Confirm_Contact", email=EMAIL)
    message = "Too many calls; see Retry-After"
    assert status_and_body(response) == (
        429,
        failure(429, "Too Many Requests", "too_many_calls", message),
    )
    assert response["Retry-After"] == "1"


# --- method, content type, action ---------------------------------------------------------------
@pytest.mark.promise("bot-failures-3", "bot-failures-6")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "BREW"])
def test_another_method_is_refused_after_the_key(bot, method):
    path = f"{GET}?action=nonsense&org={bot.org.pk}"
    response = bot.client.generic(method, path, headers=bot.headers())
    assert (response.status_code, response["Allow"]) == (405, "GET")
    if method != "HEAD":
        message = "This path takes GET alone"
        wanted = failure(405, "Method Not Allowed", "method_not_allowed", message)
        assert response.json() == wanted
    assert bot.client.generic(method, path).status_code == 401


@pytest.mark.promise("bot-failures-6")
def test_a_create_by_another_method_is_refused(bot):
    response = bot.client.get(f"{POST}?org={bot.org.pk}", headers=bot.headers())
    message = "This path takes POST alone"
    assert status_and_body(response) == (
        405, failure(405, "Method Not Allowed", "method_not_allowed", message)
    )  # fmt: skip
    assert response["Allow"] == "POST"
    form = bot.client.post(GET, {"org": bot.org.pk}, headers=bot.headers())
    assert (form.status_code, form["Allow"]) == (405, "GET")


# --- how ----------------------------------------------------------------------------------------
@pytest.mark.promise("bot-failures-2")
def test_always_200_changes_only_the_status_line(bot):
    BotSettings.objects.create(organization=bot.org, always_200=True)
    wanted = bad("email", "is missing", "missing_parameter")
    assert status_and_body(bot.get("Confirm_Contact")) == (200, wanted)
    ApiKey.objects.update(actions=["Confirm_Case"])
    assert status_and_body(bot.get("Confirm_Contact")) == (200, UNAUTHORIZED)
    bot.key += "x"
    assert status_and_body(bot.get("Confirm_Contact")) == (401, UNAUTHORIZED)


@pytest.mark.promise("bot-failures-2")
def test_always_200_holds_for_a_call_too_many(bot, redis_clock):
    BotSettings.objects.create(organization=bot.org, always_200=True)
    Organization.objects.update(calls_per_second=1)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    response = bot.get("Confirm_Contact", email=EMAIL)
    message = "Too many calls; see Retry-After"
    assert status_and_body(response) == (
        200,
        failure(429, "Too Many Requests", "too_many_calls", message),
    )
    assert response["Retry-After"] == "1"


@pytest.mark.promise("bot-calls-9")
def test_answers_are_json_and_not_cached(bot):
    for response in (bot.get("Confirm_Contact", email=EMAIL), bot.get("x"), Client().get(GET)):
        assert response["Content-Type"] == "application/json"
        assert response["Cache-Control"] == "no-store"


def test_missing_request_id_is_generated(bot):
    response = bot.client.get(f"{GET}?org={bot.org.pk}&action=x", headers={"X-API-Key": bot.key})
    assert response.json()["requestId"] == response["X-Request-Id"]
