"""The client address and the scheme of a request, as a proxy in front reports them."""

import re

import pytest
from django.test import Client, RequestFactory

from rme.core.http import edge
from rme.core.http.edge import address_of
from tests.service import ROOT

DIRECT = "198.51.100.7"


def origin(settings, mode, **headers):
    """Return the address and the scheme of a request under a value of `TLS_PROXY`."""
    settings.TLS_PROXY, settings.TLS_PROXY_HEADER = bool(mode), mode
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR=DIRECT)
    edge.normalize(request.META)
    return address_of(request), request.scheme


@pytest.mark.parametrize(
    ("header", "address", "scheme"),
    [
        ("for=192.0.2.9;proto=https", "192.0.2.9", "https"),
        ('For="192.0.2.9:4711"; Proto=HTTPS;by=10.0.0.1', "192.0.2.9", "https"),
        ('for="[2001:db8::1]:4711";proto=http', "2001:db8::1", "http"),
        ('for="[2001:db8::1]"', "2001:db8::1", "http"),
        ("for=2001:db8::1;proto=https", "2001:db8::1", "https"),  # as nginx writes it by default
        # any client may have written the elements before the last
        ("for=203.0.113.1;proto=http, for=192.0.2.9;proto=https", "192.0.2.9", "https"),
        ('for="a, for=192.0.2.9;proto=https', "192.0.2.9", "https"),
        ("for=_hidden;proto=https", DIRECT, "https"),
        ("for=unknown", DIRECT, "http"),
        ("garbage", DIRECT, "http"),
        ("", DIRECT, "http"),
    ],
)
def test_forwarded_is_read_from_its_last_element(settings, header, address, scheme):
    assert origin(settings, "forwarded", Forwarded=header) == (address, scheme)


def test_only_the_forwarded_header_counts_when_configured(settings):
    forged = {"X-Forwarded-For": "203.0.113.1", "X-Forwarded-Proto": "https"}
    ours = {"Forwarded": "for=192.0.2.9;proto=http"}
    assert origin(settings, "forwarded", **forged, **ours) == ("192.0.2.9", "http")
    assert origin(settings, "forwarded", **forged) == (DIRECT, "http")


def test_forwarded_header_is_ignored_unless_configured(settings):
    both = {"Forwarded": "for=203.0.113.1;proto=https", "X-Forwarded-For": "192.0.2.9"}
    assert origin(settings, "1", **both) == ("192.0.2.9", "http")
    assert origin(settings, "", **both) == (DIRECT, "http")
    proto = {"X-Forwarded-Proto": "http, https"}  # the nearest proxy's is the last
    assert origin(settings, "1", **proto) == (DIRECT, "https")
    assert origin(settings, "", **proto) == (DIRECT, "http")


def test_only_listed_modules_read_the_origin_of_a_request():
    """A route that reads these headers itself would believe what nobody checked."""
    names = re.compile(
        r'REMOTE_(ADDR|HOST)|HTTP_(X_)?FORWARDED|X-(Forwarded|Real)|"forwarded"', re.I
    )
    apps = ("rme", "messaging", "push", "bot")
    readers = {
        str(path.relative_to(ROOT))
        for app in apps
        for path in (ROOT / app).rglob("*.py")
        if names.search(re.sub(r'"""[^"]*"""|#.*', "", path.read_text()))
    }
    where = {"rme/core/http/edge.py", "rme/settings.py"}
    # The gateway writes them for the others. The router has no Django, so it reads them itself.
    router = {f"rme/cells/router/{name}.py" for name in ("environment", "heads", "metrics")}
    assert readers == where | router | {"rme/core/http/serving/gateway.py"}


@pytest.mark.parametrize("value", ["abc", "-1", "99999999999"])
def test_a_length_or_type_by_underscore_is_dropped(db, value):
    # WSGI's names for `Content_Length` and `Content_Type`; what Django reads has others
    forged = {"HTTP_CONTENT_LENGTH": value, "HTTP_CONTENT_TYPE": "text/plain"}
    answer = Client(**forged).post("/rme/v1/messages", b"{}", "application/json")
    assert answer.status_code == 401
    request = answer.wsgi_request
    assert (request.headers["Content-Length"], request.content_type) == ("2", "application/json")


@pytest.mark.parametrize(
    ("proxy", "forwarded", "address"),
    [
        (False, "192.0.2.9", "198.51.100.7"),  # any client can write the header
        (True, "192.0.2.9", "192.0.2.9"),
        (True, "203.0.113.1, 192.0.2.9", "192.0.2.9"),  # the proxy's own entry is the last
        (True, "", "198.51.100.7"),
    ],
)
def test_x_forwarded_for_is_read_only_behind_a_proxy(settings, proxy, forwarded, address):
    settings.TLS_PROXY = proxy
    request = RequestFactory().get("/", REMOTE_ADDR="198.51.100.7", HTTP_X_FORWARDED_FOR=forwarded)
    assert address_of(request) == address
