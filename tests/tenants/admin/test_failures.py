"""Pages that fail: what the log gets, and what the person sees."""

import re

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client
from django.urls import path

from messaging.pages import tracking_views
from rme import urls
from rme.tenants.models import Organization, User
from tests.core.test_logs import lines, own, written
from tests.rest import REQUEST_ID

pytestmark = pytest.mark.django_db
SECRET = "hunter2-secret ada@example.com"


def fail(request):
    """Fail once it is known who is logged in."""
    raise ValueError(SECRET, request.user.is_active)


def fail_in_database(request):
    Organization.objects.create(id="acme", name=SECRET)
    return HttpResponse(Organization.objects.create(id="acme", name=SECRET))


def fail_for_anybody(request):
    raise KeyError(SECRET)


handler500 = urls.handler500
error_renderers = {
    **urls.error_renderers,
    "hooks/fail": urls.error_renderers["hooks/<str:public_id>"],
    "t/fail": urls.error_renderers["t/o/<str:token>"],
}
urlpatterns = [
    path("admin/fail", fail),
    path("admin/fail-in-database", fail_in_database),
    path("p/fail", fail_for_anybody),
    # what none of these views ever gets: a number
    path("hooks/fail", urls.views.receive, {"public_id": 1}),
    path("t/fail", tracking_views.show_image, {"token": 1}),
    *urls.urlpatterns,
]


@pytest.fixture(autouse=True)
def _routes(settings):
    settings.ROOT_URLCONF = __name__


@pytest.fixture
def browser():
    client = Client(raise_request_exception=False, headers={"X-Request-Id": REQUEST_ID})
    client.user = User.objects.create_superuser("ada", password="pw")
    client.force_login(client.user)
    return client


def test_failed_page_is_logged_with_traceback_request_and_user(browser):
    with written() as log:
        answer = browser.get("/admin/fail")
    (line,) = own(log, "request.failed")
    traceback = line.pop("exception")
    assert line == {
        "event": "request.failed",
        "level": "error",
        "logger": "rme.core.http.api",
        "request_id": REQUEST_ID,
        "user_id": browser.user.pk,
    }
    assert "in fail\n" in traceback
    assert traceback.endswith("builtins.ValueError")
    assert answer.status_code == 500


def test_the_page_shown_is_plain_and_names_the_request(browser):
    answer = browser.get("/admin/fail")
    text = answer.content.decode()
    assert re.findall("<h1>(.*)</h1>", text) == ["Something went wrong on our side."]
    assert f"<code>{REQUEST_ID}</code>" in text
    assert answer["X-Request-Id"] == REQUEST_ID
    assert "Traceback" not in text
    assert SECRET not in text
    assert "default-src 'none'" in answer["Content-Security-Policy"]


def test_the_log_has_neither_values_nor_the_query(browser):
    with written() as log:
        browser.get("/admin/fail", {"token": SECRET})
        browser.get("/admin/fail-in-database", {"token": SECRET})
    assert len(own(log, "request.failed")) == 2
    assert "constraint_name=tenants_organization_pkey" in log.getvalue()
    for secret in ("hunter2", "ada@example.com", "token="):
        assert secret not in log.getvalue()


def test_failed_recipient_page_is_logged_without_a_user():
    client = Client(raise_request_exception=False, headers={"X-Request-Id": REQUEST_ID})
    with written() as log:
        answer = client.get("/p/fail")
    (line,) = own(log, "request.failed")
    assert (line["request_id"], line.get("user_id")) == (REQUEST_ID, None)
    assert answer.status_code == 500
    assert REQUEST_ID in answer.content.decode()


@pytest.mark.parametrize(("method", "path"), [("POST", "/hooks/fail"), ("GET", "/t/fail")])
def test_failure_outside_of_pages_has_no_text_and_is_logged(method, path):
    with written() as log:
        answer = Client(raise_request_exception=False).generic(method, path)
    assert [line["level"] for line in own(log, "request.failed")] == ["error"]
    assert (answer.status_code, answer.content) == (500, b"")


def test_pages_ask_to_retry_without_the_database(browser):
    def lost(*_):
        raise OperationalError("server closed the connection unexpectedly")

    with written() as log, connection.execute_wrapper(lost):
        answer = browser.get("/admin/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "The service cannot take requests right now." in answer.content.decode()
    assert [line["event"] for line in lines(log) if line["level"] == "error"] == ["database.away"]
