"""Each call needs a permission of its application; a call without it is refused, and names it."""

import pytest
from django.conf import settings
from django.urls import get_resolver
from django.urls.resolvers import URLPattern

from bot import actions
from messaging.models.endpoints import TYPES
from rme.tenants.models import Application
from rme.tenants.oauth import routes
from rme.tenants.oauth.permissions import (
    ALL_PERMISSIONS,
    BOT_CREATE,
    BOT_LOOK_UP,
    EVERYTHING,
    Grants,
    action_rights,
    event_rights,
)
from tests import factories
from tests.rest import FORM, error, issued_token, message, token

pytestmark = pytest.mark.django_db
UNMETERED = {("GET", "openapi.json"), ("GET", "docs")}
"""Calls that need no token."""
EXAMPLES = {
    "<str:message_id>": "01a1fb37-a4a4-7470-9fc2-6927566e64b5",
    "<str:device_id>": "01a1fb37-a4a4-7470-9fc2-6927566e64b5",
    "<str:suppression_id>": "01a1fb37-a4a4-7470-9fc2-6927566e64b5",
    "<str:endpoint_id>": "1",
    "<str:name>": "welcome",
}


def _rest_calls(patterns=None, prefix=""):
    """Yield the methods and routes of the REST API, as Django resolves them."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(each.pattern)
        if not isinstance(each, URLPattern):
            yield from _rest_calls(each.url_patterns, route)
        elif route.startswith(routes.PREFIX) and hasattr(each.callback, "cls"):
            view = each.callback.cls(**each.callback.initkwargs)
            for method in {each.upper() for each in view.http_method_names} - {"HEAD", "OPTIONS"}:
                if hasattr(view, method.lower()):
                    yield method, route.removeprefix(routes.PREFIX)


def restrict(api, permissions=(), categories=()):
    Application.objects.filter(pk=api.application.pk).update(
        permissions=list(permissions), send_categories=list(categories)
    )
    api.token = issued_token(api.application)  # the cache has the permissions of the former one
    return api


@pytest.mark.promise("errors-6")
def test_every_route_is_in_the_table_and_the_table_has_no_other():
    assert set(_rest_calls()) - UNMETERED == set(routes.ROUTES)
    assert set(routes.ROUTES.values()) == {*ALL_PERMISSIONS, routes.SEND, routes.ANY_TOKEN} - {
        "READ_PEOPLE"  # what a body or a query asks for needs it, not a route
    }
    assert routes.needed("GET", "rme/v1/new") is None
    assert settings.REST_FRAMEWORK["DEFAULT_PERMISSION_CLASSES"] == [
        "rme.tenants.oauth.routes.RoutePermission"
    ]


@pytest.mark.promise("errors-6")
@pytest.mark.parametrize(
    ("method", "route"), routes.ROUTES, ids=[" ".join(each) for each in routes.ROUTES]
)
def test_a_call_without_its_permission_is_refused_and_names_it(api, method, route):
    path = "/" + route
    for name, example in EXAMPLES.items():
        path = path.replace(name, example)
    needed = routes.ROUTES[method, route]
    restrict(api, set(ALL_PERMISSIONS) - {needed}, [] if needed == routes.SEND else ["*"])
    answer = api.call(method, path, {} if method in ("POST", "PATCH") else None)
    if needed == routes.ANY_TOKEN:
        assert answer.status_code == 200
        return
    text = f"The application lacks the permission {needed}."
    advice = "Ask an owner of the organization to grant it on the application's page."
    assert (answer.status_code, answer.json()) == (403, error("FORBIDDEN", f"{text} {advice}"))
    assert answer["WWW-Authenticate"] == (
        f'Bearer realm="rme", error="insufficient_scope", error_description="{text}"'
    )
    assert answer.has_header("RateLimit")  # it was counted
    restrict(api, {needed} & set(ALL_PERMISSIONS), ["*"] if needed == routes.SEND else [])
    assert api.call(method, path, {} if method in ("POST", "PATCH") else None).status_code != 403


def test_wrong_method_is_reported_before_a_missing_permission(api):
    assert restrict(api).call("DELETE", "/messages").status_code == 405


def test_only_granted_categories_are_sent(api, org):
    ada = factories.contact(org)
    restrict(api, (), ["TRANSACTIONAL"])
    marketing = message(
        ada,
        category="MARKETING",
        template=None,
        context=None,
        content={"subject": "a", "text": "b"},
    )
    assert api.send(message(ada)).status_code == 202
    refused = [
        api.send(marketing),
        api.call("POST", "/messages", marketing, Prefer="wait=1"),
    ]
    assert [each.json()["error"]["code"] for each in refused] == ["FORBIDDEN"] * 2
    assert "SEND:MARKETING" in refused[0].json()["error"]["message"]
    results = api.bulk([message(ada), marketing]).json()["results"]
    assert [each.get("error", {}).get("code") for each in results] == [None, "FORBIDDEN"]
    assert "SEND:MARKETING" in results[1]["error"]["message"]


def test_data_of_a_person_needs_the_read_people_permission(api, org):
    ada = factories.contact(org)
    restrict(api, ["READ_TEMPLATES"], ["*"])
    render = {"language": "en_US", "channel": "EMAIL", "contactId": str(ada.pk)}
    asked = [
        api.call("POST", "/messages?dryRun=true", message(ada)),
        api.call("POST", "/templates/welcome/render", render),
        api.call("POST", "/templates/welcome/render", {**render, "contactId": None}),
    ]
    assert [each.status_code for each in asked] == [403, 403, 200]
    assert all("READ_PEOPLE" in each.json()["error"]["message"] for each in asked[:2])


def test_endpoint_gets_only_events_its_application_may_read(api, org):
    restrict(api, ["READ_MESSAGES", "CHANGE_WEBHOOKS"])
    endpoint = {"url": "https://hooks.example.com/x", "types": ["message.*"]}
    made = api.call("POST", "/webhook-endpoints", endpoint)
    consent = api.call("POST", "/webhook-endpoints", {**endpoint, "types": ["consent.changed"]})
    more = f"/webhook-endpoints/{made.json()['id']}"
    changed = [
        api.call("PATCH", more, {"types": ["message.sent", "suppression.created"]}),
        api.call("PATCH", more, {"types": ["device.registered"]}),
        api.call("PATCH", more, {"types": ["message.sent"]}),
    ]
    assert [each.status_code for each in (made, consent, *changed)] == [201, 403, 403, 403, 200]
    restrict(api, ALL_PERMISSIONS)
    api.call("PATCH", more, {"types": ["consent.changed"]})
    restrict(api, ["READ_MESSAGES", "CHANGE_WEBHOOKS"])  # nor may it lead another's elsewhere
    assert api.call("PATCH", more, {"url": "https://hooks.example.com/y"}).status_code == 403


def test_every_event_and_every_action_of_the_bot_needs_rights():
    assert all(event_rights([each]) for each in TYPES)
    needed = {name: action_rights([name]) for name in (*actions.CONFIRM, *actions.CREATE)}
    assert needed == {
        **dict.fromkeys(actions.CONFIRM, BOT_LOOK_UP),
        **dict.fromkeys(actions.CREATE, BOT_CREATE),
    }
    assert action_rights([]) == BOT_LOOK_UP | BOT_CREATE


def test_application_of_an_earlier_release_keeps_its_permissions(org):
    former = factories.application(org, factories.integration_user())
    former.refresh_from_db()
    assert Grants.of(former.permissions, former.send_categories) == EVERYTHING
    assert former.maker is None


def test_token_and_introspection_list_the_permissions(api, org):
    restrict(api, ["READ_CONSENT", "READ_MESSAGES"], ["TRANSACTIONAL"])
    body = token(api.application.client_id, api.secret).json()
    expected = ["SEND:TRANSACTIONAL", "READ_MESSAGES", "READ_CONSENT"]
    assert (body["scope"], body["permissions"]) == ("api", expected)
    form = {
        "token": body["access_token"],
        "client_id": api.application.client_id,
        "client_secret": api.secret,
    }
    shown = api.client.post(
        "/services/oauth2/introspect",
        "&".join(f"{name}={value}" for name, value in form.items()),
        FORM,
    ).json()
    assert (shown["scope"], shown["permissions"]) == ("api", expected)
