"""What is refused on every route: foreign hosts, secrets in clear, bodies too large."""

import html
import io
import resource

import pytest
from django.conf import settings as configured
from django.test import Client
from django.urls import resolve

from messaging.models import SuppressionImport
from rme.core.csv_lines import BYTES_LIMIT
from rme.core.http.chunked import INCOMPLETE
from rme.core.http.edge import ANY_HOST, IN_CLEAR, NO_ROOM
from rme.core.http.parsing import BODY_LIMIT
from rme.tenants.models import Invitation, Membership
from tests.rest import FORM, REQUEST_ID, error
from tests.routes import every_route
from tests.tenants.admin.scene import page, person

ROUTES = sorted(set(every_route()))
REST = [path for path in ROUTES if path.startswith("/rme/v1/")]
OAUTH = [path for path in ROUTES if path.startswith("/services/")]
BOT = sorted(configured.BOT_PATHS)
IMPORT = "/admin/messaging/suppression/imports/new/"


class Unread(io.RawIOBase):
    """A body that must not be read; it counts who tries."""

    def __init__(self):
        self.reads = 0

    def read(self, size=-1):
        self.reads += 1
        return b""


def test_the_sweep_knows_the_routes():
    known = {"/rme/v1/messages", "/services/oauth2/token", "/bot/api.php", "/hooks/1", "/t/o/1"}
    known |= {"/admin/login/", "/p/1", IMPORT, "/push-demo/send", "/metrics", "/livez", "/admin/"}
    assert known <= set(ROUTES)
    assert len(ROUTES) > 200
    for path in ROUTES:
        resolve(path)  # each leads somewhere


@pytest.mark.parametrize("path", ["/admin/account/oidc/%00/login/", "/admin/%00/"])
def test_nul_in_a_path_of_the_admin_is_not_found(path):
    answer = Client().post(path)  # without a database, which couldn't look it up
    assert answer.status_code == 404


# --- Host -----------------------------------------------------------------------------------------


def refusal(path):
    """Return what is answered on a path for a Host that is not ours."""
    headers = {"Host": "evil.example", "X-Request-Id": REQUEST_ID}
    return Client(raise_request_exception=False).get(path, headers=headers)


@pytest.mark.parametrize("path", [path for path in ROUTES if path not in ANY_HOST])
def test_a_foreign_host_is_refused_on_every_route(path):
    answer = refusal(path)  # without a database: nothing may be asked
    assert answer.status_code == 400
    assert answer["X-Request-Id"] == REQUEST_ID
    is_api = path.startswith(configured.API_PREFIXES)
    assert not (is_api and answer["Content-Type"].startswith("text/html"))


def test_unknown_host_is_rejected_in_the_shape_of_each_service():
    told = "Host: no host of this deployment"
    wrong = error("INVALID_PAYLOAD", told, ("Host", "no host of this deployment"))
    assert refusal("/rme/v1/messages").json() == wrong
    assert refusal("/rme/v1/nowhere").json() == wrong
    oauth = {"error": "invalid_request", "error_description": told}
    assert refusal("/services/oauth2/token").json() == oauth
    assert refusal("/.well-known/oauth-authorization-server").json() == oauth
    assert refusal("/bot/api.php").json() == {
        "code": 400,
        "status": "Bad Request",
        "error": "invalid_payload",
        "field": "",
        "message": told,
        "msg": [],
        "requestId": REQUEST_ID,
    }
    assert (refusal("/hooks/1").content, refusal("/t/o/1").content) == (b"", b"")
    assert f"<h1>{told}</h1>".encode() in refusal("/admin/login/").content


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1,evil.example", "a b", "[::1"])
def test_invalid_host_is_rejected(host):
    answer = Client().get("/rme/v1/openapi.json", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_PAYLOAD")


# --- framing --------------------------------------------------------------------------------------

MALFORMED = {
    "incomplete": ({INCOMPLETE: True}, 400, "body"),
    "coded": ({"HTTP_TRANSFER_ENCODING": "gzip, chunked"}, 400, "Transfer-Encoding"),
    "gzip": ({"HTTP_CONTENT_ENCODING": "gzip"}, 415, "Content-Encoding"),
    "two codings": ({"HTTP_CONTENT_ENCODING": "identity, BR"}, 415, "Content-Encoding"),
    "unknown coding": ({"HTTP_CONTENT_ENCODING": "x-own"}, 415, "Content-Encoding"),
    "port": ({"HTTP_HOST": "127.0.0.1:99999"}, 400, "Host"),
    "two hosts": ({"HTTP_HOST": "127.0.0.1,127.0.0.1"}, 400, "Host"),
    "utf-16": ({"CONTENT_TYPE": "application/json; charset=utf-16"}, 415, None),
    "utf-7": ({"CONTENT_TYPE": "text/plain; charset=UTF-7"}, 415, None),
    "ebcdic": ({"CONTENT_TYPE": f"{FORM}; charset=cp037"}, 415, None),
}


SERVICES = ["/rme/v1/messages", "/services/oauth2/token", *BOT, "/hooks/1", "/p/1", "/livez"]
"""A path of each service, with errors of its own shape; /livez takes any Host."""


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("path", [*SERVICES, "/admin/login/"])
def test_malformed_request_is_refused_by_every_service(path, case):
    meta, status, _ = MALFORMED[case]
    answer = Client().post(path, headers={"X-Request-Id": REQUEST_ID}, **meta)
    expected = 400 if path in OAUTH else status  # RFC 6749 §5.2
    assert (answer.status_code, answer["X-Request-Id"]) == (expected, REQUEST_ID)


@pytest.mark.parametrize("referer", ["http://[::1", "", "http://testserver/admin/", "//"])
def test_refused_form_survives_any_referer(referer):
    meta = {"HTTP_REFERER": referer, "HTTP_CONTENT_ENCODING": "gzip"}
    assert Client().post("/admin/login/", **meta).status_code == 415


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_request_names_its_field(case):
    meta, status, field = MALFORMED[case]
    answer = Client().post("/rme/v1/messages", headers={"X-Request-Id": REQUEST_ID}, **meta)
    details = answer.json()["error"]["details"]
    assert (answer.status_code, [each["field"] for each in details]) == (
        status,
        [field] if field else [],
    )


@pytest.mark.parametrize("charset", ["utf-8", '"UTF-8"', "us-ascii", "iso-8859-1", "windows-1252"])
def test_charsets_extending_ascii_are_accepted(charset):
    answer = Client().post("/rme/v1/messages", content_type=f"application/json; charset={charset}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("coding", ["", "identity", " Identity ", "UTF-8"])
def test_content_encoding_of_body_as_it_is_passes(coding):
    answer = Client().post("/rme/v1/messages", headers={"Content-Encoding": coding})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")


def test_compressed_body_is_refused_with_the_codings_that_we_take():
    answer = Client().post("/rme/v1/messages", headers={"Content-Encoding": "gzip"})
    told = "isn't supported. Send the body uncompressed."
    assert answer.json()["error"]["message"] == f"Content-Encoding: {told}"
    assert answer["Accept-Encoding"] == "identity"


def test_probes_are_answered_by_any_name(db):
    for path in ("/livez", "/readyz"):
        assert Client().get(path, headers={"Host": "10.0.0.7:8000"}).status_code == 200


# --- secrets in clear -----------------------------------------------------------------------------

PROXIED = [("TLS_PROXY", True, "10.0.0.1", {"X-Forwarded-Proto": "http"})]
TERMINATED = [("BASE_URL", "https://rme.example.org", "192.0.2.9", {})]
CLEAR = PROXIED + TERMINATED


@pytest.mark.parametrize(("setting", "value", "address", "headers"), CLEAR)
@pytest.mark.parametrize("path", REST)
def test_rest_by_plain_http_is_refused_with_a_warning_about_the_secret(
    settings, path, setting, value, address, headers
):
    setattr(settings, setting, value)
    given = {**headers, "Authorization": "Bearer x", "X-Request-Id": REQUEST_ID}
    answer = Client(REMOTE_ADDR=address).post(path, headers=given)
    assert (answer.status_code, answer.json()) == (401, error("UNAUTHORIZED", IN_CLEAR))
    assert "replace the secret" in IN_CLEAR
    assert not answer.has_header("Location")


@pytest.mark.parametrize(("setting", "value", "address", "headers"), CLEAR)
@pytest.mark.parametrize("path", OAUTH)
def test_client_secrets_by_plain_http_are_refused(settings, path, setting, value, address, headers):
    setattr(settings, setting, value)
    answer = Client(REMOTE_ADDR=address).post(path, "grant_type=x", FORM, headers=headers)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "invalid_request", "error_description": IN_CLEAR},
    )


@pytest.mark.parametrize(("setting", "value", "address", "headers"), CLEAR)
@pytest.mark.parametrize("path", BOT)
def test_api_keys_by_plain_http_are_refused(db, settings, path, setting, value, address, headers):
    setattr(settings, setting, value)
    given = {**headers, "X-API-Key": "rme_x_y"}
    answer = Client(REMOTE_ADDR=address).get(f"{path}?org=acme", headers=given)
    # The contract gives this body to the letter.
    assert (answer.status_code, answer.json()) == (401, {"code": 401, "status": "Unauthorized"})


@pytest.mark.parametrize(
    ("settled", "address", "headers"),
    [
        ({}, "192.0.2.9", {}),  # plain by intent: `make run`, a network of one's own
        ({"BASE_URL": "https://rme.example.org"}, "127.0.0.1", {}),
        ({"TLS_PROXY": True}, "10.0.0.1", {"X-Forwarded-Proto": "https"}),
        ({"TLS_PROXY": True}, "10.0.0.1", {}),  # the deployment says that a proxy ends TLS
    ],
)
def test_local_calls_and_calls_by_tls_are_answered(settings, settled, address, headers):
    for name, value in settled.items():
        setattr(settings, name, value)
    answer = Client(REMOTE_ADDR=address).get("/rme/v1/openapi.json", headers=headers)
    assert answer.status_code == 200
    answer = Client(REMOTE_ADDR=address).get("/rme/v1/messages", headers=headers)
    assert answer.json()["error"]["message"] == "A valid access token is required."


# --- bodies ---------------------------------------------------------------------------------------


def send(client, path, length, kind="multipart/form-data; boundary=x"):
    """Announce a body; return the answer, and how often it was read."""
    body = Unread()
    about = {"CONTENT_LENGTH": str(length), "CONTENT_TYPE": kind, "wsgi.input": body}
    return client.generic("POST", path, b"", **about), body.reads


@pytest.mark.parametrize("path", ROUTES)
def test_a_body_beyond_the_limit_is_refused_unread_on_every_route(path):
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    answer, reads = send(client, path, BODY_LIMIT + 1)
    oauth = path.startswith(("/services/", "/.well-known/"))  # RFC 6749 has a 400 for it
    assert (answer.status_code, reads) == (400 if oauth else 413, 0)


@pytest.mark.parametrize("path", [IMPORT, "/admin/crm/contact/imports/new/"])
def test_import_pages_accept_larger_files_from_users_allowed_to_import(org, path):
    largest = BYTES_LIMIT + 64 * 1024
    viewer = person("viewer", org, Membership.Role.VIEWER)
    for stranger in (Client(enforce_csrf_checks=True), viewer):
        answer, reads = send(stranger, path, BODY_LIMIT + 1)
        assert (answer.status_code, reads) == (413, 0)
    editor = person("editor", org, Membership.Role.OPERATOR)
    answer, reads = send(editor, path, largest)
    assert (answer.status_code, reads > 0) == (200, True)
    answer, reads = send(editor, path, largest + 1)
    assert (answer.status_code, reads) == (413, 0)
    assert b"The file is larger than 100 MB." in answer.content


def test_a_file_of_more_than_other_bodies_may_have_is_imported(org):
    rows = "".join(f"EMAIL,{n:06}{'a' * 50}@example.com,MANUAL\n" for n in range(80_000))
    file = io.BytesIO(f"channel,address,reason\n{rows}".encode())
    file.name = "a.csv"
    assert len(file.getvalue()) > BODY_LIMIT
    editor = person("editor", org, Membership.Role.OPERATOR)
    answer = editor.post(IMPORT, {"organization": org.pk, "file": file})
    assert answer.status_code == 302
    assert SuppressionImport.objects.get().rows == 80_000


def test_file_without_room_on_the_disk_leaves_nothing_there(org, tmp_path, settings):
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    file = io.BytesIO(b"EMAIL,a@x.test\n" * 250_000)
    file.name = "a.csv"
    client = person("editor", org, Membership.Role.OPERATOR)
    client.raise_request_exception = False
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        answer = client.post(IMPORT, {"organization": org.pk, "file": file})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (answer.status_code, list(tmp_path.iterdir())) == (503, [])
    assert html.escape(NO_ROOM) in answer.content.decode()


def test_files_are_accepted_by_import_pages_only(org, tmp_path, settings):
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    file = io.BytesIO(b"a" * 4_000_000)  # more than Django keeps in memory
    file.name = "a.csv"
    written = []
    login = Client()
    answer = login.post("/admin/login/", {"username": "ada", "password": "x", "file": file})
    written.append(answer.wsgi_request.FILES)
    owner = person("owner", org, Membership.Role.OWNER)
    file.seek(0)
    answer = owner.post(page(Invitation, "add"), {"role": "VIEWER", "file": file})
    written.append(answer.wsgi_request.FILES)
    assert (written, list(tmp_path.iterdir())) == ([{}, {}], [])
    assert answer.status_code == 200  # the fields beside it are read


def test_a_form_of_too_many_fields_is_refused(db):
    form = "&".join(f"a{n}=" for n in range(1001))
    answer = Client().post("/admin/login/", form, FORM)
    assert answer.status_code == 400
