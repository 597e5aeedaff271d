"""What is refused, in which order, and how: bodies whole."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from bot.models import BotSettings
from rme.crm.models import Contact
from rme.tenants.models import ApiKey, Organization
from tests import factories
from tests.bot.conftest import FORM, UNAUTHORIZED, bad, bot_of, failure

pytestmark = pytest.mark.django_db

GET, POST = "/bot/api.php", "/bot/api_create.php"
EMAIL = "a@b.example"


def told(response):
    return response.status_code, response.json()


def refused(response):
    assert (response.status_code, response.content) == (
        401,
        b'{"code":401,"status":"Unauthorized"}',
    )
    assert response["X-Request-Id"]


# --- the key ------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", ["", "x", "rme_a_b", "rme_\x00_b", "ключ", "rme_" + "a" * 9000])
def test_a_key_that_is_none_is_refused(bot, key):
    bot.key = key.encode("utf-8").decode("latin-1")
    refused(bot.get("Confirm_Contact", email=EMAIL))
    refused(bot.post("Create_Contact", lastName="L"))


def test_no_key_is_refused(bot):
    refused(Client().get(f"{GET}?action=Confirm_Contact&org={bot.org.pk}&email={EMAIL}"))


@pytest.mark.parametrize(
    "org", ["", "other", "ACME", "nobody", "acme\0", "acme' OR '1'='1", "acmé"]
)
def test_another_organization_is_refused(bot, org):
    factories.organization("other")
    bot.org = Organization(pk=org)
    refused(bot.get("Confirm_Contact", email=EMAIL))
    refused(bot.post("Create_Contact", lastName="L"))


def test_two_organizations_are_none(bot):
    factories.organization("other")
    refused(bot.get("Confirm_Contact", email=EMAIL, ORG="other"))
    body = f"action=Create_Contact&org={bot.org.pk}&lastName=L"
    refused(bot.client.post(f"{POST}?org=other", body, FORM, headers=bot.headers()))


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
def test_a_key_that_may_not_is_refused(bot, changes):
    ApiKey.objects.update(**changes)
    refused(bot.get("Confirm_Contact", email=EMAIL))


def test_a_disabled_organizations_key_is_refused(bot):
    Organization.objects.update(is_active=False)
    refused(bot.get("Confirm_Contact", email=EMAIL))


def test_a_restricted_key_does_what_it_may(db, redis):
    org = factories.organization()
    bot = bot_of(org, actions=["Confirm_Contact"], networks=["127.0.0.0/8"])
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    refused(bot.get("Confirm_Case", email=EMAIL))
    refused(bot.post("Create_Contact", lastName="L"))
    assert not Contact.objects.exists()


def test_several_keys_serve_at_once(bot):
    other = bot_of(bot.org)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    assert other.confirm("Confirm_Contact", email=EMAIL) == []


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


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", ""])
def test_a_key_by_plain_http_from_elsewhere_is_refused(bot, address):
    bot.client = Client(REMOTE_ADDR=address)
    refused(bot.get("Confirm_Contact", email=EMAIL))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1"])
def test_a_key_from_this_machine_is_accepted(bot, address):
    bot.client = Client(REMOTE_ADDR=address)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []


def test_a_key_behind_a_proxy_that_ends_tls_is_accepted(bot, settings):
    settings.TLS_PROXY = True
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_PROTO="https")
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_PROTO="http")
    refused(bot.get("Confirm_Contact", email=EMAIL))


def test_networks_see_the_address_that_the_proxy_tells(bot, settings):
    settings.TLS_PROXY = True
    ApiKey.objects.update(networks=["192.0.2.0/24"])
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="198.51.100.1, 192.0.2.9")
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    bot.client = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="192.0.2.9, 198.51.100.1")
    refused(bot.get("Confirm_Contact", email=EMAIL))


def test_failed_keys_are_throttled_per_address_and_lock_nobody_out(bot, settings):
    settings.BOT_FAILURES_PER_MINUTE = 2
    right, bot.key = bot.key, "rme_x_y"
    for _ in range(2):
        refused(bot.get("Confirm_Contact", email=EMAIL))
    response = bot.get("Confirm_Contact", email=EMAIL)
    message = "Too many calls; see Retry-After"
    assert told(response) == (429, failure(429, "Too Many Requests", "too_many_calls", message))
    assert 1 <= int(response["Retry-After"]) <= 60
    elsewhere = bot_of(bot.org)
    elsewhere.key, elsewhere.client = "rme_x_y", Client(REMOTE_ADDR="127.0.0.2")
    refused(elsewhere.get("Confirm_Contact", email=EMAIL))
    bot.key = right
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []


def test_an_organization_that_calls_too_often_waits(bot):
    Organization.objects.update(calls_per_second=1)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    response = bot.get("Confirm_Contact", email=EMAIL)
    message = "Too many calls; see Retry-After"
    assert told(response) == (429, failure(429, "Too Many Requests", "too_many_calls", message))
    assert response["Retry-After"] == "1"


# --- method, content type, action ---------------------------------------------------------------
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


def test_a_create_by_another_method_is_refused(bot):
    response = bot.client.get(f"{POST}?org={bot.org.pk}", headers=bot.headers())
    message = "This path takes POST alone"
    assert told(response) == (
        405, failure(405, "Method Not Allowed", "method_not_allowed", message)
    )  # fmt: skip
    assert response["Allow"] == "POST"
    form = bot.client.post(GET, {"org": bot.org.pk}, headers=bot.headers())
    assert (form.status_code, form["Allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/plain", "", "application/x-www-form-urlencoded; charset=latin-1"],
)
def test_a_create_that_is_no_form_is_refused(bot, content_type):
    body = f"action=Create_Contact&org={bot.org.pk}&lastName=L".encode()
    path = f"{POST}?org={bot.org.pk}"
    response = bot.client.generic("POST", path, body, content_type, headers=bot.headers())
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")
    refused(bot.client.generic("POST", POST, body, content_type, headers=bot.headers()))


@pytest.mark.parametrize(
    ("body", "content_type", "status", "error"),
    [
        (b"x", "multipart/form-data", 400, "invalid_parameter"),
        (b"x", "multipart/form-data; boundary=b", 400, "unknown_action"),
        (b"a=1&" * 2000, FORM, 400, "invalid_parameter"),
        (b"a=" + b"x" * (1024 * 1024), FORM, 413, "payload_too_large"),
        (b"x=1", FORM, 400, "unknown_action"),
    ],
    ids=["no-boundary", "no-parts", "many-fields", "large", "nothing"],
)
def test_a_body_that_cannot_be_read_is_refused(bot, body, content_type, status, error):
    path = f"{POST}?org={bot.org.pk}"
    response = bot.client.generic("POST", path, body, content_type, headers=bot.headers())
    assert (response.status_code, response.json()["error"]) == (status, error)
    refused(bot.client.generic("POST", POST, body, content_type, headers=bot.headers()))


def test_a_query_of_a_thousand_parameters_is_none(bot):
    path = f"{GET}?org={bot.org.pk}&" + "a=1&" * 1001
    refused(bot.client.get(path, headers=bot.headers()))


@pytest.mark.parametrize("action", ["", "Confirm_Nothing", "confirm_contact", "Create_Contact"])
def test_an_unknown_action_is_refused_before_its_parameters(bot, action):
    wanted = bad("action", "is not one of this path", "unknown_action")
    assert told(bot.get(action)) == (400, wanted)
    assert told(bot.post(action.replace("Create", "Confirm"))) == (400, wanted)


def test_problems_are_told_in_their_order(bot):
    """Everything is wrong at first, and what was told is set right each time."""
    path, right, bot.key = f"{POST}?org={bot.org.pk}", bot.key, "wrong"
    form = "action={}&email=x"

    def told_of(method, content_type, action):
        body = form.format(action)
        response = bot.client.generic(method, path, body, content_type, headers=bot.headers())
        return response.status_code, response.json().get("error")

    assert told_of("PUT", "application/json", "x") == (401, None)
    bot.key = right
    assert told_of("PUT", "application/json", "x") == (405, "method_not_allowed")
    assert told_of("POST", "application/json", "x") == (415, "unsupported_media_type")
    assert told_of("POST", FORM, "x") == (400, "unknown_action")
    assert told_of("POST", FORM, "Create_Contact") == (400, "missing_parameter")
    form += "&lastName=L"
    assert told_of("POST", FORM, "Create_Contact") == (400, "invalid_email")
    form = form.replace("=x", "=a@b.example")
    assert told_of("POST", FORM, "Create_Contact") == (200, None)


# --- parameters ---------------------------------------------------------------------------------
REQUIRED = [
    ("Confirm_Contact", "email"),
    ("Confirm_Contact_Phone", "phone"),
    ("Confirm_Case", "email"),
    ("Confirm_Registration", "email"),
    ("Confirm_Speaker", "contactID"),
    ("Confirm_Exhibitor", "contactID"),
    ("Confirm_Account", "accountName"),
]


@pytest.mark.parametrize(("action", "name"), REQUIRED)
def test_a_missing_parameter_is_refused(bot, action, name):
    wanted = (400, bad(name, "is missing", "missing_parameter"))
    assert told(bot.get(action)) == wanted
    assert told(bot.get(action, **{name: " \t"})) == wanted
    nul = bot.get(action, **{name: "a\0b"})
    assert told(nul) == (400, bad(name, "must not contain NUL characters"))
    long = bot.get(action, **{name: "x" * 256})
    assert told(long) == (400, bad(name, "is longer than 255 characters"))
    twice = bot.get(action, **{name: "a", name.upper(): "b"})
    assert told(twice) == (400, bad(name, "is given more than once"))


@pytest.mark.parametrize(
    ("action", "fields", "name"),
    [
        ("Create_Account", {}, "accountName"),
        ("Create_Contact", {"firstName": "A"}, "lastName"),
        ("Create_Case", {"Issue": "I"}, "Subject"),
        ("Create_Case", {"Subject": "S"}, "Issue"),
    ],
)
def test_a_missing_field_is_refused(bot, action, fields, name):
    wanted = (400, bad(name, "is missing", "missing_parameter"))
    assert told(bot.post(action, **fields)) == wanted


@pytest.mark.parametrize(
    "email", ["a", "a@", "@b.example", "a b@c.example", "a@b", "a@b.example,c@d.example"]
)
def test_a_bad_email_is_refused(bot, email):
    wanted = (400, bad("email", "is not an email address", "invalid_email"))
    assert told(bot.post("Create_Contact", lastName="L", email=email)) == wanted
    if " " not in email:
        assert told(bot.get("Confirm_Contact", email=email)) == wanted


@pytest.mark.parametrize("phone", ["x", "1", "+", "+999999999999999999", "12" * 40])
def test_a_bad_phone_is_refused(bot, phone):
    wanted = (400, bad("phone", "is not a phone number", "invalid_phone"))
    assert told(bot.get("Confirm_Contact_Phone", phone=phone)) == wanted


def test_an_issue_may_be_long_and_not_longer(bot):
    assert bot.create("Create_Case", Subject="S", Issue="x" * 32_000)[1]
    response = bot.post("Create_Case", Subject="S", Issue="x" * 32_001)
    assert told(response) == (400, bad("Issue", "is longer than 32,000 characters"))


def test_names_are_read_in_any_case_and_unknown_ones_passed_over(bot):
    path = f"{GET}?ACTION=Confirm_Contact&Org={bot.org.pk}&EMAIL={EMAIL}&session=1&x=%00"
    response = bot.client.get(path, headers=bot.headers())
    assert (response.status_code, response.json()["msg"]) == (200, [])


def test_bytes_that_are_not_utf8_are_an_answer(bot):
    path = f"{GET}?action=Confirm_Account&org={bot.org.pk}&accountName=%ff%fe%ED%A0%80"
    response = bot.client.get(path, headers=bot.headers())
    assert (response.status_code, response.json()["msg"]) == (200, [])


# --- how ----------------------------------------------------------------------------------------
def test_always_200_changes_the_status_line_alone(bot):
    BotSettings.objects.create(organization=bot.org, always_200=True)
    wanted = bad("email", "is missing", "missing_parameter")
    assert told(bot.get("Confirm_Contact")) == (200, wanted)
    ApiKey.objects.update(actions=["Confirm_Case"])
    assert told(bot.get("Confirm_Contact")) == (200, UNAUTHORIZED)
    bot.key += "x"
    assert told(bot.get("Confirm_Contact")) == (401, UNAUTHORIZED)


def test_always_200_holds_for_a_call_too_many(bot):
    BotSettings.objects.create(organization=bot.org, always_200=True)
    Organization.objects.update(calls_per_second=1)
    assert bot.confirm("Confirm_Contact", email=EMAIL) == []
    response = bot.get("Confirm_Contact", email=EMAIL)
    message = "Too many calls; see Retry-After"
    assert told(response) == (200, failure(429, "Too Many Requests", "too_many_calls", message))
    assert response["Retry-After"] == "1"


def test_answers_are_json_that_nobody_keeps(bot):
    for response in (bot.get("Confirm_Contact", email=EMAIL), bot.get("x"), Client().get(GET)):
        assert response["Content-Type"] == "application/json"
        assert response["Cache-Control"] == "no-store"


def test_a_request_id_is_made_where_none_is_given(bot):
    response = bot.client.get(f"{GET}?org={bot.org.pk}&action=x", headers={"X-API-Key": bot.key})
    assert response.json()["requestId"] == response["X-Request-Id"]
