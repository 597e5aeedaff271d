"""The demo page: for editors alone, within their organizations."""

import pytest
from django.core import signing
from django.test import Client

from messaging.models import Message
from push.models import Device
from rme.core.db.clock import iso
from rme.tenants.models import Membership
from tests import factories
from tests.push.subscriptions import Browser
from tests.tenants.admin.scene import person as member

pytestmark = pytest.mark.django_db
BROWSER = Browser()


@pytest.fixture
def editor(org):
    return member("editor", org, Membership.Role.OPERATOR)


@pytest.fixture
def ada(org):
    return factories.contact(org)


def post(client, path, body):
    return client.post(f"/push-demo/{path}", body, content_type="application/json")


@pytest.mark.promise("push-program-6")
def test_the_page_names_the_key_and_the_contacts(editor, ada):
    from push import vapid

    page = editor.get("/push-demo")
    assert page.status_code == 200
    shown = page.content.decode()
    assert f'data-key="{vapid.public_key()}"' in shown
    assert f'<option value="{ada.pk}">Ada Lovelace</option>' in shown


@pytest.mark.parametrize("path", ["", "/devices", "/send"])
def test_anonymous_visitor_is_redirected_to_log_in(org, path):
    ask = Client().get if not path else Client().post
    answer = ask(f"/push-demo{path}")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")


@pytest.mark.promise("push-program-6")
@pytest.mark.parametrize("role", [Membership.Role.VIEWER, Membership.Role.SUPPORT])
def test_page_is_404_for_roles_that_cannot_edit(org, role):
    reader = member("reader", org, role)
    assert reader.get("/push-demo").status_code == 404
    assert post(reader, "send", {}).status_code == 404


@pytest.mark.promise("push-program-6")
def test_another_organization_is_not_found(editor, org):
    theirs = factories.contact(factories.organization("other"))
    assert editor.get("/push-demo?org=other").status_code == 404
    assert editor.get("/push-demo?org=a%00b").status_code == 404
    body = {"contactId": str(theirs.pk), "token": BROWSER.subscription}
    assert post(editor, "devices?org=other", body).status_code == 404
    assert post(editor, "devices", body).status_code == 404
    assert not Device.objects.exists()


def test_cross_site_forms_are_rejected(org, ada):
    client = member("editor", org, Membership.Role.OPERATOR)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    body = {"contactId": str(ada.pk), "title": "T", "body": "B"}
    assert post(strict, "send", body).status_code == 403
    assert not Message.objects.exists()


@pytest.mark.promise("push-program-6")
def test_the_browser_becomes_a_device_and_is_pushed_to(editor, org, ada):
    body = {"contactId": str(ada.pk), "token": BROWSER.subscription}
    answer = post(editor, "devices", body)
    row = Device.objects.get()
    reference = answer.json()["reference"]
    assert answer.json() == {
        "deviceId": str(row.pk),
        "contactId": str(ada.pk),
        "platform": "WEB",
        "active": True,
        "registeredAt": iso(row.registered_at),
        "reference": reference,
    }
    assert (row.organization, row.app, row.token) == (org, "push-demo", BROWSER.text)
    sent = post(editor, "send", {"contactId": str(ada.pk), "title": "T", "body": "B"})
    message_id = str(Message.objects.get().pk)
    assert sent.json() == {"messageId": message_id, "status": "ACCEPTED"}


def test_a_service_worker_replaces_its_subscription_without_a_page(editor, ada):
    body = {"contactId": str(ada.pk), "token": BROWSER.subscription}
    reference = post(editor, "devices", body).json()["reference"]
    new = Browser("https://fcm.googleapis.com/fcm/send/new")
    nobody = Client(enforce_csrf_checks=True)
    answer = post(nobody, "replace", {"reference": reference, "token": new.subscription})
    assert answer.status_code == 200
    assert Device.objects.get().token == new.text


@pytest.mark.parametrize(
    "reference",
    [None, "", 7, "nonsense", signing.dumps(["acme", "x"], salt="another")],
    ids=["none", "empty", "number", "nonsense", "foreign"],  # a signature has the time in it
)
def test_foreign_reference_is_not_found(db, reference):
    answer = post(Client(), "replace", {"reference": reference, "token": BROWSER.subscription})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"title": "a\\u0000b"}'])
def test_malformed_body_is_rejected(editor, body):
    for path in ("devices", "send", "replace"):
        answer = post(editor, path, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_PAYLOAD")


def test_the_service_worker_has_its_path(db):
    answer = Client().get("/push-demo/worker.js")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/javascript")
    assert answer["Service-Worker-Allowed"] == "/push-demo"
    assert b"pushsubscriptionchange" in answer.content
