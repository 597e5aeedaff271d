"""Every route, while the database is away in each of the ways that there are."""

import re

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connection
from django.test import Client
from django.urls import URLPattern, get_resolver
from psycopg import errors

from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLES = {"uuid": "018f0000-0000-7000-8000-000000000000", "int": "1", "str": "x", "path": "x"}


WAYS = {
    "lost": (OperationalError, psycopg.OperationalError),
    "shut-down": (OperationalError, errors.AdminShutdown),
    "starting": (OperationalError, errors.CannotConnectNow),
    "closed": (InterfaceError, None),
    "crashed": (DatabaseError, psycopg.DatabaseError),
    "read-only": (InternalError, errors.ReadOnlySqlTransaction),
}


@pytest.fixture(params=WAYS)
def away(request):
    """Return a way to have every statement fail as if the database were away."""
    kind, cause = WAYS[request.param]

    def fail(*_):
        raise kind("lost") from (cause() if cause else None)

    return lambda: connection.execute_wrapper(fail)


@pytest.mark.promise("faults-4")
def test_call_is_rejected_with_retry_after(api, org, away):
    body = message(factories.contact(org))
    api.send(body)  # the token is known now
    calls = [
        ("POST", "/messages", body),
        ("POST", "/messages?dryRun=true", body),
        ("POST", "/messages/bulk", {"messages": [body]}),
        ("GET", f"/messages/{SAMPLES['uuid']}", None),
        ("GET", "/messages", None),
        ("POST", "/suppressions", {"channel": "EMAIL", "address": "a@example.org"}),
        ("GET", "/suppressions", None),
    ]
    with away():
        answers = [api.call(*call) for call in calls]
    assert {
        (call[:2], answer.status_code, answer.json()["error"]["code"], answer["Retry-After"])
        for call, answer in zip(calls, answers, strict=True)
    } == {(call[:2], 503, "UNAVAILABLE", "5") for call in calls}


def paths(patterns=None, before="/"):
    """Return a path of every route, with something in the place of what it takes."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        route = str(each.pattern).removeprefix("^").removesuffix("$").removesuffix(r"\Z")
        route = re.sub(r"<(?:(\w+):)?\w+>", lambda found: SAMPLES[found[1] or "str"], route)
        if isinstance(each, URLPattern):
            if "(" not in route:
                yield before + route
        else:
            yield from paths(each.url_patterns, before + route)


@pytest.mark.parametrize("away", ["crashed", "read-only"], indirect=True)
def test_no_route_answers_500(api, org, away):
    api.call("GET", "/messages")
    person = Client(raise_request_exception=False)
    user = get_user_model().objects.create_superuser("root", "root@example.org", "x")
    person.force_login(user)
    bearer = {"Authorization": f"Bearer {api.token}"}
    found = {}
    with away():
        for path in sorted(set(paths())):
            for method in ("get", "post"):
                answer = getattr(person, method)(path, headers=bearer)
                found[method, path] = answer.status_code, answer.get("Retry-After")
    assert len(found) > 200
    assert {key: told for key, told in found.items() if told[0] == 500} == {}
    assert {key for key, told in found.items() if told[0] == 503 and not told[1]} <= {
        (method, "/readyz") for method in ("get", "post")
    }
    pages = {told for (_, path), told in found.items() if path.startswith("/admin/")}
    assert (503, "5") in pages
