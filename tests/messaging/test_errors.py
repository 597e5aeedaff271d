"""Every error that a call can give, its body compared whole."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from messaging import consent
from messaging.models import Category, Delivery, Message, ProviderAccount, Suppression
from tests import factories
from tests.rest import REQUEST_ID, Api, error, events, message

pytestmark = pytest.mark.django_db


def check(response, status, expected):
    assert (response.status_code, response.json()) == (status, expected)
    assert response["X-Request-Id"] == REQUEST_ID
    assert response["Content-Type"] == "application/json"


def test_invalid_payload_names_each_field(api):
    check(
        api.send({"channel": "FAX", "to": [{"contactId": 5, "x": 1}], "template": {"name": "a"}}),
        400,
        error(
            "INVALID_PAYLOAD",
            "channel: Input should be 'EMAIL', 'SMS', 'PUSH' or 'AUTO'",
            ("channel", "Input should be 'EMAIL', 'SMS', 'PUSH' or 'AUTO'"),
            ("category", "is required"),
            ("to[0].contactId", "must be a string"),
            ("to[0].x", "unknown field"),
        ),
    )


def test_malformed_json_says_where(api):
    response = api.send(b'{"channel": ')
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "INVALID_PAYLOAD"
    assert "line 1 column" in response.json()["error"]["message"]


def test_nul_is_refused_with_its_place(api):
    check(
        api.send(b'{"context": {"variables": {"a": ["x", "\\u0000"]}}}'),
        400,
        error(
            "INVALID_PAYLOAD",
            "context.variables.a[1]: must not contain NUL characters",
            ("context.variables.a[1]", "must not contain NUL characters"),
        ),
    )


def test_lone_surrogate_is_refused(api):
    assert api.send(b'{"channel": "\\ud800"}').json()["error"]["code"] == "INVALID_PAYLOAD"


def test_unknown_query_parameter_is_refused(api):
    check(
        api.call("GET", "/messages?contactid=5"),
        400,
        error(
            "INVALID_PAYLOAD",
            "Unknown query parameter: contactid",
            ("contactid", "unknown query parameter"),
        ),
    )


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        ("", 'Bearer realm="rme"'),
        ("Basic eDp5", 'Bearer realm="rme"'),
        (
            "Bearer nobody",
            'Bearer realm="rme", error="invalid_token", '
            'error_description="The token is unknown or was revoked."',
        ),
    ],
)
def test_unauthorized_says_why(api, header, challenge):
    response = api.call("GET", "/messages", Authorization=header)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "UNAUTHORIZED"
    assert response["WWW-Authenticate"] == challenge


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


def test_cap_counts_within_one_bulk(api, org):
    person = factories.contact(org)
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", cap_count=2)
    factories.template(org, name="news", category="NEWS")
    body = message(person, category="NEWS", template={"name": "news"})
    results = api.bulk([body] * 4).json()["results"]
    assert ["error" in item for item in results] == [False, False, True, True]


def test_template_not_found(api, org):
    person = factories.contact(org)
    check(
        api.send(message(person, template={"name": "welcome", "language": "de_CH"})),
        404,
        error("TEMPLATE_NOT_FOUND", "There is no active template welcome in de_CH for EMAIL."),
    )


def test_locale_chain_only_where_it_is_allowed(org):
    person = factories.contact(org, language="en_GB")
    factories.template(org, name="short", language="en")
    body = message(person, template={"name": "short"})
    assert Api(org).send(body).status_code == 404
    org.locale_fallback = True
    org.save()
    assert Api(org, mode="TEST").send(body).status_code == 202


def test_not_found_contact_names_the_field(api):
    body = message()
    body["to"] = [{"contactId": "nobody"}]
    check(
        api.send(body),
        404,
        error(
            "NOT_FOUND", "to[0].contactId: no such contact", ("to[0].contactId", "no such contact")
        ),
    )
    assert Message.objects.count() == 0


@pytest.mark.parametrize("identifier", ["nope", "01A1FB37-A4A4-7470-9FC2-6927566E64B5", "%00"])
def test_not_found_message(api, identifier):
    for method in ("GET", "DELETE"):
        check(
            api.call(method, f"/messages/{identifier}"),
            404,
            error("NOT_FOUND", "There is no such message."),
        )


def test_not_found_path(api):
    check(api.call("GET", "/nope"), 404, error("NOT_FOUND", "There is no such path."))


def test_method_not_allowed_says_what_is(api):
    response = api.call("PUT", "/messages")
    check(response, 405, error("METHOD_NOT_ALLOWED", "This path does not take that method."))
    assert response["Allow"] == "GET, POST, HEAD"


def test_not_cancellable(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    check(
        api.call("DELETE", f"/messages/{message_id}"),
        409,
        error("NOT_CANCELLABLE", "The message is no longer scheduled.", message_id=message_id),
    )


def test_payload_too_large(api):
    response = api.send(b'{"x": "' + b"a" * (5 * 1024 * 1024) + b'"}')
    check(response, 413, error("PAYLOAD_TOO_LARGE", "The body is larger than 5 MiB."))


def test_unsupported_media_type(api):
    response = api.call("POST", "/messages", b"a=b", **{"Content-Type": "text/plain"})
    check(
        response,
        415,
        error("UNSUPPORTED_MEDIA_TYPE", "The body must be application/json."),
    )


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


def test_provider_error_where_no_provider_is_configured(api, org):
    ProviderAccount.objects.create(organization=org, name="mail", kind="smtp", channel="EMAIL")
    response = api.send(message(factories.contact(org), channel="SMS"))
    check(
        response,
        502,
        error(
            "PROVIDER_ERROR",
            "No provider is configured for SMS.",
            message_id=str(Message.objects.get().pk),
        ),
    )


@pytest.mark.django_db(transaction=True)
def test_unavailable_when_the_database_is_away(api, org, settings):
    person = factories.contact(org)
    with connection.execute_wrapper(_away):
        response = api.send(message(person))
    check(
        response,
        503,
        error("UNAVAILABLE", "The service cannot take requests right now."),
    )
    assert response["Retry-After"] == "5"


def _away(execute, sql, params, many, context):
    """Stand in for a server that went away: what Django raises then."""
    from django.db import OperationalError

    raise OperationalError("server closed the connection unexpectedly")


@pytest.mark.django_db(transaction=True)
def test_internal_error_says_nothing_of_the_inside(api, org):
    def broken(*_):
        raise RuntimeError("a secret of the inside")

    person = factories.contact(org)
    with connection.execute_wrapper(broken):
        response = api.send(message(person))
    check(response, 500, error("INTERNAL_ERROR", "Something went wrong on our side."))


def test_opt_in_lets_marketing_pass(api, org):
    person = factories.contact(org)
    factories.template(org, name="offer", category="MARKETING")
    consent.record(
        org.pk,
        [
            consent.Decision(
                str(person.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", datetime.now(UTC)
            )
        ],
    )
    body = message(person, category="MARKETING", template={"name": "offer"})
    assert api.send(body).status_code == 202


def test_stranger_sees_what_does_not_exist(api, org):
    person = factories.contact(org)
    message_id = api.send(message(person)).json()["messageId"]
    stranger = Api(factories.organization("other"))
    for method in ("GET", "DELETE"):
        check(
            stranger.call(method, f"/messages/{message_id}"),
            404,
            error("NOT_FOUND", "There is no such message."),
        )
    assert stranger.call("GET", "/messages").json() == {"messages": [], "nextCursor": None}
    body = message(person, template=None, content={"subject": "a", "text": "b"})
    assert stranger.send(body).json()["error"]["code"] == "NOT_FOUND"
