"""The table of routes whose errors have a shape of their own."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from rme import urls
from rme.core.http.api import error_renderers


def routes(resolver, before=""):
    """Return the routes below a resolver, as a request's match names them."""
    for entry in resolver.url_patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from routes(entry, route)
        else:
            assert isinstance(entry, URLPattern)
            yield route


def test_each_row_names_a_route_and_a_function():
    rows = error_renderers("rme.urls")
    assert set(rows) <= set(routes(get_resolver()))
    assert len(rows) == len(urls.error_renderers) > 0
    assert all(callable(render) for render in rows.values())


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/hooks/x", "text/plain"),
        ("/t/o/x", "text/plain"),
        ("/t/c/x", "text/plain"),
        ("/push-demo/devices", "application/json"),
        ("/push-demo/send", "application/json"),
        ("/push-demo/replace", "application/json"),
        ("/services/oauth2/token", "application/json"),
        ("/services/oauth2/revoke", "application/json"),
        ("/services/oauth2/introspect", "application/json"),
        ("/.well-known/oauth-authorization-server", "application/json"),
        ("/bot/api.php", "application/json"),
        ("/bot/api_create.php", "application/json"),
        ("/push-demo", "text/html"),
        ("/services/oauth2/token/more", "text/html"),
    ],
)
def test_error_before_the_view_has_the_shape_of_its_route(db, settings, path, content_type):
    answer = Client(HTTP_HOST="unknown.example").get(path)
    assert answer.status_code == 400
    assert answer["Content-Type"].partition(";")[0] == content_type
