"""The organizations of a person in other cells."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from uuid import uuid4

import pytest

from rme.cells import signatures
from rme.tenants.models import Placement, User
from tests import audited, factories
from tests.tenants.access.scene import browser, log_in, member

pytestmark = pytest.mark.django_db
PATH, SECRET = "/cell/organizations", "s" * 32


@pytest.fixture(autouse=True)
def cells(settings):
    settings.CELL, settings.CELL_SECRET = "eu", SECRET
    settings.CELLS = {"eu": "http://127.0.0.1:1", "us": "http://127.0.0.1:2"}


@pytest.fixture
def us(settings):
    """Return the other cell's answer, which a test may change, and what it was asked."""
    given = {"account": True, "organizations": [["demo-us", "Demo <us>"]]}
    asked = []

    class Cell(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            header = self.headers["Authorization"]
            assert signatures.is_signed(SECRET, f"POST {self.path}", body, header)
            asked.append(json.loads(body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(given).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Cell)
    settings.CELLS = {**settings.CELLS, "us": f"http://127.0.0.1:{server.server_port}"}
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield given, asked
    server.shutdown()
    thread.join()
    server.server_close()


def ask(client, body, authorization=None):
    text = json.dumps(body).encode()
    header = (
        signatures.sign(SECRET, f"POST {PATH}", text) if authorization is None else authorization
    )
    return client.post(PATH, text, "application/json", headers={"Authorization": header})


def test_a_cell_lists_the_organizations_of_a_person(client, django_assert_num_queries):
    org, other = factories.organization(), factories.organization("other")
    gone = factories.organization("gone")
    user = User.objects.get(pk=member(org).pk)
    question = {"person": str(user.person)}
    with django_assert_num_queries(2):
        assert ask(client, question).json() == {
            "account": True,
            "organizations": [[org.pk, org.name]],
        }
    Placement.objects.create(organization_id=gone.pk, phase="MOVED", cell="us")
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    found = ask(client, question).json()["organizations"]
    assert sorted(found) == sorted([[each.pk, each.name] for each in (org, other)])
    User.objects.filter(pk=user.pk).update(is_active=False)
    nobody = {"account": False, "organizations": []}
    assert ask(client, question).json() == ask(client, {"person": str(uuid4())}).json() == nobody


def test_only_cells_get_an_answer(client):
    user = User.objects.get(pk=member(factories.organization()).pk)
    question = {"person": str(user.person)}
    for header in ("", "Cell 1.x", signatures.sign("t" * 32, f"POST {PATH}", b"")):
        assert ask(client, question, header).status_code == 404
    for wrong in ({}, [], {"person": 1}, {"person": "x"}):
        assert ask(client, wrong).status_code == 400


def test_the_console_offers_organizations_of_other_cells_and_asks_once(us):
    _, asked = us
    user = User.objects.get(pk=member(factories.organization()).pk)
    client = browser()
    log_in(client)
    for _ in range(3):
        text = client.get("/admin/console/acme/messages/").content.decode()
    assert '<optgroup label="us">' in text
    assert '<option value="us/demo-us">Demo &lt;us&gt;</option>' in text
    assert asked == [{"person": str(user.person)}]
    for page in ("/admin/", "/admin/account/cells/"):
        assert 'value="us/demo-us"' in client.get(page).content.decode()


def test_unconnected_account_is_offered_a_connection(us):
    given, _ = us
    given.update(account=False, organizations=[])
    member(factories.organization())
    client = browser()
    log_in(client)
    text = client.get("/admin/console/acme/messages/").content.decode()
    assert '<option value="us/">Connect my account</option>' in text
    assert "Connect my account in us" in client.get("/admin/account/cells/").content.decode()


def test_replaced_connection_is_named(us, settings):
    settings.CELLS = {**settings.CELLS, "ap": "http://127.0.0.1:3"}
    member(factories.organization())
    client, arriving = browser(), str(uuid4())
    log_in(client)
    session = client.session
    session["rme_arrival"] = {
        "person": arriving, "source": "ap", "organization": "", "until": time.time() + 60
    }  # fmt: skip
    session.save()
    page = "/admin/account/cells/connect/"
    assert "with one in us. That connection ends." in client.get(page).content.decode()
    assert client.post(page).status_code == 303
    assert User.objects.filter(person=arriving).exists()
    text = "cell ap, not us any more"
    assert audited.summaries(action="CONNECTED") == [("sam", "CONNECTED", text)]


def test_page_works_while_another_cell_is_down():
    member(factories.organization())
    client = browser()
    log_in(client)
    answer = client.get("/admin/console/acme/messages/")
    assert (answer.status_code, b"can't be reached" in answer.content) == (200, True)


def test_deployment_of_one_cell_does_not_mention_cells(settings):
    settings.CELL, settings.CELLS = "", {}
    member(factories.organization())
    client = browser()
    log_in(client)
    assert b"another cell" not in client.get("/admin/console/acme/messages/").content
