"""Every error of a request, its body compared whole."""

import re

import pytest
from django.db import connection
from django.test import Client

from messaging.models import Message
from tests import factories
from tests.rest import REQUEST_ID, Api, error, message

pytestmark = pytest.mark.django_db


def check(response, status, expected):
    assert (response.status_code, response.json()) == (status, expected)
    assert response["X-Request-Id"] == REQUEST_ID
    assert response["Content-Type"] == "application/json"


@pytest.mark.promise("calls-11", "errors-1", "errors-3")
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


@pytest.mark.promise("errors-3")
def test_malformed_json_says_where(api):
    response = api.send(b'{"channel": ')
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "INVALID_PAYLOAD"
    assert "line 1 column" in response.json()["error"]["message"]


@pytest.mark.promise("calls-17")
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


@pytest.mark.promise("calls-17")
def test_lone_surrogate_is_refused(api):
    assert api.send(b'{"channel": "\\ud800"}').json()["error"]["code"] == "INVALID_PAYLOAD"


@pytest.mark.promise("calls-12")
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


@pytest.mark.promise("errors-11", "errors-27", "request-23")
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


@pytest.mark.promise("errors-11")
@pytest.mark.parametrize("identifier", ["nope", "01A1FB37-A4A4-7470-9FC2-6927566E64B5", "%00"])
def test_not_found_message(api, identifier):
    for method in ("GET", "DELETE"):
        check(
            api.call(method, f"/messages/{identifier}"),
            404,
            error("NOT_FOUND", "This message doesn't exist."),
        )


@pytest.mark.promise("errors-11")
def test_not_found_path(api):
    check(api.call("GET", "/nope"), 404, error("NOT_FOUND", "This path doesn't exist."))


@pytest.mark.promise("errors-12")
def test_method_not_allowed_names_the_allowed_methods(api):
    response = api.call("PUT", "/messages")
    check(response, 405, error("METHOD_NOT_ALLOWED", "This path does not take that method."))
    assert response["Allow"] == "GET, POST, HEAD"


ROUTES = {
    "/messages": "GET, POST, HEAD",
    "/messages/bulk": "POST",
    "/messages/x": "GET, DELETE, HEAD",
    "/openapi.json": "GET, HEAD",
    "/docs": "GET, HEAD",
    "/consent": "GET, POST, HEAD",
    "/devices": "GET, POST, HEAD",
    "/devices/vapid-key": "GET, HEAD",
    "/devices/x": "DELETE",
    "/devices/x/replace": "POST",
    "/health": "GET, HEAD",
    "/templates": "GET, HEAD",
    "/templates/x/render": "POST",
    "/suppressions": "GET, POST, DELETE, HEAD",
    "/suppressions/x": "GET, DELETE, HEAD",
    "/webhook-endpoints": "GET, POST, HEAD",
    "/webhook-endpoints/x": "GET, PATCH, DELETE, HEAD",
    "/webhook-endpoints/x/rotate-secret": "POST",
    "/webhook-endpoints/x/test": "POST",
    "/webhook-endpoints/x/replay": "POST",
}
"""Every path below /rme/v1, and its methods."""
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]


def test_every_path_is_swept():
    from messaging.api.urls import urlpatterns

    routes = [re.sub("<[^>]*>", "x", str(each.pattern)) for each in urlpatterns]
    assert [f"/{route}" for route in routes] == list(ROUTES)


@pytest.mark.promise("errors-12")
@pytest.mark.parametrize("wrong", ["", "?nope=1", "?limit=x&limit=y", "?dryRun=maybe", "?q=%00"])
@pytest.mark.parametrize("path", ROUTES)
def test_method_not_allowed_precedes_all_other_errors(api, path, wrong):
    for method in METHODS:
        if method in ROUTES[path].split(", "):
            continue
        for body in (None, b"{", {"nope": 1}):
            response = api.call(method, f"{path}{wrong}", body)
            assert (method, response.status_code) == (method, 405)
            assert response["Allow"] == ROUTES[path]
            if method != "HEAD":
                text = "This path does not take that method."
                assert response.json() == error("METHOD_NOT_ALLOWED", text)


def test_a_caller_without_a_token_is_refused_before_the_method(api):
    response = api.call("PUT", "/messages?nope=1", Authorization="Bearer nope")
    assert (response.status_code, response.json()["error"]["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.promise("errors-13")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "path",
    ["", "/", "//", "/nope", "/nope/", "/messages/", "/messages/x/", "/messages/x/y", "/Messages",
     "/../admin", "/nope?a=b", "?a=b", "/%00", "/%ff", "/templates/x/render/", "/openapi.json/"],
)  # fmt: skip
def test_unknown_path_is_not_found_for_any_method(api, path, method):
    response = api.call(method, path)
    assert response.status_code == 404
    assert response["Content-Type"] == "application/json"
    assert response["X-Request-Id"] == REQUEST_ID
    if method != "HEAD":
        assert response.json() == error("NOT_FOUND", "This path doesn't exist.")


def test_path_next_to_the_base_path_is_an_html_page():
    response = Client().get("/rme/v1x")
    assert (response.status_code, response["Content-Type"]) == (404, "text/html; charset=utf-8")


@pytest.mark.promise("errors-14", "bulk-9")
def test_not_cancellable(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    check(
        api.call("DELETE", f"/messages/{message_id}"),
        409,
        error("NOT_CANCELLABLE", "The message is no longer scheduled.", message_id=message_id),
    )


@pytest.mark.promise("calls-15")
def test_payload_too_large(api):
    response = api.send(b'{"x": "' + b"a" * (5 * 1024 * 1024) + b'"}')
    check(response, 413, error("PAYLOAD_TOO_LARGE", "The body is larger than 5 MiB."))


@pytest.mark.promise("errors-20")
def test_unsupported_media_type(api):
    response = api.call("POST", "/messages", b"a=b", **{"Content-Type": "text/plain"})
    check(
        response,
        415,
        error("UNSUPPORTED_MEDIA_TYPE", "The body must be application/json."),
    )


@pytest.mark.promise("errors-26", "faults-4")
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


@pytest.mark.promise("errors-25")
@pytest.mark.django_db(transaction=True)
def test_an_internal_error_contains_no_internals(api, org):
    def broken(*_):
        raise RuntimeError("a secret of the inside")

    person = factories.contact(org)
    with connection.execute_wrapper(broken):
        response = api.send(message(person))
    check(response, 500, error("INTERNAL_ERROR", "Something went wrong on our side."))


@pytest.mark.promise("calls-2")
def test_another_organization_gets_not_found(api, org):
    person = factories.contact(org)
    message_id = api.send(message(person)).json()["messageId"]
    other = Api(factories.organization("other"))
    for method in ("GET", "DELETE"):
        check(
            other.call(method, f"/messages/{message_id}"),
            404,
            error("NOT_FOUND", "This message doesn't exist."),
        )
    assert other.call("GET", "/messages").json() == {"messages": [], "nextCursor": None}
    body = message(person, template=None, content={"subject": "a", "text": "b"})
    assert other.send(body).json()["error"]["code"] == "NOT_FOUND"
