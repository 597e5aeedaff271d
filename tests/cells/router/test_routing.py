"""By what the cell of a request is found."""

import base64
import hashlib
from uuid import UUID

import jwt
import pytest

from messaging.content import tracked_links
from messaging.links import Confirmation, PreferenceLink
from rme.cells.router import heads, routing
from rme.cells.router.routing import Area, Key, KeyKind

LINK = PreferenceLink("acme", "contact:1", "EMAIL", "NEWS", "0198")
DELIVERY = UUID("01980000-0000-7000-8000-000000000001")
CLIENT = Key(KeyKind.CLIENT, "abc123")
ASSERTION = jwt.encode({"iss": "abc123"}, "k" * 32)
BASIC = "Basic " + base64.b64encode(b"abc123:secret").decode()


def head(method="GET", path="/", **headers):
    path, _, query = path.partition("?")
    return heads.read(
        {
            "method": method,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "scheme": "https",
            "client": ("192.0.2.1", 1),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()],
        }
    )


def key(given, form=b""):
    return routing.key_of(given, routing.area_of(given), routing.parse_form(form))


def test_a_token_is_looked_up_by_its_digest():
    found = key(head(path="/rme/v1/messages", authorization="bearer  a-token"))
    assert found == Key(KeyKind.TOKEN, hashlib.sha256(b"a-token").hexdigest())


def test_an_api_key_is_looked_up_by_its_public_part():
    found = key(head(path="/bot/api.php?org=acme", x_api_key="rme_ab12_secret"))
    assert found == Key(KeyKind.API_KEY, "ab12")


@pytest.mark.parametrize(
    ("given", "form", "needs_form"),
    [
        (head("POST", "/services/oauth2/token", authorization=BASIC), b"", False),
        (head("POST", "/services/oauth2/token"), b"client_id=abc123&client_secret=s", True),
        (head("POST", "/services/oauth2/revoke"), b"token=t&client_id=abc123", True),
        (head("POST", "/services/oauth2/token"), f"assertion={ASSERTION}".encode(), True),
    ],
)
def test_client_is_found_by_its_id_in_any_form(given, form, needs_form):
    assert (routing.needs_form(given), key(given, form)) == (needs_form, CLIENT)


def test_links_in_messages_are_read_without_their_signature():
    organization = Key(KeyKind.ORGANIZATION, "acme")
    assert key(head(path=f"/p/{LINK.token}")) == organization
    assert key(head("POST", f"/p/u/{LINK.token}")) == organization
    assert key(head(path=f"/p/c/{Confirmation(LINK, ('NEWS',)).token}")) == organization
    delivery = Key(KeyKind.DELIVERY, str(DELIVERY))
    for url in (
        tracked_links.open_url(DELIVERY),
        tracked_links.click_url(DELIVERY, "https://example.org/x"),
    ):
        assert key(head(path=url[url.index("/t/") :])) == delivery
    assert key(head("POST", "/hooks/abc")) == Key(KeyKind.PROVIDER_ACCOUNT, "abc")


def test_people_are_found_by_typed_name_and_by_invitation():
    person = Key(KeyKind.PERSON, "olga@example.org")
    assert key(head("POST", "/admin/login/"), b"username=olga%40example.org") == person
    assert key(head("POST", routing.FORGOTTEN), b"email=olga%40example.org") == person
    invitation = Key(KeyKind.INVITATION, hashlib.sha256(b"abc").hexdigest())
    assert key(head(path="/admin/account/invitation/abc/")) == invitation


@pytest.mark.parametrize(
    "given",
    [
        head(path="/rme/v1/docs"),
        head(path="/rme/v1/messages", authorization="Basic eA=="),
        head(path="/bot/api.php", x_api_key="other_ab_c"),
        head("POST", "/services/oauth2/token", authorization="Basic %%"),
        head(path="/p/"),
        head(path="/p/%FF%FF"),
        head(path="/p/c/~~~"),
        head(path="/p/c/" + base64.b64encode(b"[" * 20_000).decode() + "~x"),
        head(path="/t/o/AAAA"),
        head(path="/t/o/" + "A" * 9999 + "/x"),
        head(path="/hooks/" + "a" * 300),
        head(path="/admin/?cell=eu"),
        head("POST", "/admin/login/?cell=eu"),
    ],
)
def test_request_without_an_identity_has_no_key(given):
    assert key(given, b"username=olga&assertion=a.b.c") is None


@pytest.mark.parametrize("form", [b"\xff", b"&" * 200, b"client_id=%00", b"client_id=a'b", b""])
def test_form_without_a_client_has_no_key(form):
    assert key(head("POST", "/services/oauth2/token"), form) is None


def test_the_area_of_a_path_is_read_after_decoding():
    assert routing.area_of(head(path="/%61dmin/")) is Area.CONSOLE
    assert routing.area_of(head(path="/bot/api.php", x_api_key="x")) is Area.BOT
